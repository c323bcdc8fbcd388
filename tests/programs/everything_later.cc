/*
 * Answers with a byte, waits for one, and then does what everything.cc does; with the
 * argument "fork", in a forked child before.
 */
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#define main everything
#include "everything.cc"
#undef main

static int in_child()
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_Exit(everything());
	return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1;
}

int main(int, char **arguments)
{
	char byte;

	free(malloc(1));
	if (write(1, "x", 1) != 1 || read(0, &byte, 1) != 1)
		return 1;
	if (!strcmp(arguments[1], "fork") && in_child() != 3)
		return 2;
	return everything() == 3 ? 0 : 2;
}
