/* The signal handlers only end the child: what is left is done after the wait for it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "trial.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "recording.h"

static const int signals[] = { SIGHUP, SIGINT, SIGTERM };
#define SIGNALS (sizeof(signals) / sizeof(*signals))

static struct sigaction before[SIGNALS];
static char path[PATH_MAX];
static volatile sig_atomic_t caught; /* 0: none */
static volatile pid_t running;	     /* 0: none */

static void end_child(int number)
{
	caught = number;
	if (running > 0)
		kill(running, SIGKILL);
}

/* Signals that are ignored stay so. */
static void catch_signals(void)
{
	const struct sigaction action = { .sa_handler = end_child };

	caught = 0;
	for (size_t i = 0; i < SIGNALS; i++)
		if (sigaction(signals[i], NULL, &before[i]) == 0 &&
		    before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static void release_signals(void)
{
	for (size_t i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
	if (caught != 0)
		raise(caught);
}

const char *trial_begin(void)
{
	char directory[] = ".profrun-doctor.XXXXXX";
	int error;

	catch_signals();
	if (mkdtemp(directory) == NULL) {
		error = errno;
		release_signals();
		errno = error;
		return NULL;
	}
	if (realpath(directory, path) == NULL)
		strcpy(path, directory);
	return path;
}

pid_t trial_fork(void)
{
	pid_t child = fork();

	if (child <= 0)
		return child;
	running = child;
	/* The signal may have come before. */
	if (caught != 0)
		kill(child, SIGKILL);
	return child;
}

void trial_wait(pid_t child, int *status)
{
	siginfo_t info;

	/* The handler must not kill a process that has this number later. */
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0 &&
	       errno == EINTR)
		continue;
	running = 0;
	while (waitpid(child, status, 0) < 0 && errno == EINTR)
		continue;
	if (caught != 0)
		trial_end();
}

void trial_end(void)
{
	recording_delete(path);
	release_signals();
}
