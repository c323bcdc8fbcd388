/*
 * The profilers that are part of the library, by name.
 */
#include <shim/record.h>

#include <shim/banned.h>

int calltree_start(const char *arguments);
int builtin_start(const char *profile);

/* Nothing: for programs that bring profilers of their own. */
static int none_start(const char *arguments)
{
	return *arguments ? -1 : 0;
}

static const struct {
	const char *name;
	int (*start)(const char *arguments);
} builtins[] = {
	{ "calltree", calltree_start },
	{ "none", none_start },
};

/* Starts NAME[:ARGUMENTS] of @profile, at most one of each; 0, or -1 if there
 * is none of that name or its arguments are wrong. */
int builtin_start(const char *profile)
{
	for (size_t i = 0; i < sizeof(builtins) / sizeof(*builtins); i++) {
		const char *name = builtins[i].name, *at = profile;

		while (*name && *at == *name)
			at++, name++;
		if (*name == '\0' && *at == '\0')
			return builtins[i].start("");
		if (*name == '\0' && *at == ':')
			return builtins[i].start(at + 1);
	}
	return -1;
}
