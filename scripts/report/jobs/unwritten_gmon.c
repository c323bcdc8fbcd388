/*
 * profrun finish: writes gmon.out and mon.out of programs that were killed
 * before they could write them.  The counts are in the recording.
 *
 * The recording is not trusted: it decides the content of the files, never
 * their place.  Files go into the directory that the user names, get only names
 * that such files can have, and replace no other file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <shim/compat/mon.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "base/text.h"
#include "jobs/unwritten_gmon.h"
#include "read/pchist.h"
#include "read/process.h"
#include "read/recording.h"

#define HIST_LARGEST 65535u
#define ARC_LARGEST  0x7fffffffu
/* A record of the format holds a part of a large count, so a large count takes
 * several records.  A program that runs for a year needs fewer records than
 * these limits; a damaged count of 2^64 - 1 would fill the disk. */
#define HIST_BYTES (256u << 20) /* limit for all ranges */
#define ARCS_MORE  65536u	/* of a file */
#define NAME_MOST  200		/* limit in bytes: a number may follow */

/* The destination of the files. */
struct place {
	int directory;
	const char *name;
};

/* --- writing --- */

static void write_little_endian(FILE *out, uint64_t value, unsigned size)
{
	for (; size > 0; size--, value >>= 8)
		fputc((int)(value & 0xff), out);
}

static void put_counts(FILE *out, const struct pchist *histogram,
		       const struct pchist_range *range)
{
	const struct shim_histogram_range *given = &range->given;
	uint64_t before = 0, most = 0, i;
	uint64_t records = HIST_BYTES / (2 * histogram->bins) + 1;

	for (i = 0; i < given->bins; i++)
		if (range->counts[i] > most)
			most = range->counts[i];
	if (most / HIST_LARGEST >= records) {
		warn("%s: a count of %" PRIu64 " samples cannot be: %" PRIu64
		     " of them are written",
		     given->path, most, records * HIST_LARGEST);
		most = records * HIST_LARGEST;
	}
	do {
		write_little_endian(out, 0, 1);
		write_little_endian(out, given->base - given->bias, 8);
		write_little_endian(out, given->end - given->bias, 8);
		write_little_endian(out, given->bins, 4);
		write_little_endian(out, histogram->given->rate_hz, 4);
		fwrite("seconds\0\0\0\0\0\0\0\0s", 1, 16, out);
		for (i = 0; i < given->bins; i++) {
			uint64_t count = range->counts[i];

			count = count > before ? count - before : 0;
			write_little_endian(
				out,
				count > HIST_LARGEST ? HIST_LARGEST : count, 2);
		}
		before += HIST_LARGEST;
	} while (before < most);
}

static bool holds(const struct pchist_range *range, uint64_t address)
{
	return address - range->given.low <
	       range->given.high - range->given.low;
}

/* *@more counts the records beyond the first one of each arc. */
static void put_arc(FILE *out, const struct pchist_range *range,
		    const struct shim_arc *arc, uint32_t *more)
{
	uint64_t calls = arc->calls, bias = range->given.bias;

	if (arc->from == 0 || !holds(range, arc->self))
		return;
	while (calls > 0) {
		uint64_t part = calls > ARC_LARGEST ? ARC_LARGEST : calls;

		if (calls > part && (*more)++ >= ARCS_MORE) {
			warn("%s: %" PRIu64 " calls of one function cannot be: "
			     "some are left out",
			     range->given.path, arc->calls);
			calls = part;
		}

		write_little_endian(out, 1, 1);
		write_little_endian(out,
				    holds(range, arc->from - 1) ?
					    arc->from - 1 - bias :
					    range->given.entry,
				    8);
		write_little_endian(out, arc->self - bias, 8);
		write_little_endian(out, part, 4);
		calls -= part;
	}
}

