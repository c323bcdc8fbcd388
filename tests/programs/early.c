/* A library whose constructor runs before any of a preloaded library, and its
 * destructor after: the program needs it, and it needs only libc. */
void early_call(void);

static __attribute__((noinline)) void early_leaf(void)
{
	__asm__ volatile("");
}

static __attribute__((constructor, noinline)) void early_construct(void)
{
	early_leaf();
}

static __attribute__((destructor, noinline)) void early_destruct(void)
{
	early_leaf();
}

void early_call(void)
{
	early_leaf();
}
