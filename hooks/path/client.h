/*
 * The interface between the engine and profilers that follow each call.
 *
 * A client is added before the tree begins.  Each of its functions may be NULL.  The
 * engine calls them off the fast path, on the thread that owns the tree.
 */
#ifndef PATH_CLIENT_H
#define PATH_CLIENT_H

#include <shim/hooks.h>
#include <shim/record.h>

struct tree;
struct stack;
struct shim_node;
struct trace;

struct path_client {
	/* All profilers that start together have been started; @handle is the
	 * tree's. */
	void (*begin)(struct shim_profiler_handle *handle);
	/* Called in a fork child, which has a recording of its own. */
	void (*forked)(void);
	void (*image_gone)(uintptr_t low, uintptr_t high, uint32_t generation);

	/*
	 * For calls that are entered with their arguments, as in slow hooks.
	 * @wants_arguments says whether the client wants those of @function.  Then
	 * @enter is called; it returns false if it does not enter the call.
	 */
	bool (*wants_arguments)(shim_function function);
	bool (*enter)(shim_function function, const void *site, uintptr_t sp,
		      shim_elt_info info);
	/* Describes @group in @tree's file; false sets lost_cause. */
	bool (*describe_group)(struct tree *tree, uint16_t group);
};

/*
 * The one client that writes each call.  It does so in hooks of its own on the fast
 * path (enter.h).  "Quiet": signals are blocked.
 */
struct path_writer {
	/* By enum clock: enter, leave; the same after a restart; with @sp. */
	const shim_site_hook (*hooks)[2], (*again)[2];
	const shim_frame_hook (*at)[2];

	/* Makes what the writer's hooks need for a tree; a thread begins to use the
	 * tree. */
	struct trace *(*make)(struct tree *tree, enum shim_lost *cause);
	void (*thread_begins)(struct tree *tree);
	void (*thread_ended)(struct tree *tree);
	void (*thread_named)(struct tree *tree, const char *name);
	void (*closing)(struct tree *tree); /* no system calls after it */

	/* For a new path: the @hits of its node, with PATH_SLOW if its calls take the
	 * slow path; or PATH_LOST, which sets lost_cause. */
	uint64_t (*choose)(struct tree *tree, const struct shim_node *parent,
			   uint64_t function);

	/* The engine has opened or closed a call.  Quiet. */
	void (*opened)(struct shim_node *node);
	void (*closed)(struct shim_node *node, bool is_unwound);
	/* Opens or closes the call itself, without system calls; false if it cannot. */
	bool (*open)(struct shim_node *node, uint64_t frame, uint64_t clock);
	bool (*close)(struct shim_node *node, uint64_t clock);
	/* The same for a call with @arguments, whose type only the client knows; may be
	 * NULL. */
	bool (*open_with)(struct shim_node *node, uint64_t frame,
			  void *arguments);
	void (*opened_with)(struct shim_node *node, void *arguments);
	/* A call could not be opened. */
	void (*lost)(struct tree *tree, enum shim_lost cause);

	/* Ends the step that a signal handler interrupted in the writer's hook; true if
	 * there was one. */
	bool (*settle)(struct trace *trace);

	/* Before and after a change of the stack in use. */
	void (*switching)(struct tree *tree, const struct stack *to);
	void (*switched)(struct tree *tree);
	/* Before and after a fork child makes the parent's open calls again in its own
	 * tree. */
	void (*copying)(struct tree *tree);
	void (*copied)(struct tree *tree);
	/* The hooks are enabled again, with @innermost as the innermost call.  The
	 * length of @node's call cannot be known. */
	void (*restarted)(struct tree *tree, struct shim_node *innermost);
	void (*doubted)(struct tree *tree, struct shim_node *node);

	/* A trace to measure the cost of a call with. */
	struct trace *(*measure)(void);
};

#define PATH_SLOW (1ull << 32)
#define PATH_LOST UINT64_MAX

/* The clients; the one that makes groups of calls is the first. */
#define PATH_CLIENTS 4
extern const struct path_client *path_clients[PATH_CLIENTS + 1];
extern const struct path_writer *path_writer; /* or NULL */
void path_add_client(const struct path_client *client);

/*
 * A slot of a profiler: a word of each tree (@slot) and of each node (tree_find_data),
 * 0 at first.  There are enough slots for all built-in profilers.
 */
#define PATH_SLOTS 8
unsigned path_add_slot(void);

#define TELL_CLIENTS(function, ...) \
	do { \
		for (const struct path_client **at_ = path_clients; *at_; \
		     at_++) \
			if ((*at_)->function) \
				(*at_)->function(__VA_ARGS__); \
	} while (0)

#endif
