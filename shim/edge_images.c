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

static int scan(void *unused)
{
	(void)unused;
	return image_scan();
}

EDGE int dlclose(void *handle)
{
	int result;

	if (!real_dlclose)
		edge_images_resolve();
	result = real_dlclose(handle);
	if (result == 0 && state_get() == STATE_RUNNING)
		state_slowly(scan, NULL);
	return result;
}

void edge_images_resolve(void)
{
	real_dlclose = (int (*)(void *))edge_next("dlclose");
}
