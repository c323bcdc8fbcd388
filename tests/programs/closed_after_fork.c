/*
 * A function of a library forks.  The parent leaves it and closes the library before fork
 * calls any other handler in the child: shim's too, because the program sets its own by
 * libc's function, before shim starts.
 *
 * closed_after_fork LIBRARY     this file with -DLIBRARY
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY
int split(void);
int after(void);

int split(void)
{
	int pid = fork();

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

static int is_closed[2];

QUIET static void wait_until_closed(void)
{
	char byte;

	close(is_closed[1]);
	if (read(is_closed[0], &byte, 1) != 0)
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
	set(NULL, NULL, wait_until_closed, NULL);
}

__attribute__((section(".preinit_array"),
	       used)) static void (*const at)(int count, char **arguments,
					      char **environment) = set_handler;

int main(int count, char **arguments)
{
	void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
	int (*split)(void) = library ? (int (*)(void))dlsym(library, "split") :
				       NULL;
	int pid, status = 0;

	if (!split || pipe(is_closed) < 0)
		return 1;
	pid = split();
	dlclose(library);
	close(is_closed[1]);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}
#endif
