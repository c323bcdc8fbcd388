/*
 * backtrace and _Unwind_Backtrace, while functions return to arch_returned
 * (sources/returns.h): unwinders report it as a frame, which the program did not call.
 * And they stop where a signal has interrupted moved instructions (sources/moved.h), so the
 * walk goes on with the registers that the thread would have in the function's own code.
 * And the walk of shim itself: whether a hook runs in a frame's callees.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/call_sites.h"
#include "os/lookup.h"
#include "runtime/state.h"
#include "sources/returns.h"
#include "sources/route.h"
#include "unwind/unwind.h"

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
static _Unwind_Ptr (*get_interrupted)(struct _Unwind_Context *, int *);
static _Unwind_Word (*get_register)(struct _Unwind_Context *, int);

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
		get_interrupted = (_Unwind_Ptr(*)(
			struct _Unwind_Context *,
			int *))find_unwinder("_Unwind_GetIPInfo");
		get_register = (_Unwind_Word(*)(struct _Unwind_Context *, int))
			find_unwinder("_Unwind_GetGR");
		real_walk = (walk_function)find_unwinder("_Unwind_Backtrace");
	}
	return real_walk && get_ip && get_cfa && get_interrupted &&
	       get_register;
}

/* x86-64's numbers in DWARF. */
enum { REGISTER_SP = 7, REGISTER_IP = 16, REGISTERS };

/* Whether functions may return to shim, or a thread may be between the instructions of a sled. */
static bool hides_frames(void)
{
	return returns_are_used() || route_is_used();
}

/* --- a walk that leaves out frames of shim --- */

struct walk {
	_Unwind_Trace_Fn each;
	void *argument;
	bool has_begun; /* the first frame is that of the wrapper */
	bool goes_on;	/* from @registers */
	uintptr_t registers[REGISTERS];
};

#ifdef ARCH_HAS_RETURNS
/* arch/.../edge.S: calls @walk(@each, @argument), whose next frame is the code that the
 * registers say. */
HIDDEN _Unwind_Reason_Code edge_walk_from(const uintptr_t *registers,
					  walk_function walk,
					  _Unwind_Trace_Fn each,
					  void *argument);

/* Whether a signal has interrupted moved instructions in this frame.  Behind a signal's
 * frame, the unwinder knows all registers. */
static bool is_moved(struct _Unwind_Context *context, struct walk *walk)
{
	int is_interrupted = 0;
	uintptr_t ip = get_interrupted(context, &is_interrupted), found = ip;
	uintptr_t sp = get_cfa(context);

	if (!is_interrupted)
		return false;
	NOTIFY(unwind_interrupted, &found, &sp);
	if (found == ip)
		return false;
	for (int i = 0; i < REGISTER_SP; i++)
		walk->registers[i] = get_register(context, i);
	for (int i = REGISTER_SP + 1; i < REGISTER_IP; i++)
		walk->registers[i] = get_register(context, i);
	walk->registers[REGISTER_SP] = sp;
	walk->registers[REGISTER_IP] = found;
	return true;
}
#endif

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
	if (is_moved(context, walk)) {
		walk->goes_on = true;
		return _URC_END_OF_STACK;
	}
#endif
	return walk->each(context, walk->argument);
}

/* The wrapper itself calls real_walk. */
static inline __attribute__((always_inline)) _Unwind_Reason_Code
walk_frames(struct walk *walk)
{
	_Unwind_Reason_Code r = real_walk(report_frame, walk);

#ifdef ARCH_HAS_RETURNS
	while (walk->goes_on) {
		uintptr_t registers[REGISTERS];

		for (unsigned i = 0; i < REGISTERS; i++)
			registers[i] = walk->registers[i];
		walk->goes_on = walk->has_begun = false;
		r = edge_walk_from(registers, real_walk, report_frame, walk);
	}
#endif
	return r;
}

static __attribute__((noinline)) _Unwind_Reason_Code
walk_back(_Unwind_Trace_Fn each, void *argument)
{
	struct walk walk = { .each = each, .argument = argument };
	_Unwind_Reason_Code r = walk_frames(&walk);

	__asm__ volatile(""); /* no tail call */
	return r;
}

void *edge_walks_back(void)
{
	if (!resolve_unwinder())
		return (void *)real_walk;
	return hides_frames() ? (void *)walk_back : (void *)real_walk;
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
	walk_frames(&walk);
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
	if (hides_frames() && real_backtrace && !resolve_unwinder()) {
		void *frame;

		real_backtrace(&frame, 1);
	}
	return hides_frames() && resolve_unwinder() ? (void *)trace_back :
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
	int is_interrupted = 0;
	uintptr_t ip = get_interrupted(context, &is_interrupted);

	search->has_hook |= is_in_mark(ip);
	/* An instruction behind a hook's call may have raised the signal whose handler
	 * throws: then the hook has returned. */
	if (!is_interrupted)
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
