/*
 * The functions that depend on the processor, for x86-64.  arch/generic has the same list.
 */
#ifndef SHIM_ARCH_H
#define SHIM_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call without libc: it keeps errno, uses no PLT, and is no cancellation
 * point.  Returns -errno on failure. */
static inline __attribute__((always_inline)) long
arch_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* Runs call(argument) on the stack that ends at @top (runtime.S). */
int arch_call_on_stack(int (*call)(void *), void *argument, void *top);

/* Calls callback(a, b, c, d, e); returns true if it has thrown an exception (runtime.S). */
bool arch_call_guarded(void (*callback)(void), uintptr_t a, uintptr_t b,
		       uintptr_t c, uintptr_t d, uintptr_t e);
/* The landing pad for the exception, which is in register 0. */
extern char arch_guard_caught[];

/*
 * Code that adds 1 to element @counter of the array whose address is at @word from the
 * thread pointer; if that is NULL, it jumps to the address that is stored at @slot.  It changes
 * r11 and the flags, which are free at a call of the compiler's hooks and at entries.
 */
#define ARCH_COUNTER_SIZE 32
static inline void arch_put_counter(unsigned char *code, intptr_t word,
				    uint32_t counter, const void *slot)
{
	static const unsigned char bytes[] = {
		0x64, 0x4c, 0x8b, 0x1c, 0x25, 0, 0, 0, 0, /* mov %fs:, %r11 */
		0x4d, 0x85, 0xdb,			  /* test %r11, %r11 */
		0x74, 0x08,				  /* jz 1f */
		0x49, 0xff, 0x83, 0,	0,    0, 0,	  /* incq (%r11) */
		0xc3,					  /* ret */
		0xff, 0x25, 0,	  0,	0,    0,	  /* 1: jmp *slot */
		0xcc, 0xcc, 0xcc, 0xcc,
	};
	int32_t numbers[] = { (int32_t)word, (int32_t)(counter * 8),
			      (int32_t)((uintptr_t)slot -
					((uintptr_t)code + 28)) };

	_Static_assert(sizeof(bytes) == ARCH_COUNTER_SIZE, "one line of code");
	for (unsigned i = 0; i < sizeof(bytes); i++)
		code[i] = bytes[i];
	__builtin_memcpy(code + 5, &numbers[0], 4);
	__builtin_memcpy(code + 17, &numbers[1], 4);
	__builtin_memcpy(code + 24, &numbers[2], 4);
}

/* Stores @word at any address by one instruction. */
static inline void arch_store_word(void *address, uint32_t word)
{
	__asm__ volatile("movl %1, (%0)" ::"r"(address), "r"(word) : "memory");
}

/* The floating point state of a thread: modes, such as rounding, and exception
 * flags. */
struct arch_floating {
	uint32_t mxcsr;
	uint16_t x87_control, x87_status;
};

/*
 * A hook may use floating point and change its modes.  shim restores the program's
 * state.  Storing the state takes a few cycles, loading it 20 or more.
 */
static inline void arch_floating_keep(struct arch_floating *floating)
{
	__asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfnstsw %2"
			 : "=m"(floating->mxcsr), "=m"(floating->x87_control),
			   "=m"(floating->x87_status));
}

/* dispatch.S */
void arch_floating_restore(const struct arch_floating *floating);

/* The frame that dispatch.S pushes for a slow hook; shim_elt_info points to it.  The first
 * three fields belong to dispatch/slow_hook.c. */
struct arch_frame {
	const void *entry;
	uint16_t event;
	/* 1: has rbx to r15; 2: also arch_arguments; 5: rbx to r15, and @near */
	uint16_t has_registers;
	uint32_t error; /* errno before the hook */
	uintptr_t info[4];
	const void *near;
	struct arch_floating floating;
	uintptr_t unused;
	uintptr_t rbx, rbp, r12, r13, r14, r15;
	uintptr_t function;
	const void *site;
	uintptr_t return_address;
};

/* Argument registers of an enter hook, which are below the frame. */
struct arch_arguments {
	uintptr_t rdx, rcx, r8, r9;
	unsigned char vectors[8][16];
};

static inline const struct arch_arguments *
arch_frame_arguments(const struct arch_frame *frame)
{
	return (const struct arch_arguments *)(const void *)frame - 1;
}

