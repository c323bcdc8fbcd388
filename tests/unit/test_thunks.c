/*
 * The thunks of entries (arch/x86_64/entries.c): of no-ops, and those with a switch.  They
 * call hooks, or count.
 */
#include "arch.h"
#include "sources/thunks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __x86_64__

#define COUNTERS 8

/* Where a thunk goes: each returns a number, or what it was told in r11. */
#define FUNCTION "\xb8\x01\x00\x00\x00\xc3" /* mov $1, %eax; ret */
#define HOOK	 "\x4c\x89\xd8\x41\x5b\xc3" /* mov %r11, %rax; pop %r11; ret */
#define MOVED	 "\x4c\x89\xd8\xc3"	    /* mov %r11, %rax; ret */
#define NO_COUNT \
	"\x49\x8d\x43\x01\x41\x5b\xc3" /* lea 1(%r11), %rax; pop %r11; ret */

static struct page {
	unsigned char thunk[THUNK_SIZE], next[THUNK_SIZE];
	unsigned char patched[PATCHED_SIZE], behind[PATCHED_SIZE];
	unsigned char function[64], hook[64], no_count[64];
	struct thunk_data data;
	uintptr_t slot;
} * page;

static __thread uint64_t *counters;
static uint64_t counts[COUNTERS];

static void make_page(void)
{
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(ne(ptr, page, MAP_FAILED));
	memset(page, 0xcc, sizeof(*page));
	memcpy(page->function, FUNCTION, sizeof(FUNCTION));
	memcpy(page->hook, HOOK, sizeof(HOOK));
	memcpy(page->no_count, NO_COUNT, sizeof(NO_COUNT));
	page->slot = (uintptr_t)page->no_count;
	page->data = (struct thunk_data){ .counter = 3 * sizeof(uint64_t) };
}

static intptr_t counters_word(void)
{
	return (intptr_t)((uintptr_t)&counters - arch_thread_pointer());
}

static void make_thunk(void)
{
	make_page();
	thunk_put(page->thunk, &(struct thunk_code){
				       .data = &page->data,
				       .counter = &page->data.counter,
				       .slot = &page->slot,
				       .site = (uintptr_t)page->function,
				       .counters = counters_word(),
			       });
}

/* As the jump of a mark, in a function that returns. */
static uintptr_t jump(void *thunk)
{
	uintptr_t (*call)(void);

	memcpy(&call, &thunk, sizeof(call));
	return call();
}

static void count_at_entry(void)
{
	page->data.word = (uintptr_t)page->thunk + THUNK_COUNTS_PUSHED;
}

static void expect_counts(uint64_t third, uint64_t last)
{
	for (unsigned i = 0; i < COUNTERS; i++)
		cr_expect(eq(u64, counts[i],
			     i == 3 ? third :
			     i == 7 ? last :
				      0));
}

Test(thunks, hooks_are_told_the_data, .init = make_thunk)
{
	page->data.word = (uintptr_t)page->hook;
	counters = counts;
	cr_assert(eq(ulong, jump(page->thunk), (uintptr_t)&page->data));
	expect_counts(0, 0);
}

Test(thunks, a_call_is_counted_in_its_counter_and_goes_on, .init = make_thunk)
{
	count_at_entry();
	counters = counts;
	for (unsigned i = 0; i < 5; i++)
		cr_assert(eq(ulong, jump(page->thunk), 1));
	page->data.counter = 7 * sizeof(uint64_t);
	cr_assert(eq(ulong, jump(page->thunk), 1));
	expect_counts(5, 1);
}

Test(thunks, without_counters_the_hook_is_told_the_data, .init = make_thunk)
{
	count_at_entry();
	counters = NULL;
	cr_assert(eq(ulong, jump(page->thunk), (uintptr_t)&page->data + 1));
}

/* jump(), with a value in r11: whether it is there when the function runs. */
static bool keeps_r11(size_t place, uintptr_t word)
{
	uintptr_t thunk = (uintptr_t)page->thunk + place, kept = 0;

	page->data = (struct thunk_data){
		.word = word,
		.counter = 3 * sizeof(uint64_t),
		.resume = (uintptr_t)page->thunk + THUNK_RESUMES,
	};
	__asm__ volatile("mov $0x1234, %%r11d\n\tcall *%1\n\tmov %%r11, %0"
			 : "=&r"(kept)
			 : "r"(thunk)
			 : "rax", "r11", "cc", "memory");
	return kept == 0x1234;
}

