/*
 * Call sites in a handmade image in memory: pages with the index of its
 * functions, its code, and the GOT slots of its hooks.
 */
#define _GNU_SOURCE
#include "dispatch/call_counters.h"
#include "dispatch/call_sites.h"
#include "dispatch/hook_table.h"
#include "dispatch/patch.h"
#include "dispatch/scan.h"
#include "fake_sys.h"
#include "image/image.h"
#include "os/tasks.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <errno.h>
#include <shim/builtin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ARCH_GENERIC

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

/* Offsets in the image. */
enum {
	INDEX = 0x0000,	 /* .eh_frame_hdr */
	FRAMES = 0x0100, /* .eh_frame */
	TEXT = 0x1000,
	STUBS = TEXT,
	CODE = TEXT + 0x100,
	TEXT_SIZE = 0x12000,
	DATA = TEXT + TEXT_SIZE,
	DYNAMIC = DATA + 0x100,
	SYMBOLS = DATA + 0x300,
	STRINGS = DATA + 0x400,
	RELOCATIONS = DATA + 0x500,
	SIZE = DATA + 0x1000,
	ENTER = DATA + 0x80, /* slots */
	LEAVE = DATA + 0x88,
};

static unsigned char *image;
static unsigned char text[TEXT_SIZE]; /* the code before any switching */
static uint32_t functions;
static uint32_t frames_end;

static void put(uint32_t offset, const void *bytes, size_t size)
{
	memcpy(image + offset, bytes, size);
}

static void put32(uint32_t offset, uint32_t value)
{
	put(offset, &value, sizeof(value));
}

/* Writes an instruction of @size bytes at @offset, with a distance to
 * @target. */
static void put_far(uint32_t offset, const char *opcode, uint32_t target)
{
	size_t size = strlen(opcode);

	put(offset, opcode, size);
	put32(offset + (uint32_t)size, target - (offset + (uint32_t)size + 4));
}

/* [start, end) is a function.  Call this in ascending order. */
static void add_function(uint32_t start, uint32_t end)
{
	uint32_t entry = frames_end, pair = INDEX + 12 + functions * 8;

	put32(entry, 16);
	put32(entry + 4, entry + 4 - FRAMES);
	put32(entry + 8, start - (entry + 8));
	put32(entry + 12, end - start);
	put32(pair, start - INDEX);
	put32(pair + 4, entry - INDEX);
	frames_end = entry + 20;
	put32(INDEX + 8, ++functions);
}

static void make_index(void)
{
	static const unsigned char cie[] = {
		20, 0,	  0,  0, 0,    0,    0, 0, 1,	 'z', 'R', 0,
		1,  0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0,
	};
	static const unsigned char head[] = { 1, 0x1b, 0x03, 0x3b };

	put(INDEX, head, sizeof(head));
	put32(INDEX + 4, FRAMES - (INDEX + 4));
	put(FRAMES, cie, sizeof(cie));
	frames_end = FRAMES + sizeof(cie);
	functions = 0;
}

/* hook_table.c finds the slots through these entries. */
static void make_dynamic(void)
{
	static const char names[] =
		"\0__cyg_profile_func_enter\0__cyg_profile_func_exit";
	const Elf64_Sym symbols[] = { { 0 },
				      { .st_name = 1 },
				      { .st_name = 26 } };
	const Elf64_Rela relocations[] = {
		{ ENTER, ELF64_R_INFO(1ul, R_X86_64_JUMP_SLOT), 0 },
		{ LEAVE, ELF64_R_INFO(2ul, R_X86_64_GLOB_DAT), 0 },
	};
	const Elf64_Dyn dynamic[] = {
		{ DT_SYMTAB, { (uintptr_t)image + SYMBOLS } },
		{ DT_STRTAB, { (uintptr_t)image + STRINGS } },
		{ DT_JMPREL, { (uintptr_t)image + RELOCATIONS } },
		{ DT_PLTRELSZ, { sizeof(relocations) } },
		{ DT_NULL, { 0 } },
	};
	const uintptr_t slots[] = { (uintptr_t)__cyg_profile_func_enter,
				    (uintptr_t)__cyg_profile_func_exit };

	put(DYNAMIC, dynamic, sizeof(dynamic));
	put(SYMBOLS, symbols, sizeof(symbols));
	put(STRINGS, names, sizeof(names));
	put(RELOCATIONS, relocations, sizeof(relocations));
	put(ENTER, slots, sizeof(slots));
}

/* Stubs as three linkers write them; each kind follows the previous one. */
enum {
	STUB_PLAIN = STUBS + 16,
	STUB_BND = STUBS + 32,
	STUB_MOLD = STUBS + 48,
};

static void make_stubs(void)
{
	put_far(STUBS, "\xff\x35", DATA);
	put_far(STUBS + 6, "\xff\x25", DATA + 8);
	put_far(STUB_PLAIN, "\xff\x25", ENTER);
	put_far(STUB_BND, "\xf3\x0f\x1e\xfa\xf2\xff\x25", LEAVE);
	put(STUB_MOLD, "\xf3\x0f\x1e\xfa\x41\xbb\x07\x00\x00\x00", 10);
	put_far(STUB_MOLD + 10, "\xff\x25", ENTER);
	add_function(STUBS, STUBS + 64);
}

/* Two functions with a call site of each kind, and with code that only
 * resembles one. */
