/*
 * Changes the code of marks.
 */
#ifndef SHIM_SWITCH_MARKS_H
#define SHIM_SWITCH_MARKS_H

#include "sources/sources.h"

/* What changes between two synchronizations of the processors. */
enum switch_step {
	/* Marks that idle, and shall be on, get the compiler's code; those that are on, and shall
	 * count their calls, or not any more, lead elsewhere, or are off until STEP_SWITCH. */
	STEP_WAKE,
	STEP_PREPARE,
	STEP_SWITCH, /* on and off, and idle */
	STEPS,
	/* Not one of them: marks get the compiler's code, and stay so. */
	STEP_RELEASE = STEPS
};

/* A mark that shall be on. */
bool switch_wants(const struct source_mark *mark, bool is_on);

/* Makes one step for the marks of the image that differ from what they shall be: on if
 * @is_on, and nothing has switched them off singly.  Sets *@changed.  Returns 0; -EBUSY while
 * the image may be unloaded; -errno if its code cannot be changed. */
int switch_marks(struct source_image *image, enum switch_step step, bool is_on,
		 bool *changed);

/* Whether the step changes any mark. */
bool switch_changes(const struct source_image *image, enum switch_step step,
		    bool is_on);

/* Reads the states of all marks from their code.  Returns 0 or -errno. */
int switch_read(struct source_image *image);

#endif