Test(thunks, callers_may_keep_a_value_in_r11, .init = make_thunk)
{
	/* add $8, %rsp; jmp *32(%r11), as shim_entry_replace */
	static const unsigned char replaces[] = { 0x48, 0x83, 0xc4, 0x08,
						  0x41, 0xff, 0x63, 0x20 };
	uintptr_t thunk = (uintptr_t)page->thunk;

	memcpy(page->hook, replaces, sizeof(replaces));
	counters = counts;
	cr_expect(eq(int, keeps_r11(0, (uintptr_t)page->hook), 1));
	cr_expect(eq(int, keeps_r11(0, thunk + THUNK_COUNTS_PUSHED), 1));
	cr_expect(eq(int, keeps_r11(THUNK_COUNTS, 0), 1));
	expect_counts(2, 0);
}

Test(thunks, an_unwinder_knows_what_a_thunk_has_pushed, .init = make_thunk)
{
	/* Where instructions begin. */
	static const uint8_t places[] = { 0,  2,  9,  13, 18, 32, 34, 43,
					  46, 48, 55, 58, 60, 65, 72 };
	static const uint8_t pushed[] = { 0, 8, 8, 0, 0, 0, 8, 8,
					  8, 8, 8, 8, 0, 8, 8 };

	for (unsigned i = 0; i < sizeof(places); i++)
		cr_expect(eq(sz, thunk_pushed(places[i]), pushed[i]), "at %u",
			  places[i]);
}

Test(thunks, nothing_behind_a_thunk_is_written, .init = make_thunk)
{
	for (unsigned i = 0; i < THUNK_SIZE; i++)
		cr_expect(eq(u8, page->next[i], 0xcc));
}

/* --- marks of no-ops --- */

#define NO_OP "\x0f\x1f\x44\x00\x00"

static void expect_state(const unsigned char *mark, enum mark_state state)
{
	cr_expect(eq(
		int,
		(int)entry_state(mark, (uintptr_t)mark, (uintptr_t)page->thunk),
		(int)state));
}

/* Where the jump of a mark leads, from the beginning of its thunk. */
static uintptr_t place_of(const unsigned char *mark)
{
	int32_t distance;

	memcpy(&distance, mark + 1, sizeof(distance));
	return (uintptr_t)(mark + ENTRY_SIZE + distance) -
	       (uintptr_t)page->thunk;
}

static void prepare(unsigned char *mark, bool is_counted)
{
	cr_assert(entry_prepare(mark, (uintptr_t)mark, (uintptr_t)page->thunk,
				is_counted));
	cr_assert(eq(ulong, place_of(mark), is_counted ? THUNK_COUNTS : 0));
}

Test(thunks, a_mark_leads_to_the_hooks_or_to_what_counts, .init = make_thunk)
{
	unsigned char *mark = page->behind;

	memcpy(mark, NO_OP, ENTRY_SIZE);
	expect_state(mark, MARK_OFF);
	for (unsigned i = 0; i < 4; i++) {
		prepare(mark, i % 2);
		expect_state(mark, MARK_OFF);
	}
	entry_switch(mark, true);
	for (unsigned i = 0; i < 4; i++) {
		prepare(mark, i % 2);
		expect_state(mark, MARK_ON);
	}
	mark[1]++;
	expect_state(mark, MARK_OTHER);
}

/* The moved instructions return what r11 has: the thunk must leave it alone. */
static void make_patched(void)
{
	static const unsigned char original[ENTRY_SIZE] = { 1, 2, 3, 4, 5 };

	make_page();
	patched_put(page->patched, &(struct patched_code){
					   .slot = &page->slot,
					   .word = &page->data.word,
					   .counter = &page->data.counter,
					   .counters = counters_word(),
					   .original = original,
				   });
	memcpy(page->patched + PATCHED_MOVED, MOVED, sizeof(MOVED) - 1);
}

static uintptr_t jump_patched(unsigned place)
{
	uintptr_t r11 = 0x1234, result;

	page->data.word = (uintptr_t)page->patched + place;
	__asm__ volatile("mov %2, %%r11\n\tcall *%1"
			 : "=a"(result)
			 : "r"(page->patched), "r"(r11)
			 : "r11", "memory", "cc");
	cr_assert(eq(ulong, r11, 0x1234));
	return result;
}

Test(thunks, a_switch_counts_and_runs_the_moved_instructions,
     .init = make_patched)
{
	counters = counts;
	cr_assert(eq(ulong, jump_patched(PATCHED_MOVED), 0x1234));
	expect_counts(0, 0);
	for (unsigned i = 0; i < 5; i++)
		cr_assert(eq(ulong, jump_patched(PATCHED_COUNTS), 0x1234));
	page->data.counter = 7 * sizeof(uint64_t);
	cr_assert(eq(ulong, jump_patched(PATCHED_COUNTS), 0x1234));
	expect_counts(5, 1);
}

