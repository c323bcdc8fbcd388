/*
 * What the tests of file.c share: a directory with their files, in the place of the
 * system's, and what file.c needs of others.
 */
#ifndef SHIM_TEST_DEBUGINFO_FILES_H
#define SHIM_TEST_DEBUGINFO_FILES_H

#include "elf_writer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int opened(const char *path, int flags);

#define open opened
#include "inspect/debuginfo/file.c"
#undef open

/* --- what file.c needs of others --- */

static unsigned units_forgotten, all_forgotten, signatures_forgotten;
static bool lacks_memory;

void unit_forget(void)
{
	units_forgotten++;
}

void units_forget(void)
{
	all_forgotten++;
}

void signature_forget(void)
{
	signatures_forgotten++;
}

bool memory_lacked(void)
{
	return lacks_memory;
}

/* --- a directory in the place of the system's --- */

/* The system's files of build IDs that begin as the one of the questions. */
static const char folder[] = "usr/lib/debug/.build-id/ab";

static char directory[] = "/tmp/shim-file-XXXXXX";
static char last_opened[8192];

/* A name in the directory, valid until the fourth call after this one. */
static char *in(const char *name)
{
	static char names[4][8192];
	static unsigned turn;
	char *path = names[turn++ % 4];

	snprintf(path, sizeof(names[0]), "%s/%s", directory, name);
	return path;
}

static int opened(const char *path, int flags)
{
	if (strcmp(path, "/proc/self/exe") == 0)
		path = in("exe");
	else if (strncmp(path, SYSTEM_PREFIX "/", strlen(SYSTEM_PREFIX) + 1) ==
		 0)
		path = in(path + 1);
	snprintf(last_opened, sizeof(last_opened), "%s", path);
	return (open)(path, flags);
}

static void make_directory(void)
{
	cr_assert(mkdtemp(directory) != NULL);
	elf_version(EV_CURRENT);
}

static void remove_directory(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", directory);
	cr_assert(eq(int, system(command), 0));
}

/* --- files --- */

/* Writes the file @name in the directory. */
static void make(const char *name, struct contents has)
{
	elf_write(in(name), &has);
}

static void make_folders(const char *path)
{
	char command[8300];

	snprintf(command, sizeof(command), "mkdir -p '%s'", in(path));
	cr_assert(eq(int, system(command), 0));
}

/* --- questions --- */

#define ID { 0xab, 0xcd, 0xef, 0x01 }, .id_size = 4

static const unsigned char id[80] = { 0xab, 0xcd, 0xef, 0x01 };
static struct debuginfo_answer answer;

static struct debuginfo_question question_of(uint64_t image, const char *name)
{
	static char paths[16][256];
	static unsigned turn;
	struct debuginfo_question question = { .image = image,
					       .build_id = id,
					       .build_id_size = 4 };

	question.path = strcpy(paths[turn++ % 16], in(name));
	return question;
}

static Dwarf *ask(struct debuginfo_question question)
{
	answer.trouble = NULL;
	return file_open(&question, &answer);
}

static Dwarf *ask_for(uint64_t image, const char *name)
{
	return ask(question_of(image, name));
}

#define CR_TROUBLE(question, expected) \
	do { \
		cr_assert(eq(ptr, ask(question), NULL)); \
		cr_assert(answer.trouble != NULL); \
		cr_assert( \
			eq(str, (char *)(uintptr_t)answer.trouble, expected)); \
	} while (0)

static unsigned open_files(void)
{
	DIR *all = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

#endif
