/*
 * A library that grouped_opens opens.  With -DSWAPPED, the parameters are in the other
 * order.
 */
#ifdef SWAPPED
int library_call(int other, int n);

int library_call(int other, int n)
#else
int library_call(int n, int other);

int library_call(int n, int other)
#endif
{
	return n - other;
}
