/*
 * The images with marks, and what dispatch asks of them: all marks on or off, as profilers
 * come and go; single ones off, for filters and for profilers that have enough of them.
 */
#include "sources/sources.h"

#include "arch.h"
#include "dispatch/call_sites.h"
#include "dispatch/callspec.h"
#include "dispatch/hook_table.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "image/image_facts.h"
#include "image/image_work.h"
#include "inspect/code.h"
#include "inspect/moved_code.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/tasks.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "sources/libcalls.h"
#include "sources/marks.h"
#include "sources/mcount.h"
#include "sources/route.h"
#include "sources/switch_marks.h"
#include "sources/thunks.h"
#include "sources/unmarked.h"

#include <errno.h>

#include <shim/banned.h>

#define IMAGES_MAX 1024
/* After this, no thread is expected in a call of a mark that has been switched off: what it
 * returns to may be changed. */
#define RELEASE_MS 50

static struct source_image images[IMAGES_MAX];
static unsigned image_count;
static bool is_on; /* a profiler wants calls */
static bool
	unsettled; /* the code of an image may differ from what it shall be */

/* --- changing the marks of an image --- */

static void log_image(const struct source_image *image, const char *reason)
{
	struct image_entry *entry;

	image_pin();
	entry = image_find(image->start);
	log_line("%s: %s", entry ? entry->path : "an object", reason);
	image_unpin();
}

/* Whether LLVM's runtime, or a tool on it, has switched on marks of the image.  Two tools
 * cannot share them. */
static bool is_taken(const struct source_image *image)
{
	unsigned char code[MARK_SIZE_MAX];

	for (uint32_t i = 0; i < image->count; i++) {
		const struct source_mark *mark = &image->marks[i];

		if (mark->is_unusable && mark->source == SHIM_SOURCE_XRAY &&
		    sys_peek((const void *)mark_address(image, mark), code,
			     XRAY_SLED_SIZE) == 0 &&
		    xray_is_llvms(code))
			return true;
	}
	return false;
}

static void set_has_hooks(const struct source_image *image)
{
	struct image_entry *entry;

	image_pin();
	entry = image_find(image->start);
	if (entry)
		__atomic_store_n(&entry->has_hooks, true, __ATOMIC_RELEASE);
	image_unpin();
}

/* What is not recorded anyway is not worth a word. */
static void give_up(struct source_image *image, const char *reason)
{
	if (is_on)
		log_image(image, reason);
	thunks_drop(image);
	marks_drop(image);
}

static bool needs_thunks(const struct source_image *image)
{
	for (uint32_t i = 0; i < image->count; i++)
		if (source_of(image->marks[i].source)->has_thunks)
			return true;
	return false;
}

/* All images whose marks others may change, as one range; 0: none. */
static uintptr_t first_shared, last_shared;

static void note_shared(const struct source_image *image)
{
	for (uint32_t i = 0; i < image->count; i++)
		if (source_of(image->marks[i].source)->release) {
			if (!first_shared || image->start < first_shared)
				__atomic_store_n(&first_shared, image->start,
						 __ATOMIC_RELAXED);
			if (image->end > last_shared)
				__atomic_store_n(&last_shared, image->end,
						 __ATOMIC_RELAXED);
			return;
		}
}

static void search(struct source_image *image)
{
	/* The image may go, or be shim's, which is not known while shim opens it. */
	if (image->may_go && image_is_closing()) {
		image->is_waiting = unsettled = true;
		return;
	}
	if ((is_on ? marks_find(image) : marks_find_idle(image)) < 0) {
		if (is_on)
			log_image(image, "marks of functions cannot be read: "
					 "its calls are not recorded");
		return;
	}
	if (image->count == 0)
		return;
	if (switch_read(image) < 0) {
		give_up(image,
			"its marked functions cannot be read: their calls "
			"are not recorded");
		return;
	}
	if (is_taken(image)) {
		give_up(image, "another tool has switched on its XRay sleds: "
			       "its calls are not recorded");
		return;
	}
	note_shared(image);
	if (!is_on)
		return;
	image->veneers = route_near(image);
	if (!image->veneers || (needs_thunks(image) && !thunks_make(image))) {
		give_up(image, "no executable memory near it, or the system "
			       "refuses it: calls of its marked functions are "
			       "not recorded");
		return;
	}
	set_has_hooks(image);
}

