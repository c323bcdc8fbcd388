/*
 * Ends exceptions that a profiler's callback throws.
 *
 * arch_call_guarded has this personality routine.  The routine claims to handle every
 * exception, so the unwinder unwinds no frame above, and continues after the call.  It lets
 * forced unwinding (pthread_exit, cancellation) pass: the thread ends, and guard_unwound
 * removes the guards of its callbacks.
 *
 * The unwinder belongs to the program.  shim looks it up by name only after a callback has
 * thrown an exception.
 */
#define _GNU_SOURCE
#include "arch.h"
#include "os/lookup.h"
#include "runtime/events.h"

#include <unwind.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN _Unwind_Reason_Code guard_personality(
	int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context);
HIDDEN void guard_caught(struct _Unwind_Exception *exception);

static void *find_unwinder(const char *name)
{
	void *found = lookup_first(name);

	return found ? found : lookup_beside("libgcc_s.so.1", name);
}

/* Finds the next definition, because shim defines the same name. */
static void *find_next(const char *name)
{
	void *found = lookup_next(name);

	return found ? found : lookup_beside("libstdc++.so.6", name);
}

#ifndef ARCH_NO_GUARD
_Unwind_Reason_Code guard_personality(int version, _Unwind_Action actions,
				      _Unwind_Exception_Class class,
				      struct _Unwind_Exception *exception,
				      struct _Unwind_Context *context)
{
	void (*set_gr)(struct _Unwind_Context *, int, _Unwind_Word);
	void (*set_ip)(struct _Unwind_Context *, _Unwind_Ptr);
	_Unwind_Word (*get_cfa)(struct _Unwind_Context *);

	(void)version;
	(void)class;
	if (actions & _UA_FORCE_UNWIND) {
		get_cfa = (_Unwind_Word(*)(struct _Unwind_Context *))
			find_unwinder("_Unwind_GetCFA");
		if ((actions & _UA_CLEANUP_PHASE) && get_cfa)
			guard_unwound(get_cfa(context));
		return _URC_CONTINUE_UNWIND;
	}
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	set_gr = (void (*)(struct _Unwind_Context *, int,
			   _Unwind_Word))find_unwinder("_Unwind_SetGR");
	set_ip = (void (*)(struct _Unwind_Context *, _Unwind_Ptr))find_unwinder(
		"_Unwind_SetIP");
	if (!set_gr || !set_ip)
		return _URC_FATAL_PHASE2_ERROR;
	set_gr(context, 0, (_Unwind_Word)exception);
	set_ip(context, (_Unwind_Ptr)arch_guard_caught);
	return _URC_INSTALL_CONTEXT;
}
#endif

/* Begins and ends a catch block, because the C++ library counts uncaught exceptions. */
void guard_caught(struct _Unwind_Exception *exception)
{
	void *(*begin)(void *) = (void *(*)(void *))find_next(
		"__cxa_begin_catch");
	void (*end)(void) = (void (*)(void))find_next("__cxa_end_catch");
	void (*delete)(struct _Unwind_Exception *) =
		(void (*)(struct _Unwind_Exception *))find_unwinder(
			"_Unwind_DeleteException");

	if (begin && end) {
		begin(exception);
		end();
	} else if (delete) {
		delete (exception);
	}
}
