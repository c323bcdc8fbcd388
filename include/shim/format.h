/*
 * The format of a recording on disk.  The program writes it and the report reads
 * it; they share only this header, which describes the format well enough to
 * write a reader.
 *
 * A recording is a directory of mode 0700.  It has one directory for each process
 * image, named PID.N: N counts the images of that pid, because exec starts a new
 * one.  The files of a process image have mode 0600:
 *
 *     meta            a struct shim_meta
 *     images          a struct shim_images, then struct shim_image_record records
 *     N.calltree      call paths: a struct shim_file, then chunks of struct
 *                     shim_node.  One file serves one thread at a time; heap
 *                     snapshots (memory) have a file of their own.
 *     N.sampling      the same layout, with the paths of samples
 *     N.trace         a struct shim_file, a struct shim_trace_info, then blocks of
 *                     records: every enter and leave of one thread
 *     N.functions     a struct shim_file, then chunks of function words: the
 *                     functions that the numbers in traces stand for
 *     N.values        a struct shim_file, then chunks of descriptions: the types
 *                     of the arguments and results in traces
 *     N.coverage      a struct shim_file, then chunks of the lines and functions
 *                     that were reached
 *     N.pchist        counters of monitor(3): a struct shim_histogram at the start
 *                     of its last chunk
 *     N.arcs          calls of a program compiled with -pg: the last chunk is an
 *                     array of struct shim_arc
 *
 * profrun writes into the directory of a process:
 *
 *     jit-map         names of code that the program made: lines "BEGIN SIZE NAME",
 *                     the numbers in hexadecimal
 *     jit-dump        names and lines of such code: a jitdump of version 1
 *                     (tools/perf/Documentation/jitdump-specification.txt of Linux)
 *                     without the code itself
 *
 * and further files into the directory of the recording:
 *
 *     end             when the program has ended: the line "status WAIT-STATUS
 *                     mono-ns TIME"
 *     gaps            with --gaps: a struct shim_gaps, then struct shim_switch
 *                     records
 *     counters        with --counters: lines "MONO-NS PID VALUE NAME", the value of
 *                     a counter of the system at that time of CLOCK_MONOTONIC
 *     log             lines "process PID: WHY" of processes that could not record
 *     ended.HOST      of a large job: a byte "." for each rank of HOST that has
 *                     ended, and "R" when HOST has written its reduced.HOST
 *     reduced.HOST    the ranks of HOST, added up for reports (reduced: all
 *                     ranks).  Only the shim-report of the same build reads it, and
 *                     makes the same from the ranks themselves.
 *     tick            while the program runs: a struct shim_tick
 *
 * A directory of recordings is a recording, too, and contains all of them: the
 * ranks of a parallel job (rank.N), or the result of profrun merge.
 *
 * The program writes its files through shared mappings and never has to finish
 * them, because it may die between any two stores.  A reader therefore uses
 * whatever is complete.  Unwritten space is zero.  All integers are little-endian
 * and all structures naturally aligned.  Times are in clock units (struct
 * shim_meta has the length of a unit) unless their name ends in _ns.
 *
 * A reader must refuse an unknown version.  It must not trust the data, because
 * the program can write to the memory of these files.
 *
 * Version 2 appears only in the meta of a process whose calls are grouped by an
 * argument (calltree:by=); the nodes of such a process may have groups.
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

/*
 * A file that only `profrun doctor --patch` asks for, in a process that ends before main
 * (SHIM_LIST_PATCH).  It is text: a line "object", its path; then for each function of it
 * that SHIM_PATCH chooses a line "function", the reason why it cannot be patched or
 * nothing, its address in the file in hexadecimal digits, its size in bytes, its name or
 * nothing.  Tabs separate the fields.
 */
#define SHIM_LISTED_FILE "listed"
/* Reasons of functions that need not be patched, or are too small for anything. */
#define SHIM_LISTED_SMALL  "under 5 bytes"
#define SHIM_LISTED_MARKED "marked by the compiler"

/*
 * A directory of the recording that is there only while the run goes on, if SHIM_PATCH is set:
 * its processes keep in it what they know about the code of images.  It is no part of the
 * format.
 */
#define SHIM_DECODED_DIRECTORY "decoded"

/* The causes of lost calls. */
enum shim_lost {
	SHIM_LOST_SPACE,     /* the disk or the quota is full */
	SHIM_LOST_FILE_SIZE, /* RLIMIT_FSIZE */
	SHIM_LOST_MEMORY,    /* no address space or memory: RLIMIT_AS, ENOMEM */
	SHIM_LOST_ACCESS, /* the recording cannot be reached or written any more */
	SHIM_LOST_FORBIDDEN, /* system calls are forbidden: seccomp */
	SHIM_LOST_LIMIT, /* a limit of shim: a table or address range is full */
	SHIM_LOST_OTHER,
	SHIM_LOST_CAUSES
};

/* The other kinds of lost items. */
enum shim_lost_kind {
	SHIM_LOST_ALLOCATIONS,
	SHIM_LOST_MAPPINGS,
	SHIM_LOST_WAITS,      /* for locks */
	SHIM_LOST_EXCEPTIONS, /* thrown, or caught */
	SHIM_LOST_SAMPLES,    /* by their weight */
	SHIM_LOST_FUNCTIONS,  /* of coverage, reached */
	SHIM_LOST_KINDS
};

/* The end of the process image, if shim has seen it. */
enum shim_end {
	SHIM_END_UNKNOWN,  /* killed, crashed, or still running */
	SHIM_END_EXIT,	   /* exit, _exit, quick_exit, return from main */
	SHIM_END_EXEC,	   /* execve ran another program */
	SHIM_END_ABORT,	   /* abort */
	SHIM_END_DETACHED, /* `profrun detach`; the program went on */
};

enum shim_clock_kind {
	SHIM_CLOCK_TSC = 1, /* the processor's time stamp counter */
	SHIM_CLOCK_MONOTONIC_NS = 2,
};

/* The cost of the two hooks of one call, in 1/1000 clock units.  @inside is the
 * part within the measured duration of the function.  @outside is the rest, which
 * the self time of the caller contains. */
struct shim_cost {
	uint32_t inside;
	uint32_t outside;
};

/* Lost calls of a thread that got no file. */
struct shim_lost_thread {
	uint32_t tid; /* 0: unused; the last slot has all further threads */
	uint32_t unused;
	uint64_t lost[SHIM_LOST_CAUSES];
};

#define SHIM_META_STRINGS 8192
#define SHIM_META_LOG	  8192
#define SHIM_META_THREADS 32
#define SHIM_META_FILTER  1024
#define SHIM_PACE_ONE	  1024

