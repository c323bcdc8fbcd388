/*
 * Parses SHIM_PROFILE and starts the built-in profilers, which are part of libshim.so.
 */
#include "module/builtin_list.h"

#include "module/builtin.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <shim/banned.h>

/* The list, cut into strings; an item that is done is empty. */
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

/* A backslash makes the next semicolon or backslash a part of the item. */
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

static bool is_default(const char *item)
{
	return text_equal(item, "default");
}

/* Logs a second item of the same profiler with other arguments: only the first runs. */
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
		    builtin_find(item) != BUILTIN_UNKNOWN &&
		    !text_equal(item, other))
			log_setting("profiler '%s': not beside '%s', which is "
				    "recorded",
				    other, item);
	}
}

/* True if it runs, or is a module, which may run later. */
static bool start_builtin(char *item)
{
	uint32_t before = log_end();
	int r = builtin_start(is_default(item) ? "calltree" : item);

	if (r == -1)
		return true;
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
		if (!is_default(item) && builtin_find(item) == BUILTIN_UNKNOWN)
			return true;
	return false;
}

int builtin_list_start(void)
{
	bool any = false;

	ASSERT_LOCKED();
	cut();
	for (char *item = after(NULL); item; item = after(item))
		check_twice(item);
	for (char *item = after(NULL); item; item = after(item))
		any |= start_builtin(item);
	builtin_begin();
	if (!any)
		log_setting("%s",
			    "no profiler was started: nothing is recorded");
	return any ? 0 : -1;
}

const char *builtin_list_next(const char *item)
{
	return after(item);
}
