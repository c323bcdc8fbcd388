/*
 * The files of a process and of its fork child.
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "recording.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <ftw.h>
#include <shim/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The room in it; 0: it was not opened. */
static size_t open_file(const char *kind)
{
	enum shim_lost cause;
	void *memory;
	size_t room;

	return shim_record_open(kind, &memory, &room, &cause) ? room : 0;
}

static int begin_again(void *unused)
{
	(void)unused;
	if (record_fork() == 0)
		image_forked();
	return 0;
}

static bool opens_two(const char *first, const char *second)
{
	return open_file(first) > 0 && open_file(second) > 0;
}

static char found[256];

static int note_file(const char *path, const struct stat *status, int kind,
		     struct FTW *where)
{
	const char *name = path + where->base;

	(void)status;
	if (kind == FTW_F && strstr(name, ".test")) {
		strcat(found, " ");
		strcat(found, name);
	}
	return 0;
}

static bool has(const char *name)
{
	return strstr(found, name) != NULL;
}

Test(record, files_of_a_child_are_numbered_from_0)
{
	char directory[] = "/tmp/shim-unit.XXXXXX";
	int status;
	pid_t child;

	cr_assert(mkdtemp(directory) != NULL);
	setenv("SHIM_DIR", directory, 1);
	state_start();
	cr_expect(opens_two("test_a", "test_b"));
	child = fork();
	if (child == 0) {
		alarm(10);
		state_forked();
		state_call_locked_in_handler(begin_again, NULL);
		_exit(!opens_two("test_c", "test_d"));
	}
	waitpid(child, &status, 0);
	cr_expect(eq(int, status, 0));
	nftw(directory, note_file, 16, FTW_PHYS);
	cr_expect(has(" 0.test_a") && has(" 1.test_b") && has(" 0.test_c") &&
			  has(" 1.test_d"),
		  "found%s", found);
	recording_remove(directory);
}
