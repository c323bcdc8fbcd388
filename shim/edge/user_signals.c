/*
 * The set of signals that profilers have enabled.  Profilers may enable them before
 * libc can be used, so this file only stores the set; edge/caught_signals.c catches the
 * signals later.
 */
#include "edge/user_signals.h"

#include "runtime/contract.h"

#include <shim/signals.h>

#include <shim/banned.h>

static uint64_t enabled_signals; /* bit N: signal N */
static void (*catch_signal)(int signal);

void user_signals_load(void (*catch)(int signal))
{
	catch_signal = catch;
	for (int signal = 1; signal < 64; signal++)
		if (enabled_signals & 1ull << signal)
			catch (signal);
}

enum shim_result
shim_profiler_enable_signal(struct shim_profiler_handle *handle, int signal)
{
	ENTRY_INIT_OF(handle);
	if (!shim_signal_is_free(signal))
		return SHIM_E_INVALIDARG;
	if (__atomic_fetch_or(&enabled_signals, 1ull << signal,
			      __ATOMIC_ACQ_REL) &
	    1ull << signal)
		return SHIM_OK;
	if (catch_signal)
		catch_signal(signal);
	return SHIM_OK;
}
