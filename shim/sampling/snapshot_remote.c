/*
 * Stacks of other threads.  The caller puts a request into the thread's record and
 * sends the signal of samples; the thread walks its own stack and writes the frames
 * into the request.  The phase of the request tells which of the two may use it, so
 * that a late answer does no harm.
 */
#define _GNU_SOURCE
#include "sampling/snapshot.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/state.h"
#include "sampling/sample.h"

#include <errno.h>
#include <shim/record.h>

#include <shim/banned.h>

#define MONOTONIC    1
#define ANSWER_NS    500000000u /* the longest wait for an answer */
#define CHECK_MS     5u		/* the time between checks of the target */
#define REQUESTS_MAX 64
#define PHASE_BITS   3

enum phase {
	PHASE_REQUESTED = 1,
	PHASE_SHOWING, /* the target writes into it */
	PHASE_SHOWN,
	PHASE_LEFT, /* the caller has stopped waiting */
};

/* thread->ticket has the number of the request and its turn; CLOSED: the thread takes
 * no requests. */
#define REQUEST_BITS 8
#define CLOSED	     UINT64_MAX

char snapshot_value;

static struct snapshot_request *requests[REQUESTS_MAX];

/* --- requests --- */

static uint32_t state_of(uint64_t ticket, enum phase phase)
{
	return (uint32_t)(ticket >> REQUEST_BITS) << PHASE_BITS | phase;
}

static bool change_phase(struct snapshot_request *request, uint64_t ticket,
			 enum phase from, enum phase to)
{
	uint32_t before = state_of(ticket, from);

