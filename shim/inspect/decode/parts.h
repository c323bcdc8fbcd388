/* Which parts of the registers an operation reads and writes. */
#ifndef SHIM_DECODE_PARTS_H
#define SHIM_DECODE_PARTS_H

#include "inspect/decode/decode.h"

#include <stdbool.h>
#include <stdint.h>

/* Registers by their separately written parts: general ones have the first byte, the
 * second and the rest; vectors have 4, 4, 8 and 16 bytes. */
struct parts {
	uint64_t general, vectors;
};

#define PARTS_FLAGS (1ull << 48)
#define PARTS_LONGS (1ull << 49)

/* The parts of @size bytes in the general register @place; 0: it is none. */
uint64_t parts_of_general(unsigned place, uint32_t size);
/* The parts that @size bytes from byte @from of the vector @place touch; 0: it is none. */
uint64_t parts_of_vector(unsigned place, uint32_t from, uint32_t size);
void parts_add(struct parts *parts, unsigned place, uint32_t offset,
	       uint32_t size);

/* The parts that the operation reads if the parts in @after are live after it. */
struct parts parts_read(const struct operation *operation,
			const struct parts *after);
struct parts parts_written(const struct operation *operation);

bool operation_uses_memory(const struct operation *operation);
bool operation_is_flow(const struct operation *operation);
bool operation_is_long(const struct operation *operation);
/* `xor %eax, %eax`: the result does not depend on the register. */
bool operation_is_zero(const struct operation *operation);

#endif
