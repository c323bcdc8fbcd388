/* The profilers that a user chose, and which of them go together. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"
#include "profiles.h"
#include "say.h"
#include "settings.h"

#include "options/options.h"

/* --- names and lists ----------------------------------------------------- */

/* The first option of the profiler after that of @option, or NULL. */
static const struct profiler_option *
next_profiler(const struct profiler_option *option)
{
	const struct profiler_option *next = option;

	while (next != NULL) {
		option = next;
		next = options_next(next);
	}
	return ++option < profiler_options + OPTIONS_COUNT ? option : NULL;
}

const char *profiles_names(void)
{
	static char text[256];
	size_t n = 0;

	for (const struct profiler_option *at = profiler_options;
	     at != NULL && n < sizeof(text); at = next_profiler(at))
		n += snprintf(text + n, sizeof(text) - n, "%s%s",
			      n > 0 ? ", " : "", at->profiler);
	return text;
}

/* A module's init function has its name: it is an identifier, or a path. */
static bool is_module_name(const char *text)
{
	size_t length = strcspn(text, ":");

	if (length > 0 && memchr(text, '/', length) != NULL)
		return true;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return length > 0 && length < 64;
}

static void bad_profile(const struct settings *settings, const char *what,
			const char *where)
{
	size_t first = strcspn(what, ",");
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)first, what);
	if (what[first] == ',' && is_module_name(name))
		say("%s: '%s' is not the name of a profiler; for several, repeat"
		    " the option: -p %s -p %s",
		    where, what, name, what + first + 1);
	else
		say("%s: '%s' is not the name of a profiler; there are %s, and"
		    " what NAME finds as libshim-profiler-NAME.so",
		    where, what, profiles_names());
	settings_usage_error(settings);
}

const char *profiles_nearest(const char *profiler)
{
	struct nearest nearest;

	nearest_begin(&nearest, profiler, strcspn(profiler, ":"));
	for (const struct profiler_option *at = profiler_options; at != NULL;
	     at = next_profiler(at))
		nearest_add(&nearest, at->profiler, strlen(at->profiler));
	return nearest.best;
}

/* The key that the user may have meant instead of an unknown one of @profiler, or
 * NULL. */
static const struct profiler_option *
nearest_key(const char *profiler, const struct option_error *error)
{
	const struct profiler_option *option = options_find(profiler);
	const struct profiler_option *best = NULL;
	struct nearest nearest;

	nearest_begin(&nearest, error->item, strcspn(error->item, "=,"));
	for (; option != NULL && error->option == NULL;
	     option = options_next(option)) {
		const char *before = nearest.best;

		if (option->key != NULL)
			nearest_add(&nearest, option->key, strlen(option->key));
		if (nearest.best != before)
			best = option;
	}
	return best;
}

static void bad_argument(const struct settings *settings, const char *what,
			 const struct option_error *error, const char *where)
{
	const struct profiler_option *meant = nearest_key(what, error);
	char reason[600];

	options_explain(what, error, reason, sizeof(reason));
	if (meant != NULL)
		say("%s: '%s': did you mean '%s%s'?  %s", where, what,
		    meant->key, meant->kind == OPTION_WORD ? "" : "=", reason);
	else
		say("%s: '%s': %s", where, what, reason);
	settings_usage_error(settings);
}

bool profiles_is_builtin(const char *profiler)
{
	return options_find(profiler) != NULL ||
	       strcmp(profiler, "default") == 0;
}

const char *profiles_given(const struct settings *settings)
{
	const char *given = getenv("SHIM_PROFILE");

	if (settings->profile[0] != '\0')
		return settings->profile;
	return given != NULL && *given != '\0' ? given : "calltree";
}

char *profiles_next(char **list)
{
	char *item = *list, *at = item, *to = item;

	if (item == NULL)
		return NULL;
	for (; *at != '\0' && *at != ';'; at++) {
		if (at[0] == '\\' && (at[1] == ';' || at[1] == '\\'))
			at++;
		*to++ = *at;
	}
	*list = *at == ';' ? at + 1 : NULL;
	*to = '\0';
	return item;
}

