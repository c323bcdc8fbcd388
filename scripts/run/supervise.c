/*
 * The program's stand-in.  The process that started profrun has this process as its
 * child, sends it signals, stops it and waits for it; the program is this process's
 * child.  This file makes the two look like one.
 *
 * All signals are blocked here and taken one by one.  The problem is whether to forward
 * a signal: one that was sent to the whole process group has already reached the
 * program, and must not arrive twice.  siginfo does not show this.  So a third process,
 * the witness, is in the group with all signals blocked: a signal that is also pending
 * there was sent to the group.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "say.h"
#include "supervise.h"

static const int timers[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
#define TIMERS (sizeof(timers) / sizeof(timers[0]))

/* The state of this process at its start, which the child gets. */
static sigset_t original_mask;
static struct sigaction original_chld;
static struct itimerval original_timer[TIMERS];
static int original_death_signal;

static sigset_t all_signals;
static pid_t witness = -1;
static pid_t helper = -1;
static void (*helper_ended)(void);

/* An interval timer survives an exec but not a fork: the child gets it, otherwise the
 * SIGALRM of `alarm(5); exec(...)` would end this process. */
static void take_timers(void)
{
	static const struct itimerval none;

	for (size_t i = 0; i < TIMERS; i++)
		setitimer(timers[i], &none, &original_timer[i]);
}

static void give_timers(void)
{
	for (size_t i = 0; i < TIMERS; i++)
		if (original_timer[i].it_value.tv_sec != 0 ||
		    original_timer[i].it_value.tv_usec != 0)
			setitimer(timers[i], &original_timer[i], NULL);
}

int supervise_begin(void)
{
	static const struct sigaction default_action;

	sigfillset(&all_signals);
	/* supervise_wait() would wait forever for signals that are not blocked. */
	if (sigprocmask(SIG_BLOCK, &all_signals, &original_mask) < 0)
		return -errno;
	/* With SIGCHLD ignored, children leave no status. */
	sigaction(SIGCHLD, &default_action, &original_chld);
	prctl(PR_GET_PDEATHSIG, &original_death_signal);
	take_timers();
	return 0;
}

static void become_as_before(void)
{
	sigaction(SIGCHLD, &original_chld, NULL);
	give_timers();
	/* The parent of this process requested this signal: the program gets it, too,
	 * when this process ends. */
	if (original_death_signal != 0)
		prctl(PR_SET_PDEATHSIG, original_death_signal);
	sigprocmask(SIG_SETMASK, &original_mask, NULL);
}

/* --- the witness -------------------------------------------------------- */

static void watch(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	/* An open pipe here would keep its reader waiting for the end. */
	descriptors_close_from(0);
	for (;;)
		sigsuspend(&all_signals);
}

static void start_witness(void)
{
	pid_t parent = getpid();

	witness = fork();
	if (witness == 0)
		watch(parent);
}

static void stop_witness(pid_t pid)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

/* The signals pending for the witness, bit N-1 for signal N. */
static uint64_t pending_at_witness(void)
{
	char path[64], text[4096];
	const char *line;
	ssize_t n;
	int fd;

	if (witness <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%ld/status", (long)witness);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	line = strstr(text, "\nShdPnd:");
	return line == NULL ? 0 : strtoull(line + 8, NULL, 16);
}

/* Whether @signal was sent to the whole group.  The signal stays pending at the
 * witness, so a new witness then takes its place. */
static bool went_to_group(int signal)
{
	pid_t old = witness;

	if (!(pending_at_witness() & (uint64_t)1 << (signal - 1)))
		return false;
	start_witness();
	stop_witness(old);
	return true;
}

/* --- passing on --------------------------------------------------------- */

static void pass_on(pid_t child, siginfo_t *info)
{
	/* Checked in any case: the signal must not stay pending at the witness for the
	 * next check. */
	if (went_to_group(info->si_signo))
		return;
	switch (info->si_code) {
	case SI_QUEUE:
		/* Forwarded with its value, which kill() would lose. */
		if (syscall(SYS_rt_sigqueueinfo, child, info->si_signo, info) ==
		    0)
			return;
		break;
	case SI_USER:
	case SI_TKILL:
		/* The program sent the signal to its parent, not to itself. */
		if (info->si_pid == child)
			return;
		break;
	default:
		/* From the terminal, or from a timer or a child of this process. */
		return;
	}
	kill(child, info->si_signo);
}

static bool is_pending(int signal)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, signal) > 0;
}

/* Stops like the child, so that the shell sees it, until this process is continued. */
static void stop_too(int signal)
{
	static const struct sigaction default_action;
	struct sigaction old;
	sigset_t set;

	/* A stop discards a SIGCONT that has already come; in that case the child is to
	 * be continued instead. */
	if (is_pending(SIGCONT))
		return;
	if (signal != SIGSTOP)
		sigaction(signal, &default_action, &old);
	raise(signal);
	sigemptyset(&set);
	sigaddset(&set, signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (signal != SIGSTOP)
		sigaction(signal, &old, NULL);
}

int supervise_start(int (*run)(void *data), void *data)
{
	pid_t child;

	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		become_as_before();
		_exit(run(data));
	}
	memset(original_timer, 0, sizeof(original_timer));
	if (witness < 0)
		start_witness();
	return child;
}

void supervise_helper(int pid, void (*ended)(void))
{
	helper = pid;
	helper_ended = ended;
}

static void look_after_helper(void)
{
	int status;

	if (helper <= 0 ||
	    waitpid(helper, &status, WNOHANG | WUNTRACED) != helper)
		return;
	if (WIFSTOPPED(status)) {
		kill(helper, SIGKILL);
		waitpid(helper, NULL, 0);
	}
	helper = -1;
	helper_ended();
}

int supervise_wait(int child)
{
	siginfo_t info;
	int status;

	for (;;) {
		if (sigwaitinfo(&all_signals, &info) < 0) {
			/* In a sandbox without this call, no signal is passed on. */
			if (errno != EINTR &&
			    waitpid(child, &status, 0) == child)
				return status;
			continue;
		}
		if (info.si_signo != SIGCHLD || info.si_code <= 0) {
			pass_on(child, &info);
			continue;
		}
		look_after_helper();
		if (waitpid(child, &status, WNOHANG | WUNTRACED) != child)
			continue;
		if (!WIFSTOPPED(status))
			return status;
		stop_too(WSTOPSIG(status));
	}
}

/* --- ending ------------------------------------------------------------- */

/* Only the program writes a core file. */
static void die_by(int signal)
{
	static const struct sigaction default_action;
	static const struct rlimit no_core;
	sigset_t set;

	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_DUMPABLE, 0);
	sigaction(signal, &default_action, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void supervise_end(int wait_status)
{
	stop_witness(witness);
	if (WIFSIGNALED(wait_status)) {
		die_by(WTERMSIG(wait_status));
		_exit(128 + WTERMSIG(wait_status));
	}
	_exit(WEXITSTATUS(wait_status));
}
