/* Reads files of call trees: N.calltree and N.sampling. */
#ifndef REPORT_READ_CALLTREE_H
#define REPORT_READ_CALLTREE_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/format.h>

#include "base/map.h"

struct process;
struct recording;

/* Nodes between two holes of the file, all in one chunk. */
struct extent {
	uint64_t begin, end; /* in the file */
	uint32_t chunk;
	uint32_t first_slot; /* number of the first slot in tree_file.slots */
};

/* A node in use; entries are in file order. */
struct entry {
	uint64_t offset;
	uint32_t parent; /* number of an entry; NONE: the pointer is bad */
	uint32_t
		site; /* a function or a sampled frame; NONE: a thread's root */
	uint32_t path;	 /* for the model */
	uint32_t thread; /* for the model */
};

/* A function whose instrumentation was switched off. */
struct throttled {
	uint64_t offset; /* offset of its struct shim_throttled_node */
	uint32_t site;
};

struct tree_file {
	const char *name; /* "PID.N/0.calltree" */
	const unsigned char *data;
	uint64_t size;
	uint32_t tid;
	bool is_sampled;  /* holds samples, not calls */
	bool has_guesses; /* of samples: callers that are guesses */
	bool is_flat;	  /* of samples: they have no callers */
	uint32_t chunk_count;
	struct shim_chunk chunks[SHIM_FILE_CHUNKS];
	struct extent *extents;
	uint32_t extent_count;
	/* by slot: 1 + the number of the entry that begins there */
	uint32_t *slots;
	struct entry *entries;
	uint32_t entry_count;
	uint64_t *memory; /* offsets of struct shim_memory_node */
	uint32_t memory_count;
	/* offset of struct shim_heap_node; 0: not in this file */
	uint64_t heap;
	/* offset of struct shim_points_node; 0: not in this file */
	uint64_t points;
	uint64_t *snapshots; /* of struct shim_snapshot_node */
	uint32_t snapshot_count;
	uint64_t *alive; /* of struct shim_alive_node */
	uint32_t alive_count;
	uint64_t *locks; /* of struct shim_lock_node */
	uint32_t lock_count;
	uint64_t *throws; /* of struct shim_throw_node */
	uint32_t throw_count;
	struct throttled *throttled;
	uint32_t throttled_count;
	uint64_t counters; /* offset of its struct shim_counters_node, or 0 */
	uint64_t damaged;  /* records; a lower bound */
};

/* Maps from function words, and from groups, to the sites of a process. */
struct site_maps {
	struct map plain;
	struct map functions; /* function word to a number, for groups */
	struct map grouped;   /* number << 32 | group, to the site */
	/* address and generation of a sampled frame, to its number */
	struct map frames;
};

/*
 * calltree_open - map @fd and list its nodes and their sites
 *
 * @sites holds the sites of the process so far.  The caller keeps @fd.  Returns
 * false, with a warning, if the file is unusable.
 */
bool calltree_open(struct tree_file *file, int fd, const char *name,
		   struct recording *recording, uint32_t process,
		   struct site_maps *sites);
/* Unmaps the file and frees its lists. */
void calltree_close(struct tree_file *file);
/* The entry that begins at @address in the program's memory, or NONE. */
uint32_t calltree_find(const struct tree_file *file, uint64_t address);
/* The same for the node's path in the model; NONE if there is no entry. */
uint32_t calltree_find_path(const struct tree_file *file, uint64_t address);
/* Copies the extra node at @address that belongs to the node at @offset;
 * false if there is none. */
bool calltree_extra(const struct tree_file *file, uint64_t address,
		    uint64_t offset, struct shim_extra_node *extra);
/* The name in the struct shim_type_node at @address, or NULL. */
const char *calltree_type(const struct tree_file *file, uint64_t address);
/* The program's address of @offset. */
uint64_t calltree_address(const struct tree_file *file, uint64_t offset);
/* Copies the struct shim_memory_node at @address; false if there is none. */
bool calltree_memory(const struct tree_file *file, uint64_t address,
		     struct shim_memory_node *memory);
/* Whether the node at @address is a struct shim_memory_node. */
bool calltree_is_memory(const struct tree_file *file, uint64_t address);
/* Copies the struct shim_lives_node at @address from any file of the
 * process. */
bool calltree_lives(const struct process *process, uint64_t address,
		    struct shim_lives_node *lives);

#endif
