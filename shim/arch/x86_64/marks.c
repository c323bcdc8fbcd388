/*
 * The code of XRay's sleds, which clang has made 11 bytes long:
 *
 *               at an entry, or a tail call    at a return          before a conditional jump
 *     compiled  eb 09  jmp over 9 bytes        c3  ret              eb 09
 *               66 0f 1f 84 ..   nop
 *     idle      66 66 66 0f 1f 84 ..   nop                          the same
 *     on        e8 09 ...  call veneer         68 00 ...  push      7. 09  jump over them
 *               66 0f 1f 44 .. ..  nop         e8 ...     call      e8 ...  call veneer
 *                                              c3  ret              7. .. 7. ..
 *     off       a9 09 ...  test $..., %eax     c3                   eb 09
 *               66 0f 1f 44 .. ..  nop
 *
 * Only the first byte switches a sled, so any processor executes one or the other.  The
 * second byte, 9, is part of all instructions but those at a return.  The other bytes change
 * while no thread executes them, for the jump is over them.  They stay when a sled is switched
 * off, because a thread may be in the call, or behind the push.
 *
 * A jump that is taken costs more than one or two instructions without an effect: Lua takes
 * 1.09 to 1.13 times as long with the compiler's jumps, and 1.04 to 1.05 idle.  (No code uses
 * the flags at an entry, nor where a function ends.)  A sled that has not been on becomes one
 * instruction, by one store of two bytes, as LLVM's own runtime switches sleds: the bytes
 * behind it are still the compiler's, and no thread is ever between them.
 *
 * A veneer has to know the function.  At an entry, the distance to it has two values only, so
 * there are veneers for both.  At a tail call, the last two bytes of the no-op are the distance.
 * At a return, it is what is pushed, << 8: a thread may be between the two instructions.  Where
 * none of this fits, the sled of a return is used, with a nop at its end and `eb 09` for `ret`.
 *
 * An entry that is off and was on may call any other address the next time: what it tests
 * has no meaning, nor has its second byte any more.
 *
 * clang has conditional jumps to other functions, with -Os, and until version 16 a sled
 * before them.  There the flags have a meaning, and so has what is below the stack
 * pointer if the jump does not happen.  The sled is on for the other case only: it begins
 * with a jump on the inverse condition.  So do the last four bytes; they have the distance, for
 * these jumps never happen.
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
#define PREFIX	   0x66
#define SHORT_JUMP 0x70 /* and a condition; its lowest bit inverts it */
#define LONG_JUMP  0x80 /* behind 0x0f */

/* What is behind the first byte of the call, if it does not begin the sled. */
#define BEHIND_JUMP 2
#define BEHIND_PUSH 5
#define CALL_SIZE   MARK_CALL_SIZE

#define EVENT_ENTER    0
#define EVENT_LEAVE    1
#define EVENT_TAILCALL 2

bool xray_is_known(void)
{
	return true;
}

uint8_t xray_condition(const unsigned char *behind)
{
	if (behind[0] == 0x0f && (behind[1] & 0xf0) == LONG_JUMP)
		return SHORT_JUMP | (behind[1] & 0xf);
	return (behind[0] & 0xf0) == SHORT_JUMP ? behind[0] : 0;
}

static unsigned char off_byte(unsigned event)
{
	return event == EVENT_LEAVE ? RETURN : JUMP;
}

/* Behind the compiler's jump. */
static bool is_compilers(const unsigned char *code)
{
	static const unsigned char wanted[XRAY_SLED_SIZE - 2] = {
		PREFIX, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00
	};

	for (unsigned i = 0; i < sizeof(wanted); i++)
		if (code[2 + i] != wanted[i])
			return false;
	return true;
}

/* Behind the call of a sled that is one call. */
static const unsigned char nop[] = { 0x66, 0x0f, 0x1f, 0x44 };

static bool has_nop(const unsigned char *code)
{
	for (unsigned i = 0; i < sizeof(nop); i++)
		if (code[CALL_SIZE + i] != nop[i])
			return false;
	return true;
}

