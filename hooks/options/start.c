/*
 * Starts a built-in profiler with its options.  Also the profiler none, which has no
 * file of its own.
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
static void say(const char *profiler, const char *arguments,
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
		say(profiler, arguments, &error);
		return -1;
	}
	return !start || start() ? 0 : -2;
}

/* For programs that bring profilers of their own. */
BUILTIN(none, NULL, NULL);
