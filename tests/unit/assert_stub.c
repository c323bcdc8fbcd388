/*
 * What assertions need in the tests of single files, which have no shim/os/sys.c and no
 * state; builds without assertions do not call it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *claim, const char *file, int line);
bool state_is_protected(void);

void assert_failed(const char *claim, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, claim);
	abort();
}

bool state_is_protected(void)
{
	return true;
}
