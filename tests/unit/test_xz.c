/* Decompression of .gnu_debugdata (image/xz.c), compared with the command xz. */
#include "image/xz.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROOM (4u << 20)

static unsigned char data[ROOM], packed[ROOM + ROOM / 8];

/* --- data --- */

static uint32_t random_number(uint32_t below)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((state >> 33) % below);
}

static void fill_text(size_t size)
{
	static const char *const words[] = { "shim ",  "call ",	 "path\n",
					     "enter ", "leave ", "of " };
	size_t at = 0;

	while (at < size) {
		const char *word = words[random_number(6)];

		for (size_t i = 0; word[i] && at < size; i++)
			data[at++] = (unsigned char)word[i];
	}
}

static void fill_random(size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (unsigned char)random_number(256);
}

static void fill_zeros(size_t size)
{
	memset(data, 0, size);
}

/* Code: this program, which is repeated if it is short. */
static void fill_code(size_t size)
{
	FILE *file = fopen("/proc/self/exe", "rb");
	size_t read = fread(data, 1, size, file);

	cr_assert_gt(read, 0);
	for (; read < size; read++)
		data[read] = data[read / 2];
	fclose(file);
}

enum kind { ZEROS, TEXT, CODE, RANDOM };

static void fill(enum kind kind, size_t size)
{
	switch (kind) {
	case ZEROS: fill_zeros(size); break;
	case TEXT: fill_text(size); break;
	case CODE: fill_code(size); break;
	case RANDOM: fill_random(size); break;
	}
}

/* Packs the first @size bytes of the data.  Returns the size of the result. */
static size_t pack(size_t size, const char *options)
{
	char name[] = "/tmp/shim-xz.XXXXXX", command[256];
	int fd = mkstemp(name);
	size_t result;
	FILE *pipe;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, data, size), (ssize_t)size);
	close(fd);
	snprintf(command, sizeof(command), "xz -c --format=xz %s %s", options,
		 name);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	result = fread(packed, 1, sizeof(packed), pipe);
	cr_assert_eq(pclose(pipe), 0, "%s", command);
	unlink(name);
	return result;
}

/* --- what xz has packed --- */

/* (Each test is a process of its own, in which functions have other addresses.) */
struct row {
	char options[64];
	enum kind kind;
	size_t size;
};

ParameterizedTestParameters(xz, the_result_is_what_xz_has_packed)
{
	static struct row rows[] = {
		{ "-6", ZEROS, 1 },
		{ "-0", TEXT, 100 },
		{ "-6", TEXT, 1000000 },
		{ "-9e", TEXT, 300000 },
		{ "-1 --check=none", CODE, 1000000 },
		{ "-6 --check=crc32", CODE, ROOM },
		{ "-9e --check=crc64", CODE, 700001 },
		{ "-6 --check=sha256", CODE, 65537 },
		/* Chunks that are not compressed. */
		{ "-6", RANDOM, 1 },
		{ "-6", RANDOM, 200000 },
		{ "-6", ZEROS, ROOM },
		/* Several blocks, with their sizes in the headers, and without. */
		{ "-T2 --block-size=50000", CODE, 400000 },
		{ "-T1 --block-size=4096", TEXT, 100000 },
		{ "--lzma2=lc=0,lp=2,pb=0", CODE, 300000 },
		{ "--lzma2=lc=4,lp=0,pb=4", CODE, 300000 },
		{ "--lzma2=lc=1,lp=3,pb=2,dict=4KiB", TEXT, 300000 },
		{ "--lzma2=preset=0,mf=hc3,nice=5", CODE, 300000 },
	};

	return cr_make_param_array(struct row, rows,
				   sizeof(rows) / sizeof(*rows));
}

