/* The escapes of JSON, and what is no UTF-8. */
#include <stdio.h>

#include "json_text.h"

/* The length of the UTF-8 character at @text, or 0: it is none. */
static int utf8_length(const unsigned char *text)
{
	int length = text[0] < 0x80		       ? 1 :
		     text[0] >= 0xc2 && text[0] < 0xe0 ? 2 :
		     text[0] >= 0xe0 && text[0] < 0xf0 ? 3 :
		     text[0] >= 0xf0 && text[0] < 0xf5 ? 4 :
							 0;

	for (int i = 1; i < length; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* longer than needed, surrogates, beyond the last character */
	if ((text[0] == 0xe0 && text[1] < 0xa0) ||
	    (text[0] == 0xed && text[1] >= 0xa0) ||
	    (text[0] == 0xf0 && text[1] < 0x90) ||
	    (text[0] == 0xf4 && text[1] >= 0x90))
		return 0;
	return length;
}

void json_text(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	int length;

	if (text == NULL) {
		fputs("null", stdout);
		return;
	}
	putchar('"');
	for (; *at != '\0'; at += length > 0 ? length : 1) {
		length = utf8_length(at);
		if (length == 0)
			fputs("\\ufffd", stdout);
		else if (*at == '"' || *at == '\\')
			printf("\\%c", *at);
		else if (*at < ' ' || *at == 0x7f)
			printf("\\u%04x", *at);
		else
			fwrite(at, 1, length, stdout);
	}
	putchar('"');
}
