#include "readers.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../scripts/run/recording.h"

#define PATH_SIZE    4096
#define SAID_SIZE    20000
#define WAIT_SECONDS 60

int report_main(int words, char **word);

/* Pointers to words of this program, valid in its fork. */
struct request {
	struct reader reader;
	char recording[PATH_SIZE];
};

/* The messages follow. */
struct answer {
	int status;	    /* of wait4(), */
	struct rusage used; /* resource usage of the reader */
};

static char scratch[PATH_SIZE], said[SAID_SIZE];
static uint64_t state;
static int server = -1;
static pid_t server_pid;

void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* --- random numbers --- */

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

/* Removes the outputs, and anything else that a reader put there. */
static void remove_outputs(void)
{
	if (rmdir(scratch))
		nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (mkdir(scratch, 0700))
		fail(scratch);
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

/* The time for which this process has run, or has waited for a processor. */
static uint64_t busy_ns(void)
{
	int file = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	char *next;
	uint64_t ran;

	if (file >= 0)
		close(file);
	if (length < 0)
		return 0;
	text[length] = '\0';
	ran = strtoull(text, &next, 10);
	return ran + strtoull(next, NULL, 10);
}

/* On a busy machine, a reader may get no processor for a minute: it does not wait. */
static void on_alarm(int number)
{
	static uint64_t before;
	uint64_t now = busy_ns(), half = WAIT_SECONDS / 2 * 1000000000ull;

	if (now - before < half) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	before = now;
	alarm(WAIT_SECONDS);
}

/* Limits a runaway reader, to protect the machine. */
static void limit(void)
{
	struct sigaction action = { .sa_handler = on_alarm,
				    .sa_flags = SA_RESTART };
	struct rlimit cpu = { READER_SECONDS, READER_SECONDS };
	struct rlimit file = { (uint64_t)READER_MIB << 20, RLIM_INFINITY };
	struct rlimit data;

	data.rlim_cur = data_size() + (2ull * READER_MIB << 20);
	data.rlim_max = RLIM_INFINITY;
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_FSIZE, &file);
	setrlimit(RLIMIT_DATA, &data);
	sigaction(SIGALRM, &action, NULL);
	alarm(WAIT_SECONDS);
}

/* The part of profrun run that inspects a recording after the program's end. */
static int conclude(const char *recording)
{
	recording_say_log(recording, false);
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

/* The reader's error, or NULL. */
static const char *problem_of(const struct outcome *outcome, int status,
			      bool is_copy)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGXCPU ||
				       WTERMSIG(status) == SIGKILL ?
			       "takes too long" :
		       WTERMSIG(status) == SIGALRM ?
			       "waits" :
		       WTERMSIG(status) == SIGXFSZ ?
			       "writes too much" :
			       strsignal(WTERMSIG(status));
	if (strstr(outcome->said, "Sanitizer") ||
	    strstr(outcome->said, "runtime error"))
		return "a sanitizer";
	if (strstr(outcome->said, "out of memory"))
		return "needs too much memory";
	/* A copy is as long as the original, including its holes. */
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

static struct answer run(const struct reader *reader, const char *recording)
{
	struct answer answer = { 0 };
	int log = memfd_create("log", MFD_CLOEXEC);
	ssize_t size;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		read_once(reader, recording, log);
	if (child < 0 || log < 0 ||
	    wait4(child, &answer.status, 0, &answer.used) != child)
		fail("fork");
	size = pread(log, said, sizeof(said) - 1, 0);
	said[size > 0 ? size : 0] = '\0';
	close(log);
	remove_outputs();
	return answer;
}

/* --- the process that forks readers --- */

static _Noreturn void serve(int from)
{
	struct request request;
	struct answer answer;

	while (recv(from, &request, sizeof(request), 0) == sizeof(request)) {
		answer = run(&request.reader, request.recording);
		if (send(from, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ||
		    send(from, said, strlen(said) + 1, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

void readers_begin(const char *directory)
{
	int pair[2];

	snprintf(scratch, sizeof(scratch), "%s/.readers.XXXXXX", directory);
	if (!mkdtemp(scratch) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		fail(directory);
	fflush(NULL);
	server_pid = fork();
	if (server_pid < 0)
		fail("fork");
	if (server_pid == 0) {
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	server = pair[0];
}

void readers_end(void)
{
	close(server);
	waitpid(server_pid, NULL, 0);
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct outcome readers_run(const struct reader *reader, const char *recording)
{
	struct request request = { .reader = *reader };
	struct outcome outcome = { .said = said };
	struct answer answer;

	snprintf(request.recording, sizeof(request.recording), "%s", recording);
	if (send(server, &request, sizeof(request), MSG_NOSIGNAL) < 0 ||
	    recv(server, &answer, sizeof(answer), 0) != sizeof(answer) ||
	    recv(server, said, sizeof(said), 0) <= 0)
		fail("the process that reads");
	outcome.status = WIFEXITED(answer.status) ? WEXITSTATUS(answer.status) :
						    -1;
	outcome.seconds = seconds_of(answer.used.ru_utime) +
			  seconds_of(answer.used.ru_stime);
	outcome.mib = (unsigned)(answer.used.ru_maxrss >> 10);
	outcome.problem = problem_of(&outcome, answer.status,
				     !strcmp(reader->words[0], "merge"));
	return outcome;
}
