#include "profile.h"

#include "config.h"
#include "log.h"
#include "text.h"

#include <shim/banned.h>

/* hooks/builtin.c */
int builtin_start(const char *profile);

/* The list, cut into strings; one that has been dealt with is empty. */
static char items[sizeof(config.profile) + 1];
static char *items_end;
static bool has_builtin;

static char *after(const char *item)
{
	char *next = item ? (char *)item + text_length(item) + 1 : items;

	while (next < items_end && *next == '\0')
		next++;
	return next < items_end ? next : NULL;
}

static void cut(void)
{
	size_t i;

	for (i = 0; config.profile[i]; i++)
		items[i] = config.profile[i] == ';' ? '\0' : config.profile[i];
	items_end = items + i;
}

/* Whether it runs, or is a module that may run later. */
static bool start(char *item)
{
	const char *rest = text_after(item, "default");
	bool is_default = rest && *rest == '\0';
	int r = builtin_start(is_default ? "calltree" : item);

	if (r == -1)
		return true;
	if (r == -2)
		log_line("profiler '%s': it has no such arguments", item);
	for (char *end = item + text_length(item); end > item;)
		*--end = '\0';
	has_builtin |= r >= 0;
	return r >= 0;
}

bool profile_has_builtin(void)
{
	return has_builtin;
}

int profile_start(void)
{
	bool any = false;

	cut();
	for (char *item = after(NULL); item; item = after(item))
		any |= start(item);
	if (!any)
		log_line("%s", "no profiler was started: nothing is recorded");
	return any ? 0 : -1;
}

const char *profile_next(const char *item)
{
	return after(item);
}
