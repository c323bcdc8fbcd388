/*
 * A recording, as far as it can be believed.  Whatever is wrong with it has
 * been said by warn() when recording_open() returns; what is left is within
 * bounds.  The program may still be running: what the functions here have
 * not copied may change under the reader's eyes.
 */
#ifndef REPORT_READ_H
#define REPORT_READ_H

#include <shim/format.h>

#include "util.h"

struct image {
	uint32_t generation;
	uint32_t object;		/* for symbols.h */
	uint32_t data_object;		/* the same, of locks.c */
	uint64_t start, end, bias;
	uint64_t load_clock, unload_clock;
	uint32_t build_id_size;
	const unsigned char *build_id;
	const char *path;
};

/* Nodes between two holes of the file, all in one chunk. */
struct extent {
	uint64_t begin, end;		/* in the file */
	uint32_t chunk;
	uint32_t first_slot;		/* of @begin, in tree_file.slots */
};

/* A node that is in use, in the order of the file. */
struct entry {
	uint64_t offset;
	uint32_t parent;		/* entry; NONE: the pointer is bad */
	uint32_t site;			/* a function; NONE: a thread's root */
	uint32_t path;			/* for the model */
	uint32_t thread;		/* for the model */
};

struct tree_file {
	const char *name;		/* "PID.N/0.calltree" */
	const unsigned char *data;
	uint64_t size;
	uint32_t tid;
	bool is_sampled;		/* what samples found, not calls */
	uint32_t chunk_count;
	struct shim_chunk chunks[SHIM_FILE_CHUNKS];
	struct extent *extents;
	uint32_t extent_count;
	uint32_t *slots;		/* entry + 1 that begins there */
	struct entry *entries;
	uint32_t entry_count;
	uint64_t *memory;		/* offsets of struct shim_memory_node */
	uint32_t memory_count;
	uint64_t heap;			/* of struct shim_heap_node; 0: none here */
	uint64_t points;		/* of struct shim_points_node, likewise */
	uint64_t *snapshots;		/* of struct shim_snapshot_node */
	uint32_t snapshot_count;
	uint64_t *alive;		/* of struct shim_alive_node */
	uint32_t alive_count;
	uint64_t *locks;		/* of struct shim_lock_node */
	uint32_t lock_count;
	uint64_t *throws;		/* of struct shim_throw_node */
	uint32_t throw_count;
};

/* A chunk of a file, where the program had it. */
struct file_range {
	uint64_t begin, size;
	uint32_t file;			/* of the process's */
};

/* N.coverage; see coverage.c. */
struct coverage_file {
	const char *name;
	const unsigned char *data;
	uint64_t size;
};

enum end_source {
	END_UNKNOWN,			/* the last time seen: a lower bound */
	END_META,
	END_STATUS			/* profrun saw it */
};

/* One run.  A recording is one, or is made of several: profrun merge, jobs. */
struct run {
	const char *name;		/* its directory in the recording; NULL: that
					 * is all there is */
	bool has_end;
	int wait_status;
	uint64_t end_mono_ns;
	const char *log;		/* of processes that could not record; or NULL */
};

struct process {
	const char *name;		/* "PID.N", in a part "PART/PID.N" */
	uint32_t part;
	uint32_t pid, number;
	bool has_meta;			/* else no time of it is known */
	bool is_main;			/* an image of what profrun ran */
	struct shim_meta meta;		/* zero where it was cut */
	double unit_ns;			/* of the clock */
	bool unit_is_measured;
	uint64_t end_clock;
	enum end_source end_source;
	uint64_t latest_clock;		/* seen anywhere in it */
	uint64_t limit_clock;		/* no clock value can be later */
	struct image *images;		/* by start */
	uint32_t image_count;
	struct image_index *image_index;	/* images.c's */
	uint64_t images_lost;
	struct tree_file *files;
	uint32_t file_count;
	struct file_range *ranges;	/* of all of them, by @begin */
	uint32_t range_count;
	struct coverage_file *coverage;
	uint32_t coverage_count;
};

/* A function as the program knew it, once per process and generation. */
struct site {
	uint64_t address;
	uint32_t generation;
	uint32_t process;
	const char *group;		/* which calls of it; NULL: all */
	uint32_t function;		/* for the model */
};

struct recording {
	const char *path;
	struct run *parts;		/* by name */
	uint32_t part_count, part_room;
	struct process *processes;	/* by part, then by start time */
	uint32_t process_count, process_room;
	bool has_end;			/* all parts have */
	int wait_status;		/* the first that is not 0 */
	struct site *sites;
	uint32_t site_count, site_room;
	struct names groups;		/* "kind=NUMBER" */
	bool is_needed;			/* for another model, when one is built */
};

