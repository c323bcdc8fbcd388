/*
 * What is thrown, where it lands, and which function catches it.  (Run by events.py.)
 */
#include "truth.h"

#include <exception>
#include <stdexcept>
#include <string>

extern "C" {
void thrower(int what);
void nested(int what);
void cleans(void);
void again(void);
}

volatile int sink;

struct Base {
	virtual ~Base()
	{
	}
};
struct Derived : Base {
};
struct Guard {
	APART ~Guard();
};

Guard::~Guard()
{
	sink++;
}

APART void thrower(int what)
{
	if (what == 1)
		throw 1;
	if (what == 2)
		throw 2L;
	throw Derived();
}

/* One call, and three handlers in two blocks. */
APART void nested(int what)
{
	try {
		try {
			thrower(what);
		} catch (int) {
			sink++;
		}
	} catch (long) {
		sink += 2;
	} catch (Base &) {
		sink += 3;
	}
}

APART void cleans()
{
	Guard guard;

	thrower(1);
}

APART void again()
{
	try {
		cleans();
	} catch (...) {
		sink++;
		throw;
	}
}

int main()
{
	nested(1);
	nested(2);
	nested(3);
	try {
		again();
	} catch (int i) {
		sink += i;
	}
	try {
		throw std::runtime_error("text");
	} catch (const std::exception &e) {
		print_text(e.what());
	}
	print_text(std::uncaught_exceptions() ? " uncaught\n" : "\n");
	return 0;
}
