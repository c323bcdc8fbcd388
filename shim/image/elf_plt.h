/*
 * PLT entries of ifuncs (target_clones): an entry jumps to the function that a resolver
 * chooses when the file is loaded.  Inside the file, the address of an ifunc is the
 * address of its entry.
 */
#ifndef SHIM_ELF_PLT_H
#define SHIM_ELF_PLT_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct elf_plt_entry {
	uint64_t slot;	   /* the GOT slot that the entry jumps through */
	uint64_t resolver; /* the resolver, which fills the slot */
	uint64_t address;  /* of the entry; 0: none */
};

/* Stores the entries in *@entries, or NULL if the file has none.  The caller unmaps *@size
 * bytes.  Addresses are those in the file.  Returns 0 or -errno. */
int elf_plt_read(const struct elf_file *file, struct elf_plt_entry **entries,
		 uint32_t *count, size_t *size);

#endif
