/*
 * A function whose calls are grouped by its arguments: grouped MODE.  It counts its
 * calls itself, by each argument, and prints
 *
 *     by ARGUMENT VALUE CALLS
 *
 * one line each, with the values as shim must show them.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>

enum colour { RED, GREEN = 5, BLUE = -3 };

#define KINDS 1200

static unsigned long kinds[KINDS], colours[3], flags[2], letters[3], texts[4],
	ratios[3], pointers[2], wides[2];
static volatile long sink;
static volatile double sink_ratio;
static const void *volatile sink_pointer;
static jmp_buf out;
static volatile int jumps, pauses;
static volatile sig_atomic_t in_parse;

static const enum colour some_colours[] = { RED, GREEN, BLUE };
static const char *const colour_names[] = { "RED", "GREEN", "BLUE" };
static const char some_letters[] = "a;\n";
static const char *const letter_names[] = { "'a'", "';'", "'\\n'" };
static const char *const some_texts[] = { "SELECT 1", "a;b \"c\"", "", NULL };
static const char *const text_names[] = { "\"SELECT 1\"", "\"a;b \\\"c\\\"\"",
					  "\"\"", "NULL" };
static const double some_ratios[] = { 0.5, -1, 1e300 };
static const char *const ratio_names[] = { "0.5", "-1", "1e+300" };
static const unsigned long some_wides[] = { 0, UINT64_MAX };

APART static int leaf(int x)
{
	COUNTED;
	return (int)(sink = x);
}

/* An unused argument may be unavailable when the hook asks. */
APART int ignoring(long a, long b, int kind, double ratio);

int ignoring(long a, long b, int kind, double ratio)
{
	COUNTED;
	(void)kind;
	(void)ratio;
	return (int)(sink = a + b);
}

/* The function has no code of its own, and its argument no place. */
INLINED static void inlined(int kind)
{
	COUNTED;
	sink = kind;
}

QUIET static void count(unsigned long *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#define NUMBER(value, array)                                                   \
	do {                                                                   \
		for (unsigned i_ = 0; i_ < sizeof(array) / sizeof(*(array));   \
		     i_++)                                                     \
			if ((value) == (array)[i_])                            \
				n = i_;                                        \
	} while (0)

QUIET APART static void account(int kind, enum colour colour, _Bool flag,
				char letter, const char *text, double ratio,
				void *pointer, unsigned long wide)
{
	unsigned n = 0;

	count(&kinds[kind]);
	NUMBER(colour, some_colours);
	count(&colours[n]);
	count(&flags[flag]);
	NUMBER(letter, some_letters);
	count(&letters[n]);
	n = 3;
	for (unsigned i = 0; text && i < 3; i++)
		if (strcmp(text, some_texts[i]) == 0)
			n = i;
	count(&texts[n]);
	NUMBER(ratio, some_ratios);
	count(&ratios[n]);
	count(&pointers[pointer != NULL]);
	count(&wides[wide != 0]);
}

QUIET APART static void switch_calls(const char *name)
{
	int (*function)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, name);

	if (function && function() != 0)
		abort();
}

APART int parse(int kind, enum colour colour, _Bool flag, char letter,
		const char *text, double ratio, void *pointer,
		unsigned long wide);

int parse(int kind, enum colour colour, _Bool flag, char letter,
	  const char *text, double ratio, void *pointer, unsigned long wide)
{
	COUNTED;
	/* (Used twice, so that it is kept.) */
	account(kind, colour, flag, letter, text, ratio, pointer, wide);
	leaf(kind);
	inlined(kind);
	ignoring(2, 1, kind, ratio);
	if (jumps > 0 && kind % 7 == 6) {
		jumps--;
		longjmp(out, 1);
	}
	if (pauses > 0 && kind % 7 == 1) {
		pauses--;
		switch_calls("shim_hooks_disable");
		switch_calls("shim_hooks_enable");
	}
	if (kind % 10 == 3) /* recursion */
		parse(kind + 1, colour, !flag, letter, text, ratio, pointer,
		      wide);
	sink = kind + colour + flag + letter + (long)wide;
	sink_ratio = ratio;
	sink_pointer = text;
	sink_pointer = pointer;
	return 0;
}

/* Equal texts are at different addresses. */
APART static void call(int i, int range)
{
	char text[16];
	const char *given = NULL;

	COUNTED;
	if (i % 4 < 3) {
		strcpy(text, some_texts[i % 4]);
		given = text;
	}
	parse(i % range, some_colours[i % 3], i % 2, some_letters[i % 3], given,
	      some_ratios[i / 3 % 3], i % 5 ? (void *)&sink : NULL,
	      some_wides[i / 2 % 2]);
}

static void *work(void *argument)
{
	COUNTED;
	for (int i = 0; i < 3000; i++)
		call(i, 7);
	return argument;
}

static void on_signal(int number)
{
	COUNTED;
	(void)number;
	call(13, 20);
}

QUIET static void print(const char *argument, const char *value,
			unsigned long calls)
{
	char line[100];

	if (calls == 0)
		return;
	snprintf(line, sizeof(line), "by %s %s %lu\n", argument, value, calls);
	print_text(line);
}

QUIET static void print_truth(void)
{
	char text[40];

	for (int i = 0; i < KINDS; i++) {
		snprintf(text, sizeof(text), "%d", i);
		print("kind", text, kinds[i]);
	}
	for (int i = 0; i < 3; i++) {
		print("colour", colour_names[i], colours[i]);
		print("letter", letter_names[i], letters[i]);
		print("ratio", ratio_names[i], ratios[i]);
	}
	for (int i = 0; i < 4; i++)
		print("text", text_names[i], texts[i]);
	for (int i = 0; i < 2; i++)
		print("flag", i ? "true" : "false", flags[i]);
	print("pointer", "NULL", pointers[0]);
	snprintf(text, sizeof(text), "%#lx", (long)&sink);
	print("pointer", text, pointers[1]);
	print("wide", "0", wides[0]);
	print("wide", "18446744073709551615", wides[1]);
	print_counts();
}

static void run(const char *mode)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	pthread_t threads[2];
	pid_t child;

	COUNTED;
	if (strcmp(mode, "threads") == 0) {
		for (int i = 0; i < 2; i++)
			pthread_create(&threads[i], NULL, work, NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
	} else if (strcmp(mode, "jumps") == 0) {
		jumps = 50;
		for (volatile int i = 0; i < 3000; i++)
			if (setjmp(out) == 0)
				call(i, 7);
	} else if (strcmp(mode, "pauses") == 0) {
		pauses = 50;
		work(NULL);
	} else if (strcmp(mode, "signals") == 0) {
		signal(SIGALRM, on_signal);
		setitimer(ITIMER_REAL, &often, NULL);
		for (int i = 0; i < 100000; i++)
			call(i, 7);
		memset(&often, 0, sizeof(often));
		setitimer(ITIMER_REAL, &often, NULL);
	} else if (strcmp(mode, "forks") == 0) {
		work(NULL);
		child = fork();
		work(NULL);
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
		for (int i = 0; i < KINDS; i++)
			kinds[i] = kinds[i] / 2 * 3;
	} else if (strcmp(mode, "many") == 0) {
		for (int i = 0; i < 3000; i++)
			call(i, 1000);
	} else {
		work(NULL);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	COUNTED;
	run(mode);
	print_truth();
	if (strcmp(mode, "killed") == 0)
		raise(SIGKILL);
	return 0;
}
