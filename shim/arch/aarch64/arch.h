/*
 * The functions that depend on the processor, for AArch64.  x86-64 has the same list.
 */
#ifndef SHIM_ARCH_H
#define SHIM_ARCH_H

#include "arch/generic/no_restarts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A system call without libc: it keeps errno, uses no PLT, and is no cancellation
 * point.  Returns -errno on failure. */
static inline __attribute__((always_inline)) long
arch_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/* Runs call(argument) on the stack that ends at @top (runtime.S). */
int arch_call_on_stack(int (*call)(void *), void *argument, void *top);

/* Calls callback(a, b, c, d, e); returns true if it has thrown an exception (runtime.S). */
bool arch_call_guarded(void (*callback)(void), uintptr_t a, uintptr_t b,
		       uintptr_t c, uintptr_t d, uintptr_t e);
/* The landing pad for the exception, which is in register 0. */
extern char arch_guard_caught[];

/* Stores @word at any address by one instruction. */
static inline void arch_store_word(void *address, uint32_t word)
{
	__asm__ volatile("str %w1, [%0]" ::"r"(address), "r"(word) : "memory");
}

/* The floating point state of a thread: modes, such as rounding, and exception
 * flags. */
struct arch_floating {
	uintptr_t fpcr, fpsr;
};

static inline void arch_floating_keep(struct arch_floating *floating)
{
	__asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr"
			 : "=r"(floating->fpcr), "=r"(floating->fpsr));
}

/* A hook may use floating point and change its modes.  shim restores the program's
 * state. */
static inline void arch_floating_restore(const struct arch_floating *floating)
{
	struct arch_floating now;

	arch_floating_keep(&now);
	if (now.fpcr != floating->fpcr)
		__asm__ volatile("msr fpcr, %0" : : "r"(floating->fpcr));
	if (now.fpsr != floating->fpsr)
		__asm__ volatile("msr fpsr, %0" : : "r"(floating->fpsr));
}

/* The frame that dispatch.S pushes for a slow hook; shim_elt_info points to it.  The first
 * three fields belong to dispatch/slow_hook.c.  The last two are a frame record. */
struct arch_frame {
	const void *entry;
	uint16_t event;
	uint16_t has_registers; /* whether @saved is filled */
	uint32_t error;		/* errno before the hook */
	uintptr_t info[5];
	uintptr_t function;
	const void *site;
	uintptr_t unused;
	struct arch_floating floating;
	uintptr_t saved[10]; /* x19 to x28 */
	uintptr_t frame_pointer;
	uintptr_t return_address;
};

/* The value of a register at the call of the hook; false if unknown.  The frame has no
 * argument registers, because on this processor shim does not locate arguments. */
static inline bool arch_frame_register(const struct arch_frame *frame,
				       unsigned number, uintptr_t *value)
{
	if (number == 29) {
		*value = frame->frame_pointer;
		return true;
	}
	if (!frame->has_registers || number < 19 || number > 28)
		return false;
	*value = frame->saved[number - 19];
	return true;
}

#define ARCH_FRAME_ALL		    2
#define ARCH_FRAME_REGISTERS(frame) ((frame)->has_registers)

/* Arguments and results at marks: no frame has them. */
struct arch_entry {
	uintptr_t integers[6];
	uintptr_t stack;
	unsigned char vectors[8][16];
};
struct arch_exit {
	uintptr_t integers[2];
	unsigned char vectors[2][16];
};
#define ARCH_FRAME_SET_NEAR(frame, values) ((void)(frame), (void)(values))
#define arch_frame_entry(frame)		   ((void)(frame), (const struct arch_entry *)0)
#define arch_frame_exit(frame)		   ((void)(frame), (const struct arch_exit *)0)
#define arch_read_long(to)		   ((void)(to))
#define arch_read_longs(to)		   ((void)(to))

static inline const void *arch_frame_at(const struct arch_frame *frame,
					unsigned number, bool is_vector)
{
	(void)frame, (void)number, (void)is_vector;
	return 0;
}

/* The program's stack pointer at the call of the hook. */
#define ARCH_FRAME_CFA(frame) ((uintptr_t)((frame) + 1))

/* The stack pointer that a jmp_buf restores; 0 if unknown (jump.c). */
uintptr_t arch_jump_sp(const void *buffer);

/* The thread control block.  libc puts it at the upper end of a thread's stack, and
 * thread-local storage above it. */
static inline uintptr_t arch_thread_pointer(void)
{
	uintptr_t pointer;

	__asm__("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}

/* 0 before libc has given the thread a control block.  Loaders before glibc 2.35 do so after
 * they have relocated all objects. */
static inline uintptr_t arch_find_thread_pointer(void)
{
	return arch_thread_pointer();
}

/* The stack pointer in a ucontext. */
#define ARCH_CONTEXT_SP(context) ((uintptr_t)(context)->uc_mcontext.sp)

#define ARCH_CONTEXT_IP(context) ((uintptr_t)(context)->uc_mcontext.pc)

#define ARCH_GET_REGISTERS(context, to) ((void)(context), (void)(to), 0u)
#define ARCH_GET_OWN_REGISTERS(to)	((void)(to), 0u)

/* Relocations that store the address of a function in a GOT slot. */
#define ARCH_RELOC_JUMP_SLOT 1026 /* R_AARCH64_JUMP_SLOT */
#define ARCH_RELOC_GLOB_DAT  1025 /* R_AARCH64_GLOB_DAT */
/* R_AARCH64_IRELATIVE: a resolver function chooses the target */
#define ARCH_RELOC_IRELATIVE 1032

/* The largest size of a PLT entry: [bti c] adrp x16, page; ldr x17, [x16, offset]. */
#define ARCH_PLT_SIZE		16
#define arch_plt_distance(code) ((void)(code), 0u)

static inline bool arch_plt_slot(const unsigned char *code, uintptr_t address,
				 uintptr_t *slot)
{
	uint32_t words[3];
	unsigned at;
	uintptr_t pages;

	__builtin_memcpy(words, code, sizeof(words));
	at = words[0] == 0xd503245f;
	if ((words[at] & 0x9f00001f) != 0x90000010 ||
	    (words[at + 1] & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (uintptr_t)((intptr_t)((uintptr_t)(words[at] >> 5 & 0x7ffff)
				       << 45) >>
			    43);
	pages |= words[at] >> 29 & 3;
	*slot = ((address + 4 * at) & ~(uintptr_t)0xfff) + (pages << 12) +
		(words[at + 1] >> 10 & 0xfff) * 8;
	return true;
}

/* No traps. */
#define ARCH_TRAP_SIZE			     0
#define ARCH_TRAP			     0
#define ARCH_CONTEXT_GO_TO(context, address) ((void)(context), (void)(address))
#define ARCH_TRAP_DO(context, length)	     ((void)(context), (void)(length))
#define arch_is_nothing(code, length)	     ((void)(code), (void)(length), false)

#define ARCH_ELF_MACHINE 183 /* EM_AARCH64 */

#endif
