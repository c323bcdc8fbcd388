/*
 * Adds up the waits of all paths by lock.  A lock in a variable with a symbol
 * is the same in all processes and gets the variable's name.  Other locks are
 * known by address only; the same address in another process, or later in the
 * same one, may be another lock.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/search.h"
#include "base/text.h"
#include "model/functions.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/node_times.h"
#include "names/symbols.h"
#include "read/calltree.h"
#include "read/images.h"
#include "read/process.h"
#include "trace/trace.h"

/* enum shim_lock_kind; the last name is for kinds of newer programs. */
const char *const lock_kinds[LOCK_KINDS] = { "mutex",	   "read lock",
					     "write lock", "condition",
					     "semaphore",  "spinlock",
					     "lock" };
/* The limit of files that claim a holder's address but have no node there. */
#define HOLDER_TRIES 4

/* A node while it is being read. */
struct lock_part {
	uint32_t process, file;
	uint64_t address; /* address of the lock, without its generation */
	uint32_t generation, kind;
	uint64_t node, holder_node; /* addresses in the program */
	uint32_t path, holder;	    /* NONE: unknown */
	uint32_t lock;
	struct waits waits;
};

/* A node that held a lock, in any file of the process. */
struct lock_holder {
	uint64_t node;
	uint32_t part, tries;
};

static void add_waits(struct waits *to, const struct waits *waits)
{
	to->waits += waits->waits;
	to->failures += waits->failures;
	to->refusals += waits->refusals;
	to->open += waits->open;
	to->time += waits->time;
	if (waits->max > to->max)
		to->max = waits->max;
}

/* --- reading --- */

/* Threads wait at the same time, but each at most for the time that there was. */
static bool times_are_possible(const struct process *process,
			       const struct shim_lock_node *node)
{
	uint64_t span = process->limit_clock - process->meta.first_clock;

	return node->max <= span && (node->waits == UINT64_MAX ||
				     node->time / (node->waits + 1) <= span);
}

static struct waits read_waits(const struct process *process,
			       const struct shim_lock_node *node)
{
	struct waits waits = { node->waits,
			       node->failures,
			       node->refusals,
			       node->start != 0,
			       0,
			       0 };
	double open = 0;

	if (!process->has_meta)
		return waits;
	if (node->start >= process->meta.first_clock &&
	    node->start < process->end_clock)
		open = process_ns(process, process->end_clock - node->start);
	if (times_are_possible(process, node)) {
		waits.time = process_ns(process, node->time);
		waits.max = process_ns(process, node->max);
	}
	waits.time += open;
	if (open > waits.max)
		waits.max = open;
	return waits;
}

static void list_file(struct model *model, uint32_t process_number,
		      uint32_t file_number)
{
	const struct process *process =
		&model->recording->processes[process_number];
	struct tree_file *file = &process->files[file_number];
	struct locks *locks = model->locks;
	uint64_t limit = process_count_limit(process), bad = 0, bad_offset = 0;
	struct shim_lock_node node;
	uint32_t i;

	for (i = 0; i < file->lock_count; i++) {
		memcpy(&node, file->data + file->locks[i], sizeof(node));
		if (node.waits > limit || node.failures > limit ||
		    node.refusals > limit) {
			model_blame(&bad, &bad_offset, file->locks[i]);
			continue;
		}
		if (process->has_meta && !times_are_possible(process, &node))
			model_blame(&bad, &bad_offset, file->locks[i]);
		GROW(locks->parts, locks->part_count, locks->part_room);
		locks->parts[locks->part_count++] = (struct lock_part){
			.process = process_number,
			.file = file_number,
			.address = node.lock & SHIM_NODE_ADDRESS,
			.generation = SHIM_NODE_GENERATION(node.lock),
			.kind = node.kind < LOCK_KINDS - 1 ? node.kind :
							     LOCK_KINDS - 1,
			.node = node.node,
			.holder_node = node.holder,
			.path = NONE,
			.holder = NONE,
			.waits = read_waits(process, &node),
		};
	}
	model_count_bad(model, file->name, bad, bad_offset);
}

