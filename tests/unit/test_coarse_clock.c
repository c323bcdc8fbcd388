/*
 * The coarse clock where the kernel's clock source is not the processor's counter: a page
 * as kernels have it, with a word in quarters of a nanosecond.
 */
#include "fake_sys.h"
#include "os/clock.h"
#include "os/coarse_clock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/cpu.h>
#include <shim/record.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define UNITS_PER_NS 4
#define SHIFT	     23
#define FACTOR	     ((1u << SHIFT) / UNITS_PER_NS)
#define KVM_CLOCK    (2ull << 32)
#define COARSE	     (2 * CLOCK_MONOTONIC_COARSE)

static uint64_t page[512] __attribute__((aligned(4096)));

static uint64_t coarse_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Where the parts of a page are: since Linux 6.10 a limit is behind the word. */
struct layout {
	size_t header, word, limit, mask, factor, table;
};
static const struct layout early = { 16, 17, 18, 19, 20, 21 };
static const struct layout late = { 0, 1, 0, 2, 3, 4 };

/* Changes a page that is otherwise as the kernel has it. */
static void (*spoil)(void);

static void fill(const struct layout *layout)
{
	uint64_t now = coarse_ns();

	page[layout->header] = KVM_CLOCK | 1234;
	page[layout->word] = now * UNITS_PER_NS;
	if (layout->limit)
		page[layout->limit] = 1981102219259;
	page[layout->mask] = UINT64_MAX;
	page[layout->factor] = (uint64_t)SHIFT << 32 | FACTOR;
	page[layout->table + COARSE] = now / 1000000000u;
	page[layout->table + COARSE + 1] = now % 1000000000u;
	if (spoil)
		spoil();
}

static bool start(const struct layout *layout)
{
	char maps[128];

	snprintf(maps, sizeof(maps), "%lx-%lx r--p 00000000 00:00 0 [vvar]\n",
		 (unsigned long)page, (unsigned long)page + sizeof(page));
	fake_file("/proc/self/maps", maps, 4096);
	/* The time of the page may be old when the search begins. */
	for (int i = 0; i < 100; i++) {
		fill(layout);
		if (clock_start())
			return true;
	}
	return false;
}

static void expect_word(const struct layout *layout)
{
	uint64_t length;

	cr_assert(start(layout));
	cr_expect(eq(ptr, (void *)shim_clock_coarse(&length),
		     &page[layout->word]));
	cr_expect(eq(u64, length / UNITS_PER_NS / 1000, length / 4000));
	cr_expect(gt(u64, coarse_clock_length(), 0));
}

Test(coarse_clock, the_word_of_another_clock_is_found)
{
	expect_word(&late);
}

Test(coarse_clock, a_limit_behind_the_word_is_not_the_word)
{
	expect_word(&early);
}

static const struct layout *ticking;

static void tick(int signal)
{
	(void)signal;
	page[ticking->word] += 4000000 * UNITS_PER_NS;
}

/* A word that is small can look like a header. */
static void expect_word_that_changes(const struct layout *layout,
				     size_t other_header)
{
	const struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } };
	uint64_t length;

	page[other_header] = KVM_CLOCK;
	ticking = layout;
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &each_ms, NULL);
	cr_assert(start(layout));
	cr_expect(eq(ptr, (void *)shim_clock_coarse(&length),
		     &page[layout->word]));
}

Test(coarse_clock, of_two_words_the_one_that_changes_is_chosen)
{
	static const struct layout moved = { 16, 17, 0, 18, 19, 20 };

	expect_word_that_changes(&moved, 15);
}

static void expect_none(void (*how)(void))
{
	uint64_t length;

	spoil = how;
	cr_expect(not(start(&early)));
	cr_expect(eq(ptr, (void *)shim_clock_coarse(&length), NULL));
	cr_expect(eq(u64, coarse_clock_length(), 0));
}

static void no_source(void)
{
	page[early.header] = 1234;
	page[early.word] = 1ull << 40;
}

static void holes_in_the_mask(void)
{
	page[early.mask] = 0xfff0ffff;
}

static void no_factor(void)
{
	page[early.factor] = (uint64_t)SHIFT << 32;
}

static void large_shift(void)
{
	page[early.factor] |= 64ull << 32;
}

static void another_second(void)
{
	page[early.table + COARSE]++;
}

Test(coarse_clock, a_page_that_is_not_the_kernels_has_no_word)
{
	expect_none(no_source);
	expect_none(holes_in_the_mask);
	expect_none(no_factor);
	expect_none(large_shift);
	expect_none(another_second);
	spoil = NULL;
	cr_assert(start(&early));
}

/* --- times --- */

/* The distance in ns of the converted time of the last tick from the true one. */
static int64_t error_ns(const struct layout *layout)
{
	struct clock_reading now;
	uint64_t ns, converted;

	do {
		ns = coarse_ns();
		page[layout->word] = ns * UNITS_PER_NS;
		converted = shim_clock_of_coarse(page[layout->word]);
		clock_read_both(&now, 50);
	} while (coarse_ns() != ns);
	return (int64_t)((double)(now.clock - converted) * 1e9 /
				 (double)clock_hz() -
			 (double)(now.mono_ns - ns));
}

Test(coarse_clock, values_become_times_of_the_processors_counter)
{
	int64_t error;

	cr_assert(start(&early));
	error = error_ns(&early);
	cr_expect(lt(i64, error, 1000000));
	cr_expect(gt(i64, error, -1000000));
	cr_expect(eq(u64, shim_clock_of_coarse(0), 0));
	cr_expect(le(u64, shim_clock_of_coarse(UINT64_MAX / 2),
		     shim_clock_read()));
}

/* The factor is one of the kernel's, which it adjusts, and was measured in a short time.
 * Without a new anchor each second the error is 5 % of the time. */
static void slow_factor(void)
{
	page[early.factor] -= FACTOR / 20;
}

Test(coarse_clock, a_wrong_rate_does_not_add_up, .timeout = 120)
{
	int64_t error = 0;

	spoil = slow_factor;
	cr_assert(start(&early));
	spoil = NULL;
	for (int i = 0; i < 40; i++) {
		usleep(100000);
		error = error_ns(&early);
	}
	cr_expect(lt(i64, error, 40000000));
	cr_expect(gt(i64, error, -40000000));
}