struct shim_meta {
	char magic[8];
	uint32_t version;
	uint32_t size; /* of this structure */
	uint32_t pid;
	uint32_t parent_pid;
	uint32_t clock;	      /* enum shim_clock_kind */
	uint32_t end;	      /* enum shim_end */
	uint32_t exit_status; /* with SHIM_END_EXIT, if known */
	uint32_t forked;      /* 1: the image began by fork, not by exec */

	/* Two readings of (clock, CLOCK_MONOTONIC).  shim takes the first at the
	 * start, and the last again at every slow operation.  Their differences
	 * give the length of a clock unit.  @clock_hz is the frequency that the
	 * system states, or 0. */
	uint64_t first_clock;
	uint64_t first_mono_ns;
	uint64_t last_clock;
	uint64_t last_mono_ns;
	uint64_t clock_hz;
	uint64_t start_real_ns; /* CLOCK_REALTIME at the start */
	uint64_t end_clock;	/* 0: unknown */
	uint64_t tick;		/* length of the coarse clock's tick; 0: none */

	/* calls that are not timed exactly */
	struct shim_cost cost_coarse;
	struct shim_cost cost_exact; /* calls that are timed exactly */

	uint64_t orphans; /* leaves whose enter was not seen */
	uint64_t unwound; /* frames ended without a leave */

	/* NUL-terminated "key=value" strings in sequence: program, command, directory,
	 * host, monotonic (the kernel's boot_id and the time namespace: processes of the
	 * same value have the same CLOCK_MONOTONIC), rank, ranks (of a parallel job, the
	 * number of ranks), profile, filter, patch.  The last one is cut if @strings is
	 * full.  Of several with one key the last one is valid: profile is written again
	 * when a profiler was loaded. */
	uint32_t strings_size;
	/* Size of the text in @log, which has one message per line; more than
	 * SHIM_META_LOG if the end of the text was dropped. */
	uint32_t log_size;
	char strings[SHIM_META_STRINGS];
	char log[SHIM_META_LOG];

	uint32_t
		lost_threads; /* threads without a file; may be more than slots */
	uint32_t unused;
	struct shim_lost_thread lost[SHIM_META_THREADS];

	/* Call sites of the hooks, which shim can switch off in the program's
	 * code.  shim does not search them before the first switch. */
	/* how often all were switched off or on; odd: they are off */
	uint32_t switched;
	uint32_t sites;		 /* call sites that were found */
	uint32_t sites_off;	 /* call sites off after the last switch */
	uint32_t sites_rejected; /* candidates that are in no function */
	uint32_t site_images;	 /* objects that call hooks */
	uint32_t site_images_unwritable; /* objects with read-only code */

	/* calltree, coarse clock.  1: nodes have self times (@extra).
	 * @cost_unseen is the cost of the hooks that these times contain. */
	uint32_t has_self;
	uint32_t unused2;
	struct shim_cost cost_unseen;

	/* Lost items of other kinds, before SHIM_LOST_SAMPLES; @lost counts calls. */
	uint64_t lost_others[SHIM_LOST_SAMPLES][SHIM_LOST_CAUSES];

	/* calltree with a budget: percent of the processor time x 100; 0: none.
	 * Then no call is timed (coarse is 2): times come from struct
	 * shim_sampled_node. */
	uint32_t budget;
	/* functions that were switched off or counted at least once */
	uint32_t throttled;
	/* functions whose code cannot be changed; @throttled may contain some */
	uint32_t throttle_failed;
	/* How fast the program runs in bursts, apart from the known cost of their calls,
	 * in 1/SHIM_PACE_ONE of its pace outside; and 1 / the variance of that share.
	 * 0: unknown. */
	uint16_t burst_pace, burst_precision;
	/* The processor time of one sample; 0: no samples.  Without a budget, the
	 * samples are those of calltree:calibrate, which tell how much of the exact
	 * times passed in hooks. */
	uint64_t sample_period_ns;
	uint64_t sample_weight; /* all samples of the process */
	/* processor time of sampling, deciding and switching */
	uint64_t own_ns;
	uint64_t bursts; /* short periods in which functions were on again */

	/* Calls were timed by ticks of this length on average, which profrun wrote
	 * (struct shim_tick); 0: by ticks of the length @tick. */
	uint64_t fine_tick;

	/* 1: calltree with clock=cpu: times are processor time of threads, and @waited
	 * is the time in which threads did not run, in clock units.  An open call
	 * lasts until the last tick that its thread has seen. */
	uint32_t is_cpu;

	/* Items of the string "filter"; 0: no function was looked up.  Bit i % 64 of
	 * word i / 64: item i matches a function that this process called.  Bits of
	 * items from SHIM_META_FILTER on are missing. */
	uint32_t filter_items;
	uint64_t waited;
	uint64_t filter_matches[SHIM_META_FILTER / 64];

	/* `profrun attach`, memory: releases and reallocations of blocks that were
	 * allocated before it, or inside libc. */
	uint64_t older_releases;

	/* The processor time of the process when the recording began, and at @end_clock; the
	 * last is 0 if the process could not write it. */
	uint64_t first_cpu_ns;
	uint64_t last_cpu_ns;

	/* Lost items of the kinds from SHIM_LOST_SAMPLES on.  In a file without this
	 * field, @lost counts samples and functions as calls. */
	uint64_t lost_more[SHIM_LOST_KINDS - SHIM_LOST_SAMPLES]
			  [SHIM_LOST_CAUSES];

	/* Processor time in which shim looked at objects and changed their code.  No sample
	 * of processor time contains it. */
	uint64_t images_ns;
};

struct shim_images {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* offset of the first record */
	uint64_t lost;	      /* images that did not fit */
};

/*
 * A loaded object.  @generation is 0 while the object is loaded.  When it is
 * unloaded, it gets a unique number, which shim also stores in bits 48-62 of the
 * function words of all its functions.  So a function that is loaded at the same
 * address later never gets the wrong name.
 */
struct shim_image_record {
	uint32_t size; /* of the record, a multiple of 8; 0: the end */
	uint32_t generation;
	uint64_t start; /* it covers the addresses [start, end) */
	uint64_t end;
	uint64_t bias; /* run-time address minus address in the file */
	uint64_t load_clock;
	uint64_t unload_clock; /* 0: not unloaded */
	uint64_t device;
	uint64_t inode;
	uint32_t build_id_size; /* bytes; 0: none */
	uint32_t path_size;	/* bytes with the NUL */
	unsigned char text[];	/* the build-id, then the path */
};

#define SHIM_FILE_CHUNKS 40

/*
 * The header of a per-thread file.  Chunks are contiguous in the file.  @address is
 * the address of a chunk in the program: a reader needs it to follow pointers.
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
	uint32_t tid;	 /* the last thread that used the file */
	uint32_t chunks; /* valid elements of @chunk */
	struct shim_chunk chunk[SHIM_FILE_CHUNKS];
};

