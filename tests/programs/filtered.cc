/*
 * Functions for --filter: in a namespace, in a class, called in a forked child only.
 */
#include <sys/wait.h>
#include <unistd.h>

namespace space {
struct Class {
	int run(int x) { return x + 1; }
};
}

int deliverd(int x)
{
	space::Class object;

	return object.run(x);
}

int in_child(int x)
{
	return deliverd(x) + 1;
}

/* Is called when the child has ended. */
int in_parent(int x)
{
	return x;
}

/* Is never called. */
int never(int x)
{
	return x;
}

int main()
{
	pid_t child = fork();

	if (child == 0)
		_exit(in_child(1) == 3 ? 0 : 1);
	waitpid(child, nullptr, 0);
	return in_parent(deliverd(1)) == 2 ? 0 : 1;
}
