/*
 * Shared code of these programs.  A function with COUNTED counts its own calls;
 * print_counts() prints the numbers, one line each:
 *
 *     calls NAME N
 *
 * The test compares these lines, and the tree in a program's opening comment, with the
 * recording.
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUIET __attribute__((no_instrument_function))
#define APART __attribute__((noinline))
#define INLINED inline __attribute__((always_inline))

struct count {
	const char *name;
	unsigned long calls;
};

extern struct count __start_counts[] __attribute__((weak));
extern struct count __stop_counts[] __attribute__((weak));

/* One instruction, so that signals and other threads may interrupt at any time. */
#define COUNTED                                                                \
	do {                                                                   \
		static struct count count_ __attribute__((                     \
			section("counts"), used, aligned(16))) = { __func__,   \
								   0 };        \
		__atomic_fetch_add(&count_.calls, 1, __ATOMIC_RELAXED);        \
	} while (0)

/* Uses write, so that it works in any state of the program. */
QUIET static inline void print_text(const char *text)
{
	size_t size = strlen(text);

	while (size > 0) {
		ssize_t part = write(1, text, size);

		if (part <= 0)
			return;
		text += part;
		size -= (size_t)part;
	}
}

QUIET static inline void print_counts(void)
{
	char line[200];

	for (struct count *count = __start_counts; count < __stop_counts;
	     count++) {
		if (!count->name || count->calls == 0)
			continue;
		snprintf(line, sizeof(line), "calls %s %lu\n", count->name,
			 count->calls);
		print_text(line);
	}
}

#endif
