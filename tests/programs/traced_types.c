/*
 * Calls with arguments and results of every type that a trace has as bytes, or as
 * text.
 *
 *     traced_types            one of each
 *     traced_types fork       the same in a child, which another parent's call made
 *     traced_types threads    the same in two threads at once
 *     traced_types full       the same where no file can be made from then on
 *     traced_types PLUGIN     plugin_function of it, which is opened and closed twice
 */
#include "truth.h"

#include <complex.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum colour { RED, GREEN, BLUE };
enum flags { READ = 1, WRITE = 2, EXECUTE = 4 };

struct numbers {
	char letter;
	short small;
	unsigned low : 3, high : 5;
	double exact[2];
};

struct mixed {
	int number;
	const char *name;
};

struct large {
	long number[20];
};

typedef int (*hook)(void);

#define ENTRY APART __attribute__((used))
#define USE(value) __asm__ volatile("" : : "r"(&(value)) : "memory")

#define TAKES(name, type)              \
	ENTRY type name(type value);   \
	ENTRY type name(type value)    \
	{                              \
		type copy = value;     \
		USE(copy);             \
		return copy;           \
	}

TAKES(truth, bool)
TAKES(letter, char)
TAKES(byte, unsigned char)
TAKES(number, int)
TAKES(longest, unsigned long)
TAKES(colour, enum colour)
TAKES(rights, enum flags)
TAKES(single, float)
TAKES(twice, double)
TAKES(extended, long double)
TAKES(wide, __int128)
TAKES(imaginary, double _Complex)
TAKES(numbers, struct numbers)
TAKES(mixed, struct mixed)
TAKES(large, struct large)
TAKES(address, void *)
TAKES(callback, hook)
TAKES(string, const char *)
TAKES(nothing, struct numbers *)

ENTRY void many(char a, short b, int c, long d, float e, double f, bool g, int h,
		char i, char j, char k, char l, char m, int n);
ENTRY void many(char a, short b, int c, long d, float e, double f, bool g, int h,
		char i, char j, char k, char l, char m, int n)
{
	volatile double sum = a + b + c + d + e + f + g + h + i + j + k + l + m + n;

	(void)sum;
}

ENTRY int with_a_name_that_is_longer(int a_name_that_has_more_than_24_bytes);
ENTRY int with_a_name_that_is_longer(int a_name_that_has_more_than_24_bytes)
{
	USE(a_name_that_has_more_than_24_bytes);
	return 0;
}

ENTRY void strings(const char *a, const char *b, const char *c, const char *d,
		   int last);
ENTRY void strings(const char *a, const char *b, const char *c, const char *d,
		   int last)
{
	USE(a);
	USE(b);
	USE(c);
	USE(d);
	USE(last);
}

QUIET static int hooked(void)
{
	return 0;
}

QUIET static void *call_all(void *unused)
{
	char text[] = "to be changed";
	char long_text[101];
	void *heap = malloc(100);

	(void)unused;
	truth(true);
	letter('a');
	letter('\n');
	byte(200);
	number(-1234567890);
	longest(~0ul);
	colour(BLUE);
	colour(7);
	rights(READ | EXECUTE);
	single(0.1f);
	twice(-1.0 / 3);
	extended(1e300L * 1e100L);
	wide(((__int128)1 << 100) + 1);
	imaginary(1.5 - 2 * I);
	numbers((struct numbers){ 'x', -2, 5, 17, { 0.5, 1e100 } });
	mixed((struct mixed){ 3, "name" });
	large((struct large){ { 1, 2 } });
	address(heap);
	printf("heap %p\n", heap);
	callback(hooked);
	string(text);
	strcpy(text, "changed");
	string(NULL);
	nothing(NULL);
	many('a', 2, 3, 4, 5, 6, true, 8, 'i', 'j', 'k', 'l', 'm', 14);
	with_a_name_that_is_longer(1);
	memset(long_text, 'x', 100);
	long_text[100] = '\0';
	strings(long_text, long_text, long_text, long_text, 5);
	free(heap);
	return NULL;
}

QUIET static void call_plugin(const char *path)
{
	for (int i = 1; i < 3; i++) {
		void *plugin = dlopen(path, RTLD_NOW);
		int (*function)(int);

		if (!plugin)
			exit(3);
		function = (int (*)(int))dlsym(plugin, "plugin_function");
		function(i);
		dlclose(plugin);
	}
}

QUIET int main(int words, char **word)
{
	pthread_t other;
	int status = 0;

	if (words < 2) {
		call_all(NULL);
	} else if (!strcmp(word[1], "fork")) {
		number(1);
		if (fork() == 0) {
			call_all(NULL);
			return 0;
		}
		wait(&status);
		number(2);
	} else if (!strcmp(word[1], "full")) {
		truth(false);
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 0, 0 });
		call_all(NULL);
	} else if (!strcmp(word[1], "threads")) {
		pthread_create(&other, NULL, call_all, NULL);
		call_all(NULL);
		pthread_join(other, NULL);
	} else {
		call_plugin(word[1]);
	}
	return status;
}
