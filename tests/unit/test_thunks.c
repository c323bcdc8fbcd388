/*
 * The thunk of no-ops at an entry (arch/x86_64/entries.c): it calls hooks, or counts.
 */
#include "arch.h"
#include "sources/thunks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __x86_64__

#define COUNTERS 8

/* Where the thunk goes: each returns a number, or what it was told in r11. */
#define FUNCTION "\xb8\x01\x00\x00\x00\xc3" /* mov $1, %eax; ret */
#define HOOK	 "\x4c\x89\xd8\xc3"	    /* mov %r11, %rax; ret */
#define NO_COUNT "\x49\x8d\x43\x01\xc3"	    /* lea 1(%r11), %rax; ret */

static struct page {
	unsigned char thunk[THUNK_SIZE], next[THUNK_SIZE];
	unsigned char function[64], hook[64], no_count[64];
	struct thunk_data data;
	uintptr_t slot;
} * page;

static __thread uint64_t *counters;
static uint64_t counts[COUNTERS];

static void make_thunk(void)
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
	thunk_put(page->thunk,
		  &(struct thunk_code){
			  .data = &page->data,
			  .counter = &page->data.counter,
			  .slot = &page->slot,
			  .resume = (uintptr_t)page->function,
			  .counters = (intptr_t)((uintptr_t)&counters -
						 arch_thread_pointer()),
		  });
}

/* As the jump of a mark, in a function that returns. */
static uintptr_t jump(void)
{
	uintptr_t (*call)(void);
	void *thunk = page->thunk;

	memcpy(&call, &thunk, sizeof(call));
	return call();
}

static void count_at_entry(void)
{
	page->data.word = (uintptr_t)page->thunk + THUNK_COUNTS;
}

Test(thunks, hooks_are_told_the_data, .init = make_thunk)
{
	page->data.word = (uintptr_t)page->hook;
	counters = counts;
	cr_assert(eq(ulong, jump(), (uintptr_t)&page->data));
	for (unsigned i = 0; i < COUNTERS; i++)
		cr_expect(eq(u64, counts[i], 0));
}

Test(thunks, a_call_is_counted_in_its_counter_and_goes_on, .init = make_thunk)
{
	count_at_entry();
	counters = counts;
	for (unsigned i = 0; i < 5; i++)
		cr_assert(eq(ulong, jump(), 1));
	page->data.counter = 7 * sizeof(uint64_t);
	cr_assert(eq(ulong, jump(), 1));
	for (unsigned i = 0; i < COUNTERS; i++)
		cr_expect(eq(u64, counts[i], i == 3 ? 5 : i == 7));
}

Test(thunks, without_counters_the_hook_is_told_the_data, .init = make_thunk)
{
	count_at_entry();
	counters = NULL;
	cr_assert(eq(ulong, jump(), (uintptr_t)&page->data + 1));
}

Test(thunks, nothing_behind_a_thunk_is_written, .init = make_thunk)
{
	for (unsigned i = 0; i < THUNK_SIZE; i++)
		cr_expect(eq(u8, page->next[i], 0xcc));
}

#endif
