/*
 * Buffers for copies of values that profilers get.  Hooks take and return them, so the
 * buffers come from shim's memory, without a lock.  Only the first buffer needs a
 * system call.
 */
#ifndef SHIM_CONTEXT_BUFFERS_H
#define SHIM_CONTEXT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#define CONTEXT_BUFFER_MAX (512u << 10)

/* Takes @size bytes; NULL if @size is too large, or if all buffers are in use.
 * Async. */
void *context_buffer_take(size_t size);

/* Returns a buffer; false if @buffer is not in use.  Async. */
bool context_buffer_give_back(void *buffer);

/* The size that the caller took; 0 if @buffer is not in use.  Async. */
size_t context_buffer_size(const void *buffer);

#endif
