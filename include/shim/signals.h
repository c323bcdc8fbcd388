/*
 * Signals that notify a profiler, so that a user can do so by kill(1).
 *
 * The program does not see this: shim stores the handler that the program sets,
 * returns it to queries, and calls it after the profilers.  A signal that the
 * program ignores stays ignored.  Profilers do not get a signal that the
 * program blocks or waits for.  The signal's default action no longer happens.
 *
 * Example: reset counts on SIGUSR1.
 *
 *     #include <shim/signals.h>
 *
 *     static uint64_t count;
 *
 *     static void signalled(struct shim_profiler *profiler, int signal)
 *     {
 *             (void)profiler;
 *             if (signal == SIGUSR1)
 *                     count = 0;
 *     }
 *
 *     SHIM_PROFILER_MODULE(reset)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             shim_profiler_on_signalled(handle, signalled);
 *             return shim_profiler_enable_signal(handle, SIGUSR1);
 *     }
 */
#ifndef SHIM_SIGNALS_H
#define SHIM_SIGNALS_H

#include <shim/profiler.h>
#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * shim_profiler_enable_signal - enable signalled events (<shim/events.def>) of @signal
 *
 * Several profilers may enable the same signal, and one profiler several
 * signals.  Each profiler with a callback for signalled gets all signals that
 * any profiler has enabled.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle, and if @signal is no
 * signal, cannot be caught, reports faults (SIGSEGV, SIGBUS, SIGILL, SIGFPE,
 * SIGSYS), or belongs to libc (32, 33) or shim (SIGTRAP, 60 to 64);
 * SHIM_E_CALL_ONLY_FROM_INIT; SHIM_E_PROFILER_DETACHING.
 *
 * Contract: init.  No counterpart.
 */
SHIM_API enum shim_result
shim_profiler_enable_signal(SHIM_IN struct shim_profiler_handle *handle,
			    SHIM_IN int signal) SHIM_INIT;

/* Whether shim_profiler_enable_signal accepts @signal. */
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

/* The length of @word if @text begins with it, else 0. */
static inline size_t shim_signal_begins(const char *text, size_t size,
					const char *word)
{
	size_t n = 0;

	while (n < size && word[n] && text[n] == word[n])
		n++;
	return word[n] ? 0 : n;
}

/* The number of the signal that the @size bytes at @name spell:  USR1,
 * SIGUSR1, RTMIN+3 or 10; 0 if shim_profiler_enable_signal does not accept it. */
static inline int shim_signal_named(const char *name, size_t size)
{
	static const struct {
		char name[7];
		unsigned char number;
	} names[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },
		{ "QUIT", SIGQUIT }, { "ABRT", SIGABRT },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
		{ "PIPE", SIGPIPE }, { "ALRM", SIGALRM },
		{ "TERM", SIGTERM }, { "CHLD", SIGCHLD },
		{ "CONT", SIGCONT }, { "TSTP", SIGTSTP },
		{ "TTIN", SIGTTIN }, { "TTOU", SIGTTOU },
		{ "URG", SIGURG },   { "XCPU", SIGXCPU },
		{ "XFSZ", SIGXFSZ }, { "VTALRM", SIGVTALRM },
		{ "PROF", SIGPROF }, { "WINCH", SIGWINCH },
		{ "IO", SIGIO },     { "POLL", SIGPOLL },
		{ "PWR", SIGPWR },   { "RTMIN", 34 },
	};
	int number = shim_signal_digits(name, size);
	size_t skip = shim_signal_begins(name, size, "SIG"), i;

	if (number >= 0)
		return shim_signal_is_free(number) ? number : 0;
	name += skip;
	size -= skip;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (size &&
		    shim_signal_begins(name, size, names[i].name) == size)
			return names[i].number;
	skip = shim_signal_begins(name, size, "RTMIN+");
	number = skip ? shim_signal_digits(name + skip, size - skip) : -1;
	return number >= 0 && shim_signal_is_free(34 + number) ? 34 + number :
								 0;
}

#ifdef __cplusplus
}
#endif
#endif
