/*
 * Scans objects before any of their code runs.  After mapping objects and before
 * relocating them, the loader calls an empty function, at which debuggers set a
 * breakpoint (<link.h>, r_brk).  shim sets a trap at that function, and never removes
 * it.
 */
#define _GNU_SOURCE
#include "coverage/coverage.h"

#include "arch.h"
#include "coverage/sigtrap.h"
#include "dispatch/patch.h"
#include "image/elf_file.h"
#include "image/image.h"
#include "inspect/helper.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <errno.h>
#include <link.h>

#include <shim/banned.h>

static const struct r_debug *loader;
static uintptr_t trap; /* 0: not set */
static size_t length;  /* of the replaced instruction; 0: a return */
static unsigned char original;

static int write_trap(unsigned char byte)
{
	uintptr_t address = loader->r_brk;
	struct patch patch;
	int r;

	patch_open(&patch, address, address + 1);
	r = patch_write(&patch, address, &byte, 1);
	patch_close(&patch);
	return r;
}

static int set_trap(void *unused)
{
	(void)unused;
	if (!arch_is_nothing((const void *)loader->r_brk, &length))
		return -ENOSYS;
	original = *(const unsigned char *)loader->r_brk;
	__atomic_store_n(&trap, loader->r_brk, __ATOMIC_RELEASE);
	return write_trap(ARCH_TRAP);
}

static int remove_trap(void *unused)
{
	(void)unused;
	return write_trap(original);
}

static void log_failure(int error)
{
	log_error("lines that constructors of dlopened libraries reach are not "
		  "recorded%s",
		  "", error);
}

void coverage_watch_loader(void)
{
	int r;

	if (!coverage_is_on() || trap != 0 || !sigtrap_start())
		return;
	loader = lookup_list();
	if (!loader || loader->r_brk == 0) {
		log_failure(-ENOENT);
		return;
	}
	/* The helper is opened first.  If it were loaded later, with all signals
	 * blocked, its loading would hit the trap. */
	helper_prepare();
	r = state_call_locked(set_trap, NULL);
	if (r < 0)
		log_failure(r);
}

bool coverage_leave_loader(void)
{
	return trap == 0 || state_call_locked(remove_trap, NULL) == 0;
}

void coverage_prepare(void)
{
	if (trap != 0)
		helper_prepare();
}

static int set_trap_again(void *unused)
{
	(void)unused;
	return write_trap(ARCH_TRAP);
}

void coverage_return_to_loader(void)
{
	int r = trap == 0 ? 0 : state_call_locked(set_trap_again, NULL);

	if (r < 0)
		log_failure(r);
}

struct image_search {
	uintptr_t address;
	struct image_entry *entry;
};

static int describe(void *argument)
{
	const struct image_search *search = argument;

	return image_describe(search->address, search->entry);
}

/* Runs with the loader's lock held, so shim must not load a library.  The objects are
 * not relocated yet, so shim raises no event for them. */
static void scan_new_objects(void)
{
	static struct image_entry entry;
	static uint64_t number;

	if (loader->r_state != RT_CONSISTENT || !helper_is_open() ||
	    coverage_has_filters())
		return;
	for (const struct link_map *map = loader->r_map; map;
	     map = map->l_next) {
		struct image_search search = { (uintptr_t)map->l_ld, &entry };
		int r;

		if (coverage_has_scanned(search.address))
			continue;
		r = state_call_locked(describe, &search);
		if (elf_is_refused(r))
			log_error(
				"the lines that its constructors reach are not "
				"recorded: %s",
				map->l_name, r);
		if (r < 0)
			continue;
		entry.id = 1ull << 63 | ++number;
		coverage_scan_object(&entry);
	}
}

/* The loader has hit the trap at @address: executes the original instruction in
 * @context. */
static void take_trap(uintptr_t address, ucontext_t *context,
		      enum sigtrap_owner *whose)
{
	int before = errno;

	if (address != __atomic_load_n(&trap, __ATOMIC_ACQUIRE) || trap == 0)
		return;
	scan_new_objects();
	errno = before;
	ARCH_TRAP_DO(context, length);
	*whose = TRAP_OURS;
}

SUBSCRIBE(sigtrap_taken, take_trap);
