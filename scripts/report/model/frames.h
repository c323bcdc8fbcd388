/*
 * The functions of frames that samples found: first the function whose code
 * contains the instruction, then the functions that are inlined there.
 */
#ifndef REPORT_MODEL_FRAMES_H
#define REPORT_MODEL_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct frame_symbol;
struct model;

/* The address of functions without code of their own: no file uses it. */
#define FRAME_ADDRESS ((uint64_t)1 << 63)

/* Where in a function an instruction, or the call of the next inlined function, is in
 * the source. */
struct frame_place {
	const char *file; /* NULL: unknown */
	int line;
};

/* The instruction of a chain. */
struct frame_address {
	uint64_t address; /* as in struct frame_site */
	uint32_t object;
};

/* Code that the program made while it ran, at an instruction. */
struct frame_made {
	const char *name;
	struct frame_place begin, place; /* of the function, and here */
	bool is_interpreted;		 /* a function of Python */
};

/* The chains of all frames of a recording, by number. */
struct frame_chains {
	uint32_t *functions; /* the functions of all chains in a row */
	uint32_t function_count, function_room;
	uint32_t *ends; /* end of each chain in @functions */
	uint32_t count, room;
	struct frame_address *addresses; /* by chain */
	uint32_t address_room;
	bool *is_hook_site; /* by chain; see symbols_hook_sites() */
	uint32_t hook_site_room;
	/* parallel to @functions; NULL before frames_find_places() */
	struct frame_place *places;
	/* the same; the first index of an equal function and place */
	uint32_t *first_equal;
	/* made code; its address is FRAME_ADDRESS | number */
	struct frame_made *made;
	uint32_t made_count, made_room;
};

/* A site of the recording that is a frame. */
struct frame_site {
	uint64_t address; /* in the file of the object, or in memory */
	uint32_t object;  /* NONE: in no object */
	uint32_t site;
};

/*
 * frames_find_chains - give every frame its chain, and add its functions to the
 * model
 *
 * @add returns the number of a function.  Its @symbol is NULL if the function
 * within the object is unknown; outside of objects, it starts at the address of the
 * frame.  @frames are sorted.
 */
void frames_find_chains(struct model *model, struct frame_site *frames,
			uint32_t count,
			uint32_t (*add)(void *context, uint32_t object,
					const struct frame_symbol *symbol),
			void *context);
/* The functions of a chain; *@count gets their number. */
const uint32_t *frames_chain(const struct frame_chains *chains, uint32_t number,
			     uint32_t *count);
/* The index of the first function of a chain in @functions and @places. */
uint32_t frames_begin(const struct frame_chains *chains, uint32_t number);
/* Looks up the places of all functions of all chains, unless that was done. */
void frames_find_places(struct model *model);
/* Function i becomes @numbers[i]. */
void frames_renumber(struct frame_chains *chains, const uint32_t *numbers);

/*
 * frames_cut - how much of a chain belongs to the recorded call and its callers
 *
 * The frame found below the recorded call of @path belongs to the function
 * whose code it is in: the recorded one, or a caller into which it is inlined.
 * The functions after the innermost of these are its callees.
 */
uint32_t frames_cut(const struct model *model, uint32_t path,
		    const uint32_t *functions, uint32_t count);

#endif
