/*
 * Opens a library ("entries_opens LIBRARY") whose constructor calls a function of few
 * instructions for 20 ms, and calls that function again.  With -DLIBRARY, it is the library;
 * with -DLONG, too, the function has room for a jump.
 */
#ifdef LIBRARY
#include <time.h>

int short_one(int value);
int later(int value);

/* Called through the linkage table: a timer then often interrupts it at its beginning. */
__attribute__((noinline, noclone)) int short_one(int value)
{
#ifdef LONG
	value ^= 1000;
	__asm__ volatile("" : "+r"(value));
	value ^= 1000;
#endif
	__asm__ volatile("");
	return value + 1;
}

static int sum;

__attribute__((constructor)) static void construct(void)
{
	struct timespec now, begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (int i = 0; i < 100000; i++)
			sum = short_one(sum);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000l + now.tv_nsec -
			 begin.tv_nsec <
		 20000000);
}

int later(int value)
{
	return short_one(value);
}
#else
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words)
{
	void *library = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
	int (*later)(int);

	if (!library)
		return 1;
	later = (int (*)(int))dlsym(library, "later");
	printf("%d\n", later(3));
	return 0;
}
#endif