ParameterizedTest(struct row *row, xz, the_result_is_what_xz_has_packed)
{
	void *memory;
	size_t size, unpacked;

	fill(row->kind, row->size);
	size = pack(row->size, row->options);
	cr_assert_eq(xz_unpack(packed, size, &memory, &unpacked), 0, "%s",
		     row->options);
	cr_assert_eq(unpacked, row->size);
	cr_expect_eq(memcmp(memory, data, unpacked), 0, "%s", row->options);
	munmap(memory, unpacked);
}

/* --- what it is not --- */

#define GUARDED (256u << 10)
#define PAGE	4096u

/* A read beyond the packed bytes ends the test: there is no memory. */
static int try_to_unpack(size_t size)
{
	static unsigned char *guarded;
	void *memory;
	size_t unpacked;
	int r;

	if (!guarded) {
		guarded = mmap(NULL, GUARDED + PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		cr_assert_neq(guarded, MAP_FAILED);
		mprotect(guarded + GUARDED, PAGE, PROT_NONE);
	}
	cr_assert_leq(size, GUARDED);
	memcpy(guarded + GUARDED - size, packed, size);
	r = xz_unpack(guarded + GUARDED - size, size, &memory, &unpacked);

	if (r == 0)
		munmap(memory, unpacked);
	return r;
}

Test(xz, a_part_of_a_file_is_an_error)
{
	size_t size;

	fill_text(3000);
	size = pack(3000, "-6");
	for (size_t i = 0; i < size; i++)
		cr_expect_eq(try_to_unpack(i), -ENOEXEC, "%zu bytes", i);
	cr_expect_eq(try_to_unpack(size), 0);
}

/* The index's last number is the size of the only block. */
Test(xz, an_index_that_differs_from_the_blocks_is_refused)
{
	static const struct {
		unsigned char size;
		int result;
	} rows[] = {
		{ 100, 0 },	   { 99, -ENOEXEC }, { 101, -ENOEXEC },
		{ 127, -ENOEXEC }, { 1, -ENOEXEC },  { 0, -ENOEXEC },
	};
	size_t size, at;

	fill_text(100);
	size = pack(100, "-6");
	/* Behind it are the padding, the sum of the index, and the footer. */
	at = size - 12 - 4 - 1;
	while (packed[at] == 0)
		at--;
	cr_assert_eq(packed[at], 100);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		packed[at] = rows[i].size;
		cr_expect_eq(try_to_unpack(size), rows[i].result, "%u",
			     rows[i].size);
	}
}

/* The sum at the end of a block is not checked, so the result may be other bytes. */
Test(xz, damaged_data_crash_nothing)
{
	size_t size;
	unsigned errors = 0;

	fill_code(20000);
	size = pack(20000, "-6 --check=crc32");
	for (unsigned i = 0; i < 4000; i++) {
		/* Half of them are in the index and the footer. */
		size_t at = i % 2 ? random_number((uint32_t)size) :
				    size - 1 - random_number(28);
		unsigned char before = packed[at];
		int r;

		packed[at] = (unsigned char)random_number(256);
		r = try_to_unpack(size);
		cr_expect(r == 0 || r == -ENOEXEC || r == -ENOMEM, "%d", r);
		errors += r != 0;
		packed[at] = before;
	}
	cr_expect_gt(errors, 1000);
	cr_expect_eq(try_to_unpack(size), 0);
}

Test(xz, random_bytes_after_a_header_crash_nothing)
{
	size_t size;

	fill_text(5000);
	size = pack(5000, "-6");
	for (unsigned i = 0; i < 1000; i++) {
		/* The headers, the index and the footer stay. */
		for (size_t at = 30; at + 40 < size; at++)
			packed[at] = (unsigned char)random_number(256);
		cr_expect_neq(try_to_unpack(size), -EINVAL);
	}
}

Test(xz, other_filters_are_refused)
{
	fill_code(10000);
	cr_expect_eq(try_to_unpack(pack(10000, "--x86 --lzma2")), -ENOEXEC);
	cr_expect_eq(try_to_unpack(pack(10000, "--delta=dist=4 --lzma2")),
		     -ENOEXEC);
}
