/*
 * attached_limited LIMIT: a program to attach to, which allows itself less before it waits
 * for the end of its standard input.  Then it checks that the attach has left it as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

static PLAIN void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* System call @number fails with EPERM. */
static PLAIN void forbid(unsigned number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("seccomp");
}

/* The pages that the process has mapped, and @more of them. */
static PLAIN void limit_memory(unsigned long more)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	struct rlimit limit;

	if (!file || fscanf(file, "%lu", &pages) != 1)
		fail("statm");
	fclose(file);
	limit.rlim_cur = limit.rlim_max = (pages + more) * 4096;
	if (setrlimit(RLIMIT_AS, &limit))
		fail("setrlimit");
}

static PLAIN void limit_descriptors(rlim_t count)
{
	struct rlimit limit = { count, count };

	if (setrlimit(RLIMIT_NOFILE, &limit))
		fail("setrlimit");
}

static PLAIN void limit_size(rlim_t size)
{
	struct rlimit limit = { size, size };

	if (setrlimit(RLIMIT_FSIZE, &limit))
		fail("setrlimit");
}

static PLAIN void set_limit(const char *name)
{
	if (!strcmp(name, "mmap"))
		forbid(SYS_mmap);
	else if (!strcmp(name, "openat"))
		forbid(SYS_openat);
	else if (!strcmp(name, "mkdirat"))
		forbid(SYS_mkdirat);
	else if (!strcmp(name, "all"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (!strcmp(name, "memory"))
		limit_memory(0);
	else if (!strcmp(name, "little memory"))
		limit_memory(200);
	else if (!strcmp(name, "descriptors"))
		limit_descriptors(3);
	else if (!strcmp(name, "one descriptor"))
		limit_descriptors(4);
	else if (!strcmp(name, "size"))
		limit_size(0);
	else if (!strcmp(name, "small size"))
		limit_size(65536);
}

int main(int argc, char **argv)
{
	char line[16];
	int wrong;

	set_limit(argc > 1 ? argv[1] : "");
	if (write(1, "ready\n", 6) != 6)
		return 2;
	/* A call that succeeds does not change errno. */
	errno = 12345;
	wrong = read(0, line, sizeof(line)) < 0;
	wrong |= errno != 12345;
	if (write(1, wrong ? "wrong\n" : "right\n", 6) != 6)
		wrong = 2;
	syscall(SYS_exit, wrong);
}
