/*
 * Constructors and destructors of static objects, and exit handlers, are counted.
 *
 * tree:
 *	_GLOBAL__sub_I_leaf 1
 *	_GLOBAL__sub_I_leaf;_Z41__static_initialization_and_destruction_0ii 1
 *	_GLOBAL__sub_I_leaf;_Z41__static_initialization_and_destruction_0ii;_ZN5EarlyC2Ev 1
 *	_GLOBAL__sub_I_leaf;_Z41__static_initialization_and_destruction_0ii;_ZN5EarlyC2Ev;leaf 1
 *	main 1
 *	main;local 2
 *	main;local;_ZN4LateC2Ev 1
 *	main;local;_ZN4LateC2Ev;leaf 2
 *	on_exit_one 1
 *	on_exit_one;leaf 1
 *	on_exit_two 1
 *	on_exit_two;leaf 1
 *	_ZN4LateD2Ev 1
 *	_ZN4LateD2Ev;leaf 2
 *	_ZN5EarlyD2Ev 1
 *	_ZN5EarlyD2Ev;leaf 1
 *	on_destruction 1
 *	on_destruction;leaf 1
 *	on_construction 1
 *	on_construction;leaf 1
 *
 * clang does not instrument what it makes itself.
 *
 * tree (clang -O0):
 *	_ZN5EarlyC2Ev 1
 *	_ZN5EarlyC2Ev;leaf 1
 *	main 1
 *	main;local 2
 *	main;local;_ZN4LateC2Ev 1
 *	main;local;_ZN4LateC2Ev;leaf 2
 *	on_exit_one 1
 *	on_exit_one;leaf 1
 *	on_exit_two 1
 *	on_exit_two;leaf 1
 *	_ZN4LateD2Ev 1
 *	_ZN4LateD2Ev;leaf 2
 *	_ZN5EarlyD2Ev 1
 *	_ZN5EarlyD2Ev;leaf 1
 *	on_destruction 1
 *	on_destruction;leaf 1
 *	on_construction 1
 *	on_construction;leaf 1
 *
 * tree (clang -O2):
 *	_ZN5EarlyC2Ev 1
 *	_ZN5EarlyC2Ev;leaf 1
 *	main 1
 *	main;local 2
 *	main;local;_ZN4LateC2Ev 1
 *	main;local;_ZN4LateC2Ev;leaf 2
 *	on_exit_one 1
 *	on_exit_one;leaf 1
 *	on_exit_two 1
 *	on_exit_two;leaf 1
 *	_ZN4LateD2Ev 1
 *	_ZN4LateD2Ev;leaf 2
 *	_ZN5EarlyD2Ev 1
 *	_ZN5EarlyD2Ev;leaf 1
 *	on_destruction 1
 *	on_destruction;leaf 1
 *	on_construction 1
 *	on_construction;leaf 1
 */
#include "truth.h"

#include <stdlib.h>

extern "C" {
void leaf(void);
void on_exit_one(void);
void on_exit_two(void);
void local(void);
__attribute__((constructor)) void on_construction(void);
__attribute__((destructor)) void on_destruction(void);
}

struct Early {
	APART Early();
	APART ~Early();
};

struct Late {
	APART Late();
	APART ~Late();
};

APART void leaf()
{
	COUNTED;
}

Early::Early()
{
	leaf();
}

Early::~Early()
{
	leaf();
}

Late::Late()
{
	leaf();
	leaf();
}

Late::~Late()
{
	leaf();
	leaf();
}

static Early early;

APART void local()
{
	COUNTED;
	static Late late;
	(void)late;
}

APART void on_exit_one()
{
	COUNTED;
	leaf();
}

APART void on_exit_two()
{
	COUNTED;
	leaf();
}

APART void on_construction()
{
	leaf();
}

APART void on_destruction()
{
	leaf();
}

int main()
{
	COUNTED;
	local();
	local();
	atexit(on_exit_one);
	atexit(on_exit_two);
	return 0;
}
