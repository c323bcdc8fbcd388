/*
 * Handles, and how events reach their callbacks.  Readers walk the list of
 * handles without a lock: a thread pins a handle while it runs its code, and a
 * handle is freed when no thread has pinned it.
 */
#include "runtime/events.h"

#include "arch.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/contract.h"
#include "runtime/hook.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <shim/builtin.h>
#include <shim/record.h>

#include <shim/banned.h>

/* The stack that a callback may use (row P-29). */
#define CALLBACK_STACK (384ul << 10)

struct events_counts events_counts;
struct events_sole events_sole;

static struct shim_profiler_handle handles[SHIM_PROFILERS_MAX];
struct shim_profiler_handle *events_newest;
static uint64_t serials;
static bool starts_builtins;

/* --- handles --- */

/* Whether the list is newest first and has only handles in use.  Falling serials also
 * exclude a cycle. */
static __attribute__((unused)) bool list_is_whole(void)
{
	uint64_t serial = UINT64_MAX;

	for (const struct shim_profiler_handle *handle = events_newest; handle;
	     handle = handle->next) {
		if (handle->status == HANDLE_NONE || handle->serial >= serial)
			return false;
		serial = handle->serial;
	}
	return true;
}

bool handle_is_valid(const struct shim_profiler_handle *handle)
{
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)handles;

	return offset < sizeof(handles) && offset % sizeof(*handles) == 0 &&
	       handle_get_status(handle) != HANDLE_NONE;
}

void events_start_builtins(bool begins)
{
	starts_builtins = begins;
}

struct creation {
	struct shim_profiler *profiler;
	struct shim_profiler_handle *handle;
};

static int create_handle(void *argument)
{
	struct creation *creation = argument;

	for (unsigned i = 0; i < SHIM_PROFILERS_MAX; i++) {
		struct shim_profiler_handle *handle = &handles[i];

		if (handle->status != HANDLE_NONE)
			continue;
		*handle = (struct shim_profiler_handle){
			.profiler = creation->profiler,
			.next = events_newest,
			.serial = ++serials,
			.number = i,
			.builtin = starts_builtins,
			.may_go = !starts_builtins && state_main_started(),
			.waits = !starts_builtins && thread_current &&
				 (thread_current->state & THREAD_INIT),
			.module = thread_current ? thread_current->module :
						   NULL,
			.mask = SHIM_MONITOR_ALL & ~SHIM_MONITOR_IMMUTABLE,
			.mapper_slot = -1,
			.filter_slot = -1,
		};
		__atomic_store_n(&handle->status, HANDLE_ACTIVE,
				 __ATOMIC_RELEASE);
		__atomic_store_n(&events_newest, handle, __ATOMIC_RELEASE);
		creation->handle = handle;
		SHIM_ASSERT(list_is_whole());
		return 0;
	}
	return -1;
}

struct shim_profiler_handle *
shim_profiler_create(struct shim_profiler *profiler)
{
	struct creation creation = { .profiler = profiler };
	enum shim_result r = contract_check(CONTRACT_INIT, NULL, false);

	if (r != SHIM_OK) {
		contract_refused(r, __func__, __builtin_return_address(0));
		return NULL;
	}
	if (starts_builtins) { /* with the lock */
		create_handle(&creation);
		return creation.handle;
	}
	state_call_locked(create_handle, &creation);
	if (creation.handle && !contract_is_setting_up() &&
	    !state_main_started())
		NOTIFY(profiler_came, creation.handle);
	return creation.handle;
}

void events_catch_up(struct shim_profiler_handle *handle)
{
	struct thread *self = thread_current;

	NOTIFY(profiler_catches_up, handle);
	if (!handle->knows_main && self && (self->state & THREAD_STARTED)) {
		handle->knows_main = true;
		RAISE_ONE(handle, thread_started, self->id);
	}
}

