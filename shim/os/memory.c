/*
 * memcpy and the other functions that compilers call implicitly, to clear or copy a
 * structure.  Without these definitions, the calls could reach functions of the program,
 * or functions of libc, which use vector registers.
 */
#include <stddef.h>

#include <shim/banned.h>

/* Volatile accesses keep the compiler from replacing the loops by calls of these
 * functions. */
#define PLAIN __attribute__((visibility("hidden"), noinline))

void *memset(void *memory, int value, size_t size);
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
size_t strlen(const char *string);

PLAIN void *memset(void *memory, int value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((volatile char *)memory)[i] = (char)value;
	return memory;
}

PLAIN void *memcpy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

PLAIN void *memmove(void *to, const void *from, size_t size)
{
	if ((char *)to < (const char *)from)
		return memcpy(to, from, size);
	while (size-- > 0)
		((volatile char *)to)[size] = ((const char *)from)[size];
	return to;
}

PLAIN size_t strlen(const char *string)
{
	const volatile char *end = string;

	while (*end)
		end++;
	return (size_t)(end - string);
}
