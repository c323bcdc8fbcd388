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
#define AHEAD 4u   /* pages of one call */

static uintptr_t addresses[PAGES]; /* 0: none */
static unsigned char bytes[PAGES][PAGE] __attribute__((aligned(PAGE)));
static uintptr_t read_ahead_limit;
static bool is_used;

void pages_begin(uintptr_t limit)
{
	read_ahead_limit = limit;
	for (unsigned i = 0; i < PAGES; i++)
		addresses[i] = 0;
}

void pages_drop(void)
{
	if (is_used)
		sys_empty(bytes, sizeof(bytes));
	is_used = false;
}

/* Tables are read in no order, so the pages behind @address are read as well, up to those
 * that are there. */
static int fill(uintptr_t address)
{
	unsigned i = address / PAGE % PAGES, count = 1;
	long r;

	while ((i + count) % AHEAD != 0 &&
	       address + count * PAGE < read_ahead_limit &&
	       addresses[i + count] != address + count * PAGE)
		count++;
	addresses[i] = 0;
	r = sys_peek_pages((const void *)address, bytes[i], count);
	for (unsigned k = 0; k < count; k++)
		addresses[i + k] = (long)k < r ? address + k * PAGE : 0;
	is_used = true;
	return r < 0 ? (int)r : 0;
}

static int get_byte(uintptr_t at, const unsigned char **byte)
{
	uintptr_t address = at & ~(uintptr_t)(PAGE - 1);
	unsigned i = at / PAGE % PAGES;
	int r = addresses[i] == address ? 0 : fill(address);

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
