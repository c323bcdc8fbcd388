/*
 * The imports of all objects of this process, compared with readelf's list of relocations
 * and symbols.
 */
#define _GNU_SOURCE
#include "image/imports.h"
#include "os/pages.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the cache of pages --- */

static unsigned reads, reads_left = ~0u;
static size_t failed_size;
static bool has_begun;

void pages_begin(uintptr_t limit)
{
	(void)limit;
	has_begun = true;
}

void pages_drop(void)
{
	has_begun = false;
}

int pages_read(const void *from, void *to, size_t size)
{
	cr_assert(has_begun);
	reads++;
	if (reads_left-- == 0) {
		failed_size = size;
		return -EFAULT;
	}
	memcpy(to, from, size);
	return 0;
}

bool pages_read_text(const char *from, char *to, size_t size)
{
	size_t length = strnlen(from, size);

	reads++;
	if (reads_left-- == 0 || length == size)
		return false;
	memcpy(to, from, length + 1);
	return true;
}

/* --- lists of imports: slot, name, version, whether it is for calls --- */

#define LINES_MAX 4096
#define LINE_SIZE 256

struct list {
	size_t count;
	char lines[LINES_MAX][LINE_SIZE];
};

static char *add_line(struct list *list)
{
	cr_assert(lt(sz, list->count, LINES_MAX));
	return list->lines[list->count++];
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static struct object {
	const char *path;
	struct imports_image image;
} objects[32];
static unsigned object_count;

static struct list found, expected;

static void take(void *argument, const struct import *import)
{
	const struct imports_image *image = argument;

	snprintf(add_line(&found), LINE_SIZE, "%016lx %s %s %d\n",
		 (unsigned long)(import->slot - image->bias), import->name,
		 import->version ? import->version : "-", import->is_call);
}

static int read_found(struct imports_image *image)
{
	int r;

	found.count = reads = 0;
	r = imports_read(image, take, image);
	cr_assert(not(has_begun));
	cr_assert(image->may_go || reads == 0);
	qsort(found.lines, found.count, LINE_SIZE, by_text);
	return r;
}

static void read_expected(const char *path)
{
	char command[1024], line[LINE_SIZE];
	FILE *in;

	snprintf(
		command, sizeof(command),
		"{ readelf -W --dyn-syms '%s'; readelf -W -r '%s'; } | awk '"
		"$7 == \"UND\" && $4 ~ /^(FUNC|NOTYPE)$/ && NF > 7 { f[$8] = 1 }"
		"$3 ~ /^R_X86_64_(JUMP_SLO|GLOB_DAT)/ && $5 in f {"
		"  split($5, p, \"@\"); print $1, p[1],"
		"  p[2] == \"\" ? \"-\" : p[2], $3 ~ /JUMP/ }'",
		path, path);
	expected.count = 0;
	in = popen(command, "r");
	cr_assert(in != NULL);
	while (fgets(line, sizeof(line), in))
		strcpy(add_line(&expected), line);
	cr_assert(zero(int, pclose(in)));
	qsort(expected.lines, expected.count, LINE_SIZE, by_text);
}

/* The kernel's object has no file. */
static int add_object(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct object *object = &objects[object_count];

	(void)size, (void)argument;
	object->path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	if (object->path[0] != '/' || object_count == 31)
		return 0;
	object->image.bias = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) {
			object->image.dynamic = info->dlpi_addr +
						info->dlpi_phdr[i].p_vaddr;
			object->image.dynamic_size = info->dlpi_phdr[i].p_memsz;
		}
	object_count++;
	return 0;
}

static void find_objects(void)
{
	static char itself[1024];
	ssize_t length = readlink("/proc/self/exe", itself, sizeof(itself) - 1);

	cr_assert(gt(int, length, 0));
	dl_iterate_phdr(add_object, NULL);
	cr_assert(gt(uint, object_count, 2));
	objects[0].path = itself;
}

Test(imports, all_objects_have_those_that_readelf_lists, .timeout = 120)
{
	size_t count = 0;

	find_objects();
	for (unsigned i = 0; i < object_count; i++) {
		struct imports_image *image = &objects[i].image;

		read_expected(objects[i].path);
		count += expected.count;
		for (int may_go = 0; may_go < 2; may_go++) {
			image->may_go = may_go;
			cr_assert(zero(int, read_found(image)));
			cr_assert(eq(sz, found.count, expected.count), "%s",
				  objects[i].path);
			for (size_t k = 0; k < found.count; k++)
				cr_assert(eq(str, found.lines[k],
					     expected.lines[k]),
					  "%s", objects[i].path);
		}
	}
	cr_assert(gt(sz, count, 50));
}

Test(imports, an_object_without_a_dynamic_section_has_none)
{
	struct imports_image image;

	find_objects();
	image = objects[0].image;
	image.dynamic_size = 0;
	cr_expect(zero(int, read_found(&image)));
	cr_expect(zero(sz, found.count));
	image = objects[0].image;
	image.dynamic = 0;
	cr_expect(zero(int, read_found(&image)));
	cr_expect(zero(sz, found.count));
	/* Without its last entries: it ends where nothing is known. */
	image = objects[0].image;
	image.dynamic_size = sizeof(ElfW(Dyn)) - 1;
	cr_expect(zero(int, read_found(&image)));
	cr_expect(zero(sz, found.count));
}

/* Each read fails once: an error, or imports without a name or a version. */
Test(imports, an_object_that_is_unloaded_meanwhile_ends_the_list)
{
	struct imports_image image;
	size_t all;
	unsigned last, errors = 0, entries = 1;

	find_objects();
	image = objects[0].image;
	while (((const ElfW(Dyn) *)image.dynamic)[entries - 1].d_tag)
		entries++;
	image.may_go = true;
	cr_assert(zero(int, read_found(&image)));
	all = found.count;
	last = reads;
	for (unsigned i = 0; i < last; i++) {
		int r;

		reads_left = i;
		failed_size = 0;
		r = read_found(&image);
		/* Entries of the dynamic section, then relocations and symbols. */
		if (i < entries || (failed_size && failed_size % 24 == 0))
			cr_expect(eq(int, r, -EFAULT), "read %u", i);
		else
			cr_expect(zero(int, r), "read %u", i);
		cr_expect(le(sz, found.count, all));
		errors += r < 0;
	}
	cr_expect(gt(uint, errors, 5));
	reads_left = ~0u;
	cr_assert(zero(int, read_found(&image)));
	cr_assert(eq(sz, found.count, all));
}
