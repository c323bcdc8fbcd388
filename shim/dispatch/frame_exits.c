/*
 * Finds out how each frame ends: by a return, a tail call or unwinding.  The stack
 * pointer identifies a frame.  Frames below the stack pointer of a later event no
 * longer exist.  They were unwound, unless a leave hook has run for them.
 */
#include "dispatch/frame_exits.h"

#include "inspect/code.h"
#include "os/assert.h"

#include <shim/cpu.h>
#include <shim/record.h>

#include <shim/banned.h>

/* The value of @frame in free entries.  A signal handler may come before a new entry is
 * filled; this value keeps the handler from taking the entry for a frame that no longer
 * exists. */
#define NOT_YET UINTPTR_MAX

struct open_frame {
	shim_function function;
	const void *site;
	uintptr_t frame;
	const void *exception; /* the cause of its landing pad */
	bool is_unwinding;     /* its landing pad runs */
};

/* The open frames of one stack. */
struct track {
	struct track *next;
	uintptr_t low, high; /* the stack; both 0: the list is free */
	bool is_signal; /* a signal stack, which is empty between handlers */
	bool is_exact;	/* the program has declared the stack */
	uint32_t count, room;
	uintptr_t landed; /* the stack pointer of the last landing pad */
	struct open_frame *frames;
	struct open_frame first[];
};

/* A list begins with one page, because a program may have many coroutines. */
#define PAGE	   4096
#define FIRST_ROOM ((PAGE - sizeof(struct track)) / sizeof(struct open_frame))

/* --- the lists --- */

/* Old arrays stay mapped, because this code may run in a signal handler that has
 * interrupted a store into one.  Together they are smaller than the new array. */
static bool grow_list(struct track *track)
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

static void clear_list(struct track *track)
{
	while (track->count > 0)
		track->frames[--track->count].frame = NOT_YET;
}

/* Whether the stack of @track contains @sp.  A stack pointer points at the last pushed
 * word, so it may be the upper end of the stack, but never the lower end. */
static bool contains(const struct track *track, uintptr_t sp)
{
	return sp - 1 - track->low < track->high - track->low;
}

/* A coroutine's stack may lie inside a stack that the kernel knows, so the smallest
 * match is right. */
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

static struct track *make_list(struct thread *self)
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

static struct track *find_or_make_list(struct thread *self, uintptr_t sp)
{
	struct track *track = find_list(self, sp);
	uintptr_t low, high;
	enum shim_stack kind;

	if (track)
		return track;
	kind = shim_stack_find(sp - 1, &low, &high);
	track = make_list(self);
	if (!track)
		return NULL;
	track->is_signal = kind == SHIM_STACK_SIGNAL;
	track->is_exact = false;
	track->landed = 0;
	track->low = low;
	track->high = high;
	return track;
}

static struct open_frame *top_frame(const struct track *track)
{
	return &track->frames[track->count - 1];
}

/* --- leaving frames --- */

static void pop_frame(struct track *track)
{
	track->count--;
	track->frames[track->count].frame = NOT_YET;
}

static void leave_top(const struct plan *plan, struct thread *self,
		      struct track *track, const void *exception)
{
	struct open_frame left = *top_frame(track);
	struct plan_call call = {
		.event = PLAN_EXCEPTION,
		.function = left.function,
		.site = left.site,
		.frame = left.frame,
		.target = (uintptr_t)exception,
	};

	pop_frame(track);
	if (plan && plan->tracks)
		plan_run(plan, self, &call);
}

/* The unwinding continues in the next outer frame.  Functions inlined into each other
 * share one machine frame, so the leave hooks of the outer functions follow. */
static void unwind_top(const struct plan *plan, struct thread *self,
		       struct track *track)
{
	const void *exception = top_frame(track)->exception;

	leave_top(plan, self, track, exception);
	if (track->count > 0) {
		top_frame(track)->is_unwinding = true;
		top_frame(track)->exception = exception;
	}
}

/* Whether @open no longer exists when @call enters a frame.  Frames below the new frame
 * do not.  A frame at the same address exists only if the new function was inlined into
 * it: then both have the same call site. */
static bool is_gone(const struct open_frame *open, const struct plan_call *call)
{
	if (open->frame != call->frame)
		return open->frame < call->frame;
	return open->site != call->site;
}

