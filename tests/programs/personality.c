/*
 * Exceptions of a language whose runtime has its own personality routine, which finds its
 * data on the stack by _Unwind_GetCFA, as LuaJIT's does.
 *
 * flags: -fno-exceptions
 * tree:
 *	main 1
 *	main;thrower 1000
 *	main;thrower;deeper 1000
 *	main;thrower;deeper;personality 2000
 *	main;leaf 1000
 */
#include "truth.h"

#include <stdint.h>
#include <stdlib.h>
#include <unwind.h>

#define MARK 0x6b72616d

/* Calls @function; returns 0, or 1 if it has thrown. */
int guarded(void (*function)(void));
extern const char landing[] __attribute__((visibility("hidden")));

#ifdef __aarch64__
__asm__(".text\n"
	".globl guarded\n"
	".type guarded, @function\n"
	"guarded:\n\t"
	".cfi_startproc\n\t"
	".cfi_personality 0x1b, personality\n\t"
	"sub sp, sp, #32\n\t"
	".cfi_def_cfa_offset 32\n\t"
	"stp x29, x30, [sp, #16]\n\t"
	".cfi_offset 29, -16\n\t"
	".cfi_offset 30, -8\n\t"
	"mov w1, #0x616d\n\t"
	"movk w1, #0x6b72, lsl #16\n\t"
	"str x1, [sp]\n\t"
	"blr x0\n\t"
	"mov w0, #0\n\t"
	"b 1f\n"
	".globl landing\n"
	".hidden landing\n"
	"landing:\n\t"
	"mov w0, #1\n"
	"1:\n\t"
	"ldp x29, x30, [sp, #16]\n\t"
	"add sp, sp, #32\n\t"
	".cfi_def_cfa_offset 0\n\t"
	"ret\n\t"
	".cfi_endproc\n"
	".size guarded, . - guarded\n");
#else
__asm__(".text\n"
	".globl guarded\n"
	".type guarded, @function\n"
	"guarded:\n\t"
	".cfi_startproc\n\t"
	".cfi_personality 0x1b, personality\n\t"
	"sub $24, %rsp\n\t"
	".cfi_adjust_cfa_offset 24\n\t"
	"movq $0x6b72616d, (%rsp)\n\t"
	"call *%rdi\n\t"
	"xor %eax, %eax\n\t"
	"jmp 1f\n"
	".globl landing\n"
	".hidden landing\n"
	"landing:\n\t"
	"mov $1, %eax\n"
	"1:\n\t"
	"add $24, %rsp\n\t"
	".cfi_adjust_cfa_offset -24\n\t"
	"ret\n\t"
	".cfi_endproc\n"
	".size guarded, . - guarded\n");
#endif

__attribute__((visibility("hidden"))) _Unwind_Reason_Code
personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	    struct _Unwind_Exception *exception,
	    struct _Unwind_Context *context);

_Unwind_Reason_Code personality(int version, _Unwind_Action actions,
				_Unwind_Exception_Class class,
				struct _Unwind_Exception *exception,
				struct _Unwind_Context *context)
{
	const uint64_t *data = (const uint64_t *)_Unwind_GetCFA(context);

	COUNTED;
	(void)version;
	(void)class;
	(void)exception;
	if (*data != MARK)
		return _URC_FATAL_PHASE1_ERROR;
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	_Unwind_SetIP(context, (uintptr_t)landing);
	return _URC_INSTALL_CONTEXT;
}

static struct _Unwind_Exception exception;

static APART void deeper(void)
{
	COUNTED;
	_Unwind_RaiseException(&exception);
	print_text("nobody catches it\n");
}

static APART void thrower(void)
{
	COUNTED;
	deeper();
	print_text("it returns\n");
}

static APART void leaf(void)
{
	COUNTED;
}

int main(void)
{
	COUNTED;
	for (int i = 0; i < 1000; i++)
		if (guarded(thrower))
			leaf();
	print_counts();
	return 0;
}
