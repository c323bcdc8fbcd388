#include "module/builtin_list.h"

#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"

#include <shim/banned.h>

/* hooks/builtin.c */
int builtin_start(const char *profile);
int builtin_find(const char *profile);

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

/* A backslash makes a semicolon, or another backslash, one of the item's own. */
static void cut(void)
{
	const char *at = config.profile;
	char *to = items;

	for (; *at; at++) {
		if (at[0] == '\\' && (at[1] == ';' || at[1] == '\\'))
			*to++ = *++at;
		else
			*to++ = *at == ';' ? '\0' : *at;
	}
	items_end = to;
}

static bool is_named(const char *item, const char *name)
{
	const char *rest = text_after(item, name);

	return rest && (*rest == '\0' || *rest == ':');
}

static bool is_default(const char *item)
{
	return text_equal(item, "default");
}

/*
 * Who needs calls has them counted, if nobody was asked for that: so these come
 * first.  Trace may change how they are timed, which the others must know; and memory
 * notes whether somebody was asked for calls, and not who needs them.
 */
static int rank_of(const char *item)
{
	if (is_default(item) || is_named(item, "calltree"))
		return 0;
	if (is_named(item, "trace"))
		return 1;
	return is_named(item, "memory") ? 2 : 3;
}

/* One of each: whatever else is asked of it cannot be followed. */
static void check_twice(const char *item)
{
	size_t size = 0;

	if (is_default(item))
		return;
	while (item[size] && item[size] != ':')
		size++;
	for (const char *other = after(item); other; other = after(other)) {
		size_t i = 0;

		while (i < size && other[i] == item[i])
			i++;
		if (i == size && (other[i] == '\0' || other[i] == ':') &&
		    builtin_find(item) && !text_equal(item, other))
			log_setting("profiler '%s': not beside '%s', which is "
				    "recorded", other, item);
	}
}

/* Whether it runs, or is a module that may run later. */
static bool start(char *item)
{
	uint32_t before = log_end();
	int r = builtin_start(is_default(item) ? "calltree" : item);

	if (r == -1)
		return true;
	if (r == -2)
		log_line("profiler '%s': it has no such arguments", item);
	if (r < 0)
		log_about_setting(before);
	for (char *end = item + text_length(item); end > item;)
		*--end = '\0';
	has_builtin |= r >= 0;
	return r >= 0;
}

bool builtin_list_has_any(void)
{
	return has_builtin;
}

bool builtin_list_has_modules(void)
{
	cut();
	for (const char *item = after(NULL); item; item = after(item))
		if (!is_default(item) && builtin_find(item) == 0)
			return true;
	return false;
}

int builtin_list_start(void)
{
	bool any = false;

	cut();
	for (char *item = after(NULL); item; item = after(item))
		check_twice(item);
	for (int rank = 0; rank <= 3; rank++)
		for (char *item = after(NULL); item; item = after(item))
			if (rank_of(item) == rank)
				any |= start(item);
	if (!any)
		log_setting("%s", "no profiler was started: nothing is recorded");
	return any ? 0 : -1;
}

const char *builtin_list_next(const char *item)
{
	return after(item);
}
