/*
 * Calls functions on a stopped thread of another process.
 *
 * The frame on the stack, from low to high addresses:
 *
 *     the function's return address: libc's code that stores the result at %rbx
 *     a word for its pop, and its return address: libc's code for pop %rdi
 *     its word, the context of the wait; and its return address: libc's setcontext
 *     the return address of the wait, libc's syscall(SYS_ppoll): libc's rt_sigreturn
 *     ucontext and siginfo of a signal frame
 *     the context of the wait, its time limit; the floating point state; the result
 *
 * The thread runs without a stop to its wait, where profrun stops it when it sees the
 * result.  A stop at each system call would cost the thread its processor each time.  From
 * the wait the next call begins, or profrun restores all registers by ptrace.  That also
 * restores what a signal frame cannot: the state of a system call that the first stop has
 * interrupted, which the kernel continues; neither setcontext nor ppoll changes it.  If
 * profrun is killed before, the wait ends after a second, rt_sigreturn restores the thread,
 * and the thread begins the interrupted call again.
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

#include "base/seconds.h"
#include "process/ended_call.h"
#include "process/remote.h"
#include "process/stop_wait.h"

#define SYSCALL_SIZE	  2
#define RED_ZONE	  128
#define RESULT_ROOM	  64
#define RESULT_UNSET	  0x6d6968732d746f6eull /* no address, no status */
#define FP_XSTATE_MAGIC1_ 0x46505853u
#define FP_XSTATE_MAGIC2_ 0x46505845u
#define SW_BYTES	  464 /* of struct _fpx_sw_bytes in the state */
#define FLAG_FP_XSTATE	  1u  /* UC_FP_XSTATE */
#define FLAGS_SS	  6u  /* UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */
#define NO_CHANGE \
	7u /* the kernel ignores an alternate stack with these flags */
#define WAIT_S		1
#define SURELY_WAITS_NS 900000000u /* a bit less */
#define LOOK_NS		50000

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

/* A thread that has just stopped, and for which no signal waits. */
static void take(struct remote *remote)
{
	remote->is_stopped = true;
	remote->repeats = ended_call_repeat(remote->pid, remote->tid,
					    remote->mask, &remote->registers);
}

enum remote_result remote_stop(struct remote *remote, pid_t tid)
{
	enum remote_result result;
	int status;

	remote->tid = tid;
	remote->is_stopped = remote->has_called = false;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) < 0)
		return errno == ESRCH ? REMOTE_GONE : REMOTE_REFUSED;
	result = interrupt(remote);
	if (result == REMOTE_DONE && !read_state(remote))
		result = REMOTE_GONE;
	/* An exec of the process waits until the tracer of a thread that has ended has
	 * seen its end. */
	if (result == REMOTE_GONE && ptrace(PTRACE_DETACH, tid, 0, 0) < 0)
		stop_wait(tid, &status);
	if (result == REMOTE_DONE)
		take(remote);
	return result;
}

bool remote_take(struct remote *remote, pid_t tid)
{
	remote->tid = tid;
	remote->is_stopped = remote->has_called = false;
	if (!read_state(remote))
		return false;
	take(remote);
	return true;
}

void remote_give_back(struct remote *remote)
{
	remote->is_stopped = false;
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
	uint64_t pop_argument;
	uint64_t argument; /* the address of @wait */
	uint64_t setcontext;
	uint64_t sigreturn; /* return address of the wait */
	struct kernel_context context;
	siginfo_t info;
	ucontext_t wait;
	struct timespec limit;
};

