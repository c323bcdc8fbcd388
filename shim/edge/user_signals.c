/*
 * The set of signals that profilers have enabled: one word of bits, which
 * signal handlers read.
 */
#include "edge/user_signals.h"

#include "runtime/contract.h"

#include <shim/signals.h>

#include <shim/banned.h>

static uint64_t registered; /* bit N: signal N */
static void (*establish_it)(int signal);

void user_signals_load(void (*establish)(int signal))
{
	establish_it = establish;
	for (int signal = 1; signal < 64; signal++)
		if (registered & 1ull << signal)
			establish(signal);
}

enum shim_result
shim_profiler_enable_signal(struct shim_profiler_handle *handle, int signal)
{
	ENTRY_INIT_OF(handle);
	if (!shim_signal_is_free(signal))
		return SHIM_E_INVALIDARG;
	if (__atomic_fetch_or(&registered, 1ull << signal, __ATOMIC_ACQ_REL) &
	    1ull << signal)
		return SHIM_OK;
	if (establish_it)
		establish_it(signal);
	return SHIM_OK;
}