struct shim_profiler_handle *handle_create(struct shim_profiler *profiler)
{
	struct creation creation = { .profiler = profiler };

	state_call_locked(create_handle, &creation);
	if (creation.handle) {
		creation.handle->builtin = true;
		creation.handle->waits = false;
		creation.handle->module = NULL;
	}
	return creation.handle;
}

/*
 * Finds the sole handle after a callback has changed.  If another thread changes one
 * meanwhile, the count tells: then all handles are asked, until the next change.
 */
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	static void find_sole_##name(void) \
	{ \
		struct shim_profiler_handle *sole = NULL; \
\
		__atomic_store_n(&events_sole.name, NULL, __ATOMIC_SEQ_CST); \
		for (struct shim_profiler_handle *each = events_first(); each; \
		     each = events_next(each)) \
			if (each->builtin && \
			    __atomic_load_n(&each->name, __ATOMIC_SEQ_CST)) \
				sole = each; \
		if (__atomic_load_n(&events_counts.name, __ATOMIC_SEQ_CST) == \
		    1) \
			__atomic_store_n(&events_sole.name, sole, \
					 __ATOMIC_SEQ_CST); \
		if (__atomic_load_n(&events_counts.name, __ATOMIC_SEQ_CST) != \
		    1) \
			__atomic_store_n(&events_sole.name, NULL, \
					 __ATOMIC_SEQ_CST); \
	}
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	void shim_profiler_on_##name(struct shim_profiler_handle *handle, \
				     shim_##name##_callback callback) \
	{ \
		shim_##name##_callback before; \
\
		if (!handle_is_valid(handle) || \
		    handle_get_status(handle) != HANDLE_ACTIVE) { \
			contract_refused(SHIM_E_INVALIDARG, __func__, \
					 __builtin_return_address(0)); \
			return; \
		} \
		if (callback) \
			__atomic_add_fetch(&events_counts.name, 1, \
					   __ATOMIC_SEQ_CST); \
		before = __atomic_exchange_n(&handle->name, callback, \
					     __ATOMIC_ACQ_REL); \
		if (before) \
			__atomic_sub_fetch(&events_counts.name, 1, \
					   __ATOMIC_SEQ_CST); \
		find_sole_##name(); \
		if (event_flag_##name == SHIM_MONITOR_ENTERLEAVE) \
			NOTIFY(hooks_changed); \
	}
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT

enum shim_result
shim_profiler_set_cleanup_callback(struct shim_profiler_handle *handle,
				   shim_cleanup_callback cleanup)
{
	ENTRY_ASYNC_OF(handle);
	__atomic_store_n(&handle->cleanup, cleanup, __ATOMIC_RELEASE);
	return SHIM_OK;
}

enum shim_result shim_thread_data(struct shim_profiler_handle *handle,
				  void ***data)
{
	struct thread *self;

	ENTRY_ASYNC_OF(handle);
	if (!data)
		return SHIM_E_INVALIDARG;
	self = thread_get();
	if (!self)
		return SHIM_E_OUTOFMEMORY;
	*data = &self->data[handle->number];
	return SHIM_OK;
}

static void remove_callbacks(struct shim_profiler_handle *handle)
{
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	if (__atomic_exchange_n(&handle->name, NULL, __ATOMIC_ACQ_REL)) \
		__atomic_sub_fetch(&events_counts.name, 1, __ATOMIC_SEQ_CST); \
	find_sole_##name();
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
}

/* --- leaving --- */

static int unlink_handle(void *argument)
{
	struct shim_profiler_handle *handle = argument;

	for (struct shim_profiler_handle **place = &events_newest; *place;
	     place = &(*place)->next) {
		if (*place == handle) {
			__atomic_store_n(place, handle->next, __ATOMIC_RELEASE);
			break;
		}
	}
	SHIM_ASSERT(list_is_whole());
	NOTIFY(profiler_left, handle);
	return 0;
}

static uint8_t data_flags_of(uint32_t mask)
{
	bool arguments = mask & SHIM_ENABLE_FUNCTION_ARGS;
	bool result = mask & SHIM_ENABLE_FUNCTION_RETVAL;

	if (mask & SHIM_ENABLE_FRAME_INFO)
		return (arguments ? 0 : HANDLE_DATA_ENTER_FRAME) |
		       (result ? 0 : HANDLE_DATA_LEAVE_FRAME);
	return (arguments ? HANDLE_DATA_ARGUMENTS : 0) |
	       (result ? HANDLE_DATA_RESULT : 0);
}

void handle_set_data_flags(struct shim_profiler_handle *handle)
{
	const uint32_t mask = handle->mask;
	uint8_t data_flags = 0;

	if (handle->deferred && handle->fast[0])
		data_flags = HANDLE_DATA_ARGUMENTS;
	else if (handle->slow[0] || handle->slow[1] || handle->slow[2])
		data_flags = data_flags_of(mask);
	__atomic_store_n(&handle->data_flags, data_flags, __ATOMIC_SEQ_CST);
	/* If another thread detaches the handle meanwhile, it clears data_flags after
	 * this store, or this load sees the new status. */
	if (__atomic_load_n(&handle->status, __ATOMIC_SEQ_CST) != HANDLE_ACTIVE)
		__atomic_store_n(&handle->data_flags, 0, __ATOMIC_SEQ_CST);
}

bool handle_retire(struct shim_profiler_handle *handle)
{
	uint32_t active = HANDLE_ACTIVE;

	if (!__atomic_compare_exchange_n(&handle->status, &active,
					 HANDLE_DETACHING, false,
					 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&handle->data_flags, 0, __ATOMIC_SEQ_CST);
	state_call_locked(unlink_handle, handle);
	return true;
}

/* The pins of all tasks that share a record.  The record's own counter would be wrong:
 * several tasks would change it without atomic instructions (row P-17). */
static uint32_t shared_pins[SHIM_PROFILERS_MAX];

static uint32_t count_pins(const struct thread *thread, unsigned number)
{
	if (thread->state & THREAD_SHARED)
		return __atomic_load_n(&shared_pins[number], __ATOMIC_ACQUIRE);
	return __atomic_load_n(&thread->pins[number], __ATOMIC_ACQUIRE);
}

bool handle_wait(struct shim_profiler_handle *handle, uint32_t timeout_ms)
{
	bool is_out = thread_wait(count_pins, handle->number, timeout_ms);

	if (is_out)
		NOTIFY(hooks_awaited, timeout_ms, &is_out);
	return is_out;
}

/* Also cleans up a disabled profiler, which still owns resources. */
static void clean_up(struct shim_profiler_handle *handle)
{
	shim_cleanup_callback cleanup = __atomic_exchange_n(
		&handle->cleanup, NULL, __ATOMIC_ACQ_REL);
	struct guard guard;

	if (!cleanup)
		return;
	guard_enter_last(&guard, handle, "cleanup");
	guard_call(&guard, (void (*)(void))cleanup, (uintptr_t)handle->profiler,
		   0, 0, 0, 0);
}

/* The next handle with this number must begin without data. */
static bool clear_data(struct thread *thread, void *handle)
{
	thread->data[((const struct shim_profiler_handle *)handle)->number] =
		NULL;
	return true;
}

void handle_free(struct shim_profiler_handle *handle)
{
	remove_callbacks(handle);
	clean_up(handle);
	NOTIFY(profiler_gone, handle);
	thread_each(clear_data, handle);
	__atomic_store_n(&handle->status, HANDLE_NONE, __ATOMIC_RELEASE);
}

bool handle_is_current(const struct shim_profiler_handle *handle)
{
	const struct thread *self = thread_current;

	for (struct guard *g = self ? self->guard : NULL; g; g = g->outer)
		if (g->handle == handle)
			return true;
	return self && frame_get_handle(self) == handle;
}

enum shim_result shim_profiler_destroy(struct shim_profiler_handle *handle)
{
	ENTRY_PROGRAM_OF(handle);
	if (handle_is_current(handle))
		return contract_refused(SHIM_E_UNSUPPORTED_CALL_SEQUENCE,
					__func__, __builtin_return_address(0));
	if (!handle_retire(handle))
		return SHIM_E_PROFILER_DETACHING;
	while (!handle_wait(handle, 1000))
		;
	handle_free(handle);
	return SHIM_OK;
}

enum shim_result shim_profiler_quiesce(struct shim_profiler_handle *handle)
{
	ENTRY_PROGRAM_OF(handle);
	if (handle_is_current(handle))
		return contract_refused(SHIM_E_UNSUPPORTED_CALL_SEQUENCE,
					__func__, __builtin_return_address(0));
	while (!handle_wait(handle, 1000))
		;
	return SHIM_OK;
}

static int notify_modules_finished(void *unused)
{
	(void)unused;
	NOTIFY(modules_finished);
	return 0;
}

void events_finish(void)
{
	state_call_locked(notify_modules_finished, NULL);
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (!h->builtin)
			remove_callbacks(h);
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (!h->builtin)
			clean_up(h);
}

/* --- around a callback --- */

/* The bits that the end of a callback restores.  The callback may change other bits. */
#define STATE_OF_CALLBACKS \
	((uint32_t)(THREAD_CALLBACK | THREAD_MAY_BLOCK | THREAD_INIT | \
		    THREAD_SIGNAL))

static uint32_t state_in(uint32_t state, enum event_context context)
{
	if (context == EVENT_SIGNAL)
		return state | THREAD_SIGNAL;
	state = (state | THREAD_CALLBACK) & ~(uint32_t)THREAD_INIT;
	return context == EVENT_QUIET ? state & ~(uint32_t)THREAD_MAY_BLOCK :
					state | THREAD_MAY_BLOCK;
}

static bool is_callable(const struct shim_profiler_handle *handle)
{
	return handle_get_status(handle) == HANDLE_ACTIVE && !handle->broken &&
	       !handle->waits;
}

/* Saves no state and no errno, and catches no exception, because the record belongs to two
 * tasks. */
static bool enter_shared(struct guard *guard)
{
	uint32_t *pins = &shared_pins[guard->handle->number];

	__atomic_add_fetch(pins, 1, __ATOMIC_SEQ_CST);
	guard->is_shared = is_callable(guard->handle);
	if (!guard->is_shared)
		__atomic_sub_fetch(pins, 1, __ATOMIC_SEQ_CST);
	return guard->is_shared;
}

static void fill_guard(struct guard *guard, struct thread *self,
		       enum event_context context, const char *name)
{
	guard->kind = context;
	guard->context = 0;
	guard->name = name;
	guard->outer = self->guard;
	guard->state = self->state;
	guard->error = *self->error;
	guard->thread = self;
	guard->frame = self->frame;
	self->guard = guard;
	self->state = state_in(self->state, context);
}

bool guard_enter(struct guard *guard, struct shim_profiler_handle *handle,
		 enum event_context context, uint32_t flag, const char *name)
{
	struct thread *self;

	guard_nothing(guard, handle);
	if (handle->builtin)
		return true;
	if (flag != 0 && (handle->mask & flag) == 0)
		return false;
	self = thread_get();
	if (!self)
		return false;
	if (self->state & THREAD_SHARED)
		return enter_shared(guard);
	guard->pins = self->pins[handle->number];
	self->pins[handle->number] = guard->pins + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!is_callable(handle)) {
		self->pins[handle->number] = guard->pins;
		return false;
	}
	fill_guard(guard, self, context, name);
	return true;
}

void guard_enter_last(struct guard *guard, struct shim_profiler_handle *handle,
		      const char *name)
{
	struct thread *self = thread_get();

	*guard = (struct guard){ .handle = handle };
	if (!self || (self->state & THREAD_SHARED))
		return;
	guard->pins = self->pins[handle->number]++;
	fill_guard(guard, self, EVENT_THREAD, name);
}

void guard_leave(struct guard *guard)
{
	struct thread *self = guard->thread;

	if (guard->is_shared)
		__atomic_sub_fetch(&shared_pins[guard->handle->number], 1,
				   __ATOMIC_SEQ_CST);
	if (!self)
		return;
	self->state = (self->state & ~STATE_OF_CALLBACKS) |
		      (guard->state & STATE_OF_CALLBACKS);
	self->guard = guard->outer;
	*self->error = guard->error;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->pins[guard->handle->number] = guard->pins;
}

static void disable_profiler(struct shim_profiler_handle *handle,
			     const char *name, const char *how)
{
	__atomic_store_n(&handle->broken, true, __ATOMIC_RELEASE);
	log_line("a profiler's callback %s %s; shim has disabled the profiler",
		 name, how);
}

/* Whether the callback of @guard will not return if the thread continues at @sp.  A
 * callback on the callback stack is below every @sp on another stack. */
static bool is_below(const struct thread *self, const struct guard *guard,
		     uintptr_t sp)
{
	uintptr_t ours = (uintptr_t)self->callback_stack;

	return (uintptr_t)guard < sp ||
	       (ours && (uintptr_t)guard - ours < CALLBACK_STACK &&
		sp - ours >= CALLBACK_STACK);
}

static void leave_guards_below(uintptr_t sp, bool by_jump)
{
	struct thread *self = thread_current;

	if (!self)
		return;
	NOTIFY(stack_leaving, self, sp);
	while (self->guard && is_below(self, self->guard, sp)) {
		self->on_callback_stack = false;
		if (by_jump)
			disable_profiler(self->guard->handle, self->guard->name,
					 "was left by a jump");
		guard_leave(self->guard);
	}
	NOTIFY(stack_left, self, sp);
	if (self->dispatch_sp < sp)
		self->dispatching = 0;
}

void guard_threw(struct guard *guard)
{
	disable_profiler(guard->handle, guard->name, "threw an exception");
}

void guard_jumped(uintptr_t sp)
{
	leave_guards_below(sp, true);
}

void guard_unwound(uintptr_t sp)
{
	leave_guards_below(sp, false);
}

/* --- on which stack --- */

struct call {
	void (*callback)(void);
	uintptr_t arguments[5];
};

static int call_plainly(void *argument)
{
	const struct call *call = argument;
	const uintptr_t *a = call->arguments;

	((void (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		   uintptr_t))call->callback)(a[0], a[1], a[2], a[3], a[4]);
	return 0;
}

static int call_guarded(void *argument)
{
	const struct call *call = argument;
	const uintptr_t *a = call->arguments;

	return arch_call_guarded(call->callback, a[0], a[1], a[2], a[3], a[4]);
}

/*
 * Only a thread's own stack is known to extend to the end of its mapping.  A stack that the
 * program has made may share its mapping with other data.
 */
static __attribute__((noinline)) void find_stack_room(struct thread *self,
						      uintptr_t sp)
{
	uintptr_t low, high;

	if (sp - self->stack_low < self->stack_high - self->stack_low)
		return;
	if (shim_stack_find(sp, &low, &high) == SHIM_STACK_THREAD &&
	    stack_is_own(low, high)) {
		if (self->least_stack_low - low < high - low)
			low = self->least_stack_low;
		if (high - low > CALLBACK_STACK &&
		    !(self->state & THREAD_SHARED)) {
			self->callback_room_low = low + CALLBACK_STACK;
			self->callback_room_size = high -
						   self->callback_room_low;
		}
	}
	self->stack_low = low;
	self->stack_high = high;
}

bool events_has_room(struct thread *self)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);

	if (self->state & THREAD_SHARED)
		return false;
	if (self->on_callback_stack ||
	    sp - self->callback_room_low < self->callback_room_size)
		return true;
	find_stack_room(self, sp);
	return sp - self->callback_room_low < self->callback_room_size;
}

