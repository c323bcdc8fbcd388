/*
 * The code of XRay's sleds, which clang has made 11 bytes long:
 *
 *               at an entry and a tail call          at a return
 *     off       eb 09  jmp over   9 bytes of nop     c3  ret    10 bytes of nop
 *     on        68 ...  push $(-distance << 8 | 9)   68 ...  push $(-distance << 8)
 *               e8 ...  call stub                    e8 ...  call stub
 *               90      nop                          c3      ret
 *
 * Only the first byte switches a sled, so any processor executes one or the other.  The
 * second byte, 9, is part of both instructions at an entry: it is the lowest byte of what
 * is pushed.  The other bytes change while no thread executes them, for a sled that is off
 * was never on.  They stay when a sled is switched off, because a thread may be in the
 * call.
 */
#include "sources/mark_code.h"

#include <cpuid.h>

#include <shim/banned.h>

#define JUMP	 0xeb
#define OVER	 0x09
#define RETURN	 0xc3
#define PUSH	 0x68
#define CALL	 0xe8
#define NOP	 0x90
#define CALL_END 10

#define EVENT_LEAVE 1

bool xray_is_known(void)
{
	return true;
}

static unsigned char off_byte(unsigned event)
{
	return event == EVENT_LEAVE ? RETURN : JUMP;
}

enum mark_state xray_state(unsigned event, const unsigned char *code)
{
	if (event != EVENT_LEAVE && code[1] != OVER)
		return MARK_OTHER;
	if (code[0] == off_byte(event))
		return MARK_OFF;
	return code[0] == PUSH && code[5] == CALL ? MARK_ON : MARK_OTHER;
}

/* mov $id, %r10d; call or jmp */
bool xray_is_llvms(const unsigned char *code)
{
	return code[0] == 0x41 && code[1] == 0xba;
}

uintptr_t xray_return(uintptr_t address)
{
	return address + CALL_END;
}

static void put_word(unsigned char *to, int64_t value)
{
	int32_t word = (int32_t)value;

	__builtin_memcpy(to, &word, sizeof(word));
}

bool xray_prepare(unsigned event, unsigned char *code, uintptr_t address,
		  uintptr_t function, uintptr_t stub)
{
	int64_t depth = (int64_t)(address + CALL_END - function);
	int64_t distance = (int64_t)(stub - (address + CALL_END));

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
	code[0] = on ? PUSH : off_byte(event);
}

/* jmp *slot(%rip); calls reach it directly. */
void veneer_put(unsigned char *code, const void *slot)
{
	static const unsigned char start[] = { 0xff, 0x25, 0,	 0,
					       0,    0,	   0xcc, 0xcc };

	for (unsigned i = 0; i < sizeof(start); i++)
		code[i] = start[i];
	put_word(code + 2, (const unsigned char *)slot - (code + 6));
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
