/*
 * Sources: the ways in which a compiler marks the beginning and the end of functions, other
 * than by calls of the hooks.  Each source finds its marks in an image, and knows the code
 * of a mark.  This room switches marks on while a profiler wants calls, and off otherwise,
 * while threads run that code.
 *
 * A mark that is on calls a stub (arch/.../sources.S), which calls what the mark's hook
 * would call.  A mark that is off costs what the compiler's placeholder costs.
 * The entry of a function that no compiler has marked (unmarked.h) is a mark, too, which
 * costs two jumps while it is off.
 *
 * All functions: state lock held.
 */
#ifndef SHIM_SOURCES_H
#define SHIM_SOURCES_H

#include "dispatch/changes.h"
#include "runtime/subscribe.h"
#include "sources/mark_code.h"

#include <elf.h>
#include <shim/info.h>
#include <stdbool.h>
#include <stdint.h>

struct image_entry;
struct thunk_data;

struct source_mark {
	uint32_t offset;    /* of the mark, from the start of the image */
	int32_t depth;	    /* of the mark in its function */
	uint8_t source : 5; /* enum shim_source */
	uint8_t event : 2;  /* enum plan_event */
	uint8_t is_idle : 1; /* the state of its code: off, but not the compiler's */
	uint8_t jump;	/* the condition of a tail call (xray_condition()) */
	uint8_t length; /* of the code that it replaces (entries.c) */
	uint8_t may_leave : 1; /* that code, before its end */
	uint8_t is_filtered : 1;
	uint8_t is_throttled : 1;
	/* It is throttled, and its code counts calls: as asked for its address, or for its
	 * whole function. */
	uint8_t is_counted : 1;
	uint8_t is_counted_whole : 1;
	uint8_t is_on : 1;	 /* the state of its code */
	uint8_t is_prepared : 1; /* its code needs only the switch */
	uint8_t is_unusable : 1; /* its code is another tool's, or too far away */
	/* Its code, which is prepared, leads to the counter. */
	uint8_t has_counter : 1;
	uint32_t counter;
};

struct source_image {
	uintptr_t start, end;
	uintptr_t bias;
	/* Another thread may unload the image at any time: read it by system calls. */
	bool may_go;
	bool is_searched;
	bool is_searched_idle; /* for marks that are cheaper when shim has changed them */
	bool is_released;   /* its marks that have a release() are others' */
	bool is_never_idle; /* the system refuses to make its code writable */
	bool is_unwritable;
	bool is_confirmed; /* a forked child has it, too */
	bool is_waiting;   /* for a scan that is not early (image.h) */
	bool is_new;	   /* just loaded: no other thread runs its code */
	bool is_told;
	bool is_entered; /* marks_changed was raised for it, and not its end */
	bool is_quiet;	 /* no other thread runs its code now */
	bool is_fresh;	 /* and none has run it before */
	bool has_unmarked; /* its thunks have moved instructions */
	uintptr_t veneers; /* code near it that jumps to stubs; 0: none yet */
	uintptr_t thunks;  /* thunks.h; 0: none */
	uint32_t thunk_size;
	struct thunk_data *thunk_data; /* of each mark */
	struct source_mark *marks;     /* sorted by offset */
	uint32_t count, room;
	uint32_t on; /* marks that are on */
	struct changes changes;
};

/* The first mark from number @number on that may differ; image->changes.end: none. */
static inline uint32_t source_next_changed(const struct source_image *image,
					   uint32_t number)
{
	return changes_next(&image->changes, number, image->changes.end,
			    image->count);
}

/* What a source has found in an image. */
struct found_mark {
	enum shim_source source;
	unsigned event; /* enum plan_event */
	uintptr_t address, function;
	uint8_t length; /* of the code that it replaces */
	bool may_leave;
	uint8_t jump; /* the condition of a tail call */
};

/* Ignores a mark outside of the image's code, or of a function that calls the hooks.
 * Returns 0 or -errno. */
typedef int source_add(struct source_image *image,
		       const struct found_mark *found);

/* One kind of marks. */
struct source {
	enum shim_source kind;
	const char *section; /* which lists the marks; NULL: none does */
	uint8_t size;	     /* of the code of a mark */
	bool has_thunks; /* its marks jump to thunks (thunks.h), which can count */
	bool is_fixed; /* when prepared, a word of the thunk does the rest */

