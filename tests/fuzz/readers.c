#include "readers.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../scripts/run/recording.h"

#define PATH_SIZE 4096
#define SAID_SIZE 20000

int report_main(int words, char **word);

static char scratch[PATH_SIZE];
static uint64_t state;

void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* --- chance --- */

void seed_any(uint64_t seed)
{
	state = (seed + 1) * 0x9e3779b97f4a7c15u;
	for (int i = 0; i < 4; i++)
		any(1);
}

uint64_t any(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x2545f4914f6cdd1du >> 8) % limit;
}

/* --- outputs --- */

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

/* And whatever else a reader has put where it was. */
static void remove_outputs(void)
{
	if (rmdir(scratch))
		nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (mkdir(scratch, 0700))
		fail(scratch);
}

void readers_begin(const char *directory)
{
	snprintf(scratch, sizeof(scratch), "%s/.readers.XXXXXX", directory);
	if (!mkdtemp(scratch))
		fail(directory);
}

void readers_end(void)
{
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- one run --- */

static uint64_t data_size(void)
{
	FILE *in = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "VmData: %llu", &kib) == 1)
			break;
	if (in)
		fclose(in);
	return kib << 10;
}

/* What goes astray must not take the machine with it. */
static void limit(void)
{
	struct rlimit cpu = { READER_SECONDS, READER_SECONDS };
	struct rlimit file = { (uint64_t)READER_MIB << 20, RLIM_INFINITY };
	struct rlimit data;

	data.rlim_cur = data_size() + (2ull * READER_MIB << 20);
	data.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_FSIZE, &file);
	setrlimit(RLIMIT_DATA, &data);
	alarm(6 * READER_SECONDS);
}

/* The part of profrun run that looks at what a program has left. */
static int conclude(const char *recording)
{
	recording_say_log(recording);
	recording_has_histograms(recording);
	return recording_content(recording) == RECORDING_NOTHING;
}

static _Noreturn void read_once(const struct reader *reader,
				const char *recording, int log)
{
	char *word[READER_WORDS + 3] = { "shim-report" };
	int words = 1, null = open("/dev/null", O_RDWR);

	for (unsigned i = 0; i < READER_WORDS && reader->words[i]; i++) {
		const char *text = reader->words[i];

		if (!strcmp(text, "OUTPUT"))
			text = output_path();
		else if (!strcmp(text, "RECORDING"))
			text = recording;
		word[words++] = (char *)text;
	}
	word[words++] = (char *)recording;
	limit();
	if (chdir(scratch))
		_exit(98);
	dup2(null, 0);
	dup2(null, 1);
	dup2(log, 2);
	exit(!strcmp(word[1], "conclude") ? conclude(recording) :
					    report_main(words, word));
}

/* What went wrong, or NULL. */
static const char *problem_of(const struct outcome *outcome, int status,
			      bool is_copy)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGXCPU ||
		       WTERMSIG(status) == SIGKILL ? "takes too long" :
		       WTERMSIG(status) == SIGALRM ? "waits" :
		       WTERMSIG(status) == SIGXFSZ ? "writes too much" :
						     strsignal(WTERMSIG(status));
	if (strstr(outcome->said, "Sanitizer") ||
	    strstr(outcome->said, "runtime error"))
		return "a sanitizer";
	if (strstr(outcome->said, "out of memory"))
		return "needs too much memory";
	/* What is copied is as long as it was, with its holes. */
	if (strstr(outcome->said, "File too large") && !is_copy &&
	    !strstr(outcome->said, "cannot be that large"))
		return "writes too much";
	if (WEXITSTATUS(status) > 2)
		return "the status";
	if (WEXITSTATUS(status) != 0 && !*outcome->said)
		return "no message";
	if (outcome->seconds > READER_SECONDS)
		return "takes too long";
	return outcome->mib > READER_MIB ? "needs too much memory" : NULL;
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

struct outcome readers_run(const struct reader *reader, const char *recording)
{
	static char said[SAID_SIZE];
	struct outcome outcome = { .said = said };
	int log = memfd_create("log", MFD_CLOEXEC), status = 0;
	struct rusage used;
	ssize_t size;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		read_once(reader, recording, log);
	if (child < 0 || log < 0 || wait4(child, &status, 0, &used) != child)
		fail("fork");
	size = pread(log, said, sizeof(said) - 1, 0);
	said[size > 0 ? size : 0] = '\0';
	close(log);
	remove_outputs();
	outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	outcome.seconds = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
	outcome.mib = (unsigned)(used.ru_maxrss >> 10);
	outcome.problem = problem_of(&outcome, status,
				     !strcmp(reader->words[0], "merge"));
	return outcome;
}
