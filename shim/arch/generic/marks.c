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

uint8_t xray_end(unsigned event, uintptr_t address, uintptr_t function)
{
	(void)event, (void)address, (void)function;
	return 0;
}

bool xray_prepare(unsigned event, unsigned char *code, uintptr_t address,
		  uintptr_t function, uintptr_t veneers)
{
	(void)event, (void)code, (void)address, (void)function;
	(void)veneers;
	return false;
}

void xray_switch(unsigned event, unsigned char *code, bool on)
{
	(void)event, (void)code, (void)on;
}

void veneers_put(unsigned char *code, const void *slots)
{
	(void)code, (void)slots;
}

size_t veneers_pushed(size_t offset)
{
	(void)offset;
	return 0;
}

uint32_t mark_vector_size(void)
{
	return 0;
}
