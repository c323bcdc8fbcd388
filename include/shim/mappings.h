/*
 * Mappings: memory that the program asks the system for.
 *
 * Those who have enabled allocations (<shim/allocations.h>) get events of mmap,
 * munmap and mremap as well, and of brk and sbrk: mapping, unmapping, remapping,
 * break_moved (<shim/events.def>).  They are what the program and its libraries call
 * by these names.  What libc's own allocator and loader map, and stacks of threads,
 * they map without them; nor is told what was mapped before profilers were set up.
 */
#ifndef SHIM_MAPPINGS_H
#define SHIM_MAPPINGS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A mapping or, in an unmapping, what goes of it.  Valid while the callback runs.
 */
struct shim_mapping {
	uintptr_t address;
	uint64_t size;		/* bytes; whole pages */
	/* No two mappings of a process have the same; what is left when a part goes
	 * keeps it, and so does one that mremap moves. */
	uint64_t serial;
	uint32_t protection;	/* as mmap was given them */
	uint32_t flags;
	/* A word that is kept with it, for the profilers that are part of shim. */
	uint64_t *note;
};

#ifdef __cplusplus
}
#endif
#endif
