/*
 * The copies of values that profilers are given.  They are taken and given back
 * in the program's place, so they come from memory of ours, without a lock and
 * without a system call but for the first.
 */
#ifndef SHIM_CONTEXT_BUFFERS_H
#define SHIM_CONTEXT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#define CONTEXT_BUFFER_MAX (512u << 10)

/* @size bytes, or NULL: it is too much, or all are in use.  Async. */
void *context_buffer_take(size_t size);

/* What was taken; false: @buffer is none.  Async. */
bool context_buffer_give_back(void *buffer);

/* The size that was asked for; 0: @buffer is none.  Async. */
size_t context_buffer_size(const void *buffer);

#endif