/* What hooks get is 8 bytes behind the thunk; the hook here leaves r11 on the stack. */
Test(thunks, a_switch_without_counters_is_that_of_hooks, .init = make_patched)
{
	static const unsigned char pops[] = { 0x41, 0x5a, 0x49, 0x8d,
					      0x43, 0x01, 0xc3 };

	memcpy(page->no_count, pops, sizeof(pops)); /* pop %r10; ... */
	counters = NULL;
	cr_assert(eq(ulong, jump_patched(PATCHED_COUNTS),
		     (uintptr_t)page->patched + 9));
	counters = counts;
	cr_assert(eq(ulong, jump_patched(PATCHED_ON),
		     (uintptr_t)page->patched + 9));
	expect_counts(0, 0);
}

/* What the instructions from @begin on have pushed when @end is next, beside @pushed. */
static size_t push(size_t begin, size_t end, size_t pushed)
{
	for (size_t at = begin; at < end; at++) {
		if (page->patched[at] != 0x41)
			continue;
		pushed += page->patched[at + 1] == 0x53 ? 8 : 0;
		pushed -= page->patched[at + 1] == 0x5b ? 8 : 0;
	}
	return pushed;
}

Test(thunks, an_unwinder_knows_what_a_switch_has_pushed, .init = make_patched)
{
	/* Where instructions begin, and the way there with what was pushed before. */
	static const struct {
		size_t at, begin, pushed;
	} places[] = {
		{ 0, 0, 0 },	 { 8, 8, 0 },	  { 10, 8, 0 },
		{ 17, 8, 0 },	 { 96, 96, 0 },	  { 98, 96, 0 },
		{ 107, 96, 0 },	 { 110, 96, 0 },  { 112, 96, 0 },
		{ 119, 96, 0 },	 { 122, 96, 0 },  { 124, 96, 0 },
		{ 126, 126, 8 }, { 128, 126, 8 },
	};

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
		cr_expect(eq(sz, patched_pushed(places[i].at),
			     push(places[i].begin, places[i].at,
				  places[i].pushed)),
			  "at %zu", places[i].at);
	for (unsigned i = 0; i < PATCHED_SIZE; i++)
		cr_expect(eq(u8, page->behind[i], 0xcc));
}

struct step {
	unsigned char code[4], size;
	int pushes;
};

static const struct step steps[] = {
	{ { 0x41, 0x53 }, 2, 8 },	      /* push %r11 */
	{ { 0x48, 0x83, 0xec, 0x08 }, 4, 8 }, /* sub $8, %rsp */
	{ { 0x8f, 0x45, 0x08 }, 3, -8 },      /* pop 8(%rbp) */
	{ { 0xeb }, 2, 0 },		      /* jmp */
	{ { 0x4c, 0x8d, 0x1d }, 7, 0 },	      /* lea ..., %r11 */
	{ { 0x4c, 0x8b, 0x5c, 0x24 }, 5, 0 }, /* mov -72(%rsp), %r11 */
	{ { 0xff, 0x25 }, 6, 0 },	      /* jmp *... */
};

static const struct step *find_step(const unsigned char *code)
{
	for (unsigned i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		size_t known = 0;

		while (known < 4 && steps[i].code[known])
			known++;
		if (memcmp(code, steps[i].code, known) == 0)
			return &steps[i];
	}
	cr_fatal("unknown code");
	return NULL;
}

/* Follows the code from @at, with @pushed bytes pushed before, to where it leaves the thunk
 * with r11. */
static void follow(size_t at, size_t pushed)
{
	const struct step *step;

	do {
		const unsigned char *code = page->patched + at;

		cr_expect(eq(sz, patched_pushed_by_mcount(page->patched, at),
			     pushed),
			  "at %zu", at);
		step = find_step(code);
		pushed += (size_t)step->pushes;
		at += step->size;
		if (step->code[0] == 0xeb)
			at += (size_t)(signed char)code[1];
	} while (step->code[0] != 0xff || step->code[1] != 0x25);
	cr_expect(eq(sz, pushed, 8));
}

Test(thunks, an_unwinder_knows_what_a_call_of_mcount_has_pushed,
     .init = make_patched)
{
	static const unsigned char original[ENTRY_SIZE];
	struct patched_code code = { .original = original };

	patched_put_mcount(page->patched, &code, &page->slot);
	follow(PATCHED_RESUMES, 8);
	follow(PATCHED_MOVED, 0);
	patched_put_fentry(page->patched, &code, &page->slot);
	follow(PATCHED_RESUMES, 0);
	follow(PATCHED_MOVED, 0);
}

#endif