/* The arguments of a function at its beginning, where a mark is. */
struct arch_entry {
	uintptr_t integers[6];
	uintptr_t stack; /* where arguments on the stack begin */
	unsigned char vectors[8][16];
};

/* The registers with its result when it returns. */
struct arch_exit {
	uintptr_t integers[2];
	unsigned char vectors[2][16];
};

/* A frame without registers has the address of one of them in @near, or NULL. */
static inline const struct arch_entry *
arch_frame_entry(const struct arch_frame *frame)
{
	return frame->has_registers || frame->event != 0 ?
		       0 :
		       (const struct arch_entry *)frame->near;
}

static inline const struct arch_exit *
arch_frame_exit(const struct arch_frame *frame)
{
	return frame->has_registers || frame->event != 1 ?
		       0 :
		       (const struct arch_exit *)frame->near;
}

#define ARCH_FRAME_SET_NEAR(frame, values) ((void)((frame)->near = (values)))

/* The x87 registers with a result: st0, or st0 and st1. */
static inline void arch_read_long(unsigned char *to)
{
	__asm__ volatile("fstpt (%0)\n\tfldt (%0)" : : "r"(to) : "memory");
}

static inline void arch_read_longs(unsigned char *to)
{
	__asm__ volatile("fstpt (%0)\n\tfstpt 16(%0)\n\t"
			 "fldt 16(%0)\n\tfldt (%0)"
			 :
			 : "r"(to)
			 : "memory");
}

/* The value of has_registers if arch_arguments exist. */
#define ARCH_FRAME_ALL		    2
#define ARCH_FRAME_REGISTERS(frame) ((frame)->has_registers & 3)

/* The entry of the front table (inspect/code_cache.h) for this call of an enter hook,
 * or NULL.  With an entry, the frame has no arch_arguments. */
#define ARCH_HAS_NEAR
static inline const void *arch_frame_near(const struct arch_frame *frame)
{
	return frame->event == 0 && frame->has_registers == 5 ? frame->near : 0;
}

/* The address of a register in the frame; NULL if the frame does not have it.
 * @is_vector: a vector register of 16 bytes. */
static inline const void *arch_frame_at(const struct arch_frame *frame,
					unsigned number, bool is_vector)
{
	const struct arch_arguments *arguments = arch_frame_arguments(frame);

	if (is_vector)
		return frame->has_registers == ARCH_FRAME_ALL && number < 8 ?
			       arguments->vectors[number] :
			       0;
	switch (frame->has_registers ? number : 0) {
	case 3: return &frame->rbx;
	case 5: return &frame->rbp;
	case 12: return &frame->r12;
	case 13: return &frame->r13;
	case 14: return &frame->r14;
	case 15: return &frame->r15;
	}
	switch (frame->has_registers == ARCH_FRAME_ALL ? number : 0) {
	case 1: return &arguments->rcx;
	case 2: return &arguments->rdx;
	case 8: return &arguments->r8;
	case 9: return &arguments->r9;
	}
	return 0;
}

/* The value of a register at the call of the hook; false if unknown. */
static inline bool arch_frame_register(const struct arch_frame *frame,
				       unsigned number, uintptr_t *value)
{
	const uintptr_t *at = arch_frame_at(frame, number, false);

	if (at)
		*value = *at;
	return at;
}

#define ARCH_HAS_MONITOR_ENTRIES 1 /* edge.S */

/* The program's stack pointer at the call of the hook. */
#define ARCH_FRAME_CFA(frame) ((uintptr_t)((frame) + 1))

/* The stack pointer that a glibc jmp_buf restores, or 0.  libc encodes it with the
 * pointer guard in the thread control block. */
static inline uintptr_t arch_jump_sp(const void *buffer)
{
	uintptr_t sp = ((const uintptr_t *)buffer)[6];

	__asm__("ror $17, %0\n\txor %%fs:48, %0" : "+r"(sp)::"cc");
	return sp;
}

/* The thread pointer, which may lead anywhere.  Loaders before glibc 2.35 set it after they
 * have relocated all objects; a program may move it, as Go's runtime does (ARCH_SET_FS). */
