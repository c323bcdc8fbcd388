/*
 * The slots that lead to shim since the attach, and their former values.
 */
#include "dispatch/redirects.h"

#include "dispatch/stub_redirects.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096

struct redirect {
	uintptr_t place;
	uintptr_t former, ours;
	bool is_relro; /* its page is read-only */
	bool may_go;
};

static struct redirect *redirects;
static size_t room, count;
static bool is_enabled, is_undone;

void redirects_enable(void)
{
	is_enabled = true;
}

static bool has_room(void)
{
	size_t more = room ? 2 * room : 512;
	struct redirect *moved;
	void *memory;

	if (count < room)
		return true;
	if (sys_map(more * sizeof(*redirects), &memory) < 0)
		return false;
	moved = memory;
	for (size_t i = 0; i < count; i++)
		moved[i] = redirects[i];
	if (redirects)
		sys_unmap(redirects, room * sizeof(*redirects));
	redirects = moved;
	room = more;
	return true;
}

/* Another thread may unmap an image that may go, so the kernel stores there. */
static void store(const struct redirect *redirect, uintptr_t value)
{
	void *page = (void *)(redirect->place & ~(uintptr_t)(PAGE - 1));

	if (redirect->is_relro &&
	    sys_protect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	if (redirect->may_go)
		sys_poke((void *)redirect->place, &value, sizeof(value));
	else
		__atomic_store_n((uintptr_t *)redirect->place, value,
				 __ATOMIC_RELEASE);
	if (redirect->is_relro)
		sys_protect(page, PAGE, PROT_READ);
}

/* Some of these functions release what others have allocated. */
static bool is_allocator(const char *name)
{
	static const char *const names[] = {
		"malloc", "calloc",	    "realloc",	"reallocarray",
		"free",	  "posix_memalign", "memalign", "aligned_alloc",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (text_equal(name, names[i]))
			return true;
	return false;
}

static bool is_hook(const char *name)
{
	return text_after(name, "__cyg_profile_func_") != NULL;
}

/* In the image that is scanned, some calls of the allocator do not reach shim. */
static bool leaves_allocator;

bool redirects_want(const char *name, bool is_call)
{
	return is_enabled && (is_call || is_hook(name)) &&
	       !(leaves_allocator && is_allocator(name)) &&
	       !text_after(name, "shim_") && lookup_ours(name) != NULL;
}

void redirects_begin(void)
{
	ASSERT_LOCKED();
	leaves_allocator = false;
	stub_redirects_begin();
}

void redirects_note_address(const char *name, uintptr_t place)
{
	void *ours = is_enabled && is_allocator(name) ? lookup_ours(name) :
							NULL;
	uintptr_t now;

	if (ours && sys_peek((const void *)place, &now, sizeof(now)) == 0 &&
	    now == (uintptr_t)lookup_next(name))
		stub_redirects_note(place, (uintptr_t)ours);
}

void redirects_end_addresses(const struct hook_table_image *image,
			     uintptr_t stubs)
{
	/* Another thread may unload the image while its code changes. */
	leaves_allocator = !stub_redirects_make(image->may_go ? 0 : stubs,
						is_undone);
}

/* The function that the slot leads to without shim.  A hook of the program itself is not
 * replaced, so only libc's counts. */
static void *former_function(const char *name)
{
	return is_hook(name) ? lookup_libc(name) : lookup_next(name);
}

void redirects_add(const struct hook_table_image *image, const char *name,
		   uintptr_t place, bool lazy)
{
	void *former = former_function(name);
	struct redirect redirect = {
		.place = place,
		.ours = (uintptr_t)lookup_ours(name),
		.is_relro = place - image->relro < image->relro_size,
		.may_go = image->may_go,
	};

	if (!former || sys_peek((const void *)place, &redirect.former,
				sizeof(redirect.former)) < 0)
		return;
	if (redirect.former != (uintptr_t)former &&
	    !(lazy && redirect.former >= image->bias &&
	      redirect.former < image->dynamic && lookup_first(name) == former))
		return;
	if (!has_room()) {
		log_line("%s", "no memory: shim does not see all calls of the "
			       "images that were loaded last");
		return;
	}
	redirects[count++] = redirect;
	if (!is_undone)
		store(&redirect, redirect.ours);
}

void redirects_undo(void)
{
	ASSERT_LOCKED();
	is_undone = true;
	for (size_t i = 0; i < count; i++)
		store(&redirects[i], redirects[i].former);
	stub_redirects_switch(false);
}

void redirects_redo(void)
{
	ASSERT_LOCKED();
	is_undone = false;
	for (size_t i = 0; i < count; i++)
		store(&redirects[i], redirects[i].ours);
	stub_redirects_switch(true);
}

void redirects_forget(uintptr_t start, uintptr_t end)
{
	size_t kept = 0;

	stub_redirects_forget(start, end);
	for (size_t i = 0; i < count; i++)
		if (redirects[i].place < start || redirects[i].place >= end)
			redirects[kept++] = redirects[i];
	count = kept;
}