bool profiles_add(char *list, size_t size, const char *item)
{
	size_t n = strlen(list);

	if (n > 0 && n + 1 < size)
		list[n++] = ';';
	for (; *item != '\0' && n + 2 < size; item++) {
		if (*item == ';' || *item == '\\')
			list[n++] = '\\';
		list[n++] = *item;
	}
	list[n < size ? n : size - 1] = '\0';
	return *item == '\0' && n < size;
}

bool profiles_record_calls(const struct settings *settings)
{
	char *copy = strdup(profiles_given(settings)), *rest = copy;
	bool records = false;
	char *item;

	while (copy != NULL && (item = profiles_next(&rest)) != NULL)
		records |= strcmp(item, "default") == 0 ||
			   strncmp(item, "calltree", 8) == 0 ||
			   strncmp(item, "trace", 5) == 0;
	free(copy);
	return records;
}

/* Whether NAME:ARGS has the argument @name, alone or with a value. */
static bool has_argument(const char *item, const char *name)
{
	const char *word = strchr(item, ':');

	for (; word != NULL; word = strchr(word, ',')) {
		size_t length = strcspn(++word, ",=");

		if (strlen(name) == length && strncmp(word, name, length) == 0)
			return true;
	}
	return false;
}

/* Other modes of calltree read no coarse clock, and neither do other profilers. */
static bool reads_tick(const char *item)
{
	if (strcmp(item, "default") == 0)
		return true;
	return strncmp(item, "calltree", 8) == 0 &&
	       (item[8] == '\0' || item[8] == ':') &&
	       !has_argument(item, "exact") &&
	       !has_argument(item, "calibrate") &&
	       !has_argument(item, "counts") && !has_argument(item, "budget");
}

bool profiles_want_tick(const struct settings *settings)
{
	char *copy = strdup(profiles_given(settings)), *rest = copy;
	bool wants = false;
	char *item;

	if (settings->tick_hz == 0 || settings->is_disabled)
		rest = NULL;
	while (copy != NULL && (item = profiles_next(&rest)) != NULL)
		wants |= reads_tick(item);
	free(copy);
	return wants;
}

/* Checks one NAME[:ARGS]. */
static void check_profiler(const struct settings *settings, const char *text,
			   const char *where)
{
	const char *colon = strchr(text, ':');
	struct option_error error;

	if (options_find(text) == NULL && !is_module_name(text))
		bad_profile(settings, text, where);
	if (options_find(text) != NULL && colon != NULL &&
	    !options_read(text, colon + 1, NULL, &error))
		bad_argument(settings, text, &error, where);
}

void profiles_check(const struct settings *settings, const char *text,
		    const char *where)
{
	char *copy = strdup(text), *rest = copy, *part;

	if (*text == '\0')
		bad_profile(settings, text, where);
	/* Like the library: "a;;b;" is a and b. */
	while (copy != NULL && (part = profiles_next(&rest)) != NULL)
		if (*part != '\0')
			check_profiler(settings, part, where);
	free(copy);
}

/* --- profilers that go together ------------------------------------------ */

static const struct profiler_option *options_of(const char *item)
{
	return options_find(strcmp(item, "default") == 0 ? "calltree" : item);
}

/* Refuses a profiler that is given twice: the library would run only the first. */
static void check_twice(const struct settings *settings, char **items)
{
	for (; *items != NULL; items++) {
		const struct profiler_option *option = options_of(*items);
		char **other = items + 1;

		while (*other != NULL && options_of(*other) != option)
			other++;
		if (option == NULL || *other == NULL ||
		    strcmp(*items, *other) == 0)
			continue;
		say("'%s' and '%s' cannot be combined: give all options of %s "
		    "in one list, separated by commas, or use separate runs",
		    *items, *other, option->profiler);
		settings_usage_error(settings);
	}
}

/* Splits @list into a NULL-terminated array. */
static char **split(char *list)
{
	char **items = calloc(strlen(list) / 2 + 2, sizeof(*items)), *item;
	size_t n = 0;

	while (items != NULL && (item = profiles_next(&list)) != NULL)
		if (*item != '\0')
			items[n++] = item;
	return items;
}

/* --- the budget --------------------------------------------------------- */

void profiles_check_budget(const struct settings *settings, const char *text,
			   const char *where)
{
	if (settings_is_number(text) && atoi(text) >= 1 && atoi(text) <= 99)
		return;
	say("%s: '%s' is not a number from 1 to 99, of percent of the processor"
	    " time",
	    where, text);
	settings_usage_error(settings);
}

