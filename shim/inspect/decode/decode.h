/*
 * The interface between libshim.so and libshim-code.so.
 */
#ifndef SHIM_DECODE_H
#define SHIM_DECODE_H

#include "inspect/callsite.h"
#include "inspect/decode/recipe.h"
#include "inspect/prototype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODE_VERSION 15
#define DECODE_SYMBOL  "shim_decode"

enum decode_end {
	DECODE_UNKNOWN,
	DECODE_RETURN,
	DECODE_TAIL_CALL,
	DECODE_UNWIND,
	DECODE_DEPENDS, /* a return or the resumption of an exception */
};

struct decode_question {
	uintptr_t code; /* the first instruction */
	uintptr_t sp;	/* the stack pointer there */
	uintptr_t site; /* the return address on the stack when it returns */
	uintptr_t function;
};

struct decode_answer {
	enum decode_end end;
	uintptr_t target;      /* of a tail call; 0: unknown */
	const uintptr_t *slot; /* will have the target when it is bound */
};

/*
 * The location of a value when a hook is called.  Registers are callee-saved registers
 * or argument registers, and have the processor's numbers.
 */
enum decode_where {
	DECODE_NOWHERE, /* the value is lost */
	DECODE_IN_REGISTER,
	DECODE_IN_VECTOR, /* at @offset in a vector register */
	DECODE_ON_STACK,  /* at decode_frame + offset */
	DECODE_ABOVE_SP,  /* at the stack pointer + offset */
	/* At @offset in an argument register of arch_frame_entry(): @number counts those of
	 * the convention, vectors from DECODE_ENTRY_VECTOR. */
	DECODE_AT_ENTRY,
	DECODE_ABOVE_ENTRY, /* at the stack's first argument + offset */
};

#define DECODE_ENTRY_VECTOR 16

struct decode_place {
	uint8_t where, number;
	/* The function does not use the value, so a caller that knows this may not have
	 * passed it. */
	bool is_unused;
	uint8_t entry; /* the register at the entry, plus 1; vectors from 17 */
	int32_t offset;
};

/* The eightbytes of a value; for a value passed by reference, its address; for a value
 * in memory, its first byte. */
struct decode_places {
	bool in_memory;
	uint8_t reason; /* enum shim_unavailable for DECODE_NOWHERE */
	struct decode_place eightbytes[2];
};

/* An address in the function's frame: a register plus @offset. */
struct decode_frame {
	uint8_t number; /* DECODE_SP: the stack pointer at the call of the hook */
	bool is_known;
	/* The function may have written memory above this address before the hook. */
	bool is_overwritten;
	int32_t offset;
	/* The caller's values of callee-saved registers: rbx, rbp, r12 to r15. */
	struct decode_place kept[6];
};

#define DECODE_SP 4

struct decode_location {
	uintptr_t function;
	uintptr_t end;	/* of its code */
	uintptr_t hook; /* the instruction after the hook's call */
	/* For a mark at the function's beginning, where the arguments are in the registers of
	 * the convention: where the function's code begins behind the mark; otherwise 0. */
	uintptr_t entry;
	/* The mark is behind code that makes the function's frame: @entry is the function's
	 * beginning. */
	bool is_late;
	/* Its callers pass all arguments, used or not; @end may be 0. */
	bool is_complete;
	const struct prototype_value *values; /* the result, the parameters */
	uint32_t count;
};

/* A call whose return address is known. */
struct decode_call {
	uintptr_t function;
	uintptr_t end;	 /* of its code */
	uintptr_t site;	 /* the instruction after the call */
	uintptr_t entry; /* behind a mark at the beginning; or 0 */
	bool may_tail_call;
	uint8_t number; /* answer: the register with the function's address */
};

struct decode_range {
	uintptr_t start, end;
};

/* The values that the code before a call puts into argument registers. */
struct decode_passed {
	uintptr_t site;
	const struct decode_range *ranges; /* all of the caller's code */
	uint32_t range_count;
	uint32_t age; /* if it changes, other code may be at these addresses */
	uint32_t count;
	struct callsite_value values[CALLSITE_VALUES_MAX];
};

struct decode_leaving {
	uintptr_t function;
	uintptr_t hook; /* the instruction after the leave hook's call */
	const struct prototype_value *value; /* the result */
	const struct decode_range *ranges;   /* of its code */
	uint32_t range_count;
};

