/*
 * The other end of shim/module/control.c, where the protocol is described.
 *
 * The socket is in the directory of the process's recording (common/running.h).
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <shim/clr.h>
#include <shim/format.h>
#include <shim/shim.h>

#include "common/copy.h"
#include "common/running.h"
#include "ctl.h"
#include "ctl_list.h"
#include "ctl_status.h"
#include "say.h"

#define DATA_SIZE_MAX (1u << 20)

static const char help[] =
	"Usage: profrun ctl [-v] PID VERB\n"
	"       profrun ctl [list] [--json]\n\n"
	"Controls shim in the process PID, which was started with `profrun --control`\n"
	"or SHIM_CONTROL=1.  Without PID: lists the processes that shim records.\n\n"
	"    status [--json|--raw]             what is recorded, and how much by now;\n"
	"                                      --json: for programs; --raw: the\n"
	"                                      process's own answer\n"
	"    load NAME[:ARGS] [--data FILE]    attach a profiler; it gets FILE\n"
	"    unload NAME                       detach it\n"
	"    stop | start                      disable all hooks, and enable them\n"
	"    trace-start | trace-stop          start or stop the trace (-p trace)\n"
	"    budget PERCENT                    another budget (--budget)\n"
	"    filter SPEC                       record other functions (-F)\n"
	"    libcalls LIST                     record other calls of libraries (--libcalls)\n"
	"    heap                              record a snapshot of the heap\n"
	"                                      (-p memory)\n"
	"    snapshot [-o DIR]                 copy the recording\n\n"
	"    -v, --verbose                     end errors with the name of the result\n\n"
	"The exit status is 1 if that fails.\n";

#define SHIM_DEFINE_RESULT(name, value, text) { (int)value, #name, text },
static const struct {
	int result;
	const char *name, *text;
} results[] = {
#include <shim/results.def>
	SHIM_CLR_RESULTS(SHIM_DEFINE_RESULT)
};
#undef SHIM_DEFINE_RESULT

static const char *process; /* the process id, as the user typed it */
static bool is_verbose;

static const char *name_of(int result)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		if (results[i].result == result)
			return results[i].name;
	return "unknown result";
}

static const char *text_of(int result)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		if (results[i].result == result)
			return results[i].text;
	return "shim in the program is newer than this profrun";
}

static int fail(int result, const char *text)
{
	if (is_verbose)
		say("ctl %s: %s (%s)", process, text, name_of(result));
	else
		say("ctl %s: %s", process, text);
	return 1;
}

static int usage(void)
{
	fputs("Try 'profrun ctl --help'.\n", stderr);
	return STATUS_USAGE;
}

/* --- talking ------------------------------------------------------------- */

/* Connects through /proc/self/fd: the path of a socket must be short. */
static int open_socket(const char *directory)
{
	/* The program may be stopped, or its own system call filter may forbid an
	 * answer. */
	static const struct timeval patience = { 30, 0 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int at, fd, r;

	at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path),
		 "/proc/self/fd/%d/control", at);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	r = r < 0 ? -errno : fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	close(at);
	if (r < 0)
		close(fd);
	return r;
}

static int report_no_socket(long pid, const char *directory)
{
	char path[PATH_MAX + 8];
	struct shim_meta meta;

	snprintf(path, sizeof(path), "%s/meta", directory);
	if (!running_meta(path, pid, &meta) || !meta.forked)
		return fail(SHIM_E_DEBUGGING_DISABLED,
			    "the program was not started with --control (or"
			    " SHIM_CONTROL=1)");
	snprintf(path, sizeof(path),
		 "the process was forked, by %" PRIu32
		 ": forked children cannot be controlled",
		 meta.parent_pid);
	return fail(SHIM_E_DEBUGGING_DISABLED, path);
}

/* A socket, or the status to end with. */
static int connect_to(long pid, bool *failed)
{
	char directory[PATH_MAX], text[PATH_MAX + 64];
	int fd;

	*failed = true;
	if (kill(pid, 0) < 0 && errno == ESRCH) {
		return fail(SHIM_E_PROFILEE_PROCESS_NOT_FOUND,
			    "there is no such process");
	}
	snprintf(text, sizeof(text), "/proc/%ld/maps", pid);
	if (access(text, R_OK) < 0 || (kill(pid, 0) < 0 && errno == EPERM))
		return fail(SHIM_E_IPC_FAILED, "the process belongs to another"
					       " user");
	if (!running_recording(pid, directory))
		return fail(SHIM_E_PROFILEE_PROCESS_NOT_FOUND,
			    "shim does not record this process");
	fd = open_socket(directory);
	if (fd == -ENOENT)
		return report_no_socket(pid, directory);
	if (fd < 0)
		return fail(SHIM_E_IPC_FAILED, strerror(-fd));
	*failed = false;
	return fd;
}

static bool write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t r = send(fd, at, size, MSG_NOSIGNAL);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		at += r;
		size -= r;
	}
	return true;
}

static void print_line(const char *line)
{
	say_plainly("%s", line);
}

