/*
 * The code of XRay's sleds, which clang has made 11 bytes long:
 *
 *               at an entry                    at a tail call                 at a return
 *     compiled  eb 09  jmp over 9 bytes        the same                       c3  ret
 *     on        e8 09 ...  call veneer         68 09 ...  push $(...)         68 00 ...
 *               66 0f 1f 44 00 00  nop         e8 ...     call veneer         e8 ...
 *                                              90         nop                 c3  ret
 *     off       a9 09 ...  test $..., %eax     eb 09                          c3
 *               66 0f 1f 44 00 00  nop
 *
 * Only the first byte switches a sled, so any processor executes one or the other.  The
 * second byte, 9, is part of all instructions at an entry.  The other bytes change while no
 * thread executes them, for the jump is over them.  They stay when a sled is switched off,
 * because a thread may be in the call, or behind the push.
 *
 * What is pushed is (the function - the end of the call) << 8, and 9 where the second byte
 * must be.  A jump that is taken costs more than two instructions without an effect: Lua takes
 * 1.04 to 1.16 times as long with the compiler's jumps, and 1.00 with these.  (No code
 * uses the flags at an entry.)  At an entry, the distance to the function has two values only, so there are
 * veneers for both, and the sled needs one instruction.  Elsewhere a thread may be between
 * the two.
 */
#include "sources/mark_code.h"

#include <cpuid.h>

#include <shim/banned.h>

#define JUMP	   0xeb
#define OVER	   0x09
#define RETURN	   0xc3
#define PUSH	   0x68
#define CALL	   0xe8
#define TEST	   0xa9
#define NOP	   0x90
#define CALL_END   10
#define ENTRY_CALL 5

#define EVENT_ENTER 0
#define EVENT_LEAVE 1

bool xray_is_known(void)
{
	return true;
}

static unsigned char off_byte(unsigned event)
{
	return event == EVENT_LEAVE ? RETURN : JUMP;
}

/* Behind the call of a sled at an entry. */
static const unsigned char tail[XRAY_SLED_SIZE - ENTRY_CALL] = { 0x66, 0x0f,
								 0x1f, 0x44,
								 0x00, 0x00 };

static bool has_tail(const unsigned char *code)
{
	for (unsigned i = 0; i < sizeof(tail); i++)
		if (code[ENTRY_CALL + i] != tail[i])
			return false;
	return true;
}

enum mark_state xray_state(unsigned event, const unsigned char *code)
{
	if (event != EVENT_LEAVE && code[1] != OVER)
		return MARK_OTHER;
	if (code[0] == off_byte(event))
		return MARK_OFF;
	if (event == EVENT_ENTER && has_tail(code))
		return code[0] == TEST ? MARK_OFF :
		       code[0] == CALL ? MARK_ON :
					 MARK_OTHER;
	return code[0] == PUSH && code[5] == CALL ? MARK_ON : MARK_OTHER;
}

/* mov $id, %r10d; call or jmp */
bool xray_is_llvms(const unsigned char *code)
{
	return code[0] == 0x41 && code[1] == 0xba;
}

static void put_word(unsigned char *to, int64_t value)
{
	int32_t word = (int32_t)value;

	__builtin_memcpy(to, &word, sizeof(word));
}

/* --- veneers --- */

/*
 * At an entry, the second byte of the call is the lowest one of its distance, so the lowest
 * byte of the veneer's address depends on the sled's.  There is a veneer for each even one, and
 * for each depth of a sled in its function.  They are 8 bytes apart in 4 blocks of 256 bytes, and
 * the last one reaches into a fifth.
 */
#define DEPTH_STEP   4 /* endbr64 */
#define BLOCK	     256u
#define BLOCKS	     4u
#define DEPTH_SIZE   ((BLOCKS + 1) * BLOCK)
#define ENTRIES_SIZE (SLED_DEPTHS * DEPTH_SIZE)
#define VENEER_SIZE  8

_Static_assert(ENTRIES_SIZE + MARK_EVENTS * VENEER_SIZE <= VENEERS_SIZE,
	       "pages");

