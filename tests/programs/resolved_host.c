/* Uses the library resolved. */
#include <stdio.h>

int resolved(int number);

int main(void)
{
	printf("%d\n", resolved(1));
	return 3;
}
