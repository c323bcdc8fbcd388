/*
 * Joins samples of processor time to the paths of calls: struct shim_sampled_node in
 * the files of the trees.
 */
#ifndef BUDGET_SAMPLED_H
#define BUDGET_SAMPLED_H

#include "path/path.h"

/* Takes the slot of the trees.  Called once, before any sample. */
void budget_samples_start(void);

/* Adds a sample of the calling thread, which was interrupted at @context.  Returns the
 * thread's tree, or NULL without memory for one.  Called in a sample_hit. */
struct tree *budget_samples_add(const void *context, uint32_t weight);

/* The number of samples in hooks so far, and in code that counts calls. */
extern uint64_t budget_samples_hooks, budget_samples_counters;

/* Adds a sample without frames.  The interrupted instruction @ip shows whether the
 * thread was in its innermost recorded call or in a hook. */
struct tree *budget_samples_add_place(const void *context, uintptr_t ip,
				      uint32_t weight);

/* Marks the addresses of an image that was unloaded. */
void budget_samples_image_gone(uintptr_t low, uintptr_t high,
			       uint32_t generation);

#endif