enum mark_state xray_state(const struct xray_sled *sled,
			   const unsigned char *code)
{
	if (sled->event != EVENT_LEAVE && code[0] == PREFIX &&
	    code[1] == PREFIX && is_compilers(code))
		return MARK_IDLE;
	if (!sled->jump && sled->event != EVENT_LEAVE && has_nop(code) &&
	    (code[0] == TEST || code[0] == CALL))
		return code[0] == TEST ? MARK_READY : MARK_ON;
	if (sled->event != EVENT_LEAVE && code[1] != OVER)
		return MARK_OTHER;
	if (code[0] == off_byte(sled->event))
		return MARK_OFF;
	if (sled->jump)
		return code[0] == (sled->jump ^ 1) &&
				       code[BEHIND_JUMP] == CALL ?
			       MARK_ON :
			       MARK_OTHER;
	return code[0] == PUSH && code[BEHIND_PUSH] == CALL ? MARK_ON :
							      MARK_OTHER;
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
 * Where the second byte of a call is the lowest one of its distance, the lowest byte of the
 * veneer's address depends on the sled's.  There is a veneer for each even one, 8 bytes apart
 * in 4 blocks of 256 bytes; the last one reaches into a fifth.  There is such a row for each
 * slot from VENEER_ENTRY to VENEER_TAILCALL.
 */
#define DEPTH_STEP  4 /* endbr64 */
#define BLOCK	    256u
#define BLOCKS	    4u
#define ROW_SIZE    ((BLOCKS + 1) * BLOCK)
#define ROWS	    (VENEER_TAILCALL - VENEER_ENTRY + 1u)
#define VENEER_SIZE 8
#define SINGLE \
	(ROWS * ROW_SIZE) /* offset of the one before conditional jumps */
#define EVENTS (SINGLE + VENEER_SIZE)

_Static_assert(EVENTS + MARK_EVENTS * VENEER_SIZE <= VENEERS_SIZE, "pages");

static uintptr_t event_veneer(uintptr_t veneers, unsigned event)
{
	return veneers + EVENTS + (uintptr_t)event * VENEER_SIZE;
}

static uintptr_t row_veneer(uintptr_t veneers, unsigned slot, unsigned last)
{
	return veneers + (uintptr_t)(slot - VENEER_ENTRY) * ROW_SIZE +
	       (last / 2 % BLOCKS) * BLOCK + last;
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
	for (unsigned i = VENEER_ENTRY; i <= VENEER_TAILCALL; i++)
		for (unsigned last = 0; last < BLOCK; last += 2)
			put_veneer(row_veneer(at, i, last), &slot[i]);
	put_veneer(at + SINGLE, &slot[VENEER_CONDITION]);
}

/* Only the sleds that call the veneers of events push a word before. */
size_t veneers_pushed(size_t offset)
{
	return offset < EVENTS ? sizeof(uintptr_t) : 2 * sizeof(uintptr_t);
}

uintptr_t mark_calls(const unsigned char *code, uintptr_t address)
{
	int32_t distance;

	if (code[0] != CALL)
		return 0;
	__builtin_memcpy(&distance, code + 1, sizeof(distance));
	return address + CALL_SIZE + (uintptr_t)(intptr_t)distance;
}

/* --- sleds --- */

/* How the code of a sled reaches the veneers. */
enum form { ONE_CALL, CONDITIONAL, PUSHED };

/* What two bytes can tell: the negative distance to the function. */
static bool is_near(const struct xray_sled *sled, unsigned end)
{
	return sled->address + end - sled->function - 1 < 1u << 16;
}

unsigned xray_depth(const struct xray_sled *sled)
{
	return (unsigned)(sled->address - sled->function) / DEPTH_STEP;
}

static enum form form_of(const struct xray_sled *sled)
{
	uintptr_t depth = sled->address - sled->function;

	if (sled->jump)
		return CONDITIONAL;
	if (sled->event == EVENT_LEAVE || sled->address % 2)
		return PUSHED;
	if (sled->event == EVENT_TAILCALL)
		return is_near(sled, CALL_SIZE) ? ONE_CALL : PUSHED;
	return depth % DEPTH_STEP == 0 && depth / DEPTH_STEP < SLED_DEPTHS ?
		       ONE_CALL :
		       PUSHED;
}

uint8_t xray_end(const struct xray_sled *sled)
{
	static const uint8_t calls[] = { [ONE_CALL] = 0,
					 [CONDITIONAL] = BEHIND_JUMP,
					 [PUSHED] = BEHIND_PUSH };

	return calls[form_of(sled)] + CALL_SIZE;
}

static bool fits(int64_t distance)
{
	return distance <= INT32_MAX && distance >= INT32_MIN;
}

static uintptr_t target_of(const struct xray_sled *sled, uintptr_t veneers)
{
	uintptr_t end = sled->address + CALL_SIZE;
	unsigned slot = sled->event == EVENT_TAILCALL ?
				VENEER_TAILCALL :
				VENEER_ENTRY + xray_depth(sled);

	return sled->counter ? sled->counter :
			       row_veneer(veneers, slot, (end + OVER) % BLOCK);
}

static bool prepare_call(const struct xray_sled *sled, unsigned char *code,
			 uintptr_t veneers)
{
	uintptr_t end = sled->address + CALL_SIZE;
	int64_t distance = (int64_t)(target_of(sled, veneers) - end);
	uint16_t to_function = sled->event == EVENT_TAILCALL ?
				       (uint16_t)(sled->function - end) :
				       0;

	if (!fits(distance))
		return false;
	put_word(code + 1, distance);
	__builtin_memcpy(code + CALL_SIZE, nop, sizeof(nop));
	__builtin_memcpy(code + CALL_SIZE + sizeof(nop), &to_function,
			 sizeof(to_function));
	return true;
}

static bool prepare_conditional(const struct xray_sled *sled,
				unsigned char *code, uintptr_t veneers)
{
	uintptr_t end = sled->address + BEHIND_JUMP + CALL_SIZE;
	int64_t distance = (int64_t)(veneers + SINGLE - end);
	uintptr_t to_function = sled->function - end;

	if (!is_near(sled, BEHIND_JUMP + CALL_SIZE) || !fits(distance))
		return false;
	code[2] = CALL;
	put_word(code + 3, distance);
	code[7] = code[9] = sled->jump ^ 1;
	code[8] = (unsigned char)to_function;
	code[10] = (unsigned char)(to_function >> 8);
	return true;
}

static bool prepare_pushed(const struct xray_sled *sled, unsigned char *code,
			   uintptr_t veneers)
{
	uintptr_t end = sled->address + BEHIND_PUSH + CALL_SIZE;
	int64_t depth = (int64_t)(end - sled->function);
	int64_t distance = (int64_t)(event_veneer(veneers, sled->event) - end);
	bool returns = sled->event == EVENT_LEAVE;

	if (depth > 1 << 23 || depth <= -(1 << 23) || !fits(distance))
		return false;
	put_word(code + 1, -depth * 256 | (returns ? 0 : OVER));
	code[5] = CALL;
	put_word(code + 6, distance);
	code[10] = returns ? RETURN : NOP;
	return true;
}

bool xray_prepare(const struct xray_sled *sled, unsigned char *code,
		  uintptr_t veneers)
{
	switch (form_of(sled)) {
	case ONE_CALL: return prepare_call(sled, code, veneers);
	case CONDITIONAL: return prepare_conditional(sled, code, veneers);
	case PUSHED: break;
	}
	return prepare_pushed(sled, code, veneers);
}

bool xray_counts(const struct xray_sled *sled)
{
	return sled->event == EVENT_ENTER && form_of(sled) == ONE_CALL;
}

void xray_switch(const struct xray_sled *sled, unsigned char *code, bool on)
{
	switch (form_of(sled)) {
	case ONE_CALL: code[0] = on ? CALL : TEST; break;
	case CONDITIONAL: code[0] = on ? sled->jump ^ 1 : JUMP; break;
	case PUSHED: code[0] = on ? PUSH : off_byte(sled->event); break;
	}
}

bool xray_idles(const struct xray_sled *sled)
{
	return sled->event != EVENT_LEAVE && sled->address % 2 == 0;
}

bool xray_idle(unsigned char *code, bool idle)
{
	if (!is_compilers(code))
		return false;
	code[0] = idle ? PREFIX : JUMP;
	code[1] = idle ? PREFIX : OVER;
	return true;
}

void xray_release(const struct xray_sled *sled, unsigned char *code)
{
	code[0] = off_byte(sled->event);
	if (form_of(sled) == ONE_CALL)
		code[1] = OVER;
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
