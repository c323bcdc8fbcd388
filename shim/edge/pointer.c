/*
 * Thread pointers that the program moves (ARCH_SET_FS).  shim and libc find their
 * thread-local storage by the thread pointer.  While the pointer of any thread is
 * moved, shim records no calls.
 */
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/hooks_switch.h"
#include "os/sys.h"
#include "runtime/log.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>

#ifdef SYS_arch_prctl
#include <asm/prctl.h>

#include <shim/banned.h>

#define MOVED_MAX 32

/* The moved pointers: libc's value (0 in a free entry) and the program's. */
static struct {
	uintptr_t from, to;
} moved[MOVED_MAX];
static bool is_logged;

__attribute__((visibility("hidden"))) long
edge_syscall_pointer(long number, long code, unsigned long address);

static int find_moved(uintptr_t to)
{
	for (int i = 0; i < MOVED_MAX; i++)
		if (__atomic_load_n(&moved[i].from, __ATOMIC_ACQUIRE) != 0 &&
		    moved[i].to == to)
			return i;
	return -1;
}

/* Stores the calling thread's move and returns its index; -1 if the table is full. */
static int add_moved(uintptr_t from, uintptr_t to)
{
	for (int i = 0; i < MOVED_MAX; i++) {
		uintptr_t none = 0;

		if (__atomic_compare_exchange_n(&moved[i].from, &none, from,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			moved[i].to = to;
			return i;
		}
	}
	return -1;
}

static long set_pointer(uintptr_t address)
{
	return sys_pass_on(SYS_arch_prctl, ARCH_SET_FS, (long)address, 0, 0, 0,
			   0);
}

static long move_away(uintptr_t from, uintptr_t to)
{
	int i = add_moved(from, to);
	long r;

	sys_expect_moved_pointer();
	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		log_line(
			"%s",
			"the program changes a thread pointer: shim records no "
			"calls until the program restores it");
	hooks_switch_pause(true);
	r = set_pointer(to);
	/* (Without an entry, shim does not see the move back, and the pause goes on.) */
	if (r >= 0)
		return r;
	if (i >= 0)
		__atomic_store_n(&moved[i].from, 0, __ATOMIC_RELEASE);
	hooks_switch_pause(false);
	return r;
}

/* Uses no thread-local storage while the pointer is moved. */
static long move_pointer(uintptr_t to)
{
	uintptr_t now = 0;
	long r = sys_pass_on(SYS_arch_prctl, ARCH_GET_FS, (long)&now, 0, 0, 0,
			     0);
	int i;

	if (r < 0 || now == to)
		return set_pointer(to);
	i = find_moved(now);
	if (i < 0)
		return move_away(now, to);
	r = set_pointer(to);
	if (r < 0)
		return r;
	if (to != moved[i].from) {
		moved[i].to = to;
		return r;
	}
	__atomic_store_n(&moved[i].from, 0, __ATOMIC_RELEASE);
	hooks_switch_pause(false);
	return r;
}

long edge_syscall_pointer(long number, long code, unsigned long address)
{
	long r = code == ARCH_SET_FS ?
			 move_pointer(address) :
			 sys_pass_on(number, code, (long)address, 0, 0, 0, 0);

	if (r >= 0)
		return r;
	errno = (int)-r;
	return -1;
}

EDGE int arch_prctl(int code, unsigned long address);

int arch_prctl(int code, unsigned long address)
{
	return (int)edge_syscall_pointer(SYS_arch_prctl, code, address);
}

#endif
