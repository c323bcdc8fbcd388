/* hooks_own_host LIBRARY [deep] - opens the library, calls it, and prints the calls of
 * its hooks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
	void *library = dlopen(arguments[1], RTLD_LAZY | (count > 2 ?
							   RTLD_DEEPBIND : 0));
	int (*outside)(int), (*calls)(void);

	if (!library)
		return 1;
	outside = (int (*)(int))dlsym(library, "outside");
	calls = (int (*)(void))dlsym(library, "outside_calls");
	/* Now shim inspects the loaded objects. */
	dlclose(dlopen(arguments[1], RTLD_LAZY | RTLD_NOLOAD));
	outside(2);
	outside(2);
	printf("%d\n", calls());
	return 0;
}
