/* Disassembles code of an ELF file; runs in a sandbox, see elf_names.c. */
#ifndef REPORT_NAMES_ELF_CODE_H
#define REPORT_NAMES_ELF_CODE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "names/elf_names.h"

/* Whether the file is for x86-64: only that is decoded. */
bool code_is_readable(Elf *elf);
/* The bytes at @begin, as far as one section has them; NULL: none. */
const unsigned char *code_find(Elf *elf, uint64_t begin, uint64_t *size);

/* The limit of a function's code. */
#define CODE_MOST (1u << 20)

/* @target: where a jump within the file leads; 0: no such jump. */
typedef void take_instruction(uint64_t address, uint64_t target,
			      const char *text);

/* Disassembles the code from @begin to @end, at most CODE_MOST bytes. */
enum names_code code_read(Elf *elf, uint64_t begin, uint64_t end,
			  take_instruction *take);

#endif