enum {
	FIRST = CODE,
	SECOND = TEXT + 0x10004, /* just less than 64 KiB after a stub */
	CALL_ENTER = FIRST + 2,
	CALL_MOLD = FIRST + 8,
	CALL_OTHER = FIRST + 16,
	CALL_INSIDE = FIRST + 24, /* leads into the middle of a stub */
	CALL_SLOT = FIRST + 32,
	CALL_PREFIX = FIRST + 41, /* with a byte before it */
	JUMP_LEAVE = FIRST + 50,
	JUMP_LAST = FIRST + 58,
	FIRST_END = JUMP_LAST + 6,
	CUT_OFF = SECOND + 30, /* extends beyond its function */
	SECOND_END = CUT_OFF + 4,
	NOWHERE = SECOND + 64,
	OVERLAP = SECOND + 10, /* two instructions that share bytes */
	SECOND_CALL = SECOND + 1,
	GOOD = 7,
	BAD = 4,
};

static void make_code(void)
{
	memset(image + CODE, 0x90, TEXT_SIZE - 0x100);
	put_far(CALL_ENTER, "\xe8", STUB_PLAIN);
	put_far(CALL_MOLD, "\xe8", STUB_MOLD);
	put_far(CALL_OTHER, "\xe8", FIRST);
	put_far(CALL_INSIDE, "\xe8", STUB_PLAIN + 2);
	put_far(CALL_SLOT, "\xff\x15", ENTER);
	put_far(CALL_PREFIX - 1, "\x67\xe8", STUB_BND);
	put_far(JUMP_LEAVE, "\xe9", STUB_BND);
	put_far(JUMP_LAST, "\xff\x25", LEAVE);
	add_function(FIRST, FIRST_END);
	put_far(SECOND_CALL, "\xe8", STUB_BND);
	put_far(CUT_OFF, "\xe8", STUB_BND);
	put_far(NOWHERE, "\xe8", STUB_BND);
	add_function(SECOND, SECOND_END);
}

static const uint32_t sites[GOOD] = { CALL_ENTER,  CALL_MOLD,  CALL_SLOT,
				      CALL_PREFIX, JUMP_LEAVE, JUMP_LAST,
				      SECOND_CALL };
static const unsigned char bytes_off[GOOD] = { 0xa9, 0xa9, 0x85, 0xa9,
					       0xc3, 0xc3, 0xa9 };

static struct call_sites_image about;

static void add_image(bool may_go)
{
	about = (struct call_sites_image){
		.start = (uintptr_t)image,
		.end = (uintptr_t)image + SIZE,
		.frames = (uintptr_t)image + INDEX,
		.may_go = may_go,
	};
	call_sites_add(&about);
}

static void make_image(void)
{
	struct hook_table_image bind;

	/* Inaccessible pages separate it from its neighbours. */
	image = mmap(NULL, SIZE + 0x2000, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	image += 0x1000;
	mprotect(image, SIZE, PROT_READ | PROT_WRITE);
	make_index();
	make_dynamic();
	make_stubs();
	make_code();
	memcpy(text, image + TEXT, sizeof(text));
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_EXEC);
	bind = (struct hook_table_image){
		.bias = (uintptr_t)image,
		.dynamic = (uintptr_t)image + DYNAMIC,
		.dynamic_size = 5 * sizeof(Elf64_Dyn),
	};
	hook_table_bind(&bind);
	add_image(false);
}

static bool is_as_before(void)
{
	return memcmp(image + TEXT, text, sizeof(text)) == 0;
}

/* Whether exactly the sites of @off, one bit each, are off. */
static bool is_off(unsigned off)
{
	static unsigned char wanted[TEXT_SIZE];

	memcpy(wanted, text, sizeof(text));
	for (unsigned i = 0; i < GOOD; i++)
		if (off & 1u << i)
			wanted[sites[i] - TEXT] = bytes_off[i];
	return memcmp(image + TEXT, wanted, sizeof(text)) == 0;
}

#define ALL ((1u << GOOD) - 1)

static void change_text(uint32_t offset, const void *bytes, size_t size)
{
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_WRITE);
	put(offset, bytes, size);
	memcpy(text, image + TEXT, sizeof(text));
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_EXEC);
}

/* The protection of [low, high), as r, w and x. */
static const char *protection_of_range(unsigned long low, unsigned long high)
{
	static char found[5];
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], its[5];

	strcpy(found, "none");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, its) == 3 &&
		    start <= low && end >= high)
			snprintf(found, sizeof(found), "%.3s", its);
	fclose(maps);
	return found;
}

static const char *protection_of(const unsigned char *code)
{
	return protection_of_range((unsigned long)code,
				   (unsigned long)code + 1);
}

/* That of all its code. */
static const char *protection(void)
{
	return protection_of_range((unsigned long)image + TEXT,
				   (unsigned long)image + DATA);
}

Test(sites, what_leads_to_a_hook_inside_a_function_is_switched,
     .init = make_image)
{
	struct call_sites_state state;

	cr_assert(eq(int, call_sites_switch_all(false), 0));
	cr_assert(is_off(ALL));
	state = sites_state();
	cr_assert(eq(u32, state.sites, GOOD));
	cr_assert(eq(u32, state.off, GOOD));
	cr_assert(eq(u32, state.rejected, 2));
	cr_assert(eq(u32, state.images, 1));
	cr_assert(eq(u32, state.images_unwritable, 0));
	cr_assert(eq(int, call_sites_switch_all(true), 0));
	cr_assert(is_as_before());
	cr_assert(eq(u32, sites_state().off, 0));
}

