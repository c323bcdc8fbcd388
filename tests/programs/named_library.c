/*
 * One function with three names, one of which another file uses; compiled into a
 * library, or into the program.
 */
int a(int value) __attribute__((alias("named_library_function")));
int library_function(int value)
	__attribute__((alias("named_library_function")));
int named_library_function(int value);

__attribute__((noinline)) int named_library_function(int value)
{
	return value * 3;
}
