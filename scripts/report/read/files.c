/*
 * Maps the files of a recording.  Only regular files are read, no symbolic link
 * is followed, and a file that shrinks while it is mapped reads as zero.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/messages.h"
#include "read/files.h"
#include "read/packed.h"

static uintptr_t page_size;

/*
 * A file can shrink while it is mapped.  The lost part then reads as zero, like
 * parts that were never written.
 */
static void fill_page(int number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(page_size - 1);

	(void)context;
	if (info->si_code != BUS_ADRERR ||
	    mmap((void *)page, page_size, PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
}

void survive_truncation(void)
{
	struct sigaction action = { .sa_sigaction = fill_page,
				    .sa_flags = SA_SIGINFO };

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigaction(SIGBUS, &action, NULL);
}

/*
 * For tests: a copy that ends where the file ends, so that a sanitizer detects
 * a read beyond the end, which it cannot detect in a mapping.
 */
static void *copy_file(int fd, uint64_t size)
{
#ifdef REPORT_COPIES_FILES
	char *data = size < 64u << 20 ? malloc(size) : NULL;

	if (data && pread(fd, data, size, 0) == (ssize_t)size)
		return data;
	free(data);
#endif
	(void)fd;
	(void)size;
	return NULL;
}

void unmap_file(const unsigned char *data, uint64_t size)
{
#ifdef REPORT_COPIES_FILES
	if (size < 64u << 20) {
		free((void *)data);
		return;
	}
#endif
	munmap((void *)data, size);
}

const unsigned char *map_file(int fd, const char *name, uint64_t *size)
{
	struct stat info;
	void *data;

	if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
		warn("%s: not a regular file", name);
		return NULL;
	}
	if (info.st_size == 0) {
		warn("%s: empty: the program ended while it made this file, or still makes it",
		     name);
		return NULL;
	}
	*size = (uint64_t)info.st_size;
	data = copy_file(fd, *size);
	if (data)
		return data;
	data = mmap(NULL, *size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (data == MAP_FAILED) {
		warn("%s: cannot map it: %s", name, strerror(errno));
		return NULL;
	}
	return data;
}

void check_version(const char *name, uint32_t version)
{
	if (version < SHIM_FORMAT_VERSION ||
	    version > SHIM_FORMAT_VERSION_GROUPS)
		die("%s: format version %u, this reader knows %u and %u", name,
		    version, SHIM_FORMAT_VERSION, SHIM_FORMAT_VERSION_GROUPS);
}

static bool check_chunk(const char *name, uint64_t size,
			struct shim_chunk *chunk, uint64_t earliest,
			uint32_t number)
{
	uint64_t at = offsetof(struct shim_file, chunk) +
		      number * sizeof(*chunk);

	if (chunk->offset < earliest || chunk->offset % 8 ||
	    chunk->address % 8 || chunk->size > UINT64_MAX - chunk->address) {
		warn("%s: at offset %" PRIu64
		     ": chunk %u is invalid (offset %" PRIu64 ", size %" PRIu64
		     "); its content is lost",
		     name, at, number, chunk->offset, chunk->size);
		return false;
	}
	if (chunk->offset > size || chunk->size > size - chunk->offset) {
		warn("%s: cut at offset %" PRIu64 ": chunk %u should reach "
		     "%" PRIu64 "; the rest is missing",
		     name, size, number, chunk->offset + chunk->size);
		chunk->size = chunk->offset > size ? 0 : size - chunk->offset;
	}
	return true;
}

uint32_t read_chunks(const char *name, uint64_t size,
		     const struct shim_file *header,
		     struct shim_chunk chunks[SHIM_FILE_CHUNKS])
{
	uint32_t i, good = 0, count = header->chunks;
	uint64_t earliest = sizeof(*header);
	struct shim_chunk chunk;

	if (header->header_size > earliest)
		earliest = header->header_size;
	if (count > SHIM_FILE_CHUNKS) {
		warn("%s: at offset %zu: %u chunks, at most %u can be", name,
		     offsetof(struct shim_file, chunks), count,
		     SHIM_FILE_CHUNKS);
		count = SHIM_FILE_CHUNKS;
	}
	for (i = 0; i < count; i++) {
		chunk = header->chunk[i];
		if (chunk.size == 0 ||
		    !check_chunk(name, size, &chunk, earliest, i))
			continue;
		earliest = chunk.offset + chunk.size;
		/* One that begins behind the end of a cut file has nothing. */
		if (chunk.size > 0)
			chunks[good++] = chunk;
	}
	return good;
}

/* The writer stores the version last: a file without a version has no content
 * yet. */
bool is_unfinished(const char *name, uint32_t version)
{
	if (version == 0)
		warn("%s: the program ended while it made this file, or still makes it",
		     name);
	return version == 0;
}

static int failure; /* errno of the last open that failed */

const char *open_failure(void)
{
	if (failure == EMFILE)
		return "too many open files (raise the limit, ulimit -n, and run "
		       "profrun report)";
	return failure ? strerror(failure) : NULL;
}

/* NONBLOCK: the file might be a pipe that an attacker put there. */
int open_in(int directory, const char *file, const char *name)
{
	int fd = packed_is(directory) ?
			 packed_open_file(directory, file) :
			 openat(directory, file,
				O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
					O_NOCTTY);

	if (fd < 0) {
		/* What is missing was not made: the disk was full, say. */
		if (errno != ENOENT)
			failure = errno;
		warn("%s: %s", name, strerror(errno));
	}
	return fd;
}

static int compare_numbered(const void *left, const void *right)
{
	return strverscmp(*(char *const *)left, *(char *const *)right);
}

static char **list_on_disk(int directory, bool (*wanted)(const char *),
			   size_t *count)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	char **names = NULL;
	size_t room = 0;

	*count = 0;
	while (stream && (entry = readdir(stream))) {
		if (!wanted(entry->d_name))
			continue;
		GROW(names, *count, room);
		names[(*count)++] = (char *)keep_text(entry->d_name, SIZE_MAX);
	}
	if (stream)
		closedir(stream);
	return names;
}

void sort_names(char **names, size_t count)
{
	if (count)
		qsort(names, count, sizeof(*names), compare_numbered);
}

char **list_names(int directory, bool (*wanted)(const char *), size_t *count)
{
	char **names = packed_is(directory) ?
			       packed_list(directory, wanted, count) :
			       list_on_disk(directory, wanted, count);

	sort_names(names, *count);
	return names;
}

bool has_file(int directory, const char *name)
{
	return packed_is(directory) ? packed_has(directory, name) :
				      faccessat(directory, name, F_OK,
						AT_SYMLINK_NOFOLLOW) == 0;
}

int try_directory(int directory, const char *name)
{
	int fd;

	if (packed_is(directory))
		return packed_open_directory(directory, name);
	fd = openat(directory, name,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW |
			    O_NONBLOCK);
	return fd < 0 && errno == ENOENT ? packed_open_rank(directory, name) :
					   fd;
}

int open_directory(int directory, const char *path, const char *name)
{
	int fd = try_directory(directory, name);

	if (fd < 0) {
		failure = errno;
		warn("%s/%s: %s", path, name, strerror(errno));
	}
	return fd;
}
