/*
 * Ends the process when an assertion fails.  The message goes to standard error, because
 * the log may be broken.
 */
#include "os/assert.h"

#ifdef SHIM_ASSERTIONS

#include "os/sys.h"
#include "os/text.h"

#include <shim/banned.h>

void assert_failed(const char *claim, const char *file, int line)
{
	char memory[512];
	struct text text;

	text_init(&text, memory, sizeof(memory));
	text_add(&text, "shim: assertion failed: ");
	text_add(&text, claim);
	text_add(&text, " at ");
	text_add(&text, file);
	text_add(&text, ":");
	text_add_number(&text, (uint64_t)line);
	text_add(&text, "\n");
	sys_write(2, text.start, text.length);
	__builtin_trap();
}

#endif
