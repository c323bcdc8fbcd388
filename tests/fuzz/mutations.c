/*
 * Mutates recordings according to <shim/format.h>; every consumer reads each
 * mutation.  The consumer must give a report or a message; it may not crash,
 * nor exceed READER_SECONDS or READER_MIB.
 *
 *     mutations DIRECTORY COUNT [SEED [FIRST [keep]]]
 *
 * DIRECTORY holds recordings, which are sound, and are sound again at the end.
 * Each case depends only on SEED and its number: a failed case can be run
 * alone, and with "keep" the last one stays as it was read.
 */
#include "mutate.h"
#include "readers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATH_SIZE      4096
#define RECORDINGS_MAX 16
#define OPTIONS_MAX    40

/* A verb and its options.  An option with a value is two words. */
struct verb {
	const char *words[5];
	unsigned weight;
	const char *options[OPTIONS_MAX][2];
};

#define FILTERS \
	{ "--raw" }, { "--mangled" }, { "--names", "short" }, \
		{ "--hide", "main" }, { "--focus", "a" }, \
		{ "--merge-recursion" }, { "--samples" }, { "--trace" }, \
		{ "--memory" }, { "--locks" }, \
	{ \
		"--process", "1" \
	}
#define SORTS \
	{ "--sort", "self" }, { "--sort", "calls" }, { "--sort", "mean" }, \
		{ "--sort", "max" }, { "--sort", "bytes" }, \
		{ "--sort", "peak" }, \
	{ \
		"--sort", "lost" \
	}
#define VALUES \
	{ "--value", "self" }, { "--value", "total" }, { "--value", "calls" }, \
		{ "--value", "samples" }, { "--value", "bytes" }, \
		{ "--value", "allocations" }, { "--value", "peak" }, \
		{ "--value", "leaked" }, { "--value", "lost" }, \
	{ \
		"--value", "waits" \
	}

static const struct verb verbs[] = {
	{ { "report" },
	  30,
	  { { "--limit", "0" },
	    { "--tree" },
	    { "--min-percent", "0" },
	    { "--depth", "1000000" },
	    { "--callers", "main" },
	    { "--callees", "main" },
	    { "--histogram", "main" },
	    { "--threads" },
	    { "--ranks" },
	    { "--format", "json" },
	    { "--format", "csv" },
	    { "--coverage" },
	    { "--exceptions" },
	    { "--color", "always" },
	    SORTS,
	    FILTERS } },
	{ { "info" }, 4, { { "--raw" } } },
	{ { "replay" },
	  8,
	  { { "--from", "10us" },
	    { "--to", "1ms" },
	    { "--min-duration", "1us" },
	    { "--limit", "100" },
	    { "--depth", "3" },
	    { "--thread", "1" },
	    { "--function", "main" },
	    { "--mangled" } } },
	{ { "html", "-o", "OUTPUT" },
	  10,
	  { { "--max-paths", "50" },
	    { "--max-calls", "20" },
	    { "--against", "RECORDING" },
	    FILTERS } },
	{ { "export", "folded" },
	  5,
	  { VALUES,
	    FILTERS,
	    { "--threads" },
	    { "--max-depth", "1000000" },
	    { "--exceptions" } } },
	{ { "export", "json" }, 5, { { "--threads" }, FILTERS } },
	{ { "export", "csv" },
	  4,
	  { { "--threads" }, { "--exceptions" }, FILTERS } },
	{ { "export", "pprof", "-o", "OUTPUT" },
	  4,
	  { VALUES, FILTERS, { "--max-depth", "1000000" } } },
	{ { "export", "callgrind" }, 4, { VALUES, FILTERS } },
	{ { "export", "speedscope" }, 4, { VALUES, FILTERS, { "--threads" } } },
	{ { "export", "massif" }, 3, { FILTERS } },
	{ { "export", "order" }, 2, { VALUES, { "--object", "libc.so.6" } } },
	{ { "export", "gmon", "-o", "OUTPUT" }, 3, { FILTERS } },
	{ { "gprof", "-b" }, 1, { { "-q" } } },
	{ { "export", "dot" }, 4, { VALUES, FILTERS } },
	{ { "export", "perf-script" }, 4, { VALUES, FILTERS } },
	{ { "export", "html" }, 2, { { "--embed" } } },
	{ { "export", "chrome" }, 3, { { "--mangled" } } },
	{ { "export", "perfetto", "-o", "OUTPUT" }, 3, { { "--mangled" } } },
	{ { "export", "ctf", "-o", "OUTPUT" }, 3, { { "--mangled" } } },
	{ { "export", "otf2", "-o", "OUTPUT" }, 3, { { "--mangled" } } },
	{ { "export", "lcov" }, 3, { { NULL } } },
	{ { "export", "cobertura" }, 3, { { NULL } } },
	{ { "merge", "-o", "OUTPUT" }, 2, { { NULL } } },
	{ { "diff", "RECORDING" },
	  4,
	  { { "--limit", "0" },
	    { "--format", "json" },
	    { "--format", "csv" },
	    { "--value", "calls" },
	    { "--value", "bytes" },
	    { "--value", "lost" },
	    FILTERS } },
	{ { "finish" }, 2, { { "--if-any" } } },
	{ { "conclude" }, 2, { { NULL } } },
};
#define VERBS (sizeof(verbs) / sizeof(*verbs))

