/*
 * Calls functions on a stopped thread of another process.
 *
 * The frame on the stack, from low to high addresses:
 *
 *     the function's return address: libc's code that stores the result at %rbx
 *     a word for its pop, and its return address: libc's rt_sigreturn
 *     ucontext and siginfo of a signal frame; the floating point state
 *     the result
 *
 * With PTRACE_SYSCALL the thread stops at each system call, which is slow; so a function
 * of shim, which makes many, runs to a wait at its end before.  At rt_sigreturn the call is
 * done.  From there the next call begins, or profrun lets the thread go on: it skips the
 * system call, and restores all registers by ptrace.  That also restores what a signal
 * frame cannot: the state of a system call that the stop has interrupted, which the kernel
 * continues.  If profrun is killed before, rt_sigreturn restores the thread, and the thread
 * begins the interrupted call again.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "process/ended_call.h"
#include "process/remote.h"
#include "process/stop_wait.h"

#define RED_ZONE	  128
#define RESULT_ROOM	  64
#define FP_XSTATE_MAGIC1_ 0x46505853u
#define FP_XSTATE_MAGIC2_ 0x46505845u
#define SW_BYTES	  464 /* of struct _fpx_sw_bytes in the state */
#define FLAG_FP_XSTATE	  1u  /* UC_FP_XSTATE */
#define FLAGS_SS	  6u  /* UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */

/* Results of interrupted system calls, which only a tracer sees. */
#define ERESTARTSYS_	       512
#define ERESTARTNOINTR_	       513
#define ERESTARTNOHAND_	       514
#define ERESTART_RESTARTBLOCK_ 516

bool remote_read(const struct remote *remote, uint64_t address, void *bytes,
		 size_t size)
{
	return pread(remote->memory, bytes, size, (off_t)address) ==
	       (ssize_t)size;
}

bool remote_write(const struct remote *remote, uint64_t address,
		  const void *bytes, size_t size)
{
	return pwrite(remote->memory, bytes, size, (off_t)address) ==
	       (ssize_t)size;
}

static bool set_registers(const struct remote *remote,
			  struct user_regs_struct *registers)
{
	struct iovec iovec = { registers, sizeof(*registers) };

	return ptrace(PTRACE_SETREGSET, remote->tid,
		      (void *)(intptr_t)NT_PRSTATUS, &iovec) == 0;
}

static bool set_mask(const struct remote *remote, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, remote->tid, (void *)sizeof(mask),
		      &mask) == 0;
}

/* --- stopping --- */

static enum remote_result wait_for_stop(struct remote *remote, int *status)
{
	switch (stop_wait(remote->tid, status)) {
	case STOP_DONE: return REMOTE_DONE;
	case STOP_STUCK: return REMOTE_STUCK;
	default: return REMOTE_GONE;
	}
}

static bool read_state(struct remote *remote)
{
	struct iovec registers = { &remote->registers,
				   sizeof(remote->registers) };
	struct iovec xstate = { remote->xstate, sizeof(remote->xstate) };

	if (ptrace(PTRACE_GETREGSET, remote->tid, (void *)(intptr_t)NT_PRSTATUS,
		   &registers) < 0 ||
	    ptrace(PTRACE_GETREGSET, remote->tid,
		   (void *)(intptr_t)NT_X86_XSTATE, &xstate) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, remote->tid, (void *)sizeof(remote->mask),
		   &remote->mask) < 0)
		return false;
	remote->xstate_size = xstate.iov_len;
	return true;
}

/* Stops a seized thread where it is outside of a call of ptrace.  A signal that arrives
 * first is passed on. */
static enum remote_result interrupt(struct remote *remote)
{
	enum remote_result result;
	int status;

