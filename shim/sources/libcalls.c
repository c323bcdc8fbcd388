/*
 * The images whose library calls are recorded, their thunks, and the state of their slots.
 * A slot is one aligned word, so one store changes it while threads call through it.  The
 * code of a thunk is never changed; what it uses is in pages behind it:
 *
 *     the code that thunks jump to, for the current plan
 *     a struct libcall_target for each thunk
 */
#include "sources/libcalls.h"

#include "dispatch/call_sites.h"
#include "dispatch/got_slots.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "image/image_facts.h"
#include "os/sys.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "sources/libcall_code.h"
#include "sources/libcall_slots.h"
#include "sources/returns.h"

#include <errno.h>
#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE	   4096u
#define IMAGES_MAX 1024

/* What the thunks of an image use. */
struct libcall_slots {
	void (*entry)(void);
	uintptr_t unused;
	struct libcall_target targets[];
};

static struct libcall_image images[IMAGES_MAX];
static unsigned image_count;
static bool has_begun;
static void (*current_entry)(void);

bool libcalls_are_waiting(void)
{
	return config.libcalls[0] && !has_begun;
}

void libcalls_begin(void)
{
	has_begun = true;
	if (config.libcalls[0] && !libcall_is_known())
		log_line("%s", "--libcalls: not on this processor");
}

/* --- images --- */

