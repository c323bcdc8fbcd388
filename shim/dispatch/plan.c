/*
 * Builds the plan: the hooks that run on enter, leave and tail call, and the code that
 * the hook table must point at for them.  shim builds a plan in new memory, publishes
 * it with one store, and frees the old plan when no thread runs it.
 */
#include "dispatch/plan.h"

#include "dispatch/call_sites.h"
#include "dispatch/hook_table.h"
#include "dispatch/leaves.h"
#include "dispatch/slow_hook.h"
#include "inspect/code.h"
#include "inspect/context.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <shim/banned.h>

/* In dispatch.S: these call the hooks of a chain. */
void plan_enter(shim_function function, const void *site);
void plan_leave(shim_function function, const void *site);
void plan_tailcall(shim_function function, const void *site);
void plan_unwinding(shim_function function, const void *site);
/* In dispatch.S: these put a frame on the stack.  The plan_inspecting_ stubs save all
 * registers in the frame. */
void plan_slow_enter(shim_function function, const void *site);
void plan_slow_leave(shim_function function, const void *site);
void plan_slow_tailcall(shim_function function, const void *site);
void plan_inspecting_enter(shim_function function, const void *site);
void plan_inspecting_leave(shim_function function, const void *site);
void plan_inspecting_tailcall(shim_function function, const void *site);
void plan_inspecting_unwinding(shim_function function, const void *site);
/* Saves only the registers that calls preserve: for calls from C code. */
void plan_deferred_enter(shim_function function, const void *site);

const struct plan *plan_current;

static struct plan *retired;
static bool is_paused, is_finished;
/* Copies of fields of the current plan.  Other threads read them, and the plan may be
 * freed at any time. */
static bool is_tracking, is_decoding, is_landing, is_watching;
/* A function of the program was unwound, so others may be. */
static bool has_landed;

/* --- making a plan --- */

/* Adds the handle's hooks of the newest generation that it has; false if it has no
 * hooks. */
static bool add_hooks(struct plan_entry *entry,
		      const struct shim_profiler_handle *handle)
{
	for (int i = 0; i < 3; i++) {
		if (handle->fast[i])
			entry->hooks[i] = (void *)handle->fast[i];
		if (i < 2 && handle->frame[i] && handle->fast[i])
			entry->hooks[i] = (void *)handle->frame[i];
	}
	entry->kind = handle->frame[0] || handle->frame[1] ? PLAN_FRAME :
							     PLAN_FAST;
	entry->has_deferred = handle->deferred && handle->fast[0];
	if (entry->hooks[0] || entry->hooks[1] || entry->hooks[2])
		return true;
	for (int i = 0; i < 3; i++) {
		if (handle->slow[i]) {
			entry->kind = PLAN_SLOW;
			entry->hooks[i] = (void *)handle->slow[i];
		} else if (handle->elt2[i]) {
			entry->kind = PLAN_ELT2;
			entry->hooks[i] = (void *)handle->elt2[i];
		} else if (handle->elt1[i]) {
			entry->kind = PLAN_ELT1;
			entry->hooks[i] = (void *)handle->elt1[i];
		}
	}
	return entry->hooks[0] || entry->hooks[1] || entry->hooks[2];
}

/* Without a tailcall hook, a tail call runs the leave hook. */
static void add_tail_calls(struct plan_entry *entry)
{
	entry->tail_calls = entry->hooks[2] != NULL;
	if (!entry->tail_calls)
		entry->hooks[2] = entry->hooks[1];
}

static bool wants_methods(const struct shim_profiler_handle *handle)
{
	return handle->filter &&
	       (handle->method_enter || handle->method_leave ||
		handle->method_tail_call || handle->method_exception_leave);
}

static bool is_wanted(const struct shim_profiler_handle *handle)
{
	return handle->status == HANDLE_ACTIVE && !handle->broken &&
	       !handle->waits && (handle->mask & SHIM_MONITOR_ENTERLEAVE) &&
	       (handle->builtin || !is_finished);
}

