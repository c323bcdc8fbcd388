/*
 * Finds the calls of the compiler's hooks, which shim switches off by replacing the
 * first byte:
 *
 *     call rel32       e8 ....       a9  test $..., %eax
 *     call *slot       ff 15 ....    85  test %edx, slot
 *     jmp rel32        e9 ....       c3  ret
 *     jmp *slot        ff 25 ....    c3  ret
 *
 * test changes only the flags, which are dead at a call.  A prefix (67 before a call,
 * f2 before a jump) has no effect on either instruction.
 *
 * The search compares eight bytes at once in general registers, because vector
 * registers belong to the program.
 */
#include "dispatch/scan.h"

#include <shim/banned.h>

#define BYTES(value) (0x0101010101010101ull * (value))

const struct scan_form scan_forms[SCAN_KINDS] = {
	[SCAN_CALL] = { 0xe8, 0xa9, 5, false },
	[SCAN_CALL_SLOT] = { 0xff, 0x85, 6, false },
	[SCAN_JUMP] = { 0xe9, 0xc3, 5, true },
	[SCAN_JUMP_SLOT] = { 0xff, 0xc3, 6, true },
};

/* Sets the highest bit of each byte that is 0; other bytes get it only above such a
 * byte. */
static inline uint64_t zero_bytes(uint64_t word)
{
	return (word - BYTES(0x01)) & ~word & BYTES(0x80);
}

