/*
 * monitor(3): histograms of where a program spends its processor time, as Tru64
 * and the BSDs have it, for prof and gprof.
 *
 * libshim.so, preloaded, is where these functions are; without it a program that
 * calls them is not linked (libc has monstartup and moncontrol of its own).
 * What is profiled when a program calls none of them, and where files go, say
 * PROFDIR and PROFFLAGS: see shim-profilers(7).
 *
 * All of them may be called by any thread.  They return -1 and set errno:
 *
 *     EINVAL   a range is empty, reversed, not loaded, has no code in it or
 *              overlaps another; a buffer is NULL, too small or too large; there
 *              is nothing to control; or, without -threads, another thread has
 *              started other ranges, and has not stopped
 *     ENOMEM   no memory for the counters
 *     EAGAIN   the sampler could not be started
 *     ENOSYS   shim is switched off (SHIM_DISABLE, set-user-id programs)
 *     other    the file could not be written: what open, write or rename say
 *
 * and leave errno alone if they succeed.  While profiling goes on by default,
 * the calls of the program return 0 and only switch it on again, unless
 * PROFFLAGS says -disable_default; so do all calls after the first one (until
 * monitor(0)), when all threads have the same counters.
 *
 * Example: profile the function `work` alone.
 *
 *     #include <mon.h>
 *
 *     void work(void);
 *     void work_end(void);
 *
 *     int main(void)
 *     {
 *             static unsigned short counters[4096];
 *
 *             monitor(work, work_end, counters, sizeof(counters), 0);
 *             work();
 *             return monitor(0, 0, 0, 0, 0);
 *     }
 */
#ifndef MON_H
#define MON_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range [lowpc, highpc) and its counters, as many as fit in @bufsiz bytes. */
struct monitor_args {
	char *lowpc, *highpc;
	unsigned int *buffer;
	size_t bufsiz;
};

/*
 * monitor - profile into the program's own memory, or stop
 *
 * lowpc 0: stops and writes the file; nothing else is looked at.  It may be
 * started again, and goes on counting if the ranges are the same.
 *
 * lowpc -1, highpc 0: @buffer is an array of @bufsiz struct monitor_args, which
 * are brought into the order of decreasing lowpc; @last is 0.
 *
 * Otherwise @buffer has counters of 16 bits, @bufsiz bytes of them, for
 * [lowpc, highpc): they stay at 65535 once they are there, and the log says how
 * many samples that was.  @last is not looked at.
 *
 * Only monitor(0) can be had when files are for gprof: they are, unless
 * SHIM_PROF_FORMAT=mon is set, or SHIM_MONITOR_GMON=1 allows the others.
 *
 * Tru64: monitor(3).
 */
int monitor(char *lowpc, char *highpc, char *buffer, size_t bufsiz,
	    size_t last);

/* Both forms are one function. */
#define monitor(lowpc, highpc, buffer, bufsiz, last) \
	monitor((char *)(intptr_t)(lowpc), (char *)(intptr_t)(highpc), \
		(char *)(buffer), bufsiz, last)

/*
 * monstartup - profile [lowpc, highpc) into memory that is made for it
 *
 * Counters have 32 bits and count 8 bytes of code together, or what -stride
 * says.  Both 0: the program, and the libraries that PROFFLAGS names.
 *
 * Tru64: monstartup(3).
 */
int monstartup(char *lowpc, char *highpc);

/*
 * moncontrol - 0: counts nothing until further notice; other modes: counts
 *
 * Of the process; of the calling thread with -threads.  Returns the mode before,
 * 0 or 1.
 *
 * Tru64: moncontrol(3).
 */
int moncontrol(int mode);

/*
 * monitor_signal - write the file now
 *
 * A handler for signals: async-signal-safe, keeps errno, does not look at its
 * argument.  What is counted goes on from where it is, or from 0 with -sigdump.
 *
 * Tru64: monitor_signal(3).
 */
void monitor_signal(int signal);

/*
 * monitor_hits - count @count samples at @pc, as if they had been taken
 *
 * For a program that has a clock of its own, and for tests.  Async-signal-safe.
 * Returns 0, or -1 if no range that is profiled has it (errno is left alone).
 */
int monitor_hits(const void *pc, unsigned int count);

/* --- mon.out, in the byte order of the machine --- */

#define MON_MAGIC   "shim mon"
#define MON_VERSION 1u

/* The file's first bytes; then for each range a struct mon_range, @path_size
 * bytes, and @bins counters of 32 bits. */
struct mon_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* of this */
	uint32_t rate_hz;     /* a count is 1/rate_hz seconds */
	uint32_t range_count;
	uint32_t pid;
	uint32_t thread;  /* its sequence number; 0: the process */
	uint64_t outside; /* counts in none of the ranges */
};

/* Addresses are those of the object's file. */
struct mon_range {
	uint64_t low,
		high;  /* counter i is for [low + i * (high - low) / bins, */
	uint64_t bins; /* low + (i + 1) * (high - low) / bins) */
	uint64_t saturated; /* counts for which a counter had no room */
	uint32_t path_size; /* of the object's path, a multiple of 8: NULs */
	uint32_t reserved;  /* 0 */
};

#ifdef __cplusplus
}
#endif
#endif