/* The straight code before a call.  For each register: how many instructions before the
 * call it was last written, and from which registers (bits).  Vector registers are from
 * 16. */
struct decode_way {
	uintptr_t caller; /* start of the calling function */
	uintptr_t site;
	uint32_t written[32];
	uint32_t sources[32];
};

/*
 * Code that is copied to run at another address.  The copy has the same effects as the
 * code, including the return addresses on the stack.  Where the copy ends, it continues
 * in the code.  Jumps and calls out of the copy lead to the code, or to the address
 * from @target.
 */
struct decode_copy {
	uintptr_t code,
		end;  /* copies the instructions that begin in [code, end) */
	uintptr_t to; /* buffer for the copy; NULL: only its size is computed */
	unsigned char *
		memory; /* where it is written; NULL: not, only its size counts */
	uint16_t *places; /* memory for end - code numbers, zeroed */
	/* Reads the code as it is without traps.  Reads a page after @end only if the
	 * first instruction needs it. */
	void (*read)(const struct decode_copy *copy, uintptr_t address,
		     unsigned char *bytes, unsigned size);
	/* The bytes that become 1 when the code at @address runs; NULL: none. */
	unsigned char *(*mark)(const struct decode_copy *copy,
			       uintptr_t address, unsigned *count);
	/* The address to which a branch to @address leads. */
	uintptr_t (*target)(const struct decode_copy *copy, uintptr_t address);
	const void *argument;
};

/* An instruction that loads a register, and the function that it is in. */
struct decode_load {
	uintptr_t at;
	uintptr_t start, end;
	const unsigned char *copy; /* of the function */
	unsigned char
		*seen;	   /* memory: a bit for each byte, and one more byte */
	bool has_handlers; /* exceptions may lead to code of the function */
};

/* Why the first instructions of a function cannot be moved. */
enum decode_entry_reason {
	DECODE_ENTRY_MOVABLE,
	DECODE_ENTRY_UNKNOWN, /* bytes that are no instruction, or data among them */
	DECODE_ENTRY_SHORT,  /* its first block is too short */
	DECODE_ENTRY_LOOP,   /* the function jumps to its own beginning */
	DECODE_ENTRY_TARGET, /* something may jump among these instructions */
	DECODE_ENTRY_ADDRESS, /* the function uses its return address, or ends with a jump to one
			       * that does */
	DECODE_ENTRY_FRAME,    /* a jump with a frame leads to it */
	DECODE_ENTRY_STACK,    /* its unwind table has no ordinary call */
	DECODE_ENTRY_REPLACED, /* another tool's jump, or a breakpoint, is there */
	DECODE_ENTRY_FIXED,    /* an instruction works only where it is */
	DECODE_ENTRY_SMALL,    /* it is smaller than a jump */
	DECODE_ENTRY_MARKED, /* its compiler has marked it */
	DECODE_ENTRY_SHARED, /* instructions of several functions, whose flags pass calls */
	DECODE_ENTRY_WALKED, /* a collector of garbage looks for its return address */
	DECODE_ENTRY_REASONS,
};

/* A function, all of whose code, or the part with its beginning, is in [start, end). */
struct decode_entry {
	uintptr_t start, end;
	/* The answer. */
	uint8_t reason; /* enum decode_entry_reason */
	uint8_t skip;	/* a landing pad, which stays where it is */
	uint8_t length; /* of the instructions that can be moved */
	bool may_leave; /* not always does the last of these lead to its successor */
	/* For the decoder. */
	uint8_t has_label : 1;	 /* its code computes an address in itself */
	uint8_t has_switch : 1;	 /* it jumps to a computed address */
	uint8_t uses_return : 1; /* also if it has another reason */
};

/* A part of the image's code. */
struct decode_part {
	uintptr_t start, end;
	uint32_t owner; /* the number of its function's entry, or UINT32_MAX */
	bool is_piece;	/* its function is unknown */
	/* For the decoder, if it has no entry. */
	bool uses_return, is_searched;
};

/* A jump at which the stack pointer is where it was when the function began: what it leads to
 * has the return address of the function.  Numbers of parts. */
struct decode_tail {
	uint32_t from, to;
};