Test(sites, nothing_is_looked_for_before_something_is_switched,
     .init = make_image)
{
	unsigned before = fake_calls;

	cr_assert(eq(int, call_sites_switch_all(true), 0));
	cr_assert(eq(int, call_sites_unfilter_all(), 0));
	call_sites_settle();
	cr_assert(eq(u32, sites_state().sites, 0));
	cr_assert(le(uint, fake_calls - before, 1));
}

/* Code without an index of its functions, so that its end alone decides. */
enum {
	EDGE_MAX = 40,
	EDGE_STUB = 0x20,
	EDGE_SLOT = 0x400,
};

/* What scan_calls finds. */
struct edge_calls {
	unsigned count;
	uintptr_t address;
	enum scan_kind kind;
};

static bool note_call(uintptr_t address, enum scan_kind kind, void *argument)
{
	struct edge_calls *calls = argument;

	calls->count++;
	calls->address = address;
	calls->kind = kind;
	return true;
}

/* Of @size bytes at address 0x1000, where the last @length are @opcode and a distance to
 * @target, the search gets the first @end. */
static struct view edge_code(const char *opcode, uintptr_t target, size_t size,
			     size_t length, size_t end)
{
	static unsigned char code[EDGE_MAX + 8];
	size_t prefix = strlen(opcode);
	int32_t distance = (int32_t)(target - (0x1000 + size));

	cr_assert(eq(sz, length, prefix + 4));
	memset(code, 0x90, sizeof(code));
	memcpy(code + size - length, opcode, prefix);
	memcpy(code + size - 4, &distance, 4);
	return (struct view){ 0x1000, end, code };
}

Test(sites, a_stub_is_found_if_the_code_contains_all_of_it)
{
	static const struct {
		const char *opcode;
		size_t length;
		unsigned starts;
	} stubs[] = {
		{ "\xff\x25", 6, 1 },
		{ "\xf2\xff\x25", 7, 2 },
		{ "\xf3\x0f\x1e\xfa\xff\x25", 10, 2 },
		{ "\xf3\x0f\x1e\xfa\xf2\xff\x25", 11, 3 },
		{ "\x41\xbb\x07\x01\x01\x01\xff\x25", 12, 2 },
	};

	for (size_t i = 0; i < sizeof(stubs) / sizeof(*stubs); i++)
		for (size_t size = stubs[i].length; size <= EDGE_MAX; size++)
			for (size_t end = size - 5; end <= size + 1; end++) {
				struct view view = edge_code(
					stubs[i].opcode, EDGE_SLOT, size,
					stubs[i].length, end);
				struct scan scan = { .slots = { EDGE_SLOT },
						     .slot_count = 1 };
				struct frames none = { .count = 0 };

				scan_stubs(&scan, &view, &none);
				cr_expect(eq(u32, scan.stub_count,
					     end < size ? 0 : stubs[i].starts),
					  "%zu: %zu of %zu", i, end, size);
			}
}

