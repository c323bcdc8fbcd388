/*
 * Finds no call sites, because the processor is unknown.  So the hook table alone
 * switches hooks off.
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

bool scan_reads_return(const struct view *text, uintptr_t start, uintptr_t end)
{
	(void)text;
	(void)start;
	(void)end;
	return false;
}