/* The rules for the stack at an address, which are the same up to @until. */
struct decode_stack_row {
	uintptr_t until;
	bool is_ordinary; /* the return address is below the frame's end */
	uint8_t base;	  /* the processor's number of the register */
	int32_t offset;	  /* of the frame's end from the register */
};

#define DECODE_COMPUTED 255 /* the base, if the frame's end is an expression */

/* All code of an image.  Addresses are those in the program. */
struct decode_entries {
	uintptr_t start, end;
	const unsigned char *copy; /* of the image's memory */
	uintptr_t text, text_end;  /* contains all code */
	struct decode_part *parts; /* by address */
	uint32_t part_count;
	struct decode_tail *tails; /* memory */
	uint32_t tail_room;
	struct decode_entry *entries;
	uint32_t count;
	uint8_t size; /* of what replaces the first instructions */
	/* A bit for each byte of the text, zeroed: instructions that begin there; targets
	 * of jumps and calls; these and other places to which something may jump. */
	unsigned char *begins, *jumps, *targets;
	/* A bit for each byte of the image, zeroed: code computes its address. */
	unsigned char *objects;
	/* False without a rule. */
	bool (*row)(const struct decode_entries *question, uintptr_t address,
		    struct decode_stack_row *row);
	void *argument;
};

/* The maximal size of the copy of one instruction with one byte to mark. */
#define DECODE_COPY_ONE 64

/* The functions make no system call, take no lock and allocate nothing. */
struct decode {
	uint32_t version;
	/* Comes before all others.  @restore replaces the traps in a copy of code. */
	void (*start)(void (*restore)(uintptr_t address, unsigned char *copy,
				      size_t size));
	void (*follow)(const struct decode_question *question,
		       struct decode_answer *answer);
	/* The target of a GOT slot; 0 if it is not bound yet. */
	uintptr_t (*bound)(const uintptr_t *slot);
	/* Finds the location of each parameter at the enter hook; places[0] is unused.
	 * Unknown locations are DECODE_NOWHERE.  Only one call may run at a time. */
	void (*arguments)(const struct decode_location *location,
			  struct decode_frame *frame,
			  struct decode_places *places);
	/* Whether the call calls this function.  Then a frame with this return address
	 * belongs to it.  Only one call may run at a time. */
	bool (*calls)(struct decode_call *call);
	/* False if the code before the call cannot be decoded. */
	bool (*way)(struct decode_way *way);
	/* False if the code cannot be decoded.  Only one call may run at a time. */
	bool (*passed)(struct decode_passed *passed);
	/* Makes the recipe for the result at a leave hook.  False if @recipe would be
	 * larger than @room.  Only one call may run at a time. */
	bool (*result)(const struct decode_leaving *leaving,
		       struct decode_recipe *recipe, uint32_t room);
	/* Runs the recipe: *@start is the result, in @machine or in the program's
	 * memory.  @machine->registers has the callee-saved registers from
	 * REGISTER_KEPT on; @site is the call site of the function. */
	enum shim_unavailable (*run)(const struct decode_recipe *recipe,
				     struct decode_machine *machine,
				     uintptr_t site, uintptr_t *start);
	/* Whether the code behind the call reads the register before it writes it, so that
	 * the callee's result is in it; vector registers from 16. */
	bool (*reads)(uintptr_t site, unsigned number);
	/* Whether the code of a function, from @location->entry on, writes it. */
	bool (*writes)(const struct decode_location *location, unsigned number);
	/* Copies code; returns the size of the copy, 0 if its first instruction cannot
	 * be copied.  The caller calls it twice with the same @places: the first call
	 * only counts, the second one writes.  Any number of threads at once. */
	size_t (*copy)(struct decode_copy *copy);
	/* Finds the functions whose first instructions can run elsewhere, because nothing
	 * else than the function's call reaches them. */
	void (*entries)(const struct decode_entries *question);
	/* Whether the function only calls, or jumps to, the address that the instruction
	 * loads, and does nothing else with it.  Only one call may run at a time. */
	bool (*called)(const struct decode_load *load);
};

/* locate.c */
void decode_arguments(const struct decode_location *location,
		      struct decode_frame *frame, struct decode_places *places);

/* copy.c */
size_t decode_copy(struct decode_copy *copy);

/* entries.c */
void decode_entries(const struct decode_entries *question);

/* result.c */
bool decode_result(const struct decode_leaving *leaving,
		   struct decode_recipe *recipe, uint32_t room);

#endif
