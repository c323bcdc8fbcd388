/*
 * What a recording looks like on disk.  The program writes it, the report
 * reads it, and this header is all they share; it says enough to write a
 * reader from.
 *
 * A recording is a directory, mode 0700, with one directory per process image
 * in it, named PID.N (N counts what the same pid did before: an exec starts a
 * new one).  That one holds, mode 0600:
 *
 *     meta            one struct shim_meta
 *     images          one struct shim_images, then struct shim_image_record records
 *     N.calltree      one file per thread that was alive at the same time:
 *                     a struct shim_file, then chunks of struct shim_node; and one
 *                     for what lived when somebody asked (memory)
 *     N.sampling      the same, with what samples have found
 *     N.trace         a struct shim_file, a struct shim_trace_info, then blocks
 *                     of records: every enter and leave of one thread
 *     N.functions     a struct shim_file, then chunks of function words: what the
 *                     numbers in traces mean
 *     N.values        a struct shim_file, then chunks of descriptions: what the
 *                     arguments and results in traces are
 *     N.coverage      a struct shim_file, then chunks of what was reached
 *     N.pchist        counters of monitor(3): a struct shim_histogram where its
 *                     last chunk begins
 *     N.arcs          calls of a program compiled with -pg: its last chunk is
 *                     struct shim_arc, one after the other
 *
 * and beside them `end`, written by profrun when the program has ended:
 * one line, "status WAIT-STATUS mono-ns TIME"; and `gaps`, a struct shim_gaps and
 * then struct shim_switch records, if profrun was to see them (--gaps); and `counters`
 * (--counters), lines "MONO-NS PID VALUE NAME": what the system has counted of a
 * process is VALUE at that time of CLOCK_MONOTONIC; and `log`, lines "process PID: WHY"
 * of processes that could not record.
 *
 * A directory of such recordings is one as well, of all that is in them: the
 * ranks of a parallel job (rank.N), or what profrun merge has put together.
 *
 * The program writes these files through shared mappings and never has to
 * finish them: it may die between any two stores.  So a reader takes what is
 * there.  Unwritten space is zero.  All integers are little-endian, all
 * structures naturally aligned, times are in clock units (struct shim_meta
 * says how long one is) unless the name ends in _ns.
 *
 * A reader must refuse a version it does not know.  It must trust nothing:
 * the program shares the memory these files are made of.
 *
 * Version 2 is said by the meta of a process whose calls are grouped by an
 * argument (calltree:by=), and only by that: its nodes may have groups.
 *
 * Example: whether a file is the meta of a recording.
 *
 *     #include <shim/format.h>
 *     #include <stdio.h>
 *     #include <string.h>
 *
 *     int is_meta(FILE *file);
 *     int is_meta(FILE *file)
 *     {
 *             struct shim_meta meta;
 *
 *             return fread(&meta, sizeof(meta), 1, file) == 1 &&
 *                    !memcmp(meta.magic, SHIM_META_MAGIC, sizeof(meta.magic));
 *     }
 */
#ifndef SHIM_FORMAT_H
#define SHIM_FORMAT_H

#include <stdint.h>

#ifdef __cplusplus
#define SHIM_LAYOUT(type, bytes) \
	static_assert(sizeof(type) == (bytes), "layout")
/* Arrays without a length end many structures; C++ has none. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#else
#define SHIM_LAYOUT(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), "layout")
#endif

#define SHIM_FORMAT_VERSION	   1u
#define SHIM_FORMAT_VERSION_GROUPS 2u

#define SHIM_META_MAGIC	  "SHIMMETA"
#define SHIM_IMAGES_MAGIC "SHIMIMGS"
#define SHIM_FILE_MAGIC	  "SHIMFILE"

/* Why calls could not be recorded. */
enum shim_lost {
	SHIM_LOST_SPACE,     /* the disk or the quota is full */
	SHIM_LOST_FILE_SIZE, /* RLIMIT_FSIZE */
	SHIM_LOST_MEMORY,    /* no address space or memory: RLIMIT_AS, ENOMEM */
	SHIM_LOST_ACCESS, /* the recording cannot be reached or written any more */
	SHIM_LOST_FORBIDDEN, /* system calls are forbidden: seccomp */
	SHIM_LOST_LIMIT,     /* a limit of ours: table or address range full */
	SHIM_LOST_OTHER,
	SHIM_LOST_CAUSES
};

/* What besides calls could not be recorded. */
enum shim_lost_kind {
	SHIM_LOST_ALLOCATIONS,
	SHIM_LOST_MAPPINGS,
	SHIM_LOST_WAITS,      /* for locks */
	SHIM_LOST_EXCEPTIONS, /* thrown, or caught */
	SHIM_LOST_KINDS
};

/* How the process image ended, as far as it could say so itself. */
enum shim_end {
	SHIM_END_UNKNOWN, /* killed, crashed, or still running */
	SHIM_END_EXIT,	  /* exit, _exit, quick_exit, return from main */
	SHIM_END_EXEC,	  /* became another program */
	SHIM_END_ABORT,	  /* abort */
};

enum shim_clock_read {
	SHIM_CLOCK_TSC = 1, /* the processor's time stamp counter */
	SHIM_CLOCK_MONOTONIC_NS = 2,
};

