/*
 * Wrappers of mmap, brk and mprotect.  They call the next definition, which the program would
 * have called without shim, and raise events if a profiler has enabled allocations.
 * The wrappers have libc's names, so this file does not include <shim/banned.h>.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* it renames mmap to mmap64 */
#include "edge/edge.h"

#include "heap/allocations.h"
#include "heap/mappings.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/thread.h"
#include "sources/sources.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *(*next_mmap)(void *, size_t, int, int, int, off_t);
static int (*next_munmap)(void *, size_t);
static void *(*next_mremap)(void *, size_t, size_t, int, ...);
static int (*next_mprotect)(void *, size_t, int);
static int (*next_brk)(void *);
static void *(*next_sbrk)(intptr_t);

void edge_mappings_resolve(void)
{
	next_mmap = lookup_real("mmap");
	next_munmap = lookup_real("munmap");
	next_mremap = lookup_real("mremap");
	next_mprotect = lookup_real("mprotect");
	next_brk = lookup_real("brk");
	next_sbrk = lookup_real("sbrk");
}

/* Whether calls raise events.  False in the callbacks, slow hooks and threads of a
 * profiler. */
static bool raises_events(void)
{
	return allocations_raise_events() && allocations_are_the_programs();
}

/* Makes the system call, for calls before libc's function is found. */
static long call_system(long number, long a, long b, long c, long d, long e,
			long f)
{
	long r = sys_pass_on(number, a, b, c, d, e, f);

	if (r >= 0 || r < -4095)
		return r;
	errno = (int)-r;
	return -1;
}

static void *map(void *address, size_t size, int protection, int flags, int fd,
		 off_t offset)
{
	if (next_mmap)
		return next_mmap(address, size, protection, flags, fd, offset);
	return (void *)call_system(SYS_mmap, (long)address, (long)size,
				   protection, flags, fd, offset);
}

EDGE void *mmap(void *address, size_t size, int protection, int flags, int fd,
		off_t offset)
{
	void *mapped = map(address, size, protection, flags, fd, offset);

	if (__builtin_expect(raises_events(), 0) && mapped != MAP_FAILED)
		mappings_got((uintptr_t)mapped, size, protection, flags);
	return mapped;
}

EDGE void *mmap64(void *address, size_t size, int protection, int flags, int fd,
		  off64_t offset)
{
	return mmap(address, size, protection, flags, fd, offset);
}

EDGE int munmap(void *address, size_t size)
{
	/* The event covers any memory.  The kernel refuses an address that is not
	 * aligned. */
	if (__builtin_expect(raises_events(), 0) &&
	    (uintptr_t)address % 4096 == 0 && size != 0)
		mappings_give((uintptr_t)address, size);
	if (next_munmap)
		return next_munmap(address, size);
	return (int)call_system(SYS_munmap, (long)address, (long)size, 0, 0, 0,
				0);
}

static void *remap(void *address, size_t size, size_t new_size, int flags,
		   void *new_address)
{
	if (next_mremap)
		return next_mremap(address, size, new_size, flags, new_address);
	return (void *)call_system(SYS_mremap, (long)address, (long)size,
				   (long)new_size, flags, (long)new_address, 0);
}

/* If @size is 0, mremap maps the same memory a second time. */
EDGE void *mremap(void *address, size_t size, size_t new_size, int flags, ...)
{
	struct mappings_change change = { .is_known = false };
	void *new_address = NULL, *moved;
	va_list more;

	if (flags & MREMAP_FIXED) {
		va_start(more, flags);
		new_address = va_arg(more, void *);
		va_end(more);
	}
	if (!__builtin_expect(raises_events(), 0))
		return remap(address, size, new_size, flags, new_address);
	if (size != 0)
		mappings_change_begins(&change, (uintptr_t)address, size);
	moved = remap(address, size, new_size, flags, new_address);
	if (moved == MAP_FAILED)
		mappings_changed(&change, 0, 0);
	else if (change.is_known)
		mappings_changed(&change, (uintptr_t)moved, new_size);
	else if (size == 0)
		mappings_got((uintptr_t)moved, new_size, PROT_READ | PROT_WRITE,
			     MAP_SHARED);
	return moved;
}

/* LLVM's runtime makes the code of a program writable before it changes XRay's sleds. */
EDGE int mprotect(void *address, size_t size, int protection)
{
	if (protection & PROT_WRITE)
		sources_release((uintptr_t)address, (uintptr_t)address + size);
	if (next_mprotect)
		return next_mprotect(address, size, protection);
	return (int)call_system(SYS_mprotect, (long)address, (long)size,
				protection, 0, 0, 0);
}

EDGE void *sbrk(intptr_t change)
{
	void *before;

	if (!next_sbrk) {
		errno = ENOMEM;
		return (void *)-1;
	}
	before = next_sbrk(change);
	if (__builtin_expect(raises_events(), 0) && change != 0 &&
	    before != (void *)-1)
		mappings_break_moved((uintptr_t)before,
				     (uintptr_t)before + (uintptr_t)change);
	return before;
}

EDGE int brk(void *end)
{
	void *before = next_sbrk ? next_sbrk(0) : NULL;
	int result;

	if (!next_brk) {
		errno = ENOMEM;
		return -1;
	}
	result = next_brk(end);
	if (__builtin_expect(raises_events(), 0) && result == 0 &&
	    before != end)
		mappings_break_moved((uintptr_t)before, (uintptr_t)end);
	return result;
}
