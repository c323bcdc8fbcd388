/*
 * execs HOW - executes another program, after a failed attempt; 9 is killed then.  (Run
 * by events.py and life.py.)
 */
#define _GNU_SOURCE
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static char *empty[] = { NULL };
static char *words[] = { "sh", "-c", "echo \"$0 $1 $WORD\"", "a", "b", NULL };
static char *environment[] = { "WORD=c", "PATH=/usr/bin:/bin", NULL };

static void run(int how)
{
	switch (how) {
	case 0: execve("/bin/sh", words, environment); break;
	case 1: execv("/bin/sh", words); break;
	case 2: execvp("sh", words); break;
	case 3: execvpe("sh", words, environment); break;
	case 4: execl("/bin/sh", "sh", "-c", words[2], "d", "e", NULL); break;
	case 5: execlp("sh", "sh", "-c", words[2], "f", "g", NULL); break;
	case 6:
		execle("/bin/sh", "sh", "-c", words[2], "h", "i", NULL,
		       environment);
		break;
	case 7: fexecve(open("/bin/sh", O_RDONLY), words, environment); break;
	case 8: execveat(AT_FDCWD, "/bin/sh", words, environment, 0); break;
	case 9: raise(SIGKILL); break;
	}
}

int main(int count, char **arguments)
{
	pid_t child;

	errno = 0;
	execv("/nope", empty);
	printf("%d %m\n", errno == ENOENT);
	fflush(stdout);
	child = vfork();
	if (child == 0) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	run(count > 1 ? atoi(arguments[1]) : 0);
	return 1;
}
