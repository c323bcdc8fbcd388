/*
 * Reads ELF files without libelf: libshim.so depends on libc only, and libelf
 * allocates.  Nothing in a file is trusted.  Files are read, not mapped: if another
 * process truncates a mapped file, the program gets SIGBUS.
 */
#ifndef SHIM_ELF_FILE_H
#define SHIM_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_entry;

/* A file, or memory (for the vdso). */
struct elf_source {
	int fd; /* -1: memory */
	uintptr_t memory;
	uint64_t size;
};

struct elf_file {
	struct elf_source source;
	Elf64_Shdr *sections;
	size_t sections_size;
	uint32_t section_count;
	uint32_t names; /* the section with the names of sections */
};

/*
 * Opens the file of @image and reads its section headers.  Returns 0 or -errno;
 * -ENOENT if another file has its name now.  The build-id decides that, if the image
 * has one: some file systems report two device numbers for a file.
 */
int elf_open(const struct image_entry *image, struct elf_file *file);
void elf_close(struct elf_file *file);
/* Whether @error is a failure of the system: the file itself may be complete. */
bool elf_is_refused(int error);

/* Reads section @number into *@memory, with a NUL behind it; the caller calls
 * sys_unmap with *@size + 1.  Returns 0 or -errno. */
int elf_load_section(const struct elf_file *file, uint32_t number,
		     void **memory, size_t *size);

#endif
