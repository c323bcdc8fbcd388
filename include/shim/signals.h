/*
 * Signals that a profiler asks for, so that who runs the program can tell it
 * something by kill(1).
 *
 * The program does not see it: what it sets for the signal is kept apart, told when
 * it asks, and called after the profilers.  A signal that it ignores stays ignored,
 * and what it blocks or waits for is its own: profilers get none of those.  What
 * the signal does by default does not happen any more.
 */
#ifndef SHIM_SIGNALS_H
#define SHIM_SIGNALS_H

#include <shim/profiler.h>
#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_profiler_ask_signal - get signalled events (<shim/events.def>) of @signal
 *
 * Several may ask for the same one, and one for several: all who ask for signalled
 * events get those of all signals that anybody has asked for.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG, also for what is no signal, cannot be caught,
 * is sent by the processor for faults (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS), or
 * is libc's (32, 33) or shim's own (SIGTRAP, 60 to 64);
 * SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: init.
 */
SHIM_API enum shim_result
shim_profiler_ask_signal(SHIM_IN struct shim_profiler_handle *handle,
			 SHIM_IN int signal) SHIM_INIT;

/* Whether a profiler may ask for it. */
static inline int shim_signal_is_free(int signal)
{
	switch (signal) {
	case SIGKILL:
	case SIGSTOP:
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGSYS:
	case SIGTRAP: return 0;
	default:
		return signal >= 1 && signal < 60 && signal != 32 &&
		       signal != 33;
	}
}

static inline int shim_signal_digits(const char *text, size_t size)
{
	int number = 0;

	if (size == 0 || size > 2)
		return -1;
	for (; size > 0; size--, text++) {
		if (*text < '0' || *text > '9')
			return -1;
		number = number * 10 + (*text - '0');
	}
	return number;
}

/* The part of @text that is @word, or 0 if it does not begin with all of that. */
static inline size_t shim_signal_begins(const char *text, size_t size,
					const char *word)
{
	size_t n = 0;

	while (n < size && word[n] && text[n] == word[n])
		n++;
	return word[n] ? 0 : n;
}

/* The number of the @size bytes at @name: USR1, SIGUSR1, RTMIN+3 or 10; 0: there is
 * no such signal, or none that a profiler may ask for. */
static inline int shim_signal_named(const char *name, size_t size)
{
	static const struct {
		char name[7];
		unsigned char number;
	} names[] = {
		{ "HUP", SIGHUP },     { "INT", SIGINT },
		{ "QUIT", SIGQUIT },   { "ABRT", SIGABRT },
		{ "USR1", SIGUSR1 },   { "USR2", SIGUSR2 },
		{ "PIPE", SIGPIPE },   { "ALRM", SIGALRM },
		{ "TERM", SIGTERM },   { "CHLD", SIGCHLD },
		{ "CONT", SIGCONT },   { "TSTP", SIGTSTP },
		{ "TTIN", SIGTTIN },   { "TTOU", SIGTTOU },
		{ "URG", SIGURG },     { "XCPU", SIGXCPU },
		{ "XFSZ", SIGXFSZ },   { "VTALRM", SIGVTALRM },
		{ "PROF", SIGPROF },   { "WINCH", SIGWINCH },
		{ "IO", SIGIO },       { "POLL", SIGPOLL },
		{ "PWR", SIGPWR },     { "RTMIN", 34 },
	};
	int number = shim_signal_digits(name, size);
	size_t skip = shim_signal_begins(name, size, "SIG"), i;

	if (number >= 0)
		return shim_signal_is_free(number) ? number : 0;
	name += skip;
	size -= skip;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (size && shim_signal_begins(name, size, names[i].name) == size)
			return names[i].number;
	skip = shim_signal_begins(name, size, "RTMIN+");
	number = skip ? shim_signal_digits(name + skip, size - skip) : -1;
	return number >= 0 && shim_signal_is_free(34 + number) ? 34 + number : 0;
}

#ifdef __cplusplus
}
#endif
#endif
