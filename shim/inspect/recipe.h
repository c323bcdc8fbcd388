/*
 * A recipe says where the arguments of a function are at one enter hook.  recipe.c makes
 * recipes, recipe_read.c reads arguments by them, and values.c stores them.
 */
#ifndef SHIM_RECIPE_H
#define SHIM_RECIPE_H

#include "arch.h"
#include "inspect/callsite.h"
#include "inspect/code_cache.h"
#include "inspect/decode/decode.h"
#include "inspect/prototype.h"

#include <shim/hooks.h>
#include <shim/values.h>

#define REGISTER_MAX 16 /* bytes of an argument in registers */

struct part {
	struct prototype_value value;
	struct decode_places places;
	/* The caller's expressions for its eightbytes, if count is not 0. */
	struct callsite_value passed[2];
	bool has_passed;
};

struct recipe {
	struct code_cache_entry cached;
	enum shim_result result;
	/* The recipe to use for a site whose caller adds no values; otherwise NULL. */
	const struct recipe *same;
	bool asks_caller; /* each site has a recipe of its own */
	bool may_tail_call;
	uint8_t guard;	/* the register with the callee's address, or 0 */
	uint32_t count; /* of parts, one for each parameter */
	uint32_t declared_count, total_size;
	struct decode_frame frame;
	struct part parts[];
};

/* Memory of a thread, from its first query on.  The program's stack may be too
 * small. */
struct values_space {
	unsigned char spilled[PROTOTYPE_VALUES_MAX][REGISTER_MAX];
	struct prototype_value values[PROTOTYPE_VALUES_MAX];
	uint32_t value_count; /* 0: no debug information */
	struct callsite callsite;
	/* The answer of values_answer(). */
	union {
		struct shim_argument_info info;
		unsigned char bytes[sizeof(struct shim_argument_info) +
				    PROTOTYPE_VALUES_MAX *
					    sizeof(struct shim_argument_range)];
	} passed;
};

/* --- making (recipe.c) --- */

struct recipe_job {
	const struct arch_frame *frame;
	struct values_space *space;
	const struct recipe *primary; /* NULL: this is the primary */
	uint32_t age;		      /* the age before the query */
	const struct recipe *made;    /* set by values.c */
};

/* Reads the debug information for the recipe into @space.  Returns SHIM_OK or an error
 * of values_find.  Takes the locks of helper_ask. */
enum shim_result recipe_query(const struct recipe_job *job,
			      struct values_space *space);

/* Makes the recipe from what recipe_query found.  It is valid until the next call.
 * State lock held. */
const struct recipe *recipe_make(const struct recipe_job *job);

/* --- reading (recipe_read.c) --- */

struct recipe_reader {
	const struct arch_frame *frame;
	const struct recipe *recipe;
	uintptr_t base; /* the stack pointer at the entry */
	bool has_base;
};

void recipe_begin_reader(struct recipe_reader *reader,
			 const struct arch_frame *frame,
			 const struct recipe *recipe);

/* The address of the value's bytes in one piece, or 0.  They may be in @spilled, which
 * has REGISTER_MAX bytes. */
uintptr_t recipe_read(const struct recipe_reader *reader,
		      const struct part *part, unsigned char *spilled);

/* The argument's address if it is in the program's memory, or 0.  The address of an
 * object may be in a register. */
uintptr_t recipe_find_memory(const struct arch_frame *frame,
			     const struct recipe *recipe,
			     const struct part *part);

/* Whether the caller's register with the callee's address, which the function has
 * saved, confirms the call. */
bool recipe_is_called_by(const struct arch_frame *frame,
			 const struct recipe *recipe);

/* The index in decode_frame.kept of a callee-saved register, or -1. */
int recipe_kept_index(unsigned number);

#endif
