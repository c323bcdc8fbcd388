/*
 * x86-64: what shim/ needs of the processor.  The same list as in arch/generic.
 */
#ifndef SHIM_ARCH_H
#define SHIM_ARCH_H

#include <stdbool.h>
#include <stdint.h>

/* A system call without libc: errno stays alone, no PLT, no cancellation
 * point.  Returns -errno on failure. */
static inline long arch_syscall(long number, long a, long b, long c, long d,
				long e, long f)
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

/* Run call(argument) on the stack that ends at @top (entry.S). */
int arch_call_on_stack(int (*call)(void *), void *argument, void *top);

/* Calls callback(a, b, c, d, e) and tells whether it threw (entry.S). */
bool arch_call_guarded(void (*callback)(void), uintptr_t a, uintptr_t b,
		       uintptr_t c, uintptr_t d, uintptr_t e);
/* Where it goes on then, with the exception in register 0. */
extern char arch_guard_caught[];

/* What entry.S puts on the stack for a slow hook; shim_elt_info points to it.
 * The first three belong to frame.c. */
struct arch_frame {
	const void *entry;
	uint16_t event;
	uint16_t has_registers;	/* 1: the six below; 2: arch_arguments, too */
	uint32_t error;		/* errno, before */
	uintptr_t info[5];
	uintptr_t rbx, rbp, r12, r13, r14, r15;
	uintptr_t function;
	const void *site;
	uintptr_t return_address;
};

/* ... and before it, for an enter hook: registers that arguments come in. */
struct arch_arguments {
	uintptr_t rdx, rcx, r8, r9;
	unsigned char vectors[8][16];
};

static inline const struct arch_arguments *
arch_frame_arguments(const struct arch_frame *frame)
{
	return (const struct arch_arguments *)(const void *)frame - 1;
}

/* What a register held when the hook was called; false: not known. */
static inline bool arch_frame_register(const struct arch_frame *frame,
				       unsigned number, uintptr_t *value)
{
	switch (frame->has_registers ? number : 0) {
	case 3: *value = frame->rbx; return true;
	case 5: *value = frame->rbp; return true;
	case 12: *value = frame->r12; return true;
	case 13: *value = frame->r13; return true;
	case 14: *value = frame->r14; return true;
	case 15: *value = frame->r15; return true;
	}
	switch (frame->has_registers == 2 ? number : 0) {
	case 1: *value = arch_frame_arguments(frame)->rcx; return true;
	case 2: *value = arch_frame_arguments(frame)->rdx; return true;
	case 8: *value = arch_frame_arguments(frame)->r8; return true;
	case 9: *value = arch_frame_arguments(frame)->r9; return true;
	}
	return false;
}

/* The 16 bytes of a vector register; NULL: not known. */
static inline const unsigned char *
arch_frame_vector(const struct arch_frame *frame, unsigned number)
{
	return frame->has_registers == 2 && number < 8 ?
		       arch_frame_arguments(frame)->vectors[number] :
		       0;
}

/* The program's stack pointer when it called the hook. */
#define ARCH_FRAME_CFA(frame) ((uintptr_t)((frame) + 1))

/* The stack pointer a glibc jmp_buf resumes with, or 0 (libc hides it behind
 * the pointer guard of the thread control block). */
static inline uintptr_t arch_jump_sp(const void *buffer)
{
	uintptr_t sp = ((const uintptr_t *)buffer)[6];

	__asm__("ror $17, %0\n\txor %%fs:48, %0" : "+r"(sp)::"cc");
	return sp;
}

/* The thread control block: libc puts it at the upper end of a thread's stack. */
static inline uintptr_t arch_thread_pointer(void)
{
	uintptr_t pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

/* Where a ucontext keeps its stack pointer. */
#define ARCH_CONTEXT_SP(context) \
	((uintptr_t)(context)->uc_mcontext.gregs[15 /* REG_RSP */])

/* Relocations that bind a function symbol to a slot holding its address. */
#define ARCH_RELOC_JUMP_SLOT 7 /* R_X86_64_JUMP_SLOT */
#define ARCH_RELOC_GLOB_DAT  6 /* R_X86_64_GLOB_DAT */

#define ARCH_ELF_MACHINE 62 /* EM_X86_64 */

#endif
