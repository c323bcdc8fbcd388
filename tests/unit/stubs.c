/*
 * Replaces the code that a unit test cannot link: shim/edge and the assembly of
 * shim/arch.
 */
#include "arch.h"
#include "module/module.h"

#include <shim/builtin.h>
#include <shim/hooks.h>
#include <shim/record.h>

void shim_thread_watch(void)
{
}

uintptr_t shim_mcount_of(uintptr_t address)
{
	(void)address;
	return 0;
}

void table_nothing(void);

void table_nothing(void)
{
}

void plan_slow_enter(void);
void plan_slow_leave(void);

void plan_enter(void);
void plan_leave(void);

void plan_enter(void)
{
}

void plan_leave(void)
{
}

void plan_deferred_enter(void);
void plan_inspecting_enter(void);
void plan_inspecting_leave(void);

void plan_inspecting_enter(void)
{
}

void plan_deferred_enter(void)
{
}

void plan_inspecting_leave(void)
{
}

#ifdef __x86_64__
void arch_floating_restore(const struct arch_floating *floating)
{
	(void)floating;
}
#endif

void shim_hook_defer(shim_function function, const void *site)
{
	(void)function;
	(void)site;
}

void plan_slow_enter(void)
{
}

void plan_slow_leave(void)
{
}

void plan_tailcall(void);
void plan_unwinding(void);
void plan_slow_tailcall(void);
void plan_inspecting_unwinding(void);
void plan_inspecting_tailcall(void);
void leaves_sort(void);

void plan_tailcall(void)
{
}

void plan_unwinding(void)
{
}

void plan_slow_tailcall(void)
{
}

void plan_inspecting_unwinding(void)
{
}

void plan_inspecting_tailcall(void)
{
}

void leaves_sort(void)
{
}

#define STUB_OF_MARKS(name) \
	void name(void); \
	void name(void) \
	{ \
	}

STUB_OF_MARKS(sources_nothing)
STUB_OF_MARKS(shim_sled_entry0)
STUB_OF_MARKS(shim_sled_entry4)
STUB_OF_MARKS(sources_uncounted0)
STUB_OF_MARKS(sources_uncounted4)
STUB_OF_MARKS(sources_sled_tailcall)
STUB_OF_MARKS(sources_sled_condition)
STUB_OF_MARKS(sources_direct_condition)
STUB_OF_MARKS(sources_direct_enter)
STUB_OF_MARKS(shim_sled_leave)
STUB_OF_MARKS(sources_direct_tailcall)
STUB_OF_MARKS(sources_plan_enter)
STUB_OF_MARKS(sources_plan_leave)
STUB_OF_MARKS(sources_plan_tailcall)
STUB_OF_MARKS(sources_choose_enter)
STUB_OF_MARKS(sources_choose_leave)
STUB_OF_MARKS(sources_choose_tailcall)
STUB_OF_MARKS(shim_entry)
STUB_OF_MARKS(shim_returned)
STUB_OF_MARKS(shim_entry_replace)
STUB_OF_MARKS(shim_entry_kept)
STUB_OF_MARKS(returns_enter_mcount)
STUB_OF_MARKS(returns_count_mcount)
STUB_OF_MARKS(returns_count_fentry)
STUB_OF_MARKS(returns_nothing)
STUB_OF_MARKS(returns_plan_enter)
STUB_OF_MARKS(returns_plan_mcount)
STUB_OF_MARKS(returns_plan_leave)
STUB_OF_MARKS(returns_plan_tailcall)
char arch_returned[1];

#ifndef ARCH_GENERIC /* arch/generic has these in its arch.h */
bool arch_call_guarded(void (*callback)(void), uintptr_t a, uintptr_t b,
		       uintptr_t c, uintptr_t d, uintptr_t e)
{
	((void (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		   uintptr_t))callback)(a, b, c, d, e);
	return false;
}

int arch_call_on_stack(int (*call)(void *), void *argument, void *top)
{
	(void)top;
	return call(argument);
}
#endif

#ifdef __x86_64__
/* As the kernel expects it: the handler's return address has been popped
 * already. */
__asm__("	.text\n"
	"	.globl arch_call_with_mask\n"
	"arch_call_with_mask:\n"
	"	mov $-38, %rax\n" /* ENOSYS */
	"	ret\n"
	"	.globl arch_go_on\n"
	"arch_go_on:\n"
	"	.globl arch_signal_return, arch_signal_return_restarts\n"
	"	.globl arch_signal_return_fails\n"
	"arch_signal_return:\n"
	"arch_signal_return_restarts:\n"
	"arch_signal_return_fails:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	"	.globl arch_syscall_returns\n"
	"arch_syscall_returns:\n");
#endif

/* These are defined so that the tests' own functions cannot be instrumented by
 * accident. */
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function;
	(void)site;
}

void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}
