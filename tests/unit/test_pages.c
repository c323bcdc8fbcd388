/*
 * Memory that is read through the cache of pages, of which some are missing.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "os/pages.h"
#include "os/sys.h"

#define PAGE	4096u
#define COUNT	300u /* pages: more than the cache has room for */
#define MISSING 290u

static unsigned char memory[COUNT * PAGE] __attribute__((aligned(PAGE)));
static unsigned calls, pages, emptied;

/* The pages before the first one that is missing, as the kernel does it. */
long sys_peek_pages(const void *from, void *to, unsigned count)
{
	uintptr_t first = ((uintptr_t)from - (uintptr_t)memory) / PAGE;
	unsigned there = 0;

	cr_assert(eq(u64, (uintptr_t)from % PAGE, 0));
	calls++;
	while (there < count && first + there < COUNT &&
	       first + there != MISSING)
		there++;
	memcpy(to, from, there * PAGE);
	pages += there;
	return there > 0 ? (long)there : -EFAULT;
}

int sys_empty(void *of, size_t size)
{
	memset(of, 0, size);
	emptied++;
	return 0;
}

static void fill_memory(void)
{
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)(1 + (i ^ i / PAGE) % 250);
	pages_begin((uintptr_t)memory + sizeof(memory));
}

/* Of four pages, from each place near a page's end, as often as the cache has them. */
Test(pages, memory_is_read_across_pages, .init = fill_memory)
{
	static unsigned char got[3 * PAGE];

	for (size_t page = 0; page < MISSING - 4; page += 17)
		for (size_t at = 0; at < PAGE; at += at == 9 ? PAGE - 18 : 1) {
			const unsigned char *from = memory + page * PAGE + at;

			cr_assert(
				eq(int, pages_read(from, got, sizeof(got)), 0));
			cr_assert(eq(int, memcmp(got, from, sizeof(got)), 0),
				  "page %zu at %zu", page, at);
		}
	cr_expect(lt(u32, calls, COUNT));
}

Test(pages, missing_memory_is_an_error, .init = fill_memory)
{
	const unsigned char *end = memory + MISSING * PAGE;
	unsigned char got[64];

	cr_expect(eq(int, pages_read(end - 64, got, 64), 0));
	cr_expect(eq(int, pages_read(end - 63, got, 64), -EFAULT));
	cr_expect(eq(int, pages_read(end, got, 1), -EFAULT));
	cr_expect(eq(int, pages_read(end + PAGE - 1, got, 1), -EFAULT));
	cr_expect(eq(int, pages_read(end + PAGE, got, 64), 0));
	cr_expect(eq(int, memcmp(got, end + PAGE, 64), 0));
	cr_expect(eq(int, pages_read(end, got, 0), 0));
}

Test(pages, text_ends_with_its_nul_and_has_room_for_it, .init = fill_memory)
{
	char got[64];

	for (size_t before = 1; before < 20; before++)
		for (size_t length = 0; length < 40; length++) {
			char *from = (char *)memory + 5 * PAGE - before;
			char last = from[length];

			from[length] = '\0';
			pages_begin((uintptr_t)memory + sizeof(memory));
			memset(got, 'x', sizeof(got));
			cr_assert(pages_read_text(from, got, length + 1));
			cr_assert(eq(str, got, from));
			cr_assert(eq(chr, got[length + 1], 'x'));
			cr_assert(not(pages_read_text(from, got, length)));
			from[length] = last;
		}
}

Test(pages, text_that_ends_in_missing_memory_is_none, .init = fill_memory)
{
	char *end = (char *)memory + MISSING * PAGE, got[64];

	cr_expect(not(pages_read_text(end - 10, got, 64)));
	end[-1] = '\0';
	pages_begin((uintptr_t)memory + sizeof(memory));
	cr_expect(pages_read_text(end - 10, got, 64));
	cr_expect(not(pages_read_text(end, got, 64)));
}

Test(pages, a_page_is_as_it_was_at_its_first_read, .init = fill_memory)
{
	unsigned char got;

	cr_assert(eq(int, pages_read(memory, &got, 1), 0));
	cr_expect(eq(u8, got, 1));
	memory[0] = 77;
	cr_assert(eq(int, pages_read(memory, &got, 1), 0));
	cr_expect(eq(u8, got, 1));
	pages_begin((uintptr_t)memory + sizeof(memory));
	cr_assert(eq(int, pages_read(memory, &got, 1), 0));
	cr_expect(eq(u8, got, 77));
}

/* Up to four at once, to the end of the image and not what the cache has. */
Test(pages, pages_behind_are_read_as_well, .init = fill_memory)
{
	uintptr_t first = ((uintptr_t)memory / PAGE + 3) / 4 * 4;
	unsigned at = (unsigned)(first - (uintptr_t)memory / PAGE);
	unsigned char got;

	for (unsigned i = 0; i < 4; i++) {
		pages_begin((uintptr_t)memory + sizeof(memory));
		pages = 0;
		pages_read(memory + (at + i) * PAGE, &got, 1);
		cr_expect(eq(u32, pages, 4 - i), "%u", i);
	}
	for (unsigned i = 1; i <= 4; i++) {
		pages_begin((uintptr_t)memory + (at + i) * PAGE);
		pages = 0;
		pages_read(memory + at * PAGE, &got, 1);
		cr_expect(eq(u32, pages, i), "%u", i);
	}
	pages_begin((uintptr_t)memory + sizeof(memory));
	pages_read(memory + (at + 2) * PAGE, &got, 1);
	pages = 0;
	pages_read(memory + at * PAGE, &got, 1);
	cr_expect(eq(u32, pages, 2));
}

Test(pages, the_cache_gives_memory_back_that_it_has_used, .init = fill_memory)
{
	unsigned char got;

	pages_drop();
	cr_expect(eq(u32, emptied, 0));
	pages_read(memory, &got, 1);
	pages_drop();
	pages_drop();
	cr_expect(eq(u32, emptied, 1));
}
