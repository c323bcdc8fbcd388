/*
 * The compiler's hooks in plain C: one frame of ours between the program and
 * the profiler, where the compiler does not make a jump of it.
 */
#include "state.h"

typedef void (*hook)(void *function, void *site);

extern __attribute__((visibility("hidden"))) hook table_current[2];

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);
void table_nothing(void *function, void *site);
void table_start_enter(void *function, void *site);
void table_start_leave(void *function, void *site);

__attribute__((visibility("default"))) void
__cyg_profile_func_enter(void *function, void *site)
{
	table_current[0](function, site);
}

__attribute__((visibility("default"))) void
__cyg_profile_func_exit(void *function, void *site)
{
	table_current[1](function, site);
}

void table_nothing(void *function, void *site)
{
	(void)function;
	(void)site;
}

void table_start_enter(void *function, void *site)
{
	state_start();
	table_current[0](function, site);
}

void table_start_leave(void *function, void *site)
{
	state_start();
	table_current[1](function, site);
}
