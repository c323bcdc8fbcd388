/*
 * Instructions of the program, which run on copies of their operands: each in 16 bytes
 * of its own, four for each operation.
 */
#include <cet.h>	/* _CET_ENDBR: a landing pad for indirect branches */

	.text
	.set	FLAGS, 0x8d5	/* arithmetic flags */

	.macro	BEGIN
	.p2align 4
	_CET_ENDBR
	.endm

	.macro	NONE
	BEGIN
	ud2
	.endm

	.macro	ONE text:vararg
	BEGIN
	\text
	ret
	.endm

/* Integers: rax is the first operand and the result, rcx the second. */
	.macro	ALL_SIZES name
	ONE	\name %cl, %al
	ONE	\name %cx, %ax
	ONE	\name %ecx, %eax
	ONE	\name %rcx, %rax
	.endm

	.macro	UNARY_SIZES name
	ONE	\name %al
	ONE	\name %ax
	ONE	\name %eax
	ONE	\name %rax
	.endm

	.macro	SHIFT_SIZES name
	ONE	\name %cl, %al
	ONE	\name %cl, %ax
	ONE	\name %cl, %eax
	ONE	\name %cl, %rax
	.endm

	.macro	WIDE_SIZES name
	NONE
	ONE	\name %cx, %ax
	ONE	\name %ecx, %eax
	ONE	\name %rcx, %rax
	.endm


	.macro	SWAP_SIZES name
	NONE
	NONE
	ONE	\name %eax
	ONE	\name %rax
	.endm

	.macro	LAST_SIZES name
	NONE
	NONE
	ONE	\name %ecx, %eax, %eax
	ONE	\name %rcx, %rax, %rax
	.endm

	.macro	COUNT_SIZES name
	NONE
	NONE
	ONE	\name %ecx, %eax, %eax
	ONE	\name %rcx, %rax, %rax
	.endm

	.macro	ONLY_SIZES name
	NONE
	NONE
	ONE	\name %ecx, %eax
	ONE	\name %rcx, %rax
	.endm

	.macro	PAIR_SIZES name
	ONE	\name %cl
	ONE	\name %cx
	ONE	\name %ecx
	ONE	\name %rcx
	.endm

/* Vectors: xmm0 is the first operand and the result, xmm1 and xmm2 are the others.
 * Integer operands are in rcx, integer results in rax. */
	.macro	SCALAR_FORM name
	ONE	\name %xmm1, %xmm0
	NONE
	NONE
	NONE
	.endm

	.macro	FROM_INTEGER_FORMS name
	ONE	\name\()l %ecx, %xmm0
	ONE	\name\()q %rcx, %xmm0
	NONE
	NONE
	.endm

	.macro	TO_INTEGER_FORMS name
	ONE	\name %xmm1, %eax
	ONE	\name %xmm1, %rax
	NONE
	NONE
	.endm

	.macro	PACKED_FORMS name
	ONE	\name %xmm1, %xmm0
	ONE	v\name %ymm1, %ymm0, %ymm0
	NONE
	NONE
	.endm

	.macro	PACKED_SHIFT_FORMS name
	ONE	\name %xmm1, %xmm0
	ONE	v\name %xmm1, %ymm0, %ymm0
	NONE
	NONE
	.endm

	.macro	PACKED_UNARY_FORMS name
	ONE	\name %xmm1, %xmm0
	ONE	v\name %ymm1, %ymm0
	NONE
	NONE
	.endm

	.macro	FUSED_FORM name
	ONE	\name %xmm2, %xmm1, %xmm0
	NONE
	NONE
	NONE
	.endm

	.macro	FUSED_PACKED_FORMS name
	ONE	\name %xmm2, %xmm1, %xmm0
	ONE	\name %ymm2, %ymm1, %ymm0
	NONE
	NONE
	.endm

/* st(0) is the first operand and the result, st(1) the second. */
	.macro	LONG_DOUBLE_FORM name
	ONE	\name %st(1), %st
	NONE
	NONE
	NONE
	.endm

	.macro	LONG_DOUBLE_UNARY_FORM name
	ONE	\name
	NONE
	NONE
	NONE
	.endm

	.p2align 4
operations:
#define INTEGER(NAME, name) ALL_SIZES name
#define INTEGER_UNARY(NAME, name) UNARY_SIZES name
#define INTEGER_SHIFT(NAME, name) SHIFT_SIZES name
#define INTEGER_WIDE(NAME, name) WIDE_SIZES name
#define INTEGER_SWAP(NAME, name) SWAP_SIZES name
#define INTEGER_LAST(NAME, name) LAST_SIZES name
#define INTEGER_COUNT(NAME, name) COUNT_SIZES name
#define INTEGER_ONLY(NAME, name) ONLY_SIZES name
#define INTEGER_PAIR(NAME, name) PAIR_SIZES name
#define SCALAR(NAME, name, size) SCALAR_FORM name
#define SCALAR_UNARY(NAME, name, size) SCALAR_FORM name
#define FROM_INTEGER(NAME, name, size) FROM_INTEGER_FORMS name
#define TO_INTEGER(NAME, name, size) TO_INTEGER_FORMS name
#define COMPARE(NAME, name, size) SCALAR_FORM name
#define PACKED(NAME, name) PACKED_FORMS name
#define PACKED_SHIFT(NAME, name) PACKED_SHIFT_FORMS name
#define PACKED_UNARY(NAME, name) PACKED_UNARY_FORMS name
#define NARROW(NAME, name) SCALAR_FORM name
#define NARROW_UNARY(NAME, name) SCALAR_FORM name
#define FUSED(NAME, name, size) FUSED_FORM name
#define FUSED_PACKED(NAME, name) FUSED_PACKED_FORMS name
#define LONG_DOUBLE(NAME, name) LONG_DOUBLE_FORM name
#define LONG_DOUBLE_UNARY(NAME, name) LONG_DOUBLE_UNARY_FORM name
#include "inspect/decode/operations.def"

