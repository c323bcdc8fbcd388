/*
 * Marks at entries: not known on this processor.
 */
#include "sources/entry_code.h"

#include <shim/banned.h>

bool entry_is_known(void)
{
	return false;
}

size_t entry_nops(const unsigned char *code, size_t size, size_t *first)
{
	(void)code, (void)size;
	*first = 0;
	return 0;
}

void entry_split(unsigned char *code, size_t size)
{
	(void)code, (void)size;
}

size_t entry_call(const unsigned char *code)
{
	(void)code;
	return 0;
}

bool entry_call_is_far(const unsigned char *code)
{
	(void)code;
	return false;
}

bool entry_is_landing(const unsigned char *code, size_t *size)
{
	(void)code;
	*size = 0;
	return false;
}

bool entry_saves_chain(const unsigned char *code)
{
	(void)code;
	return false;
}

enum mark_state entry_state(const unsigned char *code, uintptr_t address,
			    uintptr_t thunk)
{
	(void)code, (void)address, (void)thunk;
	return MARK_OTHER;
}

bool entry_prepare(unsigned char *code, uintptr_t address, uintptr_t thunk,
		   bool counts)
{
	(void)code, (void)address, (void)thunk, (void)counts;
	return false;
}

void entry_switch(unsigned char *code, bool on)
{
	(void)code, (void)on;
}

void thunk_put(unsigned char *thunk, const struct thunk_code *code)
{
	(void)thunk, (void)code;
}

size_t thunk_pushed(size_t offset)
{
	(void)offset;
	return 0;
}

void patched_put(unsigned char *thunk, const struct patched_code *code)
{
	(void)thunk, (void)code;
}

void patched_put_mcount(unsigned char *thunk, const struct patched_code *code,
			const void *counter)
{
	(void)thunk, (void)code, (void)counter;
}

void patched_put_fentry(unsigned char *thunk, const struct patched_code *code,
			const void *counter)
{
	(void)thunk, (void)code, (void)counter;
}

bool entry_has_frame(const unsigned char *code)
{
	(void)code;
	return false;
}

bool entry_reads_stack(const unsigned char *code, size_t size,
		       struct stack_read *read)
{
	(void)code, (void)size, (void)read;
	return false;
}

uintptr_t entry_jumps(const unsigned char *code, size_t size, uintptr_t address)
{
	(void)code, (void)size, (void)address;
	return 0;
}

bool patched_is_jump(const unsigned char *code, uintptr_t address,
		     uintptr_t thunk)
{
	(void)code, (void)address, (void)thunk;
	return false;
}

bool patched_jump(unsigned char *code, uintptr_t address, uintptr_t thunk)
{
	(void)code, (void)address, (void)thunk;
	return false;
}

size_t patched_pushed(size_t offset)
{
	(void)offset;
	return 0;
}

size_t patched_pushed_by_mcount(const unsigned char *thunk, size_t offset)
{
	(void)thunk, (void)offset;
	return 0;
}

size_t patched_pushed_by_call(const unsigned char *moved, size_t offset)
{
	(void)moved, (void)offset;
	return 0;
}