/* What one call of the hooks costs, in 1/1000 clock units: the part that falls
 * inside the measured duration of the function, and the part outside it, which
 * the caller's self time contains. */
struct shim_cost {
	uint32_t inside;
	uint32_t outside;
};

/* Losses of threads that could not even get a file of their own. */
struct shim_lost_thread {
	uint32_t tid; /* 0: not used; the last slot serves all the rest */
	uint32_t unused;
	uint64_t lost[SHIM_LOST_CAUSES];
};

#define SHIM_META_STRINGS 8192
#define SHIM_META_LOG	  8192
#define SHIM_META_THREADS 32

struct shim_meta {
	char magic[8];
	uint32_t version;
	uint32_t size; /* of this structure */
	uint32_t pid;
	uint32_t parent_pid;
	uint32_t clock;	      /* enum shim_clock_read */
	uint32_t end;	      /* enum shim_end */
	uint32_t exit_status; /* with SHIM_END_EXIT, if it was known */
	uint32_t forked;      /* 1: began with a fork, not with exec */

	/* Two readings of (clock, CLOCK_MONOTONIC): the first at the start, the
	 * last whenever something slow happened.  Their distance gives the
	 * length of a clock unit; @clock_hz is what the system claims, or 0. */
	uint64_t first_clock;
	uint64_t first_mono_ns;
	uint64_t last_clock;
	uint64_t last_mono_ns;
	uint64_t clock_hz;
	uint64_t start_real_ns; /* CLOCK_REALTIME at the start */
	uint64_t end_clock;	/* 0: unknown */
	uint64_t tick;		/* length of the coarse clock's tick; 0: none */

	/* calls timed by the coarse clock, or not */
	struct shim_cost cost_coarse;
	struct shim_cost cost_exact; /* calls timed exactly */

	uint64_t orphans; /* leaves without an enter that we know of */
	uint64_t unwound; /* frames ended without a leave */

	/* NUL-terminated "key=value" strings, one after the other: program,
	 * command, directory, host, rank, profile, filter.  The last is cut where
	 * it fills @strings. */
	uint32_t strings_size;
	/* Text, one message a line. */
	uint32_t log_size; /* may exceed SHIM_META_LOG: text was dropped */
	char strings[SHIM_META_STRINGS];
	char log[SHIM_META_LOG];

	uint32_t lost_threads; /* slots asked for; may exceed the table */
	uint32_t unused;
	struct shim_lost_thread lost[SHIM_META_THREADS];

	/* Call sites of the hooks, which can be switched off in the program's
	 * code.  They are not looked for before something is switched. */
	uint32_t switched;	 /* how often all were; odd: they are off */
	uint32_t sites;		 /* known */
	uint32_t sites_off;	 /* of them, when something was switched last */
	uint32_t sites_rejected; /* looked like one, in no function */
	uint32_t site_images;	 /* objects that call hooks */
	uint32_t site_images_unwritable; /* whose code could not be changed */

	/* calltree, coarse clock: nodes have their self times (@extra), and what
	 * these still contain of the hooks. */
	uint32_t has_self;
	uint32_t unused2;
	struct shim_cost cost_unseen;

	/* @lost is of calls. */
	uint64_t lost_others[SHIM_LOST_KINDS][SHIM_LOST_CAUSES];
};

struct shim_images {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* the first record begins here */
	uint64_t lost;	      /* images that did not fit */
};

/*
 * One loaded object.  @generation stays 0 while it is loaded.  When it goes,
 * it gets a number of its own, which then also stands in bits 48-62 of the
 * function words of every node that meant it: an address that is used again
 * never gets the wrong name.
 */
struct shim_image_record {
	uint32_t size; /* of the record, a multiple of 8; 0: the end */
	uint32_t generation;
	uint64_t start; /* the addresses it covers: [start, end) */
	uint64_t end;
	uint64_t bias; /* run-time address minus address in the file */
	uint64_t load_clock;
	uint64_t unload_clock; /* 0: not unloaded */
	uint64_t device;
	uint64_t inode;
	uint32_t build_id_size; /* bytes; 0: it has none */
	uint32_t path_size;	/* bytes with the NUL */
	unsigned char text[];	/* the build-id, then the path */
};

#define SHIM_FILE_CHUNKS 40

/*
 * A per-thread file.  Chunks follow each other in the file; @address is where
 * the program had the chunk, so that pointers in it can be followed.
 */
struct shim_chunk {
	uint64_t offset; /* in the file */
	uint64_t size;
	uint64_t address;
};

struct shim_file {
	char magic[8];
	uint32_t version;
	uint32_t header_size;
	char kind[16]; /* the profiler: "calltree" */
	uint32_t pid;
	uint32_t number;
	uint32_t tid;	 /* the thread that uses it now */
	uint32_t chunks; /* how many of @chunk are valid */
	struct shim_chunk chunk[SHIM_FILE_CHUNKS];
};

/*
 * calltree: every 64 bytes of its chunks are one of these, told apart by
 * the first word.  Two nodes may mean the same path (a signal came between):
 * a reader adds them.  The first word of THREAD has the tid in it, and those of
 * GROUP, SNAPSHOT and ALIVE have a number; the nodes are struct shim_thread_node,
 * struct shim_group_node and so on.
 */
