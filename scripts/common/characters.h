/* Which bytes of a text a terminal only prints: it may come from anybody. */
#ifndef COMMON_CHARACTERS_H
#define COMMON_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * character_at - the length of the UTF-8 sequence at @text, its character in *@character
 *
 * Returns 0 if there is none: it is cut, too long, a surrogate, or past U+10FFFF.
 */
size_t character_at(const char *text, uint32_t *character);

/* character_is_harmless - it is not C0, DEL or C1, no separator of lines or paragraphs,
 * and does not reorder text */
bool character_is_harmless(uint32_t character);

/* character_step - how many bytes the next step through @text takes; *@is_plain: whether
 * they may be printed as they are */
size_t character_step(const char *text, bool *is_plain);

#endif
