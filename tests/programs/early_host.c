/* Uses the library early. */
#include "truth.h"

void early_call(void);

static APART void leaf(void)
{
	COUNTED;
}

int main(void)
{
	COUNTED;
	leaf();
	early_call();
	return 0;
}
