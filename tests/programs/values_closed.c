/*
 * A library that is opened and closed many times: values_closed LIBRARY.  Its types
 * stay valid, and are the same each time.
 */
#include "values.h"

#include <dlfcn.h>

static const char *path;
static shim_type first;
static shim_function function;

static void open_and_close(int i)
{
	void *library = dlopen(path, RTLD_NOW);
	shim_type type = 0;
	enum shim_result r;

	if (!library) {
		fail(dlerror(), i);
		return;
	}
	function = (shim_function)dlsym(library, "plugin_function");
	r = shim_get_parameter_info(function, 0, &type, 0, NULL, NULL);
	if (r != SHIM_OK)
		fail("open", r);
	if (first == 0)
		first = type;
	if (type != first)
		fail("another type", i);
	dlclose(library);
}

static void show_all(void)
{
	char name[64] = "";
	uint32_t count = 0;
	int value = -3;

	path = getenv("PLUGIN");
	for (int i = 0; i < 200; i++)
		open_and_close(i);
	shim_get_type_info(first, NULL, NULL, sizeof(name), NULL, name);
	tell("closed", "name", name, "int");
	tell("closed", "text", print(first, &value, 0), "-3");
	printf("closed function\t%x\t80131351\n",
	       (unsigned)shim_get_parameter_count(function, &count));
}
