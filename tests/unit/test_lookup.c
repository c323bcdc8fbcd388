/*
 * Definitions in single objects: os/lookup.c.
 */
#define _GNU_SOURCE
#include "os/lookup.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <link.h>

Test(lookup, a_definition_is_found_in_its_object_only)
{
	struct link_map *map = dlopen(PLUGIN, RTLD_NOW);
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	uintptr_t of_plugin, of_libc;
	size_t size = 0;

	cr_assert(map != NULL);
	cr_assert(libc != NULL);
	of_plugin = (uintptr_t)map->l_ld;
	of_libc = (uintptr_t)((struct link_map *)libc)->l_ld;
	cr_expect(eq(ptr,
		     lookup_within(of_plugin, of_plugin + 1, "plugin_function",
				   &size),
		     dlsym(map, "plugin_function")));
	cr_expect(gt(sz, size, 0));
	cr_expect(eq(
		ptr,
		lookup_within(of_libc, of_libc + 1, "plugin_function", &size),
		NULL));
	cr_expect(eq(ptr, lookup_within(of_libc, of_libc + 1, "atoi", &size),
		     dlsym(libc, "atoi")));
	cr_expect(eq(ptr,
		     lookup_within(of_plugin, of_plugin + 1, "atoi", &size),
		     NULL));
	/* No object begins there. */
	cr_expect(eq(ptr,
		     lookup_within(of_plugin + 1, of_plugin + 2,
				   "plugin_function", &size),
		     NULL));
	cr_expect(eq(ptr,
		     lookup_within(of_plugin - 1, of_plugin, "plugin_function",
				   &size),
		     NULL));
}
