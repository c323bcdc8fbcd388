/* An alarm ends waitpid(), because a thread may sleep in the kernel for ever. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/stop_wait.h"

/* The longest wait for a thread to stop.  A thread that takes longer sleeps in the
 * kernel; on a busy machine, other threads may also take long to get a processor. */
#define PATIENCE_S 5

bool stop_are_more(uint32_t threads, uint32_t most)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors > 0 && threads > most * (uint64_t)processors;
}

static void wake(int number)
{
	(void)number;
}

static void set_alarm(bool is_on)
{
	const struct itimerval timer = {
		.it_value.tv_sec = is_on ? PATIENCE_S : 0,
		/* Repeats, in case the first alarm comes before waitpid(). */
		.it_interval.tv_sec = is_on ? PATIENCE_S : 0,
	};
	struct sigaction action = { .sa_handler = wake };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

enum stop_result stop_wait(pid_t tid, int *status)
{
	pid_t got;

	set_alarm(true);
	got = waitpid(tid, status, __WALL);
	set_alarm(false);
	if (got < 0)
		return errno == EINTR ? STOP_STUCK : STOP_GONE;
	return WIFSTOPPED(*status) ? STOP_DONE : STOP_GONE;
}
