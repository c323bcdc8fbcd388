/*
 * Coverage (<shim/coverage.h>): the objects that are looked at, and their lines.
 *
 *     coverage.c          what profilers ask and are told
 *     coverage_lines.c    an object's lines, and the traps on them
 *     coverage_points.c   what programs count themselves
 *     coverage/sigtrap.c              the signal
 */
#ifndef SHIM_COVERAGE_INTERNAL_H
#define SHIM_COVERAGE_INTERNAL_H

#include <shim/coverage.h>
#include <shim/profiler.h>
#include <stdbool.h>
#include <ucontext.h>

struct image_entry;

/*
 * Objects are pushed to a list that readers, also signal handlers, walk without a
 * lock; none ever leaves.  One that was unloaded lies nowhere until the same file
 * is loaded again: its lines are as they were.
 */
struct coverage_object {
	struct shim_coverage_object told;
	struct coverage_object *next;
	uintptr_t start;	/* where it is; 0: it has gone */
	uintptr_t size;
	uint64_t device, inode;	/* of its file */
	uint8_t *originals;	/* what the code is where each line begins */
	bool is_set;		/* it has traps */
};

extern struct coverage_object *coverage_objects
	__attribute__((visibility("hidden")));

bool coverage_is_on(void);

/* The module that has enabled it is set up; whether this is its beginning.  Hooks
 * follow with the next plan.  Then, if the program already runs: what is loaded is
 * looked at. */
bool coverage_begin(void);
void coverage_begin_late(void);
/* In the constructor: the program may have threads. */
void coverage_begin_at_start(void);

/* Looks at the objects that have come; no lock of ours is held. */
void coverage_look(void);
/* ... at one, which need not be known to image.h. */
void coverage_look_at(const struct image_entry *image);
/* Whether what is loaded at @address was looked at. */
bool coverage_knows(uintptr_t address);
/* What will be needed while the program loads an object. */
void coverage_prepare(void);

/* Whether a filter wants the function; true if there is none. */
bool coverage_wants(shim_function function);
bool coverage_has_filters(void);

/* Profilers are told of it, and may say where what it reaches is kept. */
void coverage_tell(struct coverage_object *object);

/* Makes the object known to readers. */
void coverage_add(struct coverage_object *object);

/* Says that lines of the object at @path are not looked at. */
void coverage_lack(const char *path, int error);

/* The object's path and state are told, its other lists are empty. */
struct coverage_object *coverage_make(const struct image_entry *image,
				      enum shim_coverage_state state);

/* --- coverage_loader.c: objects are looked at before anything of them runs --- */

void coverage_watch_loader(void);
/* False: its trap is still there. */
bool coverage_leave_loader(void);

/* --- coverage_points.c --- */

/* The compiled-in counter at @code has been reached. */
void coverage_count_at(uintptr_t code);
/* Those of an object are numbered: @guards, and what they stand for, two words
 * each, of which the first is an address. */
void coverage_number(uint32_t *guards, uint32_t *end);
void coverage_place(const uintptr_t *places, const uintptr_t *end);
void coverage_count(uint32_t guard);
/* From now on other processes count in the same places. */
void coverage_forks(void);

/* --- coverage_lines.c --- */

/* An object with the lines of @image that are wanted.  NULL: none, for want of
 * memory. */
struct coverage_object *coverage_read_lines(const struct image_entry *image);
/* No traps from now on; there are none yet. */
void coverage_forgo_lines(void);
/* Sets the traps of those that were not reached. */
void coverage_set(struct coverage_object *object);
/* All code is as it was; for good.  Its lines are not seen any more: @reason. */
void coverage_give_up(const char *reason);
/* The first line at or after @offset. */
uint32_t coverage_find_line(const struct shim_coverage_object *object,
			    uint64_t offset);

#endif