static int compare_holders(const void *left, const void *right)
{
	const struct lock_holder *a = left, *b = right;

	return (a->node > b->node) - (a->node < b->node);
}

/* Lists the holders of the parts from @first on, which belong to one
 * process. */
static void list_holders(struct locks *locks, uint32_t first)
{
	uint32_t i;

	free(locks->holders);
	locks->holders = allocate(locks->part_count - first,
				  sizeof(*locks->holders));
	locks->holder_count = 0;
	for (i = first; i < locks->part_count; i++)
		if (locks->parts[i].holder_node)
			locks->holders[locks->holder_count++] =
				(struct lock_holder){
					locks->parts[i].holder_node, i, 0
				};
	if (locks->holder_count)
		qsort(locks->holders, locks->holder_count,
		      sizeof(*locks->holders), compare_holders);
}

void locks_list(struct model *model, uint32_t number)
{
	const struct process *process = &model->recording->processes[number];
	uint32_t i, first;

	if (!model->locks && !model->recording->has_traced_calls &&
	    process_has_profile(process, "locks"))
		model->locks = allocate(1, sizeof(*model->locks));
	if (!model->locks)
		return;
	first = model->locks->part_count;
	for (i = 0; i < process->file_count; i++)
		list_file(model, number, i);
	list_holders(model->locks, first);
}

/* The first part of that file, or of a later one: parts are sorted by file. */
static uint32_t find_parts(const struct locks *locks, uint32_t process,
			   uint32_t file)
{
	const struct lock_part *parts = locks->parts;

	return FIRST_NOT(
		i, locks->part_count,
		parts[i].process < process ||
			(parts[i].process == process && parts[i].file < file));
}

/* The first holder at or after @address. */
static uint32_t find_holder(const struct locks *locks, uint64_t address)
{
	return FIRST_NOT(i, locks->holder_count,
			 locks->holders[i].node < address);
}

/* A holder may be in any file of the process; it is in exactly one unless the
 * recording is damaged. */
static void place_holders(struct locks *locks, const struct tree_file *file)
{
	uint32_t c, i;

	for (c = 0; c < file->chunk_count; c++) {
		const struct shim_chunk *chunk = &file->chunks[c];

		for (i = find_holder(locks, chunk->address);
		     i < locks->holder_count &&
		     locks->holders[i].node - chunk->address < chunk->size;
		     i++) {
			struct lock_holder *holder = &locks->holders[i];
			struct lock_part *part = &locks->parts[holder->part];

			if (part->holder == NONE &&
			    holder->tries++ < HOLDER_TRIES)
				part->holder = calltree_find_path(file,
								  holder->node);
		}
	}
}

void locks_place(struct model *model, uint32_t process, uint32_t number)
{
	const struct tree_file *file =
		&model->recording->processes[process].files[number];
	struct locks *locks = model->locks;
	uint32_t i, end;

	if (!locks)
		return;
	end = find_parts(locks, process, number + 1);
	for (i = find_parts(locks, process, number); i < end; i++)
		locks->parts[i].path = calltree_find_path(file,
							  locks->parts[i].node);
	place_holders(locks, file);
}

/* --- identity of locks --- */

