/*
 * Objects that go while the program runs.  Those that come are noticed by the
 * first call in them (shim_image_note): dlopen itself must not be wrapped,
 * because it looks at who called it.
 */
#define _GNU_SOURCE
#include "edge.h"

#include "image.h"
#include "state.h"

#include <dlfcn.h>

#include <shim/banned.h>

static int (*real_dlclose)(void *handle);

EDGE int dlclose(void *handle)
{
	int result;

	if (!real_dlclose)
		edge_images_resolve();
	if (state_get() != STATE_RUNNING)
		return real_dlclose(handle);
	image_closing(1);
	result = real_dlclose(handle);
	image_closing(0);
	return result;
}

void edge_images_resolve(void)
{
	real_dlclose = (int (*)(void *))edge_next("dlclose");
}