/* Whether the thread runs on the stack that it began with. */
static bool is_on_own_stack(void)
{
	const struct thread *self = thread_current;
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0), low;

	if (!self)
		return false;
	/* A stack that the program has made may share its mapping with other data. */
	low = self->stack_low > self->least_stack_low ? self->stack_low :
							self->least_stack_low;
	return low <= sp && sp < self->stack_high &&
	       stack_is_own(low, self->stack_high);
}

/* Whether the thread may be on its alternate signal stack: such a stack lies elsewhere, or the
 * program has asked for it by sigaltstack(3). */
static bool may_be_on_signal_stack(void)
{
	return !is_on_own_stack() || lookup_was_attached() ||
	       __atomic_load_n(&shim_signal_stack_changes, __ATOMIC_RELAXED) >
		       0;
}

/*
 * A handler of the program may run on the alternate signal stack.  After a switch to
 * another stack, the kernel regards the alternate stack as unused, and the frame of the
 * next signal would overwrite that of the handler.  So signals stay blocked until the
 * return.
 */
static int call_on(char *memory, int (*call)(void *), void *argument)
{
	bool in_use = false, is_blocked;
	uintptr_t low, high;
	uint64_t signals;
	int result;

	is_blocked = may_be_on_signal_stack() &&
		     sys_signal_stack(&low, &high, &in_use) == 0 && in_use &&
		     sys_block_signals(&signals) == 0;
	result = arch_call_on_stack(call, argument, memory + CALLBACK_STACK);
	if (is_blocked)
		sys_restore_signals(signals);
	return result;
}

