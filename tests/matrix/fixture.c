/*
 * The program that the matrix runs under profrun, and the one that runs
 * profrun where a shell is too coarse:
 *
 *     fixture exit N | segv | args ARG... | env | cat | pid
 *     fixture descriptors | signals | sleep
 *     fixture handle SIGNAL STATUS  "ready PID"; STATUS from the handler
 *     fixture count SIGNAL          "ready PID"; at QUIT, how many came
 *
 *     fixture wait COMMAND...       says how COMMAND ended, not with 128+N
 *     fixture group COMMAND...      "group PID": in a process group of its own,
 *                                   which a shell needs job control for
 *     fixture ignore COMMAND...     HUP and CHLD ignored, USR2 blocked
 *     fixture alarm COMMAND...      a SIGALRM is under way
 *     fixture pty COMMAND...        on a terminal: ^C twice, then ^\
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile sig_atomic_t counted;
static volatile sig_atomic_t has_ended;
static int handler_status;

static int signal_number(const char *name)
{
	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) != NULL &&
		    strcmp(sigabbrev_np(i), name) == 0)
			return i;
	fprintf(stderr, "fixture: no signal %s\n", name);
	exit(99);
}

static int run_command(char **command)
{
	execvp(command[0], command);
	perror(command[0]);
	return 99;
}

/* --- the program -------------------------------------------------------- */

static int print_arguments(char **word)
{
	for (; *word != NULL; word++)
		printf("<%s>\n", *word);
	return 0;
}

static int print_environment(void)
{
	for (char **entry = environ; *entry != NULL; entry++)
		puts(*entry);
	return 0;
}

static int copy(void)
{
	char buffer[65536];
	ssize_t n;

	if (fcntl(STDIN_FILENO, F_GETFD) < 0) {
		puts("closed");
		return 0;
	}
	while ((n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0)
		if (write(STDOUT_FILENO, buffer, n) != n)
			return 1;
	return n < 0;
}

static int print_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d\n", fd);
	return 0;
}

static int print_signals(void)
{
	struct sigaction action;
	sigset_t blocked;

	sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (int i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &action) == 0 &&
		    action.sa_handler != SIG_DFL)
			printf("%s %d\n", action.sa_handler == SIG_IGN ?
			       "ignored" : "handled", i);
		if (sigismember(&blocked, i) > 0)
			printf("blocked %d\n", i);
	}
	return 0;
}

static void set_handler(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(signal, &action, NULL);
}

static void say_ready(void)
{
	printf("ready %ld\n", (long)getpid());
	fflush(stdout);
}

static void end_with_status(int signal)
{
	(void)signal;
	_exit(handler_status);
}

static _Noreturn void handle(const char *name, const char *status)
{
	handler_status = atoi(status);
	set_handler(signal_number(name), end_with_status);
	say_ready();
	for (int i = 0; i < 100; i++)
		usleep(100000);
	_exit(98);
}

static void count_one(int signal)
{
	(void)signal;
	counted++;
}

static void note_end(int signal)
{
	(void)signal;
	has_ended = 1;
}

static int count(const char *name)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGQUIT);
	sigaddset(&set, signal_number(name));
	sigprocmask(SIG_BLOCK, &set, &old);
	set_handler(signal_number(name), count_one);
	set_handler(SIGQUIT, note_end);
	say_ready();
	for (int i = 0; i < 100 && !has_ended; i++) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		usleep(100000);
	}
	printf("%d\n", (int)counted);
	return 0;
}

/* --- the one that runs profrun ------------------------------------------ */

static int wait_for(char **command)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(run_command(command));
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	else
		printf("status %d\n", WEXITSTATUS(status));
	return 0;
}

/* A process whose parent is in another process group can be stopped by the
 * terminal. */
static int in_group(char **command)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		setpgid(0, 0);
		_exit(run_command(command));
	}
	printf("group %ld\n", (long)child);
	fflush(stdout);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				     WEXITSTATUS(status);
}

static int ignore(char **command)
{
	sigset_t set;

	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return run_command(command);
}

/* Types @key after the line "ready", and again after 100 ms; then ^\. */
static int on_terminal(char **command)
{
	static const char keys[] = { 3, 3, 28 };
	char buffer[4096];
	size_t typed = 0;
	int master;
	ssize_t n;
	pid_t child;

	child = forkpty(&master, NULL, NULL, NULL);
	if (child < 0)
		return 99;
	if (child == 0)
		_exit(run_command(command));
	while ((n = read(master, buffer, sizeof(buffer) - 1)) > 0) {
		buffer[n] = '\0';
		if (write(STDOUT_FILENO, buffer, n) != n)
			return 99;
		if (strstr(buffer, "ready") == NULL)
			continue;
		for (; typed < sizeof(keys); typed++) {
			if (write(master, &keys[typed], 1) != 1)
				return 99;
			usleep(100000);
		}
	}
	waitpid(child, NULL, 0);
	return 0;
}

int main(int words, char **word)
{
	const char *verb = words > 1 ? word[1] : "";

	if (strcmp(verb, "exit") == 0)
		return atoi(word[2]);
	if (strcmp(verb, "segv") == 0)
		return raise(SIGSEGV);
	if (strcmp(verb, "args") == 0)
		return print_arguments(word + 2);
	if (strcmp(verb, "env") == 0)
		return print_environment();
	if (strcmp(verb, "cat") == 0)
		return copy();
	if (strcmp(verb, "pid") == 0)
		return printf("%ld\n", (long)getpid()) < 0;
	if (strcmp(verb, "descriptors") == 0)
		return print_descriptors();
	if (strcmp(verb, "signals") == 0)
		return print_signals();
	if (strcmp(verb, "sleep") == 0)
		return sleep(10) > 0;
	if (strcmp(verb, "handle") == 0)
		handle(word[2], word[3]);
	if (strcmp(verb, "count") == 0)
		return count(word[2]);
	if (strcmp(verb, "wait") == 0)
		return wait_for(word + 2);
	if (strcmp(verb, "group") == 0)
		return in_group(word + 2);
	if (strcmp(verb, "ignore") == 0)
		return ignore(word + 2);
	if (strcmp(verb, "alarm") == 0)
		return alarm(1), run_command(word + 2);
	if (strcmp(verb, "pty") == 0)
		return on_terminal(word + 2);
	fprintf(stderr, "fixture: unknown verb\n");
	return 99;
}