static inline uint64_t word_at(const unsigned char *bytes)
{
	uint64_t word;

	__builtin_memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The target of an instruction that ends with the 4-byte @offset, at address @place. */
static inline uintptr_t target_of(const unsigned char *offset, uintptr_t place)
{
	int32_t distance;

	__builtin_memcpy(&distance, offset, sizeof(distance));
	return place + 4 + (uintptr_t)(intptr_t)distance;
}

static bool is_slot(const struct scan *scan, uintptr_t address)
{
	for (unsigned i = 0; i < scan->slot_count; i++)
		if (scan->slots[i] == address)
			return true;
	return false;
}

static inline bool is_stub(const struct scan *scan, uintptr_t address)
{
	if (address - scan->stubs_low > scan->stubs_high - scan->stubs_low)
		return false;
	for (unsigned i = 0; i < scan->stub_count; i++)
		if (scan->stubs[i] == address)
			return true;
	return false;
}

/* --- stubs --- */

static bool is_landing(const unsigned char *bytes)
{
	return bytes && bytes[0] == 0xf3 && bytes[1] == 0x0f &&
	       bytes[2] == 0x1e && bytes[3] == 0xfa;
}

/*
 * Whether @address is in a section of PLT stubs.  Unwind tables describe such a section
 * as one function or not at all.  It begins with a stub, or with the code that resolves
 * stubs; compiled functions begin with neither.
 */
static bool is_in_stubs(const struct view *text, struct frames *frames,
			uintptr_t address)
{
	struct frame_range range;
	const unsigned char *first;

	if (!fde_find(frames, address, &range))
		return true;
	first = view_at(text, range.start, 8);
	if (!first)
		return false;
	if (is_landing(first))
		first += 4;
	if (first[0] == 0xf2)
		first++;
	return (first[0] == 0xff && (first[1] == 0x25 || first[1] == 0x35)) ||
	       /* mold's stubs: the slot's number goes to r11 */
	       (first[0] == 0x41 && (first[1] == 0xbb || first[1] == 0x53));
}

static void add_stub(struct scan *scan, uintptr_t address)
{
	if (scan->stub_count == SCAN_STUBS_MAX)
		return;
	scan->stubs[scan->stub_count++] = address;
	if (scan->stub_count == 1 || address < scan->stubs_low)
		scan->stubs_low = address;
	if (address > scan->stubs_high)
		scan->stubs_high = address;
}

/* Adds the stub that ends with jmp *slot at @address, and each of its possible starts:
 * endbr64, then bnd or mov $..., %r11d. */
static void note_stub(struct scan *scan, const struct view *text,
		      uintptr_t address)
{
	const unsigned char *before;

	add_stub(scan, address);
	before = view_at(text, address - 1, 1);
	if (before && before[0] == 0xf2)
		add_stub(scan, --address);
	before = view_at(text, address - 6, 2);
	if (before && before[0] == 0x41 && before[1] == 0xbb)
		add_stub(scan, address -= 6);
	if (is_landing(view_at(text, address - 4, 4)))
		add_stub(scan, address - 4);
}

static void look_for_stub(struct scan *scan, const struct view *text,
			  struct frames *frames, size_t at)
{
	const unsigned char *bytes = text->bytes + at;

	if (at + 6 <= text->size && bytes[0] == 0xff && bytes[1] == 0x25 &&
	    is_slot(scan, target_of(bytes + 2, text->start + at + 2)) &&
	    is_in_stubs(text, frames, text->start + at))
		note_stub(scan, text, text->start + at);
}

void scan_stubs(struct scan *scan, const struct view *text,
		struct frames *frames)
{
	size_t at = 0;

	/* Searches for ff 25. */
	for (; at + 9 <= text->size; at += 8) {
		uint64_t hits = zero_bytes(
			~word_at(text->bytes + at) |
			(word_at(text->bytes + at + 1) ^ BYTES(0x25)));

		for (; hits; hits &= hits - 1)
			look_for_stub(scan, text, frames,
				      at + (unsigned)__builtin_ctzll(hits) / 8);
	}
	for (; at < text->size; at++)
		look_for_stub(scan, text, frames, at);
}

/* --- calls --- */

struct finder {
	const struct scan *scan;
	const struct view *text;
	bool (*found)(uintptr_t address, enum scan_kind kind, void *argument);
	void *argument;
};

static inline bool look_for_call(const struct finder *finder, size_t at)
{
	const unsigned char *bytes = finder->text->bytes + at;
	uintptr_t address = finder->text->start + at;
	enum scan_kind kind;

	if ((bytes[0] & 0xfe) == 0xe8) {
		if (at + 5 > finder->text->size ||
		    !is_stub(finder->scan, target_of(bytes + 1, address + 1)))
			return true;
		kind = bytes[0] == 0xe8 ? SCAN_CALL : SCAN_JUMP;
	} else {
		if (at + 6 > finder->text->size || bytes[0] != 0xff ||
		    (bytes[1] != 0x15 && bytes[1] != 0x25) ||
		    !is_slot(finder->scan, target_of(bytes + 2, address + 2)) ||
		    is_stub(finder->scan, address))
			return true;
		kind = bytes[1] == 0x15 ? SCAN_CALL_SLOT : SCAN_JUMP_SLOT;
	}
	return finder->found(address, kind, finder->argument);
}

/*
 * The upper half of the distance from a block of code to the stubs.  Stubs are close
 * together, so their calls in a block usually share it.  Without this test the search
 * would stop in vain at one word in four.
 */
struct upper {
	uint64_t mask;		/* 0: there is more than one */
	uint64_t third, fourth; /* its two bytes, each repeated 8 times */
};

static struct upper upper_half(const struct scan *scan, uintptr_t low,
			       uintptr_t high)
{
	uint32_t least = (uint32_t)((scan->stubs_low - (high + 5)) >> 16);
	uint32_t most = (uint32_t)((scan->stubs_high - (low + 5)) >> 16);

	return (struct upper){
		.mask = least == most ? ~0ull : 0,
		.third = BYTES(least & 0xff),
		.fourth = BYTES(least >> 8 & 0xff),
	};
}

/* Finds e8 or e9 with the upper half, if there is only one; and ff followed by 15 or 25
 * (or 05 or 35).  Reads 12 bytes. */
static inline uint64_t find_hits(const unsigned char *bytes,
				 const struct upper *upper)
{
	uint64_t word = word_at(bytes);

	return zero_bytes(
		       ((word & BYTES(0xfe)) ^ BYTES(0xe8)) |
		       (upper->mask & ((word_at(bytes + 3) ^ upper->third) |
				       (word_at(bytes + 4) ^ upper->fourth)))) |
	       zero_bytes(~word |
			  ((word_at(bytes + 1) & BYTES(0xcf)) ^ BYTES(0x05)));
}

#define BLOCK 4096u

void scan_calls(const struct scan *scan, const struct view *text,
		bool (*found)(uintptr_t address, enum scan_kind kind,
			      void *argument),
		void *argument)
{
	const struct finder finder = { scan, text, found, argument };
	struct upper upper = { 0 };
	size_t at = 0;

	for (; at + 12 <= text->size; at += 8) {
		uint64_t hits;

		if (at % BLOCK == 0)
			upper = upper_half(scan, text->start + at,
					   text->start + at + BLOCK);
		hits = find_hits(text->bytes + at, &upper);
		for (; hits; hits &= hits - 1)
			if (!look_for_call(
				    &finder,
				    at + (unsigned)__builtin_ctzll(hits) / 8))
				return;
	}
	for (; at < text->size; at++)
		if (!look_for_call(&finder, at))
			return;
}

/* --- behind a call --- */

/* The load, and what compares it, are behind those of registers that the call has changed. */
#define LOAD_WITHIN 160u

/* An instruction with the word at -8(%rsp), as a rule mov. */
static bool is_load(const unsigned char *code)
{
	return (code[0] & 0xfb) == 0x48 && (code[2] & 0xc7) == 0x44 &&
	       code[3] == 0x24 && code[4] == 0xf8;
}

/* Whether the four bytes at @code + @at, where @start is the address of @code, tell @start: as
 * the last of lea N(%rip), or as an immediate value.  Reads two bytes before them. */
static bool is_start(const unsigned char *code, size_t at, uintptr_t start)
{
	uint32_t value = (uint32_t)word_at(code + at);
	bool is_lea = code[at - 2] == 0x8d && (code[at - 1] & 0xc7) == 0x05;

	return value == (is_lea ? -(uint32_t)(at + 4) : (uint32_t)start);
}

/* A load alone may be of a local variable, in a function that calls no other one. */
bool scan_reads_return(const struct view *text, uintptr_t start, uintptr_t end)
{
	size_t size = end - start < LOAD_WITHIN ? end - start : LOAD_WITHIN;
	const unsigned char *code = view_at(text, start, size);
	bool is_loaded = false;

	for (size_t at = 2; code && at + 8 <= size; at++) {
		is_loaded |= code[at + 2] == 0xf8 && is_load(code + at - 2);
		if (is_loaded && is_start(code, at, start))
			return true;
	}
	return false;
}
