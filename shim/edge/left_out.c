/*
 * Programs that are executed without shim, which the recording tells of: those whose
 * environment preloads nothing, and those that run with the rights of another user.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <shim/banned.h>

#define PRELOAD "LD_PRELOAD="
/* Longer names are not looked for: the stack may be small. */
#define NAME_SIZE 512

/* Set if this process has shim by LD_PRELOAD, so that others were to have it, too. */
static bool is_preloaded;
/* Once a process: a shell may execute thousands.  A vfork child sets its parent's. */
static bool is_environment_told, are_rights_told;

static bool names_shim(const char *list)
{
	for (; list && *list; list++)
		if (text_after(list, "libshim.so"))
			return true;
	return false;
}

void edge_left_out_resolve(void)
{
	is_preloaded = names_shim(config_variable("LD_PRELOAD"));
}

static bool preloads_shim(char *const environment[])
{
	for (; environment && *environment; environment++)
		if (names_shim(text_after(*environment, PRELOAD)))
			return true;
	return false;
}

/* Whether the file can be executed. */
static bool get_status(int directory, const char *path,
		       struct sys_status *status)
{
	int fd = sys_open_at(directory, path, O_PATH | O_CLOEXEC, 0);
	bool is_there = fd >= 0 && sys_get_status(fd, status) == 0;

	if (fd >= 0)
		sys_close(fd);
	return is_there && S_ISREG(status->mode) &&
	       status->mode & (S_IXUSR | S_IXGRP | S_IXOTH);
}

static bool has_slash(const char *name)
{
	return *text_base(name) == '\0' || text_base(name) != name;
}

/* Finds the file as execvp does. */
static bool find(int directory, const char *name, struct sys_status *status)
{
	const char *list = config_variable("PATH"), *end;
	char memory[NAME_SIZE];
	struct text path;

	if (has_slash(name))
		return get_status(directory, name, status);
	for (list = list ? list : "/bin:/usr/bin";; list = end + 1) {
		for (end = list; *end && *end != ':'; end++)
			continue;
		text_init(&path, memory, sizeof(memory));
		text_add_part(&path, list, (size_t)(end - list));
		text_add(&path, end > list ? "/" : "");
		text_add(&path, name);
		if (!path.cut && get_status(directory, memory, status))
			return true;
		if (!*end)
			return false;
	}
}

static bool gets_other_rights(const struct sys_status *status)
{
	unsigned user;

	return status->mode & S_ISUID && sys_user(&user) == 0 &&
	       status->user != user;
}

/* Nothing is left to tell. */
static bool is_told(bool has_shim)
{
	return __atomic_load_n(has_shim ? &are_rights_told :
					  &is_environment_told,
			       __ATOMIC_RELAXED);
}

static bool is_new(bool *told)
{
	return !__atomic_exchange_n(told, true, __ATOMIC_RELAXED);
}

void edge_leave_out(int directory, const char *name, char *const environment[])
{
	struct sys_status status;
	bool has_shim;

	if (state_get() != STATE_RUNNING || !name || !is_preloaded)
		return;
	has_shim = preloads_shim(environment);
	if (is_told(has_shim) || !find(directory, name, &status))
		return;
	if (!has_shim && is_new(&is_environment_told))
		log_line("an executed program is not recorded: its environment "
			 "has no LD_PRELOAD with shim: %s",
			 name);
	else if (has_shim && gets_other_rights(&status) &&
		 is_new(&are_rights_told))
		log_line(
			"an executed program is not recorded: it runs with the "
			"rights of another user: %s",
			name);
}
