/* A library whose constructor runs before libc's (-z initfirst). */
int initfirst(void);

static int calls;

static __attribute__((noinline)) void leaf(void)
{
	calls++;
}

static __attribute__((constructor)) void construct(void)
{
	leaf();
	leaf();
}

int initfirst(void)
{
	leaf();
	return calls;
}