#define SHIM_NODE_THREAD   0xffff000000000000ull
#define SHIM_NODE_EXTRA	   0xfffe000000000000ull
#define SHIM_NODE_GROUP	   0xfffd000000000000ull
#define SHIM_NODE_MEMORY   0xfffc000000000000ull
#define SHIM_NODE_HEAP	   0xfffb000000000000ull
#define SHIM_NODE_LIVES	   0xfffa000000000000ull
#define SHIM_NODE_LOCK	   0xfff9000000000000ull
#define SHIM_NODE_TYPE	   0xfff8000000000000ull
#define SHIM_NODE_THROW	   0xfff7000000000000ull
#define SHIM_NODE_POINTS   0xfff6000000000000ull
#define SHIM_NODE_SNAPSHOT 0xfff5000000000000ull
#define SHIM_NODE_ALIVE	   0xfff4000000000000ull
/* mask: all ones in these, never in a function word */
#define SHIM_NODE_SPECIAL 0xff00000000000000ull
/* flag in a function word: timed exactly now, or in doubt (frame, bit 0), or with a
 * group */
#define SHIM_NODE_EXACT		       0x8000000000000000ull
#define SHIM_NODE_ADDRESS	       0x0000ffffffffffffull
#define SHIM_NODE_GENERATION(function) ((uint32_t)((function) >> 48 & 0x7fff))
#define SHIM_GENERATION_MAX	       0x7effu /* later unloads: the name is unknown */

#define SHIM_ASKING_UNIT 16 /* clock units */

struct shim_node {
	/* address | generation << 48 | SHIM_NODE_EXACT; 0: unused */
	uint64_t function;
	uint64_t parent; /* address of the parent's node */
	uint64_t calls;
	uint64_t time;	/* of finished calls, children included */
	uint64_t start; /* clock when the open call began */
	/* not 0: a call is open, with the stack pointer so far above the stack's low
	 * end; bits 0-2 are flags.  0: it may have ended while calls were off */
	uint64_t frame;
	/* coarse: how often the clock was found to have ticked in that time; with a
	 * group: what it took to find it, in SHIM_ASKING_UNITs, which the callers'
	 * times contain */
	uint32_t hits;
	/* 1: some calls were timed by the coarse clock; 2: calls were not timed */
	uint8_t coarse;
	uint8_t unused;
	/* which calls of the function these are: number of a struct shim_group_node
	 * before it in this file; 0: all */
	uint16_t group;
	/* exact: address of its struct shim_extra_node, or 0 (memory nodes say
	 * themselves whose they are); else of its struct shim_memory_node, or 0; or,
	 * odd, from bit 1 on, the time in which no function below it and no hook was
	 * at work, as the coarse clock shows it */
	uint64_t extra;
};

#define SHIM_EXTRA_SELF 1ull

/* The root of a thread's tree (128 bytes). Its parent is 0. A coroutine that
 * ran on the thread has a root of its own, with @coroutine 1. */
struct shim_thread_node {
	uint64_t function; /* SHIM_NODE_THREAD | tid */
	uint64_t parent;
	uint64_t coroutine;
	uint64_t memory; /* address of its struct shim_memory_node, or 0 */
	uint64_t start;
	uint64_t frame;
	char name[16]; /* comm, NUL-padded */
	uint64_t lost[SHIM_LOST_CAUSES];
	/* coarse clock: its last tick that a hook has seen; what came later is in no
	 * @extra */
	uint64_t last;
};

/*
 * What the calls of a group have in common (256 bytes): their argument, as text
 * that is to be shown, "kind=NUMBER".  "kind=?" are those whose argument could not
 * be had, "kind=..." those of all further values when there were too many.  A
 * number means the same in all files of a process; each file says it for itself.
 */
#define SHIM_GROUP_TEXT 240

struct shim_group_node {
	uint64_t function;  /* SHIM_NODE_GROUP | number, which is not 0 */
	uint32_t text_size; /* bytes, without a NUL */
	uint32_t unused;
	char text[SHIM_GROUP_TEXT];
};

/*
 * sampling: a tree of the stacks that were seen, with the same nodes as calltree.
 * @function is where a function begins, or a part of it that the compiler has cut
 * off, as the tables for exceptions tell, or SHIM_SAMPLE_...  Of a struct
 * shim_node @calls are the samples that found the thread in this path itself, by
 * their weight, and @hits the signals that brought them; the others are 0.  A
 * root is a struct shim_sample_root.
 */
#define SHIM_SAMPLE_UNKNOWN 1ull /* an address of which nothing is known */
#define SHIM_SAMPLE_CUT	    2ull /* callers that could not be found */

#define SHIM_SAMPLED_REAL 2 /* the mode that is no processor time */

struct shim_sample_root {
	uint64_t function; /* SHIM_NODE_THREAD | tid */
	uint64_t parent;
	uint64_t coroutine; /* 0 */
	uint64_t last_node; /* real time: where the thread was found last, */
	uint64_t period_ns; /* of a sample of weight 1 */
	uint64_t mode;	    /* enum shim_sample_mode */
	char name[16];
	uint64_t lost[SHIM_LOST_CAUSES]; /* samples, by weight */
	/* and when; it may have slept there ever since. 0: its end was seen */
	uint64_t last_clock;
};

