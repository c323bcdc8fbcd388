/* Waits for locks, added up by lock. */
#ifndef REPORT_MODEL_LOCKS_H
#define REPORT_MODEL_LOCKS_H

#include <stdint.h>

#include "names/symbols.h"

struct model;

#define LOCK_CONDITION 3
#define LOCK_KINDS     7

/* What a lock is, by struct lock.kind: enum shim_lock_kind, and one for kinds that are
 * newer than this. */
extern const char *const lock_kinds[LOCK_KINDS];

/* Waits that mean the same: one node, or many. */
struct waits {
	uint64_t waits, failures, refusals;
	uint64_t open;	  /* waits that were not over at the end */
	double time, max; /* ns, with those until the end */
};

/* Whom it is waited for by. */
struct waiter {
	uint32_t lock, path, holder;
	struct waits waits;
};

struct lock {
	const char *name;   /* NULL: it is in no variable */
	const char *object; /* its file; NULL: unknown */
	uint32_t process;   /* with no name */
	uint64_t address;   /* in the file, or in the process */
	uint32_t kind;
	struct waits waits;
	uint32_t first, count; /* of its waiters */
};

struct locks {
	struct lock_part *parts;
	uint32_t part_count, part_room;
	struct lock_holder *holders; /* of the process being added, by @node */
	uint32_t holder_count;
	struct lock *locks;
	uint32_t lock_count, lock_room;
	struct waiter *waiters;
	uint32_t waiter_count;
	double *path_time; /* waited in the path itself */
	struct waits all;
	struct waits by_kind[LOCK_KINDS];
	struct object *objects;
	uint32_t object_count, object_room;
	uint64_t unplaced;
};

/* The waits of a process, before its files lose their entries; their
 * paths, one file after the other; the sums, when all is added. */
void locks_list(struct model *model, uint32_t process);
void locks_place(struct model *model, uint32_t process, uint32_t file);
/* Waits of path i are those of path @own[i], or of none that is shown; holders are in
 * @numbers[i]. */
void locks_move(struct model *model, const uint32_t *own,
		const uint32_t *numbers);
void locks_measure(struct model *model);
/* Waited in the path itself, and in no function, in ns. */
double locks_waited(const struct model *model, uint32_t path);
uint64_t locks_waited_outside(const struct model *model);

#endif
