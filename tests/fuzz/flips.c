/*
 * One bit after the other of recordings is wrong, and everything that reads them
 * reads them: it gives a report, or says what is the matter, and never crashes.
 *
 *     flips DIRECTORY FLIPS [SEED [KIND]]
 *
 * DIRECTORY holds recordings.  For each kind of file in each, or for KIND ("trace"),
 * FLIPS times one bit of a file is turned over, and back again when one consumer,
 * each in its turn, has run in a fork of this program, which is the report with
 * sanitizers: so there are a thousand in the time that a hundred processes take.
 */
#undef main
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH_SIZE 4096
#define SECONDS	  20
#define FILES_MAX 1024
#define HEAD	  1024		/* of a file: short, and it decides a lot */

int report_main(int words, char **word);

/* RECORDING and OUTPUT stand for what they say. */
static const char *const consumers[][8] = {
	{ "report" },
	{ "report", "--tree" },
	{ "report", "--raw", "--limit", "0", "--sort", "max", "--threads" },
	{ "report", "--format", "json" },
	{ "report", "--format", "csv", "--threads" },
	{ "report", "--callers", "main" },
	{ "report", "--histogram", "main" },
	{ "report", "--locks" },
	{ "report", "--memory" },
	{ "report", "--exceptions" },
	{ "report", "--samples" },
	{ "report", "--coverage" },
	{ "info" },
	{ "replay", "--from", "10us", "--min-duration", "1us" },
	{ "replay" },
	{ "html", "-o", "OUTPUT" },
	{ "export", "folded" },
	{ "export", "json" },
	{ "export", "csv" },
	{ "export", "pprof", "-o", "OUTPUT" },
	{ "export", "callgrind" },
	{ "export", "speedscope" },
	{ "export", "chrome" },
	{ "export", "perfetto", "-o", "OUTPUT" },
	{ "export", "ctf", "-o", "OUTPUT" },
	{ "export", "massif" },
	{ "export", "gmon", "-o", "OUTPUT" },
	{ "export", "lcov" },
	{ "export", "cobertura" },
	{ "merge", "-o", "OUTPUT" },
	{ "diff", "RECORDING" },
	{ "finish" },
};
#define CONSUMERS (sizeof(consumers) / sizeof(consumers[0]))

static char scratch[PATH_SIZE];
static char recording[PATH_SIZE];
static bool applies[CONSUMERS];		/* to this recording, as it was */
static unsigned failures, runs;
static uint64_t state;

/* What is seen must be this program's fault, and told in its own way. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0:allocator_may_return_null=1:exitcode=99";
}

const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1:halt_on_error=1:exitcode=99";
}

static uint64_t any(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* --- one run --- */

static int remove_one(const char *path, const struct stat *about, int kind,
		      struct FTW *place)
{
	(void)about;
	(void)kind;
	(void)place;
	return remove(path);
}

static const char *output_path(void)
{
	static char path[PATH_SIZE + 8];

	snprintf(path, sizeof(path), "%s/output", scratch);
	return path;
}

static __attribute__((noreturn)) void consume(unsigned number, int log)
{
	struct rlimit cpu = { SECONDS, SECONDS };
	char *word[12] = { "shim-report" };
	int words = 1, null = open("/dev/null", O_RDWR);

	for (unsigned i = 0; i < 8 && consumers[number][i]; i++) {
		const char *text = consumers[number][i];

		if (!strcmp(text, "OUTPUT"))
			text = output_path();
		else if (!strcmp(text, "RECORDING"))
			text = recording;
		word[words++] = (char *)text;
	}
	word[words++] = recording;
	setrlimit(RLIMIT_CPU, &cpu);
	alarm(3 * SECONDS);
	dup2(null, 0);
	dup2(null, 1);
	dup2(log, 2);
	exit(report_main(words, word));
}

/* What went wrong, or NULL. */
static const char *problem_of(int status, const char *said)
{
	if (WIFSIGNALED(status))
		return strsignal(WTERMSIG(status));
	if (strstr(said, "Sanitizer") || strstr(said, "runtime error"))
		return "a sanitizer";
	if (WEXITSTATUS(status) > 2)
		return "the status";
	if (WEXITSTATUS(status) != 0 && !*said)
		return "no message";
	return NULL;
}

/* Returns the exit status. */
static int run(unsigned number, const char *what)
{
	static char said[20000];
	int log = memfd_create("log", MFD_CLOEXEC), status = 0;
	const char *problem;
	ssize_t size;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		consume(number, log);
	if (child < 0 || log < 0 || waitpid(child, &status, 0) != child)
		fail("fork");
	size = pread(log, said, sizeof(said) - 1, 0);
	said[size > 0 ? size : 0] = '\0';
	close(log);
	nftw(output_path(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
	runs++;
	problem = problem_of(status, said);
	if (problem) {
		failures++;
		printf("FAILED: %s: %s %s %s: %s\n%s\n", what,
		       consumers[number][0],
		       consumers[number][1] ? consumers[number][1] : "",
		       consumers[number][2] ? consumers[number][2] : "", problem,
		       said);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- files --- */

struct file {
	char *path;
	const char *kind;	/* its name without digits */
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

/* How much of it is not zero at its end, and a little more. */
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
	unsigned before = runs, failed = failures, consumer = 0;

	while (runs - before < flips) {
		const struct file *file = &files[any(file_count)];

		if (strcmp(file->kind, kind))
			continue;
		do
			consumer = (consumer + 1) % CONSUMERS;
		while (!applies[consumer]);
		flip(file, consumer);
	}
	printf("%s: %s: %u flips, %u failures\n", name, kind, runs - before,
	       failures - failed);
}

static bool is_first_of_kind(unsigned file)
{
	for (unsigned i = 0; i < file; i++)
		if (!strcmp(files[i].kind, files[file].kind))
			return false;
	return true;
}

static void flip_recording(const char *name, unsigned flips, const char *only)
{
	unsigned consumers_left = 0;

	for (unsigned i = 0; i < CONSUMERS; i++) {
		applies[i] = run(i, recording) == 0;
		consumers_left += applies[i];
	}
	if (!consumers_left)
		fail(recording);
	file_count = 0;
	nftw(recording, note_file, 16, FTW_PHYS);
	printf("%s: %u consumers\n", name, consumers_left);
	for (unsigned i = 0; i < file_count; i++)
		if (is_first_of_kind(i) &&
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
	state = 0x9e3779b97f4a7c15u ^
		(words > 3 ? strtoull(word[3], NULL, 10) : 1);
	snprintf(scratch, sizeof(scratch), "%s/.flips.XXXXXX", word[1]);
	if (!mkdtemp(scratch))
		fail(word[1]);
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
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	printf("%u runs, %u failures\n", runs, failures);
	return failures != 0;
}