static void put_arcs(FILE *out, const struct pchist *histogram,
		     const struct pchist_range *range)
{
	uint32_t i, more = 0;
	uint64_t n;

	for (i = 0; i < histogram->arcs_count; i++)
		for (n = 0; n < histogram->arcs[i].count; n++)
			put_arc(out, range, &histogram->arcs[i].arc[n], &more);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Accepts "gmon.out", "mon.out" or "PID.PROGRAM", also with a suffix: no shell
 * runs a file of such a name by itself. */
static bool is_histogram_name(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return !strncmp(name, "gmon.out", 8) || !strncmp(name, "mon.out", 7) ||
	       (digits > 0 && name[digits] == '.');
}

/* The file name in the recording, reduced to its last component. */
static const char *safe_name(const char *path)
{
	const char *base = base_of(path);
	char *name = (char *)keep_format(
		"%s%.*s", is_histogram_name(base) ? "" : "gmon.out.", NAME_MOST,
		base);

	make_harmless(name);
	return name;
}

/* The same names as in shim/monitor/monitor_file.c: the first file has the name
 * of the set. */
static const char *object_file(const struct pchist *histogram, uint32_t i,
			       uint32_t number)
{
	const struct shim_histogram_range *given = &histogram->ranges[i].given;
	const char *base = base_of(given->path);
	uint32_t n;

	if (number == 0)
		return histogram->file;
	for (n = 0; n < i; n++)
		if (!strcmp(base_of(histogram->ranges[n].given.path), base) &&
		    histogram->ranges[n].given.bias != given->bias)
			return keep_format("%s.%s.%u", histogram->file, base,
					   number);
	return keep_format("%s.%s", histogram->file, base);
}

/* Gives the complete file its name. */
static void close_file(const struct place *place, const char *wanted,
		       uint64_t samples)
{
	const char *name = output_close_as(wanted);

	fputs("profrun: wrote ", stderr);
	if (strcmp(place->name, "."))
		put_text(stderr, keep_format("%s/", place->name));
	put_text(stderr, name);
	fprintf(stderr, ": %" PRIu64 " samples", samples);
	if (strcmp(name, wanted)) {
		fputs(" (there is a ", stderr);
		put_text(stderr, wanted);
		fputs(", which is not written over)", stderr);
	}
	fputc('\n', stderr);
}

/* Writes all ranges of one object. */
static void write_gmon(const struct place *place, struct pchist *histogram,
		       uint32_t first, uint32_t number)
{
	FILE *out = output_create(place->directory, place->name);
	uint64_t samples = 0;
	uint32_t i;

	fwrite("gmon\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 1, 20, out);
	for (i = first; i < histogram->given->range_count; i++) {
		struct pchist_range *range = &histogram->ranges[i];

		if (range->given.bias != histogram->ranges[first].given.bias)
			continue;
		range->is_written = true;
		samples += range->samples;
		put_counts(out, histogram, range);
		if (histogram->given->thread <= 1)
			put_arcs(out, histogram, range);
	}
	close_file(place, safe_name(object_file(histogram, first, number)),
		   samples);
}

static void write_mon(const struct place *place, const struct pchist *histogram,
		      uint32_t pid)
{
	struct mon_header header = {
		.version = MON_VERSION,
		.header_size = sizeof(header),
		.rate_hz = histogram->given->rate_hz,
		.range_count = histogram->given->range_count,
		.pid = pid,
		.thread = histogram->given->thread,
		.outside = histogram->given->outside,
	};
	FILE *out = output_create(place->directory, place->name);
	uint64_t samples = 0;
	uint32_t i;

	memcpy(header.magic, MON_MAGIC, sizeof(header.magic));
	fwrite(&header, sizeof(header), 1, out);
	for (i = 0; i < header.range_count; i++) {
		const struct pchist_range *range = &histogram->ranges[i];
		const struct shim_histogram_range *given = &range->given;
		size_t length = strlen(given->path);
		struct mon_range record = {
			.low = given->base - given->bias,
			.high = given->end - given->bias,
			.bins = given->bins,
			.path_size = (uint32_t)(length + 8) & ~7u,
		};

		fwrite(&record, sizeof(record), 1, out);
		fwrite(given->path, 1, length, out);
		write_little_endian(out, 0,
				    record.path_size - (unsigned)length);
		fwrite(range->counts, sizeof(uint32_t), given->bins, out);
		samples += range->samples;
	}
	close_file(place, histogram->file, samples);
}

static void write_histogram(const struct place *place, struct pchist *histogram,
			    uint32_t pid)
{
	uint32_t i, number = 0;

	if (!histogram->given->is_gmon) {
		write_mon(place, histogram, pid);
		return;
	}
	for (i = 0; i < histogram->given->range_count; i++)
		if (!histogram->ranges[i].is_written)
			write_gmon(place, histogram, i, number++);
}

/* --- recordings --- */

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), size = strlen(end);

	return length > size && !strcmp(name + length - size, end);
}

