/*
 * Flips one bit of a recording after another; every consumer then reads the
 * recording.  The consumer must give a report or a message, and never crash.
 *
 *     flips DIRECTORY FLIPS [SEED [KIND]]
 *
 * DIRECTORY holds recordings.  For each kind of file in each (with one flip, in
 * one of them), or for KIND ("trace"), FLIPS times one bit of a file is flipped;
 * one consumer, each in its turn, reads the recording; then the bit is flipped
 * back.
 */
#include "readers.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define FILES_MAX 1024
/* size of a file's header: short, but much depends on it */
#define HEAD 1024

static const struct reader consumers[] = {
	{ { "report" } },
	{ { "report", "--tree" } },
	{ { "report", "--raw", "--limit", "0", "--sort", "max", "--threads" } },
	{ { "report", "--format", "json" } },
	{ { "report", "--format", "csv", "--threads" } },
	{ { "report", "--callers", "main" } },
	{ { "report", "--histogram", "main" } },
	{ { "report", "--locks" } },
	{ { "report", "--memory" } },
	{ { "report", "--exceptions" } },
	{ { "report", "--samples" } },
	{ { "report", "--coverage" } },
	{ { "info" } },
	{ { "replay", "--from", "10us", "--min-duration", "1us" } },
	{ { "replay" } },
	{ { "html", "-o", "OUTPUT" } },
	{ { "export", "folded" } },
	{ { "export", "json" } },
	{ { "export", "csv" } },
	{ { "export", "pprof", "-o", "OUTPUT" } },
	{ { "export", "callgrind" } },
	{ { "export", "speedscope" } },
	{ { "export", "speedscope", "--from", "0s" } },
	{ { "export", "dot" } },
	{ { "export", "perf-script" } },
	{ { "export", "html", "--embed" } },
	{ { "export", "chrome" } },
	{ { "export", "perfetto", "-o", "OUTPUT" } },
	{ { "export", "ctf", "-o", "OUTPUT" } },
	{ { "export", "otf2", "-o", "OUTPUT" } },
	{ { "export", "massif" } },
	{ { "export", "order" } },
	{ { "export", "gmon", "-o", "OUTPUT" } },
	{ { "export", "lcov" } },
	{ { "export", "cobertura" } },
	{ { "merge", "-o", "OUTPUT" } },
	{ { "diff", "RECORDING" } },
	{ { "finish" } },
};
#define CONSUMERS (sizeof(consumers) / sizeof(consumers[0]))

static char recording[PATH_SIZE];
/* whether a consumer can read this recording undamaged; asked once, when it is its
 * turn */
static enum { UNKNOWN, READS, REFUSES } applies[CONSUMERS];
static unsigned failures, runs;

/* Returns the exit status. */
static int run(unsigned number, const char *what)
{
	const char *const *words = consumers[number].words;
	struct outcome outcome = readers_run(&consumers[number], recording);

	runs++;
	if (outcome.problem) {
		failures++;
		printf("FAILED: %s: %s %s %s: %s\n%s\n", what, words[0],
		       words[1] ? words[1] : "",
		       words[1] && words[2] ? words[2] : "", outcome.problem,
		       outcome.said);
	}
	return outcome.status;
}

static unsigned next_consumer(unsigned before)
{
	for (unsigned i = 1; i <= CONSUMERS; i++) {
		unsigned number = (before + i) % CONSUMERS;

		if (applies[number] == UNKNOWN)
			applies[number] = run(number, recording) ? REFUSES :
								   READS;
		if (applies[number] == READS)
			return number;
	}
	fail(recording);
}

/* --- files --- */

struct file {
	char *path;
	const char *kind; /* the file's name without digits */
};

static struct file files[FILES_MAX];
static unsigned file_count;

static int note_file(const char *path, const struct stat *about, int kind,
		     struct FTW *place)
{
	const char *name = path + place->base;