static void add_entry(struct plan *plan, const struct plan_entry *entry)
{
	plan->entries[plan->count++] = *entry;
	plan->decides |= entry->filter >= 0 || entry->mapper >= 0;
	plan->has_deferred |= entry->has_deferred;
	plan->slow |= entry->has_deferred ||
		      (entry->kind >= PLAN_SLOW && entry->kind <= PLAN_ELT1);
	plan->inspects |= entry->has_deferred ||
			  (plan->slow && (entry->handle->mask &
					  (SHIM_ENABLE_FUNCTION_ARGS |
					   SHIM_ENABLE_FUNCTION_RETVAL)));
	plan->inspects |= entry->kind == PLAN_METHOD && context_is_enabled() &&
			  (entry->handle->method_enter ||
			   entry->handle->method_leave);
	plan->tracks |= entry->kind == PLAN_METHOD &&
			(entry->handle->method_tail_call ||
			 entry->handle->method_exception_leave);
	plan->tail_calls |= entry->tail_calls && entry->hooks[2];
	plan->sorts_landed |= !entry->leaves_on_unwind &&
			      (entry->hooks[1] ||
			       (entry->kind == PLAN_METHOD &&
				entry->handle->method_leave));
}

/* Decides whether leaves are sorted.  A plan that tracks needs no sorting, because its
 * lists of frames (dispatch/frame_exits.h) tell how each frame ends. */
static void choose_sorting(struct plan *plan)
{
	plan->sorts_landed &= !plan->tracks;
	plan->sorts = !plan->tracks &&
		      (plan->tail_calls ||
		       (plan->sorts_landed &&
			__atomic_load_n(&has_landed, __ATOMIC_ACQUIRE)));
}

static bool has_methods(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->entries[i].kind == PLAN_METHOD)
			return true;
	return false;
}

/* Stores the chains after the entries. */
static void make_chains(struct plan *plan)
{
	void **next = (void **)&plan->entries[plan->room];

	for (int event = PLAN_ENTER; event <= PLAN_TAILCALL; event++) {
		plan->chains[event] = next;
		for (uint32_t i = 0; i < plan->count; i++)
			if (plan->entries[i].hooks[event])
				*next++ = plan->entries[i].hooks[event];
		*next++ = NULL;
	}
}

static void fill_plan(struct plan *plan)
{
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		struct plan_entry entry = {
			.handle = h,
			.leaves_on_unwind = h->leaves_on_unwind,
			.filter = h->filter_slot,
			.mapper = h->mapper_slot,
		};

		if (!is_wanted(h))
			continue;
		if (add_hooks(&entry, h)) {
			add_tail_calls(&entry);
			add_entry(plan, &entry);
		}
		if (wants_methods(h)) {
			struct plan_entry methods = {
				.kind = PLAN_METHOD,
				.handle = h,
				.tail_calls = h->method_tail_call != NULL,
				.filter = h->filter_slot,
				.mapper = -1,
			};

			add_entry(plan, &methods);
		}
	}
	choose_sorting(plan);
	if (plan->decides || plan->tracks)
		return;
	if (!plan->slow && !has_methods(plan))
		make_chains(plan);
	if (plan->count == 1 && plan->slow) {
		plan->single_entry = &plan->entries[0];
		for (int event = PLAN_ENTER; event <= PLAN_TAILCALL; event++)
			plan->single[event] = slow_hook_single(
				&plan->entries[0], event);
	}
}

/* --- the table --- */

/* Whether the hook table may point at the hooks.  shim must count calls of a module
 * that may be detached, so their hooks need the plan. */
static bool is_direct(const struct plan *plan)
{
	return plan->count == 1 && !plan->decides && !plan->tracks &&
	       plan->entries[0].kind <= PLAN_FRAME &&
	       !plan->entries[0].handle->may_go;
}

/*
 * For one fast profiler with a filter or a mapper: these functions look up whether the
 * profiler wants the function, and call its hook as the program would.
 */
static shim_site_hook chosen_hooks[3], undecided_hooks[3];

