/* Functions of a library that is unloaded while they are counted (budgeted.c). */
#define NOINLINE __attribute__((noinline))

#ifdef SHIFTED
/* Other code at the addresses of the first library. */
NOINLINE void library_before(int x);
NOINLINE void library_before(int x)
{
	if (x > 0)
		library_before(x - 1);
	__asm__ volatile("" ::: "memory");
}
#endif

NOINLINE void library_leaf(unsigned long *count);
void library_leaf(unsigned long *count)
{
	++*count;
	for (int i = 0; i < 40; i++)
		__asm__ volatile("" ::: "memory");
}

void library_calls(unsigned long *count, int times);
void library_calls(unsigned long *count, int times)
{
	for (int i = 0; i < times; i++)
		library_leaf(count);
}
