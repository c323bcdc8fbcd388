/*
 * What symbols.c and the sandboxes (elf_names.c) say to each other.  A process
 * has one file; or none, then it demangles.
 */
#ifndef REPORT_NAMES_ELF_NAMES_H
#define REPORT_NAMES_ELF_NAMES_H

#include <stdint.h>

enum names_kind {
	/* The object's file comes with it, and behind it its build-id.  DONE says with
	 * enum names_opened what it is. */
	NAMES_OPEN,
	/* Behind these: @count addresses, sorted. */
	NAMES_FIND,   /* functions: NAME for each that has one */
	NAMES_DATA,   /* variables: DATA */
	NAMES_LINES,  /* LINE */
	NAMES_FRAMES, /* of instructions: FRAMEs, the outermost first */
	NAMES_PLACES, /* of instructions: for each FRAME that NAMES_FRAMES says, in
		       * its order, a LINE; 0: unknown */
	NAMES_ALL,    /* functions: NAME for each name of one */
	NAMES_LIST,	       /* FUNCTION for all there are */
	NAMES_CALLED_BY_TABLE, /* NAME for each that is called through it */
	/* the same; @size: steps to take, of which DONE says how many are left */
	NAMES_CALLED_BY_SITES,
	NAMES_IS_STRIPPED, /* DONE says it */
	NAMES_HAS_LINES,   /* the same */
	NAMES_DEMANGLE,	   /* behind it a name; NAME */
	NAMES_FILE,	   /* an answer to WANT: with the file, or none */
};

struct names_request {
	uint32_t kind;
	uint32_t count;
	uint64_t size; /* of what is behind it */
};

enum names_opened { NAMES_IS_RIGHT, NAMES_IS_OTHER, NAMES_IS_NONE };

enum names_answer_kind {
	/* All but DONE, NOTE and WANT: @number is that of the address. */
	/* @text as linked, @more as in the source, if that is another; @a: enum
	 * names_flags */
	ANSWER_NAME,
	ANSWER_DATA,	 /* the same; @a: where it begins */
	ANSWER_FUNCTION, /* @a: address, @b: size; @text */
	/* @a: the line; @b: the number of the file, with its name in @text where
	 * that is new */
	ANSWER_LINE,
	/* A function of frames; they are numbered in their order.  @a: where its code
	 * begins, or 0: then @text is its name as linked, and @more the file in
	 * which it is declared, in line @b; or "" */
	ANSWER_FRAME_FUNCTION,
	ANSWER_FRAME, /* @a: the number of its function */
	ANSWER_NOTE,  /* @text: something could not be read */
	/* FILE is to come; @a: enum names_wanted, @number: the how many-th of such;
	 * @text: its name, @more: its build-id */
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
	uint32_t text_size, more_size; /* bytes behind it, without a NUL */
};

#define NAMES_TEXT_MAX (1u << 20) /* longer names are none */
#define NAMES_ID_MAX   64u

/* What a sandbox does: answers requests from @fd until there are no more. */
void elf_names_serve(int fd);

#endif