/* Where the parts of a frame are in the process. */
struct places {
	uint64_t frame, fpstate, result;
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

/* Whether the kernel continues a system call, or begins it again. */
static bool is_interrupted(const struct user_regs_struct *now)
{
	if ((long)now->orig_rax < 0)
		return false;
	switch (-(long)now->rax) {
	case ERESTARTSYS_:
	case ERESTARTNOINTR_:
	case ERESTARTNOHAND_:
	case ERESTART_RESTARTBLOCK_: return true;
	default: return false;
	}
}

/* The stop has interrupted a system call: the thread begins it again.  (With ptrace, the
 * kernel continues it.) */
static void begin_call_again(const struct remote *remote, uint64_t *rip,
			     uint64_t *rax)
{
	const struct user_regs_struct *now = &remote->registers;

	*rip = now->rip;
	*rax = now->rax;
	if (is_interrupted(now)) {
		*rip -= SYSCALL_SIZE;
		*rax = number_of_call(remote);
	}
}

bool remote_open_call(const struct remote *remote, uint64_t *number,
		      uint64_t *next)
{
	const struct user_regs_struct *now = &remote->registers;

	*number = remote->repeats ? now->rax : now->orig_rax;
	*next = remote->repeats ? now->rip + SYSCALL_SIZE : now->rip;
	return remote->repeats || is_interrupted(now);
}

static void fill_context(const struct remote *remote, uint64_t fpstate,
			 struct kernel_context *context)
{
	const struct user_regs_struct *now = &remote->registers;
	uint64_t rip, rax;

