/*
 * Notifies subscribers of calls of public functions that were refused.
 */
#include "runtime/contract.h"

#include <shim/banned.h>

enum shim_result contract_refused(enum shim_result result, const char *function,
				  const void *caller)
{
	NOTIFY(call_refused, result, function, caller);
	return result;
}