static int compare_addresses(const void *left, const void *right)
{
	const struct lock_part *a = *(struct lock_part *const *)left;
	const struct lock_part *b = *(struct lock_part *const *)right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

/* A lock of one process; others may share it. */
struct found {
	struct lock_part **parts; /* its parts */
	uint32_t part_count;
	uint32_t object;  /* number in locks->objects, or NONE */
	uint64_t address; /* in its file */
	bool is_inside;	  /* inside the object's mapped image */
	struct data_symbol symbol;
};

static uint32_t find_object(struct locks *locks, struct names *object_keys,
			    struct image *image)
{
	if (image->data_object != NONE)
		return image->data_object;
	image->data_object = names_add(object_keys, image_key(image));
	if (image->data_object < locks->object_count)
		return image->data_object;
	GROW(locks->objects, locks->object_count, locks->object_room);
	locks->objects[locks->object_count++] = (struct object){
		.path = image->path,
		.build_id = image->build_id,
		.build_id_size = image->build_id_size,
	};
	return image->data_object;
}

static const char *name_data(const struct data_symbol *symbol)
{
	const char *name = symbol->source_name;
	uint64_t offset = symbol->address - symbol->start;

	return offset ? keep_format("%s+%" PRIu64, name, offset) : name;
}

static void find_image(struct model *model, struct names *object_keys,
		       struct found *found)
{
	const struct lock_part *part = found->parts[0];
	const struct process *process =
		&model->recording->processes[part->process];
	struct image *inside = process_image(process, part->address,
					     part->generation);
	/* An image covers the mapped part of a file: variables that begin as 0
	 * follow it. */
	struct image *image = inside ? inside :
				       process_image_before(process,
							    part->address,
							    part->generation);

	found->object = NONE;
	if (!image)
		return;
	found->object = find_object(model->locks, object_keys, image);
	found->address = part->address - image->bias;
	found->is_inside = inside != NULL;
}

static int compare_found(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return compare_addresses(a->parts, b->parts);
}

/* Names @count locks, all in one object, after variables; they are sorted by
 * address. */
static void name_locks(struct object *object, struct found *found,
		       uint32_t count)
{
	struct data_symbol *symbols = allocate(count, sizeof(*symbols));
	uint32_t i, n = 0;

	for (i = 0; i < count; i++)
		if (n == 0 || symbols[n - 1].address != found[i].address)
			symbols[n++].address = found[i].address;
	symbols_find_data(object, symbols, n);
	for (i = 0, n = 0; i < count; i++) {
		while (symbols[n].address != found[i].address)
			n++;
		found[i].symbol = symbols[n];
	}
	free(symbols);
}

/* Locks without an object (NONE) come last. */
static void name_all(struct locks *locks, struct found *found, uint32_t count)
{
	uint32_t i = 0, end;

	if (count)
		qsort(found, count, sizeof(*found), compare_found);
	for (; i < count && found[i].object != NONE; i = end) {
		for (end = i + 1;
		     end < count && found[end].object == found[i].object; end++)
			;
		name_locks(&locks->objects[found[i].object], &found[i],
			   end - i);
	}
}

static struct lock make_lock(const struct locks *locks,
			     const struct found *found)
{
	const struct lock_part *part = found->parts[0];
	struct lock lock = { .process = part->process,
			     .address = part->address,
			     .kind = part->kind };

	if (found->object == NONE || (!found->is_inside && !found->symbol.name))
		return lock;
	lock.object = locks->objects[found->object].path;
	lock.process = 0;
	lock.address = found->address;
	lock.name = found->symbol.name ?
			    name_data(&found->symbol) :
			    keep_format("%s+0x%" PRIx64, base_name(lock.object),
					lock.address);
	return lock;
}

/* Locks of one kind at the same place of a file are one lock, whatever the
 * build. */
static uint32_t find_lock(struct locks *locks, struct names *paths,
			  struct names *lock_keys, const struct lock *lock)
{
	const char *key = keep_format(
		"%u/%u/%u/%" PRIx64, lock->kind, lock->process,
		lock->object ? names_add(paths, lock->object) : NONE,
		lock->address);
	uint32_t number = names_add(lock_keys, key);

	if (number < locks->lock_count)
		return number;
	GROW(locks->locks, locks->lock_count, locks->lock_room);
	locks->locks[locks->lock_count] = *lock;
	return locks->lock_count++;
}

/* Collects the parts of each lock of a process. */
static struct found *list_found(struct locks *locks, struct lock_part **order,
				uint32_t *count)
{
	struct found *found = allocate(locks->part_count, sizeof(*found));
	uint32_t i;

	*count = 0;
	for (i = 0; i < locks->part_count; i++)
		order[i] = &locks->parts[i];
	if (locks->part_count)
		qsort(order, locks->part_count, sizeof(*order),
		      compare_addresses);
	for (i = 0; i < locks->part_count; i++) {
		if (i == 0 || compare_addresses(&order[i], &order[i - 1]))
			found[(*count)++].parts = &order[i];
		found[*count - 1].part_count++;
	}
	return found;
}

static void find_locks(struct model *model)
{
	struct locks *locks = model->locks;
	struct lock_part **order = allocate(locks->part_count, sizeof(*order));
	struct names objects = { 0 }, paths = { 0 }, lock_keys = { 0 };
	uint32_t i, n, count;
	struct found *found = list_found(locks, order, &count);

	for (i = 0; i < count; i++)
		find_image(model, &objects, &found[i]);
	name_all(locks, found, count);
	for (i = 0; i < count; i++) {
		struct lock lock = make_lock(locks, &found[i]);
		uint32_t number = find_lock(locks, &paths, &lock_keys, &lock);

		for (n = 0; n < found[i].part_count; n++)
			found[i].parts[n]->lock = number;
	}
	names_free(&objects);
	names_free(&paths);
	names_free(&lock_keys);
	free(found);
	free(order);
}

/* --- locks of a trace --- */

static int compare_places(const void *left, const void *right)
{
	const struct lock_part *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->generation > b->generation) -
	       (a->generation < b->generation);
}

