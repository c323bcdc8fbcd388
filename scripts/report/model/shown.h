/*
 * Which functions are shown: --hide, --only, --focus and --merge-recursion.  The call paths
 * of a model are folded once, so that all outputs show the same.
 */
#ifndef REPORT_MODEL_SHOWN_H
#define REPORT_MODEL_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

struct model;
struct selection;

/* What was folded, for those who show it. */
struct hidden {
	bool *is_hidden;    /* by function */
	uint32_t functions; /* that have no path any more */
	uint64_t calls; /* of paths that are not shown; of samples, unknown */
	double outside; /* ns of hidden functions without a shown caller */
	bool has_focus;
	double time; /* of the whole, with what is out of focus */
};

bool selection_is_given(const struct selection *selection);

/*
 * shown_fold - leaves the paths in @model that its selection shows
 *
 * The self time of a hidden path becomes its caller's; its callees become those of its
 * caller.  Totals stay, but for paths that lead to the focus: these have no more than what
 * is in focus.  Samples, memory, waits and exceptions move with their paths.  Paths must
 * have their totals.  Returns false if all is shown, and nothing was changed.
 */
bool shown_fold(struct model *model);

/* Whether function number @function was recorded and has no path that is shown. */
bool shown_hides(const struct model *model, uint32_t function);

/* Of the model that is printed: warns of patterns to hide that no function matches; dies
 * if nothing would be left. */
void shown_check(const struct model *model);

#endif
