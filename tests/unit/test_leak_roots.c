/*
 * The roots of the leak scan in handmade lists of regions and threads.
 */
#include "arch.h"
#include "heap/leak_roots.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <unistd.h>

#define RED_ZONE 128
#define ABOVE	 4096 /* what is scanned of a thread's data */
#define TLS	 0x100

/* Two stacks with data above, one stack of the first thread, and data of an object.
 * Nothing is at these addresses. */
static struct leak_roots_region regions[] = {
	{ .low = 0x10000, .high = 0x18000, .writable = true },
	{ .low = 0x20000, .high = 0x28000, .writable = true, .is_data = true },
	{ .low = 0x28000, .high = 0x2a000, .writable = true },
	{ .low = 0x30000, .high = 0x38000, .writable = true, .is_stack = true },
	{ .low = 0x40000, .high = 0x48000, .writable = true },
	{ .low = 0x48000, .high = 0x49000, .is_file = true },
	{ .low = 0x49000, .high = 0x4a000 },
};

#define REGIONS (sizeof(regions) / sizeof(*regions))

struct range {
	uintptr_t low, high;
};

struct ranges {
	struct range at[16];
	unsigned count;
	unsigned most; /* then the scan ends */
};

static bool note(uintptr_t low, uintptr_t high, void *argument)
{
	struct ranges *ranges = argument;

	cr_assert(lt(u32, ranges->count, 16));
	ranges->at[ranges->count++] = (struct range){ low, high };
	return ranges->count < ranges->most;
}

static struct leak_roots roots_of(struct leak_roots_thread *thread)
{
	return (struct leak_roots){
		.regions = regions,
		.region_count = REGIONS,
		.first_thread_size = TLS,
		.threads = thread,
		.thread_count = thread ? 1 : 0,
	};
}

/* The data of the object is the first root; the calling thread's stack is the second
 * if @sp is in a region. */
static void expect_ranges(struct leak_roots_thread *thread, uintptr_t sp,
			  const struct range *wanted, const char *name)
{
	struct leak_roots roots = roots_of(thread);
	struct ranges got = { .most = 16 };
	unsigned count = 0;

	cr_expect(leak_roots_each(&roots, sp, note, &got), "%s", name);
	while (count < 8 && wanted[count].high)
		count++;
	cr_expect(eq(u32, got.count, count + 1), "%s", name);
	cr_expect(eq(u64, got.at[0].low, 0x20000), "%s", name);
	cr_expect(eq(u64, got.at[0].high, 0x28000), "%s", name);
	for (unsigned i = 0; i < count && i + 1 < got.count; i++) {
		cr_expect(eq(u64, got.at[i + 1].low, wanted[i].low), "%s: %u",
			  name, i);
		cr_expect(eq(u64, got.at[i + 1].high, wanted[i].high), "%s: %u",
			  name, i);
	}
}