/* Finds the marks of an image, once; while no profiler wants calls, only those that are cheaper
 * when shim has changed them. */
static void search_once(struct source_image *image)
{
	if (image->is_waiting || image->is_searched ||
	    (is_on ? unmarked_is_waiting() : image->is_searched_idle))
		return;
	image->is_entered = true;
	NOTIFY(marks_changed, image->start, true);
	search(image);
}

static void leave_images(void)
{
	for (unsigned i = 0; i < image_count; i++) {
		if (images[i].is_entered)
			NOTIFY(marks_changed, images[i].start, false);
		images[i].is_entered = false;
	}
}

static int change_all(enum switch_step step, bool *changed)
{
	int result = 0;

	for (unsigned i = 0; i < image_count; i++) {
		struct source_image *image = &images[i];
		bool was_unwritable = image->is_unwritable;
		int r = switch_marks(image, step, is_on, changed);

		if (r == -EBUSY)
			unsettled = true;
		else if (r < 0 && result == 0)
			result = r;
		if (r < 0 && r != -EBUSY && !was_unwritable && is_on)
			log_image(image, "code cannot be changed: calls of its "
					 "marked functions are not recorded");
	}
	return result;
}

/* Whether the program has not run yet, apart from constructors of libraries: no signal
 * handler, and no other stack, has interrupted its functions. */
static bool is_before_main(void)
{
	return !state_main_started() && !lookup_was_attached();
}

static void say_not_quiet(struct source_image *image)
{
	bool is_late = image->has_unmarked ? !image->is_fresh :
					     !image->is_quiet;

	if (is_late && !image->is_told && image->on == 0)
		log_image(image, "its code may be running already, so its "
				 "entries cannot be changed: calls of it are "
				 "not recorded");
	image->is_told = true;
}

/* Before the first change of an entry, which a thread may be executing.  A thread that is
 * inside no-ops is rare; entries that are not marked need the proof that there is no other
 * thread. */
static void find_quiet(void)
{
	bool is_alone = false, is_known = false;

	for (unsigned i = 0; i < image_count; i++) {
		struct source_image *image = &images[i];

		if (!image->thunks)
			continue;
		if (!switch_changes(image, STEP_PREPARE, is_on)) {
			image->is_new = false;
			continue;
		}
		if (!is_known && (!image->is_new || image->has_unmarked)) {
			is_alone = tasks_are_one();
			is_known = true;
		}
		image->is_quiet = image->is_new || is_alone;
		image->is_fresh = is_alone &&
				  (image->is_new || is_before_main());
		say_not_quiet(image);
		if (image->is_quiet)
			entries_split(image);
		image->is_new = false;
	}
}

/* Writes the wanted state into the code of all images. */
static int settle(void)
{
	int result = 0;

	unsettled = false;
	for (unsigned i = 0; i < image_count; i++) {
		unsettled |= images[i].is_waiting;
		search_once(&images[i]);
	}
	if (is_on)
		find_quiet();
	for (unsigned i = 0; i < image_count; i++)
		thunks_direct(&images[i]);
	for (enum switch_step step = 0; step < STEPS; step++) {
		bool changed = false;
		int r = change_all(step, &changed);

		if (result == 0)
			result = r;
		/* After this, no thread executes the old code. */
		if (changed)
			sys_sync_cores();
	}
	leave_images();
	for (unsigned i = 0; i < image_count && !unsettled; i++)
		changes_clear(&images[i].changes);
	if (!unmarked_is_waiting()) {
		int r = libcalls_settle(is_on);

		unsettled |= r == -EBUSY;
		result = result == 0 && r != -EBUSY ? r : result;
	}
	return result;
}

static void change_everything(void)
{
	for (unsigned i = 0; i < image_count; i++)
		changes_add_all(&images[i].changes, images[i].count);
}

/* --- images --- */

struct source_image *sources_image(uintptr_t address)
{
	for (unsigned i = 0; i < image_count; i++)
		if (address >= images[i].start && address < images[i].end)
			return &images[i];
	return NULL;
}

