/*
 * The output file.  It has its name only when all of it is written, and a report that
 * ends before leaves nothing behind.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"

static FILE *output;
static const char *output_path;
static char *volatile output_temporary;

void output_discard(void)
{
	if (output_temporary)
		unlink(output_temporary);
}

static void remove_on_signal(int number)
{
	output_discard();
	signal(number, SIG_DFL);
	raise(number);
}

/* Beside the file, because rename() cannot cross file systems. */
static FILE *open_temporary(const char *path)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGPIPE };
	char *name;
	size_t i;
	int fd;

	if (asprintf(&name, "%s.XXXXXX", path) < 0)
		die("out of memory");
	fd = mkstemp(name);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	output_temporary = name;
	for (i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], remove_on_signal);
	return fdopen(fd, "w");
}

FILE *output_open(const char *path)
{
	struct stat info;

	output_path = path && strcmp(path, "-") ? path : NULL;
	if (!output_path)
		output = stdout;
	else if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
		output = fopen(path, "we");	/* /dev/null, a pipe */
	else
		output = open_temporary(path);
	if (!output)
		die("%s: %s", path, strerror(errno));
	setvbuf(output, NULL, _IOFBF, 1 << 16);
	return output;
}

void output_close(void)
{
	const char *name = output_path ? output_path : "standard output";
	bool failed = ferror(output) != 0;

	if (fclose(output) != 0 || failed)
		die("%s: cannot write: %s", name, strerror(errno));
	if (output_temporary && rename(output_temporary, output_path) != 0)
		die("%s: %s", output_path, strerror(errno));
	output_temporary = NULL;
}