Test(sites, a_call_is_found_if_the_code_contains_all_of_it)
{
	static const struct {
		const char *opcode;
		size_t length;
		uintptr_t target;
		enum scan_kind kind;
	} calls[] = {
		{ "\xe8", 5, EDGE_STUB, SCAN_CALL },
		{ "\xe9", 5, EDGE_STUB, SCAN_JUMP },
		{ "\xff\x15", 6, EDGE_SLOT, SCAN_CALL_SLOT },
		{ "\xff\x25", 6, EDGE_SLOT, SCAN_JUMP_SLOT },
	};
	const struct scan scan = {
		.slots = { EDGE_SLOT },
		.slot_count = 1,
		.stubs = { EDGE_STUB },
		.stub_count = 1,
		.stubs_low = EDGE_STUB,
		.stubs_high = EDGE_STUB,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (size_t size = calls[i].length; size <= EDGE_MAX; size++)
			for (size_t end = size - 4; end <= size + 1; end++) {
				struct view view = edge_code(
					calls[i].opcode, calls[i].target, size,
					calls[i].length, end);
				struct edge_calls found = { 0, 0, 0 };

				scan_calls(&scan, &view, note_call, &found);
				cr_expect(eq(u32, found.count, end >= size),
					  "%zu: %zu of %zu", i, end, size);
				if (end < size)
					continue;
				cr_expect(eq(u64, found.address,
					     0x1000 + size - calls[i].length));
				cr_expect(eq(int, (int)found.kind,
					     (int)calls[i].kind));
			}
}

Test(sites, an_image_without_hooks_is_not_remembered)
{
	static const struct call_sites_image other = { 0x10000, 0x20000, 0,
						       false };

	call_sites_add(&other);
	cr_assert(eq(u32, sites_state().images, 0));
	cr_assert(eq(int, call_sites_switch_call(0x10010, false), -ENOENT));
}

Test(sites, of_two_that_overlap_none_is_taken, .init = make_image)
{
	/* The distance back to a stub ends in ff, and ff 15 also begins a
	 * call. */
	unsigned char both[10] = { 0xe8, 0, 0, 0, 0, 0x15 };
	int32_t to_stub = STUB_PLAIN - (OVERLAP + 5);
	int32_t to_slot = ENTER - (OVERLAP + 10);

	memcpy(both + 1, &to_stub, 4);
	memcpy(both + 6, &to_slot, 4);
	change_text(OVERLAP, both, sizeof(both));
	cr_assert(eq(int, call_sites_switch_all(false), 0));
	cr_assert(is_off(ALL));
	cr_assert(eq(u32, sites_state().rejected, 4));
}

Test(sites, a_filtered_call_stays_off_when_all_are_on, .init = make_image)
{
	const uintptr_t base = (uintptr_t)image;

	cr_assert(eq(int, call_sites_switch_call(base + CALL_MOLD + 5, false),
		     0));
	cr_assert(is_off(1 << 1));
	cr_assert(eq(int, call_sites_switch_call(base + CALL_SLOT + 6, false),
		     0));
	cr_assert(is_off(1 << 1 | 1 << 2));
	cr_assert(eq(u32, sites_state().off, 2));
	call_sites_switch_all(false);
	cr_assert(is_off(ALL));
	/* It cannot be switched on while all sites are off. */
	cr_assert(
		eq(int, call_sites_switch_call(base + CALL_MOLD + 5, true), 0));
	cr_assert(is_off(ALL));
	call_sites_switch_all(true);
	cr_assert(is_off(1 << 2));
	cr_assert(eq(int, call_sites_unfilter_all(), 0));
	cr_assert(is_as_before());
}

Test(sites, the_jumps_of_a_function_are_switched_together, .init = make_image)
{
	const uintptr_t base = (uintptr_t)image;

	cr_assert(eq(int, call_sites_switch_jumps(base + FIRST, false), 2));
	cr_assert(eq(int, call_sites_switch_jumps(base + FIRST, false),
		     -EALREADY));
	cr_assert(is_off(1 << 4 | 1 << 5));
	cr_assert(eq(int, call_sites_switch_jumps(base + FIRST, true), 2));
	cr_assert(is_as_before());
}

/* The compiler has split the first function.  Its part loads its address for the leave
 * hook, before a call and a jump. */
Test(sites, jumps_of_a_part_are_throttled_with_their_function,
     .init = make_image)
{
	enum {
		LOAD = SECOND + 6,
		PART_CALL = SECOND + 14,
		PART_JUMP = SECOND + 20
	};
	const struct shim_hook_call jumps = { (uintptr_t)image + FIRST, 0 };
	unsigned char code[CUT_OFF - LOAD];

	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_WRITE);
	put_far(LOAD, "\x48\x8d\x3d", FIRST);
	put_far(PART_CALL, "\xe8", STUB_BND);
	put_far(PART_JUMP, "\xe9", STUB_BND);
	memcpy(code, image + LOAD, sizeof(code));
	change_text(LOAD, code, sizeof(code));
	cr_assert(eq(int, call_sites_throttle(&jumps, 1, false), 0));
	cr_expect(eq(u8, image[JUMP_LEAVE], 0xc3));
	cr_expect(eq(u8, image[JUMP_LAST], 0xc3));
	cr_expect(eq(u8, image[PART_JUMP], 0xc3));
	cr_expect(eq(u8, image[PART_CALL], 0xe8));
	cr_expect(eq(u8, image[SECOND_CALL], 0xe8));
	cr_assert(eq(int, call_sites_throttle(&jumps, 1, true), 0));
	cr_assert(is_as_before());
}

/* Calls the counting code as a site would, with a thread's @counters. */
static uintptr_t target_of(uint32_t offset)
{
	int32_t distance;

	memcpy(&distance, image + offset + 1, sizeof(distance));
	return (uintptr_t)image + offset + 5 + (uintptr_t)(intptr_t)distance;
}

Test(sites, a_call_that_is_counted_reaches_its_counter, .init = make_image)
{
	const struct shim_hook_call call = { 0, (uintptr_t)image + CALL_ENTER +
							5 };
	struct shim_counted_call counted = { call.address, 0, 7, 0 };
	static uint64_t counters[SHIM_COUNTERS];
	void (*code)(void *function, void *site);
	uintptr_t to;

	cr_assert(eq(int, call_sites_count(&counted, 1), 0));
	cr_assert(eq(u8, image[CALL_ENTER], 0xe8));
	to = target_of(CALL_ENTER);
	cr_assert(call_counters_have(to));
	cr_assert(not(call_counters_have((uintptr_t)image + CODE)));
	call_counters = counters;
	memcpy(&code, &to, sizeof(code));
	code(NULL, NULL);
	code(NULL, NULL);
	call_counters = NULL;
	cr_assert(eq(u64, counters[7], 2));
	cr_assert(eq(u64, counters[6] + counters[8], 0));
	/* Off keeps the counter's distance, on has the hook's again. */
	cr_assert(eq(int, call_sites_throttle(&call, 1, false), 0));
	cr_assert(eq(u8, image[CALL_ENTER], 0xa9));
	cr_assert(eq(int, call_sites_throttle(&call, 1, true), 0));
	cr_assert(is_as_before());
	cr_assert(eq(int, call_sites_count(&counted, 1), 0));
	cr_assert(eq(int, call_sites_unthrottle_all(), 0));
	cr_assert(is_as_before());
}

