/*
 * The names of the files that monitor(3) writes.  The test is the directory.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "../../shim/monitor/monitor_file.c"

static unsigned created, renamed, written;
static char names[8][MONITOR_PATH_SIZE];

int sys_create(const char *path, int flags, unsigned mode)
{
	(void)path, (void)flags, (void)mode;
	created++;
	return 3;
}

long sys_write(int fd, const void *buffer, size_t size)
{
	(void)fd, (void)buffer;
	written++;
	return (long)size;
}

int sys_rename(const char *path, const char *to)
{
	(void)path;
	cr_assert(lt(u32, renamed, 8));
	strcpy(names[renamed++], to);
	return 0;
}

int sys_close(int fd)
{
	(void)fd;
	return 0;
}

int sys_remove(const char *path)
{
	(void)path;
	return 0;
}

int sys_getpid(void)
{
	return 7;
}

int sys_limit(int which, uint64_t *limit)
{
	(void)which;
	*limit = UINT64_MAX;
	return 0;
}

int sys_map(size_t size, void **memory)
{
	static _Alignas(64) unsigned char room[1 << 20];

	cr_assert(le(sz, size, sizeof(room)));
	memset(room, 0, size);
	*memory = room;
	return 0;
}

int sys_unmap(void *memory, size_t size)
{
	(void)memory, (void)size;
	return 0;
}

struct monitor_arc *monitor_next_arc(struct monitor_arc *arc)
{
	(void)arc;
	return NULL;
}

/* --- three objects, of which two have the same name --- */

static uint16_t counters[3][16];
static struct monitor_set *set;

static void begin(void)
{
	static const char *const paths[] = { "/bin/program", "/a/liba.so",
					     "/b/liba.so" };
	static _Alignas(struct monitor_set) unsigned char
		memory[sizeof(struct monitor_set) +
		       3 * sizeof(struct monitor_range)];

	set = (void *)memory;
	set->range_count = 3;
	for (unsigned i = 0; i < 3; i++) {
		struct monitor_range *range = &set->ranges[i];

		range->low = range->base = 0x10000 * (i + 1);
		range->high = range->end = range->low + 64;
		range->bias = range->low;
		range->step = 4;
		range->bins = 16;
		range->width = 2;
		range->counters = counters[i];
		strcpy(range->path, paths[i]);
	}
}

static int write_set(const char *name)
{
	struct monitor_output output = {
		.name = name,
		.is_gmon = true,
		.rate_hz = 100,
	};

	return monitor_write_set(set, &output);
}

Test(monitor_file, each_object_has_a_file_of_its_own)
{
	begin();
	cr_assert(zero(int, write_set("gmon.out")));
	cr_assert(eq(u32, renamed, 3));
	cr_expect(eq(str, names[0], "gmon.out"));
	cr_expect(eq(str, names[1], "gmon.out.liba.so"));
	cr_expect(eq(str, names[2], "gmon.out.liba.so.2"));
	cr_expect(gt(u32, written, 0));
}

Test(monitor_file, ranges_of_an_object_share_its_file)
{
	begin();
	set->ranges[2].bias = set->ranges[1].bias;
	cr_assert(zero(int, write_set("gmon.out")));
	cr_expect(eq(u32, renamed, 2));
}

/* Files with a part of their names could be other files. */
Test(monitor_file, a_name_that_is_too_long_is_an_error_and_no_file)
{
	static char name[MONITOR_PATH_SIZE];

	begin();
	/* There is room for the number of this process, and the program's file. */
	memset(name, 'x', MONITOR_PATH_SIZE - 8);
	cr_expect(eq(int, write_set(name), -ENAMETOOLONG));
	cr_expect(eq(u32, renamed, 1));
	cr_expect(eq(u32, created, 1));
	cr_expect(eq(str, names[0], name));
}
