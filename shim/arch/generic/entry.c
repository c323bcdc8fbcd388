/*
 * The compiler's hooks in plain C: one frame of ours between the program and
 * the profiler, where the compiler does not make a jump of it.
 */
#include "arch.h"
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

void frame_run(struct arch_frame *frame);
void plan_slow_enter(void *function, void *site);
void plan_slow_leave(void *function, void *site);
void plan_inspecting_enter(void *function, void *site);
void plan_inspecting_leave(void *function, void *site);

#define SLOW_HOOK(name, number)                                                 \
	void name(void *function, void *site)                                  \
	{                                                                      \
		struct arch_frame frame = {                                    \
			.event = number,                                       \
			.function = (uintptr_t)function,                       \
			.site = site,                                          \
			.return_address =                                      \
				(uintptr_t)__builtin_return_address(0),        \
			.cfa = (uintptr_t)__builtin_dwarf_cfa(),               \
		};                                                             \
                                                                               \
		frame_run(&frame);                                             \
	}

void plan_general(uintptr_t function, const void *site, uintptr_t frame,
		  uint32_t event, uintptr_t return_address);
void plan_enter(void *function, void *site);
void plan_leave(void *function, void *site);

void plan_enter(void *function, void *site)
{
	plan_general((uintptr_t)function, site,
		     (uintptr_t)__builtin_dwarf_cfa(), 0,
		     (uintptr_t)__builtin_return_address(0));
}

void plan_leave(void *function, void *site)
{
	plan_general((uintptr_t)function, site,
		     (uintptr_t)__builtin_dwarf_cfa(), 1,
		     (uintptr_t)__builtin_return_address(0));
}

SLOW_HOOK(plan_slow_enter, 0)
SLOW_HOOK(plan_slow_leave, 1)
SLOW_HOOK(plan_inspecting_enter, 0)
SLOW_HOOK(plan_inspecting_leave, 1)

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
int edge_main_returned(int status);
extern __attribute__((visibility("hidden"))) bool edge_main_is_awaited;
int __libc_start_main(main_function program, int count, char **arguments,
		      void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end);

static int start_main(int count, char **arguments, char **environment)
{
	main_function program = (main_function)edge_main_begins();
	int status = program(count, arguments, environment);

	return edge_main_is_awaited ? edge_main_returned(status) : status;
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