/*
 * calltree: its chunks contain nodes, whose sizes are multiples of 64 bytes.  The
 * first word of a node is a function word (struct shim_node) or one of the kinds
 * below (struct shim_thread_node and so on).  The first word also contains the tid
 * in THREAD, and a number in GROUP, SNAPSHOT and ALIVE.  Two nodes may stand for
 * the same path, if a signal interrupted its creation: a reader adds them.
 */
#define SHIM_NODE_THREAD    0xffff000000000000ull
#define SHIM_NODE_EXTRA	    0xfffe000000000000ull
#define SHIM_NODE_GROUP	    0xfffd000000000000ull
#define SHIM_NODE_MEMORY    0xfffc000000000000ull
#define SHIM_NODE_HEAP	    0xfffb000000000000ull
#define SHIM_NODE_LIVES	    0xfffa000000000000ull
#define SHIM_NODE_LOCK	    0xfff9000000000000ull
#define SHIM_NODE_TYPE	    0xfff8000000000000ull
#define SHIM_NODE_THROW	    0xfff7000000000000ull
#define SHIM_NODE_POINTS    0xfff6000000000000ull
#define SHIM_NODE_SNAPSHOT  0xfff5000000000000ull
#define SHIM_NODE_ALIVE	    0xfff4000000000000ull
#define SHIM_NODE_SAMPLED   0xfff3000000000000ull
#define SHIM_NODE_THROTTLED 0xfff2000000000000ull
#define SHIM_NODE_COUNTERS  0xfff1000000000000ull
#define SHIM_NODE_CODE	    0xfff0000000000000ull
/* Mask: all its bits are set in these kinds, and never in a function word. */
#define SHIM_NODE_SPECIAL 0xff00000000000000ull
/* Flag of a function word: the calls are timed exactly now, or in doubt (bit 0 of
 * @frame), or in a group. */
#define SHIM_NODE_EXACT		       0x8000000000000000ull
#define SHIM_NODE_ADDRESS	       0x0000ffffffffffffull
#define SHIM_NODE_GENERATION(function) ((uint32_t)((function) >> 48 & 0x7fff))
#define SHIM_GENERATION_MAX	       0x7effu /* functions unloaded later have no name */

/* The unit of the cost of groups, in clock units. */
#define SHIM_ASKING_UNIT 16
/* The unit of waiting; UINT32_MAX of them: at least so long. */
#define SHIM_WAITING_UNIT 16384

struct shim_node {
	/* address | generation << 48 | SHIM_NODE_EXACT; 0: unused */
	uint64_t function;
	uint64_t parent; /* address of the parent's node */
	uint64_t calls;
	/* Of finished calls, children included.  By processor time, also of the open call if
	 * its coroutine was left for another one; then @start is 0. */
	uint64_t time;
	uint64_t start; /* clock when the open call began */
	/* Not 0: a call is open; the value is the distance of its stack pointer
	 * from the stack's low end, with flags in bits 0-2.  (The call may have
	 * ended while hooks were off.)  0: no call is open. */
	uint64_t frame;
	/* Coarse clock: the number of ticks seen in @time.  With a group: the time
	 * spent on finding the group, in SHIM_ASKING_UNITs; the times of the
	 * callers contain it.  With clock=cpu and no group: the time waited in its
	 * calls, not in their callees, in SHIM_WAITING_UNITs. */
	uint32_t hits;
	/* 1: some calls were timed by the coarse clock; 2: calls were not timed */
	uint8_t coarse;
	/* 1: the node stands for one call that was open when `profrun attach` began to
	 * record: @calls is 0, and the call's time begins there.  Other calls of the path
	 * have a node of their own. */
	uint8_t is_older;
	/* The number of a struct shim_group_node that comes earlier in this file: the
	 * calls are those of the group.  0: all calls. */
	uint16_t group;
	/* calltree:exact: the address of its struct shim_extra_node, or 0.
	 * Otherwise, if even, the address of its struct shim_memory_node, or 0; if
	 * odd, bits 1-63 are the self time by the coarse clock, without callees and
	 * hooks. */
	uint64_t extra;
};

#define SHIM_EXTRA_SELF 1ull

/*
 * calltree with a budget: samples of processor time in a path.  The frame of the
 * recorded call has such a node, too: its address distinguishes inlined functions.
 *
 * calltree:calibrate: samples without frames, so @address is 0.  A hook may have read
 * the clock before its call begins, so only the sum of @own of a path and its caller is
 * exact.
 *
 * sampling: the frames of the whole stack; @own is 0.
 */
struct shim_sampled_node {
	uint64_t function; /* SHIM_NODE_SAMPLED */
	/* address of its caller, in this file: a struct shim_node, a root, or a
	 * struct shim_sampled_node */
	uint64_t parent;
	/* of an instruction, in callers of the call (return address - 1);
	 * | generation << 48; 0: unknown.  sampling: | SHIM_NODE_EXACT if the caller is
	 * a guess; or SHIM_SAMPLE_UNKNOWN, or SHIM_SAMPLE_CUT */
	uint64_t address;
	uint64_t samples; /* by weight: samples of this innermost frame */
	uint64_t signals; /* signals that brought @samples */
	/* by weight: samples in a hook that this frame has called */
	uint64_t own;
	uint64_t unused[2];
};

/*
 * calltree with a budget: a function that was switched off (128 bytes), in one file of
 * the process.  @time of its nodes is the number of calls that were counted before.
 *
 * From time to time a burst switches the function on again for a short while, at random
 * points of the processor time.  In a burst the thread made n calls in d nanoseconds of
 * its processor time, without the cost of the hooks: a rate r = n/d.
 *
 * A function that is not called too often for that is counted at its call sites, or at
 * its entry: all its calls, but not their paths.  Its calls are those of its nodes and those of
 * @counter in all files of the process.  It may go off later.
 */
struct shim_throttled_node {
	uint64_t function; /* SHIM_NODE_THROTTLED */
	uint64_t address;  /* of the function | generation << 48 */
	/* sample_weight of the meta when the function was first switched off; calls
	 * before that may have been counted by @counter */
	uint64_t weight;
	uint64_t state; /* enum shim_throttled */
	uint64_t bursts;
	uint64_t calls; /* sum of n */
	uint64_t ns;	/* sum of d */
	/* @bursts x the mean of r, in calls per 1/64 s of processor time.  A burst
	 * stands for the time to its neighbours. */
	uint64_t rates;
	/* Low word, high word: @squares - @rates^2 / @bursts, divided by @bursts - 1,
	 * is the variance of a burst.  It is that of neighbours, and contains the
	 * rate before the function went off. */
	uint64_t squares[2];
	/* sum of r x n x cost / d: the correction of r for the cost of hooks */
	uint64_t slopes;
	uint64_t sites;	  /* call sites that were found and switched off */
	uint64_t counter; /* 0: it has none */
	uint64_t unused[3];
};

