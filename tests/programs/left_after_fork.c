/*
 * A function of a library forks.  The parent leaves it, and closes the library or calls the
 * function again from another depth of the stack, before fork calls any other handler in the
 * child: shim's too, because the program sets its own by libc's function, before shim starts.
 *
 * left_after_fork LIBRARY [again]     LIBRARY is this file with -DLIBRARY
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY
int split(int pipe_end);
int after(void);

/* Forks, and returns the child's number; or lets the child of an earlier call continue, whose
 * @pipe_end this is, and returns its exit status. */
int split(int pipe_end)
{
	int pid, status = 0;

	if (pipe_end >= 0) {
		close(pipe_end);
		wait(&status);
		return WEXITSTATUS(status);
	}
	pid = fork();
	if (pid == 0)
		_exit(after());
	return pid;
}

int after(void)
{
	return 7;
}
#else
#define QUIET __attribute__((no_instrument_function))

static int may_continue[2];

QUIET static void wait_for_the_parent(void)
{
	char byte;

	close(may_continue[1]);
	if (read(may_continue[0], &byte, 1) != 0)
		_exit(1);
}

QUIET static void set_handler(int count, char **arguments, char **environment)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	int (*set)(void (*)(void), void (*)(void), void (*)(void),
		   void *) = (int (*)(void (*)(void), void (*)(void),
				      void (*)(void),
				      void *))dlsym(libc, "__register_atfork");

	(void)count;
	(void)arguments;
	(void)environment;
	set(NULL, NULL, wait_for_the_parent, NULL);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const at)(int count, char **arguments,
					      char **environment) = set_handler;

QUIET __attribute__((noinline)) static int split_deeper(int (*split)(int))
{
	volatile char room[8192];
	int status;

	room[0] = 0;
	status = split(may_continue[1]);
	return status + room[0];
}

int main(int count, char **arguments)
{
	void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	int (*split)(int) = library ? (int (*)(int))dlsym(library, "split") :
				      NULL;
	int pid, status = 0;

	if (!split || pipe(may_continue) < 0)
		return 1;
	pid = split(-1);
	if (count > 2)
		return split_deeper(split);
	dlclose(library);
	close(may_continue[1]);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}
#endif
