/*
 * A library whose dlsym finds no next __libc_start_main; with NO_NEXT=all in the
 * environment, it finds no symbol at all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void *dlsym(void *handle, const char *name)
{
	void *(*real)(void *, const char *) = (void *(*)(void *, const char *))
		dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	const char *which = getenv("NO_NEXT");

	if (!strcmp(name, "__libc_start_main") &&
	    (handle == RTLD_NEXT || (which && !strcmp(which, "all"))))
		return NULL;
	/* The next object after this one would be shim itself. */
	if (handle == RTLD_NEXT)
		handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	return real(handle, name);
}
