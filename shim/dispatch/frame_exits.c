/*
 * How each frame was left: return, tail call or unwinding.  A frame is
 * identified by its stack pointer.  Frames below the stack pointer of a later
 * event are gone: they were unwound, unless a leave hook said otherwise.
 */
#include "dispatch/frame_exits.h"

#include "inspect/code.h"
#include "os/assert.h"

#include <shim/cpu.h>
#include <shim/record.h>

#include <shim/banned.h>

/* Free frames of a list have @frame NOT_YET: a signal handler that comes before a new
 * frame is filled does not take it for one that is gone. */
#define NOT_YET UINTPTR_MAX

struct open_frame {
	shim_function function;
	const void *site;
	uintptr_t frame;
	const void *exception; /* the cause of its landing pad ... */
	bool is_unwinding;     /* ... which runs */
};

struct track {
	struct track *next;
	uintptr_t low, high; /* the stack; both 0: the list is free */
	bool is_signal;	     /* an alternate stack: empty between handlers */
	bool is_exact;	     /* the program has declared the stack */
	uint32_t count, room;
	uintptr_t landed; /* the stack pointer of the last landing pad */
	struct open_frame *frames;
	struct open_frame first[];
};

/* A list begins with one page: there may be many coroutines. */
#define PAGE	   4096
#define FIRST_ROOM ((PAGE - sizeof(struct track)) / sizeof(struct open_frame))

/* --- the lists --- */

/* Old arrays stay mapped: this handler may have interrupted code that fills one.
 * Together they are smaller than the new one. */
static bool make_room(struct track *track)
{
	uint32_t room = track->room * 4;
	struct open_frame *frames = shim_memory_map(room * sizeof(*frames));

	if (!frames)
		return false;
	for (uint32_t i = 0; i < room; i++) {
		if (i < track->count)
			frames[i] = track->frames[i];
		else
			frames[i].frame = NOT_YET;
	}
	track->frames = frames;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	track->room = room;
	return true;
}

static void empty(struct track *track)
{
	while (track->count > 0)
		track->frames[--track->count].frame = NOT_YET;
}

/* A stack pointer points at the last pushed word: it may be the upper end of the
 * stack, but never the lower end. */
static bool contains(const struct track *track, uintptr_t sp)
{
	return sp - 1 - track->low < track->high - track->low;
}

/* A coroutine's stack may lie inside a stack that the kernel knows: the smallest match
 * is right.  There are few lists. */
static struct track *find_list(struct thread *self, uintptr_t sp)
{
	struct track *best = self->track;

	if (best && contains(best, sp))
		return best;
	best = NULL;
	for (struct track *t = self->tracks; t; t = t->next)
		if (contains(t, sp) &&
		    (!best || t->high - t->low < best->high - best->low))
			best = t;
	if (best && best->is_exact)
		self->track = best;
	return best;
}

static struct track *make(struct thread *self)
{
	struct track *track = self->tracks;

	while (track && track->high != 0)
		track = track->next;
	if (track)
		return track;
	track = shim_memory_map(PAGE);
	if (!track)
		return NULL;
	track->frames = track->first;
	track->room = FIRST_ROOM;
	for (uint32_t i = 0; i < FIRST_ROOM; i++)
		track->first[i].frame = NOT_YET;
	track->next = self->tracks;
	self->tracks = track;
	return track;
}

static struct track *find_or_make(struct thread *self, uintptr_t sp)
{
	struct track *track = find_list(self, sp);
	uintptr_t low, high;
	enum shim_stack kind;

	if (track)
		return track;
	kind = shim_stack_find(sp - 1, &low, &high);
	track = make(self);
	if (!track)
		return NULL;
	track->is_signal = kind == SHIM_STACK_SIGNAL;
	track->is_exact = false;
	track->landed = 0;
	track->low = low;
	track->high = high;
	return track;
}

static struct open_frame *top(const struct track *track)
{
	return &track->frames[track->count - 1];
}

/* --- leaving frames --- */