Test(sites, all_off_includes_calls_that_are_counted, .init = make_image)
{
	const struct shim_hook_call call = { 0, (uintptr_t)image + CALL_ENTER +
							5 };
	struct shim_counted_call counted = { call.address, 0, 7, 0 };
	uintptr_t to;

	cr_assert(eq(int, call_sites_count(&counted, 1), 0));
	to = target_of(CALL_ENTER);
	cr_assert(eq(int, call_sites_switch_all(false), 0));
	cr_assert(eq(u8, image[CALL_ENTER], 0xa9));
	cr_assert(eq(int, call_sites_switch_all(true), 0));
	cr_assert(eq(u8, image[CALL_ENTER], 0xe8));
	cr_assert(eq(u64, target_of(CALL_ENTER), to));
	cr_assert(eq(int, call_sites_throttle(&call, 1, true), 0));
	cr_assert(is_as_before());
}

Test(sites, only_a_call_through_a_stub_is_counted, .init = make_image)
{
	struct shim_counted_call calls[] = {
		{ (uintptr_t)image + CALL_SLOT + 6, 0, 7, 1 },
		{ (uintptr_t)image + CALL_OTHER + 5, 0, 7, 1 },
		{ 0, 0, 7, 1 },
	};

	cr_assert(eq(int, call_sites_count(&calls[0], 1), -ENOTSUP));
	cr_assert(eq(int, call_sites_count(&calls[1], 1), -ENOENT));
	cr_assert(eq(int, call_sites_count(&calls[2], 1), -ENOENT));
	for (unsigned i = 0; i < 3; i++)
		cr_expect(eq(u32, calls[i].is_counted, 0));
	cr_assert(is_as_before());
}

Test(sites, calls_are_counted_beside_one_that_cannot_be, .init = make_image)
{
	struct shim_counted_call calls[] = {
		{ (uintptr_t)image + CALL_SLOT + 6, 0, 7, 0 },
		{ (uintptr_t)image + CALL_ENTER + 5, 0, 8, 0 },
	};

	cr_assert(eq(int, call_sites_count(calls, 2), -ENOTSUP));
	cr_assert(eq(u32, calls[0].is_counted, 0));
	cr_assert(eq(u32, calls[1].is_counted, 1));
	cr_assert(call_counters_have(target_of(CALL_ENTER)));
	cr_assert(eq(int, call_sites_unthrottle_all(), 0));
	cr_assert(is_as_before());
}

/* Stores what counting a call does as system calls in @names, from the second on. */
static void count_enter(char *names, unsigned room)
{
	struct shim_counted_call call = { (uintptr_t)image + CALL_ENTER + 5, 0,
					  7, 0 };

	/* The first time, it makes the code that counts. */
	cr_assert(eq(int, call_sites_count(&call, 1), 0));
	cr_assert(eq(int, call_sites_unthrottle_all(), 0));
	fake_fail(0, 0, false);
	fake_note_names(names, room);
	cr_assert(eq(int, call_sites_count(&call, 1), 0));
	fake_note_names(NULL, 0);
	cr_assert(eq(u32, call.is_counted, 1));
	cr_assert(call_counters_have(target_of(CALL_ENTER)));
	cr_assert(eq(int, call_sites_unthrottle_all(), 0));
	cr_assert(is_as_before());
}

/* Whether code was written three times (off, the distance, on), and the processors were
 * synchronized each time, before the next. */
static bool is_synchronized(const char *names)
{
	unsigned written = 0, synchronized = 0;

	for (; *names; names++) {
		if (*names == 'w' && written++ != synchronized)
			return false;
		if (*names == 's' && ++synchronized != written)
			return false;
	}
	return written == 3 && synchronized == 3;
}

/* While a call is off, the calls of other threads are lost; and a write through
 * /proc/self/mem may be several stores.  (Criterion has a thread, too.) */
Test(sites, with_threads_a_call_changes_by_one_store, .init = make_image)
{
	char names[64] = "";

	cr_assert(not(tasks_are_one()));
	count_enter(names, sizeof(names));
	cr_assert(memchr(names, 'p', sizeof(names)) != NULL);
	cr_assert(memchr(names, 'w', sizeof(names)) == NULL);
	/* Then the processors are synchronized. */
	cr_assert(strchr(strrchr(names + 1, 'p'), 's') != NULL);
}

Test(sites, a_process_of_one_thread_has_no_writable_code, .init = make_image)
{
	char names[64] = "";
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (!tasks_are_one())
			_exit(2);
		count_enter(names, sizeof(names));
		_exit(memchr(names, 'p', sizeof(names)) ||
		      !is_synchronized(names + 1));
	}
	waitpid(child, &status, 0);
	cr_assert(eq(int, status, 0));
}

Test(sites, with_threads_a_distance_in_two_lines_stays, .init = make_image)
{
	const uint32_t at = FIRST + 60;
	struct shim_counted_call call = { (uintptr_t)image + at + 5, 0, 7, 0 };

	mprotect(image, SIZE, PROT_READ | PROT_WRITE);
	put_far(at, "\xe8", STUB_PLAIN);
	/* The function is longer. */
	put32(FRAMES + 24 + 20 + 12, 80);
	mprotect(image, SIZE, PROT_READ | PROT_EXEC);
	cr_assert(eq(int, call_sites_count(&call, 1), -ENOTSUP));
	cr_assert(eq(u32, call.is_counted, 0));
	cr_assert(eq(u8, image[at], 0xe8));
	cr_assert(not(call_counters_have(target_of(at))));
}

/* mov -8(%rsp), %r9 behind the call of FIRST at @load, then @compare, whose last four bytes are
 * @address, and its function's end at @end. */
