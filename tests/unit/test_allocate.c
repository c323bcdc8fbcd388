/*
 * Disk blocks of files on file systems without fallocate.
 */
#define _GNU_SOURCE
#include "os/sys.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE  10000u
#define BEGIN 5000u

#define NO_FILTER 255

/* From now on, @number fails with @error. */
static void refuse(unsigned number, unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { 4, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(NO_FILTER);
}

/* The error of allocating, where fallocate fails with @error; 0: none. */
static int allocate(int fd, unsigned error, bool may_write)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		if (error)
			refuse(SYS_fallocate, error);
		if (!may_write)
			refuse(SYS_pwrite64, EIO);
		_exit(-sys_allocate(fd, BEGIN, SIZE));
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FILTER)
		cr_skip("no system call can be refused here");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

/* Whether only zeros follow what was there. */
static bool is_right(int fd)
{
	static const char zeros[BEGIN + SIZE];
	char memory[BEGIN + SIZE] = "";

	return pread(fd, memory, sizeof(memory), 0) == BEGIN + SIZE &&
	       memcmp(memory, "before", 6) == 0 &&
	       memcmp(memory + 6, zeros, sizeof(memory) - 6) == 0;
}

Test(allocate, zeros_are_written_where_fallocate_is_not_supported)
{
	static const unsigned errors[] = { 0, EOPNOTSUPP, ENOSYS };

	for (unsigned i = 0; i < 3; i++) {
		int fd = memfd_create("allocate", 0);

		cr_assert(ge(int, fd, 0));
		cr_assert(eq(long, pwrite(fd, "before", 6, 0), 6));
		cr_expect(eq(int, allocate(fd, errors[i], i != 0), 0));
		cr_expect(eq(long, lseek(fd, 0, SEEK_END), BEGIN + SIZE));
		cr_expect(is_right(fd));
		close(fd);
	}
}

Test(allocate, other_errors_are_returned_and_nothing_is_written)
{
	int fd = memfd_create("allocate", 0);

	cr_expect(eq(int, allocate(fd, ENOSPC, true), ENOSPC));
	cr_expect(eq(int, allocate(fd, EOPNOTSUPP, false), EIO));
	cr_expect(zero(long, lseek(fd, 0, SEEK_END)));
	close(fd);
	cr_expect(eq(int, allocate(-1, 0, true), EBADF));
}