bool sources_next_mark(uintptr_t start, uint32_t *at, struct mark_bytes *bytes)
{
	const struct source_image *image = sources_image(start);
	const struct source_mark *mark;
	bool is_exit;

	if (!image || *at >= image->count)
		return false;
	mark = &image->marks[(*at)++];
	is_exit = mark->source == SHIM_SOURCE_XRAY && mark->event == PLAN_LEAVE;
	bytes->start = mark_address(image, mark);
	bytes->end = bytes->start + (mark->length ?
					     mark->length :
					     source_of(mark->source)->size);
	bytes->may_leave = mark->may_leave;
	/* The first byte of an entry that no compiler has marked does not change again. */
	bytes->met = is_exit ? 0 : mark->may_leave ? bytes->start : bytes->end;
	return true;
}

static void remove_image(uintptr_t start, uintptr_t end)
{
	for (unsigned i = 0; i < image_count;) {
		if (images[i].start < end && images[i].end > start) {
			thunks_drop(&images[i]);
			marks_drop(&images[i]);
			images[i] = images[--image_count];
		} else {
			i++;
		}
	}
}

static void add_image(struct image_entry *entry,
		      const struct image_facts *facts, bool may_go)
{
	if (!entry || image_is_ours(entry->start))
		return;
	remove_image(entry->start, entry->end);
	if (image_count == IMAGES_MAX)
		return;
	images[image_count++] = (struct source_image){
		.start = entry->start,
		.end = entry->end,
		.bias = facts->bias,
		.may_go = may_go,
		.is_waiting = image_scan_is_early(),
		.is_new = state_get() == STATE_RUNNING &&
			  !(image_scan_is_early() && image_is_unseen()),
		.is_confirmed = true,
	};
	unsettled = true;
}

/* An early scan may have interrupted a thread between two no-ops, or in instructions that
 * are to be moved. */
static void end_waiting(void)
{
	for (unsigned i = 0; i < image_count && !image_scan_is_early(); i++)
		images[i].is_waiting = false;
}

static void settle_images(void)
{
	if (unsettled && !image_is_closing()) {
		end_waiting();
		settle();
		NOTIFY(call_sites_switched);
	}
}

static void begin_fork(void)
{
	for (unsigned i = 0; i < image_count; i++)
		images[i].is_confirmed = false;
}

static void confirm(struct image_entry *entry)
{
	struct source_image *image = sources_image(entry->start);

	if (image)
		image->is_confirmed = true;
}

/* Another thread of the parent may have been changing marks. */
static void read_again(struct source_image *image)
{
	for (uint32_t i = 0; i < image->count; i++)
		image->marks[i].is_prepared = image->marks[i].is_on;
	if (switch_read(image) < 0)
		marks_drop(image);
}

static void finish_fork(bool is_complete)
{
	for (unsigned i = 0; i < image_count;) {
		if (is_complete && !images[i].is_confirmed) {
			remove_image(images[i].start, images[i].end);
			continue;
		}
		/* While nothing is recorded, their code is changed once. */
		if (is_on || images[i].on > 0 || images[i].changes.end > 0)
			read_again(&images[i]);
		i++;
	}
	change_everything();
	settle();
}

SUBSCRIBE(image_came, add_image);
SUBSCRIBE(image_went, remove_image);
SUBSCRIBE(images_scanned, settle_images);
SUBSCRIBE(images_fork, begin_fork);
SUBSCRIBE(image_forked_as_well, confirm);
SUBSCRIBE(images_forked, finish_fork);

/* --- code that others change --- */

/* Whether a thread may be in a call of a mark, or between two instructions of one. */
static bool release(struct source_image *image)
{
	bool has_run = false, changed = false;

	for (uint32_t i = 0; i < image->count && !has_run; i++)
		has_run = image->marks[i].is_prepared;
	image->is_released = true;
	changes_add_all(&image->changes, image->count);
	switch_marks(image, STEP_RELEASE, false, &changed);
	if (!changed)
		return false;
	sys_sync_cores();
	if (is_on)
		log_image(image,
			  "the program, or another tool, changes its code: "
			  "calls of functions with XRay sleds are not "
			  "recorded any more");
	return has_run;
}