static void read_return(uint32_t load, const char *compare, uint32_t address,
			uint32_t end)
{
	mprotect(image, SIZE, PROT_READ | PROT_WRITE);
	put(load, "\x4c\x8b\x4c\x24\xf8", 5);
	put(load + 5, compare, 3);
	put32(load + 8, address);
	put32(FRAMES + 24 + 20 + 12, end - FIRST);
	memcpy(text, image + TEXT, sizeof(text));
	mprotect(image, SIZE, PROT_READ | PROT_EXEC);
}

#define LEA_R10 "\x4c\x8d\x15" /* N(%rip) */
#define CMP_R9	"\x49\x81\xf9"

Test(sites, a_call_whose_return_address_is_read_stays_on, .init = make_image)
{
	const uintptr_t after = (uintptr_t)image + CALL_PREFIX + 5;
	const struct shim_hook_call call = { 0, after };
	struct shim_counted_call counted = { after, 0, 7, 0 };

	read_return(CALL_PREFIX + 5 + 100, LEA_R10, -112u,
		    CALL_PREFIX + 5 + 119);
	cr_assert(eq(int, call_sites_switch_call(after, false), -ENOTSUP));
	cr_assert(eq(int, call_sites_throttle(&call, 1, false), -ENOTSUP));
	cr_assert(eq(int, call_sites_throttle(&call, 1, true), 0));
	cr_assert(eq(int, call_sites_count(&counted, 1), -ENOTSUP));
	cr_assert(is_as_before());
	cr_assert(call_sites_is_hook(after));
	/* A jump has no code behind it. */
	call_sites_switch_all(false);
	cr_assert(eq(u8, image[CALL_PREFIX], 0xe8));
	cr_assert(eq(u8, image[JUMP_LEAVE], 0xc3));
	call_sites_switch_all(true);
	cr_assert(is_as_before());
}

Test(sites, a_call_whose_return_address_is_compared_stays_on,
     .init = make_image)
{
	const uintptr_t after = (uintptr_t)image + CALL_PREFIX + 5;

	read_return(CALL_PREFIX + 5 + 100, CMP_R9, (uint32_t)after,
		    CALL_PREFIX + 5 + 116);
	cr_assert(eq(int, call_sites_switch_call(after, false), -ENOTSUP));
}

/* It may be of a local variable, or of another call's return address. */
Test(sites, a_load_alone_is_of_no_return_address, .init = make_image)
{
	const uintptr_t after = (uintptr_t)image + CALL_PREFIX + 5;

	read_return(CALL_PREFIX + 5 + 100, LEA_R10, -111u,
		    CALL_PREFIX + 5 + 119);
	cr_assert(eq(int, call_sites_switch_call(after, false), 0));
	cr_assert(is_off(1 << 3));
}

Test(sites, what_another_function_reads_is_no_return_address,
     .init = make_image)
{
	const uintptr_t after = (uintptr_t)image + CALL_PREFIX + 5;

	read_return(FIRST_END, CMP_R9, (uint32_t)after, FIRST_END + 4);
	cr_assert(eq(int, call_sites_switch_call(after, false), 0));
	cr_assert(is_off(1 << 3));
}

Test(sites, what_is_no_site_is_refused, .init = make_image)
{
	const uintptr_t base = (uintptr_t)image;

	cr_expect(eq(int, call_sites_switch_call(base + CALL_OTHER + 5, false),
		     -ENOENT));
	cr_expect(eq(int, call_sites_switch_call(base + JUMP_LEAVE + 5, false),
		     -ENOENT));
	cr_expect(eq(int, call_sites_switch_call(base + NOWHERE + 5, false),
		     -ENOENT));
	cr_expect(eq(int, call_sites_switch_call(base, false), -ENOENT));
	cr_expect(eq(int, call_sites_switch_call(1, false), -ENOENT));
	cr_expect(eq(int, call_sites_switch_jumps(base + SECOND, false),
		     -ENOENT));
	cr_expect(eq(int, call_sites_switch_jumps(base + FIRST + 1, false),
		     -ENOENT));
	cr_expect(
		eq(int, call_sites_switch_jumps(base + SIZE, false), -ENOENT));
	cr_expect(is_as_before());
}

Test(sites, a_breakpoint_on_a_site_stays, .init = make_image)
{
	change_text(CALL_ENTER, "\xcc", 1);
	/* The sites were found before the breakpoint was set. */
	change_text(CALL_ENTER, "\xe8", 1);
	call_sites_switch_all(false);
	call_sites_switch_all(true);
	change_text(CALL_ENTER, "\xcc", 1);
	call_sites_switch_all(false);
	cr_assert(is_off(ALL & ~1u));
	call_sites_switch_all(true);
	cr_assert(is_as_before());
}

Test(sites, an_image_that_is_gone_is_not_touched, .init = make_image)
{
	call_sites_switch_all(false);
	call_sites_remove(about.start, about.start + 1);
	cr_assert(eq(u32, sites_state().images, 0));
	munmap(image, SIZE);
	cr_assert(eq(int, call_sites_switch_all(true), 0));
}

Test(sites, one_that_comes_while_all_are_off_is_switched_off,
     .init = make_image)
{
	call_sites_remove(about.start, about.end);
	call_sites_switch_all(false);
	cr_assert(is_as_before());
	add_image(true);
	cr_assert(is_as_before());
	call_sites_settle();
	cr_assert(is_off(ALL));
}

