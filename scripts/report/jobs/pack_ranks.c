/*
 * Writes ranks into a ZIP archive: the directories with all their files, a
 * directory's entry first.  An archive that would need the format's 64-bit
 * extension is ended, and another begun.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/directory.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "common/running.h"
#include "jobs/pack_ranks.h"
#include "read/files.h"
#include "read/packed.h"
#include "read/process.h"

#define DEPTH_MAX   4
#define ENTRIES_MAX 65000u
#define SIZE_MAX_32 0xf0000000u /* of an archive: less than 2^32 */
#define LEVEL	    1		/* most of a file is zero */

/* What a rank will add to an archive. */
struct space {
	uint32_t entries;
	uint64_t size; /* at most, compressed */
};

struct writer {
	FILE *out;
	unsigned char *central;
	size_t central_size, central_room;
	uint32_t entries;
};

/* --- which ranks --- */

static bool is_running(const struct recording *recording,
		       const struct process *process)
{
	char directory[PATH_MAX], *own;
	bool is_it = false;

	if (kill((pid_t)process->pid, 0) < 0 && errno == ESRCH)
		return false;
	own = realpath(keep_format("%s/%s", recording->path, process->name),
		       NULL);
	is_it = own && running_recording(process->pid, directory) &&
		strcmp(own, directory) == 0;
	free(own);
	return is_it;
}

static bool has_ended(const struct recording *recording, uint32_t part,
		      const char *host)
{
	const char *its;
	uint32_t i;

	if (!recording->parts[part].has_end)
		return false;
	for (i = 0; i < recording->process_count; i++) {
		const struct process *process = &recording->processes[i];

		if (process->part != part)
			continue;
		its = process_string(process, "host");
		if (!its || strcmp(its, host) != 0 ||
		    is_running(recording, process))
			return false;
	}
	return true;
}