	if (kind == FTW_F && about->st_size > 0 && file_count < FILES_MAX) {
		files[file_count].path = strdup(path);
		name = files[file_count].path + place->base;
		name += strspn(name, "0123456789.");
		files[file_count++].kind = name;
	}
	return 0;
}

/* The length of the file up to its last byte that is not zero, and a little
 * more. */
static uint64_t used(int fd, uint64_t size)
{
	const char *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t end = size;

	if (data == MAP_FAILED)
		fail("mmap");
	while (end > 1 && !data[end - 1])
		end--;
	munmap((void *)data, size);
	return end + 64 < size ? end + 64 : size;
}

static void flip(const struct file *file, unsigned consumer)
{
	int fd = open(file->path, O_RDWR | O_CLOEXEC);
	struct stat about;
	unsigned char byte, wrong;
	uint64_t end, at;
	unsigned bit = (unsigned)any(8);
	char what[PATH_SIZE + 64];

	if (fd < 0 || fstat(fd, &about))
		fail(file->path);
	end = used(fd, (uint64_t)about.st_size);
	at = any(any(10) < 4 && end > HEAD ? HEAD : end);
	if (pread(fd, &byte, 1, (off_t)at) != 1)
		fail(file->path);
	wrong = byte ^ (unsigned char)(1u << bit);
	if (pwrite(fd, &wrong, 1, (off_t)at) != 1)
		fail(file->path);
	snprintf(what, sizeof(what), "%s: bit %u of byte %llu", file->path, bit,
		 (unsigned long long)at);
	run(consumer, what);
	if (pwrite(fd, &byte, 1, (off_t)at) != 1)
		fail(file->path);
	close(fd);
}

static void flip_kind(const char *name, const char *kind, unsigned flips)
{
	unsigned done = 0, failed = failures,
		 consumer = (unsigned)any(CONSUMERS);

	while (done < flips) {
		const struct file *file = &files[any(file_count)];

		if (strcmp(file->kind, kind))
			continue;
		consumer = next_consumer(consumer);
		flip(file, consumer);
		done++;
	}
	printf("%s: %s: %u flips, %u failures\n", name, kind, done,
	       failures - failed);
}

#define KINDS_MAX 64

static char kinds[KINDS_MAX][NAME_MAX + 1];
static unsigned kind_count;

/* Whether no file before it was of its kind. */
static bool is_first_of_kind(const char *kind)
{
	for (unsigned i = 0; i < kind_count; i++)
		if (!strcmp(kinds[i], kind))
			return false;
	if (kind_count == KINDS_MAX)
		fail("too many kinds");
	strcpy(kinds[kind_count++], kind);
	return true;
}

static void flip_recording(const char *name, unsigned flips, const char *only)
{
	memset(applies, 0, sizeof(applies));
	/* One flip of each kind is one of all recordings. */
	if (flips > 1)
		kind_count = 0;
	file_count = 0;
	nftw(recording, note_file, 16, FTW_PHYS);
	for (unsigned i = 0; i < file_count; i++)
		if (is_first_of_kind(files[i].kind) &&
		    (!only || !strcmp(only, files[i].kind)))
			flip_kind(name, files[i].kind, flips);
	for (unsigned i = 0; i < file_count; i++)
		free(files[i].path);
}

int main(int words, char **word)
{
	struct dirent **entries;
	int count;

	if (words < 3) {
		fputs("usage: flips DIRECTORY FLIPS [SEED [KIND]]\n", stderr);
		return 2;
	}
	seed_any(words > 3 ? strtoull(word[3], NULL, 10) : 1);
	readers_begin(word[1]);
	count = scandir(word[1], &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] == '.')
			continue;
		snprintf(recording, sizeof(recording), "%s/%s", word[1],
			 entries[i]->d_name);
		flip_recording(entries[i]->d_name,
			       (unsigned)strtoul(word[2], NULL, 10),
			       words > 4 ? word[4] : NULL);
	}
	readers_end();
	printf("%u runs, %u failures\n", runs, failures);
	return failures != 0;
}