enum shim_throttled {
	SHIM_THROTTLED_NOT = 0, /* invalid: all calls were counted */
	SHIM_THROTTLED_OFF = 1,
	/* on again for good: its code cannot be changed; some calls are missing */
	SHIM_THROTTLED_FAILED = 2,
	/* never off: calls without nodes were counted */
	SHIM_THROTTLED_COUNTED = 3,
};

/* calltree with a budget: the counters of struct shim_throttled_node, in a file that has
 * some (16 KiB). */
#define SHIM_COUNTERS_MAX 2040
struct shim_counters_node {
	uint64_t function; /* SHIM_NODE_COUNTERS */
	uint64_t unused[7];
	uint64_t calls[SHIM_COUNTERS_MAX];
};

/* The root of a thread's tree (128 bytes); @parent is 0.  A coroutine that ran on
 * the thread has its own root, with a @coroutine of 1. */
struct shim_thread_node {
	uint64_t function; /* SHIM_NODE_THREAD | tid */
	uint64_t parent;
	uint64_t coroutine;
	uint64_t memory; /* address of its struct shim_memory_node, or 0 */
	uint64_t start;
	uint64_t frame;
	char name[16]; /* comm, NUL-padded */
	uint64_t lost[SHIM_LOST_CAUSES];
	/* coarse clock: the last tick that a hook has seen; no self time contains
	 * later time */
	uint64_t last;
};

/*
 * A group of calls with the same argument (256 bytes).  The text is shown to the
 * user: "kind=7" for calls whose argument `kind` is 7, "kind=?" for calls whose
 * argument was not available, "kind=..." for all further values when there were too
 * many.  A number stands for the same group in all files of a process, and each
 * file that uses a group contains its node.
 */
#define SHIM_GROUP_TEXT 240

struct shim_group_node {
	uint64_t function;  /* SHIM_NODE_GROUP | number, which is not 0 */
	uint32_t text_size; /* bytes, without a NUL */
	uint32_t unused;
	char text[SHIM_GROUP_TEXT];
};

/*
 * sampling: a tree of the sampled stacks.  Its nodes are struct shim_sampled_node; the
 * frames of a stack that the unwinder could not reach are the open calls of calltree,
 * with the start of the function.  A root is a struct shim_sample_root.
 *
 * Older recordings have struct shim_node instead: @function is the start of a function,
 * or of a part that the compiler split off, by the unwind tables; @calls is the weight
 * of the samples whose innermost frame is this path, @hits their number of signals.
 */
#define SHIM_SAMPLE_UNKNOWN 1ull /* no address is known */
#define SHIM_SAMPLE_CUT	    2ull /* the unwinder could not find the callers */

#define SHIM_SAMPLED_REAL 2 /* @mode: real time, not processor time */

struct shim_sample_root {
	uint64_t function; /* SHIM_NODE_THREAD | tid */
	uint64_t parent;
	uint64_t coroutine; /* 0 */
	uint64_t last_node; /* real time: path of the last sample */
	uint64_t period_ns; /* real or processor time of weight 1 */
	uint64_t mode;	    /* enum shim_sample_mode */
	char name[16];
	uint64_t lost[SHIM_LOST_CAUSES]; /* samples, by weight */
	/* Real time: time of the last sample; the thread may have slept since.  0: the
	 * thread has ended. */
	uint64_t last_clock;
};

SHIM_LAYOUT(struct shim_sample_root, 128);

/*
 * sampling: a function of an interpreter (Python), for nodes with these addresses, which
 * no code has: @address + n is line @first_line + n.  Two may name the same function.
 */
#define SHIM_CODE_NAME 160 /* most bytes of a name */

struct shim_code_node {
	uint64_t function; /* SHIM_NODE_CODE */
	uint64_t address;
	uint32_t lines; /* the addresses end there */
	uint32_t first_line;
	uint32_t name_size, file_size; /* bytes of @text, without a NUL */
	char text[480]; /* the name, then the file's; their ends */
};

SHIM_LAYOUT(struct shim_code_node, 512);

#define SHIM_BUCKETS 40

/*
 * calltree:exact, for a path with two calls or more (384 bytes); the time of a path
 * with one call is that call's duration.  Bucket i, which shim_bucket() finds,
 * counts the finished calls of 2^i to 2^(i+1) - 1 clock units; 0 counts as 1, and
 * the last bucket has no upper limit.
 *
 * The duration of the last call is in @last only, and not yet in @min, @max and the
 * buckets: counting it at once would wait for the clock.  The fields that a call
 * changes begin at @last; with the buckets of most calls they share one cache line.
 */
#define SHIM_SHORT_BUCKETS 4

