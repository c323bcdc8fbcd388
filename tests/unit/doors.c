/*
 * In place of the doors (shim/edge_*.c, entry.S), which a test must not open:
 * what the core wants of them.
 */
#include "arch.h"

#include <shim/record.h>

void table_start_enter(void);
void table_start_leave(void);
void table_nothing(void);

void table_start_enter(void)
{
}

void table_start_leave(void)
{
}

void table_nothing(void)
{
}

void shim_thread_watch(void)
{
}

#ifndef ARCH_GENERIC	/* which has one in its arch.h */
int arch_call_on_stack(int (*call)(void *), void *argument, void *top)
{
	(void)top;
	return call(argument);
}
#endif

/* So that the tests' own functions cannot be instrumented by accident. */
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