static size_t round_up(size_t size)
{
	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static void log_image(const struct libcall_image *image, const char *reason,
		      int error)
{
	struct image_entry *entry;

	image_pin();
	entry = image_find(image->start);
	log_error(reason, entry ? entry->path : "an object", error);
	image_unpin();
}

static void drop(struct libcall_image *image)
{
	if (image->code)
		sys_unmap((void *)image->code, image->size);
	image->code = 0;
	libcall_slots_drop(image);
}

static void remove_image(uintptr_t start, uintptr_t end)
{
	for (unsigned i = 0; i < image_count;) {
		if (images[i].start < end && images[i].end > start) {
			drop(&images[i]);
			images[i] = images[--image_count];
		} else {
			i++;
		}
	}
}

static void add_image(struct image_entry *entry,
		      const struct image_facts *facts, bool may_go)
{
	if (!libcall_is_known() || !entry || image_is_ours(entry->start))
		return;
	remove_image(entry->start, entry->end);
	if (image_count == IMAGES_MAX)
		return;
	images[image_count++] = (struct libcall_image){
		.start = entry->start,
		.end = entry->end,
		.bias = facts->bias,
		.dynamic = facts->dynamic,
		.dynamic_size = facts->dynamic_size,
		.relro = facts->relro,
		.relro_size = facts->relro_size,
		.may_go = may_go,
		.is_confirmed = true,
	};
}

static void begin_fork(void)
{
	for (unsigned i = 0; i < image_count; i++)
		images[i].is_confirmed = false;
}

static void confirm(struct image_entry *entry)
{
	for (unsigned i = 0; i < image_count; i++)
		images[i].is_confirmed |= images[i].start == entry->start;
}

/* --- thunks --- */

static uintptr_t thunk_at(const struct libcall_image *image, uint32_t number)
{
	return image->code + (uintptr_t)number * LIBCALL_THUNK_SIZE;
}

/* Writes the thunks before their memory becomes executable. */
static int make_thunks(struct libcall_image *image)
{
	size_t code = round_up((size_t)image->count * LIBCALL_THUNK_SIZE);
	size_t data = round_up(sizeof(struct libcall_slots) +
			       image->count * sizeof(struct libcall_target));
	void *memory;
	int r = sys_map(code + data, &memory);

	if (r < 0)
		return r;
	image->code = (uintptr_t)memory;
	image->size = code + data;
	image->slots = (void *)(image->code + code);
	image->slots->entry = current_entry;
	for (uint32_t i = 0; i < image->count; i++) {
		struct libcall_target *target = &image->slots->targets[i];

		target->function = image->calls[i].function;
		target->target = image->calls[i].target;
		libcall_put((unsigned char *)thunk_at(image, i),
			    &image->slots->entry, target);
	}
	return sys_make_code(memory, code);
}

/* Returns 0, or -EBUSY while the image may go, or be shim's, which is not known while shim
 * opens it. */
static int search(struct libcall_image *image)
{
	struct image_entry *entry;
	int r = 0;

	if (image->may_go && image_is_closing())
		return -EBUSY;
	image->is_searched = true;
	image_pin();
	entry = image_find(image->start);
	if (entry)
		r = libcall_slots_find(image, entry);
	image_unpin();
	if (r == 0 && image->count > 0)
		r = make_thunks(image);
	if (r == 0) {
		image->is_changed = image->count > 0;
		return 0;
	}
	log_image(image, "--libcalls: calls of %s are not recorded", r);
	drop(image);
	return 0;
}

/* --- slots --- */

static int write_slot(const struct libcall_image *image, uintptr_t slot,
		      uintptr_t value)
{
	if (image->may_go)
		return sys_poke((void *)slot, &value, sizeof(value));
	__atomic_store_n((uintptr_t *)slot, value, __ATOMIC_RELEASE);
	return 0;
}

static bool is_wanted(const struct libcall *call, bool is_on)
{
	return is_on && !call->is_filtered && !call->is_throttled;
}

/* The value that a slot is to have; 0: it stays as it is. */
static uintptr_t value_for(struct libcall_image *image, uint32_t number,
			   bool wanted)
{
	struct libcall *call = &image->calls[number];
	uintptr_t *target = &image->slots->targets[number].target;
	uintptr_t value = libcall_slots_read(image, call->slot);

	if (value == 0)
		return 0;
	if (!wanted)
		return value == thunk_at(image, number) ? *target : 0;
	/* Another tool, or shim's own wrapper, may have come since. */
	if (value != *target && value != thunk_at(image, number) &&
	    (value < image->start || value >= image->end))
		__atomic_store_n(target, value, __ATOMIC_RELEASE);
	return thunk_at(image, number);
}

static int change_slots(struct libcall_image *image, bool is_on, bool is_relro)
{
	int r = 0;

	for (uint32_t i = 0; i < image->count && r == 0; i++) {
		struct libcall *call = &image->calls[i];
		bool wanted = is_wanted(call, is_on);
		uintptr_t value;

		if (call->is_on == wanted || call->is_relro != is_relro)
			continue;
		value = value_for(image, i, wanted);
		if (value)
			r = write_slot(image, call->slot, value);
		if (r == 0)
			call->is_on = wanted;
	}
	return r;
}

/* The pages with read-only slots that are to be changed. */
static bool find_pages(const struct libcall_image *image, bool is_on,
		       uintptr_t *start, size_t *size)
{
	uintptr_t first = UINTPTR_MAX, last = 0;

	for (uint32_t i = 0; i < image->count; i++) {
		const struct libcall *call = &image->calls[i];

		if (!call->is_relro || call->is_on == is_wanted(call, is_on))
			continue;
		first = call->slot < first ? call->slot : first;
		last = call->slot > last ? call->slot : last;
	}
	*start = first & ~(uintptr_t)(PAGE - 1);
	*size = round_up(last + 1 - *start);
	return last > 0;
}

static int change_read_only(struct libcall_image *image, bool is_on)
{
	uintptr_t start;
	size_t size;
	int r;

	if (!find_pages(image, is_on, &start, &size))
		return 0;
	r = sys_protect((void *)start, size, PROT_READ | PROT_WRITE);
	if (r < 0)
		return r;
	r = change_slots(image, is_on, true);
	sys_protect((void *)start, size, PROT_READ);
	return r;
}

static int settle_image(struct libcall_image *image, bool is_on)
{
	bool was_unwritable = image->is_unwritable;
	int r, read_only;

	if (image->may_go && image_is_closing())
		return -EBUSY;
	r = change_slots(image, is_on, false);
	read_only = change_read_only(image, is_on);
	r = r < 0 ? r : read_only;
	image->is_changed = false;
	image->is_unwritable = r < 0;
	if (r < 0 && !was_unwritable)
		log_image(image,
			  "--libcalls: %s: slots of the linkage table cannot "
			  "be changed: some of its calls are not recorded",
			  r);
	return r;
}

int libcalls_settle(bool is_on)
{
	int result = 0;

	ASSERT_LOCKED();
	if (!has_begun)
		return 0;
	for (unsigned i = 0; i < image_count; i++) {
		struct libcall_image *image = &images[i];
		int r = 0;

		if (is_on && !image->is_searched && config.libcalls[0])
			r = search(image);
		if (image->is_changed)
			r = settle_image(image, is_on);
		if (r < 0 && result != -EBUSY)
			result = r;
	}
	return result;
}

/* Threads may be in thunks, which stay where they are. */
static void restart(struct libcall_image *image)
{
	if (image->count > 0 && settle_image(image, false) < 0)
		return;
	libcall_slots_drop(image);
	image->code = 0;
	image->is_searched = image->is_changed = false;
}

void libcalls_restart(void)
{
	ASSERT_LOCKED();
	if (!has_begun)
		libcalls_begin();
	for (unsigned i = 0; i < image_count; i++)
		restart(&images[i]);
}

void libcalls_route(const struct plan_route *route)
{
	current_entry = returns_entry(route);
	for (unsigned i = 0; i < image_count; i++) {
		images[i].is_changed = images[i].count > 0;
		if (images[i].code)
			__atomic_store_n(&images[i].slots->entry, current_entry,
					 __ATOMIC_RELEASE);
	}
}

/* Another thread of the parent may have been changing slots. */
static void finish_fork(bool is_complete)
{
	for (unsigned i = 0; i < image_count;) {
		struct libcall_image *image = &images[i];

		if (is_complete && !image->is_confirmed) {
			remove_image(image->start, image->end);
			continue;
		}
		for (uint32_t n = 0; n < image->count; n++)
			image->calls[n].is_on = libcall_slots_read(
							image,
							image->calls[n].slot) ==
						thunk_at(image, n);
		image->is_changed = image->count > 0;
		i++;
	}
}

SUBSCRIBE(image_came, add_image);
SUBSCRIBE(image_went, remove_image);
SUBSCRIBE(images_fork, begin_fork);
SUBSCRIBE(image_forked_as_well, confirm);
SUBSCRIBE(images_forked, finish_fork);

/* --- what dispatch asks --- */

bool libcalls_have(uintptr_t function)
{
	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t n = 0; n < images[i].count; n++)
			if (images[i].calls[n].function == function)
				return true;
	return false;
}

