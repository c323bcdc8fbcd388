/*
 * Locks: the waits of paths, added up by lock.  A lock in a variable that the linker
 * knows is the same in all processes and has that variable's name; of others their
 * address is all that is known, and it means another lock in another process, or a
 * later one in the same place.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* enum shim_lock_kind; the last one: of a program that knows more kinds. */
static const char *const kinds[] = { "mutex", "read lock", "write lock",
				     "condition", "semaphore", "spinlock",
				     "lock" };
#define KINDS	  (sizeof(kinds) / sizeof(*kinds))
#define CONDITION 3
/* Files that say they have a holder's address and have no node there. */
#define HOLDER_TRIES 4

/* Waits that mean the same: one node, or many. */
struct waits {
	uint64_t waits, failures, refusals;
	uint64_t open;			/* waits that were not over at the end */
	double time, max;		/* ns, with those until the end */
};

/* A node, while it is placed. */
struct part {
	uint32_t process, file;
	uint64_t address;		/* of the lock, without its generation */
	uint32_t generation, kind;
	uint64_t node, holder_node;	/* the program's addresses */
	uint32_t path, holder;		/* NONE: unknown */
	uint32_t lock;
	struct waits waits;
};

/* Whom it is waited for by. */
struct waiter {
	uint32_t lock, path, holder;
	struct waits waits;
};

struct lock {
	const char *name;		/* NULL: it is in no variable */
	const char *object;		/* its file; NULL: unknown */
	uint32_t process;		/* with no name */
	uint64_t address;		/* in the file, or in the process */
	uint32_t kind;
	struct waits waits;
	uint32_t first, count;		/* of its waiters */
};

/* A node that held a lock, in some file of the process. */
struct holder {
	uint64_t node;
	uint32_t part, tries;
};

struct locks {
	struct part *parts;
	uint32_t part_count, part_room;
	struct holder *holders;		/* of the process being added, by @node */
	uint32_t holder_count;
	struct lock *locks;
	uint32_t lock_count, lock_room;
	struct waiter *waiters;
	uint32_t waiter_count;
	double *path_time;		/* waited in the path itself */
	struct waits all;
	struct waits by_kind[KINDS];
	struct object *objects;
	uint32_t object_count, object_room;
	uint64_t unplaced;
};

static void add(struct waits *to, const struct waits *waits)
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

static struct waits read_waits(const struct process *process,
			       const struct shim_lock_node *node)
{
	uint64_t span = process->limit_clock - process->meta.first_clock;
	struct waits waits = { node->waits, node->failures, node->refusals,
			       node->start != 0, 0, 0 };
	double open = 0;

	if (!process->has_meta)
		return waits;
	if (node->start >= process->meta.first_clock &&
	    node->start < process->end_clock)
		open = process_ns(process, process->end_clock - node->start);
	/* Threads wait at once, but not longer than there was time. */
	if (node->max <= span && (node->waits == UINT64_MAX ||
				  node->time / (node->waits + 1) <= span)) {
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
	struct shim_lock_node node;
	uint32_t i;

	for (i = 0; i < file->lock_count; i++) {
		memcpy(&node, file->data + file->locks[i], sizeof(node));
		GROW(locks->parts, locks->part_count, locks->part_room);
		locks->parts[locks->part_count++] = (struct part){
			.process = process_number,
			.file = file_number,
			.address = node.lock & SHIM_NODE_ADDRESS,
			.generation = SHIM_NODE_GENERATION(node.lock),
			.kind = node.kind < KINDS - 1 ? node.kind : KINDS - 1,
			.node = node.node,
			.holder_node = node.holder,
			.path = NONE,
			.holder = NONE,
			.waits = read_waits(process, &node),
		};
	}
}

static int compare_holders(const void *left, const void *right)
{
	const struct holder *a = left, *b = right;

	return (a->node > b->node) - (a->node < b->node);
}

/* Of the parts from @first on, which are all of a process. */
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
				(struct holder){ locks->parts[i].holder_node,
						 i, 0 };
	if (locks->holder_count)
		qsort(locks->holders, locks->holder_count,
		      sizeof(*locks->holders), compare_holders);
}

void locks_list(struct model *model, uint32_t number)
{
	const struct process *process = &model->recording->processes[number];
	uint32_t i, first;

	if (!model->locks && process_has_profile(process, "locks"))
		model->locks = allocate(1, sizeof(*model->locks));
	if (!model->locks)
		return;
	first = model->locks->part_count;
	for (i = 0; i < process->file_count; i++)
		list_file(model, number, i);
	list_holders(model->locks, first);
}

