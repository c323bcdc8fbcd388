/*
 * Counters in the recording, which remain after the program has ended.  The recording
 * also has all other data of a file (<shim/format.h>), so that `profrun finish` can
 * write the file of a program that was killed.
 */
#include "monitor/monitor.h"

#include "os/sys.h"
#include "os/text.h"

#include <shim/format.h>
#include <shim/record.h>

#include <shim/banned.h>

static size_t size_of(const struct monitor_set *set)
{
	size_t size = sizeof(struct shim_histogram);

	for (uint32_t i = 0; i < set->range_count; i++)
		size += sizeof(struct shim_histogram_range) +
			((set->ranges[i].bins * sizeof(uint32_t) + 7) &
			 ~(size_t)7);
	return size;
}

static void describe_range(struct shim_histogram_range *to,
			   const struct monitor_range *range)
{
	struct text path;

	to->low = range->low;
	to->high = range->high;
	to->base = range->base;
	to->end = range->end;
	to->bias = range->bias;
	to->entry = range->entry;
	to->bins = range->bins;
	text_init(&path, to->path, sizeof(to->path));
	text_add(&path, range->path);
}

static void fill_histogram(struct monitor_set *set, struct shim_histogram *kept)
{
	struct shim_histogram_range *to = kept->ranges;
	char *at = (char *)(to + set->range_count);

	for (uint32_t i = 0; i < set->range_count; i++, to++) {
		struct monitor_range *range = &set->ranges[i];

		describe_range(to, range);
		range->counters = at;
		to->counters = (uint64_t)at;
		at += (range->bins * sizeof(uint32_t) + 7) & ~(size_t)7;
	}
	/* With this store, the histogram becomes valid for readers. */
	__atomic_store_n(&kept->range_count, set->range_count,
			 __ATOMIC_RELEASE);
}

/* The counters must be in one piece: the first chunk of the file, or a larger second
 * chunk. */
bool monitor_keep(struct monitor_set *set)
{
	struct shim_record *record;
	size_t size = size_of(set), got;
	enum shim_lost cause;
	void *memory;

	set->kept = NULL;
	for (uint32_t i = 0; i < set->range_count; i++)
		if (set->ranges[i].counters)
			return false; /* the program's own */
	record = shim_record_open("pchist", &memory, &got, &cause);
	if (!record)
		return false;
	if (got < size)
		memory = shim_record_grow(record, size, &got, &cause);
	if (!memory || got < size)
		return false;
	set->kept = memory;
	fill_histogram(set, memory);
	return true;
}

/* Stores an absolute name, because a reader may have another working directory than the
 * program. */
void monitor_keep_name(struct monitor_set *set, const char *name, bool is_gmon,
		       uint32_t rate_hz)
{
	char directory[MONITOR_PATH_SIZE] = "";
	struct shim_histogram *kept = set->kept;
	struct text text;

	if (!kept)
		return;
	kept->is_gmon = is_gmon;
	kept->rate_hz = rate_hz;
	kept->thread = (uint32_t)set->thread;
	text_init(&text, kept->file, sizeof(kept->file));
	if (name[0] != '/' &&
	    sys_get_directory(directory, sizeof(directory)) >= 0) {
		text_add(&text, directory);
		text_add(&text, "/");
	}
	text_add(&text, name);
}

void monitor_keep_done(struct monitor_set *set, bool done)
{
	if (set->kept)
		__atomic_store_n(&set->kept->is_done, done, __ATOMIC_RELEASE);
}
