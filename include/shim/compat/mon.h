/*
 * monitor(3), as on Tru64 and the BSDs: a program counts where it spends its
 * processor time, in histograms for prof and gprof.
 *
 * libshim.so, preloaded, defines these functions.  A program that calls them is
 * linked with it, because libc has other functions monstartup and moncontrol.
 * PROFDIR and PROFFLAGS choose what is profiled in a program that calls none of
 * them, and where files go: see shim-profilers(7).
 *
 * Any thread may call them.  A function that succeeds leaves errno unchanged; one
 * that fails returns -1 and sets errno:
 *
 *     EINVAL   a range is empty, reversed, not loaded, without code, or overlaps
 *              another; a buffer is NULL, too small or too large; there is nothing
 *              to control; or, without -threads, another thread has started other
 *              ranges and has not stopped them
 *     ENOMEM   no memory for the counters
 *     EAGAIN   the sampler could not be started
 *     ENOSYS   shim is switched off (SHIM_DISABLE, set-user-id programs)
 *     other    the errno of open, write or rename: the file could not be written
 *
 * While default profiling runs, calls of the program return 0 and only switch
 * counting on again, unless PROFFLAGS has -disable_default.  The same holds,
 * without -threads, for all calls between the first one and monitor(0).
 *
 * Example: profile the function `work` alone.
 *
 *     #include <shim/compat/mon.h>
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

/* A range [lowpc, highpc) and its counters, which take @bufsiz bytes. */
struct monitor_args {
	char *lowpc, *highpc;
	unsigned int *buffer;
	size_t bufsiz;
};

/*
 * monitor - profile into memory of the program, or stop
 *
 * With a @lowpc of 0, monitor stops profiling and writes the file; the other
 * arguments are ignored.  Profiling may start again, and continues the counters
 * if the ranges are the same.
 *
 * With a @lowpc of -1 and a @highpc of 0, @buffer is an array of @bufsiz struct
 * monitor_args, which monitor sorts by decreasing lowpc; @last is 0.
 *
 * Otherwise @buffer has @bufsiz bytes of 16-bit counters for [lowpc, highpc).  A
 * counter stops at 65535, and the log has the number of samples above that.
 * @last is ignored.
 *
 * If files are for gprof, only monitor(0) is available.  Files are for gprof
 * unless SHIM_PROF_FORMAT=mon is set.  SHIM_MONITOR_GMON=1 allows the other forms
 * in any case.
 *
 * Tru64: monitor(3).
 */
int monitor(char *lowpc, char *highpc, char *buffer, size_t bufsiz,
	    size_t last);

/* Accepts addresses as numbers and as pointers to functions. */
#define monitor(lowpc, highpc, buffer, bufsiz, last) \
	monitor((char *)(intptr_t)(lowpc), (char *)(intptr_t)(highpc), \
		(char *)(buffer), bufsiz, last)

/*
 * monstartup - profile [lowpc, highpc) into memory of shim
 *
 * A counter has 32 bits and counts 8 bytes of code; -stride in PROFFLAGS changes
 * that size.  If both arguments are 0, the ranges are those of the program and of
 * the libraries that PROFFLAGS names.
 *
 * Tru64: monstartup(3).
 */
int monstartup(char *lowpc, char *highpc);

/*
 * moncontrol - pause counting (@mode is 0), or continue
 *
 * Applies to the process; with -threads, to the calling thread.  Returns the
 * previous mode, 0 or 1.
 *
 * Tru64: moncontrol(3).
 */
int moncontrol(int mode);

/*
 * monitor_signal - write the file now
 *
 * The function is a signal handler: it is async-signal-safe, keeps errno and
 * ignores its argument.  Counters then continue, or restart at 0 with -sigdump.
 *
 * Tru64: monitor_signal(3).
 */
void monitor_signal(int signal);

/*
 * monitor_hits - add @count samples at @pc
 *
 * For a program with its own sampling clock, and for tests.  Async-signal-safe.
 * Returns 0; -1, with errno unchanged, if no profiled range contains @pc.  No
 * counterpart.
 */
int monitor_hits(const void *pc, unsigned int count);

/* --- mon.out, in the byte order of the machine --- */

#define MON_MAGIC   "shim mon"
#define MON_VERSION 1u

/* The start of the file.  For each range follow a struct mon_range, its path of
 * @path_size bytes, and @bins counters of 32 bits. */
struct mon_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* of this structure */
	uint32_t rate_hz;     /* one count stands for 1/rate_hz seconds */
	uint32_t range_count;
	uint32_t pid;
	uint32_t thread;  /* its sequence number; 0: the process */
	uint64_t outside; /* samples in none of the ranges */
};

/* A range; its addresses are those of the object's file. */
struct mon_range {
	/* Counter i is for [low + i * (high - low) / bins,
	 * low + (i + 1) * (high - low) / bins). */
	uint64_t low, high;
	uint64_t bins;
	uint64_t saturated; /* samples above the maximum of a counter */
	uint32_t
		path_size; /* of the object's path with NULs, a multiple of 8 */
	uint32_t reserved; /* 0 */
};

#ifdef __cplusplus
}
#endif
#endif
