/*
 * Walks of the calling thread's stack (<shim/stack.h>).  They run on the stack
 * for callbacks, so that it does not matter how much of the program's is left.
 */
#define _GNU_SOURCE
#include "arch.h"
#include "contract.h"
#include "events.h"
#include "image.h"
#include "sys.h"
#include "walk.h"

#include <shim/hooks.h>
#include <shim/stack.h>
#include <ucontext.h>

#include <shim/banned.h>

/* What a walk reads of a ucontext_t; the kernel's are shorter than libc's. */
#define CONTEXT_SIZE_MIN \
	(offsetof(ucontext_t, uc_mcontext) + sizeof(mcontext_t))

/* Our own code is not what anybody wants to see. */
static bool is_ours(uintptr_t address)
{
	static uintptr_t low, high;
	struct image_entry *image;

	if (high == 0) {
		image_pin();
		image = image_find((uintptr_t)&is_ours);
		if (image) {
			low = image->start;
			__atomic_store_n(&high, image->end, __ATOMIC_RELEASE);
		}
		image_unpin();
	}
	return address - low < high - low;
}

/* What somebody says is a ucontext_t. */
static bool begin_in(struct walk *walk, struct thread *self,
		     const void *context)
{
	ucontext_t copy;

	if (sys_peek(context, &copy, CONTEXT_SIZE_MIN) < 0)
		return false;
	walk_from_context(walk, &copy, self);
	return walk->known != 0;
}

/* The interrupted place, or who called us. */
static bool begin(struct walk *walk, struct thread *self, const void *context)
{
	if (self && self->sample_context &&
	    (!context || context == self->sample_context)) {
		walk_from_context(walk, self->sample_context, self);
		return walk->known != 0;
	}
	if (context)
		return begin_in(walk, self, context);
	*walk = (struct walk){ .is_exact = true };
	walk->known = ARCH_GET_OWN_REGISTERS(walk->registers);
	if (walk->known == 0)
		return false;
	walk_begin(walk, self);
	while (is_ours(walk->registers[WALK_IP]))
		if (!walk_step(walk))
			return false;
	return true;
}

/* --- addresses --- */

struct listing {
	struct walk walk;
	struct thread *self;
	const void *context;
	bool wants_functions;
	uint32_t count, total;
	uintptr_t *addresses;
};

static int list(void *argument)
{
	struct listing *listing = argument;
	struct walk *walk = &listing->walk;
	bool goes_on = true;

	while (goes_on && listing->total < SHIM_STACK_DEPTH_MAX) {
		uintptr_t address = walk->registers[WALK_IP];

		goes_on = walk_step(walk);
		if (listing->wants_functions)
			address = walk->function;
		if (listing->total < listing->count)
			listing->addresses[listing->total] = address;
		listing->total++;
	}
	return walk->is_last ? SHIM_OK : SHIM_S_FALSE;
}

static enum shim_result list_stack(const void *context, bool wants_functions,
				   uint32_t count, uint32_t *total,
				   uintptr_t *addresses)
{
	struct listing job = { .self = thread_current,
			       .wants_functions = wants_functions,
			       .count = addresses ? count : 0,
			       .addresses = addresses };
	int result;

	if (!begin(&job.walk, job.self, context))
		return context ? SHIM_E_INVALIDARG : SHIM_E_NOTIMPL;
	result = events_call_apart(job.self, list, &job);
	if (total)
		*total = job.total;
	return (enum shim_result)result;
}

enum shim_result shim_stack_addresses(const void *context, uint32_t count,
				      uint32_t *total, uintptr_t *addresses)
{
	ENTRY_ASYNC();
	return list_stack(context, false, count, total, addresses);
}

enum shim_result shim_stack_functions(const void *context, uint32_t count,
				      uint32_t *total, shim_function *functions)
{
	ENTRY_ASYNC();
	return list_stack(context, true, count, total, functions);
}

/* --- snapshots --- */

static bool may_snapshot(const struct thread *self)
{
	const struct shim_handle *handle = NULL;

	if (self && frame_answers(self))
		handle = frame_get_handle(self);
	else if (self && self->guard)
		handle = self->guard->handle;
	if (handle)
		return handle->mask & SHIM_ENABLE_STACK_SNAPSHOT;
	for (struct shim_handle *h = events_first(); h; h = events_next(h))
		if (h->mask & SHIM_ENABLE_STACK_SNAPSHOT)
			return true;
	return false;
}

struct snapshot {
	struct walk walk;
	shim_snapshot_callback callback;
	uint32_t flags;
	void *client_data;
};

static enum shim_result tell(const struct snapshot *snapshot)
{
	const struct walk *walk = &snapshot->walk;
	bool wants = snapshot->flags & SHIM_SNAPSHOT_REGISTER_CONTEXT;
	struct shim_snapshot_context context = { .known = walk->known };

	for (unsigned i = 0; i < WALK_REGISTERS; i++)
		context.registers[i] = walk->known >> i & 1 ?
					       walk->registers[i] :
					       0;
	return snapshot->callback(walk_function(walk),
				  walk->registers[WALK_IP],
				  walk->registers[WALK_SP],
				  wants ? sizeof(context) : 0,
				  wants ? &context : NULL,
				  snapshot->client_data);
}

static int take_snapshot(void *argument)
{
	struct snapshot *snapshot = argument;
	uint32_t depth = 0;

	do {
		if (tell(snapshot) != SHIM_OK)
			return SHIM_E_STACKSNAPSHOT_ABORTED;
	} while (++depth < SHIM_STACK_DEPTH_MAX &&
		 walk_step(&snapshot->walk));
	return snapshot->walk.is_last || depth == SHIM_STACK_DEPTH_MAX ?
		       SHIM_OK :
		       SHIM_E_UNEXPECTED;
}

static enum shim_result check_thread(const struct thread *self,
				     shim_thread thread)
{
	bool has_been;

	if (thread == 0 || (self && self->id == thread))
		return SHIM_OK;
	return thread_find(thread, &has_been) ?
		       SHIM_E_NOTIMPL :
		       SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
}

static bool is_code(uintptr_t address)
{
	bool found;

	image_pin();
	found = image_find(address) != NULL;
	image_unpin();
	return found;
}

enum shim_result shim_do_stack_snapshot(shim_thread thread,
					shim_snapshot_callback callback,
					uint32_t flags, void *client_data,
					const void *context,
					uint32_t context_size)
{
	const uint32_t all = SHIM_SNAPSHOT_REGISTER_CONTEXT |
			     SHIM_SNAPSHOT_X86_OPTIMIZED;
	struct thread *self = thread_current;
	struct snapshot job = { .callback = callback,
				.flags = flags,
				.client_data = client_data };
	enum shim_result result;

	ENTRY_ASYNC();
	if (state_get() != STATE_RUNNING)
		return SHIM_E_STACKSNAPSHOT_UNSAFE;
	if (!may_snapshot(self))
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	if (!callback || (flags & ~all) ||
	    (context && context_size < CONTEXT_SIZE_MIN))
		return SHIM_E_INVALIDARG;
	result = check_thread(self, thread);
	if (result != SHIM_OK || !self)
		return result;
	if (!begin(&job.walk, self, context))
		return SHIM_E_FAIL;
	if (context && !is_code(job.walk.registers[WALK_IP]))
		return SHIM_E_STACKSNAPSHOT_UNMANAGED_CTX;
	return (enum shim_result)events_call_apart(self, take_snapshot, &job);
}