	for (;;) {
		/* A stop for a signal takes back what was asked for before. */
		if (ptrace(PTRACE_INTERRUPT, remote->tid, 0, 0) < 0)
			return REMOTE_GONE;
		result = wait_for_stop(remote, &status);
		if (result != REMOTE_DONE || status >> 16 == PTRACE_EVENT_STOP)
			return result;
		if (ptrace(PTRACE_CONT, remote->tid, 0,
			   (void *)(intptr_t)(WSTOPSIG(status) == SIGTRAP &&
							      status >> 16 ?
						      0 :
						      WSTOPSIG(status))) < 0)
			return REMOTE_GONE;
	}
}

enum remote_result remote_stop(struct remote *remote, pid_t tid)
{
	enum remote_result result;
	int status;

	remote->tid = tid;
	remote->is_stopped = remote->has_called = false;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) < 0)
		return errno == ESRCH ? REMOTE_GONE : REMOTE_REFUSED;
	result = interrupt(remote);
	if (result == REMOTE_DONE && !read_state(remote))
		result = REMOTE_GONE;
	/* An exec of the process waits until the tracer of a thread that has ended has
	 * seen its end. */
	if (result == REMOTE_GONE && ptrace(PTRACE_DETACH, tid, 0, 0) < 0)
		stop_wait(tid, &status);
	if (result != REMOTE_DONE)
		return result;
	remote->is_stopped = true;
	remote->repeats = ended_call_repeat(remote->pid, tid, remote->mask,
					    &remote->registers);
	return REMOTE_DONE;
}

/* --- the signal frame --- */

struct kernel_context {
	unsigned long flags;
	void *link;
	stack_t stack;
	uint64_t registers[23]; /* struct sigcontext, up to cr2 */
	uint64_t fpstate;
	uint64_t reserved[8];
	uint64_t mask;
};

struct frame {
	uint64_t keep_result; /* return address of the function */
	uint64_t popped;
	uint64_t sigreturn;
	struct kernel_context context;
	siginfo_t info;
};

/* The system call that the thread is in.  After an earlier stop that is restart_syscall,
 * which works only once; then the instruction before has the number: mov $N, %eax. */
static uint64_t number_of_call(const struct remote *remote)
{
	const struct user_regs_struct *now = &remote->registers;
	unsigned char code[5];
	uint32_t number;

	if (now->orig_rax != SYS_restart_syscall ||
	    !remote_read(remote, now->rip - 7, code, sizeof(code)) ||
	    code[0] != 0xb8)
		return now->orig_rax;
	memcpy(&number, code + 1, sizeof(number));
	return number;
}

/* The stop has interrupted a system call: the thread begins it again.  (With ptrace, the
 * kernel continues it.) */
static void begin_call_again(const struct remote *remote, uint64_t *rip,
			     uint64_t *rax)
{
	const struct user_regs_struct *now = &remote->registers;

	*rip = now->rip;
	*rax = now->rax;
	if ((long)now->orig_rax < 0)
		return;
	switch (-(long)now->rax) {
	case ERESTARTSYS_:
	case ERESTARTNOINTR_:
	case ERESTARTNOHAND_:
	case ERESTART_RESTARTBLOCK_: *rip -= 2; *rax = number_of_call(remote);
	}
}

static void fill_context(const struct remote *remote, uint64_t fpstate,
			 struct kernel_context *context)
{
	const struct user_regs_struct *now = &remote->registers;
	uint64_t rip, rax;

	begin_call_again(remote, &rip, &rax);
	*context = (struct kernel_context){
		.flags = FLAG_FP_XSTATE | FLAGS_SS,
		.stack.ss_flags = SS_DISABLE,
		.registers = { now->r8,
			       now->r9,
			       now->r10,
			       now->r11,
			       now->r12,
			       now->r13,
			       now->r14,
			       now->r15,
			       now->rdi,
			       now->rsi,
			       now->rbp,
			       now->rbx,
			       now->rdx,
			       rax,
			       now->rcx,
			       now->rsp,
			       rip,
			       now->eflags,
			       (now->cs & 0xffff) | (now->ss & 0xffff) << 48,
			       0,
			       0,
			       remote->mask,
			       0 },
		.fpstate = fpstate,
		.mask = remote->mask,
	};
}