/*
 * Whether @call enters an open function again in the same frame.  A function that was
 * inlined into the function that has caught an exception shares its frame.  So shim
 * sees the end of the inlined function only when the program enters it again.  (A
 * recursive call would have a frame of its own.)
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

/* Fills the entry @at; repeats the stores if a signal handler has replaced the array
 * meanwhile. */
static void fill_entry(const struct track *track, uint32_t at,
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

static void enter_frame(const struct plan *plan, struct thread *self,
			struct track *track, const struct plan_call *call)
{
	uint32_t at;

	while (track->count > 0 && (is_gone(top_frame(track), call) ||
				    is_entered_again(track, call)))
		leave_top(plan, self, track, NULL);
	if (track->count + 1 >= track->room && !grow_list(track)) {
		shim_record_lost(SHIM_LOST_MEMORY);
		return;
	}
	/* Outer frames have higher addresses. */
	SHIM_ASSERT(track->count == 0 ||
		    top_frame(track)->frame >= call->frame);
	at = track->count++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	fill_entry(track, at, call);
	plan_run(plan, self, call);
}

/*
 * The frame that @call leaves, counted from 1; 0 if no enter hook has run for it.
 *
 * If the function has jumped to the leave hook at its end, the hook has the caller's
 * stack pointer: its frame is the outermost below that.  If the function has called the
 * leave hook, the hook has the stack pointer of the enter hook or a lower one: its
 * frame is the innermost at or above that.  A frame below takes precedence.
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

static void leave_frame(const struct plan *plan, struct thread *self,
			struct track *track, const struct plan_call *given)
{
	uint32_t left = find_left(track, given);
	struct plan_call call = *given;
	enum code_leave how = CODE_RETURNS;

	if (left == 0)
		return;
	while (track->count > left)
		leave_top(plan, self, track, NULL);
	if (top_frame(track)->is_unwinding) {
		unwind_top(plan, self, track);
		return;
	}
	/* If the function has jumped to the hook, the hook returns to the caller: the
	 * function returns. */
	if (top_frame(track)->frame >= call.frame)
		how = code_leave_kind(&call, &call.target);
	if (how == CODE_UNWINDS) {
		leave_top(plan, self, track, NULL);
		return;
	}
	pop_frame(track);
	if (how == CODE_TAIL_CALLS)
		call.event = PLAN_TAILCALL;
	plan_run(plan, self, &call);
}

void frame_exits_run(const struct plan *plan, struct thread *self,
		     const struct plan_call *call)
{
	struct track *track = find_or_make_list(self, call->frame);

	if (track && call->event == PLAN_ENTER)
		enter_frame(plan, self, track, call);
	else if (track)
		leave_frame(plan, self, track, call);
	else if (call->event == PLAN_ENTER)
		shim_record_lost(SHIM_LOST_MEMORY);
}

/* --- exits without a hook --- */

/* As in plan_dispatch: the plan is not freed until end_use. */
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

	while (track->count > 0 && top_frame(track)->frame < sp)
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
		top_frame(track)->is_unwinding = is_pad;
		top_frame(track)->exception = exception;
	}
}

void frame_exits_caught(uintptr_t sp)
{
	struct thread *self = thread_current;
	struct track *track = self ? find_list(self, sp) : NULL;

	if (track && track->count > 0)
		top_frame(track)->is_unwinding = false;
}

void frame_exits_jumped(uintptr_t sp)
{
	struct thread *self = thread_current;
	uintptr_t here = SHIM_CALLER_SP;
	struct track *from = self ? find_list(self, here) : NULL;

	/* A jump off the signal stack ends the handler, but a coroutine may continue
	 * later. */
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
		clear_list(
			track); /* the program uses the memory for a new stack */
		return;
	}
	/* The new stack is inside this one, so an address may belong to either. */
	if (track)
		track->is_exact = false;
	self->track = NULL;
	track = make_list(self);
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

/* A new thread reuses the lists of a thread that has ended. */
static void clear_lists(struct thread *thread)
{
	thread->track = NULL;
	for (struct track *t = thread->tracks; t; t = t->next) {
		clear_list(t);
		t->low = t->high = 0;
	}
}

SUBSCRIBE(thread_reset, clear_lists);
