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

/* On PowerPC libc gets main in a structure: there it stays unseen. */
#ifndef __powerpc__
typedef int (*main_function)(int count, char **arguments, char **environment);
typedef int (*start_function)(main_function program, int count,
			      char **arguments, void (*init)(void),
			      void (*fini)(void), void (*rtld_fini)(void),
			      void *stack_end);

/* shim/edge_start.c */
void *edge_start_main(void *program);
void *edge_main_begins(void);
int __libc_start_main(main_function program, int count, char **arguments,
		      void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end);

static int start_main(int count, char **arguments, char **environment)
{
	main_function program = (main_function)edge_main_begins();

	return program(count, arguments, environment);
}

__attribute__((visibility("default"))) int
__libc_start_main(main_function program, int count, char **arguments,
		  void (*init)(void), void (*fini)(void),
		  void (*rtld_fini)(void), void *stack_end)
{
	start_function start = (start_function)edge_start_main((void *)program);

	return start(start_main, count, arguments, init, fini, rtld_fini,
		     stack_end);
}
#endif
