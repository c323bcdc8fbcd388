/*
 * Coverage (<shim/coverage.h>): the scanned objects, and their lines.
 *
 *     coverage.c          the public functions and the list of objects
 *     coverage_lines.c    the lines of an object, and their traps
 *     code_copies.c       copies of code whose traps cannot be removed
 *     coverage_points.c   programs that count themselves
 *     sigtrap.c           the signal
 */
#ifndef SHIM_COVERAGE_INTERNAL_H
#define SHIM_COVERAGE_INTERNAL_H

#include <shim/coverage.h>
#include <shim/profiler.h>
#include <stdbool.h>
#include <ucontext.h>

struct image_entry;

/*
 * A scanned object.  Objects are pushed to a list and never removed; readers, also
 * signal handlers, walk it without a lock.  An unloaded object has no address until the
 * same file is loaded again, and keeps its lines.
 */
struct coverage_object {
	struct shim_coverage_object info;
	struct coverage_object *next;
	uintptr_t start; /* its address; 0: it was unloaded */
	uintptr_t size;
	uint64_t device, inode; /* of its file */
	uint8_t *originals; /* the code's byte at the beginning of each line */
	bool is_set;	    /* it has traps */
	bool makes_way; /* its traps were removed while its marks are changed */
	/* code_copies.h: the memory for copies of its code; where they run. */
	struct code_copies *copies;
	uintptr_t copies_at;
};

extern struct coverage_object *coverage_objects
	__attribute__((visibility("hidden")));

bool coverage_is_on(void);

/* Begins coverage after the module that has enabled it is set up; true if this call
 * begins it.  The next plan adds the hooks.  If the program already runs, the caller
 * then calls coverage_begin_late, which scans the loaded objects. */
bool coverage_begin(void);
void coverage_begin_late(void);
/* Called in shim's constructor: the program may have threads already. */
void coverage_begin_at_start(void);

/* `profrun detach` ends coverage for now, and the next attach continues it.  The handler of
 * SIGTRAP stays: a thread may have hit a trap before.  No lock is held. */
void coverage_detach(bool begins);
/* Called while it has ended: another recording gets what is reached from now on. */
void coverage_renew(void);

/* Scans the new objects; no lock of shim is held. */
void coverage_scan_new(void);
/* Scans one object, which need not be in the list of image.h. */
void coverage_scan_object(const struct image_entry *image);
/* Whether the object at @address was scanned. */
bool coverage_has_scanned(uintptr_t address);
/* Opens the helper for debug information before the program loads an object. */
void coverage_prepare(void);

/* Whether all filters want the function; true without filters. */
bool coverage_wants(shim_function function);
bool coverage_has_filters(void);

/* Raises coverage_object: a profiler can provide the memory for its results. */
void coverage_raise_object(struct coverage_object *object);

/* Makes the object known to readers. */
void coverage_add(struct coverage_object *object);

/* Logs that shim does not record the lines of the object at @path. */
void coverage_log_missing(const char *path, int error);

/* Makes an object with the path and @state, without lines; NULL without memory. */
struct coverage_object *coverage_make(const struct image_entry *image,
				      enum shim_coverage_state state);

/* --- coverage_loader.c: scans objects before any of their code runs --- */

void coverage_watch_loader(void);
/* Removes the trap in the loader; false if it is still there. */
bool coverage_leave_loader(void);
/* Sets it again, if there was one. */
void coverage_return_to_loader(void);

/* --- coverage_points.c --- */

/* Counts at @code, which calls a compiled-in counter. */
void coverage_count_at(uintptr_t code);
/* Numbers the @guards of an object. */
void coverage_number(uint32_t *guards, uint32_t *end);
/* Sets the places of the guards: two words for each guard, of which the first is an
 * address. */
void coverage_place(const uintptr_t *places, const uintptr_t *end);
void coverage_count(uint32_t guard);
/* Called before a fork: from now on, child processes count in the same memory. */
void coverage_forks(void);

/* --- coverage_lines.c --- */

/* Makes an object with the lines of @image that filters want; NULL without memory. */
struct coverage_object *coverage_read_lines(const struct image_entry *image);
/* Forbids traps.  Called before any trap was set. */
void coverage_forbid_traps(void);
/* Sets traps at lines that were not reached. */
void coverage_set_traps(struct coverage_object *object);
/* `profrun detach` removes all traps, and the next attach sets them again at lines that were
 * not reached. */
void coverage_detach_traps(bool begins);
/* Removes all traps, for good: shim records no more lines.  The log gets @reason. */
void coverage_give_up(const char *reason);
/* The first line at or after @offset. */
static inline uint32_t
coverage_find_line(const struct shim_coverage_object *object, uint64_t offset)
{
	uint32_t low = 0, high = object->line_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (object->lines[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
