/*
 * Runs `shim-report finish`, which writes the gmon.out of a program that ended
 * before it could write it.  The directory is the one that the program would
 * have used (PROFFLAGS, PROFDIR).
 */
#include "histograms.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording.h"
#include "say.h"
#include "supervise.h"

#define WORD_SIZE 4096

struct finish {
	const char *report, *recording, *directory;
};

/* Copies the next word of PROFFLAGS without its quotes, as the library reads it; NULL at
 * the end. */
static const char *next_word(const char *at, char word[WORD_SIZE])
{
	char quote = '\0';
	size_t n = 0;

	at += strspn(at, " \t\n");
	if (*at == '\0')
		return NULL;
	for (; *at != '\0' && (quote || !strchr(" \t\n", *at)); at++) {
		if (quote ? *at == quote : *at == '"' || *at == '\'')
			quote = quote ? '\0' : *at;
		else if (n < WORD_SIZE - 1)
			word[n++] = *at;
	}
	word[n] = '\0';
	return at;
}

static const char *directory_of_flags(void)
{
	const char *at = getenv("PROFFLAGS");
	static char directory[WORD_SIZE];
	char word[WORD_SIZE];

	while (at != NULL && (at = next_word(at, word)) != NULL)
		if (strcmp(word, "-dirname") == 0)
			at = next_word(at, directory);
	return directory;
}

static const char *find_directory(void)
{
	const char *directory = directory_of_flags();

	if (*directory == '\0')
		directory = getenv("PROFDIR");
	return directory != NULL && *directory != '\0' ? directory : ".";
}

static int become_finish(void *data)
{
	const struct finish *finish = data;
	const char *word[] = { finish->report,	  "finish",
			       "--if-any",	  "-o",
			       finish->directory, "--",
			       finish->recording, NULL };

	execv(finish->report, (char **)word);
	return STATUS_FAILED;
}

void histograms_finish(const char *report, const char *recording)
{
	struct finish finish = { report, recording, find_directory() };
	int child;

	if (!recording_has_histograms(recording))
		return;
	child = supervise_start(become_finish, &finish);
	if (child >= 0)
		supervise_wait(child);
}
