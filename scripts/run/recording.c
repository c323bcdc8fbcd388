/*
 * The directory of a recording: created before the program starts, read after it has
 * ended.  Another user's program wrote the files and may have damaged them, so
 * everything in them is checked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <shim/format.h>

#include "jit_dump.h"
#include "jit_map.h"
#include "private.h"
#include "recording.h"
#include "recording_files.h"
#include "say.h"

#define NAME_LENGTH_MAX 100
#define SUFFIX_MAX	10000
#define UNSHARE_TRIES	10

/* The library's limit for SHIM_DIR. */
#define PATH_LENGTH_MAX 1023

/* --- making it ---------------------------------------------------------- */

const char *recording_pattern_error(const char *pattern)
{
	if (*pattern == '\0')
		return "is empty";
	while ((pattern = strchr(pattern, '%')) != NULL) {
		if (pattern[1] == '\0' || strchr("phrn%", pattern[1]) == NULL)
			return "has a % that is not one of %p %h %r %n %%";
		pattern += 2;
	}
	return NULL;
}

/* The number of this process in a parallel job. */
static const char *rank(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK",
					     "PMIX_RANK", "PMI_RANK",
					     "SLURM_PROCID" };
	const char *value;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		value = getenv(names[i]);
		if (value != NULL && *value != '\0')
			return value;
	}
	return "0";
}

/* Appends @name as a part of a file name: no slash, only printable characters. */
static void append_name(char *path, const char *name)
{
	size_t n = strlen(path), end = n + NAME_LENGTH_MAX;

	if (end > PATH_MAX - 1)
		end = PATH_MAX - 1;
	for (; *name != '\0' && n < end; name++)
		path[n++] = *name == '/' || (unsigned char)*name < ' ' ||
					    *name == 0x7f ?
				    '_' :
				    *name;
	path[n] = '\0';
}

static void append_field(char *path, char field, const char *program)
{
	const char *slash = strrchr(program, '/');
	char text[256] = "";

	switch (field) {
	case 'p': snprintf(text, sizeof(text), "%ld", (long)getpid()); break;
	case 'h': gethostname(text, sizeof(text) - 1); break;
	case 'r': snprintf(text, sizeof(text), "%s", rank()); break;
	case 'n':
		program = slash != NULL ? slash + 1 : program;
		snprintf(text, sizeof(text), "%s", program);
		break;
	default: text[0] = field;
	}
	append_name(path, text);
}

/* Returns 0 or -errno. */
static int expand(const char *pattern, const char *program, char path[PATH_MAX])
{
	size_t n;

	path[0] = '\0';
	if (*pattern != '/') {
		if (getcwd(path, PATH_MAX) == NULL) {
			path[0] = '\0';
			return errno == ERANGE ? -ENAMETOOLONG : -errno;
		}
		n = strlen(path);
		if (n > 1 && n < PATH_MAX - 1)
			strcpy(path + n, "/");
	}
	for (; *pattern != '\0'; pattern++) {
		if (*pattern == '%') {
			append_field(path, *++pattern, program);
		} else {
			n = strlen(path);
			if (n >= PATH_MAX - 1)
				return -ENAMETOOLONG;
			path[n] = *pattern;
			path[n + 1] = '\0';
		}
	}
	n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	return n < PATH_LENGTH_MAX - sizeof(".10000") ? 0 : -ENAMETOOLONG;
}

/* Creates missing parents, with access for the user only.  Returns 0, or -errno of the
 * first that is missing still, or that cannot be reached. */
static int make_parents(char *path)
{
	char *slash = path;
	int r = 0;

	while ((slash = strchr(slash + 1, '/')) != NULL) {
		*slash = '\0';
		if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST && r == 0)
			r = -errno;
		*slash = '/';
	}
	return r;
}

/* The directory that all ranks of a job share, whichever rank made it. */
static int check_parent(char *path)
{
	char *slash = strrchr(path, '/');
	int fd;

	*slash = '\0';
	fd = private_open(AT_FDCWD, path);
	if (fd >= 0) {
		close(fd);
		*slash = '/';
	}
	return fd < 0 ? fd : 0;
}

