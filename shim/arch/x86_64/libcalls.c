/*
 * Thunks of library calls.  r11 points 16 bytes before a struct libcall_target: returns.S
 * finds the function and the code to jump to where the thunk of an entry has them.
 */
#include "sources/libcall_code.h"

#include <shim/banned.h>

bool libcall_is_known(void)
{
	return true;
}

/* Writes the distance from the end of these four bytes. */
static void put_distance(unsigned char *at, uintptr_t target)
{
	int32_t distance = (int32_t)(target - (uintptr_t)(at + 4));

	__builtin_memcpy(at, &distance, sizeof(distance));
}

/*
 *      0  endbr64
 *      4  lea -16(the target), %r11
 *     11  jmp *(the entry)
 */
void libcall_put(unsigned char *thunk, const void *entry,
		 const struct libcall_target *target)
{
	static const unsigned char start[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x4c,
					       0x8d, 0x1d, 0,	 0,    0,
					       0,    0xff, 0x25, 0,    0,
					       0,    0,	   0xcc };

	for (unsigned i = 0; i < sizeof(start); i++)
		thunk[i] = start[i];
	put_distance(thunk + 7, (uintptr_t)target - 16);
	put_distance(thunk + 13, (uintptr_t)entry);
}

/* call *slot(%rip) and jmp *slot(%rip); mov slot(%rip), a register; or any instruction that
 * ends with the distance. */
enum slot_use slot_use_at(const unsigned char *code, uintptr_t address,
			  uintptr_t *slot)
{
	int32_t distance;

	__builtin_memcpy(&distance, code, sizeof(distance));
	*slot = address + sizeof(distance) + (uintptr_t)(intptr_t)distance;
	if (code[-2] == 0xff && (code[-1] == 0x15 || code[-1] == 0x25))
		return SLOT_CALLED;
	return (code[-3] & 0xfb) == 0x48 && code[-2] == 0x8b &&
			       (code[-1] & 0xc7) == 0x05 ?
		       SLOT_LOADED :
		       SLOT_READ;
}