/* Marks the copy of the state as the kernel marks it in a signal frame. */
static size_t fill_fpstate(const struct remote *remote, unsigned char *bytes)
{
	uint32_t magic1 = FP_XSTATE_MAGIC1_, magic2 = FP_XSTATE_MAGIC2_;
	uint32_t size = (uint32_t)remote->xstate_size, extended = size + 4;
	uint64_t features;

	memcpy(bytes, remote->xstate, size);
	/* ptrace stores the kernel's features here. */
	memcpy(&features, remote->xstate + SW_BYTES, sizeof(features));
	memset(bytes + SW_BYTES, 0, 48);
	memcpy(bytes + SW_BYTES, &magic1, 4);
	memcpy(bytes + SW_BYTES + 4, &extended, 4);
	memcpy(bytes + SW_BYTES + 8, &features, 8);
	memcpy(bytes + SW_BYTES + 16, &size, 4);
	memcpy(bytes + size, &magic2, 4);
	return size + 4;
}

/* Writes the frame below @top.  Returns its address; 0 without room.  *@result is the
 * address of the result. */
static uint64_t write_frame(const struct remote *remote, uint64_t top,
			    uint64_t *result)
{
	static unsigned char fpstate[REMOTE_XSTATE_MAX + 64];
	size_t fpstate_size = fill_fpstate(remote, fpstate);
	struct frame frame = { .keep_result = remote->keep_result,
			       .sigreturn = remote->sigreturn };
	uint64_t zero = 0, at, fpstate_at;

	*result = (top - RESULT_ROOM) & ~(uint64_t)63;
	fpstate_at = (*result - fpstate_size) & ~(uint64_t)63;
	/* At its first instruction, a function has the return address at an address that
	 * is 8 modulo 16. */
	at = ((fpstate_at - sizeof(frame)) & ~(uint64_t)15) - 8;
	fill_context(remote, fpstate_at, &frame.context);
	if (!remote_write(remote, *result, &zero, sizeof(zero)) ||
	    !remote_write(remote, fpstate_at, fpstate, fpstate_size) ||
	    !remote_write(remote, at, &frame, sizeof(frame)))
		return 0;
	return at;
}

/* --- the call --- */

static void note_failure(struct remote *remote,
			 const struct user_regs_struct *now)
{
	long result = (long)now->rax;

	if (result < 0 && result > -4096 && result != -ENOSYS &&
	    result != -ENOENT) {
		remote->failed_call = (long)now->orig_rax;
		remote->failed_error = (int)-result;
	}
}

/* Runs the thread until it is about to call rt_sigreturn. */
static enum remote_result run_to_sigreturn(struct remote *remote)
{
	struct user_regs_struct now;
	struct iovec iovec = { &now, sizeof(now) };
	/* After the first call, the skipped rt_sigreturn ends first. */
	bool is_entry = !remote->has_called;
	enum remote_result result;
	int status;

	remote->has_called = false;
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, remote->tid, 0, 0) < 0)
			return REMOTE_GONE;
		do
			result = wait_for_stop(remote, &status);
		while (result == REMOTE_STUCK);
		if (result != REMOTE_DONE)
			return result;
		/* SIGSTOP, or a group stop. */
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (ptrace(PTRACE_GETREGSET, remote->tid,
			   (void *)(intptr_t)NT_PRSTATUS, &iovec) < 0)
			return REMOTE_GONE;
		if (!is_entry)
			note_failure(remote, &now);
		else if (now.orig_rax == SYS_rt_sigreturn)
			return REMOTE_DONE;
		is_entry = !is_entry;
	}
}

/*
 * The thread is about to call rt_sigreturn.  Restores it, skips the system call, and stops
 * it where it was.  At this stop, the kernel still continues an interrupted call.  After each step the thread could go on alone: first rt_sigreturn
 * still restores all; then the registers, which change at once, are those of the program.
 */
