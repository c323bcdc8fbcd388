/*
 * A recipe for a function's result is a small program for an interpreter (run.c), which
 * computes the same as the code after a leave hook.  result.c makes it from the
 * instructions and keeps only operations on which the result depends.
 */
#ifndef SHIM_DECODE_RECIPE_H
#define SHIM_DECODE_RECIPE_H

#include "inspect/prototype.h"

#include <shim/values.h>
#include <stdbool.h>
#include <stdint.h>

/* Operands of operations. */
enum {
	REGISTER_GENERAL = 0, /* 16, current values */
	REGISTER_KEPT = 16,   /* 16, with the callee-saved values at the hook */
	REGISTER_VECTOR = 32, /* 16 */
	REGISTER_HIGH = 48,   /* the second byte of the first four */
	PLACE_MEMORY = 64,
	PLACE_IMMEDIATE,
	PLACE_NONE,
};

enum operation_code {
	OPERATION_MOVE,	       /* zero-extends */
	OPERATION_MOVE_SIGNED, /* sign-extends */
	OPERATION_ADDRESS,     /* the address of its memory operand */
	OPERATION_SIGN,	       /* all bits are the sign */
	OPERATION_INTEGER,
	OPERATION_PAIR,	       /* of rax and rdx */
	OPERATION_SET,	       /* 1 if @condition, else 0 */
	OPERATION_SELECT,      /* the second if @condition, else the first */
	OPERATION_VECTOR_MOVE, /* @size bytes; see @offsets, @cleared */
	OPERATION_BROADCAST,   /* @size bytes, repeated in @width */
	OPERATION_SHUFFLE,     /* dwords, by @immediate */
	OPERATION_VECTOR,
	OPERATION_FROM_INTEGER,
	OPERATION_TO_INTEGER,
	OPERATION_COMPARE,
	OPERATION_LONG_PUSH, /* a long double, from memory */
	OPERATION_LONG_COPY, /* pushes st(@immediate) */
	OPERATION_LONG_POP,  /* to memory, or st(@immediate) */
	OPERATION_LONG_EXCHANGE,
	OPERATION_LONG,
	/* The operations below are control flow. */
	OPERATION_GUARD,  /* stops if @condition */
	OPERATION_BRANCH, /* goes to @target if @condition */
	OPERATION_JUMP,
	OPERATION_STOP, /* stops with @reason */
	OPERATION_RETURN,
	OPERATION_NOTHING,
};

struct operation {
	uint8_t code;
	uint8_t size; /* in bytes */
	uint8_t to, first, second, third;
	uint8_t from_size; /* size of the second before it is extended */
	uint8_t condition; /* the processor's number */
	/* The address of a memory operand. */
	uint8_t base, index, scale;
	bool is_thread_local;
	/* For vectors. */
	uint8_t to_offset, from_offset;
	uint8_t width;	 /* 16 or 32 */
	uint8_t cleared; /* bytes that become 0 if not written */
	uint8_t scalar;	 /* bytes computed; the rest come from the first */
	bool is_unary;	 /* does not use the first operand */
	uint16_t number; /* of operations.def, with the form */
	uint16_t target;
	uint8_t reason;
	bool sets_flags;
	bool tests_flags; /* reads the flags before it */
	bool keeps_flags; /* sets only some flags */
	int64_t immediate;
	int64_t displacement;
};

/* The simple form of most recipes: the result is a callee-saved register plus @offset,
 * or is in memory at that address. */
struct decode_simple {
	bool is_simple;
	bool is_loaded;
	uint8_t size;	       /* of the value in memory */
	uint8_t number;	       /* of the register; 0: none */
	uint8_t return_number; /* register for the address that `ret` reads */
	int32_t return_offset;
	int64_t offset;
};

struct decode_recipe {
	uint32_t size;	 /* of the whole recipe, in bytes */
	uint8_t reason;	 /* why it cannot run; or 0 */
	bool is_whole;	 /* the result is in one vector register */
	bool is_split;	 /* the result is in the lower halves of two */
	bool is_address; /* rax points to the result */
	uint8_t long_count; /* the result is in this many x87 registers; 0: not there */
	uint8_t classes
		[2]; /* of a result in other registers; enum prototype_class */
	bool copies; /* callee-saved registers are partly written */
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

/* operations.S uses this layout. */
struct operands {
	unsigned char a[32], b[32], c[32];
	uint64_t first, second, pair, flags;
};

/* Memory of the thread, because the program's stack may be small. */
struct decode_machine {
	uint64_t registers[32];
	unsigned char vectors[16][32];
	unsigned char longs[LONGS_MAX][16];
	uint64_t flags;
	uint32_t long_count, store_count;
	/* Writes to memory, which the program will make itself. */
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

/* run.c.  decode_run makes no system call, takes no lock, and writes only to @machine.
 * Only operations.S uses other than general registers. */
enum shim_unavailable decode_run(const struct decode_recipe *recipe,
				 struct decode_machine *machine, uintptr_t site,
				 uintptr_t *start);

#endif
