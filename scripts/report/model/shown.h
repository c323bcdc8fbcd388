/*
 * Selects the functions to show: --hide, --only, --focus and --merge-recursion.
 * The call paths of a model are folded once, so that all outputs show the same.
 */
#ifndef REPORT_MODEL_SHOWN_H
#define REPORT_MODEL_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct path;
struct selection;

/* The results of folding, for the head of the report. */
struct hidden {
	bool *is_hidden;    /* by function */
	uint32_t functions; /* number of functions without a remaining path */
	uint64_t calls;	    /* calls of hidden paths; unknown for samples */
	double outside;	    /* ns of hidden functions without a shown caller */
	bool has_focus;
	double time; /* time of the whole model, including paths out of focus */
};

bool selection_is_given(const struct selection *selection);

/*
 * shown_fold - keep only the paths of @model that its selection shows
 *
 * The self time of a hidden path is added to its caller's; its callees become
 * callees of its caller.  Totals do not change, except for paths that lead to
 * the focus: these keep only the time that is in focus.  Samples, memory, waits
 * and exceptions move with their paths.  Paths must have their totals.  Returns
 * false if all paths are shown and nothing was changed.
 */
bool shown_fold(struct model *model);

/* Mark the functions, by number, that --hide and --only leave out, or those that
 * --focus matches; the caller frees the array.  NULL: these options are not given. */
bool *shown_find_hidden(const struct model *model,
			const struct selection *selection);
bool *shown_find_focus(const struct model *model,
		       const struct selection *selection);

/* Warns of patterns of --hide that match no function, and dies if the arrays of these
 * two leave none. */
void shown_check_functions(const struct model *model,
			   const struct selection *selection,
			   const bool *is_hidden, const bool *is_focus);

/* Whether function number @function was recorded and has no shown path. */
bool shown_hides(const struct model *model, uint32_t function);

/* Adds a path whose time is not yet in @to. */
void path_add(struct path *to, const struct path *path);

/* For the printed model: warns of patterns in --hide that match no function;
 * dies if no path would remain. */
void shown_check(const struct model *model);

#endif
