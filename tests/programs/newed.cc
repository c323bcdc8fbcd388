/* Allocates with each kind of new, in functions of its own. */
#include <new>

#define APART __attribute__((noinline))

static void *volatile kept;

APART static void one()
{
	kept = new long(1);
	__asm__ volatile("");
}

APART static void many()
{
	for (int i = 0; i < 10; i++) {
		char *made = new (std::nothrow) char[100];

		kept = made;
		delete[] made;
	}
	__asm__ volatile("");
}

struct alignas(64) aligned {
	char text[64];
};

APART static void all_aligned()
{
	kept = new aligned[3];
	__asm__ volatile("");
}

int main()
{
	one();
	many();
	all_aligned();
	return 0;
}
