/*
 * inject LIBRARY ANSWER N ERROR PROGRAM [ARG...] - makes a system call fail
 *
 * Runs PROGRAM and all processes that it starts, and counts the system calls
 * that code of LIBRARY makes.  Calls that the library makes on behalf of the
 * program do not count: these come from the addresses FIRST to LAST of LIBRARY,
 * given by the variable PASSED_ON=FIRST-LAST[,FIRST-LAST...].  The N-th counted call is not
 * made and fails with ERROR (a number).  If N is negative, so does every later
 * one, except calls that a kernel never refuses for good: signal masks and
 * handlers, without which no code could undo its own changes, and ids of tasks.
 * With N = 0 no call fails.  ONLY=NUMBER: only system calls of this number count, and a
 * negative N refuses each of them.
 *
 * The file ANSWER gets a line: the number of calls, the call that failed (its
 * number, or -1), and the wait status of PROGRAM; with 0 a second line has the
 * number of each call.  Ends with status 0, or 1 if it could not do that.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>

#define TASKS 4096
#define CALLS 1000000

/* A task of the kernel; its process knows where the library is. */
struct task {
	pid_t tid;
	bool is_failing;     /* inside the call that fails */
	uintptr_t low, high; /* range of the library's code; 0: not known yet */
	uintptr_t base;	     /* load address of the library */
};

static struct task task[TASKS];
static unsigned int tasks;
static const char *library;
static long count, fail_at, failed = -1;
static uint16_t number[CALLS];
static int error;
static bool for_good;
static long only = -1; /* number of a system call; -1: all */

/* Ranges in the library. */
#define RANGES 4
static struct {
	unsigned long low, high;
} passed[RANGES];

static struct task *find(pid_t tid)
{
	for (unsigned int i = 0; i < tasks; i++)
		if (task[i].tid == tid)
			return &task[i];
	if (tasks == TASKS) {
		fprintf(stderr, "inject: too many tasks\n");
		exit(1);
	}
	task[tasks] = (struct task){ .tid = tid };
	return &task[tasks++];
}

static void forget(pid_t tid)
{
	struct task *gone = find(tid);

	*gone = task[--tasks];
}

static void find_library(struct task *of)
{
	char path[64], line[PATH_MAX + 128];
	unsigned long low, high, offset;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", of->tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx r-xp %lx", &low, &high, &offset) ==
			    3 &&
		    strstr(line, " r-xp ") && strstr(line, library)) {
			of->low = low;
			of->high = high;
			of->base = low - offset;
		}
	if (file)
		fclose(file);
}

/* System calls that cannot fail. */
static bool is_fit(uint64_t call)
{
	return call != SYS_rt_sigreturn && call != SYS_exit &&
	       call != SYS_exit_group;
}

static bool is_never_refused(uint64_t call)
{
	return call == SYS_rt_sigprocmask || call == SYS_rt_sigaction ||
	       call == SYS_gettid || call == SYS_getpid;
}

static bool is_passed_on(unsigned long at)
{
	for (int i = 0; i < RANGES; i++)
		if (at >= passed[i].low && at < passed[i].high)
			return true;
	return false;
}

static void read_ranges(const char *text)
{
	for (int i = 0; i < RANGES && text; i++) {
		sscanf(text, "%lx-%lx", &passed[i].low, &passed[i].high);
		text = strchr(text, ',');
		text += text != NULL;
	}
}

static bool must_fail(struct task *of, const struct ptrace_syscall_info *info)
{
	if (of->high == 0)
		find_library(of);
	if (info->instruction_pointer < of->low ||
	    info->instruction_pointer > of->high || !is_fit(info->entry.nr))
		return false;
	if (is_passed_on(info->instruction_pointer - of->base))
		return false;
	if (only >= 0 && info->entry.nr != (uint64_t)only)
		return false;
	if (fail_at == 0 && count < CALLS)
		number[count] = (uint16_t)info->entry.nr;
	count++;
	if (fail_at == 0 || count < fail_at || (count > fail_at && !for_good))
		return false;
	if (for_good && only < 0 && is_never_refused(info->entry.nr))
		return false;
	if (failed < 0)
		failed = (long)info->entry.nr;
	return true;
}