static int release_range(void *argument)
{
	const uintptr_t *range = argument;
	bool has_run = false;

	for (unsigned i = 0; i < image_count; i++)
		if (images[i].start < range[1] && images[i].end > range[0] &&
		    !images[i].is_released)
			has_run |= release(&images[i]);
	return has_run;
}

void sources_release(uintptr_t start, uintptr_t end)
{
	uintptr_t range[2] = { start, end };

	if (start < __atomic_load_n(&last_shared, __ATOMIC_RELAXED) &&
	    end > __atomic_load_n(&first_shared, __ATOMIC_RELAXED) &&
	    state_call_locked(release_range, range) > 0)
		sys_sleep_ms(RELEASE_MS);
}

bool sources_are_on(void)
{
	return __atomic_load_n(&is_on, __ATOMIC_ACQUIRE);
}

bool sources_want_each(void)
{
	return sources_are_on() && (config.patch[0] || config.libcalls[0] ||
				    hook_table_has_mcount());
}

static void change_libcalls(void)
{
	libcalls_restart();
	settle();
	NOTIFY(call_sites_switched);
}

SUBSCRIBE(libcalls_changed, change_libcalls);

static int search_objects(void *argument)
{
	const struct image_objects *added = argument;
	bool may_have = false;

	for (uint32_t i = 0; i < added->count && !may_have; i++)
		may_have = marks_may_be_in(added->objects[i].start,
					   added->objects[i].end);
	return may_have;
}

bool sources_may_have_marks(const struct image_objects *added)
{
	return state_call_locked(search_objects, (void *)added) != 0;
}

static int settle_plain(void *unused)
{
	(void)unused;
	image_work_begins();
	unmarked_begin();
	libcalls_begin();
	settle();
	image_work_ends();
	return 0;
}

void sources_begin_plain(void)
{
	if (!unmarked_is_waiting() && !libcalls_are_waiting())
		return;
	code_start();
	state_call_locked(settle_plain, NULL);
}

/* --- what dispatch asks --- */

static void route(const struct plan_route *route)
{
	ASSERT_LOCKED();
	image_work_begins();
	/* Marks that are on before their hooks are called lose nothing that was asked
	 * for; hooks that are called before all marks are on see leaves of open calls. */
	route_set(route);
	for (unsigned i = 0; i < image_count; i++)
		thunks_route(&images[i]);
	libcalls_route(route);
	if (route->is_on != is_on) {
		__atomic_store_n(&is_on, route->is_on, __ATOMIC_RELEASE);
		change_everything();
		settle();
	}
	image_work_ends();
}

static void note_change(struct source_image *image,
			const struct source_mark *mark)
{
	changes_add(&image->changes, (uint32_t)(mark - image->marks),
		    image->count);
}

/* The mark whose call returns to @address; if that is 0, the only one of @function. */
static struct source_mark *find_mark(uintptr_t address, uintptr_t function,
				     struct source_image **image)
{
	struct source_mark *mark;

	*image = sources_image(address ? address : function);
	if (!*image)
		return NULL;
	if (address)
		return marks_find_return(*image, address);
	mark = marks_find_function(*image, function);
	return mark && source_of(mark->source)->has_thunks ? mark : NULL;
}

/* A function that is counted at its entry has no end to be switched off. */
static void throttle(struct source_mark *mark, const struct other_call *call)
{
	if (!call->on && !call->address && mark->is_counted &&
	    !mark->is_counted_whole)
		return;
	mark->is_throttled = !call->on;
	mark->is_counted = mark->is_counted_whole = 0;
}

static void change_call(struct other_call *call)
{
	struct source_image *image;
	struct source_mark *mark = find_mark(call->address, call->function,
					     &image);

	if (!mark)
		return;
	if (call->reason == OTHER_FILTER)
		mark->is_filtered = !call->on;
	else
		throttle(mark, call);
	note_change(image, mark);
	call->result = 0;
}

static void count_call(struct shim_counted_call *call, int *result)
{
	struct source_image *image;
	struct source_mark *mark = find_mark(call->address, call->function,
					     &image);

	if (!mark)
		return;
	*result = -ENOTSUP;
	if (mark->is_unusable ||
	    !source_of(mark->source)->set_counter(image, mark, call->counter))
		return;
	mark->is_throttled = mark->is_counted = 1;
	mark->is_counted_whole = call->address == 0;
	note_change(image, mark);
	*result = 0;
}

