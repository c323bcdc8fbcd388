/*
 * Exceptions that come out of a profiler's callback end there.
 *
 * arch_call_guarded has this personality routine.  It says "a handler" to every
 * exception, so that nothing above is unwound, and goes on behind the call.  A
 * forced unwinding (pthread_exit, cancellation) is let through: the thread ends,
 * and what we noted of the callback goes with its frames.
 *
 * The unwinder is the program's own, wherever it has it: found by name when
 * something was thrown, never before.
 */
#define _GNU_SOURCE
#include "arch.h"
#include "events.h"

#include <dlfcn.h>
#include <unwind.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN _Unwind_Reason_Code guard_personality(int version,
					     _Unwind_Action actions,
					     _Unwind_Exception_Class class,
					     struct _Unwind_Exception *exception,
					     struct _Unwind_Context *context);
HIDDEN void guard_caught(struct _Unwind_Exception *exception);

static void *find(void *from, const char *name, const char *library)
{
	void *found = dlsym(from, name), *handle;

	if (found)
		return found;
	handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	return handle ? dlsym(handle, name) : NULL;
}

#ifndef ARCH_NO_GUARD
_Unwind_Reason_Code guard_personality(int version, _Unwind_Action actions,
				      _Unwind_Exception_Class class,
				      struct _Unwind_Exception *exception,
				      struct _Unwind_Context *context)
{
	static const char libgcc[] = "libgcc_s.so.1";
	void (*set_gr)(struct _Unwind_Context *, int, _Unwind_Word);
	void (*set_ip)(struct _Unwind_Context *, _Unwind_Ptr);
	_Unwind_Word (*get_cfa)(struct _Unwind_Context *);

	(void)version;
	(void)class;
	if (actions & _UA_FORCE_UNWIND) {
		get_cfa = (_Unwind_Word(*)(struct _Unwind_Context *))find(
			RTLD_DEFAULT, "_Unwind_GetCFA", libgcc);
		if ((actions & _UA_CLEANUP_PHASE) && get_cfa)
			guard_unwound(get_cfa(context));
		return _URC_CONTINUE_UNWIND;
	}
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	set_gr = (void (*)(struct _Unwind_Context *, int, _Unwind_Word))find(
		RTLD_DEFAULT, "_Unwind_SetGR", libgcc);
	set_ip = (void (*)(struct _Unwind_Context *, _Unwind_Ptr))find(
		RTLD_DEFAULT, "_Unwind_SetIP", libgcc);
	if (!set_gr || !set_ip)
		return _URC_FATAL_PHASE2_ERROR;
	set_gr(context, 0, (_Unwind_Word)exception);
	set_ip(context, (_Unwind_Ptr)arch_guard_caught);
	return _URC_INSTALL_CONTEXT;
}
#endif

/* As a catch block would: the C++ library counts uncaught exceptions. */
void guard_caught(struct _Unwind_Exception *exception)
{
	void *(*begin)(void *) = (void *(*)(void *))find(
		RTLD_NEXT, "__cxa_begin_catch", "libstdc++.so.6");
	void (*end)(void) =
		(void (*)(void))find(RTLD_NEXT, "__cxa_end_catch",
				     "libstdc++.so.6");
	void (*delete)(struct _Unwind_Exception *) =
		(void (*)(struct _Unwind_Exception *))find(
			RTLD_DEFAULT, "_Unwind_DeleteException", "libgcc_s.so.1");

	if (begin && end) {
		begin(exception);
		end();
	} else if (delete) {
		delete(exception);
	}
}
