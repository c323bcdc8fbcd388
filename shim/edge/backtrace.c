/*
 * backtrace and _Unwind_Backtrace, while functions return to arch_returned
 * (sources/returns.h): unwinders report it as a frame, which the program did not call.
 * And the walk of shim itself: whether a hook runs in a frame's callees.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/call_sites.h"
#include "os/lookup.h"
#include "runtime/state.h"
#include "sources/returns.h"

#include <unwind.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

typedef int (*backtrace_function)(void **buffer, int size);
typedef _Unwind_Reason_Code (*walk_function)(_Unwind_Trace_Fn each,
					     void *argument);

/* arch/.../edge.S calls these functions, and jumps to the function that they return. */
HIDDEN void *edge_traces_back(void);
HIDDEN void *edge_walks_back(void);

static backtrace_function real_backtrace;
static walk_function real_walk;
static _Unwind_Ptr (*get_ip)(struct _Unwind_Context *);
static _Unwind_Word (*get_cfa)(struct _Unwind_Context *);

static void *find_unwinder(const char *name)
{
	void *real = lookup_real(name);

	return real ? real : lookup_beside("libgcc_s.so.1", name);
}

static bool resolve_unwinder(void)
{
	if (!real_walk) {
		get_ip = (_Unwind_Ptr(*)(struct _Unwind_Context *))
			find_unwinder("_Unwind_GetIP");
		get_cfa = (_Unwind_Word(*)(struct _Unwind_Context *))
			find_unwinder("_Unwind_GetCFA");
		real_walk = (walk_function)find_unwinder("_Unwind_Backtrace");
	}
	return real_walk && get_ip && get_cfa;
}

/* --- a walk that leaves out frames of shim --- */

struct walk {
	_Unwind_Trace_Fn each;
	void *argument;
	bool has_begun; /* the first frame is that of the wrapper */
};

static _Unwind_Reason_Code report_frame(struct _Unwind_Context *context,
					void *argument)
{
	struct walk *walk = argument;

	if (!walk->has_begun) {
		walk->has_begun = true;
		return _URC_NO_REASON;
	}
#ifdef ARCH_HAS_RETURNS
	if (get_ip(context) == (uintptr_t)arch_returned)
		return _URC_NO_REASON;
#endif
	return walk->each(context, walk->argument);
}

static __attribute__((noinline)) _Unwind_Reason_Code
walk_back(_Unwind_Trace_Fn each, void *argument)
{
	struct walk walk = { .each = each, .argument = argument };
	_Unwind_Reason_Code r = real_walk(report_frame, &walk);

	__asm__ volatile(""); /* no tail call */
	return r;
}

void *edge_walks_back(void)
{
	if (!resolve_unwinder())
		return (void *)real_walk;
	return returns_are_used() ? (void *)walk_back : (void *)real_walk;
}

/* --- backtrace --- */

struct trace {
	void **buffer;
	int size, count;
	_Unwind_Word cfa; /* of the last frame */
};

/* As in libc: ends at a frame that does not differ from the one before. */
static _Unwind_Reason_Code store_frame(struct _Unwind_Context *context,
				       void *argument)
{
	struct trace *trace = argument;
	void *ip = (void *)get_ip(context);
	_Unwind_Word cfa = get_cfa(context);

	if (trace->count > 0 && trace->buffer[trace->count - 1] == ip &&
	    trace->cfa == cfa)
		return _URC_END_OF_STACK;
	if (trace->count == trace->size)
		return _URC_END_OF_STACK;
	trace->buffer[trace->count++] = ip;
	trace->cfa = cfa;
	return _URC_NO_REASON;
}

static __attribute__((noinline)) int trace_back(void **buffer, int size)
{
	struct trace trace = { .buffer = buffer, .size = size };
	struct walk walk = { .each = store_frame, .argument = &trace };

	if (size <= 0)
		return 0;
	real_walk(report_frame, &walk);
	/* _Unwind_Backtrace reports the end of the stack as a frame, too. */
	if (trace.count > 1 && !buffer[trace.count - 1])
		trace.count--;
	return trace.count;
}

void *edge_traces_back(void)
{
	if (!real_backtrace)
		real_backtrace = (backtrace_function)lookup_real("backtrace");
	/* libc's first backtrace opens the unwinder of a program that has none. */
	if (returns_are_used() && real_backtrace && !resolve_unwinder()) {
		void *frame;

		real_backtrace(&frame, 1);
	}
	return returns_are_used() && resolve_unwinder() ?
		       (void *)trace_back :
		       (void *)real_backtrace;
}

/* --- hooks that run --- */

#define BATCH 32

struct search {
	uintptr_t ip, cfa; /* of the last frame */
	uintptr_t returns[BATCH];
	unsigned count;
	bool has_hook;
};

/* The code that marks call (arch/.../sources.S, returns.S); NULL without such a file. */
extern const char __start_shim_marks[]
	__attribute__((weak, visibility("hidden")));
extern const char __stop_shim_marks[]
	__attribute__((weak, visibility("hidden")));

static bool is_in_mark(uintptr_t ip)
{
#ifdef ARCH_HAS_RETURNS
	if (ip == (uintptr_t)arch_returned) /* a function will return there */
		return false;
#endif
	return ip >= (uintptr_t)__start_shim_marks &&
	       ip < (uintptr_t)__stop_shim_marks;
}

/* State lock held. */
static int find_hooks(void *argument)
{
	struct search *search = argument;

	for (unsigned i = 0; i < search->count; i++)
		search->has_hook |= call_sites_is_hook(search->returns[i]);
	search->count = 0;
	return 0;
}

static _Unwind_Reason_Code search_frame(struct _Unwind_Context *context,
					void *argument)
{
	struct search *search = argument;
	uintptr_t ip = get_ip(context);

	search->has_hook |= is_in_mark(ip);
	search->returns[search->count++] = ip;
	if (search->count == BATCH)
		state_call_locked(find_hooks, search);
	return search->has_hook || (ip == search->ip &&
				    get_cfa(context) == search->cfa) ?
		       _URC_END_OF_STACK :
		       _URC_NO_REASON;
}

bool edge_runs_hook(uintptr_t ip, uintptr_t cfa)
{
	struct search search = { .ip = ip, .cfa = cfa };

	if (!resolve_unwinder())
		return false;
	real_walk(search_frame, &search);
	state_call_locked(find_hooks, &search);
	return search.has_hook;
}
