/*
 * Walks the calling thread's stack (<shim/stack.h>).  The walk runs on shim's stack for
 * callbacks, so it needs little of the program's stack.
 */
#define _GNU_SOURCE
#include "arch.h"
#include "dispatch/call_sites.h"
#include "image/image.h"
#include "inspect/info.h"
#include "os/sys.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/output.h"
#include "sampling/snapshot.h"

#include <shim/hooks.h>

#include <shim/banned.h>

/* Begins the walk at a ucontext_t of the caller.  shim copies the context, because its
 * address may be invalid. */
static bool begin_at_copy(struct unwind *walk, struct thread *self,
			  const void *context)
{
	ucontext_t copy;

	if (sys_peek(context, &copy, CONTEXT_SIZE_MIN) < 0)
		return false;
	unwind_from_context(walk, &copy, self);
	return walk->known != 0;
}

bool snapshot_begin(struct unwind *walk, struct thread *self,
		    const void *context)
{
	if (self && self->sample_context &&
	    (!context || context == self->sample_context)) {
		unwind_from_context(walk, self->sample_context, self);
		return walk->known != 0;
	}
	if (context)
		return begin_at_copy(walk, self, context);
	*walk = (struct unwind){ .is_exact = true, .may_guess = true };
	walk->known = ARCH_GET_OWN_REGISTERS(walk->registers);
	if (walk->known == 0)
		return false;
	unwind_begin(walk, self);
	/* Skips frames of shim. */
	while (image_is_ours(walk->registers[WALK_IP]))
		if (!unwind_step(walk))
			return false;
	return true;
}

bool snapshot_callers(const struct unwind *walk, shim_function *functions,
		      uint32_t room, uint32_t *count)
{
	struct shim_open_calls calls = {
		.sp = walk->registers[WALK_SP],
		.function = walk->function,
		.room = room,
		.functions = functions,
	};

	RAISE(open_calls_requested, &calls);
	*count = calls.count;
	return calls.is_whole;
}

/* --- addresses --- */

enum wanted { ADDRESSES, PARTS, FUNCTIONS };

/* A frame before the walk goes to its caller. */
struct frame {
	uintptr_t address, sp;
	bool is_exact;
};

struct listing {
	struct unwind walk;
	struct thread *self;
	const void *context;
	enum wanted wanted;
	uint32_t count, total;
	uintptr_t *addresses;
	uintptr_t end; /* of shim_stack_calls */
};

/* Adds the open calls that profilers track.  Calls beyond the room are only counted. */
static bool add_callers(struct listing *listing)
{
	shim_function beyond[32];
	bool has_room = listing->total < listing->count;
	uint32_t count;
	bool is_whole = snapshot_callers(
		&listing->walk,
		has_room ? listing->addresses + listing->total : beyond,
		has_room ? listing->count - listing->total : 32, &count);

	listing->total += count;
	return is_whole;
}

static int list_frames(void *argument)
{
	struct listing *listing = argument;
	struct unwind *walk = &listing->walk;
	bool goes_on = true;

	while (goes_on && listing->total < SHIM_STACK_DEPTH_MAX) {
		uintptr_t address = walk->registers[WALK_IP];

		goes_on = unwind_step(walk);
		if (listing->wanted != ADDRESSES)
			address = walk->function;
		if (listing->total < listing->count)
			listing->addresses[listing->total] =
				listing->wanted == FUNCTIONS && address != 0 ?
					info_whole(address) :
					address;
		listing->total++;
	}
	if (listing->wanted != ADDRESSES && !goes_on && !walk->is_last &&
	    add_callers(listing))
		return SHIM_OK;
	return walk->is_last ? SHIM_OK : SHIM_S_FALSE;
}

/* Whether the frame that the walk has left holds the stack address @end.  A handler's
 * caller may be on another stack, and so may the caller of a frame without tables. */
static bool has_ended(const struct unwind *walk, const struct frame *frame,
		      uintptr_t end)
{
	return !walk->is_exact && end >= frame->sp &&
	       end < walk->registers[WALK_SP];
}