static int make_directory(const char *path)
{
	int fd = private_make(AT_FDCWD, path);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int recording_create(const char *pattern, enum recording_kind kind,
		     const char *program, char path[PATH_MAX])
{
	int r, parents;
	size_t n;

	r = expand(pattern, program, path);
	if (r < 0)
		return r;
	parents = make_parents(path);
	r = kind & RECORDING_OF_RANK ? check_parent(path) : 0;
	if (r == 0)
		r = make_directory(path);
	if (r == -ENOENT && parents < 0)
		return parents;
	if (r < 0 && r != -EEXIST)
		return r;
	n = strlen(path);
	for (int i = 1;
	     r == -EEXIST && !(kind & RECORDING_FIXED) && i < SUFFIX_MAX; i++) {
		snprintf(path + n, PATH_MAX - n, ".%d", i);
		r = make_directory(path);
	}
	return r;
}

const char *recording_error(int error)
{
	return private_error(error);
}

static int delete_file(const char *path, const struct stat *info, int kind,
		       struct FTW *place)
{
	(void)info;
	(void)place;
	return (kind == FTW_DP ? rmdir(path) : unlink(path)) < 0 ? -errno : 0;
}

static int delete_and_say(const char *path, const struct stat *info, int kind,
			  struct FTW *place)
{
	int r = delete_file(path, info, kind, place);

	if (r < 0)
		say("%s: cannot be removed: %s", path, strerror(-r));
	return 0;
}

static int delete_all(const char *path, __nftw_func_t visit)
{
	return nftw(path, visit, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void recording_delete(const char *path)
{
	delete_all(path, delete_and_say);
}

void recording_share(const char *path)
{
	int above = private_open(AT_FDCWD, path), fd;

	if (above < 0)
		return;
	fd = private_make(above, SHIM_DECODED_DIRECTORY);
	if (fd >= 0)
		close(fd);
	close(above);
}

/* Processes that go on after the run find no directory of the name any more.  One that has just
 * opened it may still write a file. */
void recording_unshare(const char *path)
{
	char directory[PATH_MAX + sizeof(SHIM_DECODED_DIRECTORY) + 1];
	char old[sizeof(directory) + sizeof(".old")];
	int r = -ENOTEMPTY;

	snprintf(directory, sizeof(directory), "%s/" SHIM_DECODED_DIRECTORY,
		 path);
	snprintf(old, sizeof(old), "%s.old", directory);
	if (rename(directory, old) < 0)
		return;
	for (int i = 0; i < UNSHARE_TRIES && r == -ENOTEMPTY; i++)
		r = delete_all(old, delete_file);
}

void recording_remove(const char *path)
{
	char file[PATH_MAX + 16];

	if (*path == '\0')
		return;
	recording_unshare(path);
	snprintf(file, sizeof(file), "%s/filter", path);
	unlink(file);
	snprintf(file, sizeof(file), "%s/patch", path);
	unlink(file);
	snprintf(file, sizeof(file), "%s/libcalls", path);
	unlink(file);
	rmdir(path);
}

void recording_close(const char *path, int wait_status)
{
	struct timespec now;
	char line[80];
	int end, n, error;
	ssize_t r;

	end = private_create(path, "end");
	if (end < 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	n = snprintf(line, sizeof(line), "status %d mono-ns %lld\n",
		     wait_status, now.tv_sec * 1000000000ll + now.tv_nsec);
	r = write(end, line, n);
	error = errno;
	close(end);
	if (r == n)
		return;
	/* A part of the line would be damage.  The report names a full disk. */
	private_remove(path, "end");
	if (r < 0 && error != ENOSPC && error != EDQUOT)
		say("%s/end: cannot be written: %s", path, strerror(error));
}

/* --- reading it --------------------------------------------------------- */

static bool keep_jit_names(int directory, const char *name, void *data)
{
	static struct shim_meta meta;

	(void)name;
	(void)data;
	if (recording_read_meta(directory, &meta)) {
		jit_map_keep(directory, meta.pid, meta.start_real_ns);
		jit_dump_keep(directory, &meta);
	}
	return true;
}

void recording_keep_jit_names(const char *path)
{
	recording_each_process(path, keep_jit_names, NULL);
}

/* Whether it has ended, and its parent has not waited for it: in a container, the first process
 * may never do so.  If only its first thread has ended, it has others. */
static bool is_zombie(pid_t pid)
{
	char path[64], *line = NULL, *name_end;
	size_t size = 0;
	char state = '\0';
	long threads = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (getdelim(&line, &size, '\0', file) > 0 &&
	    (name_end = strrchr(line, ')')) != NULL)
		sscanf(name_end,
		       ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		       " %*s %*s %*s %*s %ld",
		       &state, &threads);
	free(line);
	fclose(file);
	return state == 'Z' && threads <= 1;
}

static bool note_alive(int directory, const char *name, void *data)
{
	static struct shim_meta meta;

	(void)name;
	if (recording_read_meta(directory, &meta) &&
	    meta.end == SHIM_END_UNKNOWN)
		*(bool *)data = kill((pid_t)meta.pid, 0) == 0 &&
				!is_zombie((pid_t)meta.pid);
	return !*(bool *)data;
}

bool recording_is_alive(const char *path)
{
	bool is_alive = false;

	recording_each_process(path, note_alive, &is_alive);
	return is_alive;
}

static bool note_filtered(int directory, const char *name, void *data)
{
	static struct shim_meta meta;

	(void)name;
	if (recording_read_meta(directory, &meta) && meta.filter_items > 0)
		*(bool *)data = true;
	return true;
}

bool recording_was_filtered(const char *path)
{
	bool was_filtered = false;

	recording_each_process(path, note_filtered, &was_filtered);
	return was_filtered;
}

/* Whether any of @size bytes at @offset is a node, or a loss. */
static bool has_calls(int fd, uint64_t offset, uint64_t size)
{
	static union {
		uint64_t word[8192];
		struct shim_thread_node thread;
	} buffer;
	uint64_t skip = 0, word;
	size_t n;

	while (size > 0) {
		n = size < sizeof(buffer) ? size : sizeof(buffer);
		n = recording_read_at(fd, &buffer, n, offset);
		if (n < sizeof(struct shim_node))
			return false;
		for (size_t i = 0; i + 64 <= n; i += 64) {
			word = buffer.word[i / 8];
			if (skip > 0)
				skip -= 64;
			else if ((word & SHIM_NODE_THREAD) == SHIM_NODE_THREAD)
				skip = sizeof(struct shim_thread_node) - 64;
			else if ((word & SHIM_NODE_THREAD) == SHIM_NODE_EXTRA)
				skip = sizeof(struct shim_extra_node) - 64;
			else if (word != 0)
				return true;
		}
		offset += n;
		size -= n;
	}
	return false;
}

static bool file_has_calls(int directory, const char *name)
{
	struct shim_file file;
	bool found = false;
	int fd;

	fd = recording_open_file(directory, name);
	if (fd < 0)
		/* Assume calls: the report tells about too few descriptors. */
		return errno == EMFILE || errno == ENFILE;
	if (recording_read_at(fd, &file, sizeof(file), 0) == sizeof(file) &&
	    memcmp(file.magic, SHIM_FILE_MAGIC, 8) == 0 &&
	    file.version == SHIM_FORMAT_VERSION)
		for (unsigned int i = 0;
		     i < file.chunks && !found && i < SHIM_FILE_CHUNKS; i++)
			found = has_calls(fd, file.chunk[i].offset,
					  file.chunk[i].size);
	else
		found = true; /* the report explains the damage */
	close(fd);
	return found;
}

static bool has_losses(int directory)
{
	static struct shim_meta meta;

	if (recording_read_meta(directory, &meta))
		for (int i = 0; i < SHIM_META_THREADS; i++)
			if (meta.lost[i].tid != 0)
				return true;
	return false;
}

static bool is_profile(const char *name)
{
	const char *dot = strchr(name, '.');

	return name[0] >= '0' && name[0] <= '9' && dot != NULL &&
	       strcmp(dot, ".pchist") != 0 && strcmp(dot, ".arcs") != 0;
}

static bool process_has_no_calls(int directory, const char *name, void *data)
{
	bool *found = data;
	struct dirent *entry;
	DIR *dir;
	int fd;

	(void)name;
	*found = has_losses(directory);
	fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (!*found && dir != NULL && (entry = readdir(dir)) != NULL)
		if (is_profile(entry->d_name))
			*found = file_has_calls(directory, entry->d_name);
	if (dir != NULL)
		closedir(dir);
	return !*found;
}

static bool process_has_no_histogram(int directory, const char *name,
				     void *data)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool *found = data;
	struct dirent *entry;

	(void)name;
	while (!*found && dir != NULL && (entry = readdir(dir)) != NULL) {
		const char *dot = strrchr(entry->d_name, '.');

		*found = dot != NULL && strcmp(dot, ".pchist") == 0;
	}
	if (dir != NULL)
		closedir(dir);
	return !*found;
}

bool recording_has_histograms(const char *path)
{
	bool found = false;

	recording_each_process(path, process_has_no_histogram, &found);
	return found;
}

int recording_try_room(const char *path)
{
	int fd = private_create(path, "room"), r;

	if (fd < 0)
		return fd;
	r = -posix_fallocate(fd, 0, sizeof(struct shim_meta));
	close(fd);
	private_remove(path, "room");
	return r;
}

enum recording_content recording_content(const char *path)
{
	bool found = false;

	if (recording_each_process(path, process_has_no_calls, &found) <= 0)
		return RECORDING_NOTHING;
	return found ? RECORDING_CALLS : RECORDING_NO_CALLS;
}
