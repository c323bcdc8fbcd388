/*
 * Files of the recording.  shim allocates blocks before it maps them: a store into a
 * hole of a file on a full disk would raise SIGBUS in the program.
 */
#include "runtime/record_file.h"

#include "os/directory.h"
#include "os/opener.h"
#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"
#include "runtime/hole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>

#include <shim/banned.h>

#define NAME_SIZE 48

/* An entry is never freed. */
struct record_file {
	const struct directory *directory;
	uint64_t device, inode; /* of the file that was created */
	uint64_t end;
	unsigned user;
	char name[NAME_SIZE];
};

#define ROOM 4096

/* Allocates small pieces of memory that are never freed. */
static void *allocate_piece(size_t size)
{
	static char *next;
	static size_t left;
	void *memory;

	if (left < size) {
		if (sys_map(ROOM, &memory) < 0)
			return NULL;
		next = memory;
		left = ROOM;
	}
	memory = next;
	next += size;
	left -= size;
	return memory;
}

/* The kernel sends SIGXFSZ to a program whose file grows beyond RLIMIT_FSIZE. */
static int check_size(uint64_t end)
{
	uint64_t limit;

	if (sys_limit(RLIMIT_FSIZE, &limit) == 0 && end > limit)
		return -EFBIG;
	return 0;
}

/* --- opening the same file again --- */

/* O_NONBLOCK, because another process may have replaced the file by a FIFO. */
static int open_by_name(const struct record_file *file, int flags)
{
	int directory = directory_open(file->directory), fd = directory;

	if (directory >= 0) {
		fd = sys_open_at(directory, file->name,
				 flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
					 O_NOCTTY,
				 0600);
		sys_close(directory);
	}
	return fd >= 0 ? fd :
			 opener_help(fd,
				     flags & O_CREAT ? OPENER_CREATE :
						       OPENER_OPEN,
				     file->directory->path, file->name);
}

static int store_identity(int fd, struct record_file *file)
{
	struct sys_status status;
	int r = sys_get_status(fd, &status);

	if (r < 0)
		return r;
	file->device = status.device;
	file->inode = status.inode;
	file->user = status.user;
	return 0;
}

static int check_identity(int fd, const struct record_file *file)
{
	struct sys_status status;
	int r = sys_get_status(fd, &status);

	if (r == 0)
		r = trust_file(&status);
	if (r < 0)
		return r;
	if (status.device != file->device || status.inode != file->inode)
		return -TRUST_REPLACED;
	r = trust_owner(&status, file->user);
	if (r < 0)
		return r;
	return status.size < file->end ? -TRUST_SHORTENED : 0;
}

static int open_again(const struct record_file *file, int flags)
{
	int fd = open_by_name(file, flags), r;

	if (fd < 0)
		return fd;
	r = check_identity(fd, file);
	if (r < 0)
		sys_close(fd);
	return r < 0 ? r : fd;
}

/* Removes the file, so that the next try can use the name. */
static void remove_file(const struct record_file *file)
{
	int directory = directory_open(file->directory), r = directory;

	if (directory >= 0) {
		r = sys_remove_at(directory, file->name);
		sys_close(directory);
	}
	if (r < 0)
		opener_help(r, OPENER_REMOVE, file->directory->path,
			    file->name);
}

/* --- mapping --- */

static int map_part(int fd, struct record_file *file, size_t size,
		    void **memory)
{
	int r = sys_allocate(fd, file->end, size);

	if (r == 0)
		r = sys_map_file(fd, file->end, size, memory);
	if (r < 0)
		return r;
	hole_watch(*memory, size, file->name);
	file->end += size;
	return 0;
}

static int create_mapped(struct record_file *file, size_t size, void **memory)
{
	int fd, r = check_size(size);

	if (r < 0)
		return r;
	fd = open_by_name(file, O_RDWR | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	r = store_identity(fd, file);
	if (r == 0)
		r = map_part(fd, file, size, memory);
	sys_close(fd);
	if (r < 0)
		remove_file(file);
	return r;
}

int record_file_extend(struct record_file *file, size_t size, void **memory)
{
	int fd, r = check_size(file->end + size);

	if (r < 0)
		return r;
	fd = open_again(file, O_RDWR);
	if (fd < 0)
		return fd;
	r = map_part(fd, file, size, memory);
	sys_close(fd);
	return r;
}

int record_file_create(const struct directory *directory, const char *name,
		       size_t size, struct record_file **made, void **memory)
{
	static struct record_file *next;
	struct record_file *file = next ? next : allocate_piece(sizeof(*file));
	struct text text;
	int r;

	next = file;
	if (!file)
		return -ENOMEM;
	file->directory = directory;
	file->end = 0;
	text_init(&text, file->name, sizeof(file->name));
	text_add(&text, name);
	r = create_mapped(file, size, memory);
	if (r == 0) {
		*made = file;
		next = NULL;
	}
	return r;
}

uint64_t record_file_end(const struct record_file *file)
{
	return file->end;
}

/* --- writing without mapping --- */

static int write_all(int fd, uint64_t offset, const char *at, size_t size)
{
	long r;

	while (size > 0) {
		r = sys_write_at(fd, at, size, offset);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? (int)r : -ENOSPC;
		at += r;
		offset += (uint64_t)r;
		size -= (size_t)r;
	}
	return 0;
}

int record_file_write(struct record_file *file, uint64_t offset,
		      const void *memory, size_t size)
{
	uint64_t end = offset + size;
	int fd, r = check_size(end);

	if (r < 0)
		return r;
	fd = open_again(file, O_WRONLY);
	if (fd < 0)
		return fd;
	r = write_all(fd, offset, memory, size);
	sys_close(fd);
	if (r == 0 && file->end < end)
		file->end = end;
	return r;
}