SHIM_LAYOUT(struct shim_sample_root, 128);

#define SHIM_BUCKETS 40

/*
 * calltree:exact, from a path's second call on (384 bytes).  Its buckets count
 * finished calls of 2^i up to 2^(i+1) - 1 clock units (0 counts as 1; the last
 * one is open); shim_bucket() finds bucket i.  A path with one call has none:
 * its time says it all.  The last call's duration is in @last and nowhere else
 * yet: to count it would mean to wait for the clock.
 *
 * What a call touches begins at @last: with the buckets of most calls it is one
 * line of the data cache.
 */
#define SHIM_SHORT_BUCKETS 4

struct shim_extra_node {
	uint64_t function; /* SHIM_NODE_EXTRA */
	uint64_t node;	   /* address of its struct shim_node */
	uint64_t min;
	uint64_t max;
	uint64_t short_bucket[SHIM_SHORT_BUCKETS];
	uint64_t last;
	/* For its program alone, see hooks/path: the shortest call that needs no
	 * question, and how much longer one may be that needs none either. */
	uint64_t range_low;
	uint64_t range_span;
	uint64_t bucket[SHIM_BUCKETS - SHIM_SHORT_BUCKETS];
	uint64_t unused;
};

static inline uint64_t *shim_bucket(struct shim_extra_node *extra, unsigned i)
{
	return i < SHIM_SHORT_BUCKETS ? &extra->short_bucket[i] :
					&extra->bucket[i - SHIM_SHORT_BUCKETS];
}

/*
 * memory: what was allocated in a path itself, by calls that no instrumented
 * function below it made (576 bytes).  Two of them may mean the same path: a reader
 * adds them.  Live is what was allocated and not released.
 *
 * What lived at the peak: if the heap node says that it is rising, what lives now;
 * else @peak_bytes and @peak_blocks if @epoch is the heap node's, and what lives now
 * if it is not.
 */
struct shim_memory_node {
	uint64_t function;    /* SHIM_NODE_MEMORY */
	uint64_t node;	      /* address of its struct shim_node, or root */
	uint64_t owner;	      /* for its program alone */
	uint64_t allocations; /* each realloc is one, and a release */
	uint64_t allocated_bytes;
	uint64_t reallocations; /* of the allocations */
	uint64_t releases;	/* by the thread that this file is of ... */
	uint64_t released_bytes;
	uint64_t other_releases; /* ... and by others */
	uint64_t other_released_bytes;
	/* of the releases: before the thread that had allocated it allocated again */
	uint64_t temporary;
	uint64_t epoch;
	uint64_t peak_bytes;
	uint64_t peak_blocks;
	/* of the allocations: those that were seen, if not all were (struct
	 * shim_heap_node) */
	uint64_t samples;
	uint64_t lives; /* address of its struct shim_lives_node, or 0 */
	/* allocations of 2^i to 2^(i+1) - 1 bytes; 0 counts as 1, the last one is
	 * open */
	uint64_t sizes[SHIM_BUCKETS];
	/* Of what lives, if the heap node says SHIM_LEAKS_KNOWN: what nothing
	 * points to, and what only such blocks point to. */
	uint64_t lost_bytes;
	uint64_t lost_blocks;
	uint64_t below_bytes;
	uint64_t below_blocks;
	uint64_t mappings; /* mmap's and mremap's */
	uint64_t mapped_bytes;
	uint64_t unmapped_bytes;
	uint64_t alive; /* for its program alone */
	uint64_t self;	/* what the node would have as @extra; 0 in roots */
	uint64_t unused[7];
};

/*
 * memory: how long blocks of a path lived that have lived at least for a tick of the
 * coarse clock (320 bytes).  All others of its releases were shorter than that.
 */
#define SHIM_LIVES_BUCKETS 32

struct shim_lives_node {
	uint64_t function; /* SHIM_NODE_LIVES */
	uint64_t node;	   /* address of its struct shim_memory_node */
	uint64_t unknown;  /* when these began is not known */
	uint64_t unused[5];
	/* 2^i up to 2^(i+1) - 1 ticks; the last one is open */
	uint64_t bucket[SHIM_LIVES_BUCKETS];
};

/* What is known of leaks; they are looked for when the process ends by exit. */
enum shim_leaks {
	SHIM_LEAKS_UNKNOWN = 0, /* it did not come to that */
	SHIM_LEAKS_KNOWN = 1,
	SHIM_LEAKS_LATE = 2, /* it would have taken too long */
	SHIM_LEAKS_FAILED = 3,
	SHIM_LEAKS_OFF = 4, /* nobody wanted to know */
};

/* memory: the process as a whole, in one of its files (192 bytes). */
struct shim_heap_node {
	uint64_t function; /* SHIM_NODE_HEAP */
	uint64_t live_bytes;
	uint64_t peak_bytes; /* the most that lived at once */
	uint64_t peak_clock; /* when, by the coarse clock; 0: unknown */
	uint64_t epoch;
	uint64_t is_rising; /* it is at its peak */
	uint64_t inherited; /* releases of blocks from before a fork */
	uint64_t calls;	    /* 1: calls were asked for as well */
	/* not 0: one in so many bytes was seen, on average; its numbers are
	 * estimates */
	uint64_t period;
	uint64_t has_lives;   /* 1: lifetimes were counted */
	uint64_t leaks;	      /* enum shim_leaks */
	uint64_t leaks_clock; /* what it took to find them, or not */
	/* When the process has ended by exit: */
	/* blocks that could not be noted: their release is not known, they count as
	 * left */
	uint64_t untold;
	uint64_t unknown;    /* releases of blocks that nobody has seen */
	uint64_t early_lost; /* calls before the start that did not fit */
	uint64_t unused[9];
};

