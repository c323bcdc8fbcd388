/*
 * The profilers that are part of the library, by name.
 */
#include <shim/record.h>

#include <shim/banned.h>

int calltree_start(const char *arguments);
int exceptions_start(const char *arguments);
int locks_start(const char *arguments);
int coverage_start(const char *arguments);
int memory_start(const char *arguments);
int pchist_start(const char *arguments);
int sampling_start(const char *arguments);
int trace_start(const char *arguments);
int builtin_start(const char *profile);
int builtin_find(const char *profile);

/* Nothing: for programs that bring profilers of their own. */
static int none_start(const char *arguments)
{
	return *arguments ? -1 : 0;
}

static struct {
	const char *name;
	int (*start)(const char *arguments);
	bool is_early;	/* only starts with shim itself, before constructors */
	bool started;
} builtins[] = {
	{ "calltree", calltree_start, false, false },
	{ "exceptions", exceptions_start, false, false },
	{ "locks", locks_start, false, false },
	{ "coverage", coverage_start, false, false },
	{ "memory", memory_start, false, false },
	{ "none", none_start, false, false },
	{ "pchist", pchist_start, true, false },
	{ "sampling", sampling_start, false, false },
	{ "trace", trace_start, false, false },
};

static int find(const char *profile, const char **arguments)
{
	for (int i = 0; i < (int)(sizeof(builtins) / sizeof(*builtins)); i++) {
		const char *name = builtins[i].name, *at = profile;

		while (*name && *at == *name)
			at++, name++;
		if (*name == '\0' && (*at == '\0' || *at == ':')) {
			*arguments = *at == ':' ? at + 1 : "";
			return i;
		}
	}
	return -1;
}

/* Starts NAME[:ARGUMENTS], at most one of each.  0; 1 if it was started before;
 * -1 if there is none of that name; -2 if its arguments are wrong; -3 if it has said
 * itself why not. */
int builtin_start(const char *profile)
{
	const char *arguments;
	int i = find(profile, &arguments), r;

	if (i < 0)
		return -1;
	if (builtins[i].started)
		return 1;
	r = builtins[i].start(arguments);
	if (r < 0)
		return r - 1;
	builtins[i].started = true;
	return 0;
}

/* 0: there is none of that name; 1: it was not started; 2: it was; 3: it was not, and
 * only starts with shim itself. */
int builtin_find(const char *profile)
{
	const char *arguments;
	int i = find(profile, &arguments);

	if (i < 0)
		return 0;
	return builtins[i].started ? 2 : builtins[i].is_early ? 3 : 1;
}
