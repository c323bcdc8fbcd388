/*
 * A library in C++ for a program in C.
 */
#include "truth.h"

#include <stdexcept>

extern "C" {
int work(int n);
void deep(int n);
}

APART void deep(int n)
{
	if (n == 0)
		throw std::out_of_range("deep");
	deep(n - 1);
}

int work(int n)
{
	int caught = 0;

	for (int i = 0; i < n; i++) {
		try {
			deep(i);
		} catch (const std::logic_error &e) {
			caught += e.what()[0] == 'd';
		}
	}
	return caught;
}