/* The hook of a call sees the target as its return address. */
static void switch_call(struct other_call *call)
{
	for (unsigned i = 0; i < image_count; i++) {
		struct libcall_image *image = &images[i];

		for (uint32_t n = 0; n < image->count; n++) {
			if (image->slots->targets[n].target != call->address)
				continue;
			if (call->reason == OTHER_FILTER)
				image->calls[n].is_filtered = !call->on;
			else
				image->calls[n].is_throttled = !call->on;
			image->is_changed = true;
			call->result = 0;
		}
	}
}

static void reset(enum other_reason reason)
{
	for (unsigned i = 0; i < image_count; i++) {
		for (uint32_t n = 0; n < images[i].count; n++) {
			struct libcall *call = &images[i].calls[n];

			if (reason == OTHER_FILTER)
				call->is_filtered = 0;
			else
				call->is_throttled = 0;
		}
		images[i].is_changed = images[i].count > 0;
	}
}

static void count(struct call_sites_state *state)
{
	for (unsigned i = 0; i < image_count; i++) {
		if (images[i].count == 0)
			continue;
		state->sites += images[i].count;
		for (uint32_t n = 0; n < images[i].count; n++)
			state->off += !images[i].calls[n].is_on;
		state->images++;
		state->images_unwritable += images[i].is_unwritable;
	}
}

static void find_thunk(struct slot_thunk *thunk)
{
	for (unsigned i = 0; i < image_count; i++)
		for (uint32_t n = 0; n < images[i].count; n++)
			if (images[i].calls[n].slot == thunk->place &&
			    images[i].calls[n].is_on)
				thunk->target =
					&images[i].slots->targets[n].target;
}

SUBSCRIBE(other_call_switched, switch_call);
SUBSCRIBE(other_calls_reset, reset);
SUBSCRIBE(other_calls_added, count);
SUBSCRIBE(slot_thunk_wanted, find_thunk);