/*
 * Tasks that share a record cannot share its callback stack, so each call claims a spare
 * stack.  If the program jumps out of the call, the spare stack stays claimed.
 */
#define SPARE_STACKS 16

static struct spare {
	uint32_t is_claimed;
	char *memory;
} spares[SPARE_STACKS];

static struct spare *claim_spare_stack(uintptr_t sp)
{
	struct spare *found = NULL;

	for (struct spare *s = spares; s < spares + SPARE_STACKS; s++)
		if (s->memory && sp - (uintptr_t)s->memory < CALLBACK_STACK)
			return NULL; /* already on a spare stack */
	for (struct spare *s = spares; !found && s < spares + SPARE_STACKS; s++)
		if (__atomic_exchange_n(&s->is_claimed, 1, __ATOMIC_ACQUIRE) ==
		    0)
			found = s;
	if (found && !found->memory)
		__atomic_store_n(&found->memory,
				 shim_memory_map(CALLBACK_STACK),
				 __ATOMIC_RELEASE);
	if (!found || found->memory)
		return found;
	__atomic_store_n(&found->is_claimed, 0, __ATOMIC_RELEASE);
	return NULL;
}

static int call_on_spare(int (*call)(void *), void *argument)
{
	struct spare *spare = claim_spare_stack(
		(uintptr_t)__builtin_frame_address(0));
	int result;

	if (!spare)
		return call(argument);
	result = call_on(spare->memory, call, argument);
	__atomic_store_n(&spare->is_claimed, 0, __ATOMIC_RELEASE);
	return result;
}

