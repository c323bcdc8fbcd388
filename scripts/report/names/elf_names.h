/*
 * The protocol between object_process.c and the sandboxes (elf_names.c).  A sandbox
 * process has one file; without a file it demangles.
 */
#ifndef REPORT_NAMES_ELF_NAMES_H
#define REPORT_NAMES_ELF_NAMES_H

#include <stdint.h>

enum names_kind {
	/* The object's file comes with this request, followed by its build-id.
	 * DONE returns enum names_opened. */
	NAMES_OPEN,
	/* After these requests come @count sorted addresses. */
	NAMES_FIND,   /* functions: NAME for each address that has one */
	NAMES_DATA,   /* variables: DATA */
	NAMES_LINES,  /* LINE */
	NAMES_FRAMES, /* of instructions: FRAMEs, the outermost first */
	NAMES_PLACES, /* of instructions: for each FRAME that NAMES_FRAMES says, in
		       * its order, a LINE; 0: unknown */
	NAMES_HOOK_SITES, /* of instructions: HOOK_SITE for each that is part of a
			   * call of a hook */
	NAMES_CODE, /* two addresses, begin and end: INSTRUCTION; DONE returns enum
		     * names_code */
	NAMES_ALL,  /* functions: NAME for each name of an address */
	NAMES_LIST, /* FUNCTION for every function */
	/* NAME for each function that is called through the linkage table */
	NAMES_CALLED_BY_TABLE,
	/* NAME for each called function; @size: limit of steps; DONE returns
	 * the remaining steps */
	NAMES_CALLED_BY_SITES,
	NAMES_IS_STRIPPED, /* DONE returns the result */
	NAMES_HAS_LINES,   /* the same: enum names_lines */
	NAMES_DEMANGLE,	   /* a name follows; NAME */
	/* the answer to WANT, with the file or without one */
	NAMES_FILE,
};

/* What NAMES_HAS_LINES finds. */
enum names_lines { NAMES_LINES_MISSING, NAMES_LINES_THERE, NAMES_LINES_ZSTD };

struct names_request {
	uint32_t kind;
	uint32_t count;
	uint64_t size; /* size of the data that follow */
};

enum names_code {
	NAMES_CODE_IS_READ,
	NAMES_CODE_IS_MISSING,	/* the file has no code of x86-64 there */
	NAMES_CODE_IS_NOT_READ, /* built without a disassembler */
};

enum names_opened { NAMES_IS_RIGHT, NAMES_IS_OTHER, NAMES_IS_NONE };

enum names_answer_kind {
	/* In all answers but DONE, NOTE and WANT, @number is the index of the
	 * address. */
	/* @text: linker name, @more: source name if it differs; @a: enum
	 * names_flags */
	ANSWER_NAME,
	ANSWER_DATA,	 /* the same; @a: start of the variable */
	ANSWER_FUNCTION, /* @a: address, @b: size; @text */
	/* @a: line; @b: number of the file, whose name is in @text the first
	 * time */
	ANSWER_LINE,
	/* A function of frames, numbered in order.  @a: start of its code, or
	 * 0: then @text is its linker name, and @more the file of its
	 * declaration (in line @b) or "" */
	ANSWER_FRAME_FUNCTION,
	ANSWER_FRAME, /* @a: number of its function */
	ANSWER_HOOK_SITE,
	/* @a: address, @b: target of a jump or call, or 0; @text */
	ANSWER_INSTRUCTION,
	ANSWER_NOTE, /* @text: a message about an unreadable part */
	/* requests FILE; @a: enum names_wanted, @number: index among those;
	 * @text: name, @more: build-id */
	ANSWER_WANT,
	ANSWER_DONE,
};

enum names_flags {
	NAMES_EXACT = 1,
	NAMES_GLOBAL = 2,
	NAMES_OTHERS = 4,
	NAMES_DOUBT = 8,
};

enum names_wanted {
	NAMES_DEBUG_BY_ID,
	NAMES_DEBUG_BY_NAME,
	NAMES_DEBUG_SHARED,
};

struct names_answer {
	uint32_t kind, number;
	uint64_t a, b;
	/* size of the text that follows, without NUL */
	uint32_t text_size, more_size;
};

#define NAMES_TEXT_MAX (1u << 20) /* longer names are errors */
#define NAMES_ID_MAX   64u

/* The main loop of a sandbox: answers requests from @fd until it is closed. */
void elf_names_serve(int fd);

#endif