/* The item of @items that gives calltree a budget, or NULL. */
static const char *budget_item(char **items)
{
	for (; *items != NULL; items++)
		if (options_of(*items) == options_find("calltree") &&
		    has_argument(*items, "budget"))
			return *items;
	return NULL;
}

/* The reason why @item cannot be recorded with a budget, or NULL. */
static const char *why_no_budget(const char *item)
{
	static const struct {
		const char *profiler, *why;
	} refused[] = {
		{ "trace", "records every call" },
		{ "memory", "needs every call path" },
		{ "locks", "needs every call path" },
		{ "exceptions", "needs every call path" },
		{ "sampling", "takes samples at a rate of its own" },
	};
	const struct profiler_option *option = options_of(item);

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (option != NULL &&
		    option == options_find(refused[i].profiler))
			return refused[i].why;
	if (option != options_find("calltree"))
		return NULL;
	return has_argument(item, "exact") ? "times every call" :
	       has_argument(item, "by")	   ? "looks at every call" :
					     NULL;
}

/* Refuses calls that are to be timed and not to be timed. */
static void check_counts(const struct settings *settings, char **items)
{
	for (; *items != NULL; items++) {
		if (options_of(*items) != options_find("calltree") ||
		    !has_argument(*items, "counts") ||
		    (!has_argument(*items, "exact") &&
		     !has_argument(*items, "calibrate")))
			continue;
		say("%s cannot be recorded: counts times no call", *items);
		settings_usage_error(settings);
	}
}

/* Refuses processor time for profilers without a coarse clock. */
static void check_cpu_clock(const struct settings *settings, char **items)
{
	static const struct {
		const char *option, *why;
	} refused[] = {
		{ "calibrate", "calibrate times every call by the wall clock" },
		{ "exact", "exact times every call by the wall clock" },
		{ "counts", "counts times no call" },
		{ "budget", "a budget takes times from samples of processor "
			    "time" },
	};
	const char *cpu = NULL, *why = NULL, *budget = getenv("SHIM_BUDGET");
	bool is_calltree;

	for (; *items != NULL; items++) {
		is_calltree = options_of(*items) == options_find("calltree");
		if (is_calltree && strstr(*items, "clock=cpu") != NULL)
			cpu = *items;
		if (options_of(*items) == options_find("trace"))
			why = "trace times every call by the wall clock";
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]);
		     i++)
			if (is_calltree &&
			    has_argument(*items, refused[i].option))
				why = refused[i].why;
	}
	if (settings->budget != NULL || (budget != NULL && *budget != '\0'))
		why = refused[3].why;
	if (cpu == NULL || why == NULL)
		return;
	say("%s cannot be recorded: %s", cpu, why);
	settings_usage_error(settings);
}

/* Refuses a budget beside profilers that need every call. */
static void check_with_budget(const struct settings *settings, char **items)
{
	const char *variable = getenv("SHIM_BUDGET");
	const char *what = settings->budget != NULL ? "--budget" :
						      budget_item(items);
	bool has_calltree = false;

	if (what == NULL && variable != NULL && *variable != '\0')
		what = "SHIM_BUDGET";
	for (; what != NULL && *items != NULL; items++) {
		const char *why = why_no_budget(*items);

		has_calltree |= options_of(*items) == options_find("calltree");
		if (why == NULL)
			continue;
		if (what == *items)
			say("%s cannot be recorded with a budget: it %s", what,
			    why);
		else
			say("%s and '%s' cannot be recorded together: %s %s; "
			    "record them in runs of their own",
			    what, *items, *items, why);
		settings_usage_error(settings);
	}
	if (what == NULL || has_calltree || settings->budget == NULL)
		return;
	say("--budget is for calltree, which is not recorded: add -p calltree");
	settings_usage_error(settings);
}

void profiles_check_together(const struct settings *settings)
{
	char *copy = strdup(profiles_given(settings));
	char **items = copy != NULL ? split(copy) : NULL;

	if (items != NULL) {
		check_twice(settings, items);
		check_counts(settings, items);
		check_with_budget(settings, items);
		check_cpu_clock(settings, items);
	}
	free(items);
	free(copy);
}
