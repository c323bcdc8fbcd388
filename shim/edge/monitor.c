/*
 * The functions of monitor(3), and the functions that code compiled with -pg calls.
 * Both fill the same gmon.out, and libc writes no gmon.out.
 *
 * When shim is off, libc's functions run as without shim.  A program may define some
 * functions under the same name: for these the wrapper is a stub (arch/.../edge.S),
 * which jumps to the definition after shim's if there is one.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "monitor/monitor.h"
#include "os/lookup.h"
#include "sources/mcount.h"
#include "runtime/state.h"

#include <errno.h>
#include <shim/compat/mon.h>
#include <signal.h>

#include <shim/builtin.h>
#include <shim/banned.h>

#undef monitor

#define HIDDEN __attribute__((visibility("hidden")))

/* The definitions after shim's, which the stubs jump to, or NULL. */
HIDDEN void *edge_monitor_next[5];
enum { NEXT_MONITOR, NEXT_SIGNAL, NEXT_HITS, NEXT_MCOUNT, NEXT_FENTRY };

/* libc's functions, which return nothing. */
static struct {
	void (*monstartup)(char *, char *);
	void (*moncontrol)(int);
	void (*start)(unsigned long, unsigned long);
	void (*clean)(void);
} real;

static int set_errno(int r)
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
static void sort_descending(struct monitor_args *ranges, size_t count)
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
	sort_descending(ranges, count);
	for (size_t i = 0; i < count; i++)
		wishes[i] = (struct monitor_wish){ (uintptr_t)ranges[i].lowpc,
						   (uintptr_t)ranges[i].highpc,
						   ranges[i].buffer,
						   ranges[i].bufsiz };
	r = monitor_start_in(wishes, (uint32_t)count, true);
	__atomic_store_n(&busy, false, __ATOMIC_RELEASE);
	return r;
}

/* Whether @low is -1.  A caller without a declaration passes -1 as 32 bits. */
static bool is_minus_one(char *low)
{
	return (uint32_t)(uintptr_t)low == UINT32_MAX &&
	       ((uintptr_t)low >> 32 == 0 ||
		(uintptr_t)low >> 32 == UINT32_MAX);
}

int edge_monitor(char *low, char *high, char *buffer, size_t size, size_t last)
{
	if (is_off())
		return set_errno(-ENOSYS);
	if (!low)
		return set_errno(monitor_stop());
	if (!is_minus_one(low))
		return set_errno(start_traditional(low, high, buffer, size));
	if (high || last)
		return set_errno(-EINVAL);
	return set_errno(
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

/* --- functions that libc also has --- */

EDGE int monstartup(char *low, char *high)
{
	if (!is_off())
		return set_errno(
			monitor_start((uintptr_t)low, (uintptr_t)high));
	if (!real.monstartup)
		return set_errno(-ENOSYS);
	real.monstartup(low, high);
	return 0;
}

EDGE int moncontrol(int mode)
{
	if (!is_off())
		return set_errno(monitor_control(mode != 0));
	if (!real.moncontrol)
		return set_errno(-ENOSYS);
	real.moncontrol(mode);
	return 0;
}

/* A call of __monstartup before shim has started.  In a program that was compiled with
 * -pg, the first library that is initialized calls __gmon_start__. */
static struct {
	bool is_over, is_requested;
	unsigned long low, high;
} early;

EDGE void __monstartup(unsigned long low, unsigned long high);
EDGE void __monstartup(unsigned long low, unsigned long high)
{
	if (!early.is_over) {
		early.is_requested = true;
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

/* --- wrappers for processors without stubs --- */

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

uintptr_t shim_mcount_of(uintptr_t address)
{
	(void)address;
	return 0;
}

#endif

/* arch/.../edge.S */
void edge_count_call(void);
void edge_count_entry(void);

/* --- start --- */

static void install_handler(int signal)
{
	struct sigaction action = { .sa_flags = SA_RESTART };

	action.sa_handler = monitor_signal;
	sigaction(signal, &action, NULL);
}

/* Finds definitions of the program. */
static void find_program_definitions(void)
{
	edge_monitor_next[NEXT_MONITOR] = lookup_real("monitor");
	edge_monitor_next[NEXT_SIGNAL] = lookup_real("monitor_signal");
	edge_monitor_next[NEXT_HITS] = lookup_real("monitor_hits");
}

void edge_monitor_resolve(void)
{
	find_program_definitions();
	real.monstartup = (void (*)(char *, char *))lookup_real("monstartup");
	real.moncontrol = (void (*)(int))lookup_real("moncontrol");
	real.start = (void (*)(unsigned long, unsigned long))lookup_real(
		"__monstartup");
	real.clean = (void (*)(void))lookup_real("_mcleanup");
#ifdef ARCH_HAS_MONITOR_ENTRIES
	mcount_set_counters(edge_count_call, edge_count_entry);
#endif
}

void edge_monitor_load(void)
{
	if (is_off()) {
		edge_monitor_next[NEXT_MCOUNT] = lookup_real("_mcount");
		edge_monitor_next[NEXT_FENTRY] = lookup_real("__fentry__");
	} else {
		monitor_load(install_handler);
	}
	early.is_over = true;
	if (early.is_requested)
		__monstartup(early.low, early.high);
}
