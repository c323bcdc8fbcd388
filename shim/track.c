#include "track.h"

#include "code.h"

#include <shim/record.h>

#include <shim/banned.h>

/* A frame of the free part has @frame NOT_YET: a signal handler between our
 * taking it and our filling it does not take it for one that is gone. */
#define NOT_YET UINTPTR_MAX

struct open_frame {
	shim_function function;
	const void *site;
	uintptr_t frame;
};

struct track {
	struct track *next;
	uintptr_t low, high;	/* the stack */
	uint32_t count, room;
	struct open_frame *frames;
};

static bool make_room(struct track *track)
{
	uint32_t room = track->room ? track->room * 2 : 1024;
	struct open_frame *frames = shim_memory(room * sizeof(*frames));

	if (!frames)
		return false;
	for (uint32_t i = 0; i < room; i++) {
		if (i < track->count)
			frames[i] = track->frames[i];
		else
			frames[i].frame = NOT_YET;
	}
	track->frames = frames;
	track->room = room;
	return true;
}

static struct track *find(struct thread *self, uintptr_t sp)
{
	for (struct track *t = self->tracks; t; t = t->next)
		if (sp - t->low < t->high - t->low)
			return t;
	return NULL;
}

static struct track *find_or_make(struct thread *self, uintptr_t sp)
{
	struct track *track = find(self, sp);

	if (track)
		return track;
	track = shim_memory(sizeof(*track));
	if (!track)
		return NULL;
	shim_stack_find(sp, &track->low, &track->high);
	if (!make_room(track))
		return NULL;
	track->next = self->tracks;
	self->tracks = track;
	return track;
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
	struct open_frame gone = track->frames[track->count - 1];
	struct plan_call call = {
		.event = PLAN_EXCEPTION,
		.function = gone.function,
		.site = gone.site,
		.frame = gone.frame,
		.target = (uintptr_t)exception,
	};

	pop(track);
	plan_run(plan, self, &call);
}

/* The frame has room for one function that is not inlined: what was entered
 * there from elsewhere, or is entered again, has gone. */
static bool is_gone(const struct open_frame *open, const struct plan_call *call)
{
	if (open->frame != call->frame)
		return open->frame < call->frame;
	return open->site != call->site || open->function == call->function;
}

static void enter(const struct plan *plan, struct thread *self,
		  struct track *track, const struct plan_call *call)
{
	uint32_t at;

	while (track->count > 0 &&
	       is_gone(&track->frames[track->count - 1], call))
		leave_top(plan, self, track, NULL);
	if (track->count + 1 >= track->room && !make_room(track)) {
		self->dropped++;
		return;
	}
	at = track->count++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	track->frames[at].function = call->function;
	track->frames[at].site = call->site;
	track->frames[at].frame = call->frame;
	plan_run(plan, self, call);
}

static bool is_open(const struct track *track, const struct plan_call *call)
{
	for (uint32_t i = track->count; i-- > 0;) {
		const struct open_frame *open = &track->frames[i];

		if (open->frame > call->frame && open->frame != NOT_YET)
			return false;
		if (open->function == call->function &&
		    open->frame == call->frame)
			return true;
	}
	return false;
}

static void leave(const struct plan *plan, struct thread *self,
		  struct track *track, const struct plan_call *given)
{
	struct plan_call call = *given;
	enum code_leave how;

	/* Entered while nobody listened: there is nothing to leave. */
	if (!is_open(track, &call))
		return;
	while (track->frames[track->count - 1].function != call.function ||
	       track->frames[track->count - 1].frame != call.frame)
		leave_top(plan, self, track, NULL);
	if (self->unwinding && call.frame == self->unwinding_sp) {
		leave_top(plan, self, track, self->unwinding);
		return;
	}
	how = code_leave_kind(call.return_address, call.function, &call.target);
	if (how == CODE_UNWINDS) {
		leave_top(plan, self, track, self->unwinding);
		return;
	}
	pop(track);
	if (how == CODE_TAIL_CALLS)
		call.event = PLAN_TAILCALL;
	plan_run(plan, self, &call);
}

void track_run(const struct plan *plan, struct thread *self,
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

void track_unwound(uintptr_t sp, const void *exception, bool is_pad)
{
	const struct plan *plan;
	struct thread *self = thread_current;
	struct track *track;
	uint32_t before;

	if (!self)
		return;
	self->unwinding = is_pad ? exception : NULL;
	self->unwinding_sp = sp;
	track = find(self, sp);
	if (!track)
		return;
	before = self->dispatching;
	self->dispatching = before + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	plan = __atomic_load_n(&plan_current, __ATOMIC_ACQUIRE);
	while (plan && track->count > 0 &&
	       track->frames[track->count - 1].frame < sp) {
		if (plan->tracks)
			leave_top(plan, self, track, exception);
		else
			pop(track);
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->dispatching = before;
}

void track_caught(void)
{
	if (thread_current)
		thread_current->unwinding = NULL;
}
