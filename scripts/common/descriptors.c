/* Keeps the numbers of closed standard streams, and closes descriptors: see descriptors.h. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/descriptors.h"

void descriptors_hold(void)
{
	int fd;

	/* The lowest free number is used, and there may be no /dev. */
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/", O_PATH | O_CLOEXEC);
}

void descriptors_close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned)first, ~0u, 0) < 0)
		for (int fd = first; fd < 1024; fd++)
			close(fd);
}
