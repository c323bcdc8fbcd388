/*
 * Reads ranks in archives (ZIP, without its 64-bit extension).  The entries of a
 * directory follow the directory's own entry, as profrun writes them.  Nothing in
 * an archive is trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "read/files.h"
#include "read/packed.h"

#define CENTRAL_SIGNATURE 0x02014b50u
#define LOCAL_SIGNATURE	  0x04034b50u
#define END_SIGNATURE	  0x06054b50u
#define CENTRAL_SIZE	  46u
#define LOCAL_SIZE	  30u
#define END_SIZE	  22u

/* The best that deflate can do; a damaged size asks for no more memory. */
#define RATIO_MAX 1040u

struct archive {
	const unsigned char *data;
	uint64_t size;
	uint64_t central, central_end;
};

struct entry {
	uint64_t at, next; /* in the central directory */
	const char *name;  /* not terminated */
	size_t length;
	uint32_t method, crc, packed_size, size;
	uint64_t local;
};

static uint32_t get16(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const unsigned char *at)
{
	return get16(at) | get16(at + 2) << 16;
}

/* --- archives and their entries --- */

static void close_archive(const struct archive *archive)
{
	munmap((void *)archive->data, archive->size);
}

/* profrun writes no comment, so the end record is at the end. */
static bool open_archive(struct archive *archive, int fd)
{
	const unsigned char *end;
	struct stat info;
	void *data;

	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) ||
	    (uint64_t)info.st_size < END_SIZE)
		return false;
	archive->size = (uint64_t)info.st_size;
	data = mmap(NULL, archive->size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE,
		    fd, 0);
	if (data == MAP_FAILED)
		return false;
	archive->data = data;
	end = archive->data + archive->size - END_SIZE;
	archive->central = get32(end + 16);
	archive->central_end = archive->central + get32(end + 12);
	if (get32(end) == END_SIGNATURE &&
	    archive->central_end == archive->size - END_SIZE)
		return true;
	close_archive(archive);
	return false;
}

/* No check covers names, but each is there twice. */
static bool has_same_name(const struct archive *archive,
			  const struct entry *entry)
{
	const unsigned char *local = archive->data + entry->local;

	return entry->local <= archive->central &&
	       archive->central - entry->local >= LOCAL_SIZE + entry->length &&
	       get32(local) == LOCAL_SIGNATURE &&
	       get16(local + 26) == entry->length &&
	       memcmp(local + LOCAL_SIZE, entry->name, entry->length) == 0;
}

static bool read_entry(const struct archive *archive, uint64_t at,
		       struct entry *entry)
{
	const unsigned char *bytes = archive->data + at;

	if (at < archive->central || at > archive->central_end ||
	    archive->central_end - at < CENTRAL_SIZE ||
	    get32(bytes) != CENTRAL_SIGNATURE)
		return false;
	*entry = (struct entry){
		.at = at,
		.name = (const char *)bytes + CENTRAL_SIZE,
		.length = get16(bytes + 28),
		.method = get16(bytes + 10),
		.crc = get32(bytes + 16),
		.packed_size = get32(bytes + 20),
		.size = get32(bytes + 24),
		.local = get32(bytes + 42),
	};
	entry->next = at + CENTRAL_SIZE + entry->length + get16(bytes + 30) +
		      get16(bytes + 32);
	return entry->next <= archive->central_end && entry->length > 0 &&
	       !memchr(entry->name, '\0', entry->length) &&
	       has_same_name(archive, entry);
}

static bool is_directory(const struct entry *entry)
{
	return entry->name[entry->length - 1] == '/';
}

/* The name of @entry in @above, without a slash at the end; NULL: it is not
 * there, or further below. */
static const char *name_below(const struct entry *entry,
			      const struct entry *above, size_t *length)
{
	const char *name = entry->name + above->length;

	if (entry->length <= above->length ||
	    memcmp(entry->name, above->name, above->length) != 0)
		return NULL;
	*length = entry->length - above->length - is_directory(entry);
	return *length == 0 || memchr(name, '/', *length) ? NULL : name;
}

static bool is_below(const struct entry *entry, const struct entry *above)
{
	return entry->length > above->length &&
	       memcmp(entry->name, above->name, above->length) == 0;
}

/* The entry that an open directory stands for. */
static bool open_entry(struct archive *archive, int directory,
		       struct entry *entry)
{
	off_t at = lseek(directory, 0, SEEK_CUR);

	if (at < 0 || !open_archive(archive, directory))
		return false;
	if (read_entry(archive, (uint64_t)at, entry) && is_directory(entry))
		return true;
	close_archive(archive);
	return false;
}

