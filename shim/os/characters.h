/*
 * UTF-8, and which characters a terminal only prints.  Text of the program, names and paths
 * may contain anything: what is printed of them passes here, in the program as in profrun.
 * ASYNC.
 */
#ifndef SHIM_OS_CHARACTERS_H
#define SHIM_OS_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * character_at - the length of the UTF-8 sequence at @text, its character in *@character
 *
 * Reads at most @size bytes, which is at least 1; SIZE_MAX: @text ends in a NUL.
 *
 * Returns 0 if there is no sequence: it is cut, too long, a surrogate, or past U+10FFFF.
 */
size_t character_at(const char *text, size_t size, uint32_t *character);

/* character_is_harmless - it is not C0, DEL or C1, no separator of lines or paragraphs,
 * and does not reorder text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069,
 * U+FEFF) */
bool character_is_harmless(uint32_t character);

/* character_step - how many bytes the next step through @text takes, which ends in a NUL;
 * *@is_plain: whether they may be printed as they are.  If not, escape each of them. */
size_t character_step(const char *text, bool *is_plain);

#endif
