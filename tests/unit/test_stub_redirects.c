/*
 * Stubs of linkers in handmade code, which jump through slots that nothing reads.
 */
#include "dispatch/stub_redirects.h"
#include "fake_sys.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __x86_64__

/* Between the program and the libraries. */
#define START  0x200000000000ull
#define SIZE   0x60000u
#define SLOTS  (START + 0x70000)
#define KINDS  4
#define OURS   0x1234000
#define PIECES 64 /* of 8 stubs: all that there is room for */

static const struct {
	const char *code;
	unsigned distance_at;
} kinds[KINDS] = {
	{ "\xff\x25", 2 },
	{ "\xf2\xff\x25", 3 },
	{ "\xf3\x0f\x1e\xfa\xff\x25", 6 },
	{ "\xf3\x0f\x1e\xfa\xf2\xff\x25", 7 },
};

static uintptr_t slot_of(unsigned number)
{
	return SLOTS + number * 8;
}

/* Puts a stub of slot @number at @address. */
static void put_stub(uintptr_t address, unsigned kind, unsigned number)
{
	uintptr_t at = address + kinds[kind].distance_at;
	int32_t distance = (int32_t)(slot_of(number) - (at + 4));

	memcpy((void *)address, kinds[kind].code, kinds[kind].distance_at);
	memcpy((void *)at, &distance, 4);
}

/* The slot through which the stub at @address jumps. */
static uintptr_t slot_now(uintptr_t address, unsigned kind)
{
	uintptr_t at = address + kinds[kind].distance_at;
	int32_t distance;

	memcpy(&distance, (void *)at, 4);
	return at + 4 + (uintptr_t)(intptr_t)distance;
}

static uintptr_t stub_at(unsigned i)
{
	return START + 16 + i * 16;
}

static void make_code(void)
{
	cr_assert(eq(
		ptr,
		mmap((void *)START, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		(void *)START));
	memset((void *)START, 0x90, SIZE);
	for (unsigned i = 0; i < KINDS; i++)
		put_stub(stub_at(i), i, i);
}

static void note_all(void)
{
	stub_redirects_begin();
	for (unsigned i = 0; i < KINDS; i++)
		stub_redirects_note(slot_of(i), OURS + i);
}

static void expect_former(const char *when)
{
	for (unsigned i = 0; i < KINDS; i++)
		cr_expect(eq(u64, slot_now(stub_at(i), i), slot_of(i)),
			  "%s: %u", when, i);
}

static void expect_ours(const char *when)
{
	for (unsigned i = 0; i < KINDS; i++) {
		uintptr_t slot = slot_now(stub_at(i), i);

		cr_assert(ne(u64, slot, slot_of(i)), "%s: %u", when, i);
		cr_expect(eq(u64, *(uintptr_t *)slot, OURS + i), "%s: %u", when,
			  i);
	}
}

static int switch_all(void *unused)
{
	(void)unused;
	note_all();
	cr_assert(stub_redirects_make(START, false));
	expect_ours("made");
	stub_redirects_switch(false);
	expect_former("off");
	stub_redirects_switch(true);
	expect_ours("on");
	/* The same image again: nothing leads to the slots any more. */
	note_all();
	cr_expect(not(stub_redirects_make(START, false)));
	expect_ours("again");
	return 0;
}

Test(stub_redirects, each_kind_of_stub_leads_to_shim_while_it_is_on,
     .init = make_code)
{
	state_call_locked(switch_all, NULL);
}

static int make_undone(void *unused)
{
	(void)unused;
	note_all();
	cr_assert(stub_redirects_make(START, true));
	expect_former("undone");
	stub_redirects_switch(true);
	expect_ours("on");
	return 0;
}

Test(stub_redirects, a_detached_shim_changes_them_later, .init = make_code)
{
	state_call_locked(make_undone, NULL);
}

static int refuse(void *unused)
{
	(void)unused;
	stub_redirects_begin();
	cr_expect(stub_redirects_make(0, false));
	note_all();
	cr_expect(not(stub_redirects_make(0, false)));
	expect_former("no code");
	note_all();
	stub_redirects_note(slot_of(KINDS), OURS);
	cr_expect(not(stub_redirects_make(START, false)));
	expect_former("a slot without a stub");
	note_all();
	cr_expect(not(stub_redirects_make(START + 17, false)));
	expect_former("code after the first stub");
	stub_redirects_switch(true);
	expect_former("nothing is kept of these");
	return 0;
}

Test(stub_redirects, if_one_slot_has_no_stub_no_stub_is_changed,
     .init = make_code)
{
	state_call_locked(refuse, NULL);
}

/* One store must change the distance, so it lies in one line of the cache. */
static int try_lines(void *unused)
{
	(void)unused;
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (unsigned at = 0; at < 64; at += 8) {
			unsigned first = at + kinds[kind].distance_at;
			bool is_made;

			memset((void *)START, 0x90, 4096);
			put_stub(START + at, kind, 0);
			stub_redirects_begin();
			stub_redirects_note(slot_of(0), OURS);
			is_made = stub_redirects_make(START, false);
			cr_expect(eq(int, is_made,
				     first / 64 == (first + 3) / 64),
				  "kind %u at %u", kind, at);
			cr_expect(eq(int, is_made,
				     slot_now(START + at, kind) != slot_of(0)),
				  "kind %u at %u", kind, at);
			stub_redirects_forget(START, START + SIZE);
		}
	return 0;
}

Test(stub_redirects, a_distance_in_two_lines_of_the_cache_stays,
     .init = make_code)
{
	state_call_locked(try_lines, NULL);
}

/* Stubs are sought in 256 KiB. */
static int try_ends(void *unused)
{
	static const uintptr_t places[] = { 4088, 0x3f000, 0x3fff0, 0x40000 - 8,
					    0x40000 + 8 };

	(void)unused;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		memset((void *)START, 0x90, SIZE);
		put_stub(START + places[i], 0, 0);
		stub_redirects_begin();
		stub_redirects_note(slot_of(0), OURS);
		cr_expect(eq(int, stub_redirects_make(START, false),
			     places[i] < 0x40000),
			  "at %zx", places[i]);
		stub_redirects_forget(START, START + SIZE);
	}
	return 0;
}

