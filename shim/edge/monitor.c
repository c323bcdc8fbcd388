/*
 * monitor(3), and the functions that code compiled with -pg calls.  Both fill the same
 * gmon.out, and libc writes none.
 *
 * When shim is off, libc's functions run as without shim.  Functions that a program may
 * define under the same name are stubs (arch/.../edge.S), which jump to the definition
 * after shim's if there is one.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "monitor/monitor.h"
#include "os/lookup.h"
#include "runtime/state.h"

#include <errno.h>
#include <mon.h>
#include <signal.h>

#include <shim/banned.h>

#undef monitor

#define HIDDEN __attribute__((visibility("hidden")))

/* The definitions after shim's, which the stubs jump to; NULL if there is none. */
HIDDEN void *edge_monitor_next[5];
enum { NEXT_MONITOR, NEXT_SIGNAL, NEXT_HITS, NEXT_MCOUNT, NEXT_FENTRY };

/* libc's functions, which return nothing. */
static struct {
	void (*monstartup)(char *, char *);
	void (*moncontrol)(int);
	void (*start)(unsigned long, unsigned long);
	void (*clean)(void);
} real;

static int answer(int r)
{
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

static bool is_off(void)
{
	return state_get() != STATE_RUNNING;
}

/* --- monitor --- */

HIDDEN int edge_monitor(char *low, char *high, char *buffer, size_t size,
			size_t last);

static int start_traditional(char *low, char *high, char *buffer, size_t size)
{
	struct monitor_wish wish = { (uintptr_t)low, (uintptr_t)high, buffer,
				     size };

	return monitor_start_in(&wish, 1, false);
}

/* Sorts the program's own array by decreasing addresses (row T-23). */
static void sort(struct monitor_args *ranges, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t n = i;
		     n > 0 && (uintptr_t)ranges[n].lowpc >
				      (uintptr_t)ranges[n - 1].lowpc;
		     n--) {
			struct monitor_args range = ranges[n];

			ranges[n] = ranges[n - 1];
			ranges[n - 1] = range;
		}
}

static int start_extended(struct monitor_args *ranges, size_t count)
{
	static struct monitor_wish wishes[MONITOR_RANGES_MAX];
	static bool busy;
	int r;

	if (!ranges || count == 0 || count > MONITOR_RANGES_MAX)
		return -EINVAL;
	if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	sort(ranges, count);
	for (size_t i = 0; i < count; i++)
		wishes[i] = (struct monitor_wish){ (uintptr_t)ranges[i].lowpc,
						   (uintptr_t)ranges[i].highpc,
						   ranges[i].buffer,
						   ranges[i].bufsiz };
	r = monitor_start_in(wishes, (uint32_t)count, true);
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	return r;
}

/* A caller without a declaration passes -1 as 32 bits. */
static bool is_minus_one(char *low)
{
	return (uint32_t)(uintptr_t)low == UINT32_MAX &&
	       ((uintptr_t)low >> 32 == 0 ||
		(uintptr_t)low >> 32 == UINT32_MAX);
}

int edge_monitor(char *low, char *high, char *buffer, size_t size, size_t last)
{
	if (is_off())
		return answer(-ENOSYS);
	if (!low)
		return answer(monitor_stop());
	if (!is_minus_one(low))
		return answer(start_traditional(low, high, buffer, size));
	if (high || last)
		return answer(-EINVAL);
	return answer(
		start_extended((struct monitor_args *)(void *)buffer, size));
}

HIDDEN void edge_monitor_signal(int signal);

void edge_monitor_signal(int signal)
{
	int before = errno;

	(void)signal;
	if (!is_off())
		monitor_write();
	errno = before;
}

HIDDEN int edge_monitor_hits(const void *pc, unsigned int count);

int edge_monitor_hits(const void *pc, unsigned int count)
{
	return !is_off() && monitor_add((uintptr_t)pc, count) == 0 ? 0 : -1;
}

/* --- functions that libc has, too --- */

EDGE int monstartup(char *low, char *high)
{
	if (!is_off())
		return answer(monitor_start((uintptr_t)low, (uintptr_t)high));
	if (!real.monstartup)
		return answer(-ENOSYS);
	real.monstartup(low, high);
	return 0;
}

EDGE int moncontrol(int mode)
{
	if (!is_off())
		return answer(monitor_control(mode != 0));
	if (!real.moncontrol)
		return answer(-ENOSYS);
	real.moncontrol(mode);
	return 0;
}

/* A call of __monstartup before shim started: the first library that is initialized
 * calls __gmon_start__ of a program that was compiled with -pg. */
static struct {
	bool is_over, is_asked;
	unsigned long low, high;
} early;

EDGE void __monstartup(unsigned long low, unsigned long high);
EDGE void __monstartup(unsigned long low, unsigned long high)
{
	if (!early.is_over) {
		early.is_asked = true;
		early.low = low;
		early.high = high;
		return;
	}
	if (!is_off())
		monitor_start(low, high);
	else if (real.start)
		real.start(low, high);
}

EDGE void _mcleanup(void);
EDGE void _mcleanup(void)
{
	if (!is_off())
		monitor_finish();
	else if (real.clean)
		real.clean();
}

/* --- processors without stubs for these --- */

#ifndef ARCH_HAS_MONITOR_ENTRIES

EDGE void monitor_signal(int signal)
{
	edge_monitor_signal(signal);
}

EDGE int monitor_hits(const void *pc, unsigned int count)
{
	return edge_monitor_hits(pc, count);
}

EDGE int monitor(char *low, char *high, char *buffer, size_t size, size_t last)
{
	return edge_monitor(low, high, buffer, size, last);
}

EDGE void _mcount(void *from);
EDGE void _mcount(void *from)
{
	typedef void (*count)(void *from);

	if (edge_monitor_next[NEXT_MCOUNT])
		((count)edge_monitor_next[NEXT_MCOUNT])(from);
	else
		monitor_count_arc((uintptr_t)from,
				  (uintptr_t)__builtin_return_address(0));
}

EDGE void mcount(void *from);
EDGE void mcount(void *from)
{
	(void)from;
}

EDGE void __fentry__(void);
EDGE void __fentry__(void)
{
}

#endif

/* --- start --- */

static void establish(int signal)
{
	struct sigaction action = { .sa_flags = SA_RESTART };

	action.sa_handler = monitor_signal;
	sigaction(signal, &action, NULL);
}

/* Finds definitions of the program. */
static void find_others(void)
{
	edge_monitor_next[NEXT_MONITOR] = lookup_real("monitor");
	edge_monitor_next[NEXT_SIGNAL] = lookup_real("monitor_signal");
	edge_monitor_next[NEXT_HITS] = lookup_real("monitor_hits");
}

void edge_monitor_resolve(void)
{
	find_others();
	real.monstartup = (void (*)(char *, char *))lookup_real("monstartup");
	real.moncontrol = (void (*)(int))lookup_real("moncontrol");
	real.start = (void (*)(unsigned long, unsigned long))lookup_real(
		"__monstartup");
	real.clean = (void (*)(void))lookup_real("_mcleanup");
}

void edge_monitor_load(void)
{
	if (is_off()) {
		edge_monitor_next[NEXT_MCOUNT] = lookup_real("_mcount");
		edge_monitor_next[NEXT_FENTRY] = lookup_real("__fentry__");
	} else {
		monitor_load(establish);
	}
	early.is_over = true;
	if (early.is_asked)
		__monstartup(early.low, early.high);
}
