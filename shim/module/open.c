/*
 * Opens libraries of modules.  After each, images, coverage and the prefetch of debug
 * information search for new objects, as after a dlopen of the program.
 */
#include "module/open.h"

#include "coverage/coverage.h"
#include "image/image.h"
#include "inspect/debuginfo_prefetch.h"
#include "os/lookup.h"
#include "runtime/events.h"

#include <shim/banned.h>

void open_look_again(const struct image_objects *added)
{
	if (added)
		image_look_for_added(added);
	else
		image_look_again();
	coverage_scan_new();
	prefetch_new_images();
	image_raise_pending();
}

void *module_open(const char *path, int flags)
{
	static void *(*real)(const char *path, int flags);
	void *handle;

	if (!real)
		real = (void *(*)(const char *, int))lookup_real("dlopen");
	handle = real(path, flags);
	if (handle && path &&
	    (events_counts.image_loaded > 0 || prefetch_is_on()))
		open_look_again(NULL);
	return handle;
}
