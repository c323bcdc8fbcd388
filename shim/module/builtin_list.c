/*
 * Parses SHIM_PROFILE and starts the built-in profilers, which are part of libshim.so.
 * The list is cut into strings in place, so modules can keep pointers to their items.
 */
#include "module/builtin_list.h"

#include "module/builtin.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <shim/banned.h>

/* The list, cut into strings.  An item whose profiler has started is empty. */
static char items[sizeof(config.profile) + 1];
static char *items_end;
static bool has_builtin;

static char *next_item(const char *item)
{
	char *next = item ? (char *)item + text_length(item) + 1 : items;

	while (next < items_end && *next == '\0')
		next++;
	return next < items_end ? next : NULL;
}

/* Cuts the list at semicolons.  After a backslash, a semicolon or backslash is part of the
 * item. */
static void split_items(void)
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

/* Logs each later item with the profiler of @item but other arguments: only the first item
 * runs. */
static void log_repeated(const char *item)
{
	size_t size = 0;

	if (is_default(item))
		return;
	while (item[size] && item[size] != ':')
		size++;
	for (const char *other = next_item(item); other;
	     other = next_item(other)) {
		size_t i = 0;

		while (i < size && other[i] == item[i])
			i++;
		if (i == size && (other[i] == '\0' || other[i] == ':') &&
		    builtin_find(item) != BUILTIN_UNKNOWN &&
		    !text_equal(item, other))
			log_setting("profiler '%s': not beside '%s', which "
				    "runs (give one of them)",
				    other, item);
	}
}

/* True if the profiler runs, or is a module, which may start later. */
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
	split_items();
	for (const char *item = next_item(NULL); item; item = next_item(item))
		if (!is_default(item) && builtin_find(item) == BUILTIN_UNKNOWN)
			return true;
	return false;
}

int builtin_list_start(void)
{
	bool any = false;

	ASSERT_LOCKED();
	split_items();
	for (char *item = next_item(NULL); item; item = next_item(item))
		log_repeated(item);
	for (char *item = next_item(NULL); item; item = next_item(item))
		any |= start_builtin(item);
	builtin_begin();
	if (!any)
		log_setting("%s",
			    "no profiler was started: nothing is recorded");
	return any ? 0 : -1;
}

const char *builtin_list_next(const char *item)
{
	return next_item(item);
}
