/*
 * Opens two libraries ("grouped_opens LIBRARY LIBRARY ROUNDS") in turn, calls each and
 * closes it.  The second one most often comes to the addresses of the first one.
 */
#include <dlfcn.h>
#include <stdlib.h>

int main(int count, char **words)
{
	int rounds = count > 3 ? 2 * atoi(words[3]) : 0;

	for (int i = 0; i < rounds; i++) {
		void *library = dlopen(words[1 + i % 2], RTLD_NOW);
		int (*call)(int, int);

		if (!library)
			return 1;
		call = (int (*)(int, int))dlsym(library, "library_call");
		call(7, 8);
		dlclose(library);
	}
	return 0;
}
