/*
 * Parses /proc/self/maps as the kernel writes it, in pieces of any size.
 */
#include "fake_sys.h"
#include "os/maps.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char maps[] =
	"00400000-00401000 r--p 00000000 fe:00 1319                               /usr/bin/x y\n"
	"00401000-00402000 r-xp 00001000 fe:00 1319                               /usr/bin/x y\n"
	"00600000-00601000 rw-p 00000000 00:00 0 \n"
	"55d0f4f8a000-55d0f4fab000 rw-p 00000000 00:00 0                          [heap]\n"
	"7f96a2a00000-7f96e2a00000 rw-p 00000000 00:00 0 \n"
	"7f96e2a00000-7f96e2a01000 rw-s 00010000 00:1f 18446744073709551615       /dev/shm/a (deleted)\n"
	"7ffc12345000-7ffc12366000 rw-p 00000000 00:00 0                          [stack]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static struct map seen[64];
static char paths[64][9000];
static unsigned count, stop_after;

static bool note(const struct map *map, void *argument)
{
	cr_assert(argument == &count);
	seen[count] = *map;
	snprintf(paths[count], sizeof(paths[count]), "%s", map->path);
	return ++count != stop_after;
}

static int read_all(const char *text, unsigned piece)
{
	count = 0;
	fake_file("/proc/self/maps", text, piece);
	return maps_read(note, &count);
}

Test(maps, every_mapping_is_told_whatever_the_pieces)
{
	static const unsigned pieces[] = { 1, 7, 48, 49, 50, 100, 4096, 8192 };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		cr_assert(eq(int, read_all(maps, pieces[i]), 0));
		cr_assert(eq(uint, count, 8), "pieces of %u", pieces[i]);
		cr_assert(eq(str, paths[7], "[vsyscall]"));
	}
}

Test(maps, all_fields_are_read)
{
	read_all(maps, 4096);
	cr_assert(eq(ulong, seen[1].start, 0x401000));
	cr_assert(eq(ulong, seen[1].end, 0x402000));
	cr_assert(eq(u64, seen[1].offset, 0x1000));
	cr_assert(eq(u64, seen[1].device, 0xfeull << 32));
	cr_assert(eq(u64, seen[1].inode, 1319));
	cr_assert(all(seen[1].readable, seen[1].executable,
		      not(seen[1].writable), not(seen[1].shared)));
	cr_assert(eq(str, paths[1], "/usr/bin/x y"));
	cr_assert(all(seen[5].shared, seen[5].writable));
	cr_assert(eq(u64, seen[5].inode, UINT64_MAX));
	cr_assert(eq(str, paths[5], "/dev/shm/a (deleted)"));
}

Test(maps, anonymous_memory_has_an_empty_path)
{
	read_all(maps, 4096);
	cr_assert(eq(ulong, seen[2].start, 0x600000));
	cr_assert(eq(str, paths[2], ""));
	cr_assert(eq(ulong, seen[4].start, 0x7f96a2a00000));
	cr_assert(eq(str, paths[4], ""));
}

Test(maps, reading_stops_when_asked_to)
{
	stop_after = 3;
	cr_assert(eq(int, read_all(maps, 4096), 0));
	cr_assert(eq(uint, count, 3));
}

/* A path may have any length: a line that does not fit into the buffer is
 * skipped, and no other line. */
Test(maps, a_path_without_end_costs_its_own_line_only)
{
	static const size_t lengths[] = { 4095, 8000, 8192, 20000 };
	static char text[30000];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		size_t at = (size_t)sprintf(
			text, "7f0000000000-7f0000001000 r--p 00000000 00:00 7"
			      "                          /");

		memset(text + at, 'x', lengths[i]);
		sprintf(text + at + lengths[i], "\n%s", maps);
		cr_assert(eq(int, read_all(text, 4096), 0));
		cr_expect(ge(uint, count, 8), "path of %zu", lengths[i]);
		cr_expect(le(uint, count, 9), "path of %zu", lengths[i]);
		cr_expect(eq(str, paths[count - 1], "[vsyscall]"));
		cr_expect(eq(ulong, seen[count - 8].start, 0x400000));
	}
}

struct part {
	uintptr_t start, end;
};

