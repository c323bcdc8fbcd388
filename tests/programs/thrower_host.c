/*
 * thrower_host LIBRARY - a program in C that opens, uses and closes it, twice.
 */
#include "truth.h"

#include <dlfcn.h>

int main(int count, char **arguments)
{
	for (int i = 0; count > 1 && i < 2; i++) {
		void *handle = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
		int (*work)(int);

		if (!handle) {
			print_text(dlerror());
			return 1;
		}
		work = (int (*)(int))dlsym(handle, "work");
		printf("%d\n", work(10));
		dlclose(handle);
		printf("%s\n", dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) ?
				       "stays" :
				       "gone");
	}
	return 0;
}
