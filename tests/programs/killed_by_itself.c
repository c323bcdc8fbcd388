/*
 * killed_by_itself HOW - ends without any code of the library running: by a signal, a raw
 * system call, or another program.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) int ends(const char *how)
{
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "exec") == 0)
		execl("/bin/true", "true", (char *)NULL);
	return (int)syscall(SYS_exit_group, 5);
}

int main(int argc, char **argv)
{
	return argc == 2 ? ends(argv[1]) : 2;
}
