/*
 * The coarse clock: how shim finds it, and how shim works without it.
 */
#include "fake_sys.h"
#include "os/clock.h"
#include "os/coarse_clock.h"
#include "os/sys.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/cpu.h>
#include <shim/format.h>
#include <shim/record.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static struct shim_meta meta;

static void expect_none(const char *maps)
{
	uint64_t length;

	fake_file("/proc/self/maps", maps, 4096);
	cr_expect(clock_start() == false);
	cr_expect(shim_clock_coarse(&length) == NULL);
	clock_describe(&meta);
	cr_expect(eq(u64, meta.tick, 0));
	cr_expect(gt(u64, meta.clock_hz, 1000000));
}

Test(clock, without_the_kernels_page_there_is_no_tick)
{
	expect_none("00400000-00401000 r--p 00000000 fe:00 1319 /usr/bin/x\n");
}

Test(clock, a_page_without_the_tick_has_none)
{
	static uint64_t page[512] __attribute__((aligned(4096)));
	char maps[128];

	/* Zero, the far past, the future: none of these is a tick. */
	page[1] = 1;
	page[2] = shim_clock_read() - (1ull << 40);
	page[3] = shim_clock_read() + (1ull << 40);
	snprintf(maps, sizeof(maps), "%lx-%lx r--p 00000000 00:00 0 [vvar]\n",
		 (unsigned long)page, (unsigned long)page + sizeof(page));
	expect_none(maps);
}

/* Each pair of readings took fifty tries where a system call takes longer than a microsecond. */
Test(clock, slow_calls_are_not_tried_again_and_again, .timeout = 60)
{
	unsigned before;

	fake_slow(20000);
	clock_start();
	clock_describe(&meta);
	before = fake_calls;
	for (int i = 0; i < 20; i++)
		clock_note(&meta);
	cr_expect(gt(u64, meta.last_mono_ns, meta.first_mono_ns));
	cr_expect(lt(u32, fake_calls - before, 200));
}

Test(clock, a_note_is_of_the_time_of_both_clocks)
{
	uint64_t ns;

	clock_start();
	clock_describe(&meta);
	cr_assert(eq(u64, meta.last_mono_ns, meta.first_mono_ns));
	cr_assert(eq(u64, meta.last_clock, meta.first_clock));
	usleep(1000);
	clock_note(&meta);
	ns = (uint64_t)((double)(meta.last_clock - meta.first_clock) * 1e9 /
			(double)meta.clock_hz);
	cr_expect(ge(u64, meta.last_mono_ns, meta.first_mono_ns + 1000000));
	cr_expect(gt(u64, ns, 500000));
	clock_note(NULL);
}

/* The search used to continue until no tick fell between two system calls:
 * under a tracer, forever. */
Test(clock, the_tick_is_not_looked_for_for_ever, .timeout = 20)
{
	uint64_t length;

	fake_slow(20000000);
	cr_expect(clock_start() == false);
	cr_expect(shim_clock_coarse(&length) == NULL);
	cr_expect(lt(u32, fake_calls, 1000));
}

Test(clock, the_tick_follows_the_exact_clock)
{
	const volatile uint64_t *tick;
	uint64_t length, now, last;

	clock_start();
	tick = shim_clock_coarse(&length);
	if (!tick)
		cr_skip("there is none on this machine");
	length = coarse_clock_length();
	last = shim_clock_of_coarse(*tick);
	for (int i = 0; i < 100; i++) {
		usleep(1000);
		now = shim_clock_of_coarse(*tick);
		cr_assert(ge(u64, now, last));
		cr_assert(le(u64, now, shim_clock_read()));
		last = now;
	}
	/* A clock that is ten ticks late indicates a busy machine; a hundred
	 * ticks indicate the wrong word. */
	cr_assert(lt(u64, shim_clock_read() - last, 100 * length));
}

Test(clock, a_pause_tells_how_long_it_was)
{
	uint64_t begin_ns, end_ns, passed_ms, told_ms = 0;

	cr_assert(zero(int, prctl(PR_SET_TIMERSLACK, 60000000)));
	cr_assert(zero(int, sys_time_ns(CLOCK_MONOTONIC, &begin_ns)));
	for (int i = 0; i < 5; i++)
		told_ms += sys_pause_ms();
	cr_assert(zero(int, sys_time_ns(CLOCK_MONOTONIC, &end_ns)));
	passed_ms = (end_ns - begin_ns) / 1000000;
	cr_expect(ge(u64, told_ms, 5));
	cr_expect(le(u64, told_ms, passed_ms));
	cr_expect(ge(u64, told_ms, passed_ms / 2));
}
