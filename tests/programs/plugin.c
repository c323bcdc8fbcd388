/*
 * A library that is built several times with different names: -DNAME(x)=alpha_##x.  The
 * layout is the same, so one copy may be loaded where another one was.
 */
#define PASTE(a, b) a##_##b
#define JOIN(a, b)  PASTE(a, b)
#define NAMED(x)    JOIN(PLUGIN, x)

int NAMED(twice)(int n);
int work(int n);

static __attribute__((constructor, noinline)) void NAMED(construct)(void)
{
	NAMED(twice)(1);
}

static __attribute__((destructor, noinline)) void NAMED(destruct)(void)
{
	NAMED(twice)(2);
}

__attribute__((noinline)) int NAMED(twice)(int n)
{
	return 2 * n;
}

int work(int n)
{
	return NAMED(twice)(n) + NAMED(twice)(n + 1);
}
