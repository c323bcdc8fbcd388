/*
 * Frames that samples found: which functions they stand for.  The function whose code the
 * instruction is in comes first, then what is inlined there.
 */
#ifndef REPORT_MODEL_FRAMES_H
#define REPORT_MODEL_FRAMES_H

#include <stdint.h>

struct frame_symbol;
struct model;

/* What functions without code of their own have as addresses: no file has such. */
#define FRAME_ADDRESS ((uint64_t)1 << 63)

/* The chains of all frames of a recording, by number. */
struct frame_chains {
	uint32_t *functions; /* chain after chain */
	uint32_t function_count, function_room;
	uint32_t *ends; /* in @functions */
	uint32_t count, room;
};

/* A site of the recording that is a frame. */
struct frame_site {
	uint64_t address; /* in the file of the object */
	uint32_t object;  /* NONE: it is in none */
	uint32_t site;
};

/*
 * frames_find_chains - gives every frame its chain, and the model the functions in it
 *
 * @add returns the number of a function.  Its @symbol is NULL where nothing tells which
 * function of the object it is.  @frames are sorted.
 */
void frames_find_chains(struct model *model, struct frame_site *frames,
			uint32_t count,
			uint32_t (*add)(void *context, uint32_t object,
					const struct frame_symbol *symbol),
			void *context);
/* The functions of a chain, *@count of them. */
const uint32_t *frames_chain(const struct frame_chains *chains, uint32_t number,
			     uint32_t *count);
/* Function i is now @numbers[i]. */
void frames_renumber(struct frame_chains *chains, const uint32_t *numbers);

/*
 * frames_cut - how much of a chain belongs to the callers and the call that was recorded
 *
 * The frame found below the recorded call of @path is that of the function in whose code
 * it is: of the recorded one, or of a caller into which it is inlined.  What is behind
 * the innermost of these in @functions are its callees.
 */
uint32_t frames_cut(const struct model *model, uint32_t path,
		    const uint32_t *functions, uint32_t count);

#endif
