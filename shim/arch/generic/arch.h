/*
 * The functions that depend on the processor, for any processor: plain C, correct, not
 * fast.  x86-64 has the same list.  Features that need assembly are missing: shim does
 * not see setjmp, coroutines and vfork, and finds the frames that they end by their
 * addresses.
 */
#ifndef SHIM_ARCH_H
#define SHIM_ARCH_H

#include "arch/generic/no_restarts.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Declared here because <unistd.h> declares many names that shim defines. */
extern long syscall(long number, ...);

static inline long arch_syscall(long number, long a, long b, long c, long d,
				long e, long f)
{
	int before = errno;
	long result = syscall(number, a, b, c, d, e, f);

	if (result == -1)
		result = -errno;
	errno = before;
	return result;
}

/* Uses the current stack.  A program with tiny stacks needs a port of shim. */
static inline int arch_call_on_stack(int (*call)(void *), void *argument,
				     void *top)
{
	(void)top;
	return call(argument);
}

/* A child that shares the memory would overwrite frames of its parent. */
#define ARCH_NO_APART

/* Exceptions of callbacks are not caught: they end the program. */
#define ARCH_NO_GUARD
static inline bool arch_call_guarded(void (*callback)(void), uintptr_t a,
				     uintptr_t b, uintptr_t c, uintptr_t d,
				     uintptr_t e)
{
	((void (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		   uintptr_t))callback)(a, b, c, d, e);
	return false;
}

/* Stores @word at any address; here by several instructions, perhaps. */
static inline void arch_store_word(void *address, uint32_t word)
{
	__builtin_memcpy(address, &word, sizeof(word));
}

/* The floating point state; empty, because saving it needs assembly. */
struct arch_floating {
	char unused;
};

static inline void arch_floating_keep(struct arch_floating *floating)
{
	(void)floating;
}

static inline void arch_floating_restore(const struct arch_floating *floating)
{
	(void)floating;
}

/* The frame of a slow hook; shim_elt_info points to it. */
struct arch_frame {
	const void *entry;
	uint16_t event;
	uint16_t has_registers; /* 0 */
	uint32_t error;		/* errno before the hook */
	uintptr_t info[5];
	uintptr_t function;
	const void *site;
	uintptr_t return_address;
	uintptr_t cfa;
};

static inline bool arch_frame_register(const struct arch_frame *frame,
				       unsigned number, uintptr_t *value)
{
	(void)frame, (void)number, (void)value;
	return false;
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

#define ARCH_FRAME_CFA(frame) ((frame)->cfa)

static inline uintptr_t arch_jump_sp(const void *buffer)
{
	(void)buffer;
	return 0;
}

static inline uintptr_t arch_thread_pointer(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static inline uintptr_t arch_find_thread_pointer(void)
{
	return arch_thread_pointer();
}

#define ARCH_CONTEXT_SP(context) ((void)(context), (uintptr_t)0)

#define ARCH_CONTEXT_IP(context)	((void)(context), (uintptr_t)0)
#define ARCH_GET_REGISTERS(context, to) ((void)(context), (void)(to), 0u)
#define ARCH_GET_OWN_REGISTERS(to)	((void)(to), 0u)

/* No relocation has these numbers: every call goes through the table. */
#define ARCH_RELOC_JUMP_SLOT 0xffffffffu
#define ARCH_RELOC_GLOB_DAT  0xffffffffu
#define ARCH_RELOC_IRELATIVE 0xffffffffu

/* Unknown. */
#define ARCH_ELF_MACHINE 0

/* PLT entries are not decoded. */
#define ARCH_PLT_SIZE		1
#define arch_plt_distance(code) ((void)(code), 0u)
#define arch_plt_slot(code, address, slot) \
	((void)(code), (void)(address), (void)(slot), false)

/* No traps. */
#define ARCH_TRAP_SIZE			     0
#define ARCH_TRAP			     0
#define ARCH_CONTEXT_GO_TO(context, address) ((void)(context), (void)(address))
#define ARCH_TRAP_DO(context, length)	     ((void)(context), (void)(length))
#define arch_is_nothing(code, length)	     ((void)(code), (void)(length), false)

#endif
