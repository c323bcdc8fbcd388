/*
 * Calls that are open when the process executes another program are counted.
 *
 * arguments: 3
 * tree:
 *	main 4
 *	main;down 4
 *	main;down;down 4
 *	main;down;down;become 4
 *	main;down;down;become;leaf 4
 */
#include "truth.h"

#include <stdlib.h>

static APART void leaf(void)
{
	COUNTED;
}

static APART void become(char *self, int n)
{
	char text[20];

	COUNTED;
	leaf();
	if (n == 0)
		_exit(5);
	snprintf(text, sizeof(text), "%d", n - 1);
	execl("/proc/self/exe", self, text, NULL);
	_exit(1);
}

static APART void down(char *self, int n, int depth)
{
	COUNTED;
	if (depth > 0)
		down(self, n, depth - 1);
	else
		become(self, n);
}

int main(int count, char **arguments)
{
	COUNTED;
	down(arguments[0], count > 1 ? (int)strtol(arguments[1], NULL, 10) : 0, 1);
	return 1;
}
