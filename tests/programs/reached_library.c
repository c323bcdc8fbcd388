/* Loaded by reached.c: see there. */
static volatile int constructed;

__attribute__((constructor)) static void construct(void)
{
	constructed = 1;	//@ loaded
}

int library_call(int number);

int library_call(int number)
{
	if (number == 0)
		return 100;	//@ loaded
	if (number == 1)
		return 200;	//@ loaded
	if (number == 2)
		return 300 + constructed;	//@ loaded
	return 400;	//@ -
}