static bool find_below(const struct archive *archive, const struct entry *above,
		       const char *wanted, struct entry *entry)
{
	uint64_t at = above->next;
	const char *name;
	size_t length;

	for (; read_entry(archive, at, entry) && is_below(entry, above);
	     at = entry->next) {
		name = name_below(entry, above, &length);
		if (name && strlen(wanted) == length &&
		    memcmp(name, wanted, length) == 0)
			return true;
	}
	return false;
}

/* --- the ranks of a recording --- */

/* All archives in the directories that were asked for; they stay. */
struct ranks {
	dev_t device;
	ino_t inode;
	struct names names;
	struct place {
		const char *file;
		uint64_t at;
	} * places;
	uint32_t room;
};

static struct ranks *known;
static uint32_t known_count, known_room;

static bool is_archive_name(const char *name)
{
	size_t length = strlen(name);

	return length > strlen(PACKED_PREFIX PACKED_SUFFIX) &&
	       !strncmp(name, PACKED_PREFIX, strlen(PACKED_PREFIX)) &&
	       !strcmp(name + length - strlen(PACKED_SUFFIX), PACKED_SUFFIX);
}

/* Whether the processes of a rank on the disk are those of a packed one. */
static bool is_same_rank(int disk, const struct archive *archive,
			 const struct entry *rank)
{
	struct entry entry;
	uint64_t at = rank->next;
	const char *name;
	char copy[256];
	size_t length;

	for (; read_entry(archive, at, &entry) && is_below(&entry, rank);
	     at = entry.next) {
		name = name_below(&entry, rank, &length);
		if (!name || !is_directory(&entry) || length >= sizeof(copy))
			continue;
		memcpy(copy, name, length);
		copy[length] = '\0';
		if (faccessat(disk, copy, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
			return false;
	}
	return true;
}

static void add_rank(struct ranks *ranks, int directory, const char *file,
		     const struct archive *archive, const struct entry *entry)
{
	const char *own = keep_text(entry->name, entry->length - 1);
	const char *name = own;
	int i, disk = openat(directory, own,
			     O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	bool is_there = disk >= 0 && is_same_rank(disk, archive, entry);
	bool is_taken = disk >= 0;

	if (disk >= 0)
		close(disk);
	if (is_there || own[0] == '.')
		return;
	for (i = 1; is_taken || names_find(&ranks->names, name) != NONE; i++) {
		name = i == 1 ? keep_format("%s.packed", own) :
				keep_format("%s.packed.%d", own, i);
		is_taken = false;
	}
	GROW(ranks->places, ranks->names.count, ranks->room);
	ranks->places[names_add(&ranks->names, name)] = (struct place){
		file, entry->at
	};
}

static void add_archive(struct ranks *ranks, int directory, const char *file)
{
	int fd = openat(directory, file,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct archive archive;
	struct entry entry;
	uint64_t at;

	if (fd < 0 || !open_archive(&archive, fd)) {
		warn("%s: cannot be read: its ranks are missing", file);
		if (fd >= 0)
			close(fd);
		return;
	}
	for (at = archive.central; at < archive.central_end; at = entry.next) {
		if (!read_entry(&archive, at, &entry)) {
			warn("%s: damaged: ranks in it are missing", file);
			break;
		}
		if (memchr(entry.name, '/', entry.length) ==
		    entry.name + entry.length - 1)
			add_rank(ranks, directory, file, &archive, &entry);
	}
	close_archive(&archive);
	close(fd);
}

static const struct ranks *ranks_in(int directory)
{
	struct ranks *ranks;
	struct stat info;
	size_t count, i;
	char **files;

	if (fstat(directory, &info) < 0)
		return NULL;
	for (i = 0; i < known_count; i++)
		if (known[i].device == info.st_dev &&
		    known[i].inode == info.st_ino)
			return &known[i];
	GROW(known, known_count, known_room);
	ranks = &known[known_count++];
	*ranks = (struct ranks){ info.st_dev, info.st_ino, { 0 }, NULL, 0 };
	files = list_names(directory, is_archive_name, &count);
	for (i = 0; i < count; i++)
		add_archive(ranks, directory, files[i]);
	free(files);
	return ranks;
}

char **packed_add_names(int directory, char **names, size_t *count)
{
	const struct ranks *ranks = ranks_in(directory);
	uint32_t i;

	if (!ranks || ranks->names.count == 0)
		return names;
	names = grow(names, *count + ranks->names.count, sizeof(*names));
	for (i = 0; i < ranks->names.count; i++)
		names[(*count)++] = (char *)ranks->names.text[i];
	return names;
}

/* --- opening --- */

bool packed_is(int directory)
{
	struct stat info;

	return directory >= 0 && fstat(directory, &info) == 0 &&
	       S_ISREG(info.st_mode);
}

int packed_open_rank(int directory, const char *name)
{
	const char *slash = strchr(name, '/');
	const char *rank = slash ? keep_text(name, (size_t)(slash - name)) :
				   name;
	const struct ranks *ranks = ranks_in(directory);
	uint32_t i = ranks ? names_find(&ranks->names, rank) : NONE;
	int fd, below;

	errno = ENOENT;
	if (i == NONE)
		return -1;
	fd = openat(directory, ranks->places[i].file,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || lseek(fd, (off_t)ranks->places[i].at, SEEK_SET) < 0)
		return fd;
	if (!slash)
		return fd;
	below = packed_open_directory(fd, slash + 1);
	close(fd);
	return below;
}

int packed_open_directory(int directory, const char *name)
{
	struct archive archive;
	struct entry above, entry;
	char path[32];
	int fd = -1;

	if (!open_entry(&archive, directory, &above))
		return -1;
	errno = ENOENT;
	if (find_below(&archive, &above, name, &entry) &&
	    is_directory(&entry)) {
		/* Another position needs another open file. */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", directory);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			lseek(fd, (off_t)entry.at, SEEK_SET);
	}
	close_archive(&archive);
	return fd;
}

bool packed_has(int directory, const char *name)
{
	struct archive archive;
	struct entry above, entry;
	bool found;

	if (!open_entry(&archive, directory, &above))
		return false;
	found = find_below(&archive, &above, name, &entry);
	close_archive(&archive);
	return found;
}

char **packed_list(int directory, bool (*wanted)(const char *), size_t *count)
{
	struct archive archive;
	struct entry above, entry;
	char **names = NULL;
	size_t room = 0, length;
	uint64_t at;

	*count = 0;
	if (!open_entry(&archive, directory, &above))
		return NULL;
	for (at = above.next;
	     read_entry(&archive, at, &entry) && is_below(&entry, &above);
	     at = entry.next) {
		const char *name = name_below(&entry, &above, &length);

		if (!name)
			continue;
		name = keep_text(name, length);
		if (!wanted(name))
			continue;
		GROW(names, *count, room);
		names[(*count)++] = (char *)name;
	}
	close_archive(&archive);
	return names;
}

/* --- content --- */

static bool inflate_all(const unsigned char *from, const struct entry *entry,
			unsigned char *to)
{
	z_stream stream = {
		.next_in = (unsigned char *)from,
		.avail_in = entry->packed_size,
		.next_out = to,
		.avail_out = entry->size,
	};
	int r;

	if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
		return false;
	r = inflate(&stream, Z_FINISH);
	inflateEnd(&stream);
	return r == Z_STREAM_END && stream.avail_out == 0;
}

static bool is_possible(const struct archive *archive,
			const struct entry *entry, uint64_t *content)
{
	const unsigned char *local = archive->data + entry->local;

	if (entry->local > archive->size ||
	    archive->size - entry->local < LOCAL_SIZE ||
	    get32(local) != LOCAL_SIGNATURE)
		return false;
	*content = entry->local + LOCAL_SIZE + get16(local + 26) +
		   get16(local + 28);
	if (*content > archive->size ||
	    archive->size - *content < entry->packed_size)
		return false;
	return entry->method == 0 ?
		       entry->size == entry->packed_size :
		       entry->method == 8 &&
			       entry->size / RATIO_MAX <= entry->packed_size;
}

/* Returns a file in memory; negative, with errno, on failure. */
static int copy_content(const struct archive *archive,
			const struct entry *entry)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);
	unsigned char *to = MAP_FAILED;
	uint64_t at;
	bool is_good;

	errno = EBADMSG;
	if (!is_possible(archive, entry, &at))
		is_good = false;
	else if (entry->size == 0)
		return fd;
	else if (fd < 0 || ftruncate(fd, entry->size) < 0 ||
		 (to = mmap(NULL, entry->size, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0)) == MAP_FAILED)
		is_good = false;
	else if (entry->method == 0)
		is_good = memcpy(to, archive->data + at, entry->size) != NULL;
	else
		is_good = inflate_all(archive->data + at, entry, to);
	if (is_good && crc32(0, to, entry->size) != entry->crc) {
		errno = EBADMSG;
		is_good = false;
	}
	if (to != MAP_FAILED)
		munmap(to, entry->size);
	if (is_good)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

int packed_open_file(int directory, const char *name)
{
	struct archive archive;
	struct entry above, entry;
	int fd = -1;

	if (!open_entry(&archive, directory, &above))
		return -1;
	errno = ENOENT;
	if (find_below(&archive, &above, name, &entry) && !is_directory(&entry))
		fd = copy_content(&archive, &entry);
	close_archive(&archive);
	return fd;
}