static void pop(struct track *track)
{
	track->count--;
	track->frames[track->count].frame = NOT_YET;
}

static void leave_top(const struct plan *plan, struct thread *self,
		      struct track *track, const void *exception)
{
	struct open_frame gone = *top(track);
	struct plan_call call = {
		.event = PLAN_EXCEPTION,
		.function = gone.function,
		.site = gone.site,
		.frame = gone.frame,
		.target = (uintptr_t)exception,
	};

	pop(track);
	if (plan && plan->tracks)
		plan_run(plan, self, &call);
}

/* The unwinding continues in the next outer frame: functions inlined into each other
 * share one machine frame, and their leave hooks follow. */
static void unwind_top(const struct plan *plan, struct thread *self,
		       struct track *track)
{
	const void *exception = top(track)->exception;

	leave_top(plan, self, track, exception);
	if (track->count > 0) {
		top(track)->is_unwinding = true;
		top(track)->exception = exception;
	}
}

/* Frames below the new one are gone.  A frame at the same address is alive only if the
 * new function was inlined into it: then both have the same call site. */
static bool is_gone(const struct open_frame *open, const struct plan_call *call)
{
	if (open->frame != call->frame)
		return open->frame < call->frame;
	return open->site != call->site;
}

/*
 * A function inlined into the one that caught an exception shares its frame, so its
 * end is unseen until it is entered again in that frame.  (A recursive call would have
 * a frame of its own.)
 */
static bool is_entered_again(const struct track *track,
			     const struct plan_call *call)
{
	if (track->landed != call->frame)
		return false;
	for (uint32_t i = track->count; i-- > 0;) {
		const struct open_frame *open = &track->frames[i];

		if (open->frame != call->frame)
			return false;
		if (open->function == call->function)
			return true;
	}
	return false;
}

/* Repeats if a signal handler has replaced the array meanwhile. */
static void fill(const struct track *track, uint32_t at,
		 const struct plan_call *call)
{
	struct open_frame *frames;

	do {
		frames = __atomic_load_n(&track->frames, __ATOMIC_RELAXED);
		frames[at].function = call->function;
		frames[at].site = call->site;
		frames[at].exception = NULL;
		frames[at].is_unwinding = false;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		frames[at].frame = call->frame;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} while (frames != __atomic_load_n(&track->frames, __ATOMIC_RELAXED));
}

static void enter(const struct plan *plan, struct thread *self,
		  struct track *track, const struct plan_call *call)
{
	uint32_t at;

	while (track->count > 0 &&
	       (is_gone(top(track), call) || is_entered_again(track, call)))
		leave_top(plan, self, track, NULL);
	if (track->count + 1 >= track->room && !make_room(track)) {
		self->dropped++;
		return;
	}
	/* Outer frames have higher addresses. */
	SHIM_ASSERT(track->count == 0 || top(track)->frame >= call->frame);
	at = track->count++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	fill(track, at, call);
	plan_run(plan, self, call);
}

/*
 * The frame that @call leaves, counted from 1; 0: its enter was not seen.
 *
 * A leave hook that is jumped to at the function's end has the caller's stack pointer:
 * its frame is below, and the outermost one there.  A leave hook that is called inside
 * the function has the stack pointer of the enter hook or a lower one: its frame is
 * the innermost one at or above it.  A frame below takes precedence.
 */
static uint32_t find_left(const struct track *track,
			  const struct plan_call *call)
{
	uint32_t found = 0;

	for (uint32_t i = track->count; i > 0; i--) {
		const struct open_frame *open = &track->frames[i - 1];

		if (open->function != call->function || open->frame == NOT_YET)
			continue;
		if (open->frame >= call->frame)
			return found ? found : i;
		found = i;
	}
	return found;
}

static void leave(const struct plan *plan, struct thread *self,
		  struct track *track, const struct plan_call *given)
{
	uint32_t left = find_left(track, given);
	struct plan_call call = *given;
	enum code_leave how = CODE_RETURNS;

