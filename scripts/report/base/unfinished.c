/*
 * The program has one handler for signals that end it, because an output file may be in the
 * work while a temporary directory is there, too.
 */
#include "base/unfinished.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/messages.h"

#define REMOVALS_MAX 4

static void (*removals[REMOVALS_MAX])(void);

static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE };
#define SIGNALS (sizeof(signals) / sizeof(*signals))

static void remove_all(void)
{
	size_t i;

	for (i = 0; i < REMOVALS_MAX && removals[i]; i++)
		removals[i]();
}

static void remove_on_signal(int number)
{
	remove_all();
	signal(number, SIG_DFL);
	raise(number);
}

void unfinished_signals(sigset_t *set)
{
	size_t i;

	sigemptyset(set);
	for (i = 0; i < SIGNALS; i++)
		sigaddset(set, signals[i]);
}

static bool is_ignored(int number)
{
	struct sigaction before;

	return sigaction(number, NULL, &before) == 0 &&
	       before.sa_handler == SIG_IGN;
}

void unfinished_add(void (*remove)(void))
{
	size_t i;

	for (i = 0; i < REMOVALS_MAX && removals[i] && removals[i] != remove;)
		i++;
	if (i == REMOVALS_MAX)
		die("too many unfinished outputs");
	removals[i] = remove;
	for (i = 0; i < SIGNALS; i++)
		if (!is_ignored(signals[i]))
			signal(signals[i], remove_on_signal);
	die_after(remove_all);
}
