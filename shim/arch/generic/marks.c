/*
 * Marks of this processor are not known: shim finds none.
 */
#include "sources/mark_code.h"

#include <shim/banned.h>

bool xray_is_known(void)
{
	return false;
}

uint8_t xray_condition(const unsigned char *behind)
{
	(void)behind;
	return 0;
}

enum mark_state xray_state(const struct xray_sled *sled,
			   const unsigned char *code)
{
	(void)sled, (void)code;
	return MARK_OTHER;
}

bool xray_is_llvms(const unsigned char *code)
{
	(void)code;
	return false;
}

uint8_t xray_end(const struct xray_sled *sled)
{
	(void)sled;
	return 0;
}

bool xray_prepare(const struct xray_sled *sled, unsigned char *code,
		  uintptr_t veneers)
{
	(void)sled, (void)code, (void)veneers;
	return false;
}

bool xray_counts(const struct xray_sled *sled)
{
	(void)sled;
	return false;
}

unsigned xray_depth(const struct xray_sled *sled)
{
	(void)sled;
	return 0;
}

bool xray_idles(const struct xray_sled *sled)
{
	(void)sled;
	return false;
}

bool xray_idle(unsigned char *code, bool idle)
{
	(void)code, (void)idle;
	return false;
}

void xray_switch(const struct xray_sled *sled, unsigned char *code, bool on)
{
	(void)sled, (void)code, (void)on;
}

void xray_release(const struct xray_sled *sled, unsigned char *code)
{
	(void)sled, (void)code;
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

uintptr_t mark_calls(const unsigned char *code, uintptr_t address)
{
	(void)code, (void)address;
	return 0;
}

uint32_t mark_vector_size(void)
{
	return 0;
}
