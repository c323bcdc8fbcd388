/* Functions that are inlined into each other, with labels at some of their
 * instructions. */
#ifdef WITHOUT_MARKS /* compilers copy code with hooks */
#define MARK(name) __asm__ volatile("nop")
#else
#define MARK(name) __asm__ volatile("nop\nmark_" #name ": nop")
#endif

#define INLINED static inline __attribute__((always_inline))

INLINED void deep(void)
{
	MARK(deep);
}

INLINED void middle(void)
{
	MARK(middle);
	deep();
}

void outer(void);
void off(void);
void below(void);

__attribute__((noinline)) void outer(void)
{
	MARK(outer);
	middle();
}

__attribute__((noinline)) void below(void)
{
	MARK(below);
}

__attribute__((noinline)) void off(void)
{
	MARK(off);
	below();
	MARK(off_again);
}

int main(void)
{
	MARK(main);
	outer();
	off();
	MARK(main_again);
	return 0;
}