static int open_entry(int directory, const char *name, struct stat *info)
{
	int fd = openat(directory, name,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
				O_NOCTTY);

	if (fd >= 0 && fstat(fd, info) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool is_entry(const char *name)
{
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Files that reports read in pieces, because they may be larger than the memory. */
static bool is_read_in_pieces(const char *name)
{
	size_t size = strlen(name);

	return strcmp(name, "gaps") == 0 || strcmp(name, "counters") == 0 ||
	       (size > 6 && strcmp(name + size - 6, ".trace") == 0);
}

/* False if there is more than directories and files that an archive may have. */
static bool measure(int directory, const char *name, int depth,
		    struct space *extent)
{
	struct stat info;
	int fd = open_entry(directory, name, &info);
	bool is_good = fd >= 0;
	size_t count = 0, i;
	char **names = NULL;

	extent->entries++;
	extent->size += 200 + 2 * strlen(name);
	if (is_good && S_ISREG(info.st_mode) && !is_read_in_pieces(name)) {
		extent->size += compressBound((uLong)info.st_size);
	} else if (is_good && S_ISDIR(info.st_mode) && depth > 0) {
		names = list_names(fd, is_entry, &count);
		for (i = 0; i < count; i++)
			is_good = is_good &&
				  measure(fd, names[i], depth - 1, extent);
		free(names);
	} else {
		is_good = false;
	}
	if (fd >= 0)
		close(fd);
	return is_good && extent->size < SIZE_MAX_32;
}

/* --- an archive --- */

static unsigned char *put16(unsigned char *to, uint32_t value)
{
	to[0] = (unsigned char)value;
	to[1] = (unsigned char)(value >> 8);
	return to + 2;
}

static unsigned char *put32(unsigned char *to, uint32_t value)
{
	return put16(put16(to, value), value >> 16);
}

struct member {
	const char *name;
	uint32_t time, date, crc, packed_size, size, local, mode;
	bool is_directory;
};

/* The fields that an entry has both before its content and in the directory. */
static unsigned char *put_common(unsigned char *to, const struct member *member)
{
	to = put16(to, 20); /* version */
	to = put16(to, 0);
	to = put16(to, member->is_directory ? 0 : 8); /* stored, deflated */
	to = put16(to, member->time);
	to = put16(to, member->date);
	to = put32(to, member->crc);
	to = put32(to, member->packed_size);
	to = put32(to, member->size);
	to = put16(to, (uint32_t)strlen(member->name));
	return put16(to, 0);
}

static void put_local(struct writer *writer, const struct member *member)
{
	unsigned char bytes[30];

	put_common(put32(bytes, 0x04034b50), member);
	fwrite(bytes, sizeof(bytes), 1, writer->out);
	fwrite(member->name, strlen(member->name), 1, writer->out);
}

static void keep_central(struct writer *writer, const struct member *member)
{
	size_t length = strlen(member->name);
	unsigned char *to;

	while (writer->central_room - writer->central_size < 46 + length) {
		writer->central_room = writer->central_room * 2 + 65536;
		writer->central = grow(writer->central, writer->central_room,
				       1);
	}
	to = writer->central + writer->central_size;
	to = put32(to, 0x02014b50);
	to = put16(to, 3 << 8 | 20); /* made on Unix */
	to = put_common(to, member);
	to = put16(to, 0);
	to = put32(to, 0);
	to = put32(to, member->mode << 16 | (member->is_directory ? 16 : 0));
	to = put32(to, member->local);
	memcpy(to, member->name, length);
	writer->central_size += 46 + length;
	writer->entries++;
}

static void set_time(struct member *member, const struct stat *info)
{
	struct tm when;

	if (!localtime_r(&info->st_mtime, &when) || when.tm_year < 80)
		return;
	member->time = (uint32_t)(when.tm_hour << 11 | when.tm_min << 5 |
				  when.tm_sec / 2);
	member->date = (uint32_t)((when.tm_year - 80) << 9 |
				  (when.tm_mon + 1) << 5 | when.tm_mday);
}

static bool deflate_all(struct writer *writer, const unsigned char *data,
			struct member *member)
{
	static unsigned char buffer[65536];
	z_stream stream = {
		.next_in = (unsigned char *)data,
		.avail_in = member->size,
	};
	int r;

	if (deflateInit2(&stream, LEVEL, Z_DEFLATED, -MAX_WBITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return false;
	do {
		stream.next_out = buffer;
		stream.avail_out = sizeof(buffer);
		r = deflate(&stream, Z_FINISH);
		fwrite(buffer, sizeof(buffer) - stream.avail_out, 1,
		       writer->out);
	} while (r == Z_OK);
	member->packed_size = (uint32_t)stream.total_out;
	deflateEnd(&stream);
	return r == Z_STREAM_END;
}

static bool put_file(struct writer *writer, int fd, struct member *member)
{
	unsigned char *data = NULL;
	long end;
	bool is_good;

	if (member->size > 0) {
		data = mmap(NULL, member->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			return false;
	}
	member->crc = (uint32_t)crc32(0, data, member->size);
	put_local(writer, member);
	is_good = deflate_all(writer, data, member);
	if (data)
		munmap(data, member->size);
	/* The size is known now. */
	end = ftell(writer->out);
	fseek(writer->out, member->local, SEEK_SET);
	put_local(writer, member);
	fseek(writer->out, end, SEEK_SET);
	return is_good;
}

static bool put_tree(struct writer *writer, int directory, const char *name,
		     const char *path)
{
	struct stat info;
	int fd = open_entry(directory, name, &info);
	struct member member = { .date = 1 << 5 | 1 };
	bool is_good = fd >= 0;
	char **names;
	size_t count, i;

	if (!is_good)
		return false;
	member.is_directory = S_ISDIR(info.st_mode);
	member.name = member.is_directory ? keep_format("%s/", path) : path;
	member.local = (uint32_t)ftell(writer->out);
	member.mode = info.st_mode;
	set_time(&member, &info);
	if (!member.is_directory) {
		member.size = (uint32_t)info.st_size;
		is_good = put_file(writer, fd, &member);
		keep_central(writer, &member);
		close(fd);
		return is_good;
	}
	put_local(writer, &member);
	keep_central(writer, &member);
	names = list_names(fd, is_entry, &count);
	for (i = 0; i < count; i++)
		is_good = is_good &&
			  put_tree(writer, fd, names[i],
				   keep_format("%s/%s", path, names[i]));
	free(names);
	close(fd);
	return is_good;
}

static void put_end(struct writer *writer)
{
	uint32_t central = (uint32_t)ftell(writer->out);
	unsigned char bytes[22], *to = put32(bytes, 0x06054b50);

	fwrite(writer->central, 1, writer->central_size, writer->out);
	to = put32(to, 0); /* no other disks */
	to = put16(to, writer->entries);
	to = put16(to, writer->entries);
	to = put32(to, (uint32_t)writer->central_size);
	to = put32(to, central);
	put16(to, 0);
	fwrite(bytes, sizeof(bytes), 1, writer->out);
}

/* --- the ranks of a host --- */

#define GONE_PREFIX "."
#define GONE_SUFFIX ".packed"

static bool is_gone(const char *name)
{
	size_t length = strlen(name);

	return !strncmp(name, GONE_PREFIX "rank.", 6) &&
	       length > strlen(GONE_SUFFIX) &&
	       !strcmp(name + length - strlen(GONE_SUFFIX), GONE_SUFFIX);
}

/* What an earlier process had no time to remove. */
static void remove_gone(int directory)
{
	size_t count, i;
	char **names = list_names(directory, is_gone, &count);

	for (i = 0; i < count; i++)
		directory_remove(directory, names[i]);
	free(names);
}

static const char *free_name(const struct recording *recording,
			     const char *host)
{
	const char *name = keep_format("%s/" PACKED_PREFIX "%s" PACKED_SUFFIX,
				       recording->path, host);
	int i;

	for (i = 1; access(name, F_OK) == 0; i++)
		name = keep_format("%s/" PACKED_PREFIX "%s.%d" PACKED_SUFFIX,
				   recording->path, host, i);
	return name;
}

/* Packs as many of the @count ranks as fit into one file; returns their
 * number. */
static uint32_t pack_some(int directory, const char *path, char **ranks,
			  uint32_t count)
{
	struct writer writer = { .out = output_open(path) };
	struct space sum = { 0, 0 };
	uint32_t done, i;

	for (done = 0; done < count; done++) {
		struct space extent = sum;

		if (!measure(directory, ranks[done], DEPTH_MAX, &extent) ||
		    (done > 0 && extent.entries > ENTRIES_MAX))
			break;
		sum = extent;
		progress("packing", done, count);
		if (!put_tree(&writer, directory, ranks[done], ranks[done]))
			die("%s: %s cannot be read", path, ranks[done]);
	}
	put_end(&writer);
	free(writer.central);
	if (fflush(writer.out) != 0 || fsync(fileno(writer.out)) < 0)
		die("%s: %s", path, strerror(errno));
	output_close();
	fsync(directory);
	for (i = 0; i < done; i++) {
		const char *gone = keep_format(GONE_PREFIX "%s" GONE_SUFFIX,
					       ranks[i]);

		if (renameat(directory, ranks[i], directory, gone) == 0)
			directory_remove(directory, gone);
	}
	return done;
}

/* The names of the ranks that can be packed; those that fit into no archive stay. */
static char **choose(const struct recording *recording, int directory,
		     const char *host, uint32_t *count)
{
	char **ranks = allocate(recording->part_count, sizeof(*ranks));
	uint32_t i;

	*count = 0;
	for (i = 0; i < recording->part_count; i++) {
		const char *name = recording->parts[i].name;
		struct space extent = { 0, 0 };

		if (has_ended(recording, i, host) &&
		    faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) ==
			    0 &&
		    measure(directory, name, DEPTH_MAX, &extent) &&
		    extent.entries <= ENTRIES_MAX)
			ranks[(*count)++] = (char *)name;
	}
	return ranks;
}

uint32_t pack_ranks(const struct recording *recording)
{
	char host[HOST_NAME_MAX + 1] = "";
	int directory = open(recording->path,
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t count, done = 0, packed;
	char **ranks;

	if (directory < 0)
		die("%s: %s", recording->path, strerror(errno));
	gethostname(host, sizeof(host) - 1);
	remove_gone(directory);
	ranks = choose(recording, directory, host, &count);
	do {
		packed = count == done ? 0 :
					 pack_some(directory,
						   free_name(recording, host),
						   ranks + done, count - done);
		done += packed;
	} while (packed > 0);
	free(ranks);
	close(directory);
	return done;
}
