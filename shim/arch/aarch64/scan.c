/*
 * No call site is switched, and the table is what turns the hooks off.  It could
 * be done (bl and nop may change into each other while they are run), but has to
 * be seen on a processor: an emulator does not notice what is written through
 * /proc/self/mem, and has no caches that could be out of date.
 */
#include "dispatch/scan.h"

#include <shim/banned.h>

const struct scan_form scan_forms[SCAN_KINDS];

void scan_stubs(struct scan *scan, const struct view *text,
		struct frames *frames)
{
	(void)scan;
	(void)text;
	(void)frames;
}

void scan_calls(const struct scan *scan, const struct view *text,
		bool (*found)(uintptr_t address, enum scan_kind kind,
			      void *argument),
		void *argument)
{
	(void)scan;
	(void)text;
	(void)found;
	(void)argument;
}
