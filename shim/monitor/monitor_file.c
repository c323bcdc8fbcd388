/*
 * Writes gmon.out and mon.out.
 *
 * gprof reads the addresses of one object only, so each object of a set has a file of
 * its own.  The file of the first object (the program, if it is in the set) has the
 * set's name; the names of the others end with the object's name.  shim gives a file
 * its name when the file is complete.  It writes the file from a copy of the counters,
 * so that the file is consistent.  -sigdump subtracts exactly that copy, so no sample
 * is lost or written twice.
 */
#include "monitor/monitor.h"

#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/compat/mon.h>
#include <shim/format.h>
#include <sys/resource.h>

#include <shim/banned.h>

#define HIST_LARGEST 65535u
#define ARC_LARGEST  0x7fffffffu

/* --- a file --- */

static struct {
	int fd;
	int error; /* of the first write that failed */
	uint64_t offset;
	size_t used;
	char path[MONITOR_PATH_SIZE]; /* its name until it is complete */
	char buffer[32768];
} file;

static int make_paths(const char *name)
{
	struct text text;

	text_init(&text, file.path, sizeof(file.path));
	text_add(&text, name);
	text_add(&text, ".new.");
	text_add_number(&text, (uint64_t)sys_getpid());
	return text.cut ? -ENAMETOOLONG : 0;
}

static int open_file(const char *name)
{
	int flags = O_WRONLY | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int r = make_paths(name);

	if (r < 0)
		return r;
	file.error = 0;
	file.offset = 0;
	file.used = 0;
	file.fd = sys_create(file.path, flags, 0666);
	if (file.fd == -EEXIST) {
		/* A process that was killed has left the file. */
		sys_remove(file.path);
		file.fd = sys_create(file.path, flags, 0666);
	}
	return file.fd < 0 ? file.fd : 0;
}

/* The kernel sends a signal to a program that writes beyond the limit. */
static int check_limit(void)
{
	uint64_t limit;

	if (sys_limit(RLIMIT_FSIZE, &limit) == 0 &&
	    file.offset + file.used > limit)
		return -EFBIG;
	return 0;
}

static void flush(void)
{
	size_t at = 0;

	if (file.error == 0)
		file.error = check_limit();
	while (at < file.used && file.error == 0) {
		long r = sys_write(file.fd, file.buffer + at, file.used - at);

		if (r > 0)
			at += (size_t)r;
		else if (r != -EINTR)
			file.error = r < 0 ? (int)r : -ENOSPC;
	}
	file.offset += file.used;
	file.used = 0;
}

static void write_bytes(const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size-- > 0) {
		if (file.used == sizeof(file.buffer))
			flush();
		file.buffer[file.used++] = *from++;
	}
}

static void write_8(uint8_t value)
{
	write_bytes(&value, sizeof(value));
}

static void write_16(uint16_t value)
{
	write_bytes(&value, sizeof(value));
}

static void write_32(uint32_t value)
{
	write_bytes(&value, sizeof(value));
}

static void write_64(uint64_t value)
{
	write_bytes(&value, sizeof(value));
}

static int close_file(const char *name)
{
	int r;

	flush();
	r = sys_close(file.fd);
	if (file.error == 0)
		file.error = r < 0 ? r : sys_rename(file.path, name);
	if (file.error < 0)
		sys_remove(file.path);
	return file.error;
}

/* --- copies of the counters of a range --- */

static uint32_t load_counter(const struct monitor_range *range, uint64_t i)
{
	if (range->width == 2)
		return __atomic_load_n((uint16_t *)range->counters + i,
				       __ATOMIC_RELAXED);
	return __atomic_load_n((uint32_t *)range->counters + i,
			       __ATOMIC_RELAXED);
}

static void subtract_counter(const struct monitor_range *range, uint64_t i,
			     uint32_t count)
{
	if (range->width == 2)
		__atomic_sub_fetch((uint16_t *)range->counters + i,
				   (uint16_t)count, __ATOMIC_RELAXED);
	else
		__atomic_sub_fetch((uint32_t *)range->counters + i, count,
				   __ATOMIC_RELAXED);
}

struct copy {
	uint32_t *counts;
	size_t size;
	uint64_t saturated;
};

