/*
 * Opens and closes a library ("source_reopened LIBRARY") and calls it, again and again.
 * Prints by how many KiB that makes the process larger.
 */
#include <dlfcn.h>
#include <stdio.h>

static long size_now(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!file || fscanf(file, "%ld", &pages) != 1)
		return -1;
	fclose(file);
	return pages * 4;
}

int main(int count, char **words)
{
	long before = 0;

	for (int i = 0; i < 400 && count > 1; i++) {
		void *library = dlopen(words[1], RTLD_NOW);
		int (*function)(int);

		if (!library)
			return 1;
		function = (int (*)(int))dlsym(library, "library_sum");
		function(5);
		dlclose(library);
		if (i == 100)
			before = size_now();
	}
	printf("%ld\n", size_now() - before);
	return 0;
}
