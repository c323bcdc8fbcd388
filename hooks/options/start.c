/*
 * Starts a built-in profiler with its options.  Also defines the profiler none, which
 * has no other file.
 */
#include "options/start.h"

#include <shim/record.h>

#include <shim/banned.h>

static void add_text(char **to, const char *end, const char *text)
{
	while (*text && *to < end)
		*(*to)++ = *text++;
	**to = '\0';
}

/* Logs "profiler 'NAME:...': REASON". */
static void log_error(const char *profiler, const char *arguments,
		      const struct option_error *error)
{
	char line[900], reason[600];
	char *to = line, *end = line + sizeof(line) - 1;

	options_explain(profiler, error, reason, sizeof(reason));
	add_text(&to, end, "profiler '");
	add_text(&to, end, profiler);
	add_text(&to, end, ":");
	add_text(&to, line + 80, arguments);
	add_text(&to, end, "': ");
	add_text(&to, end, reason);
	shim_record_log(line);
}

int options_start(const char *profiler, const char *arguments,
		  option_taker *take, bool (*start)(void))
{
	struct option_error error;

	if (!options_read(profiler, arguments, take, &error)) {
		log_error(profiler, arguments, &error);
		return -1;
	}
	return !start || start() ? 0 : -2;
}

/* The profiler none, for programs that have their own profilers. */
BUILTIN(none, NULL, NULL, .stays = "it records nothing");