static int make_copy(const struct monitor_range *range, struct copy *copy)
{
	void *memory;
	int r;

	copy->size = (range->bins * sizeof(uint32_t) + 4095) & ~(size_t)4095;
	r = sys_map(copy->size, &memory);
	if (r < 0)
		return r;
	copy->counts = memory;
	/* A store of 0 would allocate a page. */
	for (uint64_t i = 0; i < range->bins; i++) {
		uint32_t count = load_counter(range, i);

		if (count)
			copy->counts[i] = count;
	}
	copy->saturated = __atomic_load_n(&range->saturated, __ATOMIC_RELAXED);
	return 0;
}

static void subtract_copy(struct monitor_range *range, const struct copy *copy)
{
	for (uint64_t i = 0; i < range->bins; i++)
		if (copy->counts[i])
			subtract_counter(range, i, copy->counts[i]);
	__atomic_sub_fetch(&range->saturated, copy->saturated,
			   __ATOMIC_RELAXED);
}

/* --- gmon.out --- */

static void write_gmon_header(void)
{
	static const char zeros[12];

	write_bytes("gmon", 4);
	write_32(1);
	write_bytes(zeros, sizeof(zeros));
}

/* Counters of a record have 16 bits.  If a count is larger, further records have the
 * rest. */
static void write_histogram(const struct monitor_range *range,
			    const struct copy *copy, uint32_t rate_hz)
{
	static const char dimension[16] = "seconds\0\0\0\0\0\0\0\0s";
	uint32_t most = 0, before = 0;

	for (uint64_t i = 0; i < range->bins; i++)
		if (copy->counts[i] > most)
			most = copy->counts[i];
	do {
		write_8(0);
		write_64(range->base - range->bias);
		write_64(range->end - range->bias);
		write_32((uint32_t)range->bins);
		write_32(rate_hz);
		write_bytes(dimension, sizeof(dimension));
		for (uint64_t i = 0; i < range->bins; i++) {
			uint32_t count = copy->counts[i];

			count = count > before ? count - before : 0;
			write_16((uint16_t)(count > HIST_LARGEST ?
						    HIST_LARGEST :
						    count));
		}
		before += HIST_LARGEST;
	} while (before < most && before >= HIST_LARGEST && file.error == 0);
}

static void write_arc(uintptr_t from, uintptr_t self, uint64_t calls)
{
	while (calls > 0) {
		uint64_t part = calls > ARC_LARGEST ? ARC_LARGEST : calls;

		write_8(1);
		write_64(from);
		write_64(self);
		write_32((uint32_t)part);
		calls -= part;
	}
}

static bool contains(const struct monitor_range *range, uintptr_t address)
{
	return address - range->low < range->high - range->low;
}

static void write_arcs(const struct monitor_range *range)
{
	for (struct monitor_arc *arc = monitor_next_arc(NULL); arc;
	     arc = monitor_next_arc(arc)) {
		uint64_t calls = __atomic_load_n(&arc->calls, __ATOMIC_RELAXED);

		if (!contains(range, arc->self))
			continue;
		arc->written = calls;
		/* A return address may be the first byte of the next function, so the
		 * code subtracts 1.  gprof does not know callers in other objects; the
		 * object's entry point represents them. */
		write_arc(contains(range, arc->from - 1) ?
				  arc->from - 1 - range->bias :
				  range->entry,
			  arc->self - range->bias, calls);
	}
}

static void subtract_arcs(const struct monitor_range *range)
{
	for (struct monitor_arc *arc = monitor_next_arc(NULL); arc;
	     arc = monitor_next_arc(arc))
		if (contains(range, arc->self))
			__atomic_sub_fetch(&arc->calls, arc->written,
					   __ATOMIC_RELAXED);
}

/* --- mon.out --- */

static void write_mon_header(const struct monitor_set *set, uint32_t rate_hz)
{
	struct mon_header header = {
		.version = MON_VERSION,
		.header_size = sizeof(header),
		.rate_hz = rate_hz,
		.range_count = set->range_count,
		.pid = (uint32_t)sys_getpid(),
		.thread = (uint32_t)set->thread,
		.outside = set->kept ? set->kept->outside : set->outside,
	};

	for (unsigned i = 0; i < sizeof(header.magic); i++)
		header.magic[i] = MON_MAGIC[i];
	write_bytes(&header, sizeof(header));
}

static void write_mon_range(const struct monitor_range *range,
			    const struct copy *copy)
{
	size_t length = text_length(range->path);
	struct mon_range record = {
		.low = range->base - range->bias,
		.high = range->end - range->bias,
		.bins = range->bins,
		.saturated = copy->saturated,
		.path_size = (uint32_t)(length + 8) & ~7u,
	};

	write_bytes(&record, sizeof(record));
	write_bytes(range->path, length);
	for (size_t i = length; i < record.path_size; i++)
		write_8(0);
	for (uint64_t i = 0; i < range->bins; i++)
		write_32(copy->counts[i]);
}

