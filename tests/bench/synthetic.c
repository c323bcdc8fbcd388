/*
 * Makes the recording of a job from that of one rank:
 *
 *     synthetic TEMPLATE JOB FIRST COUNT
 *
 * writes the ranks FIRST to FIRST+COUNT-1 into the directory JOB.  Each rank has the
 * files of TEMPLATE, with its objects at other addresses, as if loaded elsewhere, and
 * with 9/16 to 16/16 of the times of its calls.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <shim/format.h>

#define FILES 64
#define STEP  0x10000000ull /* between the addresses of two ranks */

static struct file {
	char name[600];
	size_t size;
	unsigned char *data;
} files[FILES];
static int file_count;
static char process[128];

static void fail(const char *name)
{
	fprintf(stderr, "synthetic: %s: %s\n", name, strerror(errno));
	exit(1);
}

static void read_file(int directory, const char *name, const char *as)
{
	struct file *file = &files[file_count++];
	int fd = openat(directory, name, O_RDONLY);
	struct stat info;

	if (file_count == FILES || fd < 0 || fstat(fd, &info) < 0)
		fail(name);
	snprintf(file->name, sizeof(file->name), "%s", as);
	file->size = info.st_size;
	file->data = malloc(file->size + 1);
	if (read(fd, file->data, file->size) != (ssize_t)file->size)
		fail(name);
	close(fd);
}

static void read_template(const char *path)
{
	int top = open(path, O_RDONLY | O_DIRECTORY), below;
	DIR *stream = fdopendir(top);
	struct dirent *entry;
	char as[600];

	if (!stream)
		fail(path);
	while ((entry = readdir(stream)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			snprintf(process, sizeof(process), "%.120s",
				 entry->d_name);
	read_file(top, "end", "end");
	below = openat(top, process, O_RDONLY | O_DIRECTORY);
	stream = fdopendir(below);
	if (!stream)
		fail(process);
	while ((entry = readdir(stream)))
		if (entry->d_name[0] != '.') {
			snprintf(as, sizeof(as), "%s/%s", process,
				 entry->d_name);
			read_file(below, entry->d_name, as);
		}
}

static void shift_images(struct file *file, uint64_t shift)
{
	struct shim_images *header = (struct shim_images *)file->data;
	size_t at = header->header_size;

	while (at + sizeof(struct shim_image_record) <= file->size) {
		struct shim_image_record *record =
			(struct shim_image_record *)(file->data + at);

		if (record->size == 0)
			break;
		record->start += shift;
		record->end += shift;
		record->bias += shift;
		at += record->size;
	}
}

/* A template of plain nodes: calltree, without =exact or others. */
static void change_nodes(struct file *file, uint64_t shift, unsigned times)
{
	struct shim_file *header = (struct shim_file *)file->data;
	uint32_t c;

	for (c = 0; c < header->chunks; c++) {
		unsigned char *at = file->data + header->chunk[c].offset;
		unsigned char *end = at + header->chunk[c].size;

		if (end > file->data + file->size)
			end = file->data + file->size;
		for (; at + 64 <= end; at += sizeof(struct shim_node)) {
			struct shim_node *node = (struct shim_node *)at;

			if (node->function >> 48 == SHIM_NODE_THREAD >> 48)
				at += 64;
			else if (node->function) {
				node->function += shift;
				node->time = node->time * times / 16;
				if (node->extra & SHIM_EXTRA_SELF)
					node->extra = node->extra / 2 * times /
							      16 * 2 |
						      1;
			}
		}
	}
}

/* The unwritten end of a file stays a hole. */
static void write_file(const char *directory, const struct file *file)
{
	char path[4096];
	size_t at, size;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file->name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || ftruncate(fd, file->size) < 0)
		fail(path);
	for (at = 0; at < file->size; at += size) {
		static const unsigned char zeros[4096];

		size = file->size - at < 4096 ? file->size - at : 4096;
		if (memcmp(file->data + at, zeros, size) &&
		    pwrite(fd, file->data + at, size, at) != (ssize_t)size)
			fail(path);
	}
	close(fd);
}

static int is_tree(const struct file *file)
{
	return strstr(file->name, ".calltree") != NULL;
}

static void write_rank(const char *job, unsigned rank)
{
	unsigned times = 9 + rank * 2654435761u % 8, i;
	char directory[4096 - 128], path[4096];

	snprintf(directory, sizeof(directory), "%s/rank.%u", job, rank);
	snprintf(path, sizeof(path), "%s/%s", directory, process);
	if (mkdir(directory, 0700) < 0 || mkdir(path, 0700) < 0)
		fail(path);
	for (i = 0; i < (unsigned)file_count; i++) {
		struct file changed = files[i];

		changed.data = malloc(changed.size + 1);
		memcpy(changed.data, files[i].data, changed.size);
		if (is_tree(&changed))
			change_nodes(&changed, rank * STEP, times);
		else if (strstr(changed.name, "/images"))
			shift_images(&changed, rank * STEP);
		write_file(directory, &changed);
		free(changed.data);
	}
}

int main(int argc, char **argv)
{
	unsigned rank, first, count;

	if (argc != 5) {
		fputs("usage: synthetic TEMPLATE JOB FIRST COUNT\n", stderr);
		return 2;
	}
	read_template(argv[1]);
	mkdir(argv[2], 0700);
	first = strtoul(argv[3], NULL, 10);
	count = strtoul(argv[4], NULL, 10);
	for (rank = first; rank < first + count; rank++)
		write_rank(argv[2], rank);
	return 0;
}
