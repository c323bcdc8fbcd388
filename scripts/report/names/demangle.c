/*
 * The demangler of libstdc++, on a leash.  A few hundred bytes of a hostile
 * name can mean gigabytes of text or a deep recursion.  The recursion has a
 * limit of its own (names of more than 1 KB stay as they are); for the text we
 * use the variant of __cxa_demangle that hands it over piece by piece and
 * allocates nothing, so that we can jump out of it when it is enough.  It runs in
 * sandboxes all the same.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "names/demangle.h"

#define TEXT_MAX 16384

/* In libsupc++.a; <cxxabi.h> does not declare it. */
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
