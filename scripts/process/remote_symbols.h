/* Finds functions in the memory of another process. */
#ifndef PROCESS_REMOTE_SYMBOLS_H
#define PROCESS_REMOTE_SYMBOLS_H

#include <stdint.h>

#include "process/remote.h"

/* Forgets what was read: files may have been unmapped. */
void remote_symbols_forget(void);

/* The address of the symbol @name of the ELF file that is mapped at @start; 0: none. */
uint64_t remote_symbol(const struct remote *remote, uint64_t start,
		       const char *name);

/* Stores the name of the exported function that contains @address.  False if none does. */
bool remote_function(const struct remote *remote, uint64_t start,
		     uint64_t address, char name[64]);

/* The entry point of the ELF file at @start; 0: unknown. */
uint64_t remote_entry(const struct remote *remote, uint64_t start);

/* The address of the bytes @code in the code of the ELF file at @start; 0: none. */
uint64_t remote_code(const struct remote *remote, uint64_t start,
		     const void *code, size_t size);

#endif
