/*
 * Reads memory that another thread may unmap at any time.  The system call copies memory
 * and fails where it is unmapped.  A cache of pages keeps the calls few.
 */
#include "os/pages.h"

#include "os/sys.h"

#include <stdint.h>

#include <shim/banned.h>

#define PAGE  4096u
#define PAGES 128u /* room for the names and symbols of libstdc++ */

static uintptr_t addresses[PAGES]; /* 0: none */
static unsigned char bytes[PAGES][PAGE] __attribute__((aligned(PAGE)));

void pages_begin(void)
{
	for (unsigned i = 0; i < PAGES; i++)
		addresses[i] = 0;
}

void pages_end(void)
{
	sys_empty(bytes, sizeof(bytes));
}

static int get_byte(uintptr_t at, const unsigned char **byte)
{
	uintptr_t address = at & ~(uintptr_t)(PAGE - 1);
	unsigned i = at / PAGE % PAGES;
	int r = 0;

	if (addresses[i] != address) {
		addresses[i] = 0;
		r = sys_peek((const void *)address, bytes[i], PAGE);
		addresses[i] = r < 0 ? 0 : address;
	}
	*byte = bytes[i] + (at - address);
	return r;
}

int pages_read(const void *from, void *to, size_t size)
{
	const unsigned char *byte = NULL;
	uintptr_t at = (uintptr_t)from;

	for (size_t i = 0; i < size; i++, at++, byte++) {
		int r = i == 0 || at % PAGE == 0 ? get_byte(at, &byte) : 0;

		if (r < 0)
			return r;
		((unsigned char *)to)[i] = *byte;
	}
	return 0;
}

bool pages_read_text(const char *from, char *to, size_t size)
{
	const unsigned char *byte = NULL;
	uintptr_t at = (uintptr_t)from;

	for (size_t i = 0; i < size; i++, at++, byte++) {
		if ((i == 0 || at % PAGE == 0) && get_byte(at, &byte) < 0)
			return false;
		to[i] = (char)*byte;
		if (*byte == '\0')
			return true;
	}
	return false;
}
