/*
 * The roots of the leak scan: memory outside blocks that may contain pointers.
 */
#ifndef SHIM_LEAK_ROOTS_H
#define SHIM_LEAK_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct leak_roots_region {
	uintptr_t low, high;
	bool writable;
	bool is_data;  /* data of a loaded object other than shim */
	bool is_stack; /* the first thread's stack */
	bool is_file;  /* a mapped file, which may be truncated at any time */
};

struct leak_roots_thread {
	uint32_t tid;
	bool has_ended;
	/* its thread pointer: thread-local storage is below, its stack below that;
	 * 0: unknown */
	uintptr_t data;
	uintptr_t sp;		/* 0: the thread is running */
	uintptr_t arguments[6]; /* of its current system call */
};

#define REACH_REGIONS_MAX 65536
#define REACH_THREADS_MAX 4096

struct leak_roots {
	struct leak_roots_region *regions; /* readable ones, by address */
	unsigned region_count;
	uintptr_t data_end; /* end of the data of the last object, or 0 */
	uintptr_t first_thread_size; /* size of the first thread's TLS */
	/* all except the calling thread, and some ended threads */
	struct leak_roots_thread *threads;
	bool is_alone; /* the calling thread is the only one */
	unsigned thread_count;
};

/* Finds the roots.  Returns 0; on -errno it has freed everything. */
int leak_roots_find(struct leak_roots *roots);
void leak_roots_free(struct leak_roots *roots);

/* Calls scan(low, high) for each root until it returns false.  The root in the calling
 * thread's stack begins at @sp. */
bool leak_roots_each(const struct leak_roots *roots, uintptr_t sp,
		     bool (*scan)(uintptr_t low, uintptr_t high,
				  void *argument),
		     void *argument);

/* Whether [low, high) was readable when the roots were found, and belongs to no
 * file. */
bool leak_is_readable(const struct leak_roots *roots, uintptr_t low,
		      uintptr_t high);

#endif
