/*
 * Text from outside (names, paths, logs), so that a terminal only prints it: control
 * characters, bytes that are not UTF-8 and marks that reorder text come out as \xNN.
 */
#ifndef REPORT_BASE_TEXT_H
#define REPORT_BASE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * Text from outside (names, paths, logs), so that a terminal only prints it:
 * control characters, bytes that are not UTF-8 and marks that reorder text
 * come out as \xNN.  put_text_cut() stops at @columns with an ellipsis.
 */
void put_text(FILE *out, const char *text);
void put_text_cut(FILE *out, const char *text, size_t columns);
void make_harmless(char *text); /* with ? instead */
size_t text_columns(const char *text);
void put_csv(FILE *out, const char *text);
/* How many bytes from @text on need no escape in any format: most names are such bytes
 * alone. */
size_t text_plain_bytes(const char *text);
const char *base_name(const char *path);

#endif