/* Gives @take the answer up to its last line, "result VALUE". */
static int read_answer(int fd, void (*take)(const char *line))
{
	FILE *file = fdopen(fd, "r");
	char *line = NULL, message[4096] = "";
	int result = SHIM_E_IPC_FAILED;
	bool has_result = false;
	size_t size = 0;
	ssize_t length;

	while (file != NULL && (length = getline(&line, &size, file)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (strncmp(line, "result ", 7) == 0) {
			result = (int)strtoul(line + 7, NULL, 10);
			has_result = true;
			break;
		}
		if (message[0] != '\0')
			take(message);
		snprintf(message, sizeof(message), "%s", line);
	}
	free(line);
	if (has_result && !SHIM_FAILED(result)) {
		if (message[0] != '\0')
			take(message);
		return 0;
	}
	if (!has_result)
		return fail(SHIM_E_IPC_FAILED, "the program did not answer");
	return fail(result, message[0] != '\0' ? message : text_of(result));
}

static int ask_for(long pid, const char *verb, const char *description,
		   const void *data, size_t size,
		   void (*take)(const char *line))
{
	bool failed, sent;
	char *line;
	int fd;

	fd = connect_to(pid, &failed);
	if (failed)
		return fd;
	if (description == NULL)
		sent = asprintf(&line, "shim 1 %s\n", verb) > 0;
	else
		sent = asprintf(&line, "shim 1 %s %zu %s\n", verb, size,
				description) > 0;
	if (sent) {
		/* A program that refuses before it has read all data still sends an
		 * answer. */
		if (write_all(fd, line, strlen(line)))
			write_all(fd, data, size);
		free(line);
	}
	return read_answer(fd, take);
}

static int send_verb(long pid, const char *verb, const char *description,
		     const void *data, size_t size)
{
	return ask_for(pid, verb, description, data, size, print_line);
}

/* --- the verbs ----------------------------------------------------------- */

/* Reports wrong arguments of @verb. */
static int wrong_words(const char *verb)
{
	static const char *const verbs[][2] = {
		{ "status", "[--json] or [--raw]" },
		{ "list", "[--json]" },
		{ "stop", "nothing" },
		{ "start", "nothing" },
		{ "heap", "nothing" },
		{ "trace-start", "nothing" },
		{ "trace-stop", "nothing" },
		{ "load", "NAME[:ARGS] [--data FILE]" },
		{ "unload", "NAME" },
		{ "budget", "PERCENT" },
		{ "filter", "SPEC" },
		{ "libcalls", "LIST" },
		{ "snapshot", "[-o DIR]" },
	};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(verb, verbs[i][0]) == 0) {
			say("ctl %s%s takes %s",
			    strcmp(verb, "list") == 0 ? "" : "PID ", verb,
			    verbs[i][1]);
			return usage();
		}
	say("ctl: '%s' is not a verb", verb);
	return usage();
}

static int read_data(const char *path, void **data, size_t *size)
{
	FILE *file = fopen(path, "re");

	*data = malloc(DATA_SIZE_MAX + 1);
	if (file == NULL || *data == NULL) {
		say("%s: %s", path, strerror(errno));
		return -1;
	}
	*size = fread(*data, 1, DATA_SIZE_MAX + 1, file);
	fclose(file);
	if (*size > DATA_SIZE_MAX) {
		say("%s: is larger than %u bytes", path, DATA_SIZE_MAX);
		return -1;
	}
	return 0;
}

/* The program may have another working directory: the path is made absolute here. */
static char *absolute_item(const char *item)
{
	size_t length = strcspn(item, ":");
	char path[PATH_MAX], real[PATH_MAX], *result = NULL;

	snprintf(path, sizeof(path), "%.*s", (int)length, item);
	if (strchr(path, '/') == NULL || realpath(path, real) == NULL)
		return strdup(item);
	return asprintf(&result, "%s%s", real, item + length) < 0 ? NULL :
								    result;
}

static int load(long pid, int words, char **word)
{
	void *data = NULL;
	size_t size = 0;
	char *item;
	int status;

	if (words == 3 && strcmp(word[1], "--data") == 0) {
		if (read_data(word[2], &data, &size) < 0)
			return 1;
	} else if (words != 1) {
		return wrong_words("load");
	}
	item = absolute_item(word[0]);
	if (item == NULL || strchr(item, '\n') != NULL)
		return fail(SHIM_E_INVALIDARG, "the name has a newline");
	status = send_verb(pid, "load", item, data, size);
	free(item);
	free(data);
	return status;
}

/* Files may grow during the copy; a reader accepts any size. */
static bool copy_file(int from, int to, const char *name)
{
	int in, out;
	bool ok;

	in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (in < 0)
		return false;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ok = out >= 0 && copy_with_holes(in, out, NULL) == 0;
	if (out >= 0 && close(out))
		ok = false;
	close(in);
	return ok;
}

/*
 * The files of threads are copied before `images` and `meta`, so that those two are not
 * older than the data that they describe.
 */