/* The newest recording in the working directory; dies if there is none. */
const char *recording_find(void);

/* Dies if @path is no recording, or of another version.  @pid: only that
 * process; 0: all. */
void recording_open(struct recording *recording, const char *path,
		    uint32_t pid);

/* The directories in @path that are recordings, sorted; none if it is one itself. */
char **recording_parts(int directory, size_t *count);
/* The value of a key in meta's strings, or NULL. */
const char *process_string(const struct process *process, const char *key);
double process_ns(const struct process *process, uint64_t clock);
/* Remembers the latest time seen, if it is possible at all. */
void process_see_clock(struct process *process, uint64_t clock);

/* Which file is where, for what points from one into another; again, when some of them
 * have gone. */
void process_list_ranges(struct process *process);

/* Whether NAME[:ARGUMENTS] is among what the process was profiled with. */
bool process_has_profile(const struct process *process, const char *name);

/* process.c: @directory is the process's, @path the recording's. */
void read_meta(struct process *process, int directory, const char *path);
void read_images(struct process *process, int directory, const char *path);

/* images.c */

/* After the last image of @process was read. */
void images_index(struct process *process);
/*
 * The image that had @address; NULL if that is not known.  With @generation 0, one
 * that is gone is also right if no other image was ever there: then the program
 * ended before it could say so in its nodes.
 */
struct image *process_image(const struct process *process, uint64_t address,
			    uint32_t generation);
/* The last image of @generation that begins at or before @address, or NULL. */
struct image *process_image_before(const struct process *process,
				   uint64_t address, uint32_t generation);

/* calltree.c */

/* The sites of a process by function word, and those of groups. */
struct site_maps {
	struct map plain;
	struct map functions;		/* of groups: numbers */
	struct map grouped;		/* number << 32 | group */
};

/*
 * calltree_open - maps @fd and lists its nodes and their sites
 *
 * @sites are those that the process has so far.
 * @fd stays the caller's.  Returns false, with a warning, when nothing of it
 * can be used.
 */
bool calltree_open(struct tree_file *file, int fd, const char *name,
		   struct recording *recording, uint32_t process,
		   struct site_maps *sites);
/* The entry that begins at @address in the program's memory, or NONE. */
uint32_t calltree_find(const struct tree_file *file, uint64_t address);
/* And its path in the model; NONE if there is no entry. */
uint32_t calltree_find_path(const struct tree_file *file, uint64_t address);
/* Copies the extra node at @address that belongs to the node at @offset;
 * false if there is none. */
bool calltree_extra(const struct tree_file *file, uint64_t address,
		    uint64_t offset, struct shim_extra_node *extra);
/* The name of the struct shim_type_node at @address; NULL: there is none. */
const char *calltree_type(const struct tree_file *file, uint64_t address);
/* What the program called @offset. */
uint64_t calltree_address(const struct tree_file *file, uint64_t offset);
/* Whether a struct shim_memory_node is there instead. */
/* What the node at @offset has beside it of that kind, at @address. */
bool calltree_memory(const struct tree_file *file, uint64_t address,
		     struct shim_memory_node *memory);
bool calltree_is_memory(const struct tree_file *file, uint64_t address);
/* Copies the struct shim_lives_node at @address, in whichever file of the process. */
bool calltree_lives(const struct process *process, uint64_t address,
		    struct shim_lives_node *lives);
/* read.c, for all of them. */

/* The directory of a process in @recording; negative, with a warning. */
int open_directory(int directory, const char *path, const char *name);
/* The names in @directory that @wanted likes, by their number; free() it. */
char **list_names(int directory, bool (*wanted)(const char *), size_t *count);
/* Opens a file for reading; negative, with a warning, if that cannot be. */
int open_in(int directory, const char *file, const char *name);
/* Maps a regular file readable; dies when its version is not ours. NULL with
 * a warning when it is no good. */
const unsigned char *map_file(int fd, const char *name, uint64_t *size);
void unmap_file(const unsigned char *data, uint64_t size);
void check_version(const char *name, uint32_t version);
/* The chunks of a file of @size bytes that are within it and do not overlap; of others
 * a warning.  How many. */
uint32_t read_chunks(const char *name, uint64_t size,
		     const struct shim_file *header,
		     struct shim_chunk chunks[SHIM_FILE_CHUNKS]);
bool is_unfinished(const char *name, uint32_t version);

#endif