	if (left == 0)
		return;
	while (track->count > left)
		leave_top(plan, self, track, NULL);
	if (top(track)->is_unwinding) {
		unwind_top(plan, self, track);
		return;
	}
	/* A hook that is jumped to returns to the caller: the function returns. */
	if (top(track)->frame >= call.frame)
		how = code_leave_kind(&call, &call.target);
	if (how == CODE_UNWINDS) {
		leave_top(plan, self, track, NULL);
		return;
	}
	pop(track);
	if (how == CODE_TAIL_CALLS)
		call.event = PLAN_TAILCALL;
	plan_run(plan, self, &call);
}

void frame_exits_run(const struct plan *plan, struct thread *self,
		     const struct plan_call *call)
{
	struct track *track = find_or_make(self, call->frame);

	if (!track)
		self->dropped++;
	else if (call->event == PLAN_ENTER)
		enter(plan, self, track, call);
	else
		leave(plan, self, track, call);
}

/* --- exits without a hook --- */

/* As plan_dispatch: the plan is not freed until end_use. */
static const struct plan *begin_use(struct thread *self, uint32_t *before)
{
	*before = self->dispatching;
	if (*before == 0)
		self->dispatch_sp = SHIM_CALLER_SP;
	self->dispatching = *before + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&plan_current, __ATOMIC_ACQUIRE);
}

static void end_use(struct thread *self, uint32_t before)
{
	__atomic_store_n(&self->dispatching, before, __ATOMIC_RELEASE);
}

static void leave_below(struct thread *self, struct track *track, uintptr_t sp,
			const void *exception)
{
	uint32_t before;
	const struct plan *plan = begin_use(self, &before);

	while (track->count > 0 && top(track)->frame < sp)
		leave_top(plan, self, track, exception);
	end_use(self, before);
}

void frame_exits_unwound(uintptr_t sp, const void *exception, bool is_pad)
{
	struct thread *self = thread_current;
	struct track *track = self ? find_list(self, sp) : NULL;

	if (!track)
		return;
	leave_below(self, track, sp, exception);
	track->landed = sp;
	if (track->count > 0) {
		top(track)->is_unwinding = is_pad;
		top(track)->exception = exception;
	}
}

void frame_exits_caught(uintptr_t sp)
{
	struct thread *self = thread_current;
	struct track *track = self ? find_list(self, sp) : NULL;

	if (track && track->count > 0)
		top(track)->is_unwinding = false;
}

void frame_exits_jumped(uintptr_t sp)
{
	struct thread *self = thread_current;
	uintptr_t here = SHIM_CALLER_SP;
	struct track *from = self ? find_list(self, here) : NULL;

	/* A jump off the signal stack ends the handler; a coroutine may come back. */
	if (from && from->is_signal && !contains(from, sp))
		leave_below(self, from, NOT_YET, NULL);
	frame_exits_unwound(sp, NULL, false);
}

void frame_exits_stack_created(uintptr_t low, uintptr_t high)
{
	struct thread *self;
	struct track *track;

	if (!plan_is_tracking())
		return;
	self = thread_get();
	if (!self)
		return;
	track = find_list(self, low + 1);
	if (track && track->low == low && track->high == high) {
		empty(track); /* the memory is a stack again */
		return;
	}
	/* The new stack is inside this one: addresses may be in either. */
	if (track)
		track->is_exact = false;
	self->track = NULL;
	track = make(self);
	if (!track)
		return;
	track->is_signal = false;
	track->is_exact = true;
	track->landed = 0;
	track->low = low;
	track->high = high;
}

void frame_exits_ended(void)
{
	struct thread *self = thread_current;
	struct track *track = self ? find_list(self, SHIM_CALLER_SP) : NULL;

	if (track)
		leave_below(self, track, NOT_YET, NULL);
}

/* A new thread reuses the lists of a thread that is gone. */
static void forget(struct thread *thread)
{
	thread->track = NULL;
	for (struct track *t = thread->tracks; t; t = t->next) {
		empty(t);
		t->low = t->high = 0;
	}
}

SUBSCRIBE(thread_reset, forget);
