/*
 * Code that counts the calls of a hook, for calls that lead to it instead of the hook.
 * It is in memory near the program's code, so that the distance of a call reaches it.
 */
#ifndef SHIM_CALL_COUNTERS_H
#define SHIM_CALL_COUNTERS_H

#include "arch.h"

#include <stdbool.h>
#include <stdint.h>

/* The counters of the thread; NULL: its calls reach the hook. */
extern __thread uint64_t *call_counters
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* The distance of that word from the thread pointer. */
static inline intptr_t call_counters_word(void)
{
	return (intptr_t)((uintptr_t)&call_counters - arch_thread_pointer());
}

/* The code of @counter for calls in the image [@start, @end), or 0: there is no memory
 * near it, or not on this processor.  State lock held. */
uintptr_t call_counter_code(uintptr_t start, uintptr_t end, uint32_t counter);

/* Whether @address is in such code.  Async. */
bool call_counters_have(uintptr_t address);

#endif
