/*
 * A recipe for a function's result: what the code after a leave hook does to
 * it, as a small program for a machine of our own (run.c), which result.c
 * writes from the instructions and shortens to what the result depends on.
 */
#ifndef SHIM_DECODE_RECIPE_H
#define SHIM_DECODE_RECIPE_H

#include "inspect/prototype.h"

#include <shim/values.h>
#include <stdbool.h>
#include <stdint.h>

/* What an operation reads or writes. */
enum {
	REGISTER_GENERAL = 0,	/* 16, as they are by then */
	REGISTER_KEPT = 16,	/* 16, as they were at the hook: those kept */
	REGISTER_VECTOR = 32,	/* 16 */
	REGISTER_HIGH = 48,	/* the second byte of the first four */
	PLACE_MEMORY = 64,
	PLACE_IMMEDIATE,
	PLACE_NONE,
};

enum operation_code {
	OPERATION_MOVE,		/* more bytes are 0 ... */
	OPERATION_MOVE_SIGNED,	/* ... or the sign */
	OPERATION_ADDRESS,	/* where its memory is */
	OPERATION_SIGN,		/* all bits are the sign */
	OPERATION_INTEGER,
	OPERATION_PAIR,		/* of rax and rdx */
	OPERATION_SET,		/* 1 on @condition, else 0 */
	OPERATION_SELECT,	/* the second on @condition, else the first */
	OPERATION_VECTOR_MOVE,	/* @size bytes; see @offsets, @cleared */
	OPERATION_BROADCAST,	/* @size bytes, again and again in @width */
	OPERATION_SHUFFLE,	/* dwords, by what @immediate says */
	OPERATION_VECTOR,
	OPERATION_FROM_INTEGER,
	OPERATION_TO_INTEGER,
	OPERATION_COMPARE,
	OPERATION_LONG_PUSH,	/* a long double, from memory */
	OPERATION_LONG_COPY,	/* ... from st(@immediate) */
	OPERATION_LONG_POP,	/* to memory, or st(@immediate) */
	OPERATION_LONG_EXCHANGE,
	OPERATION_LONG,
	/* From here on: where it goes on. */
	OPERATION_GUARD,	/* not at all, on @condition */
	OPERATION_BRANCH,	/* at @target, on @condition */
	OPERATION_JUMP,
	OPERATION_STOP,		/* nowhere: @reason */
	OPERATION_RETURN,
	OPERATION_NOTHING,
};

struct operation {
	uint8_t code;
	uint8_t size;		/* in bytes */
	uint8_t to, first, second, third;
	uint8_t from_size;	/* of the second, before it is extended */
	uint8_t condition;	/* the processor's number */
	/* Memory: what it is relative to. */
	uint8_t base, index, scale;
	bool is_thread_local;
	/* Of vectors. */
	uint8_t to_offset, from_offset;
	uint8_t width;		/* 16 or 32 */
	uint8_t cleared;	/* bytes that are 0 if they are not written */
	uint8_t scalar;		/* so many are computed; the first's follow */
	bool is_unary;		/* the first is not computed with */
	uint16_t number;	/* in operations.def, and the form */
	uint16_t target;
	uint8_t reason;
	bool sets_flags;
	bool tests_flags;	/* looks at those there were */
	bool keeps_flags;	/* sets some, others stay as they were */
	int64_t immediate;
	int64_t displacement;
};

/* What most recipes are: one value, that of a kept register and so much more, or
 * what is in memory there. */
struct decode_simple {
	bool is_simple;
	bool is_loaded;
	uint8_t size;		/* of what is loaded */
	uint8_t number;		/* of the register; 0: there is none */
	uint8_t return_number;	/* where `ret` finds its address, the same way */
	int32_t return_offset;
	int64_t offset;
};

struct decode_recipe {
	uint32_t size;		/* of all this, in bytes */
	uint8_t reason;		/* why there is nothing to run; 0 */
	bool is_whole;		/* in one vector register */
	bool is_split;		/* in the lower halves of two */
	bool is_address;	/* rax says where the result is */
	uint8_t long_count;	/* in so many registers for long doubles */
	uint8_t classes[2];	/* else; of enum prototype_class */
	bool copies;		/* kept registers are written in part */
	uint16_t count;
	uint32_t result_size;
	struct decode_simple simple;
	struct operation operations[];
};

#define STORES_MAX 16
#define LONGS_MAX  8

struct store {
	uintptr_t address;
	uint32_t size;
	unsigned char bytes[32];
};

/* operations.S knows its layout. */
struct operands {
	unsigned char a[32], b[32], c[32];
	uint64_t first, second, pair, flags;
};

/* Of a thread: programs may have little stack. */
struct decode_machine {
	uint64_t registers[32];
	unsigned char vectors[16][32];
	unsigned char longs[LONGS_MAX][16];
	uint64_t flags;
	uint32_t long_count, store_count;
	/* What was written to memory: the program will do it itself. */
	struct store stores[STORES_MAX];
	struct operands operands;
	unsigned char result[32];
};

enum operation_kind {
	KIND_INTEGER,
	KIND_INTEGER_UNARY,
	KIND_INTEGER_SHIFT,
	KIND_INTEGER_WIDE,
	KIND_INTEGER_SWAP,
	KIND_INTEGER_LAST,
	KIND_INTEGER_COUNT,
	KIND_INTEGER_ONLY,
	KIND_INTEGER_PAIR,
	KIND_SCALAR,
	KIND_SCALAR_UNARY,
	KIND_FROM_INTEGER,
	KIND_TO_INTEGER,
	KIND_COMPARE,
	KIND_PACKED,
	KIND_PACKED_SHIFT,
	KIND_PACKED_UNARY,
	KIND_NARROW,
	KIND_NARROW_UNARY,
	KIND_FUSED,
	KIND_FUSED_PACKED,
	KIND_LONG_DOUBLE,
	KIND_LONG_DOUBLE_UNARY,
};

/* run.c.  No system call, no lock, no memory but the machine's; all registers but
 * those in operations.S are general ones. */
enum shim_unavailable decode_run(const struct decode_recipe *recipe,
				 struct decode_machine *machine,
				 uintptr_t site, uintptr_t *start);

#endif