void locks_find(struct model *model)
{
	uint32_t i;

	for (i = 0; i < model->recording->process_count; i++)
		locks_list(model, i);
	if (!model->locks || !model->locks->part_count)
		return;
	find_locks(model);
	qsort(model->locks->parts, model->locks->part_count,
	      sizeof(*model->locks->parts), compare_places);
}

const char *locks_kind(uint32_t kind)
{
	return lock_kinds[kind < LOCK_KINDS - 1 ? kind : LOCK_KINDS - 1];
}

const char *locks_name(const struct model *model, uint32_t process,
		       uint64_t address, char *text, size_t size)
{
	const struct lock_part wanted = { .process = process,
					  .address = address };
	const struct locks *locks = model->locks;
	const struct lock_part *part;
	uint32_t i;

	snprintf(text, size, "0x%" PRIx64, address);
	if (!locks)
		return text;
	i = FIRST_NOT(k, locks->part_count,
		      compare_places(&locks->parts[k], &wanted) < 0);
	part = &locks->parts[i];
	if (i < locks->part_count && part->process == process &&
	    part->address == address && locks->locks[part->lock].name)
		snprintf(text, size, "%s", locks->locks[part->lock].name);
	return text;
}

const char *locks_wait_text(const struct model *model, uint32_t process,
			    const struct trace_event *wait, char *text,
			    size_t size)
{
	char name[LOCK_TEXT], holder[SHORT_TEXT] = "";

	if (wait->holder)
		snprintf(holder, sizeof(holder), ", held by %" PRIu32,
			 wait->holder);
	snprintf(text, size, "%s for %s %s%s",
		 wait->is_open	 ? "waits" :
		 wait->is_failed ? "waited in vain" :
				   "waited",
		 locks_kind(wait->cause),
		 locks_name(model, process, wait->address, name, sizeof(name)),
		 holder);
	return text;
}

/* --- adding up --- */

void locks_move(struct model *model, const uint32_t *own,
		const uint32_t *numbers)
{
	struct locks *locks = model->locks;
	uint32_t i, kept = 0;

	for (i = 0; locks && i < locks->part_count; i++) {
		struct lock_part part = locks->parts[i];

		if (part.path != NONE && own[part.path] == NONE)
			continue;
		if (part.path != NONE)
			part.path = own[part.path];
		if (part.holder != NONE)
			part.holder = numbers[part.holder];
		locks->parts[kept++] = part;
	}
	if (locks)
		locks->part_count = kept;
}