	begin_call_again(remote, &rip, &rax);
	*context = (struct kernel_context){
		.flags = FLAG_FP_XSTATE | FLAGS_SS,
		.stack.ss_flags = NO_CHANGE,
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

/* The context in which setcontext calls syscall(SYS_ppoll, NULL, 0, &limit, NULL, 8). */
static void fill_wait(const struct remote *remote, uint64_t frame,
		      ucontext_t *wait)
{
	greg_t *registers = wait->uc_mcontext.gregs;
	uint64_t state = frame + offsetof(struct frame, wait) +
			 offsetof(ucontext_t, __fpregs_mem);

	memset(&wait->uc_sigmask, 0xff, sizeof(wait->uc_sigmask));
	registers[REG_RIP] = (greg_t)remote->code->syscall;
	registers[REG_RSP] = (greg_t)(frame +
				      offsetof(struct frame, sigreturn));
	registers[REG_RDI] = SYS_ppoll;
	registers[REG_RCX] = (greg_t)(frame + offsetof(struct frame, limit));
	registers[REG_R9] = sizeof(uint64_t);
	memcpy(&wait->uc_mcontext.fpregs, &state, sizeof(state));
	/* As after finit. */
	wait->__fpregs_mem.cwd = 0x37f;
	wait->__fpregs_mem.ftw = 0xffff;
	wait->__fpregs_mem.mxcsr = 0x1f80;
}

/* Writes the frame below @top.  False without room. */
static bool write_frame(const struct remote *remote, uint64_t top,
			struct places *places)
{
	static unsigned char fpstate[REMOTE_XSTATE_MAX + 64];
	size_t fpstate_size = fill_fpstate(remote, fpstate);
	struct frame frame = {
		.keep_result = remote->code->keep_result,
		.pop_argument = remote->code->pop_argument,
		.setcontext = remote->code->setcontext,
		.sigreturn = remote->code->sigreturn,
		.limit = { .tv_sec = WAIT_S },
	};
	uint64_t unset = RESULT_UNSET, at;

	places->result = (top - RESULT_ROOM) & ~(uint64_t)63;
	places->fpstate = (places->result - fpstate_size) & ~(uint64_t)63;
	/* At its first instruction, a function has the return address at an address that
	 * is 8 modulo 16. */
	at = ((places->fpstate - sizeof(frame)) & ~(uint64_t)15) - 8;
	places->frame = at;
	frame.argument = at + offsetof(struct frame, wait);
	fill_context(remote, places->fpstate, &frame.context);
	fill_wait(remote, at, &frame.wait);
	return remote_write(remote, places->result, &unset, sizeof(unset)) &&
	       remote_write(remote, places->fpstate, fpstate, fpstate_size) &&
	       remote_write(remote, at, &frame, sizeof(frame));
}

/* --- the call --- */

static bool get_registers(const struct remote *remote,
			  struct user_regs_struct *now)
{
	struct iovec iovec = { now, sizeof(*now) };

	return ptrace(PTRACE_GETREGSET, remote->tid,
		      (void *)(intptr_t)NT_PRSTATUS, &iovec) == 0;
}

/* Whether the stopped thread is in the wait. */
static bool is_in_wait(const struct remote *remote, const struct places *places)
{
	struct user_regs_struct now;

	return get_registers(remote, &now) && (long)now.orig_rax == SYS_ppoll &&
	       now.rsp == places->frame + offsetof(struct frame, sigreturn);
}

/* Runs the thread until the function has returned.  *@since is a time before that. */
static enum remote_result run_to_result(struct remote *remote, uint64_t at,
					uint64_t *result, uint64_t *since)
{
	static const struct timespec pause = { 0, LOOK_NS };
	uint64_t begin = ns_of(CLOCK_MONOTONIC);
	int status;

	if (ptrace(PTRACE_CONT, remote->tid, 0, 0) < 0)
		return REMOTE_GONE;
	for (;;) {
		*since = ns_of(CLOCK_MONOTONIC);
		if (remote->limit_ns && *since - begin > remote->limit_ns)
			return REMOTE_SLOW;
		if (!remote_read(remote, at, result, sizeof(*result)))
			return REMOTE_GONE;
		if (*result != RESULT_UNSET)
			return REMOTE_DONE;
		if (waitpid(remote->tid, &status, __WALL | WNOHANG) > 0) {
			/* SIGSTOP, or a group stop. */
			if (!WIFSTOPPED(status) ||
			    ptrace(PTRACE_CONT, remote->tid, 0, 0) < 0)
				return REMOTE_GONE;
		}
		if (remote->look)
			remote->look(remote->argument);
		nanosleep(&pause, NULL);
	}
}

/* Stops the thread in its wait. */
static enum remote_result run_to_wait(struct remote *remote,
				      const struct places *places,
				      uint64_t *result)
{
	uint64_t since;
	enum remote_result done;

	done = run_to_result(remote, places->result, result, &since);
	if (done == REMOTE_SLOW && interrupt(remote) == REMOTE_DONE)
		ptrace(PTRACE_DETACH, remote->tid, 0, 0);
	if (done == REMOTE_DONE)
		do
			done = interrupt(remote);
		while (done == REMOTE_STUCK);
	if (done == REMOTE_DONE &&
	    ns_of(CLOCK_MONOTONIC) - since > SURELY_WAITS_NS &&
	    !is_in_wait(remote, places)) {
		/* It has restored itself. */
		ptrace(PTRACE_DETACH, remote->tid, 0, 0);
		done = REMOTE_LATE;
	}
	return done;
}

enum remote_result remote_call(struct remote *remote,
			       const struct remote_function *function,
			       uint64_t *result)
{
	struct user_regs_struct registers = remote->registers;
	uint64_t top = function->stack ? function->stack :
					 registers.rsp - RED_ZONE;
	struct places places;
	enum remote_result done;

	if (!write_frame(remote, top, &places))
		return REMOTE_NO_ROOM;
	registers.rip = function->address;
	registers.rsp = places.frame;
	registers.rbx = places.result;
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
	done = run_to_wait(remote, &places, result);
	remote->has_called = done == REMOTE_DONE;
	if (done != REMOTE_DONE)
		remote->is_stopped = false;
	return done;
}

/* Restores what a call has changed, but for the registers.  At any moment the thread could
 * go on alone: from its wait, rt_sigreturn restores all. */
static void restore(struct remote *remote)
{
	struct iovec xstate = { remote->xstate, remote->xstate_size };

	ptrace(PTRACE_SETREGSET, remote->tid, (void *)(intptr_t)NT_X86_XSTATE,
	       &xstate);
	set_mask(remote, remote->mask);
}

void remote_release(struct remote *remote)
{
	if (remote->is_stopped && remote->has_called)
		restore(remote);
	if (remote->is_stopped) {
		/* The registers may begin an ended call again. */
		set_registers(remote, &remote->registers);
		ptrace(PTRACE_DETACH, remote->tid, 0, 0);
	}
	remote->is_stopped = remote->has_called = false;
}