static uintptr_t event_veneer(uintptr_t veneers, unsigned event)
{
	return veneers + ENTRIES_SIZE + (uintptr_t)event * VENEER_SIZE;
}

static uintptr_t entry_veneer(uintptr_t veneers, unsigned depth, unsigned last)
{
	return veneers + (uintptr_t)depth * DEPTH_SIZE +
	       (last / 2 % BLOCKS) * BLOCK + last;
}

/* Whether the sled needs one call only. */
static bool is_entry(unsigned event, uintptr_t address, uintptr_t function)
{
	uintptr_t depth = address - function;

	return event == EVENT_ENTER && address % 2 == 0 &&
	       depth % DEPTH_STEP == 0 && depth / DEPTH_STEP < SLED_DEPTHS;
}

/* jmp *slot(%rip) */
static void put_veneer(uintptr_t at, const void *slot)
{
	unsigned char *code = (unsigned char *)at;

	code[0] = 0xff;
	code[1] = 0x25;
	put_word(code + 2, (const unsigned char *)slot - (code + 6));
}

void veneers_put(unsigned char *code, const void *slots)
{
	const uintptr_t *slot = slots;
	uintptr_t at = (uintptr_t)code;

	for (unsigned event = 0; event < MARK_EVENTS; event++)
		put_veneer(event_veneer(at, event), &slot[event]);
	for (unsigned depth = 0; depth < SLED_DEPTHS; depth++)
		for (unsigned last = 0; last < BLOCK; last += 2)
			put_veneer(entry_veneer(at, depth, last),
				   &slot[MARK_EVENTS + depth]);
}

/* Sleds that are not at entries push a word before the call. */
size_t veneers_pushed(size_t offset)
{
	return offset < ENTRIES_SIZE ? sizeof(uintptr_t) :
				       2 * sizeof(uintptr_t);
}

/* --- sleds --- */

uint8_t xray_end(unsigned event, uintptr_t address, uintptr_t function)
{
	return is_entry(event, address, function) ? ENTRY_CALL : CALL_END;
}

static bool prepare_entry(unsigned char *code, uintptr_t address,
			  uintptr_t function, uintptr_t veneers)
{
	uintptr_t end = address + ENTRY_CALL;
	uintptr_t veneer = entry_veneer(
		veneers, (unsigned)(address - function) / DEPTH_STEP,
		(end + OVER) % BLOCK);
	int64_t distance = (int64_t)(veneer - end);

	if (distance > INT32_MAX || distance < INT32_MIN)
		return false;
	put_word(code + 1, distance);
	for (unsigned i = 0; i < sizeof(tail); i++)
		code[ENTRY_CALL + i] = tail[i];
	return true;
}

bool xray_prepare(unsigned event, unsigned char *code, uintptr_t address,
		  uintptr_t function, uintptr_t veneers)
{
	int64_t depth = (int64_t)(address + CALL_END - function);
	int64_t distance = (int64_t)(event_veneer(veneers, event) -
				     (address + CALL_END));

	if (is_entry(event, address, function))
		return prepare_entry(code, address, function, veneers);
	if (depth > 1 << 23 || depth <= -(1 << 23) || distance > INT32_MAX ||
	    distance < INT32_MIN)
		return false;
	put_word(code + 1, -depth * 256 | (event == EVENT_LEAVE ? 0 : OVER));
	code[5] = CALL;
	put_word(code + 6, distance);
	code[10] = event == EVENT_LEAVE ? RETURN : NOP;
	return true;
}

void xray_switch(unsigned event, unsigned char *code, bool on)
{
	if (event == EVENT_ENTER && has_tail(code))
		code[0] = on ? CALL : TEST;
	else
		code[0] = on ? PUSH : off_byte(event);
}

/* The system has enabled the registers whose bits XGETBV tells. */
uint32_t mark_vector_size(void)
{
	uint32_t a, b, c, d, enabled = 0;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
		return 16;
	__asm__ volatile("xgetbv" : "=a"(enabled), "=d"(d) : "c"(0));
	if ((enabled & 0xe6) == 0xe6)
		return 64;
	return (enabled & 6) == 6 ? 32 : 16;
}