static bool is_on_memory(uintptr_t sp, const char *memory, uintptr_t *low)
{
	if (!memory || sp - 1 - (uintptr_t)memory >= CALLBACK_STACK)
		return false;
	*low = (uintptr_t)memory;
	return true;
}

/* A nested hook has another stack (dispatch/nested.h). */
static bool find_callback_stack(const struct thread *self, uintptr_t sp,
				uintptr_t *low)
{
	if (is_on_memory(sp, self->callback_stack, low))
		return true;
	for (unsigned i = 0; i < HOOK_LEVELS; i++)
		if (is_on_memory(sp, self->outer_levels[i].callback_stack,
				 low) ||
		    is_on_memory(sp, self->own_levels[i].callback_stack, low))
			return true;
	return false;
}

bool shim_callback_stack(uintptr_t sp, uintptr_t *low, uintptr_t *high)
{
	const struct thread *self = thread_current;
	bool found = self && find_callback_stack(self, sp, low);

	for (struct spare *s = spares; !found && s < spares + SPARE_STACKS; s++)
		found = is_on_memory(sp, s->memory, low);
	if (found)
		*high = *low + CALLBACK_STACK;
	return found;
}

int events_call_on(char **memory, int (*call)(void *), void *argument)
{
	if (!*memory)
		*memory = shim_memory_map(CALLBACK_STACK);
	return *memory ? call_on(*memory, call, argument) : call(argument);
}

