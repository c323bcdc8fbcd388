/*
 * Reads ELF files without libelf: libshim.so depends on libc only, and libelf allocates
 * memory.  The code trusts no value in a file.  It reads files and does not map them:
 * if another process truncated a mapped file, the program would get SIGBUS.
 */
#ifndef SHIM_ELF_FILE_H
#define SHIM_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_entry;

/* A file, or memory (for the vdso, and for files inside of others). */
struct elf_source {
	int fd; /* -1: memory */
	uintptr_t memory;
	uint64_t size;
	bool is_ours; /* elf_close unmaps the memory */
};

struct elf_file {
	struct elf_source source;
	Elf64_Shdr *sections;
	uint32_t section_count;
	/* The sections, and what is before them in the file. */
	char *memory;
	size_t memory_size, lead_size;
	uint64_t sections_offset;
	uint32_t names; /* the number of the section with sections' names */
};

/*
 * Opens the file of @image and reads its section headers.  Returns 0 or -errno; -ENOENT
 * if another file has its name now.  If the image has a build-id, it compares
 * build-ids, because some file systems report two device numbers for a file.
 */
int elf_open(const struct image_entry *image, struct elf_file *file);
/* Opens any file.  Returns 0 or -errno. */
int elf_open_path(const char *path, struct elf_file *file);
/* Opens a file in memory that elf_close unmaps; also elf_open_memory does if it fails. */
int elf_open_memory(void *memory, size_t size, struct elf_file *file);
void elf_close(struct elf_file *file);
/* Whether the file has the build-id of @image: 1 or 0; -errno if it cannot be read. */
int elf_has_build_id(const struct elf_file *file,
		     const struct image_entry *image);
/* Reads @size bytes at @offset.  Returns 0 or -errno; -ENOEXEC if the file is too short. */
int elf_read(const struct elf_source *source, uint64_t offset, void *to,
	     size_t size);
/* Whether @error is a failure of the system, so that the file itself may be complete. */
bool elf_is_refused(int error);

/* The names of sections, if elf_open has read them: most files have them right before the
 * headers.  *@size bytes, valid until elf_close; some NUL follows.  NULL: elf_load_section
 * reads them. */
const char *elf_names(const struct elf_file *file, size_t *size);

/* Reads section @number into *@memory, followed by a NUL.  The caller unmaps *@size + 1
 * bytes.  Returns 0 or -errno. */
int elf_load_section(const struct elf_file *file, uint32_t number,
		     void **memory, size_t *size);
/* Does the same with the first section of this name; -ENOENT without one. */
int elf_load_named(const struct elf_file *file, const char *name, void **memory,
		   size_t *size);

#endif
