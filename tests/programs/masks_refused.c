/*
 * A program that forks while signals cannot be blocked: a filter that shim has not seen
 * refuses rt_sigprocmask.  With arguments it executes them as a command instead, with the
 * filter.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;

static APART void leaf(void)
{
	COUNTED;
	sink++;
}

/* Not through libc, so shim does not see it. */
static long system_call(long number, long a, long b, long c)
{
#ifdef __x86_64__
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c);
#endif
}

static void refuse_masks(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog all = { 4, filter };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	system_call(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&all);
}

int main(int count, char **argument)
{
	int status = 0;

	if (count > 1) {
		refuse_masks();
		execv(argument[1], argument + 1);
		return 1;
	}
	COUNTED;
	for (int i = 0; i < 5; i++)
		leaf();
	refuse_masks();
	if (fork() == 0) {
		for (int i = 0; i < 100; i++)
			leaf();
		_exit(3);
	}
	wait(&status);
	for (int i = 0; i < 5; i++)
		leaf();
	print_counts();
	return WEXITSTATUS(status);
}