static inline uintptr_t arch_find_thread_pointer(void)
{
	uintptr_t pointer = 0;

	arch_syscall(158 /* arch_prctl */, 0x1003 /* ARCH_GET_FS */,
		     (long)&pointer, 0, 0, 0, 0);
	return pointer;
}

/* The thread control block, which libc puts at the upper end of a thread's stack.  Its first
 * word is its own address. */
static inline uintptr_t arch_thread_pointer(void)
{
	uintptr_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/* The stack pointer in a ucontext. */
#define ARCH_CONTEXT_SP(context) \
	((uintptr_t)(context)->uc_mcontext.gregs[15 /* REG_RSP */])

/* Functions that return from a signal handler.  Unwinders treat them as libc's
 * function.  The second and third are for the program's handlers with and without
 * SA_RESTART: they also mark the system call that they return to, and let a call that
 * has not begun fail (sampling.S). */
#define ARCH_HAS_RESTORER 0x04000000 /* SA_RESTORER */
void arch_signal_return(void);
void arch_signal_return_restarts(void);
void arch_signal_return_fails(void);

/* A system call that a signal has interrupted. */
struct arch_call {
	long number;
	long arguments[6];
	bool failed; /* with EINTR */
	/* If not 0, the call has returned this part of its work.  If it is 0 and
	 * the call has not failed, the kernel is about to restart the call. */
	long part;
};

#define ARCH_RESTARTS (-512)

/* Sets the signal mask and makes the call.  If a signal handler runs in between, the
 * call fails; with ARCH_RESTARTS if the handler has SA_RESTART (sampling.S). */
long arch_call_with_mask(const struct arch_call *call, const uint64_t *mask);

/* Goes on in function(context, argument) on the stack below @context, a copy of the context of
 * a handler that arch_copy_frame has made.  It returns as the handler would. */
__attribute__((noreturn)) void
arch_go_on(void *context, const void *argument,
	   void (*function)(void *context, const void *argument));

/* The kernel's frame of a handler: the address to which it returns, the context, and a
 * siginfo_t.  A pointer in the context leads to the floating-point registers. */
#define ARCH_FRAME_SIZE		(8 + 304 + 128)
#define ARCH_FRAME_STATE	224 /* in the context */
#define ARCH_STATE_SIZE_MAX	16384
#define ARCH_STATE_MAGIC	0x46505853
#define ARCH_STATE_MAGIC_OFFSET 464

/*
 * Copies the frame of the handler with @context to the memory below @end.  Returns the
 * copy's context, by which the handler can return; NULL if memory cannot be read, or the
 * frame is not the kernel's (valgrind makes other ones).
 */
static inline void *arch_copy_frame(const void *context, uintptr_t end,
				    int (*copy)(const void *, void *, size_t))
{
	const char *frame = (const char *)context - 8;
	const char *state = *(const char *const *)((const char *)context +
						   ARCH_FRAME_STATE);
	uint32_t about[2]; /* its magic number and its size */
	uintptr_t state_at, frame_at;
	size_t size;

	if (!state ||
	    copy(state + ARCH_STATE_MAGIC_OFFSET, about, sizeof(about)) < 0)
		return NULL;
	size = about[1];
	if (about[0] != ARCH_STATE_MAGIC || size > ARCH_STATE_SIZE_MAX)
		return NULL;
	state_at = (end - size) & ~63ul;
	/* As the stack pointer after a call. */
	frame_at = ((state_at - ARCH_FRAME_SIZE) & ~15ul) - 8;
	if (copy(state, (void *)state_at, size) < 0 ||
	    copy(frame, (void *)frame_at, ARCH_FRAME_SIZE) < 0)
		return NULL;
	*(uintptr_t *)(frame_at + 8 + ARCH_FRAME_STATE) = state_at;
	return (void *)(frame_at + 8);
}

#define ARCH_SYSCALL_SIZE 2
#define ARCH_CONTEXT_IP(context) \
	((uintptr_t)(context)->uc_mcontext.gregs[16 /* REG_RIP */])

/* The return address of the system call in edge.S's syscall(), which leaves the number
 * below the stack. */
extern char arch_syscall_returns[];

/* The number in the last mov $NUMBER, %eax before a system call, or -1.  Compilers
 * insert no instruction in between that changes eax. */
static inline long arch_number_before(const uint8_t *code, int size)
{
	for (int i = size - 5; i > 0; i--) {
		bool is_move = code[i] == 0xb8 && (code[i - 1] & 0xf0) != 0x40;

		if (is_move && code[i + 3] == 0 && code[i + 4] == 0)
			return code[i + 1] | code[i + 2] << 8;
		/* The search ends at another system call, or a function call. */
		if ((code[i] == 0x0f && code[i + 1] == 0x05) || code[i] == 0xe8)
			return -1;
	}
	return -1;
}

/* The number in the register of a mov %REGISTER, %eax right before a system call, or -1: a
 * compiler keeps the number of a call that is in a loop there, as in liburing's.  Only
 * registers that calls preserve. */
static inline long arch_number_in_register(const uint8_t *code, int size,
					   const long long *registers)
{
	const uint8_t *move = code + size - 2;
	const unsigned from = move[1] >> 3 & 7;
	long long number = -1;

	if (move[0] != 0x89 || (move[1] & 0xc7) != 0xc0)
		return -1;
	if (move[-1] == 0x44 && from >= 4) /* r12 to r15 */
		number = registers[from];
	else if (from == 3 || from == 5) /* rbx, rbp */
		number = registers[from == 3 ? 11 : 10];
	return number >= 0 && number <= 0xffff ? (long)number : -1;
}

/*
 * Whether a signal interrupted a system call: the context is after a call that returned
 * EINTR, after a call that may have done part of its work, or before a call that the
 * kernel is about to restart.  @read(from, to, size) copies code and may fail.  The
 * kernel leaves the return address of the call in rcx.  The number of a call that has failed
 * is -1 if the code does not tell it.
 */
static inline bool arch_find_call(const long long *registers,
				  struct arch_call *call,
				  int (*read)(const void *, void *, size_t))
{
	static const uint8_t order[] = { 8, 9, 12, 2, 0, 1 };
	const uintptr_t ip = (uintptr_t)registers[16];
	const uintptr_t end = (uintptr_t)registers[14];
	const long a = (long)registers[13];
	uint8_t code[40];

	for (unsigned i = 0; i < 6; i++)
		call->arguments[i] = (long)registers[order[i]];
	call->failed = end == ip && a == -4 /* EINTR */;
	call->part = end == ip && a > 0 ? a : 0;
	call->number = a;
	if (end == ip ? !call->failed && call->part == 0 :
			end != ip + ARCH_SYSCALL_SIZE || a < 0)
		return false;
	if (read((void *)(end - sizeof(code)), code, sizeof(code)) < 0 ||
	    code[sizeof(code) - 2] != 0x0f || code[sizeof(code) - 1] != 0x05)
		return false;
	if (end != ip)
		return true;
	if (end == (uintptr_t)arch_syscall_returns)
		call->number = *(const long *)(registers[15] - 8);
	else
		call->number = arch_number_in_register(code, sizeof(code) - 2,
						       registers);
	if (call->number >= 0)
		return true;
	if (call->part > 0) /* frequent, so looks right before it only */
		call->number = arch_number_before(code + sizeof(code) - 8, 6);
	else
		call->number = arch_number_before(code, sizeof(code) - 2);
	return call->number >= 0 || call->failed;
}

#define ARCH_FIND_CALL(context, call, read) \
	arch_find_call((context)->uc_mcontext.gregs, call, read)

/* Lets the call return @result; marks the context so that arch_find_call() does not
 * find the call again. */
#define ARCH_SET_RESULT(context, call, result) \
	do { \
		if (!(call)->failed && (call)->part == 0) \
			(context)->uc_mcontext.gregs[16] += ARCH_SYSCALL_SIZE; \
		(context)->uc_mcontext.gregs[13] = (result); \
		(context)->uc_mcontext.gregs[14] = 0; \
	} while (0)

/* Copies all registers of a context to their DWARF numbers; returns the set of copied
 * registers. */
static inline uint32_t arch_get_registers(const long long *from, uintptr_t *to)
{
	static const uint8_t order[] = { 13, 12, 14, 11, 9, 8, 10, 15, 0,
					 1,  2,	 3,  4,	 5, 6, 7,  16 };

	for (unsigned i = 0; i < sizeof(order); i++)
		to[i] = (uintptr_t)from[order[i]];
	return 0x1ffff;
}

#define ARCH_GET_REGISTERS(context, to) \
	arch_get_registers((context)->uc_mcontext.gregs, to)

/* Copies the callee-saved registers, the stack pointer and the current address; returns
 * the set of copied registers. */
#define ARCH_GET_OWN_REGISTERS(to) \
	({ \
		uintptr_t *to_ = (to); \
		__asm__ volatile("mov %%rbx, 24(%0)\n\t" \
				 "mov %%rbp, 48(%0)\n\t" \
				 "mov %%rsp, 56(%0)\n\t" \
				 "mov %%r12, 96(%0)\n\t" \
				 "mov %%r13, 104(%0)\n\t" \
				 "mov %%r14, 112(%0)\n\t" \
				 "mov %%r15, 120(%0)\n\t" \
				 "lea 0(%%rip), %%rax\n\t" \
				 "mov %%rax, 128(%0)" \
				 : \
				 : "r"(to_) \
				 : "rax", "memory"); \
		0x1f0c8u; \
	})

/* Relocations that store the address of a function in a GOT slot. */
#define ARCH_RELOC_JUMP_SLOT 7 /* R_X86_64_JUMP_SLOT */
#define ARCH_RELOC_GLOB_DAT  6 /* R_X86_64_GLOB_DAT */
/* R_X86_64_IRELATIVE: a resolver function chooses the target */
#define ARCH_RELOC_IRELATIVE 37

/* The largest size of a PLT entry: [endbr64] [bnd] jmp *slot(%rip). */
#define ARCH_PLT_SIZE 16

/* Where such an entry has the distance of its slot; 0: it has none that one store changes. */
static inline unsigned arch_plt_distance(const unsigned char *code)
{
	unsigned at = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e &&
				      code[3] == 0xfa ?
			      4 :
			      0;

	at += code[at] == 0xf2;
	return code[at] == 0xff && code[at + 1] == 0x25 ? at + 2 : 0;
}

static inline bool arch_plt_slot(const unsigned char *code, uintptr_t address,
				 uintptr_t *slot)
{
	unsigned at = arch_plt_distance(code);
	uint32_t offset;

	if (at == 0)
		return false;
	__builtin_memcpy(&offset, code + at, sizeof(offset));
	*slot = address + at + 4 + (uintptr_t)(intptr_t)(int32_t)offset;
	return true;
}

/* The trap instruction that coverage writes into code.  ARCH_CONTEXT_GO_TO lets a
 * thread that has hit a trap continue at @address. */
#define ARCH_TRAP_SIZE 1
#define ARCH_TRAP      0xcc
#define ARCH_CONTEXT_GO_TO(context, address) \
	((void)((context)->uc_mcontext.gregs[16 /* REG_RIP */] = \
			(long long)(address)))
/* For a trap that stays: executes the replaced instruction, which is a no-op of @length
 * bytes, or a return if @length is 0. */
#define ARCH_TRAP_DO(context, length) \
	do { \
		long long *r_ = (context)->uc_mcontext.gregs; \
		if ((length) > 0) { \
			r_[16] += (long long)(length)-ARCH_TRAP_SIZE; \
		} else { \
			r_[16] = *(const long long *)r_[15 /* REG_RSP */]; \
			r_[15] += 8; \
		} \
	} while (0)

/* Whether the instruction is a no-op of *@length bytes, or a return (*@length is 0). */
static inline bool arch_is_nothing(const void *code, size_t *length)
{
	const unsigned char *byte = code;

	*length = byte[0] == 0x90 ? 1 : 0; /* nop */
	if (byte[0] == 0xf3 && byte[1] == 0x0f && byte[2] == 0x1e &&
	    byte[3] == 0xfa)
		*length = 4; /* endbr64 */
	return *length > 0 || byte[0] == 0xc3;
}

/*
 * Ends of functions whose marks have only entries (sources/returns.h, returns.S): the
 * address that takes the place of a return address, and the place of the real one for
 * the stack's word at @slot.
 */
#define ARCH_HAS_RETURNS
extern char arch_returned[];
#define ARCH_RETURNS_MIRROR(slot) \
	((uintptr_t)(slot) << 19 >> 18 ^ (uintptr_t)1 << 44)

#define ARCH_ELF_MACHINE 62 /* EM_X86_64 */

#endif