/*
 * memory: how much lived, from time to time, while something was allocated or released
 * (3264 bytes).  When there is no room for more, every other one is kept, in the other
 * half, and @interval doubles.
 */
#define SHIM_POINTS 100

struct shim_point {
	uint64_t clock;
	uint64_t live_bytes;
};

struct shim_points_node {
	uint64_t function; /* SHIM_NODE_POINTS */
	uint64_t active;   /* the half that is in use: 0 or 1 */
	uint64_t count[2];
	uint64_t interval; /* from one to the next, at least */
	uint64_t unused[3];
	struct shim_point half[2][SHIM_POINTS];
};

/*
 * memory: what lived when somebody asked (64 bytes).  By path it is in the struct
 * shim_alive_nodes of the same number, in the same file; they are the whole of it if
 * @is_complete.
 */
struct shim_snapshot_node {
	uint64_t function; /* SHIM_NODE_SNAPSHOT | number, from 1 on */
	uint64_t clock;	   /* when it was begun */
	uint64_t duration; /* what it took */
	uint64_t leaks;	   /* enum shim_leaks: whether it says what was lost */
	uint64_t missing;  /* blocks there was no room to note */
	uint64_t is_complete;
	uint64_t unused[2];
};

struct shim_alive_node {
	uint64_t function; /* SHIM_NODE_ALIVE | number */
	uint64_t node;	   /* address of the path's struct shim_memory_node */
	uint64_t bytes;
	uint64_t blocks;
	uint64_t lost_bytes; /* of them: nothing points to them ... */
	uint64_t lost_blocks;
	uint64_t below_bytes; /* ... or only such blocks do */
	uint64_t below_blocks;
};

/*
 * locks: the waits of one path for one lock, while its holder was in one place (128
 * bytes).  Two of them may mean the same: a reader adds them.
 */
struct shim_lock_node {
	uint64_t function; /* SHIM_NODE_LOCK */
	uint64_t node;	   /* address of the path's struct shim_node, or root */
	uint64_t lock;	   /* its address | generation << 48 */
	/* address of the node, in any file of the process, of the innermost call of
	 * the thread that held it when the waiting began; 0: it is not known */
	uint64_t holder;
	uint64_t kind;	/* enum shim_lock_kind */
	uint64_t waits; /* that have begun */
	uint64_t time;	/* of those that are over */
	uint64_t max;
	uint64_t failures; /* of them: it did not get the lock */
	uint64_t refusals; /* calls that failed at once */
	uint64_t start;	   /* when the open wait began; 0: there is none */
	uint64_t unused2[5];
};

/*
 * exceptions: those of one type that were thrown in one path and caught in another
 * (64 bytes).  Two of them may mean the same: a reader adds them.
 */
struct shim_throw_node {
	uint64_t function; /* SHIM_NODE_THROW */
	/* address of the struct shim_node, or root, it was thrown in; 0: that is not
	 * known */
	uint64_t node;
	/* address of its struct shim_type_node in this file; 0: it is not known */
	uint64_t type;
	/* address of the node where it was caught; 0: these are all that were thrown */
	uint64_t catcher;
	uint64_t unused;
	uint64_t count;
	uint64_t unused2[2];
};

/* The name of a type, as std::type_info has it: a multiple of 64 bytes. */
struct shim_type_node {
	uint64_t function; /* SHIM_NODE_TYPE */
	uint64_t type;	   /* for its program alone */
	uint64_t unused[3];
	uint32_t text_size; /* bytes, without a NUL, at most SHIM_TYPE_TEXT */
	uint32_t is_cut;    /* it is longer */
	char text[];
};

#define SHIM_TYPE_TEXT (4096 - 48)

SHIM_LAYOUT(struct shim_lock_node, 128);
SHIM_LAYOUT(struct shim_throw_node, 64);

