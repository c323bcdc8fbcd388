/*
 * Where pointers are that do not lie in blocks of memory.
 */
#ifndef SHIM_LEAK_ROOTS_H
#define SHIM_LEAK_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct leak_roots_region {
	uintptr_t low, high;
	bool writable;
	bool is_data;		/* of a loaded object that is not ours */
	bool is_stack;		/* the first thread's */
	bool is_file;		/* which may become shorter at any time */
};

struct leak_roots_thread {
	uint32_t tid;
	bool is_gone;
	uintptr_t data;		/* what libc and the program keep for it is below,
				 * its stack is below that; 0: not known */
	uintptr_t sp;		/* 0: it runs */
	uintptr_t arguments[6];	/* of the system call it is in */
};

#define REACH_REGIONS_MAX 65536
#define REACH_THREADS_MAX 4096

struct leak_roots {
	struct leak_roots_region *regions;	/* readable ones, by address */
	unsigned region_count;
	uintptr_t data_end;	/* of the object that the last one is of, or 0 */
	uintptr_t first_thread_size;	/* of what the first thread's data takes */
	struct leak_roots_thread *threads;	/* all but the calling one, and some that
					 * have gone */
	bool is_alone;			/* the calling thread */
	unsigned thread_count;
};

/* Looks at what there is.  0 or -errno; then nothing is left behind. */
int leak_roots_find(struct leak_roots *roots);
void leak_roots_free(struct leak_roots *roots);

/* Calls scan(low, high) for each root, until it returns false; @sp is where the
 * calling thread's stack begins to count. */
bool leak_roots_each(const struct leak_roots *roots, uintptr_t sp,
		      bool (*scan)(uintptr_t low, uintptr_t high,
				   void *argument),
		      void *argument);

/* Whether all of it could be read when the roots were found, and still can. */
bool leak_is_readable(const struct leak_roots *roots, uintptr_t low,
		       uintptr_t high);

#endif
