/*
 * Steps through calls, instruction by instruction; a handler looks for run() in the stack of what
 * it has interrupted.  r11 is no address.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>

#define APART	__attribute__((noinline))
#define PLAIN	__attribute__((no_instrument_function))
#define ROOM	200
#define TRAP	"0x100" /* the flag */
#define WARMUPS 50

static volatile unsigned work;
static char *begin;
static int steps, cut;

APART unsigned tiny(unsigned n)
{
	work += n;
	return n * 3 + 1;
}

APART unsigned last(unsigned n)
{
	work += n;
	return tiny(n);
}

APART unsigned middle(unsigned n)
{
	unsigned sum = tiny(n);

	sum += last(n + 1);
	return sum + 1;
}

APART unsigned loop(unsigned n)
{
	unsigned sum = 0;

	for (; n > 0; n--) {
		__asm__ volatile("mov $0x246, %%r11d" ::: "r11");
		sum += middle(sum);
	}
	return sum;
}

PLAIN static void look(int signal)
{
	void *callers[64];
	int found = 0;

	(void)signal;
	for (int n = backtrace(callers, 64); n-- > 0;)
		found |= (char *)callers[n] >= begin &&
			 (char *)callers[n] < begin + ROOM;
	steps++;
	cut += !found;
}

APART unsigned run(void)
{
	unsigned sum = loop(WARMUPS);

	begin = (char *)run;
	__asm__ volatile("pushfq; orl $" TRAP ", (%%rsp); popfq" ::
				 : "memory", "cc");
	sum += loop(10);
	__asm__ volatile("pushfq; andl $~" TRAP ", (%%rsp); popfq" ::
				 : "memory", "cc");
	return sum;
}

int main(void)
{
	void *callers[1];

	backtrace(callers, 1);
	signal(SIGTRAP, look);
	work += run();
	printf("%s, %s cut\n", steps > 100 ? "stepped" : "too short",
	       cut == 0		? "none" :
	       cut * 50 < steps ? "few" :
				  "many");
	return 3;
}
