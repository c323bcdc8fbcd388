/*
 * The program's code as it was before shim set traps in it.
 */
#ifndef SHIM_CODE_BYTES_H
#define SHIM_CODE_BYTES_H

#include "runtime/subscribe.h"

#include <stddef.h>
#include <stdint.h>

/* Subscribers replace their traps in @copy, a copy of the @size bytes at @address.  Async. */
TOPIC(code_copied, uintptr_t address, unsigned char *copy, size_t size);

/* Restores what the traps in @copy have replaced. */
void code_bytes_restore(uintptr_t address, unsigned char *copy, size_t size);

/* Copies the code at @address to @to; -EFAULT if it is not mapped. */
int code_bytes_read(uintptr_t address, void *to, size_t size);

#endif
