/*
 * A limited use of libstdc++'s demangler.  A hostile name of a few hundred
 * bytes can mean gigabytes of text or deep recursion.  The length limits the
 * recursion (names of more than 1 KB stay mangled).  For the text, a variant of
 * __cxa_demangle is used that delivers the text piece by piece and allocates
 * nothing, so that longjmp can stop it at a limit.  The demangler still runs in
 * sandboxes only.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "names/demangle.h"

#define TEXT_MAX 16384

/* Defined in libsupc++.a; <cxxabi.h> does not declare it. */
int __gcclibcxx_demangle_callback(const char *mangled,
				  void (*take)(const char *, size_t, void *),
				  void *opaque);

static jmp_buf enough;
static char text[TEXT_MAX];
static size_t length;

static void take(const char *piece, size_t size, void *opaque)
{
	(void)opaque;
	if (size >= sizeof(text) - length)
		longjmp(enough, 1);
	memcpy(text + length, piece, size);
	length += size;
}

static bool run_demangler(const char *name)
{
	length = 0;
	return !setjmp(enough) &&
	       !__gcclibcxx_demangle_callback(name, take, NULL);
}

const char *demangle_here(const char *name)
{
	if (name[0] != '_' || name[1] != 'Z' || !run_demangler(name))
		return name;
	return keep_text(text, length);
}
