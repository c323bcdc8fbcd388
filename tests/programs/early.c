/* A library whose constructor runs before those of all preloaded libraries, and its
 * destructor after them: the program needs it, and it needs only libc. */
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
