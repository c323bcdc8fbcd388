/* Keeps the numbers of closed standard streams: see descriptors.h. */
#include <fcntl.h>
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