static void set(pid_t tid, bool is_entry)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) < 0)
		return;
	if (is_entry)
		registers.orig_rax = (unsigned long)-1;
	else
		registers.rax = (unsigned long)-error;
	ptrace(PTRACE_SETREGS, tid, NULL, &registers);
}

static void on_call(struct task *of)
{
	struct ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, of->tid, sizeof(info), &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && must_fail(of, &info)) {
		of->is_failing = true;
		set(of->tid, true);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && of->is_failing) {
		of->is_failing = false;
		set(of->tid, false);
	}
}

/* Returns the signal to pass on to the task. */
static int on_stop(struct task *of, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;
	unsigned long from;

	if (signal == (SIGTRAP | 0x80)) {
		on_call(of);
		return 0;
	}
	if (event == PTRACE_EVENT_EXEC) {
		/* The thread id of another thread may have become this
		 * one's. */
		if (ptrace(PTRACE_GETEVENTMSG, of->tid, NULL, &from) == 0 &&
		    (pid_t)from != of->tid)
			forget((pid_t)from);
		of = find(of->tid);
		of->low = of->high = 0;
		of->is_failing = false;
	}
	if (event == PTRACE_EVENT_STOP)
		return 0;
	return event ? 0 : signal;
}

#define OPTIONS \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | \
	 PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

/* Whether the task is in a group-stop, and stays stopped. */
static bool is_group_stop(int status)
{
	int signal = WSTOPSIG(status);

	return status >> 16 == PTRACE_EVENT_STOP &&
	       (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
		signal == SIGTTOU);
}

/* After the only call that fails, system calls no longer stop. */
static void go_on(pid_t tid, int signal)
{
	bool is_over = failed >= 0 && !for_good && !find(tid)->is_failing;

	ptrace(is_over ? PTRACE_CONT : PTRACE_SYSCALL, tid, NULL, signal);
}

static int watch(pid_t program)
{
	int status, result = -1;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status)) {
			forget(tid);
			if (tid == program)
				result = status;
			continue;
		}
		if (is_group_stop(status))
			ptrace(PTRACE_LISTEN, tid, NULL, NULL);
		else
			go_on(tid, on_stop(find(tid), status));
	}
	return result;
}

static pid_t start(char **word)
{
	int gate[2];
	char byte;
	pid_t pid;

	if (pipe(gate) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(gate[1]);
		if (read(gate[0], &byte, 1) != 1)
			_exit(1);
		close(gate[0]);
		personality(ADDR_NO_RANDOMIZE);
		execvp(word[0], word);
		_exit(127);
	}
	close(gate[0]);
	if (pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0)
		return -1;
	if (pid > 0 && (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0 ||
			write(gate[1], "", 1) != 1))
		return -1;
	close(gate[1]);
	return pid;
}

int main(int words, char **word)
{
	FILE *answer;
	int status;
	pid_t pid;

	if (words < 6) {
		fputs("usage: inject LIBRARY ANSWER N ERROR PROGRAM...\n",
		      stderr);
		return 1;
	}
	library = word[1];
	answer = fopen(word[2], "we");
	fail_at = atol(word[3]);
	for_good = fail_at < 0;
	fail_at = labs(fail_at);
	error = atoi(word[4]);
	read_ranges(getenv("PASSED_ON"));
	if (getenv("ONLY"))
		only = atol(getenv("ONLY"));
	unsetenv("PASSED_ON");
	unsetenv("ONLY");
	pid = answer ? start(word + 5) : -1;
	if (pid < 0) {
		perror("inject");
		return 1;
	}
	status = watch(pid);
	fprintf(answer, "%ld %ld %d\n", count, failed, status);
	for (long i = 0; fail_at == 0 && i < count && i < CALLS; i++)
		fprintf(answer, "%d ", number[i]);
	return fclose(answer) != 0;
}
