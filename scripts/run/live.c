/*
 * One process (the keeper) starts the screen, waits for its end, and then copies what the
 * program has printed, and prints, to the terminal.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/running.h"
#include "live.h"
#include "say.h"
#include "supervise.h"

/* Between two looks at the program, or at its output. */
#define PAUSE_NS 20000000

struct task {
	pid_t program;
	const char *report, *profrun;
};

static int terminal = -1;
/* What was printed; and its copy goes there. */
static int output = -1, shown = -1;
static pid_t keeper = -1;

/* --- the program's streams --- */

static int open_file(void)
{
	const char *directory = getenv("TMPDIR");
	int fd = open(directory != NULL && *directory == '/' ? directory :
							       "/tmp",
		      O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("output", MFD_CLOEXEC);
}

bool live_prepare(void)
{
	terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
	if (terminal < 0) {
		say("--live needs a terminal");
		return false;
	}
	if (isatty(STDOUT_FILENO))
		shown = STDOUT_FILENO;
	else if (isatty(STDERR_FILENO))
		shown = STDERR_FILENO;
	if (shown < 0)
		return true;
	output = open_file();
	if (output < 0)
		say("--live: what the program prints cannot be kept: %s",
		    strerror(errno));
	return output >= 0;
}

void live_redirect(void)
{
	int nothing;

	if (output >= 0 && isatty(STDOUT_FILENO))
		dup2(output, STDOUT_FILENO);
	if (output >= 0 && isatty(STDERR_FILENO))
		dup2(output, STDERR_FILENO);
	if (!isatty(STDIN_FILENO))
		return;
	nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
}

/* --- the keeper --- */

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
}

/* The parent waits for the program, so that it is gone when it has ended. */
static bool is_running(pid_t pid)
{
	return kill(pid, 0) == 0 || errno != ESRCH;
}

static void become_screen(const struct task *task)
{
	char pid[16];

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(terminal, STDIN_FILENO);
	dup2(terminal, STDOUT_FILENO);
	dup2(terminal, STDERR_FILENO);
	if (task->profrun != NULL)
		setenv("SHIM_PROFRUN", task->profrun, 1);
	snprintf(pid, sizeof(pid), "%ld", (long)task->program);
	execl(task->report, task->report, "top", pid, (char *)NULL);
	say("%s: cannot be executed: %s", task->report, strerror(errno));
	_exit(STATUS_FAILED);
}

static void show_screen(const struct task *task)
{
	char directory[PATH_MAX];
	pid_t screen;

	while (!running_recording((uint32_t)task->program, directory)) {
		if (!is_running(task->program))
			return;
		pause_briefly();
	}
	screen = fork();
	if (screen == 0)
		become_screen(task);
	while (screen > 0 && waitpid(screen, NULL, 0) < 0 && errno == EINTR)
		continue;
}

/* Copies what is there and was not copied yet. */
static void copy_output(off_t *done)
{
	char part[1 << 14];
	ssize_t size, written, r;

	while ((size = pread(output, part, sizeof(part), *done)) > 0) {
		for (written = 0; written < size; written += r) {
			r = write(shown, part + written,
				  (size_t)(size - written));
			if (r < 0 && errno == EINTR)
				r = 0;
			else if (r <= 0)
				return;
		}
		*done += size;
	}
}

static int keep(void *data)
{
	const struct task *task = data;
	off_t done = 0;
	bool is_over;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	/* The program decides what Ctrl-C does. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	show_screen(task);
	do {
		/* What it printed before its end is copied after it. */
		is_over = !is_running(task->program);
		if (output >= 0)
			copy_output(&done);
		if (!is_over)
			pause_briefly();
	} while (!is_over);
	return 0;
}

void live_begin(int pid, const char *report, const char *profrun)
{
	struct task task = { pid, report, profrun };

	keeper = supervise_start(keep, &task);
	if (keeper < 0)
		say("--live: cannot start a process: %s", strerror(-keeper));
}

void live_end(void)
{
	if (keeper > 0)
		supervise_wait(keeper);
	keeper = -1;
}
