/*
 * Searches for a module's library in the order that shim(7) documents.  A library fits
 * if it exports the version of the API and the init function.  Code of other users must
 * never run here, so a file that is found by path is checked first (os/trust.h).
 */
#define _GNU_SOURCE
#include "module/module_find.h"

#include "module/open.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/trust.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include <shim/banned.h>

static void refuse(struct module_search *search, const char *path,
		   const char *why, const char *what)
{
	if (search->reason.length > 0)
		return;
	text_add(&search->reason, path);
	text_add(&search->reason, ": ");
	text_add(&search->reason, why);
	text_add(&search->reason, what);
}

/* For the program, also searches its libraries. */
void *module_symbol(void *library, const char *name)
{
	void *symbol = lookup_in(library, name);

	return symbol || library != lookup_list()->r_map ? symbol :
							   lookup_first(name);
}

void module_init_name(const struct module *module, char name[128])
{
	struct text text;

	text_init(&text, name, 128);
	text_add(&text, "shim_profiler_init_");
	text_add(&text, module->name);
}

static bool fits(struct module_search *search, void *library, const char *path)
{
	const uint32_t *api = module_symbol(library,
					    "shim_profiler_module_api");
	char name[128];

	module_init_name(search->module, name);
	if (!api) {
		refuse(search, path, "was not built with SHIM_PROFILER_MODULE",
		       "");
		return false;
	}
	if (*api < SHIM_PROFILER_API_OLDEST) {
		refuse(search, path,
		       "was built for an older shim (compile it again)", "");
		return false;
	}
	if (*api > SHIM_PROFILER_API_VERSION) {
		refuse(search, path,
		       "was built for a newer shim (install that shim, or "
		       "compile the module for this one)",
		       "");
		return false;
	}
	if (!module_symbol(library, name)) {
		refuse(search, path, "has no ", name);
		return false;
	}
	return true;
}

static void accept_library(struct module_search *search, void *library,
			   const char *path)
{
	struct text text;

	search->module->library = library;
	text_init(&text, search->module->path, sizeof(search->module->path));
	text_add(&text, path);
}

/* RTLD_NOW, because hooks must not cause symbol lookups. */
static bool open_library(struct module_search *search, const char *path)
{
	bool before = thread_ours_begins();
	void *library = module_open(path, RTLD_NOW | RTLD_LOCAL);
	const char *error, *rest;

	thread_ours_ends(before);
	if (!library) {
		error = dlerror();
		rest = error ? text_after(error, path) : NULL;
		/* The search goes on if the file is missing.  A missing dependency is
		 * an error to report. */
		if (!rest || !text_after(rest, ": cannot open shared object "
					       "file: No such file"))
			refuse(search, path, "",
			       rest && text_after(rest, ": ") ?
				       text_after(rest, ": ") :
			       error ? error :
				       "cannot be loaded");
		return false;
	}
	if (fits(search, library, path)) {
		accept_library(search, library, path);
		return true;
	}
	dlclose(library);
	return false;
}

/* The path of an open file, without symbolic links. */
static int read_path(int fd, char name[MODULE_PATH_SIZE])
{
	char path[40];
	struct text text;
	long r;

	text_init(&text, path, sizeof(path));
	text_add(&text, "/proc/self/fd/");
	text_add_number(&text, (uint64_t)fd);
	r = sys_read_link(path, name, MODULE_PATH_SIZE - 1);
	if (r <= 0 || r >= MODULE_PATH_SIZE - 1 || name[0] != '/')
		return r < 0 ? (int)r : -ENAMETOOLONG;
	name[r] = '\0';
	return 0;
}

/* Checks the file and the directories above it (os/trust.h).  Stores in @name the path
 * to open, or the path of the file or directory that failed. */
static int check_file(int fd, char name[MODULE_PATH_SIZE])
{
	struct sys_status status;
	int r = sys_get_status(fd, &status);

	if (r == 0)
		r = read_path(fd, name);
	if (r == 0)
		r = trust_code(&status);
	return r == 0 ? trust_above(name) : r;
}

