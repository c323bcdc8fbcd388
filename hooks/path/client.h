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
	/* Called after all profilers that start together; @handle belongs to the
	 * tree. */
	void (*begin)(struct shim_profiler_handle *handle);
	/* Called in a fork child, which has its own recording. */
	void (*forked)(void);
	/* Called when another recording begins in this process: the same, but other
	 * threads may still be in a hook.  NULL: forked is called. */
	void (*renewed)(void);
	/* Called after the calls have stopped, because the last profiler that needs them has
	 * left, and before they go on. */
	void (*recorded)(bool is_on);
	void (*image_gone)(uintptr_t low, uintptr_t high, uint32_t generation);

	/*
	 * For calls that are entered with their arguments, as in slow hooks.
	 * @wants_arguments returns whether the client reads the arguments of @function.
	 * Then @enter is called; it returns false if it leaves the call to the engine.
	 */
	bool (*wants_arguments)(shim_function function);
	bool (*enter)(shim_function function, const void *site, uintptr_t sp,
		      shim_elt_info info);
	/* Describes @group in @tree's file; false sets lost_cause. */
	bool (*describe_group)(struct tree *tree, uint16_t group);
};

/*
 * The one client that writes each call.  It has its own hooks on the fast path
 * (enter.h).  "Quiet" means that signals are blocked.
 */
struct path_writer {
	/* Hooks by enum clock, enter and leave: first, after a restart, and with the
	 * stack pointer as an argument. */
	const shim_site_hook (*hooks)[2], (*again)[2];
	const shim_frame_hook (*at)[2];

	/* Makes the data of the writer's hooks for a tree. */
	struct trace *(*make)(struct tree *tree, enum shim_lost *cause);
	void (*thread_begins)(struct tree *tree);
	void (*thread_ended)(struct tree *tree);
	void (*thread_named)(struct tree *tree, const char *name);
	void (*closing)(struct tree *tree); /* after it, no system calls */

	/* Returns the @hits of a new path's node, with PATH_SLOW if its calls take the
	 * slow path; or PATH_LOST, and sets lost_cause. */
	uint64_t (*choose)(struct tree *tree, const struct shim_node *parent,
			   uint64_t function);

	/* Called after the engine has opened or closed a call.  Quiet. */
	void (*opened)(struct shim_node *node);
	void (*closed)(struct shim_node *node, bool is_unwound);
	/* Open or close the call itself, without system calls; false if they cannot. */
	bool (*open)(struct shim_node *node, uint64_t frame, uint64_t clock);
	bool (*close)(struct shim_node *node, uint64_t clock);
	/* Do the same for a call with @arguments, whose type only the client knows.
	 * May be NULL. */
	bool (*open_with)(struct shim_node *node, uint64_t frame,
			  void *arguments);
	void (*opened_with)(struct shim_node *node, void *arguments);
	/* Called when a call could not be opened. */
	void (*lost)(struct tree *tree, enum shim_lost cause);

	/* Completes the step of the writer's hook that this signal handler interrupted.
	 * False if it interrupted none. */
	bool (*settle)(struct trace *trace);

	/* Called before and after a change of the stack in use. */
	void (*switching)(struct tree *tree, const struct stack *to);
	void (*switched)(struct tree *tree);
	/* Called before and after a fork child makes the parent's open calls again in
	 * its own tree. */
	void (*copying)(struct tree *tree);
	void (*copied)(struct tree *tree);
	/* Called when the hooks are enabled again, with @innermost as the innermost
	 * call; and for each @node whose call has an unknown length. */
	void (*restarted)(struct tree *tree, struct shim_node *innermost);
	void (*doubted)(struct tree *tree, struct shim_node *node);

	/* Makes a trace to measure the cost of a call with. */
	struct trace *(*measure)(void);
};

#define PATH_SLOW (1ull << 32)
#define PATH_LOST UINT64_MAX

/* The clients.  The client that makes groups of calls is the first. */
#define PATH_CLIENTS 4
extern const struct path_client *path_clients[PATH_CLIENTS + 1];
extern const struct path_writer *path_writer; /* NULL: no writer */
void path_add_client(const struct path_client *client);

/*
 * Returns a slot for a profiler, which is a word of each tree (@slot) and of each node
 * (tree_find_data).  The word is 0 at first.  All built-in profilers together need
 * fewer than PATH_SLOTS.
 */
#define PATH_SLOTS 8
unsigned path_add_slot(void);

#define CALL_CLIENTS(function, ...) \
	do { \
		for (const struct path_client **at_ = path_clients; *at_; \
		     at_++) \
			if ((*at_)->function) \
				(*at_)->function(__VA_ARGS__); \
	} while (0)

#endif
