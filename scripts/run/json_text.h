/* Texts in JSON, for the few outputs of this program that have it. */
#ifndef RUN_JSON_TEXT_H
#define RUN_JSON_TEXT_H

/* json_text - print @text on stdout, in quotes and with JSON's escapes; NULL: null
 *
 * Bytes that are not UTF-8 become U+FFFD. */
void json_text(const char *text);

#endif
