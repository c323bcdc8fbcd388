/*
 * The code of marks at entries:
 *
 *     as compiled       5 bytes or more of no-ops, or a call of __fentry__
 *     off, after use    a9 ...  test $distance, %eax    flags are nobody's at an entry
 *     on                e9 ...  jmp thunk
 *
 * Only the first byte switches a mark that was on once, so any processor executes one or
 * the other.  The compiler's no-ops can be several instructions, and a thread may be
 * between two, so the first change needs a time when no other thread runs the code.
 */
#include "sources/entry_code.h"

#include <shim/banned.h>

#define TEST 0xa9
#define JUMP 0xe9
#define POP  0x8f

bool entry_is_known(void)
{
	return true;
}

/* The length of the no-op at @code, or 0: 90, or 0f 1f /0, with prefixes. */
static size_t nop_length(const unsigned char *code, size_t size)
{
	size_t at = 0;
	unsigned char form;

	while (at < size && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (at < size && code[at] == 0x90)
		return at + 1;
	if (size - at < 3 || code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	form = code[at + 2];
	if (form & 0x38)
		return 0;
	at += 3;
	if ((form & 0xc0) != 0xc0 && (form & 7) == 4)
		at++;
	if ((form & 0xc0) == 0x40)
		at++;
	else if ((form & 0xc0) == 0x80 || (form & 0xc7) == 5)
		at += 4;
	return at <= size ? at : 0;
}

size_t entry_nops(const unsigned char *code, size_t size, size_t *first)
{
	size_t at = 0, length;

	*first = nop_length(code, size);
	while (at < size && (length = nop_length(code + at, size - at)) > 0)
		at += length;
	return at;
}

void entry_split(unsigned char *code, size_t size)
{
	static const unsigned char nop[ENTRY_SIZE] = { 0x0f, 0x1f, 0x44, 0, 0 };

	for (size_t i = 0; i < size; i++)
		code[i] = i < sizeof(nop) ? nop[i] : 0x90;
}

size_t entry_call(const unsigned char *code)
{
	if (code[0] == 0xe8)
		return 5;
	return code[0] == 0xff && code[1] == 0x15 ? 6 : 0;
}

/* movabs $..., %r10 or %r11 */
bool entry_call_is_far(const unsigned char *code)
{
	return code[0] == 0x49 && (code[1] == 0xba || code[1] == 0xbb);
}

bool entry_is_landing(const unsigned char *code, size_t *size)
{
	*size = 4;
	return code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e &&
	       code[3] == 0xfa;
}

/* push %r10, and with -fcf-protection a landing pad behind it */
bool entry_saves_chain(const unsigned char *code)
{
	size_t size;

	if (entry_is_landing(code - 4, &size))
		code -= size;
	return code[-2] == 0x41 && code[-1] == 0x52;
}

static int32_t distance_of(uintptr_t address, uintptr_t thunk)
{
	return (int32_t)(thunk - (address + ENTRY_SIZE));
}

/* Whether the code leads to the thunk, on or off. */
static bool leads_to(const unsigned char *code, uintptr_t address,
		     uintptr_t thunk)
{
	int32_t found;

	__builtin_memcpy(&found, code + 1, sizeof(found));
	return thunk && (code[0] == JUMP || code[0] == TEST) &&
	       (found == distance_of(address, thunk) ||
		found == distance_of(address, thunk + THUNK_COUNTS));
}

enum mark_state entry_state(const unsigned char *code, uintptr_t address,
			    uintptr_t thunk)
{
	size_t first;

	if (leads_to(code, address, thunk))
		return code[0] == JUMP ? MARK_ON : MARK_OFF;
	/* The last no-op may go on behind these bytes. */
	return entry_nops(code, ENTRY_SIZE, &first) > 0 || code[0] == 0x66 ||
			       code[0] == 0x2e || code[0] == 0x0f ||
			       entry_call(code) > 0 ?
		       MARK_OFF :
		       MARK_OTHER;
}

bool entry_prepare(unsigned char *code, uintptr_t address, uintptr_t thunk,
		   bool counts)
{
	uintptr_t target = thunk + (counts ? THUNK_COUNTS : 0);
	int64_t wide = (int64_t)(target - (address + ENTRY_SIZE));
	int32_t distance = (int32_t)wide;

	if (wide != distance)
		return false;
	if (!leads_to(code, address, thunk))
		code[0] = TEST;
	__builtin_memcpy(code + 1, &distance, sizeof(distance));
	return true;
}

void entry_switch(unsigned char *code, bool on)
{
	code[0] = on ? JUMP : TEST;
}

/* Writes the distance from the end of these four bytes. */
static void put_distance(unsigned char *at, const void *target)
{
	int32_t distance = (int32_t)((uintptr_t)target - (uintptr_t)(at + 4));

	__builtin_memcpy(at, &distance, sizeof(distance));
}

/*
 * Callers may know that the function leaves r11 alone: gcc's interprocedural register
 * allocation is off with marks, but on again behind #pragma GCC optimize.  So r11 is pushed,
 * and below the stack pointer when it is loaded again.
 *
 *      0  push %r11
 *      2  lea (the data), %r11
 *      9  notrack jmp *(%r11)
 *     13  mov -8(%rsp), %r11           THUNK_RESUMES
 *     18  jmp site
 *     32  push %r11                    THUNK_COUNTS
 *     34  mov %fs:(counters), %r11     THUNK_COUNTS_PUSHED
 *     43  test %r11, %r11
 *     46  jz 65
 *     48  add (the counter), %r11
 *     55  incq (%r11)
 *     58  pop %r11
 *     60  jmp site
 *     65  lea (the data), %r11
 *     72  jmp *(the slot)
 */
void thunk_put(unsigned char *thunk, const struct thunk_code *code)
{
	static const unsigned char bytes[THUNK_SIZE] = {
		0x41, 0x53, 0x4c, 0x8d, 0x1d, 0,    0,	  0,	0,    0x3e,
		0x41, 0xff, 0x23, 0x4c, 0x8b, 0x5c, 0x24, 0xf8, 0xe9, 0,
		0,    0,    0,	  0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
		0xcc, 0xcc, 0x41, 0x53, 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0,
		0,    0,    0,	  0x4d, 0x85, 0xdb, 0x74, 0x11, 0x4c, 0x03,
		0x1d, 0,    0,	  0,	0,    0x49, 0xff, 0x03, 0x41, 0x5b,
		0xe9, 0,    0,	  0,	0,    0x4c, 0x8d, 0x1d, 0,    0,
		0,    0,    0xff, 0x25, 0,    0,    0,	  0,	0xcc, 0xcc,
		0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
		0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc
	};
	int32_t counters = (int32_t)code->counters;

	for (unsigned i = 0; i < sizeof(bytes); i++)
		thunk[i] = bytes[i];
	put_distance(thunk + 5, code->data);
	put_distance(thunk + 19, (const void *)code->site);
	__builtin_memcpy(thunk + 39, &counters, sizeof(counters));
	put_distance(thunk + 51, code->counter);
	put_distance(thunk + 61, (const void *)code->site);
	put_distance(thunk + 68, code->data);
	put_distance(thunk + 74, code->slot);
}

size_t thunk_pushed(size_t offset)
{
	return (offset >= 2 && offset < THUNK_RESUMES) ||
			       (offset >= THUNK_COUNTS_PUSHED && offset < 60) ||
			       offset >= 65 ?
		       8 :
		       0;
}

/*
 *      0  notrack jmp *(the switch)
 *      8  push %r11
 *     10  lea 8(start of the thunk), %r11
 *     17  jmp *(the first of @slot)
 *     24  function
 *     32  site
 *     40  the address of 48
 *     48  mov -8(%rsp), %r11
 *     53  the moved instructions
 *     91  the bytes that were at the entry
 *     96  push %r11                       PATCHED_COUNTS
 *     98  mov %fs:(counters), %r11
 *    107  test %r11, %r11
 *    110  jz 126
 *    112  add (the counter), %r11
 *    119  incq (%r11)
 *    122  pop %r11
 *    124  jmp 53
 *    126  pop %r11
 *    128  jmp 8
 */
void patched_put(unsigned char *thunk, const struct patched_code *code)
{
	static const unsigned char start[24] = { 0x3e, 0xff, 0x25, 0,	 0,
						 0,    0,    0xcc, 0x41, 0x53,
						 0x4c, 0x8d, 0x1d, 0xf7, 0xff,
						 0xff, 0xff, 0xff, 0x25, 0,
						 0,    0,    0,	   0xcc };
	static const unsigned char load[5] = { 0x4c, 0x8b, 0x5c, 0x24, 0xf8 };
	static const unsigned char counts[34] = {
		0x41, 0x53, 0x64, 0x4c, 0x8b, 0x1c, 0x25, 0,	0,
		0,    0,    0x4d, 0x85, 0xdb, 0x74, 0x0e, 0x4c, 0x03,
		0x1d, 0,    0,	  0,	0,    0x49, 0xff, 0x03, 0x41,
		0x5b, 0xeb, 0xb7, 0x41, 0x5b, 0xeb, 0x86
	};
	int32_t counters = (int32_t)code->counters;
	uintptr_t resume = (uintptr_t)thunk + 48;

	for (unsigned i = 0; i < sizeof(start); i++)
		thunk[i] = start[i];
	put_distance(thunk + 3, code->word);
	put_distance(thunk + 19, code->slot);
	__builtin_memcpy(thunk + 24, &code->function, sizeof(code->function));
	__builtin_memcpy(thunk + 32, &code->site, sizeof(code->site));
	__builtin_memcpy(thunk + 40, &resume, sizeof(resume));
	for (unsigned i = 0; i < sizeof(load); i++)
		thunk[48 + i] = load[i];
	for (unsigned i = 0; i < ENTRY_SIZE; i++)
		thunk[PATCHED_ORIGINAL + i] = code->original[i];
	for (unsigned i = 0; i < sizeof(counts); i++)
		thunk[PATCHED_COUNTS + i] = counts[i];
	__builtin_memcpy(thunk + 103, &counters, sizeof(counters));
	put_distance(thunk + 115, code->counter);
}

static void put_count(unsigned char *thunk, const struct patched_code *code,
		      const void *counter, const unsigned char *rest,
		      size_t size)
{
	patched_put(thunk, code);
	for (size_t i = 0; i < size; i++)
		thunk[PATCHED_RESUMES + i] = rest[i];
	put_distance(thunk + 58, thunk + 8);
	put_distance(thunk + 64, counter);
}

/*
 * In the place of 48 and what follows:
 *
 *     48 pop 8(%rbp)         the address to return to, which shim_entry_replace has pushed
 *     51 jmp 68
 *     53 push %r11           PATCHED_MOVED: the mark is off
 *     55 lea 8(start of the thunk), %r11
 *     62 jmp *(the counter)
 *     68 mov -72(%rsp), %r11     where returns_enter_mcount has put it
 *     73 jmp 53
 */
void patched_put_mcount(unsigned char *thunk, const struct patched_code *code,
			const void *counter)
{
	static const unsigned char rest[27] = {
		0x8f, 0x45, 0x08, 0xeb, 0x0f, 0x41, 0x53, 0x4c, 0x8d,
		0x1d, 0,    0,	  0,	0,    0xff, 0x25, 0,	0,
		0,    0,    0x4c, 0x8b, 0x5c, 0x24, 0xb8, 0xeb, 0xea
	};

	put_count(thunk, code, counter, rest, sizeof(rest));
}

/*
 *     48 jmp 68
 *     53 push %r11           PATCHED_MOVED: the mark is off
 *     55 lea 8(start of the thunk), %r11
 *     62 jmp *(the counter)
 *     68 sub $8, %rsp        to where the thunk has pushed r11
 *     72 jmp 55
 */
void patched_put_fentry(unsigned char *thunk, const struct patched_code *code,
			const void *counter)
{
	static const unsigned char rest[26] = {
		0xeb, 0x12, 0xcc, 0xcc, 0xcc, 0x41, 0x53, 0x4c, 0x8d,
		0x1d, 0,    0,	  0,	0,    0xff, 0x25, 0,	0,
		0,    0,    0x48, 0x83, 0xec, 0x08, 0xeb, 0xed
	};

	put_count(thunk, code, counter, rest, sizeof(rest));
}

/* push %rbp; mov %rsp, %rbp */
bool entry_has_frame(const unsigned char *code)
{
	size_t size;

	if (entry_is_landing(code, &size))
		code += size;
	return code[0] == 0x55 && code[1] == 0x48 &&
	       ((code[2] == 0x89 && code[3] == 0xe5) ||
		(code[2] == 0x8b && code[3] == 0xec));
}

/* mov, add, sub and cmp of a register and a word in memory.  The bytes of a push are often
 * those of a call and the jump behind it. */
static bool reads_word(const unsigned char *code)
{
	return (code[0] & 0xfb) == 0x48 &&
	       (code[1] == 0x8b || code[1] == 0x03 || code[1] == 0x2b ||
		code[1] == 0x3b || code[1] == 0x39);
}

bool entry_reads_stack(const unsigned char *code, size_t size,
		       struct stack_read *read)
{
	unsigned mode, base;
	size_t at = 2;

	if (size < ENTRY_READ_SIZE / 2 || !reads_word(code))
		return false;
	mode = code[at] >> 6;
	base = code[at] & 7;
	at++;
	if ((base != 4 && base != 5) || mode == 3 || (base == 5 && mode == 0) ||
	    (base == 4 && code[at++] != 0x24) ||
	    at + (mode == 2 ? 4 : mode) > size)
		return false;
	read->is_stack_pointer = base == 4;
	read->offset = mode == 1 ? (int8_t)code[at] : 0;
	if (mode == 2)
		__builtin_memcpy(&read->offset, code + at,
				 sizeof(read->offset));
	return true;
}

uintptr_t entry_jumps(const unsigned char *code, size_t size, uintptr_t address)
{
	bool is_near = size >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80;
	size_t at = is_near ? 2 : 1;
	int32_t distance;

	if (size >= 2 && (code[0] == 0xeb || (code[0] & 0xf0) == 0x70))
		return address + 2 + (uintptr_t)(int8_t)code[1];
	if (!is_near && (size < ENTRY_SIZE || code[0] != JUMP))
		return 0;
	__builtin_memcpy(&distance, code + at, sizeof(distance));
	return address + at + sizeof(distance) + (uintptr_t)distance;
}

bool patched_is_jump(const unsigned char *code, uintptr_t address,
		     uintptr_t thunk)
{
	int32_t distance = distance_of(address, thunk), found;

	__builtin_memcpy(&found, code + 1, sizeof(found));
	return thunk && code[0] == JUMP && found == distance;
}

bool patched_jump(unsigned char *code, uintptr_t address, uintptr_t thunk)
{
	int64_t wide = (int64_t)(thunk - (address + ENTRY_SIZE));
	int32_t distance = (int32_t)wide;

	if (wide != distance)
		return false;
	code[0] = JUMP;
	__builtin_memcpy(code + 1, &distance, sizeof(distance));
	return true;
}

/* 8 and 96 are push %r11, which has 2 bytes, as pop %r11 has at 122 and 126. */
size_t patched_pushed(size_t offset)
{
	return (offset >= 10 && offset < 24) ||
			       (offset >= 98 && offset < 124) || offset == 126 ?
		       8 :
		       0;
}

size_t patched_pushed_by_mcount(const unsigned char *thunk, size_t offset)
{
	bool pops = thunk[PATCHED_RESUMES] == POP;

	return (offset == PATCHED_RESUMES && pops) ||
			       (offset >= 55 && offset < 68) || offset == 72 ?
		       8 :
		       0;
}

static bool begins_with(const unsigned char *code, const unsigned char *bytes,
			size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (code[i] != bytes[i])
			return false;
	return true;
}

/*
 * A call is copied as (inspect/decode/copy.c)
 *
 *     68 ...  push $low; c7 44 24 04 ...  mov $high, 4(%rsp); jmp target
 *     push target; ff 34 24  push (%rsp); c7 44 24 08 ... mov; c7 44 24 0c ... mov; ret
 */
size_t patched_pushed_by_call(const unsigned char *moved, size_t offset)
{
	static const unsigned char high[4] = { 0xc7, 0x44, 0x24, 0x04 };
	static const unsigned char again[7] = { 0xff, 0x34, 0x24, 0xc7,
						0x44, 0x24, 0x08 };

	if (offset == 0)
		return 0;
	if (moved[0] == 0x68 && begins_with(moved + 5, high, sizeof(high)))
		return 8;
	for (unsigned at = 2; at < 10; at++)
		if (begins_with(moved + at, again, sizeof(again)))
			return offset < at ? 0 : offset == at ? 8 : 16;
	return 0;
}