#define CHOOSING(name, event, flag) \
	static void name(shim_function function, const void *site) \
	{ \
		const struct filter_answer *answer = filter_cache_look( \
			function); \
\
		if (!answer || !(answer->single_flags & (flag))) { \
			undecided_hooks[event](function, site); \
			return; \
		} \
		chosen_hooks[event](answer->single_client, site); \
	}

CHOOSING(choose_enter, PLAN_ENTER, SHIM_CALL_INSTRUMENTATION_ENTER)
CHOOSING(choose_leave, PLAN_LEAVE, SHIM_CALL_INSTRUMENTATION_LEAVE)
CHOOSING(choose_tailcall, PLAN_TAILCALL, SHIM_CALL_INSTRUMENTATION_TAIL_CALL)

/* The same for marks, whose vector registers only the plan keeps: a call that is not known
 * to be wanted runs the plan. */
static shim_frame_hook chosen_frame_hooks[2];

#define CHOOSING_FRAME(name, event, flag) \
	static bool name(shim_function function, const void *site, \
			 uintptr_t sp) \
	{ \
		const struct filter_answer *answer = filter_cache_look( \
			function); \
\
		if (!answer || !(answer->single_flags & (flag))) \
			return false; \
		chosen_frame_hooks[event](answer->single_client, site, sp); \
		return true; \
	}

CHOOSING_FRAME(choose_frame_enter, PLAN_ENTER, SHIM_CALL_INSTRUMENTATION_ENTER)
CHOOSING_FRAME(choose_frame_leave, PLAN_LEAVE, SHIM_CALL_INSTRUMENTATION_LEAVE)

static bool is_choice(const struct plan *plan)
{
	const struct plan_entry *entry = &plan->entries[0];

	return plan->count == 1 && plan->decides && !plan->tracks &&
	       entry->kind <= PLAN_FRAME && !entry->handle->may_go &&
	       entry->handle->fast[0] && entry->handle->fast[1];
}

/* Whether the hook table leads to the plan, and not directly to a hook. */
static bool is_run(const struct plan *plan)
{
	return plan->count > 0 && !is_paused && !is_direct(plan) &&
	       !is_choice(plan);
}

/* The code that runs for each event; NULL: no code. */
struct hook_targets {
	void *enter, *leave, *tail_call, *unwinding;
};

static void point_at_targets(const struct plan *plan,
			     const struct hook_targets *hook_targets)
{
	const struct leaves_hooks hooks = { hook_targets->leave,
					    hook_targets->tail_call,
					    hook_targets->unwinding };

	hook_table_point(hook_targets->enter, plan->sorts ?
						      leaves_sort_to(&hooks) :
						      hook_targets->leave);
}

static bool has_raw(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->entries[i].leaves_on_unwind)
			return true;
	return false;
}

/* Points the table at stubs of dispatch.S, which run the hooks of the plan. */
static void point_at_stubs(const struct plan *plan,
			   struct hook_targets hook_targets)
{
	const struct plan_entry *entry = plan->single_entry;

	if (entry && !entry->has_deferred) {
		hook_targets.enter = entry->hooks[PLAN_ENTER] ?
					     hook_targets.enter :
					     NULL;
		hook_targets.leave = entry->hooks[PLAN_LEAVE] ?
					     hook_targets.leave :
					     NULL;
	}
	if (!plan->tail_calls)
		hook_targets.tail_call = hook_targets.leave;
	if (!has_raw(plan))
		hook_targets.unwinding = NULL;
	point_at_targets(plan, &hook_targets);
}

/* Points the table at the hooks of the only profiler. */
static void point_at_hooks(const struct plan *plan)
{
	const struct plan_entry *entry = &plan->entries[0];
	const struct shim_profiler_handle *handle = entry->handle;

	point_at_targets(plan, &(struct hook_targets){
				       (void *)handle->fast[0],
				       (void *)handle->fast[1],
				       entry->hooks[2],
				       entry->leaves_on_unwind ?
					       (void *)handle->fast[1] :
					       NULL,
			       });
}

