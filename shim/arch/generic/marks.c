/*
 * Marks of this processor are not known: shim finds none.
 */
#include "sources/mark_code.h"

#include <shim/banned.h>

bool xray_is_known(void)
{
	return false;
}

enum mark_state xray_state(unsigned event, const unsigned char *code)
{
	(void)event, (void)code;
	return MARK_OTHER;
}

bool xray_is_llvms(const unsigned char *code)
{
	(void)code;
	return false;
}

uintptr_t xray_return(uintptr_t address)
{
	return address;
}

bool xray_prepare(unsigned event, unsigned char *code, uintptr_t address,
		  uintptr_t function, uintptr_t stub)
{
	(void)event, (void)code, (void)address, (void)function, (void)stub;
	return false;
}

void xray_switch(unsigned event, unsigned char *code, bool on)
{
	(void)event, (void)code, (void)on;
}

void veneer_put(unsigned char *code, const void *slot)
{
	(void)code, (void)slot;
}

uint32_t mark_vector_size(void)
{
	return 0;
}
