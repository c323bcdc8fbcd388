/*
 * Requests about the symbols of one object: each function answers one.
 */
#ifndef REPORT_NAMES_ELF_SYMBOLS_H
#define REPORT_NAMES_ELF_SYMBOLS_H

#include <stdint.h>

/* The best name of the function around each of @count addresses. */
void elf_find_functions(uint32_t count);
/* All functions with their best names. */
void elf_list_functions(void);
/* The variable around each of @count addresses. */
void elf_find_variables(uint32_t count);
/* All names of the functions that begin at these addresses. */
void elf_find_all_names(uint32_t count);

#endif