static void point_at_choice(const struct plan *plan)
{
	const struct plan_entry *entry = &plan->entries[0];

	filter_cache_single(entry->filter, entry->mapper);
	for (int i = PLAN_ENTER; i <= PLAN_TAILCALL; i++)
		chosen_hooks[i] = (shim_site_hook)(void (*)(
			void))entry->handle->fast[i];
	undecided_hooks[PLAN_ENTER] = plan->has_deferred ? plan_deferred_enter :
							   plan_enter;
	undecided_hooks[PLAN_LEAVE] = plan_leave;
	undecided_hooks[PLAN_TAILCALL] = plan_tailcall;
	point_at_targets(
		plan,
		&(struct hook_targets){
			(void *)choose_enter,
			(void *)choose_leave,
			entry->tail_calls ? (void *)choose_tailcall :
					    (void *)choose_leave,
			entry->leaves_on_unwind ? (void *)choose_leave : NULL,
		});
}

static void point_at_plan(const struct plan *plan)
{
	if (is_choice(plan))
		point_at_choice(plan);
	else if (is_direct(plan))
		point_at_hooks(plan);
	else if (plan->inspects)
		point_at_stubs(plan, (struct hook_targets){
					     plan_inspecting_enter,
					     plan_inspecting_leave,
					     plan_inspecting_tailcall,
					     plan_inspecting_unwinding });
	else if (plan->slow)
		point_at_stubs(plan, (struct hook_targets){
					     plan_slow_enter, plan_slow_leave,
					     plan_slow_tailcall,
					     plan_inspecting_unwinding });
	else
		point_at_stubs(plan, (struct hook_targets){
					     plan_enter, plan_leave,
					     plan_tailcall, plan_unwinding });
}

/* Marks need hooks that take the frame, because shim has data on the stack when they run. */
static void route_marks(const struct plan *plan)
{
	struct plan_route route = { .is_on = plan->count > 0 && !is_paused };
	const struct plan_entry *entry = &plan->entries[0];

	bool has_frame_hooks = route.is_on && entry->kind == PLAN_FRAME &&
			       entry->handle->builtin && !entry->has_deferred &&
			       !entry->tail_calls && entry->handle->frame[0] &&
			       entry->handle->frame[1];

	if (has_frame_hooks && is_direct(plan)) {
		route.enter = entry->handle->frame[0];
		route.leave = entry->handle->frame[1];
		route.marks = entry->handle->marks;
	} else if (has_frame_hooks && is_choice(plan)) {
		chosen_frame_hooks[PLAN_ENTER] = entry->handle->frame[0];
		chosen_frame_hooks[PLAN_LEAVE] = entry->handle->frame[1];
		route.chooses_enter = choose_frame_enter;
		route.chooses_leave = choose_frame_leave;
	}
	NOTIFY(calls_routed, &route);
}

static void choose_restart_hooks(void)
{
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		for (int i = 0; i < 2; i++)
			if (h->fast[i] && h->restarted[i]) {
				h->fast[i] = h->restarted[i];
				h->marks = NULL;
			}
	}
}

/* Installs the restart hooks, because hooks run again after they were off.  Called
 * before the first hook runs, and again after all call sites are on: between the two, a
 * profiler may see an enter without its leave. */
static void install_restart_hooks(void)
{
	choose_restart_hooks();
	RAISE_TO(AUDIENCE_BUILTIN, calls_started);
}

struct recording {
	struct shim_profiler_handle *handle;
	bool is_on;
};

static int record_calls(void *argument)
{
	const struct recording *recording = argument;
	struct shim_profiler_handle *handle = recording->handle;

	if (handle->waits != recording->is_on)
		return 0;
	/* If others have hooks, the table does not restart them. */
	if (recording->is_on)
		install_restart_hooks();
	__atomic_store_n(&handle->waits, !recording->is_on, __ATOMIC_RELEASE);
	plan_update();
	return 0;
}

void shim_profiler_record_calls(struct shim_profiler_handle *handle, bool is_on)
{
	struct recording recording = { handle, is_on };

	state_call_locked(record_calls, &recording);
}

