/*
 * A vfork child calls functions again and again before it executes another program, as shells
 * do when they look for it.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static APART int leaf(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static APART int work(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += leaf(i);
	return sum;
}

/* Without an environment: the program may be of another processor than the library. */
static APART void look_for(const char *name)
{
	static char *const none[] = { NULL };

	for (int i = 0; i < 5; i++) {
		work(3);
		execl("/nowhere", name, NULL);
	}
	execle("/bin/true", name, NULL, none);
	_exit(1);
}

int main(void)
{
	int status = 1, sum = work(4);

	for (int i = 0; i < 3; i++) {
		pid_t child = vfork();

		if (child == 0)
			look_for("true");
		waitpid(child, &status, 0);
		sum += work(4);
	}
	printf("%d %d\n", status, sum);
	return 0;
}
