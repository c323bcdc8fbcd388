/* Reads the mappings and the memory of a running process. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "process/process_memory.h"

static bool read_process(struct space *space, uint64_t address, void *bytes,
			 size_t size)
{
	const struct process_memory *memory = (void *)space;
	struct iovec to = { bytes, size };
	struct iovec from = { (void *)(uintptr_t)address, size };

	return process_vm_readv(memory->target->pid, &to, 1, &from, 1, 0) ==
	       (ssize_t)size;
}

/* --- mappings --- */

/* The kernel writes a newline as \012. */
static void restore_newlines(char *path)
{
	char *at = path;

	while ((at = strstr(at, "\\012")) != NULL) {
		*at++ = '\n';
		memmove(at, at + 3, strlen(at + 3) + 1);
	}
}

static void add_line(struct process_memory *memory, char *line,
		     const char *root, uint64_t *known_hash)
{
	uint64_t start, end, offset, inode;
	char rights[5], *path;
	int at = 0;
	size_t i;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n",
		   &start, &end, rights, &offset, &inode, &at) != 5 ||
	    at == 0)
		return;
	path = line + at;
	/* Mappings have the numbers of their modules, which may be data files. */
	if (path[0] == '/')
		for (i = 0; line[i]; i++)
			*known_hash = (*known_hash ^ (unsigned char)line[i]) *
				      0x100000001b3ull;
	restore_newlines(path);
	space_add(&memory->space, start, end, offset, rights[1] == 'w',
		  path[0] ? path : NULL, root);
}

bool process_memory_read(struct process_memory *memory, bool *changed)
{
	struct space *space = &memory->space, before = *space;
	char path[64], root[32], *line = NULL;
	uint64_t known_hash = 0xcbf29ce484222325ull;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)memory->target->pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	*space = (struct space){ .read = read_process };
	target_root(memory->target->pid, root);
	while (getline(&line, &size, file) > 0)
		add_line(memory, line, root, &known_hash);
	free(line);
	fclose(file);
	if (space->mapping_count == 0) /* it is about to end */
		errno = ESRCH;
	*changed = known_hash != memory->known;
	memory->known = known_hash;
	if (*changed) {
		space_clear(&before);
		free(before.mappings);
		free(before.modules);
		free(before.page);
		return space->mapping_count > 0;
	}
	/* The modules are the same, so their data is kept. */
	free(space->modules);
	space->modules = before.modules;
	space->module_count = before.module_count;
	space->module_room = before.module_room;
	space->pages = before.pages;
	space->page = before.page;
	space->page_count = before.page_count;
	space->page_room = before.page_room;
	free(before.mappings);
	return space->mapping_count > 0;
}
