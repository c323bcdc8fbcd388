#define _GNU_SOURCE
#include "recording.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maps the whole file; NULL if it is missing or empty. */
static char *map_file(const char *path, size_t *size)
{
	struct stat status;
	void *memory = MAP_FAILED;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &status) == 0 && status.st_size > 0) {
		*size = (size_t)status.st_size;
		memory = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static void add_lost(struct recording *recording, const uint64_t *lost)
{
	for (int i = 0; i < SHIM_LOST_CAUSES; i++) {
		recording->lost[i] += lost[i];
		recording->lost_all += lost[i];
	}
}

static void read_chunk(struct recording *recording, const char *at,
		       const char *end)
{
	while (at + sizeof(struct shim_node) <= end) {
		const struct shim_node *node = (const void *)at;
		const struct shim_thread_node *thread = (const void *)at;

		switch (node->function >> 48) {
		case 0xffff:
			add_lost(recording, thread->lost);
			at += sizeof(*thread);
			break;
		case 0xfffe: at += sizeof(struct shim_extra_node); break;
		default:
			if (node->function) {
				recording->calls += node->calls;
				recording->open += node->frame != 0;
			}
			at += sizeof(*node);
		}
	}
}

static void read_calltree(struct recording *recording, const char *path)
{
	size_t size;
	char *memory = map_file(path, &size);
	const struct shim_file *file = (const void *)memory;

	recording->files++;
	if (!memory)
		return;
	if (size >= sizeof(*file) && file->version == SHIM_FORMAT_VERSION)
		for (uint32_t i = 0; i < file->chunks; i++) {
			const struct shim_chunk *chunk = &file->chunk[i];

			if (chunk->offset + chunk->size <= size)
				read_chunk(recording, memory + chunk->offset,
					   memory + chunk->offset +
						   chunk->size);
			else
				recording->broken++;
		}
	munmap(memory, size);
}

static void read_process(struct recording *recording, const char *directory)
{
	char path[8192];
	DIR *open = opendir(directory);
	struct dirent *entry;
	struct shim_meta *meta;
	size_t size;

	if (!open)
		return;
	snprintf(path, sizeof(path), "%.7000s/meta", directory);
	meta = (void *)map_file(path, &size);
	if (meta && size >= sizeof(*meta) &&
	    meta->version == SHIM_FORMAT_VERSION) {
		recording->processes++;
		for (int i = 0; i < SHIM_META_THREADS; i++)
			add_lost(recording, meta->lost[i].lost);
	}
	if (meta)
		munmap(meta, size);
	while ((entry = readdir(open))) {
		const char *kind = strchr(entry->d_name, '.');

		snprintf(path, sizeof(path), "%.7000s/%s", directory,
			 entry->d_name);
		if (kind && strcmp(kind, ".calltree") == 0)
			read_calltree(recording, path);
	}
	closedir(open);
}

void recording_read(const char *directory, struct recording *recording)
{
	char path[4096 + 300];
	DIR *open = opendir(directory);
	struct dirent *entry;

	*recording = (struct recording){ 0 };
	while (open && (entry = readdir(open))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.4000s/%s", directory,
			 entry->d_name);
		read_process(recording, path);
	}
	if (open)
		closedir(open);
}

static int remove_one(const char *path, const struct stat *status, int type,
		      struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

void recording_remove(const char *directory)
{
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