/*
 * trace: every enter and leave of a thread, in the order they happened.
 *
 * N.trace is a struct shim_file (the chunks in it say nothing), at header_size a
 * struct shim_trace_info, and from SHIM_TRACE_FIRST on blocks: the first ends at
 * SHIM_TRACE_BLOCK, the others are SHIM_TRACE_BLOCK long, up to the end of the
 * file.  A block is a struct shim_trace_block and then records.  One whose sequence
 * is 0 was never used.  Blocks are to be read by their sequence, which counts from
 * 1: in a ring new ones take the place of the oldest, and the first number that is
 * left is a larger one.
 *
 * A record begins at a multiple of 2 and is told by its first 16 bits, the head:
 *
 *     0                      nothing: 2 bytes to skip.  There is more, or there is not
 *     bit 0 = 1              a leave: 2 bytes.  Bits 1-15: time
 *     bits 0, 1 = 0, 1       an enter: 4 bytes.  Bits 2-16: time, 17-31: the function
 *     bits 0, 1 = 0, 0       bits 2-7 are the kind, enum shim_trace_kind; bits 8-15 the
 *                            size in units of 2 bytes with the head, or 0: then the
 *                            next 16 bits are the size.  What a reader does not know
 *                            it can skip.
 *
 * The program writes a record of at most 8 bytes with one store.  A longer one has
 * SHIM_TRACE_UNFINISHED as its kind until it is complete.  A signal handler that comes
 * into the middle of a short one leaves a hole for it: that is what zeros are.
 *
 * Times.  The clock is that of struct shim_meta, divided by 2^time_shift.  Each record
 * with a time has its 15 lowest bits, and is less than 2^15 such units later than
 * the one before; where it is not, a TIME comes first.  TIME has 48 bits, to be
 * completed in the same way, and a block has all 64.  A TIME, or block, that is earlier
 * than what was before it comes from a signal handler or a clock that was set back.
 * Records without a time of their own happened at that of the one before.
 *
 * Functions are numbers, of the whole process: N.functions (one file with this name in
 * a process) has the word of function I at the I-th place of 8 bytes, its
 * chunks taken one after the other: address | generation << 48, as in nodes.  Number
 * 0 is none.  Two numbers may mean the same function.
 *
 * Calls nest in tracks: track 0 is the thread's own stack, each coroutine has one of its
 * own.  An enter opens a call in the current track, a leave ends the innermost.  A
 * STACK says what is open on the current track, outermost first, where that cannot be
 * told from what is before it in the file: at the beginning of each block, and where
 * recording goes on after a PAUSE.  Calls in it that a reader does not know yet began
 * when nobody recorded, and are not counted as calls here; calls a reader knows
 * that are not in it ended unseen.  A call that was left out is in no STACK.
 *
 * Arguments and results are mostly recorded as the bytes that they are.  What these
 * mean is in N.values (one file with this name in a process), once: of types, and
 * of functions that are asked, by the numbers of descriptions, struct
 * shim_value_type and struct shim_value_list.  What is behind an address when the
 * call happens, and may be another thing later, is recorded as text: strings,
 * objects behind references, and whatever has a symbol.
 */
#define SHIM_TRACE_BLOCK     65536u
#define SHIM_TRACE_FIRST     8192u
#define SHIM_TRACE_TIME_BITS 15
#define SHIM_TRACE_LEAVE     1u /* in a head: | time << 1 */
#define SHIM_TRACE_ENTER     2u /* | time << 2 | function << 17 */
/* numbers from here on need an ENTER record */
#define SHIM_TRACE_FUNCTIONS 32768u

/* A head: of how many bytes. */
#define SHIM_TRACE_HEAD(kind, size) \
	((uint16_t)((unsigned)(kind) << 2 | (unsigned)(size) / 2 << 8))

enum shim_trace_kind {
	SHIM_TRACE_TIME = 1, /* 8 bytes: bits 16-63 are the time */
	SHIM_TRACE_ENTER_LONG, /* 8 bytes: function in bits 16-47, time in bits 48-62 */
	/* 2 bytes: the next leave is of a frame that was removed: longjmp, an
	 * exception, ... */
	SHIM_TRACE_UNWOUND,
	SHIM_TRACE_TRACK, /* 8 bytes: bits 16-47 are the track that goes on */
	SHIM_TRACE_TRACK_NEW, /* the same; whatever was open on it has gone */
	/* struct shim_trace_thread: another thread goes on with the file; all tracks
	 * are new */
	SHIM_TRACE_THREAD,
	SHIM_TRACE_NAME,  /* the same: this thread has another name */
	SHIM_TRACE_ENDED, /* 2 bytes: the thread's end */
	SHIM_TRACE_STACK, /* struct shim_trace_stack; its size is behind the head */
	/* 2 bytes: calls are not recorded from here on, until the next STACK */
	SHIM_TRACE_PAUSE,
	SHIM_TRACE_LOST, /* struct shim_trace_lost: calls are missing here */
	/* text from byte 2 on, padded with NULs: what the call that was entered last
	 * got */
	SHIM_TRACE_ARGUMENTS,
	SHIM_TRACE_RESULT, /* the same: what the call that is left next returns */
	SHIM_TRACE_MARK,   /* the same: the program says so here */
	SHIM_TRACE_RANGE_BEGIN, /* the same: a range begins, */
	/* and ends: the last that began on this thread with this text */
	SHIM_TRACE_RANGE_END,
	SHIM_TRACE_COUNTER, /* struct shim_trace_counter */
	/* struct shim_trace_values: what the call got that was entered just before;
	 * if what is open is not of that function, a signal handler came between */
	SHIM_TRACE_ARGUMENTS_RAW,
	SHIM_TRACE_RESULT_RAW, /* the same: what the call that is left next returns */
	SHIM_TRACE_UNFINISHED = 63,
};

#define SHIM_TRACE_TEXT 240 /* bytes of a text, without a NUL, at most */