int events_call_apart(struct thread *self, int (*call)(void *), void *argument)
{
	int result;

	if (self && (self->state & THREAD_SHARED))
		return call_on_spare(call, argument);
	if (!self || self->on_callback_stack)
		return call(argument);
	self->on_callback_stack = true;
	result = events_call_on(&self->callback_stack, call, argument);
	self->on_callback_stack = false;
	return result;
}

struct run {
	int (*call)(void *argument);
	void *argument;
	int result;
};

static void run_call(struct run *run)
{
	run->result = run->call(run->argument);
}

static int run_guarded(void *run)
{
	return arch_call_guarded((void (*)(void))run_call, (uintptr_t)run, 0, 0,
				 0, 0);
}

/* Disables the profiler whose code has thrown an exception, if it is known. */
static int run_threw(const char *name)
{
	struct thread *self = thread_current;

	if (self && self->guard)
		disable_profiler(self->guard->handle, name,
				 "threw an exception");
	else
		log_line("a profiler's callback %s threw an exception", name);
	return (int)SHIM_E_UNEXPECTED;
}

int events_run(const char *name, int (*call)(void *), void *argument)
{
	struct run run = { .call = call, .argument = argument };

	return run_guarded(&run) ? run_threw(name) : run.result;
}

int events_run_apart(struct thread *self, const char *name, int (*call)(void *),
		     void *argument)
{
	struct run run = { .call = call, .argument = argument };

	return events_call_apart(self, run_guarded, &run) ? run_threw(name) :
							    run.result;
}

