/*
 * What an assertion that fails does in the tests of single files, which have no
 * shim/os/sys.c; builds without assertions do not call it.
 */
#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *claim, const char *file, int line);

void assert_failed(const char *claim, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, claim);
	abort();
}
