/*
 * A program with hooks of its own, for itself and for the libraries that it is linked
 * with: the program's hooks come before shim's, so shim gets none of the calls.
 */
#include <stdio.h>

#define QUIET __attribute__((no_instrument_function))

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);
int outside(int depth);

static int enters, leaves;

QUIET void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function;
	(void)site;
	enters++;
}

QUIET void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
	leaves++;
}

static __attribute__((noinline)) int inside(void)
{
	return outside(2);
}

int main(void)
{
	inside();
	printf("%d %d\n", enters, leaves);
	return 0;
}