	return __atomic_compare_exchange_n(&request->state, &before,
					   state_of(ticket, to), false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool is_in(const struct snapshot_request *request, uint64_t ticket,
		  enum phase phase)
{
	return __atomic_load_n(&request->state, __ATOMIC_ACQUIRE) ==
	       state_of(ticket, phase);
}

/* Requests are never freed: the target may still write into a request whose caller has
 * stopped waiting. */
static struct snapshot_request *request_at(unsigned i)
{
	struct snapshot_request *request, *none = NULL;

	request = __atomic_load_n(&requests[i], __ATOMIC_ACQUIRE);
	if (request)
		return request;
	request = shim_memory_map(sizeof(*request));
	if (request &&
	    !__atomic_compare_exchange_n(&requests[i], &none, request, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		request = none;
	return request;
}

static struct snapshot_request *take_request(struct thread *self,
					     uint64_t *ticket)
{
	for (unsigned i = 0; i < REQUESTS_MAX; i++) {
		struct snapshot_request *request = request_at(i);
		uint32_t turn;

		if (!request)
			return NULL;
		if (__atomic_exchange_n(&request->is_used, true,
					__ATOMIC_ACQUIRE))
			continue;
		turn = (request->state >> PHASE_BITS) + 1;
		*ticket = (uint64_t)turn << REQUEST_BITS | (i + 1);
		request->owner = self;
		request->count = 0;
		request->is_whole = false;
		return request;
	}
	return NULL;
}

void snapshot_give_back(struct snapshot_request *request)
{
	__atomic_store_n(&request->is_used, false, __ATOMIC_RELEASE);
}

/* --- walking --- */

static void write_frames(struct unwind *walk, struct snapshot_request *request)
{
	bool goes_on = walk->known != 0;

	while (goes_on && request->count < SHIM_STACK_DEPTH_MAX) {
		struct snapshot_frame *frame =
			&request->frames[request->count++];

		frame->known = walk->known;
		for (unsigned i = 0; i < WALK_REGISTERS; i++)
			frame->registers[i] = walk->registers[i];
		goes_on = unwind_step(walk);
		frame->function = walk->function;
	}
	request->is_whole = walk->is_last ||
			    request->count == SHIM_STACK_DEPTH_MAX;
}

/* Adds the callers that the walk has not found. */
static void write_callers(const struct unwind *walk,
			  struct snapshot_request *request)
{
	shim_function functions[SNAPSHOT_CALLERS_MAX];
	uint32_t count, room = SHIM_STACK_DEPTH_MAX - request->count;

	request->is_whole = snapshot_callers(
		walk, functions,
		room < SNAPSHOT_CALLERS_MAX ? room : SNAPSHOT_CALLERS_MAX,
		&count);
	for (uint32_t i = 0; i < count; i++) {
		struct snapshot_frame *frame =
			&request->frames[request->count++];

		*frame = (struct snapshot_frame){ .function = functions[i],
						  .known = 1u << WALK_IP };
		frame->registers[WALK_IP] = functions[i];
	}
}

struct stack_answer {
	struct unwind walk;
	struct snapshot_request *request;
	struct thread *target;
};

static int write_stack(void *argument)
{
	struct stack_answer *answer = argument;

	write_frames(&answer->walk, answer->request);
	if (!answer->request->is_whole)
		write_callers(&answer->walk, answer->request);
	return 0;
}

void snapshot_answer(struct thread *self, const ucontext_t *context)
{
	struct stack_answer answer;
	uint64_t ticket;

	/* is_signalled is cleared first, so that a caller with a later request sends
	 * another signal. */
	__atomic_store_n(&self->is_signalled, false, __ATOMIC_SEQ_CST);
	ticket = __atomic_load_n(&self->ticket, __ATOMIC_SEQ_CST);
	if (ticket == 0 || ticket == CLOSED)
		return;
	answer.request = requests[(ticket & ((1u << REQUEST_BITS) - 1)) - 1];
	if (!change_phase(answer.request, ticket, PHASE_REQUESTED,
			  PHASE_SHOWING))
		return;
	unwind_from_context(&answer.walk, context, self);
	events_call_apart(self, write_stack, &answer);
	if (change_phase(answer.request, ticket, PHASE_SHOWING, PHASE_SHOWN))
		sys_wake(&answer.request->state);
	else
		snapshot_give_back(answer.request);
}

/* --- a thread that sleeps --- */

/*
 * The signal is blocked while sampling/syscall_restart.c continues a call of the
 * thread.  The stack above the interrupted context does not change until that returns.
 * The kernel reads it, and reports memory that is not mapped.
 */
static int walk_resting(void *argument)
{
	struct stack_answer *answer = argument;
	struct thread *target = answer->target;
	uint32_t rests = __atomic_load_n(&target->rests, __ATOMIC_ACQUIRE);
	ucontext_t copy;

	answer->request->count = 0;
	if (!(rests & 1) ||
	    sys_peek(target->rest_context, &copy, CONTEXT_SIZE_MIN) < 0)
		return false;
	unwind_from_context(&answer->walk, &copy, NULL);
	write_frames(&answer->walk, answer->request);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&target->rests, __ATOMIC_RELAXED) == rests;
}

static bool find_resting(struct thread *self, struct thread *target,
			 struct snapshot_request *request)
{
	struct stack_answer answer = { .request = request, .target = target };

	return (__atomic_load_n(&target->rests, __ATOMIC_RELAXED) & 1) &&
	       events_call_apart(self, walk_resting, &answer);
}

/* --- the caller's side --- */

static uint64_t now_ns(void)
{
	uint64_t time_ns = 0;

	sys_time_ns(MONOTONIC, &time_ns);
	return time_ns;
}

static bool has_id(const struct thread *target, shim_thread id)
{
	return __atomic_load_n(&target->id, __ATOMIC_ACQUIRE) == id &&
	       !(target->state & THREAD_ENDED) &&
	       sys_is_alive(sys_getpid(), (int)target->tid);
}

/* Waits until the target has no request, because it can have only one. */
static bool post_request(struct thread *target, uint64_t ticket,
			 uint64_t until_ns)
{
	uint64_t none = 0;

	while (!__atomic_compare_exchange_n(&target->ticket, &none, ticket,
					    false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED)) {
		if (none == CLOSED || now_ns() > until_ns)
			return false;
		none = 0;
		sys_sleep_ms(1);
	}
	return true;
}

/* Does nothing if a signal is already on its way. */
static int signal_target(struct thread *target)
{
	int r;

	if (__atomic_exchange_n(&target->is_signalled, true, __ATOMIC_SEQ_CST))
		return 0;
	r = sys_queue_signal((int)target->tid, sample_signal, &snapshot_value);
	if (r < 0)
		__atomic_store_n(&target->is_signalled, false,
				 __ATOMIC_RELEASE);
	return r;
}

/* Ends the wait.  If the target has begun to write, waits until it has finished, which
 * takes little time if the target runs. */
static enum shim_result stop_waiting(struct snapshot_request *request,
				     uint64_t ticket, enum shim_result result)
{
	if (change_phase(request, ticket, PHASE_REQUESTED, PHASE_LEFT)) {
		snapshot_give_back(request);
		return result;
	}
	for (unsigned i = 0; i < ANSWER_NS / 1000000; i += CHECK_MS) {
		if (is_in(request, ticket, PHASE_SHOWN))
			return SHIM_OK;
		sys_wait(&request->state, state_of(ticket, PHASE_SHOWING),
			 CHECK_MS);
	}
	/* If the exchange succeeds, the target gives the request back. */
	return change_phase(request, ticket, PHASE_SHOWING, PHASE_LEFT) ?
		       result :
		       SHIM_OK;
}

static enum shim_result wait_for_answer(struct thread *self,
					struct thread *target,
					struct snapshot_request *request,
					uint64_t ticket, uint64_t until_ns)
{
	const enum shim_result result = SHIM_E_STACKSNAPSHOT_UNSAFE;

	if (signal_target(target) < 0)
		return stop_waiting(request, ticket, result);
	while (!is_in(request, ticket, PHASE_SHOWN)) {
		sys_wait(&request->state, state_of(ticket, PHASE_REQUESTED),
			 CHECK_MS);
		if (!is_in(request, ticket, PHASE_REQUESTED))
			break;
		if (!has_id(target, request->target))
			return stop_waiting(
				request, ticket,
				SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD);
		/* The target went to sleep before the signal came. */
		if (__atomic_load_n(&target->rests, __ATOMIC_RELAXED) & 1) {
			if (!change_phase(request, ticket, PHASE_REQUESTED,
					  PHASE_SHOWN))
				break;
			if (find_resting(self, target, request))
				return SHIM_OK;
			change_phase(request, ticket, PHASE_SHOWN,
				     PHASE_REQUESTED);
			signal_target(target);
		}
		if (now_ns() > until_ns)
			break;
	}
	return stop_waiting(request, ticket, result);
}

static enum shim_result request_stack(struct thread *self,
				      struct thread *target,
				      struct snapshot_request *request,
				      uint64_t ticket)
{
	uint64_t until_ns = now_ns() + ANSWER_NS;
	enum shim_result result;

	if (!post_request(target, ticket, until_ns)) {
		snapshot_give_back(request);
		return SHIM_E_STACKSNAPSHOT_UNSAFE;
	}
	__atomic_store_n(&request->state, state_of(ticket, PHASE_REQUESTED),
			 __ATOMIC_RELEASE);
	result = wait_for_answer(self, target, request, ticket, until_ns);
	__atomic_store_n(&target->ticket, 0, __ATOMIC_RELEASE);
	return result;
}

static bool is_ready; /* the signal is installed */

static int install_signal(void *unused)
{
	int r = sample_signal_want();

	(void)unused;
	if (r == 0)
		__atomic_store_n(&is_ready, true, __ATOMIC_RELEASE);
	return r;
}

bool snapshot_get_ready(void)
{
	return __atomic_load_n(&is_ready, __ATOMIC_ACQUIRE) ||
	       state_call_locked(install_signal, NULL) == 0;
}

static bool may_ask(const struct thread *self, const struct thread *target)
{
	/* In a sample, all signals are blocked: two threads could wait for each
	 * other. */
	if (self && self->sample_context)
		return false;
	/* Tasks that share thread-local data share a record, and shim's own
	 * threads have all signals blocked. */
	return !(target->state & (THREAD_SHARED | THREAD_OWN)) &&
	       !state_is_held();
}

enum shim_result snapshot_ask(struct thread *self, shim_thread id,
			      struct snapshot_request **request)
{
	struct thread *target;
	enum shim_result result;
	uint64_t ticket = 0;
	bool has_been;

	target = thread_find(id, &has_been);
	if (!target || !has_id(target, id))
		return SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
	if (ARCH_HAS_RESTORER == 0)
		return SHIM_E_NOTIMPL;
	if (!may_ask(self, target) || !snapshot_get_ready())
		return SHIM_E_STACKSNAPSHOT_UNSAFE;
	*request = take_request(self, &ticket);
	if (!*request)
		return SHIM_E_OUTOFMEMORY;
	(*request)->target = id;
	if (find_resting(self, target, *request))
		return SHIM_OK;
	(*request)->count = 0;
	result = request_stack(self, target, *request, ticket);
	if (result != SHIM_OK)
		*request = NULL;
	return result;
}

/* --- exec and fork --- */

/* Waits until a signal that was sent has arrived, and forbids others.  A later signal
 * would end the new program. */
void snapshot_close(struct thread *self)
{
	uint64_t none = 0, until_ns = now_ns() + 2ull * ANSWER_NS;

	while (!__atomic_compare_exchange_n(&self->ticket, &none, CLOSED, false,
					    __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED) &&
	       none != CLOSED && now_ns() < until_ns) {
		none = 0;
		sys_yield();
	}
}

void snapshot_open(struct thread *self)
{
	uint64_t closed = CLOSED;

	__atomic_compare_exchange_n(&self->ticket, &closed, 0, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static bool drop_request(struct thread *thread, void *unused)
{
	(void)unused;
	thread->ticket = 0;
	thread->is_signalled = false;
	return true;
}

/* Frees all requests except those of the calling thread. */
void snapshot_forked(void)
{
	thread_each(drop_request, NULL);
	for (unsigned i = 0; i < REQUESTS_MAX && requests[i]; i++)
		if (requests[i]->owner != thread_current)
			snapshot_give_back(requests[i]);
}

static void install_signal_now(void)
{
	snapshot_get_ready();
}

SUBSCRIBE(snapshots_wanted, install_signal_now);
