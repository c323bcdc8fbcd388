/*
 * The checked mode (SHIM_CHECK=1): logs which calls of profilers were refused, and
 * their callers.
 */
#include "runtime/contract.h"

#include "inspect/info.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"

#include <shim/banned.h>

/* Each place is logged once.  The log has no room for more. */
#define PLACES_MAX 48

static uintptr_t places[PLACES_MAX];

/* True if the place is logged now. */
static bool is_new(uintptr_t place)
{
	for (unsigned i = 0; i < PLACES_MAX; i++) {
		uintptr_t before = 0;

		if (__atomic_compare_exchange_n(&places[i], &before, place,
						false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
		if (before == place)
			return false;
	}
	return false;
}

static void add_place(struct text *text, uintptr_t address)
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
	/* @caller is a return address; the call is before it. */
	add_place(&text, (uintptr_t)caller - 1);
	log_line("SHIM_CHECK: %s called by %s: %s (%s)", function, memory,
		 shim_result_name(result), why ? why : "");
}

SUBSCRIBE(call_refused, log_refusal);
