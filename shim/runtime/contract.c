/*
 * Notifies subscribers of refused calls of public functions.  The header has the checks,
 * which are inlined; this rare path is a function of its own.
 */
#include "runtime/contract.h"

#include <shim/banned.h>

enum shim_result contract_refused(enum shim_result result, const char *function,
				  const void *caller)
{
	NOTIFY(call_refused, result, function, caller);
	return result;
}
