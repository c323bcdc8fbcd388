/*
 * Mappings: memory that the program gets from mmap and brk.
 *
 * A profiler that has enabled allocations (<shim/allocations.h>) also gets the
 * events mapping, unmapping, remapping and break_moved (<shim/events.def>) for
 * calls of mmap, munmap, mremap, brk and sbrk by the program and its libraries.
 * Mappings made inside libc (its allocator, its loader, stacks of threads)
 * bypass these functions and raise no events, nor do mappings made before
 * profilers were set up.
 *
 * Example: count the bytes that are mapped.
 *
 *     #include <shim/allocations.h>
 *     #include <shim/mappings.h>
 *
 *     static uint64_t bytes;
 *
 *     static void mapped(struct shim_profiler *profiler,
 *                        const struct shim_mapping *mapping)
 *     {
 *             (void)profiler;
 *             __atomic_add_fetch(&bytes, mapping->size, __ATOMIC_RELAXED);
 *     }
 *
 *     SHIM_PROFILER_MODULE(mapped)
 *     {
 *             struct shim_profiler_handle *handle = shim_profiler_create(NULL);
 *
 *             shim_profiler_on_mapping(handle, mapped);
 *             return shim_profiler_enable_allocations(handle);
 *     }
 */
#ifndef SHIM_MAPPINGS_H
#define SHIM_MAPPINGS_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A mapping or, in an unmapping, the part of it that is unmapped.  Valid while
 * the callback runs.
 */
struct shim_mapping {
	uintptr_t address;
	uint64_t size; /* bytes; whole pages */
	/* Unique in the process.  The rest of a mapping that is partly unmapped
	 * keeps it, and so does a mapping that mremap moves. */
	uint64_t serial;
	uint32_t protection; /* the arguments of mmap */
	uint32_t flags;
	/* A word that stays with the mapping.  Reserved for shim's own profilers. */
	uint64_t *note;
};

#ifdef __cplusplus
}
#endif
#endif
