/*
 * busy WHAT - calls functions, changes its own situation or waits for a change, and
 * goes on calling.  Its own counts are the truth, from the first call to the last; a
 * second thread does the same.
 *
 * A round makes many new paths: 5,000 for each thread.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH /* headers before Linux 5.11 */
#define PR_SET_SYSCALL_USER_DISPATCH  59
#define PR_SYS_DISPATCH_ON	      1
#define SYSCALL_DISPATCH_FILTER_ALLOW 0
#define SYSCALL_DISPATCH_FILTER_BLOCK 1
#endif

static pthread_barrier_t barrier;
static const char *what;
static const char *argument;
static volatile int sink;

static APART void leaf(void)
{
	COUNTED;
}

/* Each @n has a tree of its own: binary, 12 levels deep. */
static APART void left(unsigned path, int depth);

static APART void right(unsigned path, int depth)
{
	COUNTED;
	if (depth > 0) {
		left(path, depth - 1);
		right(path, depth - 1);
	}
}

static APART void left(unsigned path, int depth)
{
	COUNTED;
	if (depth > 0) {
		left(path, depth - 1);
		right(path, depth - 1);
	} else {
		leaf();
	}
}

static APART void round_of_calls(int depth)
{
	COUNTED;
	left(0, depth);
	for (int i = 0; i < 100; i++)
		leaf();
}

QUIET static int is(const char *name)
{
	return strcmp(what, name) == 0;
}

static APART void *new_thread(void *unused)
{
	COUNTED;
	round_of_calls(8);
	return unused;
}

QUIET static void limit(int which, unsigned long value)
{
	struct rlimit both;

	getrlimit(which, &both);
	both.rlim_cur = value;
	setrlimit(which, &both);
}

/* A second program waits for the line and changes shim's files. */
QUIET static void let_it_happen(void)
{
	char c;

	print_text("now\n");
	while (read(0, &c, 1) < 0 && errno == EINTR)
		;
}

QUIET static void do_it(void)
{
	if (is("fsize"))
		limit(RLIMIT_FSIZE, 65536);
	else if (is("fsize0"))
		limit(RLIMIT_FSIZE, 0);
	else if (is("as"))
		limit(RLIMIT_AS, 1 << 20);
	else if (is("nofile"))
		limit(RLIMIT_NOFILE, 0);
	else if (is("nproc"))
		limit(RLIMIT_NPROC, 0);
	else if (is("chroot")) {
		if (chroot(argument) < 0 || chdir("/") < 0)
			_exit(77);
	} else if (is("setuid")) {
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(77);
	} else if (is("wait")) {
		let_it_happen();
	}
}

/* Asks the kernel for what it knows of filters, and sets none. */
QUIET static void seccomp_ask(void)
{
	long by_prctl = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, 0, 0);
	long by_syscall = syscall(SYS_prctl, PR_SET_SECCOMP,
				  SECCOMP_MODE_FILTER, 0, 0, 0);
	long itself = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			      SECCOMP_FILTER_FLAG_TSYNC, NULL);

	if (by_prctl >= 0 || by_syscall >= 0 || itself >= 0)
		_exit(1);
}

/* Strict mode: this thread may only read, write and exit. */
QUIET static void seccomp_strict(int by_syscall)
{
	if (by_syscall)
		syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
	else
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
}

/* The child has the memory of its parent. */
QUIET static void seccomp_in_child(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &all };
	int status = 0;
	pid_t child = vfork();

	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		_exit(1);
}

static volatile char selector;

/* Only system calls of libc are made, others raise SIGSYS. */
QUIET static int find_libc(struct dl_phdr_info *info, size_t size, void *code)
{
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_flags & PF_X &&
		    info->dlpi_phdr[i].p_type == PT_LOAD) {
			((unsigned long *)code)[0] = info->dlpi_addr +
						     info->dlpi_phdr[i].p_vaddr;
			((unsigned long *)code)[1] = info->dlpi_phdr[i].p_memsz;
		}
	return size != 0;
}

QUIET static void dispatch(void)
{
	unsigned long code[2] = { 0, 0 };

	dl_iterate_phdr(find_libc, code);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, code[0],
		  code[1], &selector))
		_exit(77);
	selector = SYSCALL_DISPATCH_FILTER_BLOCK;
}

QUIET static __attribute__((noreturn)) void end(int status)
{
	__asm__ volatile("syscall" ::"a"(SYS_exit), "D"(status) : "memory");
	__builtin_unreachable();
}

static void *second(void *unused)
{
	COUNTED;
	round_of_calls(6);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	round_of_calls(6);
	round_of_calls(12);
	return unused;
}

static APART void sandboxed(int depth)
{
	COUNTED;
	round_of_calls(6);
	if (is("seccomp-asked"))
		seccomp_ask();
	else if (is("seccomp-vfork"))
		seccomp_in_child();
	else if (is("seccomp-dispatch"))
		dispatch();
	else
		seccomp_strict(is("seccomp-syscall"));
	round_of_calls(6);
	round_of_calls(depth);
	for (int i = 0; i < 1000; i++)
		round_of_calls(6);
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	int threads = 1;

	COUNTED;
	what = arguments[1];
	argument = count > 2 ? arguments[2] : "";
	if (strncmp(what, "seccomp", 7) == 0) {
		sandboxed((int)strtol(argument, NULL, 10));
		print_counts();
		end(9);
	}
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, second, NULL))
		_exit(1);
	round_of_calls(6);
	pthread_barrier_wait(&barrier);
	do_it();
	pthread_barrier_wait(&barrier);
	round_of_calls(6);
	round_of_calls(12);
	pthread_join(thread, NULL);
	for (int i = 0; i < 3; i++) {
		if (pthread_create(&thread, NULL, new_thread, NULL) == 0)
			pthread_join(thread, NULL);
		else
			threads = 0;
	}
	for (int i = 0; i < 3; i++)
		round_of_calls(13);
	print_text(threads ? "threads\n" : "no threads\n");
	print_counts();
	_exit(8);
}