enum use { USE_UNKNOWN, USE_GOOD, USE_NONE };

struct base {
	char path[PATH_SIZE];
	struct recording_shape shape;
	unsigned weight; /* the number of kinds of structures in it */
	/* The results on the sound recording: of the verb alone, and with each
	 * option. */
	enum use uses[VERBS][1 + OPTIONS_MAX];
};

static struct base bases[RECORDINGS_MAX];
static unsigned base_count;
static uint64_t statuses[4], slowest_case, largest_case;
static double slowest;
static unsigned largest;

static void add_words(struct reader *reader, const char *const *words,
		      unsigned most)
{
	unsigned at = 0;

	while (at < READER_WORDS && reader->words[at])
		at++;
	for (unsigned i = 0; i < most && words[i]; i++)
		reader->words[at++] = words[i];
}

/* Whether the verb gives a result for the sound recording; cached. */
static bool is_of_use(struct base *base, unsigned verb, unsigned option)
{
	enum use *use = &base->uses[verb][option];
	struct reader reader = { { NULL } };

	if (*use == USE_UNKNOWN) {
		add_words(&reader, verbs[verb].words, 5);
		if (option)
			add_words(&reader, verbs[verb].options[option - 1], 2);
		*use = readers_run(&reader, base->path).status == 0 ? USE_GOOD :
								      USE_NONE;
	}
	return *use == USE_GOOD;
}

static unsigned choose_verb(struct base *base)
{
	unsigned weight = 0, i;
	uint64_t at;

	for (i = 0; i < VERBS; i++)
		weight += is_of_use(base, i, 0) ? verbs[i].weight : 0;
	if (weight == 0)
		fail(base->path);
	at = any(weight);
	for (i = 0;; i++) {
		if (!is_of_use(base, i, 0))
			continue;
		if (at < verbs[i].weight)
			return i;
		at -= verbs[i].weight;
	}
}

static struct reader choose_reader(struct base *base)
{
	struct reader reader = { { NULL } };
	unsigned number = choose_verb(base), options = 0;
	const struct verb *verb = &verbs[number];

	add_words(&reader, verb->words, 5);
	while (options < OPTIONS_MAX && verb->options[options][0])
		options++;
	for (uint64_t count = options ? any(4) : 0; count > 0; count--) {
		unsigned option = (unsigned)any(options);

		if (is_of_use(base, number, 1 + option))
			add_words(&reader, verb->options[option], 2);
	}
	return reader;
}

static struct base *choose_base(void)
{
	unsigned weight = 0, i = 0;
	uint64_t at;

	for (unsigned n = 0; n < base_count; n++)
		weight += bases[n].weight;
	for (at = any(weight); at >= bases[i].weight; i++)
		at -= bases[i].weight;
	return &bases[i];
}

static void print_words(const struct reader *reader)
{
	for (unsigned i = 0; i < READER_WORDS && reader->words[i]; i++)
		printf("%s%s", i ? " " : "", reader->words[i]);
}