static bool note_part(const struct map *map, void *argument)
{
	const struct part *part = argument;

	return map->end <= part->start || map->start >= part->end ||
	       note(map, &count);
}

static bool is_same(const struct map *a, const struct map *b)
{
	return a->start == b->start && a->end == b->end &&
	       a->readable == b->readable && a->writable == b->writable &&
	       a->executable == b->executable && a->shared == b->shared &&
	       a->offset == b->offset && a->device == b->device &&
	       a->inode == b->inode;
}

/* Three mappings of the test's own file, of which the part begins and ends in one. */
Test(maps, a_part_has_the_mappings_of_the_file)
{
	static struct map all[3];
	static char path[9000];
	int fd = open("/proc/self/exe", O_RDONLY), r;
	uintptr_t at = (uintptr_t)mmap(NULL, 6 * 4096, PROT_READ, MAP_PRIVATE,
				       fd, 4096);
	struct part part = { at + 4096, at + 5 * 4096 };

	cr_assert(eq(int, mprotect((char *)at + 2 * 4096, 2 * 4096, PROT_NONE),
		     0));
	cr_assert(eq(int, maps_read(note_part, &part), 0));
	cr_assert(eq(uint, count, 3));
	memcpy(all, seen, sizeof(all));
	strcpy(path, paths[1]);
	count = 0;
	r = maps_read_range(part.start, part.end, note_part, &part);
	if (r == -ENOTTY)
		cr_skip("older than Linux 6.11");
	cr_assert(eq(int, r, 0));
	cr_assert(eq(uint, count, 3));
	for (unsigned i = 0; i < 3; i++)
		cr_expect(is_same(&all[i], &seen[i]), "mapping %u", i);
	cr_expect(eq(str, paths[1], path));
}

Test(maps, reading_a_part_stops_when_asked_to)
{
	char *at = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	int r;

	cr_assert(eq(int, mprotect(at + 4096, 4096, PROT_NONE), 0));
	for (stop_after = 1; stop_after <= 3; stop_after++) {
		count = 0;
		r = maps_read_range((uintptr_t)at, (uintptr_t)at + 3 * 4096,
				    note, &count);
		if (r == -ENOTTY)
			cr_skip("older than Linux 6.11");
		cr_expect(eq(int, r, 0));
		cr_expect(eq(uint, count, stop_after));
	}
}

Test(maps, a_part_without_mappings_is_no_error)
{
	void *hole = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	int r;

	munmap(hole, 4096);
	r = maps_read_range((uintptr_t)hole, (uintptr_t)hole + 4096, note,
			    &count);
	if (r == -ENOTTY)
		cr_skip("older than Linux 6.11");
	cr_assert(eq(int, r, 0));
	cr_assert(eq(uint, count, 0));
}

Test(maps, no_file_is_an_error)
{
	fake_fail(1, EMFILE, false);
	count = 0;
	cr_assert(eq(int, maps_read(note, &count), -EMFILE));
	cr_assert(eq(uint, count, 0));
}

Test(maps, an_interrupted_read_is_tried_again)
{
	fake_fail(2, EINTR, false);
	cr_assert(eq(int, read_all(maps, 4096), 0));
	cr_assert(eq(uint, count, 8));
}

Test(maps, newline_in_a_path_is_restored)
{
	read_all(
		"00400000-00401000 r--p 00000000 fe:00 1319   /a\\012b/\\012\n"
		"00401000-00402000 r--p 00000000 fe:00 1319   /a\\01\\0123 (deleted)\n"
		"00403000-00404000 r--p 00000000 00:00 0   [a\\012b]\n",
		7);
	cr_assert(eq(uint, count, 3));
	cr_assert(eq(str, paths[0], "/a\nb/\n"));
	cr_assert(eq(str, paths[1], "/a\\01\n3 (deleted)"));
	cr_assert(eq(str, paths[2], "[a\\012b]"));
}

Test(maps, backslash_and_digits_in_the_name_of_a_file_are_kept)
{
	char line[200], path[] = "/tmp/maps\\012XXXXXX";
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	snprintf(line, sizeof(line),
		 "00400000-00401000 r--p 00000000 fe:00 1 %s\n", path);
	read_all(line, 4096);
	unlink(path);
	cr_assert(eq(str, paths[0], path));
}