void events_thread_threw(const struct module *module)
{
	bool any = false;

	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		if (!module || h->module != module)
			continue;
		disable_profiler(h, "of a thread", "threw an exception");
		any = true;
	}
	if (!any)
		log_line("%s", "a profiler's thread threw an exception");
}

static bool call_with_room(struct thread *self, const struct call *call)
{
	bool threw;

	if (events_has_room(self))
		return call_guarded((void *)call);
	self->on_callback_stack = true;
	threw = events_call_on(&self->callback_stack, call_guarded,
			       (void *)call);
	self->on_callback_stack = false;
	return threw;
}

void guard_run(struct guard *guard, void (*callback)(void), uintptr_t a)
{
	struct call call = { callback, { a } };

	if (!guard->thread && guard->is_shared)
		call_on_spare(call_plainly, &call);
	else if (!guard->thread)
		call_plainly(&call);
	else if (call_with_room(guard->thread, &call))
		guard_threw(guard);
}

void guard_call(struct guard *guard, void (*callback)(void), uintptr_t a,
		uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
{
	struct call call = { callback, { a, b, c, d, e } };

	if (!guard->thread) {
		if (callback && guard->is_shared)
			call_on_spare(call_plainly, &call);
		else if (callback)
			call_plainly(&call);
		guard_leave(guard);
		return;
	}
	if (callback && call_with_room(guard->thread, &call))
		guard_threw(guard);
	guard_leave(guard);
}
