/*
 * Calls libshim-debuginfo.so (debuginfo/debuginfo.h).
 *
 * A call takes time, stack, and a lock of its own, so only SHIM_MAY_BLOCK functions may
 * call it.  The caller must not hold the state lock.  The query runs on a stack of shim
 * with all signals blocked.
 */
#ifndef SHIM_HELPER_H
#define SHIM_HELPER_H

#include "inspect/debuginfo/debuginfo.h"

#include <shim/shim.h>
#include <stdbool.h>

enum helper_verb {
	HELPER_LINES,
	HELPER_FILE,
	HELPER_TEMPLATE_ARGUMENTS,
	HELPER_PROTOTYPE,
	HELPER_CALLSITE,
	HELPER_CALLED,
	HELPER_SIGNATURE,
	HELPER_LOCALS,
	HELPER_LINETABLE,
	HELPER_OPEN_IMAGE, /* has no answer; makes later queries faster */
	HELPER_DEMANGLE,   /* @name; the answer counts its NUL */
};

/* Opens the library if it is not open, for callers that cannot open an object later. */
void helper_prepare(void);
/* Called on a new thread, whose code does not run yet. */
void helper_thread_begins(void);
/* Whether the library is open. */
bool helper_is_open(void);

/*
 * Makes the query, and calls take(answer, argument) with the lock held.  Returns
 * SHIM_OK; SHIM_E_FUNCTION_NOT_IL without a helper or an answer;
 * SHIM_E_NOT_YET_AVAILABLE if another thread holds the lock for long.
 */
enum shim_result
helper_ask(enum helper_verb verb, const struct debuginfo_question *question,
	   const char *name,
	   void (*take)(const struct debuginfo_answer *answer, void *argument),
	   void *argument);

#endif