static enum remote_result restore(struct remote *remote)
{
	struct iovec xstate = { remote->xstate, remote->xstate_size };
	struct user_regs_struct registers = remote->registers;
	uint64_t rip, rax;
	enum remote_result result;

	begin_call_again(remote, &rip, &rax);
	registers.rip = rip;
	registers.rax = rax;
	registers.orig_rax = (unsigned long)-1;
	if (ptrace(PTRACE_SETREGSET, remote->tid,
		   (void *)(intptr_t)NT_X86_XSTATE, &xstate) < 0 ||
	    !set_mask(remote, remote->mask) ||
	    !set_registers(remote, &registers) ||
	    ptrace(PTRACE_INTERRUPT, remote->tid, 0, 0) < 0 ||
	    ptrace(PTRACE_CONT, remote->tid, 0, 0) < 0)
		return REMOTE_GONE;
	result = interrupt(remote);
	return result;
}

/* Runs the thread until its function waits for profrun. */
static enum remote_result run_to_wait(struct remote *remote, uint64_t done)
{
	static const struct timespec pause = { 0, 100000 };
	uint32_t word = 0, seen = REMOTE_SEEN;
	enum remote_result result;
	int status;

	remote->has_called = false;
	if (ptrace(PTRACE_CONT, remote->tid, 0, 0) < 0)
		return REMOTE_GONE;
	while (word != REMOTE_WAITS) {
		nanosleep(&pause, NULL);
		if (waitpid(remote->tid, &status, __WALL | WNOHANG) > 0) {
			if (!WIFSTOPPED(status))
				return REMOTE_GONE;
			ptrace(PTRACE_CONT, remote->tid, 0, 0);
		}
		if (!remote_read(remote, done, &word, sizeof(word)))
			return REMOTE_GONE;
	}
	result = interrupt(remote);
	if (result == REMOTE_DONE &&
	    !remote_write(remote, done, &seen, sizeof(seen)))
		return REMOTE_GONE;
	return result;
}

enum remote_result remote_call(struct remote *remote,
			       const struct remote_function *function,
			       uint64_t *result)
{
	struct user_regs_struct registers = remote->registers;
	uint64_t top = function->stack ? function->stack :
					 registers.rsp - RED_ZONE;
	uint64_t result_at, frame = write_frame(remote, top, &result_at);
	enum remote_result done;

	if (!frame)
		return REMOTE_NO_ROOM;
	remote->failed_error = 0;
	registers.rip = function->address;
	registers.rsp = frame;
	registers.rbx = result_at;
	registers.rax = 0;
	registers.orig_rax = (unsigned long)-1;
	registers.rdi = function->arguments[0];
	registers.rsi = function->arguments[1];
	registers.rdx = function->arguments[2];
	registers.rcx = function->arguments[3];
	registers.r8 = function->arguments[4];
	registers.r9 = function->arguments[5];
	/* The direction flag is clear at a call, and the trap flag is not ours. */
	registers.eflags &= ~(1ul << 10);
	/* The registers come first: with them, the thread restores itself. */
	if (!set_registers(remote, &registers) || !set_mask(remote, ~0ull))
		return REMOTE_GONE;
	done = function->done ? run_to_wait(remote, function->done) :
				REMOTE_DONE;
	if (done == REMOTE_DONE)
		done = run_to_sigreturn(remote);
	if (done == REMOTE_DONE &&
	    !remote_read(remote, result_at, result, sizeof(*result)))
		done = REMOTE_GONE;
	remote->has_called = done == REMOTE_DONE;
	if (done != REMOTE_DONE)
		remote->is_stopped = false;
	return done;
}

void remote_release(struct remote *remote)
{
	if (remote->is_stopped && remote->has_called)
		remote->is_stopped = restore(remote) == REMOTE_DONE;
	if (remote->is_stopped) {
		/* The registers may begin an ended call again. */
		set_registers(remote, &remote->registers);
		ptrace(PTRACE_DETACH, remote->tid, 0, 0);
	}
	remote->is_stopped = remote->has_called = false;
}
