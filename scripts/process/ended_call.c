/*
 * The kernel begins most system calls again that a tracer's stop has interrupted.  For some
 * it does not: those that end with EINTR also where SA_RESTART is set.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "process/ended_call.h"

/* Signals that wait for the thread, and that it does not block. */
static bool has_signals(pid_t pid, pid_t tid, uint64_t mask)
{
	char path[64], *line = NULL;
	uint64_t pending = 0, value;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid,
		 (int)tid);
	file = fopen(path, "re");
	while (file && getline(&line, &size, file) > 0)
		if (sscanf(line, "SigPnd: %" SCNx64, &value) == 1 ||
		    sscanf(line, "ShdPnd: %" SCNx64, &value) == 1)
			pending |= value;
	free(line);
	if (file)
		fclose(file);
	return (pending & ~mask) != 0;
}

static bool ends_at_stops(long number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_msgrcv:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	/* Of sockets with SO_RCVTIMEO or SO_SNDTIMEO. */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect: return true;
	default: return false;
	}
}

bool ended_call_repeat(pid_t pid, pid_t tid, uint64_t mask,
		       struct user_regs_struct *registers)
{
	if ((long)registers->rax != -EINTR ||
	    !ends_at_stops((long)registers->orig_rax) ||
	    has_signals(pid, tid, mask))
		return false;
	registers->rip -= 2; /* the instruction syscall */
	registers->rax = registers->orig_rax;
	registers->orig_rax = (unsigned long)-1;
	return true;
}

bool ended_call_is_unlimited(const struct user_regs_struct *registers)
{
	if ((long)registers->rax != -EINTR)
		return false;
	switch ((long)registers->orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait: return (int)registers->r10 < 0;
	case SYS_epoll_pwait2:
	case SYS_semtimedop: return registers->r10 == 0;
	case SYS_rt_sigtimedwait: return registers->rdx == 0;
	case SYS_io_getevents: return registers->r8 == 0;
	case SYS_semop:
	case SYS_msgrcv: return true;
	default: return false;
	}
}
