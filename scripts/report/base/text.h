/*
 * Prints text from outside (names, paths, logs) so that a terminal cannot
 * interpret it: control characters, bytes that are not UTF-8 and marks that
 * reorder text become \xNN.
 */
#ifndef REPORT_BASE_TEXT_H
#define REPORT_BASE_TEXT_H

#include <stddef.h>
#include <stdio.h>

/*
 * Prints text from outside (names, paths, logs) so that a terminal cannot
 * interpret it: control characters, bytes that are not UTF-8 and marks that
 * reorder text become \xNN. put_text_cut() stops at @columns with an ellipsis;
 * put_text_ends() has the ellipsis in the middle, a quarter of @columns before it.
 */
void put_text(FILE *out, const char *text);
void put_text_cut(FILE *out, const char *text, size_t columns);
void put_text_ends(FILE *out, const char *text, size_t columns);
void make_harmless(char *text); /* the same with ? in place of \xNN */
size_t text_columns(const char *text);
void put_csv(FILE *out, const char *text);
/* Counts the bytes from @text on that need no escape in any format.  Most names
 * have only such bytes. */
size_t text_plain_bytes(const char *text);
const char *base_name(const char *path);

#endif