static int compare_parts(const void *left, const void *right)
{
	const struct lock_part *a = left, *b = right;

	if (a->lock != b->lock)
		return a->lock < b->lock ? -1 : 1;
	if (a->path != b->path)
		return a->path < b->path ? -1 : 1;
	return (a->holder > b->holder) - (a->holder < b->holder);
}

static void make_waiters(struct locks *locks)
{
	struct waiter *waiter = NULL;
	uint32_t i;

	locks->waiters = allocate(locks->part_count, sizeof(*locks->waiters));
	if (locks->part_count)
		qsort(locks->parts, locks->part_count, sizeof(*locks->parts),
		      compare_parts);
	for (i = 0; i < locks->part_count; i++) {
		const struct lock_part *part = &locks->parts[i];

		if (!waiter || compare_parts(part, part - 1)) {
			waiter = &locks->waiters[locks->waiter_count++];
			*waiter = (struct waiter){
				part->lock, part->path, part->holder, { 0 }
			};
		}
		add_waits(&waiter->waits, &part->waits);
		add_waits(&locks->locks[part->lock].waits, &part->waits);
		add_waits(&locks->all, &part->waits);
		add_waits(&locks->by_kind[part->kind], &part->waits);
		if (part->path == NONE)
			locks->unplaced++;
		else
			locks->path_time[part->path] += part->waits.time;
	}
}

static int compare_waits(const struct waits *a, const struct waits *b)
{
	if (a->time != b->time)
		return a->time > b->time ? -1 : 1;
	if (a->waits != b->waits)
		return a->waits > b->waits ? -1 : 1;
	return (a->refusals < b->refusals) - (a->refusals > b->refusals);
}

static int compare_waiters(const void *left, const void *right)
{
	const struct waiter *a = left, *b = right;

	if (a->lock != b->lock)
		return a->lock < b->lock ? -1 : 1;
	return compare_waits(&a->waits, &b->waits);
}

/* Idle threads wait for conditions: these come last. */
static int compare_locks(const void *left, const void *right)
{
	const struct lock *a = left, *b = right;
	int order = compare_waits(&a->waits, &b->waits);

	if ((a->kind == LOCK_CONDITION) != (b->kind == LOCK_CONDITION))
		return a->kind == LOCK_CONDITION ? 1 : -1;
	if (order)
		return order;
	if (a->name && b->name)
		return strcmp(a->name, b->name);
	return (a->address > b->address) - (a->address < b->address);
}

void locks_measure(struct model *model)
{
	struct locks *locks = model->locks;
	uint32_t i;

	if (!locks)
		return;
	locks->path_time = allocate(model->path_count,
				    sizeof(*locks->path_time));
	find_locks(model);
	make_waiters(locks);
	free(locks->parts);
	locks->parts = NULL;
	if (locks->unplaced)
		warn("the paths of %" PRIu64 " waits for locks are not in the "
		     "recording",
		     locks->unplaced);
	if (locks->waiter_count)
		qsort(locks->waiters, locks->waiter_count,
		      sizeof(*locks->waiters), compare_waiters);
	for (i = 0; i < locks->waiter_count; i++) {
		struct lock *lock = &locks->locks[locks->waiters[i].lock];

		if (lock->count++ == 0)
			lock->first = i;
	}
	if (locks->lock_count)
		qsort(locks->locks, locks->lock_count, sizeof(*locks->locks),
		      compare_locks);
}

double locks_waited(const struct model *model, uint32_t path)
{
	return model->locks ? model->locks->path_time[path] : 0;
}

uint64_t locks_waited_outside(const struct model *model)
{
	double time = 0;
	uint32_t i;

	for (i = 0; i < model->path_count; i++)
		if (model->paths[i].function == NONE)
			time += locks_waited(model, i);
	return whole(time);
}