/* Lists the names in @directory with this ending; the list is never freed. */
static char **list(int directory, const char *end, uint32_t *count)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	char **names = NULL;
	uint32_t room = 0;

	*count = 0;
	while (stream && (entry = readdir(stream)))
		if (ends_in(entry->d_name, end)) {
			GROW(names, *count, room);
			names[(*count)++] = (char *)keep_text(entry->d_name,
							      SIZE_MAX);
		}
	if (stream)
		closedir(stream);
	return names;
}

static void read_arcs(struct pchist *histogram, int directory, const char *name)
{
	uint32_t count, i;
	char **names = list(directory, ".arcs", &count);

	histogram->arcs = allocate(count, sizeof(*histogram->arcs));
	for (i = 0; i < count; i++) {
		struct pchist_arcs *arcs =
			&histogram->arcs[histogram->arcs_count];

		arcs->arc = arcs_read(directory, names[i],
				      keep_format("%s/%s", name, names[i]),
				      &arcs->count);
		histogram->arcs_count += arcs->arc != NULL;
	}
	free(names);
}

static bool may_run(const struct recording *recording,
		    const struct process *process)
{
	if ((recording->has_end && process->is_main) ||
	    process->meta.end != SHIM_END_UNKNOWN ||
	    kill((pid_t)process->pid, 0) != 0)
		return false;
	warn("%s/%s: a process of that number still runs: its histogram is "
	     "not written",
	     recording->path, process->name);
	return true;
}

static uint32_t finish_process(int parent, const char *path,
			       const struct process *process,
			       const struct place *place)
{
	int directory = openat(parent, process->name,
			       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	const char *name = keep_format("%s/%s", path, process->name);
	uint32_t count, i, done = 0;
	char **names;

	if (directory < 0)
		return 0;
	names = list(directory, ".pchist", &count);
	for (i = 0; i < count; i++) {
		struct pchist histogram = { .ranges = NULL };

		if (!pchist_read(&histogram, directory, names[i],
				 keep_format("%s/%s", name, names[i])))
			continue;
		if (histogram.given->is_done || !histogram.given->file[0]) {
			pchist_free(&histogram);
			continue;
		}
		histogram.file = safe_name(histogram.given->file);
		read_arcs(&histogram, directory, name);
		write_histogram(place, &histogram, process->pid);
		pchist_free(&histogram);
		done++;
	}
	free(names);
	close(directory);
	return done;
}

uint32_t unwritten_gmon_write(const struct recording *recording,
			      const char *directory)
{
	int parent = open(recording->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct place place = { .name = directory };
	uint32_t i, done = 0;

	if (parent < 0)
		die("%s: %s", recording->path, strerror(errno));
	place.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place.directory < 0)
		die("%s: %s (-o names a directory that is there)", directory,
		    strerror(errno));
	for (i = 0; i < recording->process_count; i++)
		if (!may_run(recording, &recording->processes[i]))
			done += finish_process(parent, recording->path,
					       &recording->processes[i],
					       &place);
	close(place.directory);
	close(parent);
	return done;
}
