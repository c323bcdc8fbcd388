/*
 * UTF-8, and the characters that a terminal only prints.  Names, paths and text of the
 * program may contain any byte, so shim and profrun escape them with these functions before
 * they print them.  All functions are async.
 */
#ifndef SHIM_OS_CHARACTERS_H
#define SHIM_OS_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * character_at - the length in bytes of the UTF-8 sequence at @text
 *
 * Stores the sequence's character in *@character.  Reads at most @size bytes, which is at
 * least 1; SIZE_MAX means that @text ends in a NUL.
 *
 * Returns 0 if the sequence is invalid: cut, too long, a surrogate, or past U+10FFFF.
 */
size_t character_at(const char *text, size_t size, uint32_t *character);

/* character_is_harmless - whether a terminal only prints @character
 *
 * False for C0, DEL and C1, separators of lines or paragraphs, and characters that reorder
 * text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069, U+FEFF). */
bool character_is_harmless(uint32_t character);

/* character_step - the number of bytes of the next character of @text, which ends in a NUL
 *
 * Sets *@is_plain if these bytes may be printed unchanged; if not, escape each byte. */
size_t character_step(const char *text, bool *is_plain);

#endif