Test(leak_roots, the_stack_of_the_calling_thread_begins_at_its_frame)
{
	static const struct {
		const char *name;
		uintptr_t sp;
		struct range wanted[8];
	} cases[] = {
		{ "at the low end", 0x10000, { { 0x10000, 0x18000 } } },
		{ "in the middle", 0x12340, { { 0x12340, 0x18000 } } },
		{ "at the high end", 0x18000, { { 0, 0 } } },
		{ "in no region", 0x1c000, { { 0, 0 } } },
		{ "below all", 0x8000, { { 0, 0 } } },
		{ "unknown", 0, { { 0, 0 } } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_ranges(NULL, cases[i].sp, cases[i].wanted,
			      cases[i].name);
}

/* ARGUMENTS stands for the words of the thread's system call. */
#define ARGUMENTS \
	{ \
		0, 1 \
	}

Test(leak_roots,
     of_another_thread_its_stack_its_data_and_its_arguments_are_roots)
{
	static const struct {
		const char *name;
		struct leak_roots_thread thread;
		struct range wanted[8];
	} cases[] = {
		{ "data above its stack",
		  { .sp = 0x12000, .data = 0x14000 },
		  { { 0x12000 - RED_ZONE, 0x14000 + ABOVE }, ARGUMENTS } },
		{ "data at the end of its stack",
		  { .sp = 0x12000, .data = 0x17800 },
		  { { 0x12000 - RED_ZONE, 0x18000 }, ARGUMENTS } },
		{ "data that fill the rest",
		  { .sp = 0x12000, .data = 0x17000 },
		  { { 0x12000 - RED_ZONE, 0x18000 }, ARGUMENTS } },
		{ "a stack at the low end",
		  { .sp = 0x10000 + RED_ZONE, .data = 0x17000 },
		  { { 0x10000, 0x18000 }, ARGUMENTS } },
		{ "a stack elsewhere",
		  { .sp = 0x42000, .data = 0x14000 },
		  { { 0x10000, 0x14000 + ABOVE },
		    { 0x42000 - RED_ZONE, 0x48000 },
		    ARGUMENTS } },
		{ "a stack above its data",
		  { .sp = 0x16000 + RED_ZONE, .data = 0x14000 },
		  { { 0x10000, 0x14000 + ABOVE },
		    { 0x16000, 0x18000 },
		    ARGUMENTS } },
		{ "a stack right above its data",
		  { .sp = 0x15000 + RED_ZONE, .data = 0x14000 },
		  { { 0x10000, 0x14000 + ABOVE },
		    { 0x15000, 0x18000 },
		    ARGUMENTS } },
		{ "data in no region",
		  { .sp = 0x42000, .data = 0x1c000 },
		  { { 0x42000 - RED_ZONE, 0x48000 }, ARGUMENTS } },
		{ "data at the end of a region",
		  { .sp = 0x42000, .data = 0x18000 },
		  { { 0x42000 - RED_ZONE, 0x48000 }, ARGUMENTS } },
		{ "unknown data",
		  { .sp = 0x42000 },
		  { { 0x42000 - RED_ZONE, 0x48000 }, ARGUMENTS } },
		{ "an unknown stack",
		  { .data = 0x14000 },
		  { { 0x10000, 0x14000 + ABOVE }, ARGUMENTS } },
		{ "a stack of less than a red zone",
		  { .sp = RED_ZONE - 1, .data = 0x14000 },
		  { { 0x10000, 0x14000 + ABOVE }, ARGUMENTS } },
		{ "nothing known", { .sp = 0 }, { ARGUMENTS } },
		{ "an ended one",
		  { .sp = 0x42000, .data = 0x14000, .has_ended = true },
		  { { 0x14000, 0x14000 + ABOVE } } },
		{ "an ended one at the end of its region",
		  { .data = 0x17001, .has_ended = true },
		  { { 0x17001, 0x18000 } } },
		{ "an ended one in no region",
		  { .data = 0x18000, .has_ended = true },
		  { { 0, 0 } } },
		{ "an ended one below all",
		  { .data = 0x8000, .has_ended = true },
		  { { 0, 0 } } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct leak_roots_thread thread = cases[i].thread;
		struct range wanted[8];

		memcpy(wanted, cases[i].wanted, sizeof(wanted));
		for (unsigned j = 0; j < 8; j++)
			if (wanted[j].high == 1)
				wanted[j] = (struct range){
					(uintptr_t)thread.arguments,
					(uintptr_t)thread.arguments +
						6 * sizeof(uintptr_t),
				};
		expect_ranges(&thread, 0, wanted, cases[i].name);
	}
}

/* Its data are in a mapping of their own, with other things below. */
Test(leak_roots, of_the_first_thread_all_of_its_stack_is_a_root_while_it_runs)
{
	static const struct {
		const char *name;
		struct leak_roots_thread thread;
		struct range wanted[8];
	} cases[] = {
		{ "it sleeps",
		  { .sp = 0x32000, .data = 0x14000 },
		  { { 0x14000 - TLS, 0x14000 + ABOVE },
		    { 0x32000 - RED_ZONE, 0x38000 },
		    ARGUMENTS } },
		{ "it runs",
		  { .data = 0x14000 },
		  { { 0x14000 - TLS, 0x14000 + ABOVE },
		    ARGUMENTS,
		    { 0x30000, 0x38000 } } },
		{ "its data begin the mapping",
		  { .data = 0x10000 + TLS },
		  { { 0x10000, 0x10000 + TLS + ABOVE },
		    ARGUMENTS,
		    { 0x30000, 0x38000 } } },
		{ "its mapping has less",
		  { .data = 0x10000 + TLS - 1 },
		  { { 0x10000, 0x10000 + TLS - 1 + ABOVE },
		    ARGUMENTS,
		    { 0x30000, 0x38000 } } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct leak_roots_thread thread = cases[i].thread;
		struct range wanted[8];

		thread.tid = (uint32_t)getpid();
		memcpy(wanted, cases[i].wanted, sizeof(wanted));
		for (unsigned j = 0; j < 8; j++)
			if (wanted[j].high == 1)
				wanted[j] = (struct range){
					(uintptr_t)thread.arguments,
					(uintptr_t)(thread.arguments + 6),
				};
		expect_ranges(&thread, 0, wanted, cases[i].name);
	}
}

Test(leak_roots, none_follows_the_one_that_ended_the_scan)
{
	struct leak_roots_thread threads[] = {
		{ .tid = (uint32_t)getpid(), .data = 0x14000 },
		{ .sp = 0x42000, .data = 0x14000 },
		{ .data = 0x14000, .has_ended = true },
	};
	struct leak_roots roots = roots_of(threads);
	struct ranges got;

	roots.thread_count = 3;
	/* The object's data, the calling thread's stack, and those of the threads. */
	for (unsigned most = 1; most <= 9; most++) {
		got = (struct ranges){ .most = most };
		cr_expect(not(leak_roots_each(&roots, 0x12000, note, &got)));
		cr_expect(eq(u32, got.count, most));
	}
	got = (struct ranges){ .most = 10 };
	cr_expect(leak_roots_each(&roots, 0x12000, note, &got));
	cr_expect(eq(u32, got.count, 9));
}

Test(leak_roots, what_regions_without_files_contain_is_readable)
{
	static const struct {
		uintptr_t low, high;
		bool wanted;
	} cases[] = {
		{ 0x10000, 0x18000, true },  { 0x10000, 0x18001, false },
		{ 0xffff, 0x10001, false },  { 0x17fff, 0x18000, true },
		{ 0x20000, 0x2a000, true },  { 0x27000, 0x29000, true },
		{ 0x27000, 0x2a001, false }, { 0x46000, 0x48000, true },
		{ 0x46000, 0x48001, false }, { 0x48000, 0x48008, false },
		{ 0x49000, 0x4a000, true },  { 0x49000, 0x4a001, false },
		{ 0x8000, 0x8008, false },   { 0x1a000, 0x1a008, false },
	};
	struct leak_roots roots = roots_of(NULL);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect(eq(int,
			     leak_is_readable(&roots, cases[i].low,
					      cases[i].high),
			     cases[i].wanted),
			  "%zx to %zx", cases[i].low, cases[i].high);
}
