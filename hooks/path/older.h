/* Calls that were open when shim was attached (older.c). */
#ifndef PATH_OLDER_H
#define PATH_OLDER_H

#include "path/path.h"

/* The event for which a thread gets its tree, or comes to a stack: a call of function
 * @entered begins, a call of function @left ends, or neither (0). */
struct first_event {
	uintptr_t sp;
	uint64_t entered, left;
};

/* Whether the calling thread, which has no tree, has such calls. */
bool tree_is_older(void);

/* Opens them in the new tree of the calling thread.  Signals must be blocked. */
void tree_open_older(struct tree *tree, const struct first_event *event);

/* Opens those of a stack that the thread has come to for the first time: it is that of a
 * coroutine, or the thread's own after that of a coroutine. */
void tree_open_older_here(struct tree *tree);

/* Calls each(node, argument) for the nodes of all threads; they are in no table. */
void older_each(void (*each)(struct shim_node *node, void *argument),
		void *argument);

/* In a forked child: the nodes belong to the parent. */
void older_forget_all(void);

#endif
