/*
 * The checked mode (SHIM_CHECK=1): logs calls of profilers that shim has refused, and
 * their callers.
 */
#include "runtime/contract.h"

#include "inspect/info.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"

#include <shim/banned.h>

/* Each caller is logged once, and no more than this, because the log is small. */
#define CALLERS_MAX 48

static uintptr_t callers[CALLERS_MAX];

/* Stores @caller.  False if it was logged before, or if the list is full. */
static bool is_new(uintptr_t caller)
{
	for (unsigned i = 0; i < CALLERS_MAX; i++) {
		uintptr_t before = 0;

		if (__atomic_compare_exchange_n(&callers[i], &before, caller,
						false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
		if (before == caller)
			return false;
	}
	return false;
}

static void add_caller(struct text *text, uintptr_t address)
{
	char name[160];
	uint64_t offset;

	if (!info_name_address(address, true, name, sizeof(name), &offset)) {
		text_add(text, "code of no image");
		return;
	}
	text_add(text, name);
	text_add(text, "+");
	text_add_number(text, offset);
}

static void log_refusal(enum shim_result result, const char *function,
			const void *caller)
{
	const char *why = shim_result_text(result);
	char memory[200];
	struct text text;

	if (config.check[0] != '1' || !is_new((uintptr_t)caller))
		return;
	text_init(&text, memory, sizeof(memory));
	/* @caller is a return address, and the call is before it. */
	add_caller(&text, (uintptr_t)caller - 1);
	log_line("SHIM_CHECK: %s called by %s: %s (%s)", function, memory,
		 shim_result_name(result), why ? why : "");
}

SUBSCRIBE(call_refused, log_refusal);
