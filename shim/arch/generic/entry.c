/*
 * The compiler's hooks in plain C.  A frame of shim is between the program and the
 * profiler, unless the compiler turns the call into a jump.
 */
#include "arch.h"
#include "runtime/asm_offsets.h"

#include <stddef.h>

typedef void (*hook)(void *function, void *site);

extern __attribute__((visibility("hidden"))) hook table_current[2];

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);
void table_nothing(void *function, void *site);
void *edge_early(uintptr_t function, const void *site, unsigned event);

/* The table is empty until shim has started. */
static inline void call_hook(unsigned event, void *function, void *site)
{
	hook next = table_current[event];

	if (!next)
		next = (hook)edge_early((uintptr_t)function, site, event);
	if (next)
		next(function, site);
}

__attribute__((visibility("default"))) void
__cyg_profile_func_enter(void *function, void *site)
{
	call_hook(0, function, site);
}

__attribute__((visibility("default"))) void
__cyg_profile_func_exit(void *function, void *site)
{
	call_hook(1, function, site);
}

void table_nothing(void *function, void *site)
{
	(void)function;
	(void)site;
}

/* If the hook's return address is not the call site, the function has called the hook
 * from inside, not by a jump at its end.  Then leaves_decide finds out how the function
 * ends. */
extern __attribute__((visibility("hidden"))) hook leaves_hooks[3];
void *leaves_decide(uintptr_t function, const void *site, uintptr_t frame,
		    uintptr_t return_address);
void leaves_sort(void *function, void *site);

void leaves_sort(void *function, void *site)
{
	void *address = __builtin_return_address(0);
	hook decided = leaves_hooks[0];

	if (address != site)
		decided = (hook)leaves_decide((uintptr_t)function, site,
					      (uintptr_t)__builtin_dwarf_cfa(),
					      (uintptr_t)address);
	decided(function, site);
}

void frame_run(struct arch_frame *frame);
void plan_slow_enter(void *function, void *site);
void plan_slow_leave(void *function, void *site);
void plan_slow_tailcall(void *function, void *site);
void plan_inspecting_enter(void *function, void *site);
void plan_deferred_enter(void *function, void *site);
void plan_inspecting_leave(void *function, void *site);

#define SLOW_HOOK(name, number) \
	void name(void *function, void *site) \
	{ \
		struct arch_frame frame = { \
			.event = number, \
			.function = (uintptr_t)function, \
			.site = site, \
			.return_address = (uintptr_t)__builtin_return_address( \
				0), \
			.cfa = (uintptr_t)__builtin_dwarf_cfa(), \
		}; \
\
		frame_run(&frame); \
	}

void plan_general(uintptr_t function, const void *site, uintptr_t frame,
		  uint32_t event, uintptr_t return_address);
void plan_enter(void *function, void *site);
void plan_leave(void *function, void *site);
void plan_tailcall(void *function, void *site);
void plan_unwinding(void *function, void *site);
void plan_inspecting_unwinding(void *function, void *site);
void plan_inspecting_tailcall(void *function, void *site);

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

void plan_tailcall(void *function, void *site)
{
	plan_general((uintptr_t)function, site,
		     (uintptr_t)__builtin_dwarf_cfa(), 2,
		     (uintptr_t)__builtin_return_address(0));
}

void plan_unwinding(void *function, void *site)
{
	plan_general((uintptr_t)function, site,
		     (uintptr_t)__builtin_dwarf_cfa(), LAYOUT_UNWINDING,
		     (uintptr_t)__builtin_return_address(0));
}

SLOW_HOOK(plan_inspecting_unwinding, LAYOUT_UNWINDING)
SLOW_HOOK(plan_inspecting_tailcall, 2)
SLOW_HOOK(plan_slow_enter, 0)
SLOW_HOOK(plan_slow_leave, 1)
SLOW_HOOK(plan_slow_tailcall, 2)
SLOW_HOOK(plan_inspecting_enter, 0)
SLOW_HOOK(plan_deferred_enter, 0)
SLOW_HOOK(plan_inspecting_leave, 1)

void shim_hook_defer(uintptr_t function, const void *site);

__attribute__((visibility("default"))) void shim_hook_defer(uintptr_t function,
							    const void *site)
{
	plan_deferred_enter((void *)function, (void *)site);
}

/* --- functions for which a port has stubs that jump --- */

#define EDGE __attribute__((visibility("default")))

struct begun {
	void *argument;
	uint64_t is_watched;
};

void *edge_opens(const char *path, int flags, long unused, const void *caller);
void *edge_opens_in(long space, const char *path, int flags,
		    const void *caller);
void *edge_throws(const void *object, const void *type, void *destructor,
		  const void *caller);
void *edge_rethrows(long a, long b, long c, const void *caller);
void *edge_catches(void *exception, long b, long c, const void *caller);
void *edge_caught(long a, long b, long c, const void *caller);
void *edge_thread_exits(void);
void *edge_c11_thread_exits(void);
void *edge_thread_begins(void *start, struct begun *begun);
void edge_thread_returned(void);
void *edge_thread_start(void *start);
void *dlopen(const char *path, int flags);
void *dlmopen(long space, const char *path, int flags);
void __cxa_throw(void *object, void *type, void (*destructor)(void *));
void __cxa_rethrow(void);
void *__cxa_begin_catch(void *exception);
void __cxa_end_catch(void);
void pthread_exit(void *result);
void thrd_exit(int result);

/* For libc the caller is shim, so libc does not use the search path of the program's
 * object. */
EDGE void *dlopen(const char *path, int flags)
{
	return ((void *(*)(const char *, int))edge_opens(
		path, flags, 0, __builtin_return_address(0)))(path, flags);
}

EDGE void *dlmopen(long space, const char *path, int flags)
{
	return ((void *(*)(long, const char *, int))edge_opens_in(
		space, path, flags, __builtin_return_address(0)))(space, path,
								  flags);
}

EDGE void __cxa_throw(void *object, void *type, void (*destructor)(void *))
{
	((void (*)(void *, void *, void (*)(void *)))edge_throws(
		object, type, (void *)destructor, __builtin_return_address(0)))(
		object, type, destructor);
	__builtin_unreachable();
}

EDGE void __cxa_rethrow(void)
{
	((void (*)(void))edge_rethrows(0, 0, 0, __builtin_return_address(0)))();
	__builtin_unreachable();
}

EDGE void *__cxa_begin_catch(void *exception)
{
	return ((void *(*)(void *))edge_catches(
		exception, 0, 0, __builtin_return_address(0)))(exception);
}

EDGE void __cxa_end_catch(void)
{
	((void (*)(void))edge_caught(0, 0, 0, __builtin_return_address(0)))();
}

EDGE void pthread_exit(void *result)
{
	((void (*)(void *))edge_thread_exits())(result);
	__builtin_unreachable();
}

EDGE void thrd_exit(int result)
{
	((void (*)(int))edge_c11_thread_exits())(result);
	__builtin_unreachable();
}

void *edge_thread_start(void *start)
{
	struct begun begun;
	void *(*call)(void *) = (void *(*)(void *))edge_thread_begins(start,
								      &begun);
	void *result = call(begun.argument);

	if (begun.is_watched)
		edge_thread_returned();
	return result;
}

/* On PowerPC libc gets main in a structure, so shim does not see main. */
#ifndef __powerpc__
typedef int (*main_function)(int count, char **arguments, char **environment);
typedef int (*start_function)(main_function program, int count,
			      char **arguments, void (*init)(void),
			      void (*fini)(void), void (*rtld_fini)(void),
			      void *stack_end);

/* shim/edge/start.c */
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
