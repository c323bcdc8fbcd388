/*
 * Ways to leave frames that no leave hook sees: longjmp and kin, exceptions of
 * compilers that do not call it, and coroutines, which leave a whole stack.
 */
#define _GNU_SOURCE
#include "edge.h"

#include "arch.h"
#include "events.h"
#include "track.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <ucontext.h>
#include <unwind.h>

#include <shim/banned.h>

/* --- setjmp: the stubs are in entry.S --- */

static const char *const savers[] = { "setjmp", "_setjmp", "__sigsetjmp" };
static void *real_savers[3];

__attribute__((visibility("hidden"))) void *
edge_jump_saved(const void *buffer, uintptr_t sp, unsigned which);

void *edge_jump_saved(const void *buffer, uintptr_t sp, unsigned which)
{
	if (!real_savers[which])
		real_savers[which] = edge_next(savers[which]);
	RAISE(jump_saved, buffer, sp);
	return real_savers[which];
}

/* --- longjmp --- */

typedef void (*jumper)(void *buffer, int value) __attribute__((noreturn));

static const char *const jumpers[] = { "longjmp", "_longjmp", "siglongjmp",
				       "__longjmp_chk" };
static jumper real_jumpers[4];

static __attribute__((noreturn)) void jump(unsigned which, void *buffer,
					   int value)
{
	if (!real_jumpers[which])
		real_jumpers[which] = (jumper)edge_next(jumpers[which]);
	guard_jumped(arch_jump_sp(buffer));
	track_unwound(arch_jump_sp(buffer), NULL, false);
	RAISE(jump_taken, buffer, arch_jump_sp(buffer));
	real_jumpers[which](buffer, value);
}

EDGE __attribute__((noreturn)) void longjmp(void *buffer, int value);
EDGE __attribute__((noreturn)) void _longjmp(void *buffer, int value);
EDGE __attribute__((noreturn)) void siglongjmp(void *buffer, int value);
EDGE __attribute__((noreturn)) void __longjmp_chk(void *buffer, int value);

void longjmp(void *buffer, int value)
{
	jump(0, buffer, value);
}

void _longjmp(void *buffer, int value)
{
	jump(1, buffer, value);
}

void siglongjmp(void *buffer, int value)
{
	jump(2, buffer, value);
}

void __longjmp_chk(void *buffer, int value)
{
	jump(3, buffer, value);
}

/* --- exceptions --- */

/*
 * The personality routine is asked at every frame; when it says that the frame
 * has a landing pad, everything deeper is gone.  _Unwind_GetCFA is then the
 * stack pointer that the frame had at its call.
 *
 * An object that was dlopened with its own C++ library finds our routine first
 * and that library not at all from here: it is looked for from the object.
 */
typedef _Unwind_Reason_Code (*personality)(int version, _Unwind_Action actions,
					   _Unwind_Exception_Class class,
					   struct _Unwind_Exception *exception,
					   struct _Unwind_Context *context);

struct routine {
	const char *name;
	const char *library;
	personality real;
};

static struct routine cxx = { "__gxx_personality_v0", "libstdc++.so.6", NULL };
static struct routine c = { "__gcc_personality_v0", "libgcc_s.so.1", NULL };

static _Unwind_Word (*get_cfa)(struct _Unwind_Context *);
static _Unwind_Ptr (*get_ip)(struct _Unwind_Context *);

static void *find_in(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);

	return handle ? dlsym(handle, name) : NULL;
}

static void *find_from(struct _Unwind_Context *context, const char *name)
{
	Dl_info object;

	if (!get_ip || !dladdr((void *)get_ip(context), &object))
		return NULL;
	return find_in(object.dli_fname, name);
}

static personality find_routine(struct routine *routine,
				struct _Unwind_Context *context)
{
	void *real = edge_next(routine->name);

	if (!real)
		real = find_in(routine->library, routine->name);
	if (!real)
		real = find_from(context, routine->name);
	return (personality)real;
}

static void *find_unwinder(const char *name)
{
	void *real = dlsym(RTLD_DEFAULT, name);

	return real ? real : find_in("libgcc_s.so.1", name);
}

static _Unwind_Reason_Code run(struct routine *routine, int version,
			       _Unwind_Action actions,
			       _Unwind_Exception_Class class,
			       struct _Unwind_Exception *exception,
			       struct _Unwind_Context *context)
{
	_Unwind_Reason_Code result;

	if (!routine->real) {
		get_cfa = (_Unwind_Word(*)(struct _Unwind_Context *))
			find_unwinder("_Unwind_GetCFA");
		get_ip = (_Unwind_Ptr(*)(struct _Unwind_Context *))
			find_unwinder("_Unwind_GetIP");
		routine->real = find_routine(routine, context);
		if (!routine->real)
			return _URC_FATAL_PHASE1_ERROR;
	}
	result = routine->real(version, actions, class, exception, context);
	if ((actions & _UA_CLEANUP_PHASE) && result == _URC_INSTALL_CONTEXT &&
	    get_cfa) {
		uintptr_t sp = get_cfa(context);

		guard_unwound(sp);
		track_unwound(sp, exception, true);
		RAISE(frames_unwound, sp);
	}
	return result;
}

EDGE _Unwind_Reason_Code __gxx_personality_v0(
	int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context);
EDGE _Unwind_Reason_Code __gcc_personality_v0(
	int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context);

_Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context)
{
	return run(&cxx, version, actions, class, exception, context);
}

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context)
{
	return run(&c, version, actions, class, exception, context);
}

/* --- coroutines --- */

static const char *const switchers[] = { "swapcontext", "setcontext" };
static void *real_switchers[2];
static void (*real_makecontext)(ucontext_t *context, void (*call)(void),
				int count, ...);

__attribute__((visibility("hidden"))) void *
edge_context_switched(const ucontext_t *context, unsigned which);

void *edge_context_switched(const ucontext_t *context, unsigned which)
{
	if (!real_switchers[which])
		real_switchers[which] = edge_next(switchers[which]);
	RAISE(stack_switched, ARCH_CONTEXT_SP(context));
	return real_switchers[which];
}

EDGE void makecontext(ucontext_t *context, void (*call)(void), int count, ...);

void makecontext(ucontext_t *context, void (*call)(void), int count, ...)
{
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	long a[16] = { 0 };
	va_list arguments;

	if (!real_makecontext)
		real_makecontext =
			(void (*)(ucontext_t *, void (*)(void), int, ...))
				edge_next("makecontext");
	va_start(arguments, count);
	for (int i = 0; i < count && i < 16; i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	RAISE(stack_created, low, low + context->uc_stack.ss_size);
	real_makecontext(context, call, count, a[0], a[1], a[2], a[3], a[4],
			 a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12],
			 a[13], a[14], a[15]);
}

void edge_jump_resolve(void)
{
	for (unsigned i = 0; i < 3; i++)
		real_savers[i] = edge_next(savers[i]);
	for (unsigned i = 0; i < 4; i++)
		real_jumpers[i] = (jumper)edge_next(jumpers[i]);
	for (unsigned i = 0; i < 2; i++)
		real_switchers[i] = edge_next(switchers[i]);
}
