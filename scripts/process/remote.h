/*
 * A thread of another process that is stopped, and calls of functions on it.
 *
 * A call happens as the kernel calls a signal handler: a signal frame with all registers,
 * the floating point state and the signal mask is written to the thread's stack, and the
 * function returns into libc's rt_sigreturn.  So the thread restores itself even if
 * profrun is killed at any moment of the call.
 */
#ifndef PROCESS_REMOTE_H
#define PROCESS_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define REMOTE_XSTATE_MAX 16384

/* Addresses in the process's libc. */
struct libc_code {
	uint64_t keep_result;  /* mov %rax, (%rbx); pop %rbx; ret */
	uint64_t pop_argument; /* pop %rdi; ret */
	uint64_t sigreturn;    /* code that calls rt_sigreturn */
	uint64_t setcontext, syscall;
};

struct remote {
	pid_t pid, tid;
	int memory; /* /proc/PID/mem */
	const struct libc_code
		*code; /* set by the caller before the first call */
	/* Called again and again while a function runs; NULL: none. */
	void (*look)(void *argument);
	void *argument;
	uint64_t limit_ns; /* of a call; 0: none */
	/* The thread at the stop. */
	struct user_regs_struct registers;
	unsigned char xstate[REMOTE_XSTATE_MAX];
	size_t xstate_size;
	uint64_t mask;
	bool is_stopped;
	bool repeats;	 /* it begins the system call in rax again */
	bool has_called; /* it waits after a call */
};

enum remote_result {
	REMOTE_DONE,
	REMOTE_GONE, /* the thread or its process has ended, or executed a program */
	REMOTE_STUCK, /* it does not stop: it waits in the kernel, or gets no processor */
	REMOTE_REFUSED, /* errno has the reason */
	REMOTE_NO_ROOM, /* its stack has no room */
	REMOTE_SLOW, /* it is not done in limit_ns; the thread goes on with it */
	REMOTE_LATE, /* it has gone on, because profrun got no processor in time */
};

/* The system call that the stopped thread is in, and in which it goes on; *@next: the
 * instruction after it.  False if there is no system call. */
bool remote_open_call(const struct remote *remote, uint64_t *number,
		      uint64_t *next);

/* Stops @tid and reads its registers.  The thread stays stopped. */
enum remote_result remote_stop(struct remote *remote, pid_t tid);
/* Takes @tid, which the caller has stopped by PTRACE_INTERRUPT.  False if it has ended. */
bool remote_take(struct remote *remote, pid_t tid);
/* Leaves such a thread to the caller again, stopped and unchanged. */
void remote_give_back(struct remote *remote);
/* Lets the thread continue where it was stopped, and ends the tracing. */
void remote_release(struct remote *remote);

/*
 * remote_call - calls a function on the stopped thread
 *
 * Blocks all signals from the first call until remote_release().  Only that function
 * lets the thread continue where it was stopped.  The result of the function is stored in *@result.
 */
struct remote_function {
	uint64_t address;
	uint64_t arguments[6];
	uint64_t stack; /* the end of a stack; 0: the thread's own */
};

enum remote_result remote_call(struct remote *remote,
			       const struct remote_function *function,
			       uint64_t *result);

bool remote_read(const struct remote *remote, uint64_t address, void *bytes,
		 size_t size);
bool remote_write(const struct remote *remote, uint64_t address,
		  const void *bytes, size_t size);

#endif
