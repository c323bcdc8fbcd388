/*
 * Code that counts calls, for those that lead to it instead of a hook.
 * It is in memory near the program's code, so that the distance of a call reaches it.
 */
#ifndef SHIM_CALL_COUNTERS_H
#define SHIM_CALL_COUNTERS_H

#include "arch.h"

#include <stdbool.h>
#include <stdint.h>

/* The counters of the thread; NULL: its calls are not counted. */
extern __thread uint64_t *call_counters
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The distance of that word from the thread pointer. */
static inline intptr_t call_counters_word(void)
{
	return (intptr_t)((uintptr_t)&call_counters - arch_thread_pointer());
}

/* The code of @counter for calls in the image [@start, @end), or 0: there is no memory
 * near it, or not on this processor.  @uncounted: where calls of threads without counters
 * go.  State lock held. */
uintptr_t call_counter_code(void (*uncounted)(void), uintptr_t start,
			    uintptr_t end, uint32_t counter);

/* Whether @address is in such code.  Async. */
bool call_counters_have(uintptr_t address);

#endif