Test(sites, what_may_go_waits_until_nothing_is_being_closed, .init = make_image)
{
	call_sites_remove(about.start, about.end);
	add_image(true);
	image_closing();
	cr_assert(eq(int, call_sites_switch_all(false), -EBUSY));
	cr_assert(eq(int,
		     call_sites_switch_call(about.start + CALL_MOLD + 5, false),
		     -EBUSY));
	call_sites_settle();
	cr_assert(is_as_before());
	cr_assert(eq(u32, sites_state().sites, 0), "it was looked at");
	image_closed(false);
	cr_assert(is_off(ALL));
	image_closing();
	cr_assert(eq(int, call_sites_switch_all(true), -EBUSY));
	cr_assert(is_off(ALL));
	image_closed(false);
	cr_assert(is_as_before());
}

Test(sites, a_forked_child_knows_what_is_off, .init = make_image)
{
	call_sites_switch_call((uintptr_t)image + CALL_MOLD + 5, false);
	call_sites_switch_all(false);
	call_sites_fork_begin();
	call_sites_add(&about);
	call_sites_fork_end();
	cr_assert(eq(u32, sites_state().off, GOOD));
	call_sites_switch_all(true);
	cr_assert(is_off(1 << 1));
	/* A thread of the parent had written this byte, and had not yet noted
	 * it. */
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_WRITE);
	image[CALL_SLOT] = 0x85;
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_EXEC);
	call_sites_fork_begin();
	call_sites_add(&about);
	call_sites_fork_end();
	call_sites_settle();
	cr_assert(is_off(1 << 1));
	call_sites_fork_begin();
	call_sites_fork_end();
	cr_assert(eq(u32, sites_state().images, 0));
}

/* Whatever the index contains, nothing outside of it is read, and only code
 * that resembles a site is changed. */
Test(sites, a_damaged_index_does_no_harm, .init = make_image, .timeout = 120)
{
	static const unsigned char values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };

	for (uint32_t at = INDEX; at < frames_end; at++) {
		unsigned char before = image[at];

		if (at == INDEX + 12 + functions * 8)
			at = FRAMES;
		before = image[at];
		for (unsigned i = 0; i < sizeof(values); i++) {
			image[at] = values[i];
			call_sites_remove(about.start, about.end);
			add_image(i % 2 != 0);
			call_sites_switch_all(false);
			cr_assert(le(u32, sites_state().sites, GOOD + BAD));
			call_sites_switch_all(true);
			cr_assert(is_as_before(), "byte %#x is %#x", at,
				  values[i]);
		}
		image[at] = before;
	}
}

/* The entry of the second function begins before its pair and covers more. */
Test(sites, an_entry_that_begins_elsewhere_is_not_believed, .init = make_image)
{
	uint32_t entry = frames_end - 20, value;

	memcpy(&value, image + entry + 8, 4);
	put32(entry + 8, value - 16);
	put32(entry + 12, 256);
	call_sites_switch_all(false);
	cr_assert(is_off(ALL & ~(1u << 6)));
}

/* The index is on the heap and cut off anywhere, so that a sanitizer detects
 * reads beyond its end. */
Test(sites, an_index_is_not_read_behind_its_end, .init = make_image)
{
	for (size_t size = 1; size <= frames_end; size++) {
		unsigned char *copy = malloc(size);
		const struct view view = { (uintptr_t)image, size, copy };
		struct frame_range range;
		struct frames frames;

		memcpy(copy, image, size);
		if (fde_open(&frames, &view, (uintptr_t)image + INDEX)) {
			bool found = fde_find(
				&frames, (uintptr_t)image + SECOND + 1, &range);

			cr_assert(eq(int, found, size == frames_end));
		}
		free(copy);
	}
}

/* If a system call fails, another way puts the byte back. */
static int put_back(void *unused)
{
	bool has_failed = true;

	(void)unused;
	for (unsigned n = 1; n < 200 && has_failed; n++) {
		unsigned char before = image[FIRST];

		fake_fail(n, EPERM, false);
		cr_expect(
			eq(int,
			   patch_put_back((uintptr_t)image + FIRST, before ^ 1),
			   0),
			"call %u", n);
		has_failed = fake_failed() != NULL;
		fake_fail(0, 0, false);
		text[FIRST - TEXT] = before ^ 1;
		cr_assert(is_as_before(), "call %u", n);
		cr_expect(eq(str, (char *)protection(), "r-x"), "call %u", n);
	}
	cr_expect(not(has_failed));
	fake_fail(1, EPERM, true);
	cr_expect(eq(int,
		     patch_put_back((uintptr_t)image + FIRST,
				    text[FIRST - TEXT] ^ 1),
		     -EPERM));
	fake_fail(0, 0, false);
	cr_expect(is_as_before());
	return 0;
}

/* Without /proc, the kernel stores into a page that the program has made writable, or
 * shim makes it writable for a moment. */
static int put_back_otherwise(void *unused)
{
	static const char *const protections[] = { "r-x", "rwx" };

	(void)unused;
	for (int i = 0; i < 2; i++) {
		unsigned char other = image[FIRST] ^ 1;

		mprotect(image + TEXT, TEXT_SIZE,
			 PROT_READ | PROT_EXEC | (i ? PROT_WRITE : 0));
		fake_file("/proc/self/maps", "", 1);
		fake_fail(1, EPERM, false);
		cr_expect(eq(int,
			     patch_put_back((uintptr_t)image + FIRST, other),
			     0));
		cr_expect(eq(str, (char *)fake_failed(), "open"));
		fake_fail(0, 0, false);
		text[FIRST - TEXT] = other;
		cr_expect(is_as_before());
		cr_expect(
			eq(int,
			   strcmp(protection_of(image + FIRST), protections[i]),
			   0),
			"%s", protections[i]);
	}
	return 0;
}

