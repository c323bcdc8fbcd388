/*
 * Decodes UTF-8 and knows which characters a terminal only prints.  libshim.so, shim-run
 * and shim-report all contain this decoder, so they escape the same characters.
 */
#include "os/characters.h"

#include <shim/banned.h>

size_t character_at(const char *string, size_t size, uint32_t *character)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *text = (const unsigned char *)string;
	size_t length, i;
	uint32_t c = text[0];

	*character = c;
	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	length = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (length > size)
		return 0;
	c &= 0x7fu >> length;
	for (i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*character = c;
	return length;
}

bool character_is_harmless(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) &&
	       !(c >= 0x200e && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
	       !(c >= 0x2066 && c <= 0x2069) && c != 0x61c && c != 0xfeff;
}

size_t character_step(const char *text, bool *is_plain)
{
	uint32_t c;
	size_t length = character_at(text, SIZE_MAX, &c);

	*is_plain = length && character_is_harmless(c);
	return length ? length : 1;
}
