/*
 * The output file.  The file gets its name when it is complete; a report that
 * ends early leaves no file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "base/unfinished.h"

/* The highest number for files of one name: a program that runs often makes
 * many. */
#define NUMBERS_MAX 10000

static FILE *output;
static const char *output_path;
/* the directory that holds @output_temporary */
static int output_directory = AT_FDCWD;
static char *volatile output_temporary;

static void discard(void)
{
	if (output_temporary)
		unlinkat(output_directory, output_temporary, 0);
}

/* The temporary file is beside the final one, because rename() cannot cross
 * file systems. */
static FILE *open_temporary(const char *path)
{
	char *name;
	int fd;

	if (asprintf(&name, "%s.XXXXXX", path) < 0)
		die("out of memory");
	fd = mkstemp(name);
	if (fd < 0)
		die("%s: %s", path, strerror(errno));
	output_directory = AT_FDCWD;
	output_temporary = name;
	unfinished_add(discard);
	return fdopen(fd, "w");
}

FILE *output_open(const char *path)
{
	struct stat info;

	output_path = path && strcmp(path, "-") ? path : NULL;
	if (!output_path && isatty(STDOUT_FILENO))
		progress_off();
	if (!output_path)
		output = stdout;
	else if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
		/* for example /dev/null or a pipe */
		output = fopen(path, "we");
	else
		output = open_temporary(path);
	if (!output)
		die("%s: %s", path, strerror(errno));
	setvbuf(output, NULL, _IOFBF, 1 << 16);
	return output;
}

static void close_file(const char *name)
{
	bool failed = ferror(output) != 0;

	if (fclose(output) != 0 || failed)
		die("%s: cannot write: %s", name, strerror(errno));
}

void output_close(void)
{
	close_file(output_path ? output_path : "standard output");
	if (output_temporary && rename(output_temporary, output_path) != 0)
		die("%s: %s", output_path, strerror(errno));
	output_temporary = NULL;
}

FILE *output_create(int directory, const char *directory_name)
{
	uint64_t number = 0;
	char *name;
	int fd;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number) ||
	    asprintf(&name, "profrun.%016" PRIx64 ".unfinished", number) < 0)
		die("out of memory");
	fd = openat(directory, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		die("%s/%s: %s", directory_name, name, strerror(errno));
	output_directory = directory;
	output_temporary = name;
	unfinished_add(discard);
	output = fdopen(fd, "w");
	if (!output)
		die("%s/%s: %s", directory_name, name, strerror(errno));
	setvbuf(output, NULL, _IOFBF, 1 << 16);
	return output;
}

/* Makes an empty file with this name, or with this name and a number.  A later
 * rename over it then replaces no other file. */
static const char *claim_name(int directory, const char *name)
{
	const char *claimed = name;
	int i, fd = -1;

	for (i = 1; i < NUMBERS_MAX; i++) {
		fd = openat(directory, claimed,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
				    O_CLOEXEC,
			    0666);
		if (fd >= 0 || errno != EEXIST)
			break;
		claimed = keep_format("%s.%d", name, i);
	}
	if (fd < 0)
		return NULL;
	close(fd);
	return claimed;
}

const char *output_close_as(const char *name)
{
	const char *claimed;

	close_file(name);
	claimed = claim_name(output_directory, name);
	if (!claimed || renameat(output_directory, output_temporary,
				 output_directory, claimed) != 0)
		die("%s: %s", name, strerror(errno));
	output_temporary = NULL;
	return claimed;
}