/*
 * Points the hook table for @plan.  Two switches turn hooks off.  The call sites in the
 * program's code make it cheap.  The hook table makes it complete: calls through a
 * pointer, calls of objects that are loaded later, and calls in code that shim cannot
 * write still reach the table, whose hooks are then empty.
 */
static void point_table(const struct plan *plan)
{
	static bool is_off;

	if (plan->count > 0 && !is_paused) {
		if (is_off)
			install_restart_hooks();
		point_at_plan(plan);
		route_marks(plan);
		if (is_off) {
			call_sites_switch_all(true);
			install_restart_hooks();
			NOTIFY(call_sites_switched);
		}
		is_off = false;
		return;
	}
	hook_table_point(NULL, NULL);
	route_marks(plan);
	if (!is_off) {
		call_sites_switch_all(false);
		NOTIFY(call_sites_switched);
	}
	is_off = true;
}

/* The answers of a filter change.  A function may be switched on while it has open
 * calls that no hook has seen. */
static void filters_changed(void)
{
	if (!plan_current)
		return;
	install_restart_hooks();
	point_table(plan_current);
}

/* --- old plans --- */

/* A small plan, such as the first, uses static memory. */
#define SPARE_ROOM 8
#define PLAN_SIZE(room) \
	(sizeof(struct plan) + (room) * sizeof(struct plan_entry) + \
	 3 * ((room) + 1) * sizeof(void *))

static _Alignas(struct plan) char spare_memory[PLAN_SIZE(SPARE_ROOM)];
static struct plan *const spare = (struct plan *)spare_memory;

static struct plan *allocate_plan(void)
{
	size_t count = 0, size;
	struct plan *plan;
	void *memory;

	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		count += 2;
	if (count <= SPARE_ROOM && spare->size == 0) {
		*spare = (struct plan){ .size = sizeof(spare_memory),
					.room = SPARE_ROOM };
		return spare;
	}
	size = PLAN_SIZE(count);
	if (sys_map(size, &memory) < 0)
		return NULL;
	plan = memory;
	plan->size = size;
	plan->room = (uint32_t)count;
	return plan;
}

static void retire(struct plan *plan)
{
	if (!plan || plan->size == 0)
		return;
	plan->next = retired;
	retired = plan;
}

/* Frees old plans, unless a thread is in a plan.  It cannot wait for such a thread,
 * which may wait for the lock that this thread holds. */
static void free_retired(void)
{
	const struct thread *self = thread_current;

	if (!retired || (self && (self->dispatching || self->frame)) ||
	    !plan_wait(0))
		return;
	while (retired) {
		struct plan *plan = retired;

		retired = plan->next;
		if (plan == spare)
			plan->size = 0;
		else
			sys_unmap(plan, plan->size);
	}
}

/* Without memory for a plan, only a single built-in profiler with fast hooks continues,
 * because it needs no plan. */
static struct plan empty_plan;

static void keep_single_builtin(void)
{
	struct plan *before = (struct plan *)plan_current;
	const struct shim_profiler_handle *left = NULL;
	unsigned count = 0;

	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		if (h->builtin && is_wanted(h) && h->fast[0]) {
			left = h;
			count++;
		}
	}
	log_line("%s", "no memory for a change of hooks: hooks of modules are "
		       "off");
	__atomic_store_n(&is_tracking, false, __ATOMIC_RELEASE);
	__atomic_store_n(&plan_current, &empty_plan, __ATOMIC_RELEASE);
	route_marks(&empty_plan);
	retire(before);
	if (count == 1 && !is_paused)
		hook_table_point((void *)left->fast[0], (void *)left->fast[1]);
	else
		hook_table_point(NULL, NULL);
}

/* Whether the plan has a module's profiler or a filter.  Built-in profilers search for
 * images themselves. */
static bool has_module(const struct plan *plan)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (!plan->entries[i].handle->builtin ||
		    plan->entries[i].filter >= 0)
			return true;
	return false;
}