/*
 * For a file given by its path, directly or through SHIM_MODULE_PATH: no other user may
 * be able to create or change it.  After the check, no other user can replace the file
 * at that path.  So the loader opens it by the path, which debuggers and lists of
 * loaded objects show.
 */
static bool open_checked(struct module_search *search, const char *path)
{
	char name[MODULE_PATH_SIZE];
	struct text text;
	int fd = sys_open(path, O_PATH | O_CLOEXEC, 0), r;

	if (fd < 0)
		return false;
	text_init(&text, name, sizeof(name));
	text_add(&text, path);
	r = check_file(fd, name);
	sys_close(fd);
	if (r < 0) {
		refuse(search, name, log_reason(r), "");
		return false;
	}
	return open_library(search, name);
}

static bool open_file(struct module_search *search, const char *path,
		      bool is_checked)
{
	int fd;

	if (is_checked)
		return open_checked(search, path);
	fd = sys_open(path, O_PATH | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	sys_close(fd);
	return open_library(search, path);
}

/* Opens the module's library in @directory, which ends without a slash. */
static bool open_in(struct module_search *search, const char *directory,
		    size_t length, bool is_checked)
{
	char path[MODULE_PATH_SIZE];
	struct text text;

	text_init(&text, path, sizeof(path));
	text_add_part(&text, directory, length);
	text_add(&text, "/" MODULE_PREFIX);
	text_add(&text, search->module->name);
	text_add(&text, ".so");
	return !text.cut && open_file(search, path, is_checked);
}

static bool open_program(struct module_search *search)
{
	void *program = module_open(NULL, RTLD_NOW);
	char name[128];

	if (!program) {
		dlerror();
		return false;
	}
	module_init_name(search->module, name);
	if (module_symbol(program, name) &&
	    fits(search, program, "the program")) {
		accept_library(search, program, "the program");
		search->module->stays = true;
		return true;
	}
	dlclose(program);
	return false;
}

static bool open_beside_shim(struct module_search *search)
{
	const char *path, *base;
	Dl_info info;

	if (!dladdr((void *)module_start, &info) || !info.dli_fname ||
	    info.dli_fname[0] != '/')
		return false;
	path = info.dli_fname;
	base = text_base(path);
	return open_in(search, path, (size_t)(base - path) - 1, false);
}

static void log_relative(const char *directory, size_t length)
{
	char memory[192];
	struct text text;

	text_init(&text, memory, sizeof(memory));
	text_add_part(&text, directory, length);
	log_setting(
		"SHIM_MODULE_PATH: '%s' is not searched: it is not an absolute "
		"path",
		memory);
}

static bool open_in_module_path(struct module_search *search)
{
	const char *at = config.module_path;

	while (*at) {
		size_t length = 0;

		while (at[length] && at[length] != ':')
			length++;
		/* A relative path depends on the program's working directory, which
		 * the user did not choose. */
		if (length > 0 && *at != '/')
			log_relative(at, length);
		else if (length > 0 && open_in(search, at, length, true))
			return true;
		at += length + (at[length] == ':');
	}
	return false;
}

static bool open_by_loader(struct module_search *search)
{
	char name[128];
	struct text text;

	text_init(&text, name, sizeof(name));
	text_add(&text, MODULE_PREFIX);
	text_add(&text, search->module->name);
	text_add(&text, ".so");
	return open_library(search, name);
}

bool module_find(struct module_search *search, const char *path)
{
	text_init(&search->reason, search->memory, sizeof(search->memory));
	if (path[0] == '/')
		return open_file(search, path, true);
	if (path[0]) {
		refuse(search, path, "is not an absolute path", "");
		return false;
	}
	return open_program(search) || open_beside_shim(search) ||
	       open_in_module_path(search) || open_by_loader(search);
}