/* --- sets --- */

/* Some of the ranges of a set, and the copies of their counters. */
struct part {
	struct monitor_set *set;
	const struct monitor_output *output;
	const struct monitor_range
		*object; /* a range of the object; NULL: all */
};

static struct copy copies[MONITOR_RANGES_MAX];

static bool belongs(const struct part *part, uint32_t i)
{
	return !part->object || part->object->bias == part->set->ranges[i].bias;
}

static int make_copies(const struct part *part)
{
	int r = 0;

	for (uint32_t i = 0; i < part->set->range_count; i++)
		copies[i].counts = NULL;
	for (uint32_t i = 0; r == 0 && i < part->set->range_count; i++)
		if (belongs(part, i))
			r = make_copy(&part->set->ranges[i], &copies[i]);
	return r;
}

static void drop_copies(const struct part *part)
{
	for (uint32_t i = 0; i < part->set->range_count; i++)
		if (copies[i].counts)
			sys_unmap(copies[i].counts, copies[i].size);
}

static void write_part_contents(const struct part *part)
{
	const struct monitor_output *output = part->output;

	if (output->is_gmon)
		write_gmon_header();
	else
		write_mon_header(part->set, output->rate_hz);
	for (uint32_t i = 0; i < part->set->range_count; i++) {
		const struct monitor_range *range = &part->set->ranges[i];

		if (!copies[i].counts)
			continue;
		if (!output->is_gmon) {
			write_mon_range(range, &copies[i]);
			continue;
		}
		write_histogram(range, &copies[i], output->rate_hz);
		if (output->has_arcs)
			write_arcs(range);
	}
}

static void subtract_part(const struct part *part)
{
	if (part->set->kept)
		part->set->kept->is_partial = true;
	for (uint32_t i = 0; i < part->set->range_count; i++) {
		if (!copies[i].counts)
			continue;
		subtract_copy(&part->set->ranges[i], &copies[i]);
		if (part->output->is_gmon && part->output->has_arcs)
			subtract_arcs(&part->set->ranges[i]);
	}
}

static int write_part(const struct part *part, const char *name)
{
	int r = make_copies(part);

	if (r == 0)
		r = open_file(name);
	if (r == 0) {
		write_part_contents(part);
		r = close_file(name);
	}
	if (r == 0 && part->output->zeroes)
		subtract_part(part);
	drop_copies(part);
	return r;
}

/* The number (0, 1 ...) of the object whose first range is @i; -1 if @i is not the
 * first range of its object. */
static int object_number(const struct monitor_set *set, uint32_t i)
{
	int number = 0;

	for (uint32_t n = 0; n < i; n++) {
		bool is_first = true;

		if (set->ranges[n].bias == set->ranges[i].bias)
			return -1;
		for (uint32_t m = 0; m < n; m++)
			is_first &= set->ranges[m].bias != set->ranges[n].bias;
		number += is_first;
	}
	return number;
}

static int object_name(const struct monitor_set *set, uint32_t i, int number,
		       const char *name, char path[MONITOR_PATH_SIZE])
{
	const char *base = text_base(set->ranges[i].path);
	struct text text;

	text_init(&text, path, MONITOR_PATH_SIZE);
	text_add(&text, name);
	if (number > 0) {
		text_add(&text, ".");
		text_add(&text, base);
	}
	for (uint32_t n = 0; n < i && number > 0; n++)
		if (text_equal(text_base(set->ranges[n].path), base) &&
		    set->ranges[n].bias != set->ranges[i].bias) {
			text_add(&text, ".");
			text_add_number(&text, (uint64_t)number);
			break;
		}
	return text.cut ? -ENAMETOOLONG : 0;
}

int monitor_write_set(struct monitor_set *set,
		      const struct monitor_output *output)
{
	struct part part = { .set = set, .output = output };
	char path[MONITOR_PATH_SIZE];
	int result = 0;

	ASSERT_LOCKED();
	if (!output->is_gmon)
		return write_part(&part, output->name);
	for (uint32_t i = 0; i < set->range_count; i++) {
		int number = object_number(set, i), r;

		if (number < 0)
			continue;
		part.object = &set->ranges[i];
		r = object_name(set, i, number, output->name, path);
		if (r == 0)
			r = write_part(&part, path);
		if (r < 0)
			result = r;
	}
	return result;
}