/* The first part of that file, or of one behind it: they are in that order. */
static uint32_t find_parts(const struct locks *locks, uint32_t process,
			   uint32_t file)
{
	uint32_t low = 0, high = locks->part_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct part *part = &locks->parts[middle];

		if (part->process < process ||
		    (part->process == process && part->file < file))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first that is not below @address. */
static uint32_t find_holder(const struct locks *locks, uint64_t address)
{
	uint32_t low = 0, high = locks->holder_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (locks->holders[middle].node < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Holders are in any file of the process; in one, unless it is damaged. */
static void place_holders(struct locks *locks, const struct tree_file *file)
{
	uint32_t c, i;

	for (c = 0; c < file->chunk_count; c++) {
		const struct shim_chunk *chunk = &file->chunks[c];

		for (i = find_holder(locks, chunk->address);
		     i < locks->holder_count && locks->holders[i].node -
				     chunk->address < chunk->size; i++) {
			struct holder *holder = &locks->holders[i];
			struct part *part = &locks->parts[holder->part];

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

/* --- which lock --- */

static int compare_addresses(const void *left, const void *right)
{
	const struct part *a = *(struct part *const *)left;
	const struct part *b = *(struct part *const *)right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

/* A lock of one process, which may be that of others. */
struct found {
	struct part **parts;		/* that are of it */
	uint32_t part_count;
	uint32_t object;		/* of locks->objects, or NONE */
	uint64_t address;		/* in its file */
	bool is_inside;			/* of what was mapped of it */
	struct data_symbol symbol;
};

static uint32_t find_object(struct locks *locks, struct names *known,
			    struct image *image)
{
	if (image->data_object != NONE)
		return image->data_object;
	image->data_object = names_add(known, image_key(image));
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

static void find_image(struct model *model, struct names *known,
		       struct found *found)
{
	const struct part *part = found->parts[0];
	const struct process *process =
		&model->recording->processes[part->process];
	struct image *inside = process_image(process, part->address,
					     part->generation);
	/* An image is what of a file is mapped: variables that begin as 0 come
	 * after it. */
	struct image *image = inside ? inside :
			      process_image_before(process, part->address,
						   part->generation);

	found->object = NONE;
	if (!image)
		return;
	found->object = find_object(model->locks, known, image);
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

/* The variables of @count locks, all in one object, by address. */
static void name_locks(struct object *object, struct found *found, uint32_t count)
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

/* NONE objects come last. */
static void name_all(struct locks *locks, struct found *found, uint32_t count)
{
	uint32_t i = 0, end;

	if (count)
		qsort(found, count, sizeof(*found), compare_found);
	for (; i < count && found[i].object != NONE; i = end) {
		for (end = i + 1; end < count &&
				  found[end].object == found[i].object; end++)
			;
		name_locks(&locks->objects[found[i].object], &found[i], end - i);
	}
}

static struct lock make_lock(const struct locks *locks,
			     const struct found *found)
{
	const struct part *part = found->parts[0];
	struct lock lock = { .process = part->process,
			     .address = part->address,
			     .kind = part->kind };

	if (found->object == NONE || (!found->is_inside && !found->symbol.name))
		return lock;
	lock.object = locks->objects[found->object].path;
	lock.process = 0;
	lock.address = found->address;
	lock.name = found->symbol.name ? name_data(&found->symbol) :
		    keep_format("%s+0x%" PRIx64, base_name(lock.object),
				lock.address);
	return lock;
}

/* Locks of one kind in the same place of a file are one, whatever build it is. */
static uint32_t find_lock(struct locks *locks, struct names *paths,
			  struct names *known, const struct lock *lock)
{
	const char *key = keep_format("%u/%u/%u/%" PRIx64, lock->kind,
		lock->process, lock->object ? names_add(paths, lock->object) :
					      NONE, lock->address);
	uint32_t number = names_add(known, key);

	if (number < locks->lock_count)
		return number;
	GROW(locks->locks, locks->lock_count, locks->lock_room);
	locks->locks[locks->lock_count] = *lock;
	return locks->lock_count++;
}

/* The parts of each lock of a process. */
static struct found *list_found(struct locks *locks, struct part **order,
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
	struct part **order = allocate(locks->part_count, sizeof(*order));
	struct names objects = { 0 }, paths = { 0 }, known = { 0 };
	uint32_t i, n, count;
	struct found *found = list_found(locks, order, &count);

	for (i = 0; i < count; i++)
		find_image(model, &objects, &found[i]);
	name_all(locks, found, count);
	for (i = 0; i < count; i++) {
		struct lock lock = make_lock(locks, &found[i]);
		uint32_t number = find_lock(locks, &paths, &known, &lock);

		for (n = 0; n < found[i].part_count; n++)
			found[i].parts[n]->lock = number;
	}
	names_free(&objects);
	names_free(&paths);
	names_free(&known);
	free(found);
	free(order);
}

/* --- adding up --- */

static int compare_parts(const void *left, const void *right)
{
	const struct part *a = left, *b = right;

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
		const struct part *part = &locks->parts[i];

		if (!waiter || compare_parts(part, part - 1)) {
			waiter = &locks->waiters[locks->waiter_count++];
			*waiter = (struct waiter){ part->lock, part->path,
						   part->holder, { 0 } };
		}
		add(&waiter->waits, &part->waits);
		add(&locks->locks[part->lock].waits, &part->waits);
		add(&locks->all, &part->waits);
		add(&locks->by_kind[part->kind], &part->waits);
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

/* Threads that have nothing to do wait for conditions: these come last. */
static int compare_locks(const void *left, const void *right)
{
	const struct lock *a = left, *b = right;
	int order = compare_waits(&a->waits, &b->waits);

	if ((a->kind == CONDITION) != (b->kind == CONDITION))
		return a->kind == CONDITION ? 1 : -1;
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
		     "recording", locks->unplaced);
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

/* --- the table --- */

#define WAITERS	       5		/* shown of a lock */
#define INDENT	       66		/* of what is about them */

static void print_waits(const struct page *page, const struct waits *waits)
{
	char text[5][SHORT_TEXT];

	fprintf(page->out, "%10s %10s %10s %10s %8s %8s  ",
		human_ns(text[0], waits->time),
		human_count(text[1], waits->waits),
		waits->waits ? human_ns(text[2], waits->time /
					(double)waits->waits) : "-",
		waits->waits ? human_ns(text[3], waits->max) : "-",
		human_count(text[4], waits->failures),
		human_count((char[SHORT_TEXT]){ 0 }, waits->refusals));
}

static void print_waiter(const struct page *page, const struct waiter *waiter,
			 bool has_owner)
{
	print_waits(page, &waiter->waits);
	fputs("  in ", page->out);
	path_print(page, waiter->path);
	if (waiter->waits.open)
		fprintf(page->out, "; %" PRIu64 " to the end",
			waiter->waits.open);
	fputc('\n', page->out);
	if (!waiter->waits.waits || !has_owner)
		return;
	fprintf(page->out, "%*sits holder in ", INDENT, "");
	path_print(page, waiter->holder);
	fputc('\n', page->out);
}

static void print_lock(const struct page *page, const struct lock *lock)
{
	const struct waiter *waiters =
		&page->model->locks->waiters[lock->first];
	char text[SHORT_TEXT];
	uint32_t i;

	print_waits(page, &lock->waits);
	fprintf(page->out, "%s ", kinds[lock->kind]);
	if (lock->name)
		put_text(page->out, lock->name);
	else
		fprintf(page->out, "at 0x%" PRIx64, lock->address);
	fputc('\n', page->out);
	for (i = 0; i < lock->count && (i < WAITERS ||
					page->options->limit == 0); i++)
		print_waiter(page, &waiters[i], lock->kind < CONDITION);
	if (i < lock->count)
		fprintf(page->out, "%*s... %s more\n", INDENT - 2, "",
			human_count(text, lock->count - i));
}

static void print_head(const struct page *page)
{
	const struct locks *locks = page->model->locks;
	const char *comma = " (";
	char time[SHORT_TEXT], count[SHORT_TEXT];
	uint32_t i;

	fprintf(page->out, "  %s waited for locks, in %s wait%s",
		human_ns(time, locks->all.time),
		human_count(count, locks->all.waits),
		locks->all.waits == 1 ? "" : "s");
	for (i = 0; i < KINDS; i++) {
		if (!locks->by_kind[i].waits)
			continue;
		fprintf(page->out, "%s%s %s", comma, kinds[i],
			human_ns(time, locks->by_kind[i].time));
		comma = ", ";
	}
	fprintf(page->out, "%s\n", locks->all.waits ? ")" : "");
	if (locks->all.failures)
		fprintf(page->out, "  %s of them ended without the lock\n",
			human_count(count, locks->all.failures));
	if (locks->all.refusals)
		fprintf(page->out, "  refused at once: %s\n",
			human_count(count, locks->all.refusals));
	if (locks->all.open)
		fprintf(page->out, "  not over at the end: %s\n",
			human_count(count, locks->all.open));
}

void locks_print(const struct page *page)
{
	const struct locks *locks = page->model->locks;
	uint32_t i, rows = page_rows(page, 30, locks->lock_count);

	print_head(page);
	if (!locks->lock_count)
		return;
	fprintf(page->out, "\n%s%10s %10s %10s %10s %8s %8s  lock%s  (by "
		"waited; conditions last)\n", page->color ? "\033[1m" : "", "waited", "waits",
		"mean", "max", "failed", "refused",
		page->color ? "\033[m" : "");
	for (i = 0; i < rows; i++)
		print_lock(page, &locks->locks[i]);
	page_left_out(page, rows, locks->lock_count);
}

/* --- for programs --- */

static void put_waits(FILE *out, const struct waits *waits)
{
	fprintf(out, "\"waits\":%" PRIu64 ",\"waited_ns\":%" PRIu64
		",\"max_ns\":%" PRIu64 ",\"failures\":%" PRIu64
		",\"refusals\":%" PRIu64 ",\"open\":%" PRIu64, waits->waits,
		whole(waits->time), whole(waits->max), waits->failures,
		waits->refusals, waits->open);
}

static void put_lock(FILE *out, const struct model *model,
		     const struct options *options, const struct lock *lock)
{
	const struct waiter *waiter = &model->locks->waiters[lock->first];
	uint32_t i;

	fputs("{\"name\":", out);
	put_json(out, lock->name);
	fprintf(out, ",\"kind\":\"%s\",\"object\":", kinds[lock->kind]);
	put_json(out, lock->object);
	fprintf(out, ",\"address\":\"0x%" PRIx64 "\",", lock->address);
	put_waits(out, &lock->waits);
	fputs(",\"waiters\":[", out);
	for (i = 0; i < lock->count; i++, waiter++) {
		fputs(i ? ",\n {" : "\n {", out);
		put_waits(out, &waiter->waits);
		fputs(",\"path\":", out);
		path_json(out, model, options, waiter->path);
		fputs(",\"holder\":", out);
		path_json(out, model, options, waiter->holder);
		fputc('}', out);
	}
	fputs("]}", out);
}

void locks_json(FILE *out, const struct model *model,
		const struct options *options)
{
	const struct locks *locks = model->locks;
	uint32_t i;

	fputs(",\n\"waiting\":{", out);
	put_waits(out, &locks->all);
	fputs("},\n\"locks\":[", out);
	for (i = 0; i < locks->lock_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_lock(out, model, options, &locks->locks[i]);
	}
	fputc(']', out);
}

static void put_row(FILE *out, const struct model *model,
		    const struct options *options, const struct lock *lock,
		    const struct waiter *waiter)
{
	const struct waits *waits = &waiter->waits;

	put_csv(out, lock->name);
	fprintf(out, ",%s,", kinds[lock->kind]);
	put_csv(out, lock->object);
	fprintf(out, ",0x%" PRIx64 ",", lock->address);
	path_csv(out, model, options, waiter->path);
	fputc(',', out);
	path_csv(out, model, options, waiter->holder);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",%" PRIu64 ",%" PRIu64 "\r\n", waits->waits,
		whole(waits->time), whole(waits->max), waits->failures,
		waits->refusals, waits->open);
}

void locks_csv(FILE *out, const struct model *model,
	       const struct options *options)
{
	const struct locks *locks = model->locks;
	uint32_t i, n;

	fputs("lock,kind,object,address,path,holder,waits,waited_ns,max_ns,"
	      "failures,refusals,open\r\n", out);
	for (i = 0; i < locks->lock_count; i++)
		for (n = 0; n < locks->locks[i].count; n++)
			put_row(out, model, options, &locks->locks[i],
				&locks->waiters[locks->locks[i].first + n]);
}
