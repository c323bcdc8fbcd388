/*
 * One reader of recordings after the other, each in a fork of this program, which is
 * the report with sanitizers: so there are a thousand in the time that a hundred
 * processes take.
 */
#ifndef FUZZ_READERS_H
#define FUZZ_READERS_H

#include <stdbool.h>
#include <stdint.h>

#define READER_WORDS 24

/* A reader that takes longer, or needs more, has failed. */
#define READER_SECONDS 10
#define READER_MIB     1024

/* "OUTPUT" and "RECORDING" stand for what they say; the recording comes last. */
struct reader {
	const char *words[READER_WORDS]; /* the verb first; NULL ends them */
};

struct outcome {
	int status;	     /* of its exit; -1: there was none */
	const char *problem; /* NULL: it did what it may */
	const char *said;    /* on stderr */
	double seconds;	     /* of processor time */
	unsigned mib;	     /* it had at most */
};

/*
 * readers_begin - makes a place for outputs in @directory, which readers_end() removes
 *
 * Comes before the program has much memory: the process that forks the readers is as
 * large as it is now, and a fork of a large one takes longer than most readers.
 */
void readers_begin(const char *directory);
void readers_end(void);

/* @said is valid until the next one. */
struct outcome readers_run(const struct reader *reader, const char *recording);

/* A number below @limit, which is not 0; the next is the first after readers_seed(). */
uint64_t any(uint64_t limit);
void seed_any(uint64_t seed);

_Noreturn void fail(const char *what);

#endif