struct shim_trace_info {
	uint32_t block_size; /* SHIM_TRACE_BLOCK */
	uint32_t time_shift;
	uint64_t ring_size; /* bytes of the file; 0: it grows */
	uint64_t blocks;    /* sequence of the last one begun */
	/* Calls left out because the one who started it said so: */
	uint64_t min_duration; /* in clock units; 0: no such limit */
	uint64_t too_short;    /* calls */
	uint64_t filtered;     /* depth, every N-th, triggers */
	/* Calls that could not be recorded, by cause. */
	uint64_t lost[SHIM_LOST_CAUSES];
	/* With min_duration calls have no ENTER before they have taken so long, or
	 * something else is written in them.  Those that are open without one are
	 * here, the outermost first, and behind this struct, if there is room.  One
	 * that began before the last record is none: it was left by a jump. */
	uint64_t waiting;
};

#define SHIM_TRACE_WAITING_MAX 200

/* In a ring, a uint64_t so far behind the beginning of struct shim_trace_info: the ENTER
 * records of all blocks that are complete, also of those that are gone. */
#define SHIM_TRACE_RING_CALLS 3584

struct shim_trace_waiting {
	uint64_t clock;	   /* when it began */
	uint64_t function; /* its number */
};

struct shim_trace_block {
	uint64_t sequence;
	uint64_t time; /* the clock, divided */
	uint32_t tid;
	uint32_t track;
	uint32_t thread; /* of those that wrote this file, from 1 on */
	/* in a ring: SHIM_TRACE_RING_CALLS without this one and those after it, its
	 * low half */
	uint32_t calls_before;
	char name[16]; /* the thread's, NUL-padded */
};

struct shim_trace_thread {
	uint16_t head;
	uint16_t unused;
	uint32_t tid;
	char name[16];
};

struct shim_trace_stack {
	uint16_t head;
	uint16_t size;	     /* in units of 2 bytes */
	uint32_t more;	     /* 1: there are calls further out than these */
	uint32_t function[]; /* numbers */
};

#define SHIM_TRACE_STACK_MAX 1000 /* numbers */

struct shim_trace_lost {
	uint16_t head;
	uint16_t cause; /* enum shim_lost */
	uint32_t calls; /* saturates */
};

struct shim_trace_counter {
	uint16_t head;
	uint16_t unused[3];
	double value;
	char name[]; /* NUL-padded */
};

/*
 * Values as the description says, each behind a byte that says how it is there:
 *
 *     SHIM_VALUE_RAW      as many bytes as its type has
 *     SHIM_VALUE_TEXT     a byte, how many there are, and then so many bytes of text
 *     SHIM_VALUE_CUT      this and what is behind it had no room
 *     SHIM_VALUE_MISSING  and above it: why, enum shim_unavailable
 *
 * Together they have SHIM_TRACE_TEXT bytes and 3 more at most, and a NUL behind them if
 * that makes the record's size even.
 */
struct shim_trace_values {
	uint16_t head;
	uint16_t description; /* the number of a struct shim_value_list */
	unsigned char values[];
};

#define SHIM_VALUE_RAW	   0u
#define SHIM_VALUE_TEXT	   1u
#define SHIM_VALUE_CUT	   2u
#define SHIM_VALUE_MISSING 0x40u

SHIM_LAYOUT(struct shim_trace_values, 4);
SHIM_LAYOUT(struct shim_trace_block, 48);
SHIM_LAYOUT(struct shim_trace_thread, 24);
SHIM_LAYOUT(struct shim_trace_lost, 8);
SHIM_LAYOUT(struct shim_trace_info, 112);

/*
 * values: its chunks hold descriptions, one after the other, each a multiple of 8
 * bytes.  @kind is written last; 0 is the end of what a chunk holds.  Numbers count
 * from 1, of types and of lists each.
 */
#define SHIM_VALUES_KIND	   "values"
#define SHIM_VALUES_KIND_TYPE	   1u
#define SHIM_VALUES_KIND_ARGUMENTS 2u
#define SHIM_VALUES_KIND_RESULT	   3u

/* Behind it a struct shim_typetree (<shim/typetree.h>). */
struct shim_value_type {
	uint32_t kind;
	uint32_t size; /* of all of it */
	uint32_t number;
	uint32_t unused;
};

struct shim_value {
	uint32_t type; /* its number; 0: values of it are never raw */
	/* from the first byte of the description on, with a NUL behind it; 0: it has
	 * none */
	uint32_t name;
};

/* Of a function's arguments, or its result. */
struct shim_value_list {
	uint32_t kind;
	uint32_t size;
	uint32_t number;
	uint32_t function; /* its number */
	uint32_t count;
	uint32_t more;		    /* 1: it has more, which are not recorded */
	struct shim_value values[]; /* and behind them the names */
};

#define SHIM_VALUES_MAX 12 /* of a function */

SHIM_LAYOUT(struct shim_value_type, 16);
SHIM_LAYOUT(struct shim_value_list, 24);

/*
 * coverage: its chunks hold blocks, one after the other, each a multiple of 8
 * bytes.  @kind is written last; 0 is the end of what a chunk holds.  A forked
 * child that reaches a line of an object that its parent had says so in its
 * parent's file.
 */
#define SHIM_COVERAGE_KIND	     "coverage"
#define SHIM_COVERAGE_KIND_LINES     1u
#define SHIM_COVERAGE_KIND_FUNCTIONS 2u
#define SHIM_COVERAGE_KIND_POINTS    3u