	/* Adds the marks that @section of the image lists.  Returns 0 or -errno.  NULL
	 * without a section. */
	int (*find)(struct source_image *image, const Elf64_Shdr *section,
		    source_add *add);
	/* What the code of a mark is. */
	enum mark_state (*state)(const struct source_image *image,
				 const struct source_mark *mark,
				 const unsigned char *code);
	/* Where the call of a mark returns to, from the mark on. */
	uint8_t (*end)(const struct source_image *image,
		       const struct source_mark *mark);
	/*
	 * Step 1, for a mark that is off: writes the bytes that no thread executes
	 * while it is off.  All processors are synchronized before step 2.  False if
	 * the mark cannot be used.
	 */
	bool (*prepare)(const struct source_image *image,
			const struct source_mark *mark, unsigned char *code);
	/* Step 2: changes one byte, or a word of the thunk. */
	void (*change)(const struct source_image *image,
		       const struct source_mark *mark, unsigned char *code,
		       bool on);
	/* Lets the mark count its calls by this counter when it is on next.  False if it
	 * cannot. */
	bool (*set_counter)(const struct source_image *image,
			    struct source_mark *mark, uint32_t counter);
	/* Whether a mark that is off, and not prepared, can be cheaper than the compiler's code:
	 * then it is changed as soon as it is known.  NULL: none can. */
	bool (*idles)(const struct source_image *image,
		      const struct source_mark *mark);
	/* Changes it to that, or back: its first two bytes, which are stored at once.  False if
	 * it cannot be changed. */
	bool (*idle)(unsigned char *code, bool idle);
	/* Changes the first byte, or the first two, to the compiler's; then others may write the
	 * rest.  NULL: such marks are shim's alone. */
	void (*release)(const struct source_image *image,
			const struct source_mark *mark, unsigned char *code);
};

/* The source of a kind, or NULL. */
const struct source *source_of(enum shim_source kind);
/* The source whose marks the section lists, or NULL. */
const struct source *source_of_section(const char *name);

static inline uintptr_t mark_address(const struct source_image *image,
				     const struct source_mark *mark)
{
	return image->start + mark->offset;
}

static inline uintptr_t mark_function(const struct source_image *image,
				      const struct source_mark *mark)
{
	return mark_address(image, mark) - (uintptr_t)(intptr_t)mark->depth;
}

/* Before the first change of an entry, while no other thread runs the image's code: a thread
 * that runs an entry which is off continues behind its ENTRY_SIZE bytes, so shorter no-ops take
 * the place of one that goes on there (entries.c). */
void entries_split(struct source_image *image);

/* Whether marks are to be switched on.  Objects that the program opens are then searched at
 * once, if they may have marks.  Async; without the lock. */
bool sources_are_on(void);
/* Whether every object is searched then, for functions or calls that no compiler has
 * marked. */
bool sources_want_each(void);
/* Whether one of these objects, which the loader has just loaded, may have marks: false if
 * none has.  Without the lock. */
struct image_objects;
bool sources_may_have_marks(const struct image_objects *added);

/* Functions and calls that no compiler has marked: opens the decoder, and changes functions
 * that SHIM_PATCH chooses, and slots that SHIM_LIBCALLS chooses.  Called once, before main,
 * without the lock. */
void sources_begin_plain(void);

/* The image that covers @address, with its marks, or NULL. */
struct source_image *sources_image(uintptr_t address);

/* The memory becomes writable for the program or another tool, which may be about to change marks
 * that are theirs, too: shim leaves these as the compiler has made them.  Async; without the
 * lock. */
void sources_release(uintptr_t start, uintptr_t end);

/* The code that a mark replaces, and where a trap tells that it runs instead; 0: nowhere.
 * With @may_leave, its last instructions may not run when its first one does. */
struct mark_bytes {
	uintptr_t start, end;
	uintptr_t met;
	bool may_leave;
};
/* Stores the marks of the image at @start in turn, from *@at on, which is 0 at first.  False at
 * the end. */
bool sources_next_mark(uintptr_t start, uint32_t *at, struct mark_bytes *bytes);

/* The image at @start is searched for marks, and they are changed for the first time: their
 * code must be the compiler's.  It begins, or has ended. */
TOPIC(marks_changed, uintptr_t start, bool begins);

#endif