static bool copy_files(int from, int to)
{
	DIR *dir = fdopendir(openat(from, ".", O_RDONLY | O_CLOEXEC));
	struct dirent *entry;
	struct stat st;
	bool ok = dir != NULL;

	while (ok && (entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, "images") != 0 &&
		    strcmp(entry->d_name, "meta") != 0 &&
		    fstatat(from, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ==
			    0 &&
		    S_ISREG(st.st_mode))
			ok = copy_file(from, to, entry->d_name);
	if (dir != NULL)
		closedir(dir);
	return ok && copy_file(from, to, "images") &&
	       copy_file(from, to, "meta");
}

static bool copy_process(const char *directory, const char *output)
{
	char path[2 * PATH_MAX];
	bool ok;
	int from, to;

	snprintf(path, sizeof(path), "%s%s", output, strrchr(directory, '/'));
	if (mkdir(output, 0700) < 0 || mkdir(path, 0700) < 0) {
		say("%s: %s", output, strerror(errno));
		return false;
	}
	from = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = from >= 0 && to >= 0 && copy_files(from, to);
	if (!ok)
		say("%s: cannot be copied: %s", directory, strerror(errno));
	close(from);
	close(to);
	return ok;
}

/* Recordings can be read at any time, so this needs no answer of the program. */
static int snapshot(long pid, int words, char **word)
{
	char directory[PATH_MAX], output[PATH_MAX];

	if (words != 0 && (words != 2 || strcmp(word[0], "-o") != 0))
		return wrong_words("snapshot");
	if (!running_recording(pid, directory))
		return fail(SHIM_E_PROFILEE_PROCESS_NOT_FOUND,
			    "shim does not record this process");
	if (words == 2)
		snprintf(output, sizeof(output), "%s", word[1]);
	else
		snprintf(output, sizeof(output), "profrun.snapshot.%ld", pid);
	for (int i = 1; words == 0 && access(output, F_OK) == 0; i++)
		snprintf(output, sizeof(output), "profrun.snapshot.%ld.%d", pid,
			 i);
	if (!copy_process(directory, output))
		return 1;
	say_plainly("%s", output);
	return 0;
}

static int status(long pid, const char *report, int words, char **word)
{
	bool is_json;
	int result;

	if (words == 1 && strcmp(word[0], "--raw") == 0)
		return send_verb(pid, "status", NULL, NULL, 0);
	is_json = words == 1 && strcmp(word[0], "--json") == 0;
	if (words != 0 && !is_json)
		return wrong_words("status");
	result = ask_for(pid, "status", NULL, NULL, 0, ctl_status_take);
	if (result == 0 && is_json)
		ctl_status_json(process, report);
	else if (result == 0)
		ctl_status_print(process, report);
	return result;
}

int ctl(const char *report, int words, char **word)
{
	const char *verb;
	char *end;
	long pid;

	if (words > 0 &&
	    (strcmp(word[0], "--help") == 0 || strcmp(word[0], "-h") == 0)) {
		fputs(help, stdout);
		return 0;
	}
	if (words > 0 &&
	    (strcmp(word[0], "-v") == 0 || strcmp(word[0], "--verbose") == 0)) {
		is_verbose = true;
		words--;
		word++;
	}
	if (words > 0 && strcmp(word[0], "list") == 0) {
		words--;
		word++;
		if (words > 1 || (words == 1 && strcmp(word[0], "--json") != 0))
			return wrong_words("list");
	}
	if (words == 0 || (words == 1 && strcmp(word[0], "--json") == 0))
		return ctl_list(words == 1);
	errno = 0;
	pid = strtol(word[0], &end, 10);
	if (!isdigit((unsigned char)word[0][0]) || *end != '\0' || errno != 0 ||
	    pid <= 0 || pid > INT_MAX) {
		say("'%s' is not a process id", word[0]);
		return usage();
	}
	process = word[0];
	if (words == 1) {
		say("ctl: no verb after the process id %ld", pid);
		return usage();
	}
	verb = word[1];
	words -= 2;
	word += 2;
	if (strcmp(verb, "status") == 0)
		return status(pid, report, words, word);
	if (words == 0 &&
	    (strcmp(verb, "start") == 0 || strcmp(verb, "stop") == 0 ||
	     strcmp(verb, "heap") == 0 || strcmp(verb, "trace-start") == 0 ||
	     strcmp(verb, "trace-stop") == 0))
		return send_verb(pid, verb, NULL, NULL, 0);
	if (strcmp(verb, "load") == 0 && words > 0)
		return load(pid, words, word);
	if (words == 1 &&
	    (strcmp(verb, "unload") == 0 || strcmp(verb, "budget") == 0 ||
	     ((strcmp(verb, "filter") == 0 || strcmp(verb, "libcalls") == 0) &&
	      word[0][0] != '\0' && strchr(word[0], '\n') == NULL)))
		return send_verb(pid, verb, word[0], NULL, 0);
	if (strcmp(verb, "snapshot") == 0)
		return snapshot(pid, words, word);
	return wrong_words(verb);
}
