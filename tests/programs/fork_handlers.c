/*
 * A library whose constructor, which comes before shim's, sets handlers for fork.  The
 * handler of the child is a call of the child.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

void prepare(void);
void in_parent(void);
void in_child(void);
int after(int n);

#ifdef LIBRARY
__attribute__((no_instrument_function, constructor)) static void load(void)
{
	pthread_atfork(prepare, in_parent, in_child);
}

void prepare(void)
{
}

void in_parent(void)
{
}

void in_child(void)
{
}

int after(int n)
{
	return n;
}
#else
int main(void)
{
	int status = 0;

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, &status, 0);
	}
	return after(status);
}
#endif
