/* Uses the library initfirst. */
#include <stdio.h>

int initfirst(void);

int main(void)
{
	printf("%d\n", initfirst());
	return 3;
}
