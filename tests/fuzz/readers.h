/*
 * Runs readers of recordings one after another, each in a fork of this program,
 * which is the report with sanitizers.  That is ten times faster than starting
 * a process for each.
 */
#ifndef FUZZ_READERS_H
#define FUZZ_READERS_H

#include <stdbool.h>
#include <stdint.h>

#define READER_WORDS 24

/* A reader that takes longer, or needs more memory, has failed. */
#define READER_SECONDS 10
#define READER_MIB     1024

/* "OUTPUT" and "RECORDING" are replaced by paths; the recording comes last. */
struct reader {
	/* the verb first; NULL ends the list */
	const char *words[READER_WORDS];
};

struct outcome {
	int status;	     /* exit status; -1: the reader did not exit */
	const char *problem; /* NULL: no problem */
	const char *said;    /* on stderr */
	double seconds;	     /* of processor time */
	unsigned mib;	     /* maximum memory */
};

/*
 * readers_begin - make a directory for outputs in @directory, which
 * readers_end() removes
 *
 * Call it before the program uses much memory: the process that forks the
 * readers is as large as the program is now, and forking a large process takes
 * longer than most readers.
 */
void readers_begin(const char *directory);
void readers_end(void);

/* @said is valid until the next call. */
struct outcome readers_run(const struct reader *reader, const char *recording);

/* A random number below @limit, which is not 0; readers_seed() restarts the
 * sequence. */
uint64_t any(uint64_t limit);
void seed_any(uint64_t seed);

_Noreturn void fail(const char *what);

#endif
