/*
 * A thread is safe if its whole stack is known, from the function that it runs to the
 * first function of the thread; and if each frame of libc on it is harmless:
 *
 *   - the outermost ones, which have called main or the thread's function;
 *   - the innermost ones, while the thread waits in a system call that libc makes
 *     without holding a lock of its allocator or linker.
 *
 * A sample that interrupts such a call leaves the thread in shim's signal handler, which
 * makes the call again.  It holds no lock then.
 *
 * A thread that runs is not among no-ops, which shim may change.
 */
#include <string.h>
#include <sys/syscall.h>

#include "process/remote_symbols.h"
#include "process/safe.h"

#define ENTRY_SIZE 64 /* of _start */

static bool is_among(const char *name, const char *const *list)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* libc's functions that wait for a futex and hold no lock. */
static const char *const waits[] = {
	"pthread_cond_wait",
	"pthread_cond_timedwait",
	"pthread_cond_clockwait",
	"pthread_mutex_lock",
	"pthread_mutex_timedlock",
	"pthread_mutex_clocklock",
	"__pthread_mutex_lock",
	"pthread_join",
	"__pthread_mutex_timedlock",
	"pthread_timedjoin_np",
	"pthread_clockjoin_np",
	"pthread_barrier_wait",
	"pthread_rwlock_rdlock",
	"pthread_rwlock_wrlock",
	"__pthread_rwlock_rdlock",
	"__pthread_rwlock_wrlock",
	"pthread_rwlock_timedrdlock",
	"pthread_rwlock_timedwrlock",
	"sem_wait",
	"sem_timedwait",
	"sem_clockwait",
	"cnd_wait",
	"cnd_timedwait",
	"mtx_lock",
	"mtx_timedlock",
	"thrd_join",
	"syscall",
	NULL,
};

/* System calls in which the allocator and the linker of libc never wait. */
static bool is_harmless_wait(long number)
{
	switch (number) {
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_flock: return true;
	default: return false;
	}
}

static bool is_in_libc(struct safe *safe, uint64_t address)
{
	const struct module *module = space_module(safe->space, address);

	return module && module->start == safe->libc;
}

/* The end of shim's arch_call_with_mask(): mov 48(%rbx), %r9; syscall; pop %rbx; ret. */
static const unsigned char repeating[] = { 0x4c, 0x8b, 0x4b, 0x30,
					   0x0f, 0x05, 0x5b, 0xc3 };
#define REPEATING_CALL 4 /* offset of the system call */

/* The system call in which the thread is, or that it makes again. */
static long number_of_call(const struct remote *remote)
{
	return (long)(remote->repeats ? remote->registers.rax :
					remote->registers.orig_rax);
}

/* The waits that shim makes again with a mask in their arguments, and never for itself. */
static bool is_masked_wait(long number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_pause:
	case SYS_ppoll:
	case SYS_pselect6:
	case SYS_rt_sigsuspend: return true;
	default: return false;
	}
}

static bool is_repeating_code(const struct remote *remote)
{
	uint64_t at = remote->registers.rip - REPEATING_CALL;
	unsigned char code[sizeof(repeating)];

	if (!remote->repeats)
		at -= 2; /* the system call's size */
	return remote_read(remote, at, code, sizeof(code)) &&
	       memcmp(code, repeating, sizeof(code)) == 0;
}

/* The number of frames of shim's signal handler, while it makes the system call again that
 * the signal has interrupted; otherwise 0. */
static uint32_t repeating_frames(struct safe *safe, const struct remote *remote,
				 uint32_t count)
{
	const struct module *module = space_module(safe->space,
						   remote->registers.rip);
	uint64_t shim = module ? module->start : 0;
	uint32_t i;

	if (!is_masked_wait(number_of_call(remote)) &&
	    !is_repeating_code(remote))
		return 0;
	for (i = 0; i < count; i++) {
		module = space_module(safe->space,
				      safe->frames[i] & ~UNWIND_SIGNAL);
		if (!module || module->start != shim)
			return 0;
		if (safe->frames[i] & UNWIND_SIGNAL)
			return i + 1;
	}
	return 0;
}

/* Whether the innermost frames, all of libc, are those of a harmless wait.  The program has
 * called @outermost, the last one. */
static bool waits_harmlessly(const struct safe *safe,
			     const struct remote *remote, uint64_t outermost)
{
	long number = number_of_call(remote);
	char name[64];

	if (is_harmless_wait(number))
		return true;
	return number == SYS_futex &&
	       remote_function(remote, safe->libc, outermost, name) &&
	       is_among(name, waits);
}

/* Whether the frame is that of _start, which calls libc. */
static bool is_entry(struct safe *safe, const struct remote *remote,
		     uint64_t address)
{
	const struct module *module = space_module(safe->space, address);

	return module &&
	       address - remote_entry(remote, module->start) < ENTRY_SIZE;
}

/* Whether the next instruction is a no-op: compilers leave room for calls at entries, and shim
 * may write a jump over several no-ops, which the thread has begun to execute. */
static bool is_among_nops(const struct remote *remote)
{
	unsigned char code[3];

	if (!remote_read(remote, remote->registers.rip, code, sizeof(code)))
		return false;
	return code[0] == 0x90 || (code[0] == 0x66 && code[1] == 0x90) ||
	       (code[0] == 0x0f && code[1] == 0x1f) ||
	       (code[0] == 0x66 && code[1] == 0x0f && code[2] == 0x1f);
}

const char *safe_reason(struct safe *safe, const struct remote *remote)
{
	const struct unwind_from from = { .registers = &remote->registers };
	uint64_t *frames = safe->frames;
	uint32_t count = unwinder_frames(safe->unwinder, &from, frames);
	uint32_t repeats = repeating_frames(safe, remote, count);
	uint32_t inner = 0, outer, i;

	frames += repeats;
	count -= repeats;
	if (count > 0 && is_entry(safe, remote, frames[count - 1]))
		count--;
	outer = count;
	while (inner < count && is_in_libc(safe, frames[inner]))
		inner++;
	while (outer > inner && is_in_libc(safe, frames[outer - 1]))
		outer--;
	for (i = 0; i < count; i++) {
		const struct module *module;

		if (frames[i] & UNWIND_SIGNAL)
			return "in a signal handler";
		module = space_module(safe->space, frames[i]);
		if (!module)
			return "in code without a file";
		if (begins_with(module->name, "ld-"))
			return "in the dynamic linker";
		if (begins_with(module->name, "libgcc_s"))
			return "throwing an exception";
		if (i >= inner && i < outer && module->start == safe->libc)
			return "in a function that libc has called";
	}
	if (outer == count)
		return "on a stack that cannot be unwound";
	/* A thread that has not begun, or has ended its own function. */
	if (inner == count)
		return "starting or ending";
	if (inner > 0 && !waits_harmlessly(safe, remote, frames[inner - 1]))
		return "in a function of libc";
	if (inner == 0 && repeats > 0)
		return "in a signal handler";
	if (inner == 0 && safe->has_other_malloc)
		return "running, and may be in the program's own malloc";
	if (inner == 0 && is_among_nops(remote))
		return "among no-ops";
	return NULL;
}
