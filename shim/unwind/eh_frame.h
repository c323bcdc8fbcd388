/*
 * The tables for exceptions of loaded images (.eh_frame): the entry of a function, and
 * the rules for the registers at an address in it.
 */
#ifndef SHIM_EH_FRAME_H
#define SHIM_EH_FRAME_H

#include "unwind/unwind.h"

#include <shim/info.h>
#include <stddef.h>

/* The readable segment that holds an image's tables.  Stored by the index of the
 * image. */
struct tables {
	shim_image id; /* written last */
	uintptr_t low, high;
	uintptr_t index; /* .eh_frame_hdr */
	/* Whether the image may be unloaded. */
	bool may_go;
	/* Not 0: all is read from a copy of the image, which is at this distance behind it. */
	uintptr_t to_copy;
};

/* A position in the tables.  What the kernel copies for it is read ahead: [ahead_at,
 * ahead_at + ahead_size). */
struct cursor {
	const struct tables *tables;
	uintptr_t at, end;
	uintptr_t ahead_at;
	unsigned char ahead[31];
	uint8_t ahead_size;
	bool failed;
};

/* The entry of a function: a frame description. */
struct fde {
	struct cursor initial, program; /* instructions */
	uintptr_t start, end;		/* of the function */
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	bool is_signal_frame;
	bool has_sizes; /* the augmentation begins with z */
	uint8_t lsda_encoding;
	uintptr_t lsda; /* the function's table of handlers, or 0 */
};

/* --- the rules for registers --- */

enum how {
	HOW_SAME, /* or unknown, if functions do not preserve it */
	HOW_UNDEFINED,
	HOW_AT, /* in memory, at CFA + value */
	HOW_IS, /* CFA + value */
	HOW_REGISTER,
	HOW_EXPRESSION, /* in memory, at the expression's result */
	HOW_EXPRESSION_IS,
};

struct rule {
	uint8_t how;
	uint32_t size; /* of an expression */
	int64_t value; /* or the address of the expression */
};

struct row {
	struct rule cfa; /* HOW_IS: register in size; or an expression */
	struct rule rules[WALK_REGISTERS];
};

#define ROWS_MAX 4

struct cfi_machine {
	struct fde fde;
	struct row row, initial;
	/* The stack of DW_CFA_remember_state, @depth deep. */
	struct row remembered[ROWS_MAX];
	unsigned depth;
	/* The address that the instructions have reached, and the rest of them. */
	uintptr_t at;
	struct cursor left;
};

/* Finds the tables and the entry of the code at @address; false if there are none. */
bool eh_frame_open(uintptr_t address, struct tables *tables, struct fde *fde);

/* The same in a copy of the image's segments, @to_copy bytes behind them: without system
 * calls for an image that may be unloaded. */
bool eh_frame_open_copy(uintptr_t address, uintptr_t to_copy,
			struct tables *tables, struct fde *fde);

/* Finds the rules at @address by machine->fde; false if the entry has an unknown
 * instruction. */
bool eh_frame_find_row(struct cfi_machine *machine, uintptr_t address);

/* The same after a search that found the rules at an address of this entry that is not
 * above @address: goes on from there. */
bool eh_frame_find_next_row(struct cfi_machine *machine, uintptr_t address);

/* The end of the part of a file that is loaded into the readable segment at @address; 0
 * if unknown. */
uintptr_t eh_frame_segment_end(uintptr_t address);

/* Reads @size bytes of an image's tables; false if there are none at @address. */
bool eh_frame_read(uintptr_t address, void *to, size_t size);

/*
 * Reads from the tables at @cursor.  After a read beyond the end, @failed is set and
 * all reads return 0.
 */
uint64_t cursor_read_fixed(struct cursor *cursor, unsigned size);
int64_t cursor_read_signed(struct cursor *cursor, unsigned size);
uint64_t cursor_read_uleb(struct cursor *cursor);
int64_t cursor_read_sleb(struct cursor *cursor);
uintptr_t cursor_read_address(struct cursor *cursor, unsigned encoding,
			      uintptr_t base);

#endif
