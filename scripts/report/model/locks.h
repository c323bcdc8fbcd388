/* Waits for locks, added up by lock. */
#ifndef REPORT_MODEL_LOCKS_H
#define REPORT_MODEL_LOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "names/symbols.h"

struct model;
struct trace_event;

#define LOCK_CONDITION 3
#define LOCK_KINDS     7

/* Names of lock kinds, by struct lock.kind: enum shim_lock_kind, and one for
 * newer kinds. */
extern const char *const lock_kinds[LOCK_KINDS];

/* Waits that are added up: of one node, or of many. */
struct waits {
	uint64_t waits, failures, refusals;
	uint64_t open;	  /* waits that had not ended when the program ended */
	double time, max; /* ns, including waits until the end */
};

/* A path that waits, and the path that holds the lock. */
struct waiter {
	uint32_t lock, path, holder;
	struct waits waits;
};

struct lock {
	const char *name;   /* NULL: the lock is in no variable */
	const char *object; /* its file; NULL: unknown */
	uint32_t process;   /* of a lock without a name */
	uint64_t address;   /* in the file, or in the process */
	uint32_t kind;
	struct waits waits;
	uint32_t first, count; /* its waiters, in locks->waiters */
};

struct locks {
	struct lock_part *parts;
	uint32_t part_count, part_room;
	/* of the process being added, sorted by @node */
	struct lock_holder *holders;
	uint32_t holder_count;
	struct lock *locks;
	uint32_t lock_count, lock_room;
	struct waiter *waiters;
	uint32_t waiter_count;
	double *path_time; /* by path: its own waiting time */
	struct waits all;
	struct waits by_kind[LOCK_KINDS];
	struct object *objects;
	uint32_t object_count, object_room;
	uint64_t unplaced;
};

/*
 * locks_find - find and name the locks of a recording, without their waits, for models
 * that have functions only
 *
 * The other two write what fits into @size bytes of @text and return @text: "cache_lock",
 * or the lock's address, if locks_find() has found no variable; "waited for mutex
 * cache_lock, held by 4711".
 */
void locks_find(struct model *model);
const char *locks_name(const struct model *model, uint32_t process,
		       uint64_t address, char *text, size_t size);
const char *locks_wait_text(const struct model *model, uint32_t process,
			    const struct trace_event *wait, char *text,
			    size_t size);
/* The name of an enum shim_lock_kind. */
const char *locks_kind(uint32_t kind);

#define LOCK_TEXT 300 /* bytes; enough for most names */

/* Call these in order: for each process, before its files lose their
 * entries; for the paths of its files one by one; and for the sums, when all
 * is added. */
void locks_list(struct model *model, uint32_t process);
void locks_place(struct model *model, uint32_t process, uint32_t file);
/* The waits of path i become those of path @own[i], or of no shown path;
 * holders become @numbers[i]. */
void locks_move(struct model *model, const uint32_t *own,
		const uint32_t *numbers);
void locks_measure(struct model *model);
/* The waiting time, in ns, of the path itself, and outside of functions. */
double locks_waited(const struct model *model, uint32_t path);
uint64_t locks_waited_outside(const struct model *model);

#endif
