/*
 * The entries of a file's linkage tables that jump to what a function chooses when
 * the file is loaded (target_clones, ifunc).  The address of such a function is
 * that of its entry, in the file itself.
 */
#ifndef SHIM_ELF_PLT_H
#define SHIM_ELF_PLT_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct elf_plt_entry {
	uint64_t slot;		/* it jumps through that */
	uint64_t chooser;	/* the function that fills it */
	uint64_t address;	/* the entry; 0: there is none */
};

/* @entries get memory to be given to sys_unmap with *@size, or NULL if there are
 * none.  Addresses are those in the file.  0 or -errno. */
int elf_plt_read(const struct elf_file *file, struct elf_plt_entry **entries,
		 uint32_t *count, size_t *size);

#endif
