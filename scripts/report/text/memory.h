/* Prints the tables of memory. */
#ifndef REPORT_TEXT_MEMORY_H
#define REPORT_TEXT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory;
struct options;
struct layout;

void memory_print(const struct layout *layout);
/* The value of a function or path by which --sort sorts, its name, and whether
 * it is in bytes. */
uint64_t memory_sorted(const struct memory *memory,
		       const struct options *options);
const char *memory_sorted_name(const struct options *options);
bool memory_sorts_bytes(const struct options *options);

#endif
