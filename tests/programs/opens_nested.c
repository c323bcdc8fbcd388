/*
 * opens_nested NAME - a library of a library opens NAME, which is searched for where the
 * first one says.  (Built three times and run by events.py.)
 */
#include <dlfcn.h>
#include <stdio.h>

int inner(const char *name);
int outer(const char *name);

#ifdef INNER
int inner(const char *name)
{
	return dlopen(name, RTLD_NOW) != NULL;
}
#elif defined(OUTER)
int outer(const char *name)
{
	return inner(name);
}
#else
int main(int count, char **arguments)
{
	puts(count == 2 && outer(arguments[1]) ? "opened" : "not found");
	return 0;
}
#endif