Test(sites, a_byte_of_code_is_put_back_without_proc, .init = make_image)
{
	state_call_locked(put_back_otherwise, NULL);
}

Test(sites, a_byte_of_code_is_put_back_without_any_single_system_call,
     .init = make_image)
{
	state_call_locked(put_back, NULL);
}

Test(sites, pages_without_sites_are_not_written, .init = make_image)
{
	static char names[64];
	unsigned writes = 0;

	call_sites_switch_all(false);
	fake_fail(0, 0, false);
	fake_note_names(names, sizeof(names));
	call_sites_switch_all(true);
	fake_note_names(NULL, 0);
	for (unsigned i = 0; i < sizeof(names); i++)
		writes += names[i] == 'w';
	cr_assert(eq(uint, writes, 2));
}

Test(sites, without_an_index_no_site_is_taken, .init = make_image)
{
	call_sites_remove(about.start, about.end);
	about.frames = 0;
	call_sites_add(&about);
	cr_assert(eq(int, call_sites_switch_all(false), -ENOEXEC));
	cr_assert(is_as_before());
	cr_assert(eq(u32, sites_state().images_unwritable, 1));
	cr_assert(eq(int,
		     call_sites_switch_call(about.start + CALL_MOLD + 5, false),
		     -EACCES));
}

Test(sites, code_that_cannot_be_read_is_left_alone, .init = make_image)
{
	mprotect(image + TEXT, TEXT_SIZE, PROT_EXEC);
	cr_assert(eq(int, call_sites_switch_all(false), -ENOEXEC));
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_EXEC);
	cr_assert(is_as_before());
}

Test(sites, code_that_is_shared_is_left_alone, .init = make_image)
{
	mmap(image + TEXT, TEXT_SIZE, PROT_READ | PROT_WRITE,
	     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	put(TEXT, text, sizeof(text));
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_EXEC);
	cr_assert(eq(int, call_sites_switch_all(false), -ENOEXEC));
	cr_assert(is_as_before());
}

/* Each system call of switching all sites, and one call, fails in turn: the
 * switch must succeed or report the failure, and the next attempt must complete
 * it. */
static void fail_each(int error, bool for_good)
{
	unsigned failures = 0;

	for (unsigned n = 1;; n++) {
		const char *failed;
		int r;

		call_sites_remove(about.start, about.end);
		add_image(n % 2 != 0);
		fake_fail(n, error, for_good);
		r = call_sites_switch_all(false);
		failed = fake_failed();
		fake_fail(0, 0, false);
		if (!failed) {
			call_sites_switch_all(true);
			break;
		}
		failures += r < 0;
		cr_assert(r < 0 || is_off(ALL), "call %u (%s)", n, failed);
		cr_assert(eq(str, (char *)protection(), "r-x"), "call %u (%s)",
			  n, failed);
		cr_assert(eq(int, call_sites_switch_all(true), 0), "%s",
			  failed);
		cr_assert(is_as_before(), "call %u (%s)", n, failed);
		cr_assert(eq(int, call_sites_switch_all(false), 0), "%s",
			  failed);
		cr_assert(is_off(ALL), "call %u (%s)", n, failed);
		call_sites_switch_all(true);
	}
	cr_assert(gt(uint, failures, 1));
}

Test(sites, any_system_call_may_fail, .init = make_image)
{
	fail_each(EPERM, false);
	fail_each(EIO, false);
}

Test(sites, all_system_calls_may_fail_from_one_on, .init = make_image)
{
	fail_each(EPERM, true);
}

Test(sites, an_interrupted_write_is_tried_again, .init = make_image)
{
	call_sites_switch_all(false);
	call_sites_switch_all(true);
	fake_fail(2, EINTR, false);
	cr_assert(eq(int, call_sites_switch_all(false), 0));
	cr_assert(eq(str, (char *)fake_failed(), "write_at"));
	cr_assert(is_off(ALL));
	/* open, three times write, close, and the number of processors; no
	 * other way */
	cr_assert(eq(uint, fake_calls, 6));
}

/* The other way to write, through a change of the page protection. */
Test(sites, without_proc_mem_the_code_is_made_writable_for_a_moment,
     .init = make_image)
{
	call_sites_switch_all(false);
	call_sites_switch_all(true);
	fake_fail(1, EACCES, false);
	cr_assert(eq(int, call_sites_switch_all(false), 0));
	cr_assert(eq(str, (char *)fake_failed(), "open"));
	cr_assert(is_off(ALL));
	cr_assert(eq(str, (char *)protection(), "r-x"));
}

Test(sites, protections_that_the_program_chose_stay, .init = make_image)
{
	mprotect(image + TEXT, TEXT_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
	call_sites_switch_all(false);
	fake_fail(1, EACCES, false);
	cr_assert(eq(int, call_sites_switch_all(true), 0));
	cr_assert(is_as_before());
	cr_assert(eq(str, (char *)protection(), "rwx"));
}

#endif