static void reset(enum other_reason reason)
{
	for (unsigned i = 0; i < image_count; i++) {
		struct source_image *image = &images[i];

		for (uint32_t j = 0; j < image->count; j++) {
			struct source_mark *mark = &image->marks[j];

			if (reason == OTHER_FILTER && mark->is_filtered)
				mark->is_filtered = 0;
			else if (reason == OTHER_THROTTLE && mark->is_throttled)
				mark->is_throttled = mark->is_counted =
					mark->is_counted_whole = 0;
			else
				continue;
			note_change(image, mark);
		}
	}
}

static void settle_calls(int *result)
{
	int r = settle();

	if (r < 0 && *result == 0)
		*result = r;
}

static void add_state(struct call_sites_state *state)
{
	for (unsigned i = 0; i < image_count; i++) {
		if (images[i].count == 0)
			continue;
		state->sites += images[i].count;
		state->off += images[i].count - images[i].on;
		state->images++;
		state->images_unwritable += images[i].is_unwritable;
	}
}

SUBSCRIBE(calls_routed, route);
SUBSCRIBE(other_call_switched, change_call);
SUBSCRIBE(other_call_counted, count_call);
SUBSCRIBE(other_calls_reset, reset);
SUBSCRIBE(other_calls_settled, settle_calls);
SUBSCRIBE(other_calls_added, add_state);

/* --- what inspect asks --- */

static void find_moved(struct moved_code *moved)
{
	struct source_image *image = sources_image(moved->function);
	struct source_mark *mark = image ? marks_find_function(
						   image, moved->function) :
					   NULL;

	ASSERT_LOCKED();
	moved->is_late = mark && mark->source == SHIM_SOURCE_MCOUNT &&
			 !mcount_is_entry(image, mark);
	if (mark && mark->source == SHIM_SOURCE_UNMARKED &&
	    thunk_of(image, mark))
		moved->code = thunk_of(image, mark) + PATCHED_MOVED;
}

SUBSCRIBE(moved_code_wanted, find_moved);

/* --- calls --- */

/* arch/.../sources.S calls it: below the frame are the registers with arguments or results.
 * @step: bytes from one of the vector registers to the next. */
__attribute__((visibility("hidden"))) void
sources_run(struct arch_frame *frame, const unsigned char *vectors,
	    size_t step);

static void read_entry(struct arch_entry *entry, const struct arch_frame *frame,
		       const unsigned char *vectors, size_t step)
{
	const uintptr_t *pushed = (const uintptr_t *)frame;

	for (int i = 0; i < 6; i++)
		entry->integers[i] = pushed[-2 - i];
	entry->stack = ARCH_FRAME_CFA(frame) + 2 * sizeof(uintptr_t);
	for (unsigned i = 0; i < 8; i++)
		__builtin_memcpy(entry->vectors[i], vectors + i * step, 16);
}

static void read_exit(struct arch_exit *exit, const struct arch_frame *frame,
		      const unsigned char *vectors, size_t step)
{
	const uintptr_t *pushed = (const uintptr_t *)frame;

	exit->integers[0] = pushed[-1];
	exit->integers[1] = pushed[-4];
	for (unsigned i = 0; i < 2; i++)
		__builtin_memcpy(exit->vectors[i], vectors + i * step, 16);
}

void sources_run(struct arch_frame *frame, const unsigned char *vectors,
		 size_t step)
{
	union {
		struct arch_entry entry;
		struct arch_exit exit;
	} values;
	struct plan_call call;

	ARCH_FRAME_SET_NEAR(frame,
			    frame->event == PLAN_TAILCALL ? NULL : &values);
	if (frame->event == PLAN_ENTER)
		read_entry(&values.entry, frame, vectors, step);
	else if (frame->event == PLAN_LEAVE)
		read_exit(&values.exit, frame, vectors, step);
	call.event = frame->event;
	call.function = frame->function;
	call.site = frame->site;
	call.frame = ARCH_FRAME_CFA(frame);
	call.return_address = frame->return_address;
	call.registers = frame;
	call.target = 0;
	plan_dispatch(&call);
}