static void note_costs(uint64_t number, const struct outcome *outcome)
{
	statuses[outcome->status >= 0 && outcome->status < 3 ? outcome->status :
							       3]++;
	if (outcome->seconds > slowest) {
		slowest = outcome->seconds;
		slowest_case = number;
	}
	if (outcome->mib > largest) {
		largest = outcome->mib;
		largest_case = number;
	}
}

/* Returns false if the case failed. */
static bool run_case(uint64_t seed, uint64_t number, bool is_kept)
{
	struct base *base;
	struct reader reader;
	struct outcome outcome;
	char what[WHAT_SIZE];

	seed_any(seed << 40 ^ number);
	base = choose_base();
	reader = choose_reader(base);
	mutate_begin(base->path, &base->shape);
	mutate(what);
	if (is_kept) {
		print_words(&reader);
		printf(" %s\n%s\n", base->path, what);
		fflush(stdout);
	}
	outcome = readers_run(&reader, base->path);
	note_costs(number, &outcome);
	if (is_kept)
		printf("%.1f s, %u MiB, status %d\n%s\n", outcome.seconds,
		       outcome.mib, outcome.status, outcome.said);
	else
		mutate_undo();
	if (!outcome.problem)
		return true;
	printf("FAILED: case %llu: %s, %.1f s, %u MiB: ",
	       (unsigned long long)number, outcome.problem, outcome.seconds,
	       outcome.mib);
	print_words(&reader);
	printf(": %s: %s\n%s\n", base->path, what, outcome.said);
	fflush(stdout);
	return false;
}

static void find_bases(const char *directory)
{
	struct dirent **entries;
	int count = scandir(directory, &entries, NULL, alphasort);

	for (int i = 0; i < count && base_count < RECORDINGS_MAX; i++) {
		struct base *base = &bases[base_count];

		if (entries[i]->d_name[0] == '.')
			continue;
		snprintf(base->path, sizeof(base->path), "%s/%s", directory,
			 entries[i]->d_name);
		shapes_read(&base->shape, base->path);
		base->weight = 0;
		for (uint32_t n = 0; n < base->shape.place_count; n++)
			base->weight += n == 0 ||
					base->shape.places[n].shape !=
						base->shape.places[n - 1].shape;
		/* Names take ten times as long to read as the rest. */
		if (!strncmp(entries[i]->d_name, "unnamed.", 8))
			base->weight *= 32;
		printf("%s: %u files, %u structures of %u kinds\n",
		       entries[i]->d_name, base->shape.file_count,
		       base->shape.place_count, base->weight);
		base_count++;
	}
	if (base_count == 0)
		fail(directory);
}

/* Prints a line every ten seconds. */
static void tell(uint64_t done, uint64_t all, uint64_t failures)
{
	static time_t last;
	time_t now = time(NULL);

	if (now - last < 10 && done < all)
		return;
	last = now;
	printf("%llu of %llu, %llu failed; slowest %.1f s (case %llu), largest "
	       "%u MiB (case %llu)\n",
	       (unsigned long long)done, (unsigned long long)all,
	       (unsigned long long)failures, slowest,
	       (unsigned long long)slowest_case, largest,
	       (unsigned long long)largest_case);
	fflush(stdout);
}

int main(int words, char **word)
{
	uint64_t count, seed, first, failures = 0, i;
	char *directory;

	if (words < 3) {
		fputs("usage: mutations DIRECTORY COUNT [SEED [FIRST [keep]]]\n",
		      stderr);
		return 2;
	}
	directory = realpath(word[1], NULL);
	count = strtoull(word[2], NULL, 10);
	seed = words > 3 ? strtoull(word[3], NULL, 10) : 1;
	first = words > 4 ? strtoull(word[4], NULL, 10) : 0;
	if (!directory)
		fail(word[1]);
	readers_begin(directory);
	find_bases(directory);
	for (i = 0; i < count; i++) {
		failures += !run_case(seed, first + i,
				      words > 5 && i + 1 == count);
		tell(i + 1, count, failures);
	}
	readers_end();
	printf("%llu cases, %llu failed; status 0: %llu, 1: %llu, 2: %llu\n",
	       (unsigned long long)count, (unsigned long long)failures,
	       (unsigned long long)statuses[0], (unsigned long long)statuses[1],
	       (unsigned long long)statuses[2]);
	return failures != 0;
}
