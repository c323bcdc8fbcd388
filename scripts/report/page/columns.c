/*
 * Writes columns of numbers for the HTML page: seven bits a byte, then base64,
 * so that a page with millions of numbers stays small.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "page/columns.h"

static void put_byte(struct columns *columns, uint8_t byte)
{
	GROW(columns->data, columns->size, columns->room);
	columns->data[columns->size++] = byte;
}

void columns_put(struct columns *columns, uint64_t number)
{
	for (; number >= 128; number >>= 7)
		put_byte(columns, (uint8_t)(number & 127) | 128);
	put_byte(columns, (uint8_t)number);
}

void columns_put_signed(struct columns *columns, int64_t number)
{
	columns_put(columns, number < 0 ? ~((uint64_t)number << 1) :
					  (uint64_t)number << 1);
}

void columns_print(FILE *out, const struct columns *columns)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *at = columns->data;
	size_t left = columns->size, taken, i;
	uint32_t group;

	for (; left > 0; left -= taken) {
		taken = left < 3 ? left : 3;
		group = 0;
		for (i = 0; i < 3; i++)
			group = group << 8 | (i < taken ? *at++ : 0);
		for (i = 0; i < 4; i++)
			putc(i <= taken ? digits[group >> (18 - 6 * i) & 63] :
					  '=',
			     out);
	}
}

void columns_free(struct columns *columns)
{
	free(columns->data);
	*columns = (struct columns){ 0 };
}
