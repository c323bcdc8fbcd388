/* hooks_own_host LIBRARY [deep] - opens it, calls it, and says what its hooks saw */
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
	/* Now shim looks at what is loaded. */
	dlclose(dlopen(arguments[1], RTLD_LAZY | RTLD_NOLOAD));
	outside(2);
	outside(2);
	printf("%d\n", calls());
	return 0;
}
