/*
 * Finds and opens the files of objects and their debug information: on this machine,
 * and on debuginfod servers if the user allows the network.
 *
 * A recording may name any file, so only regular ELF files are opened.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "names/elf_names.h"
#include "names/object_file.h"
#include "names/symbols.h"

static bool network_allowed;
static int root = -1; /* a directory, or -1 */

void object_file_allow_network(void)
{
	network_allowed = true;
}

bool object_file_network_allowed(void)
{
	return network_allowed;
}

/* --- files on this machine --- */

bool object_file_look_below(const char *directory)
{
	root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root >= 0;
}

/* Absolute links below the directory lead to places below it, as the program saw them. */
const char *object_file_below(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT };
	char link[64], name[PATH_MAX];
	ssize_t length;
	int fd;

	if (root < 0 || path[0] != '/')
		return NULL;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	/* Before Linux 5.6, links are those of this machine. */
	if (fd < 0 && errno == ENOSYS)
		fd = openat(root, path + 1, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, name, sizeof(name));
	close(fd);
	return length > 0 && (size_t)length < sizeof(name) ?
		       keep_text(name, (size_t)length) :
		       NULL;
}

/* Accepts ELF files only, because a recording could name a private file. */
static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, "\177ELF", sizeof(magic));
}

/* A name that could be a device or a pipe is not opened for reading: opening
 * such a file may have an effect. */
int object_file_open(const char *path, uint64_t *size)
{
	struct stat info;
	char link[64];
	int fd, place;

	if (path[0] != '/')
		return -1;
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	if (fstat(place, &info) != 0 || !S_ISREG(info.st_mode) ||
	    info.st_size == 0) {
		close(place);
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	/* Without /proc, the name may refer to another file by now, which is
	 * harmless. */
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	close(place);
	*size = (uint64_t)info.st_size;
	if (fd < 0 || is_elf(fd))
		return fd;
	close(fd);
	return -1;
}

#define DEBUG_DIRECTORY "/usr/lib/debug"

const char *object_file_debug_path(const unsigned char *id, size_t size)
{
	char path[sizeof(DEBUG_DIRECTORY "/.build-id/") + 2 * NAMES_ID_MAX +
		  sizeof("/.debug")] = DEBUG_DIRECTORY "/.build-id/";
	size_t length = strlen(path), i;

	if (size < 2 || size > NAMES_ID_MAX)
		return NULL;
	for (i = 0; i < size; i++) {
		length += (size_t)sprintf(path + length, "%02x", id[i]);
		if (i == 0)
			path[length++] = '/';
	}
	strcpy(path + length, ".debug");
	return keep_text(path, SIZE_MAX);
}

/* --- files from servers, if the user allows it --- */

/* The type of libdebuginfod's find_executable and find_debuginfo. */
typedef int find_by_id(void *client, const unsigned char *id, int size,
		       char **path);

/* The type of its find_source. */
typedef int find_by_name(void *client, const unsigned char *id, int size,
			 const char *name, char **path);

static void *library, *client;

/* A function of the library, or NULL. */
static uintptr_t find_in_library(const char *name)
{
	void *(*begin)(void);

	if (!library) {
		library = dlopen("libdebuginfod.so.1", RTLD_LAZY);
		begin = library ? (void *(*)(void))(uintptr_t)dlsym(
					  library, "debuginfod_begin") :
				  NULL;
		client = begin ? begin() : NULL;
		if (!client)
			warn("--debuginfod: there is no libdebuginfod");
	}
	return client ? (uintptr_t)dlsym(library, name) : 0;
}

static const char *close_fetched(int fd, const char *path)
{
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? path : NULL;
}

static const char *fetch(const char *what, const unsigned char *id, size_t size)
{
	find_by_id *find;
	char *path = NULL;
	int fd;

	if (!network_allowed || size == 0)
		return NULL;
	find = (find_by_id *)find_in_library(what);
	fd = find ? find(client, id, (int)size, &path) : -1;
	return close_fetched(fd, path);
}

const char *object_file_fetch_source(const struct object *object,
				     const char *name)
{
	find_by_name *find;
	char *path = NULL;
	int fd;

	if (!network_allowed || object->build_id_size == 0)
		return NULL;
	find = (find_by_name *)find_in_library("debuginfod_find_source");
	fd = find ? find(client, object->build_id, (int)object->build_id_size,
			 name, &path) :
		    -1;
	return close_fetched(fd, path);
}

const char *object_file_fetch_executable(const struct object *object)
{
	return fetch("debuginfod_find_executable", object->build_id,
		     object->build_id_size);
}

/* --- files for the sandboxes --- */

static const char *by_id(uint32_t number, const unsigned char *id, size_t size)
{
	switch (number) {
	case 0: return object_file_debug_path(id, size);
	case 1: return fetch("debuginfod_find_debuginfo", id, size);
	default: return NULL;
	}
}

/* A debug file beside the object, or where distributions put it.  @name comes
 * from the object. */
static const char *by_name(const struct object *object, uint32_t number,
			   const char *name)
{
	const char *slash = strrchr(object->path, '/');
	const char *directory = slash ? keep_text(object->path,
						  (size_t)(slash -
							   object->path)) :
					"";

	if (!*name || strchr(name, '/') || !slash)
		return NULL;
	switch (number) {
	case 0: return keep_format("%s/%s", directory, name);
	case 1: return keep_format("%s/.debug/%s", directory, name);
	case 2: return keep_format(DEBUG_DIRECTORY "%s/%s", directory, name);
	default: return NULL;
	}
}

/* A file shared by several debug files; distributions refer to it as
 * "../../.dwz/". */
static const char *by_shared_name(const char *name)
{
	if (name[0] == '/')
		return name;
	while (!strncmp(name, "../", 3))
		name += 3;
	return strstr(name, "..") ? NULL :
				    keep_format(DEBUG_DIRECTORY "/%s", name);
}

const char *object_file_wanted_path(const struct object *object,
				    const struct names_answer *want,
				    const char *name, const unsigned char *id)
{
	switch (want->a) {
	case NAMES_DEBUG_BY_ID: return by_id(want->number, id, want->more_size);
	case NAMES_DEBUG_BY_NAME: return by_name(object, want->number, name);
	case NAMES_DEBUG_SHARED:
		return want->number == 0 ?
			       object_file_debug_path(id, want->more_size) :
		       want->number == 1 ? by_shared_name(name) :
					   NULL;
	default: return NULL;
	}
}