static int list_calls_to_end(void *argument)
{
	struct listing *listing = argument;
	struct unwind *walk = &listing->walk;
	bool goes_on = true;

	while (goes_on && listing->total < SHIM_STACK_DEPTH_MAX) {
		struct frame frame = { walk->registers[WALK_IP],
				       walk->registers[WALK_SP],
				       walk->is_exact };

		goes_on = unwind_step(walk);
		if (listing->total < listing->count)
			listing->addresses[listing->total] =
				(frame.address - !frame.is_exact) |
				(goes_on && walk->is_guess ? SHIM_STACK_GUESS :
							     0);
		listing->total++;
		if (goes_on && has_ended(walk, &frame, listing->end))
			return SHIM_OK;
	}
	if (listing->end == 0 && !goes_on && !walk->is_last &&
	    add_callers(listing))
		return SHIM_OK;
	return walk->is_last ? SHIM_OK : SHIM_S_FALSE;
}

static enum shim_result list_stack(const void *context, enum wanted wanted,
				   uint32_t count, uint32_t *total,
				   uintptr_t *addresses)
{
	struct listing job = { .self = thread_current,
			       .wanted = wanted,
			       .count = count,
			       .addresses = addresses };
	int result;

	if (!output_is_valid(count, addresses))
		return SHIM_E_INVALIDARG;
	if (!snapshot_begin(&job.walk, job.self, context))
		return context ? SHIM_E_INVALIDARG : SHIM_E_NOTIMPL;
	result = events_call_apart(job.self, list_frames, &job);
	if (total)
		*total = job.total;
	return (enum shim_result)result;
}

enum shim_result shim_stack_addresses(const void *context, uint32_t count,
				      uint32_t *total, uintptr_t *addresses)
{
	ENTRY_ASYNC();
	return list_stack(context, ADDRESSES, count, total, addresses);
}

enum shim_result shim_stack_calls(const void *context, uintptr_t end,
				  uint32_t count, uint32_t *total,
				  uintptr_t *addresses)
{
	struct listing job = { .self = thread_current,
			       .count = count,
			       .addresses = addresses,
			       .end = end };
	int result;

	ENTRY_ASYNC();
	if (!output_is_valid(count, addresses))
		return SHIM_E_INVALIDARG;
	if (!snapshot_begin(&job.walk, job.self, context))
		return context ? SHIM_E_INVALIDARG : SHIM_E_NOTIMPL;
	result = events_call_apart(job.self, list_calls_to_end, &job);
	if (total)
		*total = job.total;
	return (enum shim_result)result;
}

enum shim_result shim_stack_functions(const void *context, uint32_t count,
				      uint32_t *total, shim_function *functions)
{
	ENTRY_ASYNC();
	return list_stack(context, FUNCTIONS, count, total, functions);
}

enum shim_result shim_stack_parts(const void *context, uint32_t count,
				  uint32_t *total, shim_function *parts)
{
	ENTRY_ASYNC();
	return list_stack(context, PARTS, count, total, parts);
}

/* --- snapshots --- */

#define CALLBACK "of shim_stack_snapshot"

static bool may_snapshot(const struct thread *self)
{
	const struct shim_profiler_handle *handle = NULL;

	if (self && frame_answers(self))
		handle = frame_get_handle(self);
	else if (self && self->guard)
		handle = self->guard->handle;
	if (handle)
		return handle->mask & SHIM_ENABLE_STACK_SNAPSHOT;
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (h->mask & SHIM_ENABLE_STACK_SNAPSHOT)
			return true;
	return false;
}

struct snapshot {
	struct unwind walk;
	const struct snapshot_request *request; /* of another thread */
	shim_snapshot_callback callback;
	uint32_t flags;
	void *client_data;
	bool in_run; /* the previous frame was not instrumented */
};

static int is_hooked(void *function)
{
	return call_sites_has(*(const shim_function *)function);
}

/* Replaces *@function by the function to report: 0 for a run of frames that are not
 * instrumented.  False if the frame continues such a run, which was reported. */
static bool coalesce(struct snapshot *snapshot, shim_function *function)
{
	bool was_in_run = snapshot->in_run;

	if (!(snapshot->flags & SHIM_SNAPSHOT_COALESCE))
		return true;
	snapshot->in_run = *function == 0 ||
			   state_call_locked(is_hooked, function) != 1;
	if (!snapshot->in_run)
		return true;
	*function = 0;
	return !was_in_run;
}

static enum shim_result report_frame(struct snapshot *snapshot,
				     shim_function function, uint32_t known,
				     const uintptr_t *registers)
{
	bool wants = snapshot->flags & SHIM_SNAPSHOT_REGISTER_CONTEXT;
	struct shim_snapshot_context context = { .known = known };

	if (function != 0)
		function = info_whole(function);
	if (!coalesce(snapshot, &function))
		return SHIM_OK;
	for (unsigned i = 0; i < WALK_REGISTERS; i++)
		context.registers[i] = known >> i & 1 ? registers[i] : 0;
	return snapshot->callback(
		function, registers[WALK_IP], registers[WALK_SP],
		wants ? sizeof(context) : 0, wants ? &context : NULL,
		snapshot->client_data);
}