struct shim_extra_node {
	uint64_t function; /* SHIM_NODE_EXTRA */
	uint64_t node;	   /* address of its struct shim_node */
	uint64_t min;
	uint64_t max;
	uint64_t short_bucket[SHIM_SHORT_BUCKETS];
	uint64_t last;
	/* Not for readers: durations from @range_low to @range_low + @range_span
	 * need no further check (hooks/path/opening.h). */
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
 * memory: the blocks that a path itself allocated, without its instrumented callees
 * (576 bytes).  Two of these nodes may stand for the same path: a reader adds them.
 * A block is live while it is allocated and not released.
 *
 * The path's live blocks at the peak of the heap are @peak_bytes and @peak_blocks if
 * the heap node's @is_rising is 0 and @epoch equals the heap node's.  Otherwise they
 * are the blocks that are live now.
 */
struct shim_memory_node {
	uint64_t function;    /* SHIM_NODE_MEMORY */
	uint64_t node;	      /* address of its struct shim_node, or root */
	uint64_t owner;	      /* not for readers */
	uint64_t allocations; /* a realloc counts as allocation and release */
	uint64_t allocated_bytes;
	uint64_t reallocations; /* allocations by realloc */
	uint64_t releases;	/* by the thread of this file */
	uint64_t released_bytes;
	uint64_t other_releases; /* by other threads */
	uint64_t other_released_bytes;
	/* releases of blocks after which their thread has allocated no other
	 * block */
	uint64_t temporary;
	uint64_t epoch;
	uint64_t peak_bytes;
	uint64_t peak_blocks;
	/* allocations that were sampled, if the heap node has a @period */
	uint64_t samples;
	uint64_t lives; /* address of its struct shim_lives_node, or 0 */
	/* allocations of 2^i to 2^(i+1) - 1 bytes; 0 counts as 1, and the last
	 * bucket has no upper limit */
	uint64_t sizes[SHIM_BUCKETS];
	/* Live blocks, if the heap node has SHIM_LEAKS_KNOWN: blocks without a pointer
	 * to them (lost), and blocks with pointers to them only in lost blocks
	 * (below). */
	uint64_t lost_bytes;
	uint64_t lost_blocks;
	uint64_t below_bytes;
	uint64_t below_blocks;
	uint64_t mappings; /* calls of mmap and mremap */
	uint64_t mapped_bytes;
	uint64_t unmapped_bytes;
	uint64_t alive; /* not for readers */
	/* the value that @extra of the path's node has without memory; 0 in roots */
	uint64_t self;
	uint64_t unused[7];
};

/*
 * memory: the lifetimes of a path's released blocks that lasted at least one tick of
 * the coarse clock (320 bytes).  All other released blocks of the path lived shorter.
 */
#define SHIM_LIVES_BUCKETS 32

struct shim_lives_node {
	uint64_t function; /* SHIM_NODE_LIVES */
	uint64_t node;	   /* address of its struct shim_memory_node */
	uint64_t unknown;  /* blocks whose allocation time is unknown */
	uint64_t unused[5];
	/* 2^i to 2^(i+1) - 1 ticks; the last bucket has no upper limit */
	uint64_t bucket[SHIM_LIVES_BUCKETS];
};

/* The state of the scan for leaks, which runs when the process ends by exit. */
enum shim_leaks {
	SHIM_LEAKS_UNKNOWN = 0, /* the process did not end by exit */
	SHIM_LEAKS_KNOWN = 1,
	SHIM_LEAKS_LATE = 2, /* the time limit was over */
	SHIM_LEAKS_FAILED = 3,
	SHIM_LEAKS_OFF = 4, /* the user did not request it */
};

/* memory: the process as a whole, in one of its files (192 bytes). */
struct shim_heap_node {
	uint64_t function; /* SHIM_NODE_HEAP */
	uint64_t live_bytes;
	uint64_t peak_bytes; /* the maximum of @live_bytes */
	uint64_t
		peak_clock; /* time of the peak, by the coarse clock; 0: unknown */
	uint64_t epoch;
	uint64_t is_rising; /* 1: the heap is at its peak now */
	uint64_t inherited; /* releases of blocks from before a fork */
	uint64_t calls;	    /* 1: the user also chose a profiler of calls */
	/* not 0: one byte in @period was sampled on average, and all numbers are
	 * estimates */
	uint64_t period;
	uint64_t has_lives;   /* 1: lifetimes were counted */
	uint64_t leaks;	      /* enum shim_leaks */
	uint64_t leaks_clock; /* duration of the scan */
	/* The next three are as of the last point, or of the exit. */
	/* blocks without room in the table: their release is unknown, so they
	 * count as live */
	uint64_t untold;
	uint64_t unknown; /* releases of blocks whose allocation was not seen */
	uint64_t
		early_lost; /* calls before the start that exceeded the buffer */
	uint64_t unused[9];
};

/*
 * memory: the size of the live heap over time (3264 bytes).  An allocation or release
 * adds a point if @interval has passed since the last one.  When a half is full, the
 * other half gets every second point, becomes active, and @interval doubles.
 */
#define SHIM_POINTS 100

struct shim_point {
	uint64_t clock;
	uint64_t live_bytes;
};

struct shim_points_node {
	uint64_t function; /* SHIM_NODE_POINTS */
	uint64_t active;   /* the valid half: 0 or 1 */
	uint64_t count[2];
	uint64_t interval; /* minimum between two points */
	uint64_t unused[3];
	struct shim_point half[2][SHIM_POINTS];
};

/*
 * memory: a heap snapshot (64 bytes).  Its blocks, by path, are the struct
 * shim_alive_nodes with the same number in the same file; @is_complete says whether
 * all of them are there.
 */
struct shim_snapshot_node {
	uint64_t function; /* SHIM_NODE_SNAPSHOT | number, from 1 on */
	uint64_t clock;	   /* the time when it began */
	uint64_t duration; /* of the snapshot */
	uint64_t leaks;	   /* enum shim_leaks: whether lost blocks are known */
	uint64_t missing;  /* blocks without room in it */
	uint64_t is_complete;
	uint64_t unused[2];
};

struct shim_alive_node {
	uint64_t function; /* SHIM_NODE_ALIVE | number */
	uint64_t node;	   /* address of the path's struct shim_memory_node */
	uint64_t bytes;
	uint64_t blocks;
	uint64_t lost_bytes; /* in blocks without a pointer to them */
	uint64_t lost_blocks;
	uint64_t below_bytes; /* in blocks with pointers only in lost blocks */
	uint64_t below_blocks;
};

/*
 * locks: the waits of one path for one lock, while the lock's holder was in one other
 * path (128 bytes).  Two of these nodes may stand for the same: a reader adds them.
 */
struct shim_lock_node {
	uint64_t function; /* SHIM_NODE_LOCK */
	uint64_t node;	   /* address of the path's struct shim_node, or root */
	uint64_t lock;	   /* its address | generation << 48 */
	/* the innermost call of the thread that held the lock when the wait began:
	 * address of a node in any file of the process; 0: unknown */
	uint64_t holder;
	uint64_t kind;	/* enum shim_lock_kind */
	uint64_t waits; /* waits that have begun */
	uint64_t time;	/* of the waits that have ended */
	uint64_t max;
	uint64_t failures; /* waits that did not get the lock */
	uint64_t refusals; /* calls that failed at once */
	uint64_t start;	   /* of the open wait; 0: no wait is open */
	uint64_t unused2[5];
};

/*
 * exceptions: the exceptions of one type that one path threw and another caught (64
 * bytes).  Two of these nodes may stand for the same: a reader adds them.
 */
struct shim_throw_node {
	uint64_t function; /* SHIM_NODE_THROW */
	/* the path that threw: address of a struct shim_node or a root; 0: unknown */
	uint64_t node;
	/* address of a struct shim_type_node in this file; 0: unknown */
	uint64_t type;
	/* the path that caught: address of a node; 0: @count has all exceptions that
	 * were thrown, also those that were not caught */
	uint64_t catcher;
	uint64_t unused;
	uint64_t count;
	uint64_t unused2[2];
};

/* The name of a type, as std::type_info has it.  The size of the node is a multiple of
 * 64 bytes. */
struct shim_type_node {
	uint64_t function; /* SHIM_NODE_TYPE */
	uint64_t type;	   /* not for readers */
	uint64_t unused[3];
	uint32_t text_size; /* bytes, without a NUL, at most SHIM_TYPE_TEXT */
	uint32_t is_cut;    /* 1: the name is longer */
	char text[];
};

#define SHIM_TYPE_TEXT (4096 - 48)

SHIM_LAYOUT(struct shim_lock_node, 128);
SHIM_LAYOUT(struct shim_throw_node, 64);

/* The size of a struct shim_type_node whose text has @text_size bytes. */
static inline uint64_t shim_type_node_size(uint32_t text_size)
{
	return (sizeof(struct shim_type_node) + text_size + 63) & ~63ull;
}

/* The size of a node whose first word is @function; 0 if no kind of node has that word.
 * The size of a SHIM_NODE_TYPE is shim_type_node_size() of its text. */
static inline uint64_t shim_node_size(uint64_t function)
{
	if ((function & SHIM_NODE_SPECIAL) != SHIM_NODE_SPECIAL)
		return sizeof(struct shim_node);
	switch (function & ~SHIM_NODE_ADDRESS) {
	case SHIM_NODE_THREAD: return sizeof(struct shim_thread_node);
	case SHIM_NODE_EXTRA: return sizeof(struct shim_extra_node);
	case SHIM_NODE_GROUP: return sizeof(struct shim_group_node);
	case SHIM_NODE_MEMORY: return sizeof(struct shim_memory_node);
	case SHIM_NODE_HEAP: return sizeof(struct shim_heap_node);
	case SHIM_NODE_LIVES: return sizeof(struct shim_lives_node);
	case SHIM_NODE_LOCK: return sizeof(struct shim_lock_node);
	case SHIM_NODE_TYPE: return sizeof(struct shim_type_node);
	case SHIM_NODE_THROW: return sizeof(struct shim_throw_node);
	case SHIM_NODE_POINTS: return sizeof(struct shim_points_node);
	case SHIM_NODE_SNAPSHOT: return sizeof(struct shim_snapshot_node);
	case SHIM_NODE_ALIVE: return sizeof(struct shim_alive_node);
	case SHIM_NODE_SAMPLED: return sizeof(struct shim_sampled_node);
	case SHIM_NODE_THROTTLED: return sizeof(struct shim_throttled_node);
	case SHIM_NODE_COUNTERS: return sizeof(struct shim_counters_node);
	case SHIM_NODE_CODE: return sizeof(struct shim_code_node);
	}
	return 0;
}

/*
 * trace: every enter and leave of a thread, in the order in which they happened.
 *
 * N.trace is a struct shim_file (its chunks have no meaning), a struct shim_trace_info
 * at header_size, and blocks from SHIM_TRACE_FIRST to the end of the file.  The first
 * block ends at SHIM_TRACE_BLOCK; all others are SHIM_TRACE_BLOCK long.  A block is a
 * struct shim_trace_block and then records.  A block with sequence 0 was never used.
 * Sequences count from 1, and a reader reads blocks in their order.  In a ring, new
 * blocks overwrite the oldest, so the lowest sequence may be more than 1.
 *
 * A record begins at a multiple of 2 bytes.  Its first 16 bits are the head:
 *
 *     0                      no record: skip 2 bytes; records may follow
 *     bit 0 = 1              a leave: 2 bytes.  Bits 1-15: time
 *     bits 0, 1 = 0, 1       an enter: 4 bytes.  Bits 2-16: time, 17-31: the function
 *     bits 0, 1 = 0, 0       bits 2-7: enum shim_trace_kind; bits 8-15: the size in
 *                            units of 2 bytes, head included; 0: the next 16 bits
 *                            are the size.  A reader skips unknown kinds.
 *
 * The program writes a record of up to 8 bytes by one store.  A longer record has the
 * kind SHIM_TRACE_UNFINISHED until it is complete.  If a signal handler interrupts the
 * write of a short record, the record's space stays zero.
 *
 * Times.  The clock is that of struct shim_meta, divided by 2^time_shift.  A record
 * with a time has its 15 lowest bits, and is less than 2^15 of these units later than
 * the record before; otherwise a TIME record precedes it.  TIME has 48 bits, which a
 * reader completes in the same way; a block has all 64.  A TIME or a block that is
 * earlier than the record before is from a signal handler, or the clock was set back.
 * A record without a time has the time of the record before.
 *
 * Functions are numbers that are valid in the whole process.  N.functions (one file in
 * a process) has the words of the functions: function I is the I-th word of 8 bytes of
 * its chunks in sequence, address | generation << 48, as in nodes.  Number 0 is no
 * function.  Two numbers may stand for the same function.
 *
 * Calls nest in tracks.  Track 0 is the thread's own stack; each coroutine has its own
 * track.  An enter opens a call on the current track, a leave ends the innermost one.
 * A STACK lists the open calls of the current track, outermost first.  It stands where
 * the records before it do not tell: at the begin of each block, and where recording
 * continues after a PAUSE.  Calls that a reader first finds in a STACK began unrecorded
 * and are not counted here.  Calls that a STACK lacks have ended unrecorded.  A STACK
 * never contains a call that was left out.
 *
 * Most arguments and results are recorded as their bytes.  N.values (one file in a
 * process) describes them once: types (struct shim_value_type), and the arguments or
 * result of a function (struct shim_value_list), by number.  Data behind an address
 * may change later, so it is recorded as text: strings, objects behind references, and
 * addresses that have a symbol.
 */
#define SHIM_TRACE_BLOCK     65536u
#define SHIM_TRACE_FIRST     8192u
#define SHIM_TRACE_TIME_BITS 15
#define SHIM_TRACE_LEAVE     1u /* in a head: | time << 1 */
#define SHIM_TRACE_ENTER     2u /* | time << 2 | function << 17 */
/* functions with numbers from this one on need an ENTER_LONG record */
#define SHIM_TRACE_FUNCTIONS 32768u

/* The head of a record of @size bytes. */
#define SHIM_TRACE_HEAD(kind, size) \
	((uint16_t)((unsigned)(kind) << 2 | (unsigned)(size) / 2 << 8))

enum shim_trace_kind {
	SHIM_TRACE_TIME = 1, /* 8 bytes: bits 16-63 are the time */
	SHIM_TRACE_ENTER_LONG, /* 8 bytes: function in bits 16-47, time in bits 48-62 */
	/* 2 bytes: the next leave is of a frame that was unwound (longjmp, an
	 * exception, ...) */
	SHIM_TRACE_UNWOUND,
	SHIM_TRACE_TRACK, /* 8 bytes: bits 16-47 are the track that continues */
	SHIM_TRACE_TRACK_NEW, /* the same; its open calls have ended */
	/* struct shim_trace_thread: another thread continues the file; all tracks are
	 * new.  If the record did not fit in the block before, the header of this block
	 * has begun the thread already: it has the thread's number and tid */
	SHIM_TRACE_THREAD,
	SHIM_TRACE_NAME,  /* the same: the thread got another name */
	SHIM_TRACE_ENDED, /* 2 bytes: the thread ended */
	SHIM_TRACE_STACK, /* struct shim_trace_stack; its size follows the head */
	/* 2 bytes: calls are not recorded until the next STACK */
	SHIM_TRACE_PAUSE,
	SHIM_TRACE_LOST, /* struct shim_trace_lost: calls are missing here */
	/* text from byte 2 on, padded with NULs: the arguments of the last enter */
	SHIM_TRACE_ARGUMENTS,
	SHIM_TRACE_RESULT,	/* the same: the result of the next leave */
	SHIM_TRACE_MARK,	/* the same: a mark of the program */
	SHIM_TRACE_RANGE_BEGIN, /* the same: a range begins */
	/* the same: the latest range of this thread with this text ends */
	SHIM_TRACE_RANGE_END,
	SHIM_TRACE_COUNTER, /* struct shim_trace_counter */
	/* struct shim_trace_values: the arguments of the last enter; if the open call
	 * is of another function, a signal handler came between */
	SHIM_TRACE_ARGUMENTS_RAW,
	SHIM_TRACE_RESULT_RAW, /* the same: the result of the next leave */
	/* struct shim_trace_wait: a wait for a lock begins, if waits for locks are
	 * recorded (the profiler locks) and no minimum duration is set */
	SHIM_TRACE_WAIT_BEGIN,
	/* the same: a wait has ended.  It has been one of at least the minimum
	 * duration */
	SHIM_TRACE_WAIT,
	SHIM_TRACE_MESSAGE, /* struct shim_trace_message: of the innermost open call */
	SHIM_TRACE_UNFINISHED = 63,
};

#define SHIM_TRACE_TEXT 240 /* maximal bytes of a text, without a NUL */

struct shim_trace_info {
	uint32_t block_size; /* SHIM_TRACE_BLOCK */
	uint32_t time_shift;
	uint64_t ring_size; /* bytes of the file; 0: it grows */
	uint64_t blocks;    /* sequence of the last block begun */
	/* Calls left out by options of the user: */
	uint64_t min_duration; /* in clock units; 0: no limit */
	uint64_t too_short;    /* calls */
	/* calls left out by depth, every N-th call, or triggers */
	uint64_t filtered;
	/* Calls that could not be recorded, by cause. */
	uint64_t lost[SHIM_LOST_CAUSES];
	/* With @min_duration, a call gets its ENTER only when it has taken that long,
	 * or when another record is written in it.  @waiting is the number of open
	 * calls without ENTER; struct shim_trace_waiting, outermost first, follow
	 * this struct as far as there is room.  An element that began before the
	 * last record is invalid: a jump ended its call. */
	uint64_t waiting;
};

#define SHIM_TRACE_WAITING_MAX 200

/* In a ring, the offset of a uint64_t from the begin of struct shim_trace_info: the
 * number of ENTER records of all complete blocks, including overwritten ones. */
#define SHIM_TRACE_RING_CALLS 3584

struct shim_trace_waiting {
	uint64_t clock;	   /* the time when the call began */
	uint64_t function; /* its number */
};

struct shim_trace_block {
	uint64_t sequence;
	uint64_t time; /* the clock, divided */
	uint32_t tid;
	uint32_t track;
	uint32_t thread; /* number of the thread in this file, from 1 on */
	/* in a ring: the low half of the number of ENTER records in all blocks before
	 * this one */
	uint32_t calls_before;
	char name[16]; /* the thread's, NUL-padded */
};

/* Records begin at even addresses. */
#define SHIM_TRACE_RECORD __attribute__((packed, aligned(2)))

struct shim_trace_thread {
	uint16_t head;
	uint16_t unused;
	uint32_t tid;
	char name[16];
} SHIM_TRACE_RECORD;

struct shim_trace_stack {
	uint16_t head;
	uint16_t size;	     /* in units of 2 bytes */
	uint32_t more;	     /* 1: further outer calls are open */
	uint32_t function[]; /* numbers */
} SHIM_TRACE_RECORD;

#define SHIM_TRACE_STACK_MAX 1000 /* numbers */

struct shim_trace_lost {
	uint16_t head;
	uint16_t cause; /* enum shim_lost */
	uint32_t calls; /* saturates */
} SHIM_TRACE_RECORD;

struct shim_trace_counter {
	uint16_t head;
	uint16_t unused[3];
	double value;
	char name[]; /* NUL-padded */
};

/* A wait for a lock.  A thread without a later record waits until its end. */
struct shim_trace_wait {
	uint16_t head;
	uint8_t kind;	 /* enum shim_lock_kind */
	uint8_t failed;	 /* 1: the thread did not get the lock */
	uint32_t holder; /* the task that held it at the begin; 0: unknown */
	uint64_t lock;	 /* its address */
	uint64_t waited; /* clock units, not divided; 0 at the begin */
};

/* A message between processes: the members of struct shim_message (<shim/message.h>). */
struct shim_trace_message {
	uint16_t head;
	uint8_t kind; /* enum shim_message_kind */
	uint8_t side;
	int32_t tag;
	uint64_t communicator;
	uint32_t size, rank;
	int32_t peer;
	uint32_t order;
	uint64_t sent, received;
} SHIM_TRACE_RECORD;

/*
 * The values that the description lists.  A byte before each value says how it is
 * stored:
 *
 *     SHIM_VALUE_RAW      the bytes of its type
 *     SHIM_VALUE_TEXT     a byte with the length of the text, then the text
 *     SHIM_VALUE_CUT      this value and all further ones had no room
 *     SHIM_VALUE_MISSING  and higher: not available, by the reason (enum
 *                         shim_unavailable) that is added to it
 *
 * All values together have at most SHIM_TRACE_TEXT + 3 bytes, and a NUL follows if
 * their size is odd.
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

SHIM_LAYOUT(struct shim_trace_wait, 24);
SHIM_LAYOUT(struct shim_trace_message, 48);
SHIM_LAYOUT(struct shim_trace_values, 4);
SHIM_LAYOUT(struct shim_trace_block, 48);
SHIM_LAYOUT(struct shim_trace_thread, 24);
SHIM_LAYOUT(struct shim_trace_lost, 8);
SHIM_LAYOUT(struct shim_trace_info, 112);

/*
 * values: its chunks contain descriptions, whose sizes are multiples of 8 bytes.  The
 * program writes @kind last; a @kind of 0 ends the data of a chunk.  Types and lists
 * are numbered from 1, each on their own.
 */
#define SHIM_VALUES_KIND	   "values"
#define SHIM_VALUES_KIND_TYPE	   1u
#define SHIM_VALUES_KIND_ARGUMENTS 2u
#define SHIM_VALUES_KIND_RESULT	   3u

/* A type.  A struct shim_typetree (<shim/typetree.h>) follows. */
struct shim_value_type {
	uint32_t kind;
	uint32_t size; /* with the tree */
	uint32_t number;
	uint32_t unused;
};

struct shim_value {
	uint32_t type; /* number of its type; 0: its values are never raw */
	/* offset of its name, which ends in a NUL, from the start of the description;
	 * 0: no name */
	uint32_t name;
};

/* The arguments of a function, or its result. */
struct shim_value_list {
	uint32_t kind;
	uint32_t size;
	uint32_t number;
	uint32_t function; /* number of the function */
	uint32_t count;
	uint32_t more;		    /* 1: further arguments are not recorded */
	struct shim_value values[]; /* the names follow */
};

#define SHIM_VALUES_MAX 12 /* of a function */

SHIM_LAYOUT(struct shim_value_type, 16);
SHIM_LAYOUT(struct shim_value_list, 24);

/*
 * coverage: its chunks contain blocks, whose sizes are multiples of 8 bytes.  The
 * program writes @kind last; a @kind of 0 ends the data of a chunk.  A fork child
 * records the lines of an object that its parent had loaded in its parent's file.
 */
#define SHIM_COVERAGE_KIND	     "coverage"
#define SHIM_COVERAGE_KIND_LINES     1u
#define SHIM_COVERAGE_KIND_FUNCTIONS 2u
#define SHIM_COVERAGE_KIND_POINTS    3u

/* Whether an object's lines are recorded; if not, the reason. */
enum shim_coverage_state {
	SHIM_COVERAGE_LINES = 0,       /* recorded */
	SHIM_COVERAGE_NO_LINES = 1,    /* no line table */
	SHIM_COVERAGE_UNWRITABLE = 2,  /* its code cannot be changed */
	SHIM_COVERAGE_UNSUPPORTED = 3, /* on this processor */
	SHIM_COVERAGE_POINTS = 4,      /* the program counts its own points */
};

/* The first instruction of a line.  Several lines may have the same first
 * instruction. */
struct shim_coverage_line {
	uint32_t offset; /* bytes from the start of the object */
	uint32_t line;	 /* 0: code without a line begins here */
	uint32_t file;	 /* index of its name */
	uint16_t column; /* 0: not known; 65535: that or more */
	uint16_t unused;
};

/*
 * The lines of an object.  After this struct: @line_count times struct
 * shim_coverage_line; @line_count bytes, 1 for each line that was reached, 2 if that cannot
 * be known (its first instruction is a mark that shim changes); @files_size
 * bytes, the names of @file_count files, each with its NUL; @path_size bytes, the
 * path of the object.
 */
#define SHIM_COVERAGE_UNKNOWN 2

struct shim_coverage_lines {
	uint64_t kind;	     /* SHIM_COVERAGE_KIND_LINES */
	uint64_t size;	     /* of the block */
	uint64_t start, end; /* addresses at its first load */
	uint32_t state;	     /* enum shim_coverage_state */
	uint32_t line_count;
	uint32_t file_count;
	uint32_t files_size;
	uint32_t path_size;
	uint32_t dropped; /* lines whose first instruction is not certain */
};

/*
 * An object with counters of its compiler.  After this struct: @count counts of 64
 * bits, one for each point of its code; with @has_offsets, @count offsets of 32 bits
 * from the start of the object; the path of the object.  Without offsets, point i is
 * the code that the byte at offset 4 * i - 1 belongs to.
 */
struct shim_coverage_points {
	uint64_t kind;	     /* SHIM_COVERAGE_KIND_POINTS */
	uint64_t size;	     /* of the block */
	uint64_t start, end; /* addresses at its first load */
	uint64_t count;
	uint32_t has_offsets;
	uint32_t path_size;
};

/* Functions that called hooks: function words, as in struct shim_node. */
struct shim_coverage_functions {
	uint64_t kind; /* SHIM_COVERAGE_KIND_FUNCTIONS */
	uint64_t size;
	uint64_t room;
	uint64_t count;
	uint64_t functions[];
};

SHIM_LAYOUT(struct shim_coverage_lines, 56);

/*
 * pchist: the data of gmon.out or mon.out.  profrun writes that file if the program
 * died before it could.  Counter i is for the code from @base + i * (@end - @base) /
 * @bins on.  Addresses are those of the process; an address minus @bias is the address
 * in the object's file.
 */
struct shim_histogram_range {
	uint64_t low, high; /* the code that is counted */
	uint64_t base, end;
	uint64_t bias;
	uint64_t entry; /* entry point of the object, in its file */
	uint64_t bins;
	uint64_t counters; /* address of @bins numbers of 32 bits */
	char path[1024];
};

struct shim_histogram {
	uint32_t range_count; /* 0: not complete */
	uint32_t is_done;     /* the program has written @file */
	uint32_t is_gmon;
	uint32_t rate_hz;
	uint32_t thread; /* with -threads its number, else 0 */
	uint32_t
		is_partial; /* counts that were written to files are subtracted */
	uint64_t outside;   /* samples in none of the ranges */
	char file[2048];
	struct shim_histogram_range ranges[];
};

struct shim_arc {
	uint64_t from,
		self; /* a return address in the caller; an address in the callee */
	uint64_t calls;
	uint64_t unused;
};

/*
 * gaps: when threads of the processes got a processor and lost it, by the kernel's
 * scheduling events.  The records of one processor are in order of time; those of
 * different processors are not.
 */
#define SHIM_GAPS_MAGIC "SHIMGAPS"

struct shim_gaps {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* the first record begins here */
	uint64_t lost;	      /* records that the kernel dropped */
};

enum shim_switch_kind {
	SHIM_SWITCH_ON = 1,	   /* the thread runs from then on */
	SHIM_SWITCH_WAITS = 2,	   /* the thread stops and waits */
	SHIM_SWITCH_PREEMPTED = 3, /* the thread stops; another one runs */
};

struct shim_switch {
	uint64_t mono_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint32_t processor;
	uint32_t kind; /* enum shim_switch_kind */
};

/*
 * tick: the clock, which profrun writes into this file about 2,000 times a second for
 * the hooks of calltree.  It is no part of the recording: profrun removes the file at
 * the end.
 */
#define SHIM_TICK_MAGIC "SHIMTICK"

struct shim_tick {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* of this structure */
	char boot
		[48]; /* the kernel's boot_id; a clock is valid for that boot */
	/* Bits 0-7 are never 0; the kernel makes them 0 when the writer is killed. */
	uint64_t clock;
	/* the average length of a tick so far, in clock units: an instant falls into a
	 * tick of this length on average */
	uint64_t length;
	/* 1: @clock has changed for the last time.  The kernel's tick is later than
	 * @clock. */
	uint32_t is_over;
	/* 1: profrun ends the writer, and sets @is_over then */
	uint32_t is_ending;
	uint32_t unused[10];
};

#define SHIM_TICK_ALIVE 0xff /* these bits of @clock */

SHIM_LAYOUT(struct shim_tick, 128);
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
SHIM_LAYOUT(struct shim_sampled_node, 64);
SHIM_LAYOUT(struct shim_throttled_node, 128);
SHIM_LAYOUT(struct shim_counters_node, 16384);
SHIM_LAYOUT(struct shim_thread_node, 128);
SHIM_LAYOUT(struct shim_group_node, 256);
SHIM_LAYOUT(struct shim_extra_node, 384);

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif
#endif
