/*
 * Reading an ELF file by ourselves: libelf would be a second dependency of
 * libshim.so, which has libc alone, and allocates.  Nothing in a file is
 * trusted.  Files are read, not mapped: who shortens a mapped file kills the
 * program.
 */
#ifndef SHIM_ELF_FILE_H
#define SHIM_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_entry;

/* A file, or (the vdso) memory. */
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
	uint32_t names; /* the section with their names */
};

/*
 * Opens the file @image came from and reads its section headers.  0 or -errno;
 * -ENOENT if another has its name now.  Where a file system tells two device
 * numbers for a file the build-id decides.
 */
int elf_open(const struct image_entry *image, struct elf_file *file);
void elf_close(struct elf_file *file);
/* Whether @error is the system's: the file may be there and have everything. */
bool elf_is_refused(int error);

/* The contents of section @number with a NUL behind them, to be given to
 * sys_unmap with *@size + 1.  0 or -errno. */
int elf_load_section(const struct elf_file *file, uint32_t number,
		     void **memory, size_t *size);

#endif
