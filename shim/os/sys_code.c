/*
 * Makes memory executable that shim has written.  Systems with a W^X policy
 * (PR_SET_MDWE, systemd's MemoryDenyWriteExecute) refuse that; but they let the code be mapped
 * from a file.
 */
#define _GNU_SOURCE
#include "os/sys.h"

#include "os/sys_call.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <shim/banned.h>

/* The file is in memory, and has no name. */
static int map_copy(void *memory, size_t size)
{
	int fd = (int)sys_call(SYS_memfd_create, (long)"shim", MFD_CLOEXEC, 0,
			       0, 0, 0);
	long r;

	if (fd < 0)
		return fd;
	r = sys_write_all(fd, memory, size);
	if (r == 0)
		r = sys_call(SYS_mmap, (long)memory, (long)size,
			     PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			     0);
	sys_close(fd);
	return r < 0 && r > -4096 ? (int)r : 0;
}

int sys_make_code(void *memory, size_t size)
{
	int r = sys_protect(memory, size, PROT_READ | PROT_EXEC);

	return r == -EACCES || r == -EPERM ? map_copy(memory, size) : r;
}