Test(stub_redirects, stubs_are_sought_in_256_kib, .init = make_code)
{
	state_call_locked(try_ends, NULL);
}

static int forget(void *unused)
{
	(void)unused;
	note_all();
	cr_assert(stub_redirects_make(START, false));
	stub_redirects_forget(START - 4096, stub_at(0) + 2);
	stub_redirects_forget(stub_at(KINDS - 1) + 8, START + SIZE);
	stub_redirects_switch(false);
	expect_former("all are kept");
	stub_redirects_forget(START, START + SIZE);
	stub_redirects_switch(true);
	expect_former("all are gone");
	return 0;
}

Test(stub_redirects, stubs_go_with_their_object, .init = make_code)
{
	state_call_locked(forget, NULL);
}

static uintptr_t stub_of(unsigned piece, unsigned number)
{
	return START + piece * 0x1000 + number * 16;
}

static int fill(void *unused)
{
	(void)unused;
	memset((void *)START, 0x90, SIZE);
	for (unsigned piece = 0; piece <= PIECES; piece++) {
		uintptr_t stub = stub_of(piece, 0);

		stub_redirects_begin();
		for (unsigned i = 0; i < 8 && (piece < PIECES || i < 1); i++) {
			put_stub(stub_of(piece, i), 0, piece * 8 + i);
			stub_redirects_note(slot_of(piece * 8 + i), OURS);
		}
		cr_expect(eq(int, stub_redirects_make(stub, false),
			     piece < PIECES),
			  "%u", piece);
		cr_expect(eq(int, slot_now(stub, 0) == slot_of(piece * 8),
			     piece == PIECES),
			  "%u", piece);
	}
	return 0;
}

Test(stub_redirects, there_is_room_for_512)
{
	cr_assert(eq(
		ptr,
		mmap((void *)START, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		(void *)START));
	state_call_locked(fill, NULL);
}

static int fail_once(void *unused)
{
	unsigned refused = 0;
	bool is_made, has_failed;

	(void)unused;
	for (unsigned n = 1; n < 300; n++) {
		note_all();
		fake_fail(n, EPERM, false);
		is_made = stub_redirects_make(START, false);
		has_failed = fake_failed() != NULL;
		fake_fail(0, 0, false);
		refused += !is_made;
		if (is_made)
			expect_ours("made");
		else
			expect_former("refused");
		stub_redirects_switch(false);
		expect_former("off");
		stub_redirects_forget(START, START + SIZE);
		if (!has_failed)
			break;
	}
	cr_expect(is_made);
	cr_expect(not(has_failed));
	cr_expect(gt(u32, refused, 0));
	return 0;
}

Test(stub_redirects, a_call_that_fails_leaves_all_stubs_or_none,
     .init = make_code)
{
	state_call_locked(fail_once, NULL);
}

#endif