/*
 * Arguments of each function: edi, the number of the operation; rsi, struct operands
 * (recipe.h): a, b and c at 0, 32 and 64, first at 96, second at 104, pair at 112,
 * flags at 120.
 */
	.set	FIRST, 96
	.set	SECOND, 104
	.set	PAIRED, 112
	.set	OUT_FLAGS, 120

	.macro	FIND
	lea	operations(%rip), %r8
	shl	$4, %rdi
	add	%r8, %rdi
	.endm

	.macro	FUNCTION name
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	_CET_ENDBR
	.endm

	.macro	END name
	ret
	.cfi_endproc
	.size	\name, .-\name
	.endm

	.macro	LOAD_INTEGERS
	mov	FIRST(%rsi), %rax
	mov	SECOND(%rsi), %rcx
	mov	PAIRED(%rsi), %rdx
	.endm

	.macro	STORE_INTEGERS
	mov	%rax, FIRST(%rsi)
	mov	%rdx, PAIRED(%rsi)
	.endm

	.macro	STORE_FLAGS
	pushfq
	.cfi_adjust_cfa_offset 8
	pop	%r8
	.cfi_adjust_cfa_offset -8
	mov	%r8, OUT_FLAGS(%rsi)
	.endm

	FUNCTION operation_integer
	FIND
	LOAD_INTEGERS
	call	*%rdi
	STORE_FLAGS
	STORE_INTEGERS
	END	operation_integer

/* Runs with the program's arithmetic flags; the direction flag and others stay. */
	FUNCTION operation_integer_flags
	FIND
	mov	OUT_FLAGS(%rsi), %r8
	and	$FLAGS, %r8
	pushfq
	.cfi_adjust_cfa_offset 8
	andq	$~FLAGS, (%rsp)
	or	%r8, (%rsp)
	LOAD_INTEGERS
	popfq
	.cfi_adjust_cfa_offset -8
	call	*%rdi
	STORE_FLAGS
	STORE_INTEGERS
	END	operation_integer_flags

/* Masks floating point exceptions and drops their flags: the program will raise them
 * itself. */
	.macro	MASK_EXCEPTIONS
	stmxcsr	-8(%rsp)
	mov	-8(%rsp), %r9d
	mov	%r9d, %r8d
	or	$0x1f80, %r8d
	mov	%r8d, -16(%rsp)
	ldmxcsr	-16(%rsp)
	.endm

	.macro	UNMASK_EXCEPTIONS
	mov	%r9d, -8(%rsp)
	ldmxcsr	-8(%rsp)
	.endm

	FUNCTION operation_vector
	FIND
	MASK_EXCEPTIONS
	LOAD_INTEGERS
	movdqu	(%rsi), %xmm0
	movdqu	32(%rsi), %xmm1
	movdqu	64(%rsi), %xmm2
	call	*%rdi
	STORE_FLAGS
	STORE_INTEGERS
	movdqu	%xmm0, (%rsi)
	UNMASK_EXCEPTIONS
	END	operation_vector

	FUNCTION operation_vector_wide
	FIND
	MASK_EXCEPTIONS
	vmovdqu	(%rsi), %ymm0
	vmovdqu	32(%rsi), %ymm1
	vmovdqu	64(%rsi), %ymm2
	call	*%rdi
	vmovdqu	%ymm0, (%rsi)
	vzeroupper
	UNMASK_EXCEPTIONS
	END	operation_vector_wide

/* The operands are in memory at 0 and 32.  The x87 stack is empty when a function is
 * called. */
	FUNCTION operation_long_double
	FIND
	sub	$40, %rsp
	.cfi_adjust_cfa_offset 40
	fnstenv	(%rsp)			/* also masks all exceptions */
	fldt	32(%rsi)
	fldt	(%rsi)
	call	*%rdi
	fstpt	(%rsi)
	fstp	%st(0)
	fldenv	(%rsp)
	add	$40, %rsp
	.cfi_adjust_cfa_offset -40
	END	operation_long_double

/*
 * edi: 0 float, 1 double, 2 to 4 an integer of 2, 4 or 8 bytes.  operation_extend
 * converts it from offset 32 to a long double at 0; operation_narrow converts back, to
 * a float or a double only.
 */
	FUNCTION operation_extend
	sub	$40, %rsp
	.cfi_adjust_cfa_offset 40
	fnstenv	(%rsp)
	cmp	$1, %edi
	je	1f
	ja	2f
	flds	32(%rsi)
	jmp	5f
1:	fldl	32(%rsi)
	jmp	5f
2:	cmp	$3, %edi
	je	3f
	ja	4f
	filds	32(%rsi)
	jmp	5f
3:	fildl	32(%rsi)
	jmp	5f
4:	fildll	32(%rsi)
5:	fstpt	(%rsi)
	fldenv	(%rsp)
	add	$40, %rsp
	.cfi_adjust_cfa_offset -40
	END	operation_extend

	FUNCTION operation_narrow
	sub	$40, %rsp
	.cfi_adjust_cfa_offset 40
	fnstenv	(%rsp)
	fldt	(%rsi)
	test	%edi, %edi
	jne	1f
	fstps	32(%rsi)
	jmp	2f
1:	fstpl	32(%rsi)
2:	fldenv	(%rsp)
	add	$40, %rsp
	.cfi_adjust_cfa_offset -40
	END	operation_narrow

	.section .note.GNU-stack, "", @progbits