/* Why an object's lines are not looked at. */
enum shim_coverage_state {
	SHIM_COVERAGE_LINES = 0,       /* they are */
	SHIM_COVERAGE_NO_LINES = 1,    /* no line table */
	SHIM_COVERAGE_UNWRITABLE = 2,  /* its code cannot be changed */
	SHIM_COVERAGE_UNSUPPORTED = 3, /* on this processor */
	SHIM_COVERAGE_POINTS = 4,      /* these are what it counts itself */
};

/* A place where a line begins.  Several lines may begin at the same. */
struct shim_coverage_line {
	uint32_t offset; /* bytes from the object's first */
	uint32_t line;	 /* 0: code of no line, where the last one ends */
	uint32_t file;	 /* of struct shim_coverage_object */
	uint16_t column; /* 0: not known; 65535: that or more */
	uint16_t unused;
};

/*
 * An object.  Behind this: @line_count times struct shim_coverage_line; as many bytes, 1 for each line that was reached; @files_size
 * bytes, the names of @file_count files, each with its NUL; the object's path, of
 * @path_size bytes.
 */
struct shim_coverage_lines {
	uint64_t kind;	     /* SHIM_COVERAGE_KIND_LINES */
	uint64_t size;	     /* of the block */
	uint64_t start, end; /* where it was when it was first loaded */
	uint32_t state;	     /* enum shim_coverage_state */
	uint32_t line_count;
	uint32_t file_count;
	uint32_t files_size;
	uint32_t path_size;
	uint32_t dropped; /* lines that are not certain to begin there */
};

/*
 * What an object counts itself.  Behind this: @count counts of 64 bits, one for each
 * place in its code; their offsets from the object's first byte, of 32 bits, if
 * @has_offsets; the object's path.  Without offsets the i-th place is the one that
 * the byte at offset 4 * i - 1 belongs to.
 */
struct shim_coverage_points {
	uint64_t kind;	     /* SHIM_COVERAGE_KIND_POINTS */
	uint64_t size;	     /* of the block */
	uint64_t start, end; /* where it was when it was first loaded */
	uint64_t count;
	uint32_t has_offsets;
	uint32_t path_size;
};

/* Functions that hooks told of: function words, as in struct shim_node. */
struct shim_coverage_functions {
	uint64_t kind; /* SHIM_COVERAGE_KIND_FUNCTIONS */
	uint64_t size;
	uint64_t room;
	uint64_t count;
	uint64_t functions[];
};

SHIM_LAYOUT(struct shim_coverage_lines, 56);

/*
 * What gmon.out or mon.out is made of, as long as the program has not done it
 * itself.  Counter i is for the code from @base + i * (@end - @base) / @bins on;
 * addresses are run-time ones, which minus @bias are those in the file.
 */
struct shim_histogram_range {
	uint64_t low, high; /* the code that counts */
	uint64_t base, end;
	uint64_t bias;
	uint64_t entry; /* of its object, in the file */
	uint64_t bins;
	uint64_t counters; /* address of @bins numbers of 32 bits */
	char path[1024];
};

struct shim_histogram {
	uint32_t range_count; /* 0: not complete */
	uint32_t is_done;     /* the program has written @file */
	uint32_t is_gmon;
	uint32_t rate_hz;
	uint32_t thread;     /* with -threads its number, else 0 */
	uint32_t is_partial; /* what is in files already was subtracted */
	uint64_t outside;    /* samples in none of the ranges */
	char file[2048];
	struct shim_histogram_range ranges[];
};

struct shim_arc {
	uint64_t from, self; /* a return address; in the function */
	uint64_t calls;
	uint64_t unused;
};

/*
 * gaps: when threads of the processes got a processor and lost it, as the kernel has
 * told from outside.  Of each processor in their order; not of all together.
 */
#define SHIM_GAPS_MAGIC "SHIMGAPS"

struct shim_gaps {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* the first record begins here */
	uint64_t lost;	      /* records that the kernel has dropped */
};

enum shim_switch_kind {
	SHIM_SWITCH_ON = 1,	   /* it runs from here */
	SHIM_SWITCH_WAITS = 2,	   /* to here, and waits for something */
	SHIM_SWITCH_PREEMPTED = 3, /* to here: another one runs */
};

struct shim_switch {
	uint64_t mono_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint32_t processor;
	uint32_t kind; /* enum shim_switch_kind */
};

SHIM_LAYOUT(struct shim_gaps, 24);
SHIM_LAYOUT(struct shim_switch, 24);
SHIM_LAYOUT(struct shim_coverage_points, 48);
SHIM_LAYOUT(struct shim_memory_node, 576);
SHIM_LAYOUT(struct shim_heap_node, 192);
SHIM_LAYOUT(struct shim_lives_node, 320);
SHIM_LAYOUT(struct shim_points_node, 3264);
SHIM_LAYOUT(struct shim_snapshot_node, 64);
SHIM_LAYOUT(struct shim_alive_node, 64);
SHIM_LAYOUT(struct shim_node, 64);
SHIM_LAYOUT(struct shim_thread_node, 128);
SHIM_LAYOUT(struct shim_group_node, 256);
SHIM_LAYOUT(struct shim_extra_node, 384);

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
#endif
