/*
 * Keeps what a JIT has dumped about its code: names, lines, moves.  The code is most of a
 * dump, and is left out.  The copy is a dump itself.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/jitdump.h"
#include "jit_dump.h"
#include "jit_map.h"
#include "say.h"

#define PATH_SIZE 4096
/* Limits of the dump, of the copy, of its names, and of one record. */
#define DUMP_MOST   (16ull << 30)
#define SIZE_MOST   (256u << 20)
#define NAME_MOST   4096
#define RECORD_MOST (16u << 20)

/* --- the copy --- */

struct copy {
	FILE *from, *to;
	uint64_t size;
	char *record;
};

static bool take(struct copy *copy, char *bytes, size_t size)
{
	return fread(bytes, 1, size, copy->from) == size;
}

static bool put(struct copy *copy, const char *bytes, size_t size)
{
	copy->size += size;
	return fwrite(bytes, 1, size, copy->to) == size;
}

/* A dump of another byte order, or of a later version, is none. */
static bool copy_head(struct copy *copy)
{
	struct jitdump_head head;
	uint32_t size;

	if (!take(copy, (char *)&head, sizeof(head)) ||
	    head.magic != JITDUMP_MAGIC || head.version != JITDUMP_VERSION ||
	    head.size < sizeof(head))
		return false;
	size = head.size - (uint32_t)sizeof(head);
	head.size = sizeof(head);
	return fseeko(copy->from, size, SEEK_CUR) == 0 &&
	       put(copy, (const char *)&head, sizeof(head));
}

/* The size of what is copied of a record, or 0. */
static uint32_t wanted_size(const struct jitdump_record *head)
{
	uint32_t most = sizeof(struct jitdump_load) + NAME_MOST;

	switch (head->kind) {
	case JITDUMP_LOAD: return head->size < most ? head->size : most;
	case JITDUMP_MOVE:
	case JITDUMP_LINES: return head->size <= RECORD_MOST ? head->size : 0;
	default: return 0;
	}
}

/* A load ends behind its name. */
static bool put_record(struct copy *copy, uint32_t size)
{
	struct jitdump_record head;
	const char *end;

	memcpy(&head, copy->record, sizeof(head));
	if (head.kind == JITDUMP_LOAD) {
		end = size > sizeof(struct jitdump_load) ?
			      memchr(copy->record + sizeof(struct jitdump_load),
				     '\0', size - sizeof(struct jitdump_load)) :
			      NULL;
		if (!end)
			return true;
		size = (uint32_t)(end + 1 - copy->record);
		head.size = size;
		memcpy(copy->record, &head, sizeof(head));
	}
	return put(copy, copy->record, size);
}

/* Copies one record; false: there is no other, or errno is set. */
static bool copy_record(struct copy *copy)
{
	struct jitdump_record head;
	uint32_t size;

	if (!take(copy, (char *)&head, sizeof(head)) ||
	    head.size < sizeof(head))
		return false;
	size = wanted_size(&head);
	if (size > sizeof(head)) {
		memcpy(copy->record, &head, sizeof(head));
		if (!take(copy, copy->record + sizeof(head),
			  size - sizeof(head)) ||
		    !put_record(copy, size))
			return false;
	} else {
		size = sizeof(head);
	}
	return copy->size < SIZE_MOST &&
	       fseeko(copy->from, head.size - size, SEEK_CUR) == 0;
}

/* Returns whether all was copied that is there. */
static bool copy_dump(struct copy *copy)
{
	copy->record = malloc(RECORD_MOST);
	if (!copy->record)
		return false;
	if (copy_head(copy))
		while (copy_record(copy))
			;
	free(copy->record);
	return !ferror(copy->from) && !ferror(copy->to) &&
	       copy->size < SIZE_MOST;
}

static void keep_file(int directory, FILE *from, const char *path)
{
	struct copy copy = { .from = from };
	int to = openat(directory, "jit-dump",
			O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool ok = false;

	copy.to = to < 0 ? NULL : fdopen(to, "w");
	errno = copy.to ? 0 : errno;
	if (copy.to) {
		ok = copy_dump(&copy);
		ok = fclose(copy.to) == 0 && ok;
	} else if (to >= 0) {
		close(to);
	}
	if (ok)
		return;
	say("%s: cannot be kept whole: %s", path,
	    errno ? strerror(errno) : "it is too large");
}

/* --- where it is --- */

struct place {
	int directory; /* of the process in the recording */
	const struct shim_meta *meta;
};

static bool keep_from(const struct place *place, const char *path)
{
	char name[PATH_SIZE];
	FILE *from;
	int fd;

	if (snprintf(name, sizeof(name), "%s/jit-%u.dump", path,
		     place->meta->pid) >= (int)sizeof(name))
		return false;
	fd = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	from = fd >= 0 && jit_file_is_ours(fd, place->meta->start_real_ns,
					   DUMP_MOST) ?
		       fdopen(fd, "r") :
		       NULL;
	if (!from) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	keep_file(place->directory, from, name);
	fclose(from);
	return true;
}

/* The agent for Java makes a directory for each process. */
static bool keep_from_agent(const struct place *place, const char *base)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	bool found = false;
	DIR *list;

	if (snprintf(path, sizeof(path), "%s/.debug/jit", base) >=
	    (int)sizeof(path))
		return false;
	list = opendir(path);
	while (list && !found && (entry = readdir(list)))
		if (entry->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/.debug/jit/%s", base,
			     entry->d_name) < (int)sizeof(path))
			found = keep_from(place, path);
	if (list)
		closedir(list);
	return found;
}

/* Where the program began. */
static const char *started_in(const struct shim_meta *meta)
{
	static const char key[] = "directory=";
	uint32_t at = 0, size = meta->strings_size;

	if (size > SHIM_META_STRINGS)
		size = SHIM_META_STRINGS;
	for (; at < size; at += strnlen(meta->strings + at, size - at) + 1)
		if (!strncmp(meta->strings + at, key, sizeof(key) - 1) &&
		    memchr(meta->strings + at, '\0', size - at))
			return meta->strings + at + sizeof(key) - 1;
	return NULL;
}

void jit_dump_keep(int directory, const struct shim_meta *meta)
{
	const struct place place = { directory, meta };
	const char *places[] = { started_in(meta), "/tmp",
				 getenv("JITDUMPDIR") };
	const char *base = places[2] ? places[2] : getenv("HOME");

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (places[i] && places[i][0] == '/' &&
		    keep_from(&place, places[i]))
			return;
	if (base && base[0] == '/')
		keep_from_agent(&place, base);
}