void plan_update(void)
{
	struct plan *before = (struct plan *)plan_current, *plan;
	bool is_early, decided;

	ASSERT_LOCKED();
	free_retired();
	plan = allocate_plan();
	if (!plan) {
		keep_single_builtin();
		return;
	}
	/* A thread that was being created while an attach opened shim's library may lack
	 * the data of its hooks.  These look back first. */
	if (lookup_was_attached())
		choose_restart_hooks();
	fill_plan(plan);
	__atomic_store_n(&is_tracking, plan->tracks, __ATOMIC_RELEASE);
	__atomic_store_n(&is_decoding,
			 plan->tracks || plan->inspects || plan->tail_calls,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&is_watching, has_module(plan), __ATOMIC_RELEASE);
	__atomic_store_n(&is_landing, plan->sorts || plan->sorts_landed,
			 __ATOMIC_RELEASE);
	/* The table has many slots, but the plan is one pointer.  While all calls go
	 * through the plan, a profiler that is attached or detached sees the leave of
	 * each enter.  So the slots are pointed at a new plan before it is published,
	 * and at hooks after that. */
	decided = before && (before->decides || plan->decides);
	if (decided)
		install_restart_hooks();
	is_early = before && is_run(plan);
	if (is_early)
		point_table(plan);
	__atomic_store_n(&plan_current, plan, __ATOMIC_RELEASE);
	call_sites_unfilter_all();
	/* Another profiler may want the calls. */
	if (plan->count > 1 || plan->tracks)
		call_sites_unthrottle_all();
	if (!is_early)
		point_table(plan);
	if (decided)
		install_restart_hooks();
	retire(before);
	free_retired();
}

bool plan_is_only(const struct shim_profiler_handle *handle)
{
	const struct plan *plan = plan_current;

	ASSERT_LOCKED();
	return plan && plan->count == 1 && plan->entries[0].handle == handle &&
	       !plan->tracks;
}

bool plan_is_tracking(void)
{
	return __atomic_load_n(&is_tracking, __ATOMIC_ACQUIRE);
}

bool plan_watches_images(void)
{
	return __atomic_load_n(&is_watching, __ATOMIC_ACQUIRE);
}

bool plan_landed(void)
{
	if (!__atomic_load_n(&is_landing, __ATOMIC_ACQUIRE))
		return false;
	if (!__atomic_exchange_n(&has_landed, true, __ATOMIC_ACQ_REL))
		plan_changed();
	return true;
}

void plan_forked(bool paused)
{
	ASSERT_LOCKED();
	is_paused = paused;
	hook_table_forked();
	if (plan_current)
		point_table(plan_current);
}

static int update_if_running(void *unused)
{
	(void)unused;
	if (state_get() == STATE_RUNNING)
		plan_update();
	return 0;
}

void plan_changed(void)
{
	state_call_locked(update_if_running, NULL);
}

void plan_start_code(void)
{
	if (__atomic_load_n(&is_decoding, __ATOMIC_ACQUIRE))
		code_start();
}

void plan_finish(void)
{
	is_finished = true;
	plan_update();
}

void plan_pause(bool paused)
{
	ASSERT_LOCKED();
	is_paused = paused;
	plan_update();
}

static int release_slots(void *argument)
{
	const struct shim_profiler_handle *handle = argument;

	if (handle->filter_slot >= 0)
		filter_cache_release_slot(handle->filter_slot);
	if (handle->mapper_slot >= 0)
		filter_cache_release_slot(handle->mapper_slot);
	return 0;
}

/* If system calls are forbidden, there is no lock, and no other thread changes the
 * slots. */
void plan_forget(struct shim_profiler_handle *handle)
{
	if (state_call_locked(release_slots, handle) < 0)
		release_slots(handle);
}

static void remove_left_profiler(struct shim_profiler_handle *handle)
{
	(void)handle;
	plan_update();
}

SUBSCRIBE(filters_change, filters_changed);
SUBSCRIBE(hooks_changed, plan_changed);
SUBSCRIBE(profiler_left, remove_left_profiler);
SUBSCRIBE(profiler_gone, plan_forget);
SUBSCRIBE(modules_finished, plan_finish);
