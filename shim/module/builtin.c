/*
 * The built-in profilers, by name.  The linker collects them in an array, so this file
 * names no profiler.
 */
#include "module/builtin.h"

#include "image/image.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/subscribe.h"

#include <shim/builtin.h>
#include <shim/info.h>

#include <shim/banned.h>

typedef struct shim_builtin *const entry;

extern entry __start_shim_builtins[]
	__attribute__((weak, visibility("hidden")));
extern entry __stop_shim_builtins[] __attribute__((weak, visibility("hidden")));

/* The first entry from *@at on, or NULL; moves *@at.  (Sanitizers leave gaps between
 * entries.) */
static struct shim_builtin *next_builtin(entry **at)
{
	struct shim_builtin *found = NULL;

	while (!found && *at < __stop_shim_builtins)
		found = (struct shim_builtin *)subscriber_at((*at)++);
	return found;
}

/* Finds the profiler NAME of @profile, "NAME[:ARGUMENTS]". */
static struct shim_builtin *find_builtin(const char *profile,
					 const char **arguments)
{
	entry *at = __start_shim_builtins;
	struct shim_builtin *builtin;

	while ((builtin = next_builtin(&at)) != NULL) {
		const char *rest = text_after(profile, builtin->name);

		if (!rest || (*rest != '\0' && *rest != ':'))
			continue;
		*arguments = *rest ? rest + 1 : rest;
		return builtin;
	}
	return NULL;
}

int builtin_start(const char *profile)
{
	const char *arguments;
	struct shim_builtin *builtin = find_builtin(profile, &arguments);
	struct text options;
	int r;

	if (!builtin)
		return -1;
	if (builtin->is_started)
		return 1;
	r = builtin->start(arguments);
	if (r < 0)
		return r - 1;
	text_init(&options, builtin->options, sizeof(builtin->options));
	text_add(&options, arguments);
	builtin->is_started = true;
	return 0;
}

uint64_t shim_thread_time_ns(void)
{
	uint64_t time_ns;

	return sys_time_ns(3, &time_ns) < 0 ? 0 : time_ns;
}

void *shim_symbol_find(const char *name, size_t *size)
{
	return lookup_first_sized(name, size);
}

void *shim_symbol_find_in(shim_image image, const char *name, size_t *size)
{
	const void *base;
	size_t length;

	if (shim_image_info(image, &base, &length, NULL, NULL, 0, NULL, NULL) !=
	    SHIM_OK)
		return NULL;
	return lookup_within((uintptr_t)base, (uintptr_t)base + length, name,
			     size);
}

void shim_symbol_expect(const char *symbol)
{
	image_expect(symbol);
}

const char *shim_budget_setting(void)
{
	return config.budget;
}

static void (*change_budget)(uint32_t percent);

void shim_budget_on_change(void (*change)(uint32_t percent))
{
	change_budget = change;
}

bool builtin_change_budget(uint32_t percent)
{
	if (change_budget)
		change_budget(percent);
	return change_budget != NULL;
}

bool builtin_record(const char *profile, bool is_on, const char **why)
{
	const char *arguments;
	struct shim_builtin *builtin = find_builtin(profile, &arguments);

	*why = NULL;
	if (!builtin->record)
		*why = builtin->stays;
	else if (*arguments && !text_equal(arguments, builtin->options))
		*why = "it keeps the options of its start (give only its name)";
	if (*why || !builtin->record(is_on))
		return false;
	builtin->is_off = !is_on;
	return true;
}

const char *builtin_stays(const char *name)
{
	const char *arguments;
	const struct shim_builtin *builtin = find_builtin(name, &arguments);

	return builtin->record ? NULL : builtin->stays;
}

const char *builtin_is_too_late(const char *profile)
{
	const char *arguments;
	const struct shim_builtin *builtin = find_builtin(profile, &arguments);

	return builtin && !builtin->is_started && builtin->is_too_late ?
		       builtin->is_too_late() :
		       NULL;
}

bool builtin_has_options_of(const char *profile)
{
	const char *arguments;
	const struct shim_builtin *builtin = find_builtin(profile, &arguments);

	return !builtin || !builtin->is_started ||
	       text_equal(arguments, builtin->options);
}

void builtin_each(void (*each)(const char *name, bool records, void *argument),
		  void *argument)
{
	entry *at = __start_shim_builtins;
	const struct shim_builtin *builtin;

	while ((builtin = next_builtin(&at)) != NULL)
		if (builtin->is_started)
			each(builtin->name, !builtin->is_off, argument);
}

void builtin_begin(void)
{
	entry *at = __start_shim_builtins;
	struct shim_builtin *builtin;

	while ((builtin = next_builtin(&at)) != NULL)
		if (builtin->is_started && builtin->begin)
			builtin->begin();
}

enum builtin_found builtin_find(const char *profile)
{
	const char *arguments;
	const struct shim_builtin *builtin = find_builtin(profile, &arguments);

	if (!builtin)
		return BUILTIN_UNKNOWN;
	return builtin->is_off	   ? BUILTIN_OFF :
	       builtin->is_started ? BUILTIN_STARTED :
	       builtin->is_early   ? BUILTIN_TOO_LATE :
				     BUILTIN_STOPPED;
}
