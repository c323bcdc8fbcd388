/*
 * Buffers for copies of values that profilers get.  Hooks take and return them, so they
 * come from shim's memory, without a lock, and without a system call except for the
 * first.
 */
#ifndef SHIM_CONTEXT_BUFFERS_H
#define SHIM_CONTEXT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#define CONTEXT_BUFFER_MAX (512u << 10)

/* Takes @size bytes; NULL if that is too much, or all are in use.  Async. */
void *context_buffer_take(size_t size);

/* Returns a buffer; false if @buffer is none.  Async. */
bool context_buffer_give_back(void *buffer);

/* The size that the caller took; 0 if @buffer is none.  Async. */
size_t context_buffer_size(const void *buffer);

#endif