/* Reports the open calls above the frame at which the walk has stopped.  Their
 * registers are unknown. */
static int report_callers(struct snapshot *snapshot)
{
	shim_function functions[SNAPSHOT_CALLERS_MAX];
	uintptr_t registers[WALK_REGISTERS] = { 0 };
	uint32_t count;
	bool is_whole = snapshot_callers(&snapshot->walk, functions,
					 SNAPSHOT_CALLERS_MAX, &count);

	for (uint32_t i = 0; i < count; i++) {
		registers[WALK_IP] = functions[i];
		if (report_frame(snapshot, functions[i], 1u << WALK_IP,
				 registers) != SHIM_OK)
			return SHIM_E_STACKSNAPSHOT_ABORTED;
	}
	return is_whole ? SHIM_OK : SHIM_E_UNEXPECTED;
}

static int take_snapshot(void *argument)
{
	struct snapshot *snapshot = argument;
	struct unwind *walk = &snapshot->walk;
	uint32_t depth = 0;

	do {
		if (report_frame(snapshot, unwind_function(walk), walk->known,
				 walk->registers) != SHIM_OK)
			return SHIM_E_STACKSNAPSHOT_ABORTED;
	} while (++depth < SHIM_STACK_DEPTH_MAX && unwind_step(walk));
	return walk->is_last || depth == SHIM_STACK_DEPTH_MAX ?
		       SHIM_OK :
		       report_callers(snapshot);
}

static int report_request(void *argument)
{
	struct snapshot *snapshot = argument;
	const struct snapshot_request *request = snapshot->request;

	for (uint32_t i = 0; i < request->count; i++) {
		const struct snapshot_frame *frame = &request->frames[i];

		if (report_frame(snapshot, frame->function, frame->known,
				 frame->registers) != SHIM_OK)
			return SHIM_E_STACKSNAPSHOT_ABORTED;
	}
	if (request->count == 0)
		return SHIM_E_FAIL;
	return request->is_whole ? SHIM_OK : SHIM_E_UNEXPECTED;
}

static enum shim_result snapshot_other_thread(struct thread *self,
					      shim_thread id,
					      struct snapshot *snapshot)
{
	struct snapshot_request *request;
	enum shim_result result = snapshot_ask(self, id, &request);

	if (result != SHIM_OK)
		return result;
	snapshot->request = request;
	result = (enum shim_result)events_run_apart(self, CALLBACK,
						    report_request, snapshot);
	snapshot_give_back(request);
	return result;
}

static bool is_other(const struct thread *self, shim_thread thread)
{
	return thread != 0 && !(self && self->id == thread);
}

static bool is_code(uintptr_t address)
{
	bool found;

	image_pin();
	found = image_find(address) != NULL;
	image_unpin();
	return found;
}

enum shim_result shim_stack_snapshot(shim_thread thread,
				     shim_snapshot_callback callback,
				     uint32_t flags, void *client_data,
				     const void *context, uint32_t context_size)
{
	const uint32_t all = SHIM_SNAPSHOT_REGISTER_CONTEXT |
			     SHIM_SNAPSHOT_X86_OPTIMIZED |
			     SHIM_SNAPSHOT_COALESCE;
	struct thread *self = thread_current;
	struct snapshot job = { .callback = callback,
				.flags = flags,
				.client_data = client_data };

	ENTRY_ASYNC();
	if (state_get() != STATE_RUNNING)
		return SHIM_E_STACKSNAPSHOT_UNSAFE;
	if (!may_snapshot(self))
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if (!callback || (flags & ~all) ||
	    (context &&
	     (context_size < CONTEXT_SIZE_MIN || is_other(self, thread))))
		return SHIM_E_INVALIDARG;
	if (is_other(self, thread))
		return snapshot_other_thread(self, thread, &job);
	if (!self)
		return SHIM_OK;
	if (!snapshot_begin(&job.walk, self, context))
		return SHIM_E_FAIL;
	if (context && !is_code(job.walk.registers[WALK_IP]))
		return SHIM_E_STACKSNAPSHOT_UNMANAGED_CTX;
	return (enum shim_result)events_run_apart(self, CALLBACK, take_snapshot,
						  &job);
}
