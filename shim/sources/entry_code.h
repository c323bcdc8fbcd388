/*
 * The code of marks that are only at entries, and of their thunks.  Depends on the
 * processor: arch/.../entries.c.
 */
#ifndef SHIM_ENTRY_CODE_H
#define SHIM_ENTRY_CODE_H

#include "sources/mark_code.h"

#define ENTRY_SIZE 5
#define THUNK_SIZE 96
#define THUNK_RESUMES \
	13 /* the place of the code that goes on behind the mark */
#define THUNK_COUNTS	    32 /* of the code that counts */
#define THUNK_COUNTS_PUSHED 34 /* the same, for a thunk that has pushed r11 */

/* Whether shim can patch entries on this processor. */
bool entry_is_known(void);

/* The length in bytes of the no-ops at @code, at most @size.  *@first receives the length of
 * the first one. */
size_t entry_nops(const unsigned char *code, size_t size, size_t *first);

/* Replaces @size bytes of no-ops by others, one of which ends at ENTRY_SIZE. */
void entry_split(unsigned char *code, size_t size);

/* The length of a call, as of __fentry__, at @code; 0 if there is none. */
size_t entry_call(const unsigned char *code);

/* Whether @code, of 2 bytes, begins a call through a register (gcc's -mcmodel=large), which
 * nothing can replace. */
bool entry_call_is_far(const unsigned char *code);

/* Whether a landing pad for indirect branches ends before @code, whose *@size bytes are part
 * of the function. */
bool entry_is_landing(const unsigned char *code, size_t *size);

/* Whether the code in front of @code, of which 6 bytes are read, saves the static chain: gcc's
 * nested functions do before their mark of -mfentry, where the stack pointer is then not the slot
 * of the return address. */
bool entry_saves_chain(const unsigned char *code);

/* The state of the mark at @address.  MARK_OFF or MARK_ON if it leads to @thunk, or to the code
 * in it that counts, when it is on. */
enum mark_state entry_state(const unsigned char *code, uintptr_t address,
			    uintptr_t thunk);
/* Makes the code lead there when it is on: to what counts if @counts.  The compiler's code is
 * then off; other code stays on or off. */
bool entry_prepare(unsigned char *code, uintptr_t address, uintptr_t thunk,
		   bool counts);
void entry_switch(unsigned char *code, bool on);

/* Where the code that a thunk jumps to finds these in its data (struct thunk_data). */
#define ENTRY_FUNCTION 16
#define ENTRY_SITE     24 /* the address of the code after the mark */
#define ENTRY_RESUME   32 /* that of THUNK_RESUMES, which goes there */

struct thunk_code {
	const void *data; /* the first word is where the thunk jumps to */
	const uint64_t
		*counter; /* where the counter is in a thread's, in bytes */
	const void *slot; /* what hooks calls */
	uintptr_t site;
	intptr_t
		counters; /* of the thread pointer: the word with a thread's counters */
};

/* A thunk, which pushes r11, jumps to where its data tells, and tells this code the data.  If
 * that is THUNK_COUNTS_PUSHED, it counts; a thread without counters jumps to where *@slot
 * points. */
void thunk_put(unsigned char *thunk, const struct thunk_code *code);
/* The bytes that its code has pushed onto the stack at @offset in it. */
size_t thunk_pushed(size_t offset);

/*
 * The thunk of an entry that no compiler has marked (unmarked.c).  It also has the
 * instructions that were at the entry, moved; and it is the switch: it jumps through a
 * word that leads to PATCHED_ON, or to PATCHED_COUNTS and then to PATCHED_MOVED, or there
 * at once.
 */
#define PATCHED_SIZE	 144
#define PATCHED_ON	 8
#define PATCHED_RESUMES	 48 /* hooks lead to it */
#define PATCHED_MOVED	 53
#define PATCHED_ORIGINAL 91 /* the entry's first bytes */
#define PATCHED_COUNTS	 96
#define PATCHED_ROOM	 (PATCHED_ORIGINAL - PATCHED_MOVED)
#define PATCHED_JUMP	 5 /* back, behind the moved instructions */
/* The longest code that is moved: an instruction has 15 bytes at most. */
#define PATCHED_LENGTH_MAX (ENTRY_SIZE + 14)

/*
 * The thunk of a call of mcount (mcount.h) is the same, with code in the place of the moved
 * instructions that leads to mcount's work, which goes on behind the call.
 */
struct patched_code {
	const void *slot;      /* what the hooks' side jumps to */
	const uintptr_t *word; /* the switch */
	/* As for thunk_put; a thread without counters goes to PATCHED_ON. */
	const uint64_t *counter;
	intptr_t counters;
	uintptr_t function;
	uintptr_t site; /* what hooks see as the return address of their call */
	const unsigned char *original; /* ENTRY_SIZE bytes */
};

/* Writes all but the moved instructions. */
void patched_put(unsigned char *thunk, const struct patched_code *code);
/* Writes all of the thunk of a call of mcount.  It jumps to what the word at @counter points to,
 * as to hooks: r11 is pushed, and tells where the thunk is. */
void patched_put_mcount(unsigned char *thunk, const struct patched_code *code,
			const void *counter);
/* The same of __fentry__. */
void patched_put_fentry(unsigned char *thunk, const struct patched_code *code,
			const void *counter);
/* Whether the code at a function's beginning makes rbp point below its return address, and
 * nothing but its end changes that. */
bool entry_has_frame(const unsigned char *code);

/* An instruction that reads a word of the stack: @offset from the stack pointer, or from the
 * frame pointer. */
struct stack_read {
	bool is_stack_pointer;
	int32_t offset;
};
#define ENTRY_READ_SIZE 8
/* Whether such an instruction begins with the @size bytes at @code: one that loads or compares
 * the word, and needs at most ENTRY_READ_SIZE bytes. */
bool entry_reads_stack(const unsigned char *code, size_t size,
		       struct stack_read *read);
/* Where such a jump leads, conditional or not, whose code is at @address; 0: no jump. */
uintptr_t entry_jumps(const unsigned char *code, size_t size,
		      uintptr_t address);

/* Whether the code at @address jumps to the thunk. */
bool patched_is_jump(const unsigned char *code, uintptr_t address,
		     uintptr_t thunk);
/* The bytes that the code of a thunk has pushed onto the stack at @offset in the thunk, before
 * its moved instructions; and among them, at @offset in the code that takes the place of
 * the one that begins at @moved. */
size_t patched_pushed(size_t offset);
size_t patched_pushed_by_call(const unsigned char *moved, size_t offset);
/* The same for code of patched_put_mcount and patched_put_fentry in the place of moved
 * instructions, from PATCHED_RESUMES on. */
size_t patched_pushed_by_mcount(const unsigned char *thunk, size_t offset);
/* Makes it jump there; false if that is too far away. */
bool patched_jump(unsigned char *code, uintptr_t address, uintptr_t thunk);

#endif
