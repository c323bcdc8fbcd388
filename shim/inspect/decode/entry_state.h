/*
 * Tracks which registers and stack slots contain values from the entry of a function,
 * after some of its instructions.
 *
 * A value is identified by its location at the entry: a register, or an offset from the
 * stack pointer.
 */
#ifndef SHIM_DECODE_ENTRY_STATE_H
#define SHIM_DECODE_ENTRY_STATE_H

#include "inspect/decode/decode.h"
#include "inspect/decode/instruction.h"

#define SLOTS_MAX 64
#define SP	  DECODE_SP
#define BP	  5
#define VECTOR	  16 /* number of the first vector register */

enum origin {
	UNKNOWN,
	ENTRY,	 /* register @number at the entry */
	ADDRESS, /* the stack pointer at the entry, plus @number */
	ALIGNED, /* the stack pointer after its alignment, plus @number */
	ZERO,
};

struct value {
	enum origin origin;
	uint32_t size;	/* known bytes, from the lowest */
	uint32_t shift; /* bytes of the register below the lowest */
	int64_t number;
};

struct slot {
	enum origin base; /* ADDRESS or ALIGNED */
	int64_t offset;
	uint32_t size;
	struct value value;
};

struct state {
	struct value registers[2 * VECTOR];
	struct slot slots[SLOTS_MAX];
	uint32_t slot_count;
	bool arguments_written; /* the function wrote to its stack arguments */
	bool is_foreign;	/* not the System V calling convention */
	uint32_t widest;	/* bytes of the widest vector register in use */
};

/* Executes @instruction.  The operands that an unsupported instruction writes become
 * unknown. */
void state_execute(struct state *state, const struct instruction *instruction);

/* Makes everything unknown that @instruction writes. */
void state_spoil(struct state *state, const struct instruction *instruction);

/* Whether @instruction has effects on registers or memory that are not tracked. */
bool state_is_lost_by(const struct instruction *instruction);

/* Drops the slots below the stack pointer. */
void state_drop_below(struct state *state);

void state_move_sp(struct state *state, int64_t by);

/* The slot of a memory operand; false if it is not in the frame. */
bool state_find_place(const struct state *state,
		      const ZydisDecodedOperand *operand, struct value *place);

static inline bool operand_is_memory(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static inline uint32_t operand_bytes(const ZydisDecodedOperand *operand)
{
	return operand->size / 8;
}

#endif
