/*
 * Opens and closes a library ("source_opens LIBRARY") three times, and calls it.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words)
{
	int sum = 0;

	for (int i = 0; i < 3 && count > 1; i++) {
		void *library = dlopen(words[1], RTLD_NOW);
		int (*function)(int);

		if (!library)
			return 1;
		function = (int (*)(int))dlsym(library, "library_sum");
		sum += function(5);
		dlclose(library);
	}
	printf("%d\n", sum);
	return 0;
}
