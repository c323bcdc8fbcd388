/*
 * told LIBRARY - a program in C that opens a library in C++, and calls dlerror only
 * after that library has thrown.
 */
#include "truth.h"

#include <dlfcn.h>

int main(int count, char **arguments)
{
	void *handle = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	int (*work)(int) = NULL;
	const char *text;

	if (!handle)
		return 1;
	work = (int (*)(int))dlsym(handle, "work");
	if (dlsym(handle, "nothing"))
		return 2;
	printf("%d\n", work(3));
	text = dlerror();
	puts(text ? text : "no text");
	return 0;
}
