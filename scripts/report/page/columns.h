/*
 * Columns of numbers for the page of profrun html, small and quick to read:
 * seven bits a byte, the last byte of each number below 128, all of it in
 * base64. page/profile.js reads them.
 */
#ifndef REPORT_PAGE_COLUMNS_H
#define REPORT_PAGE_COLUMNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct columns {
	uint8_t *data;
	size_t size, room;
};

void columns_put(struct columns *columns, uint64_t number);
/* Small numbers of either sign need few bytes. */
void columns_put_signed(struct columns *columns, int64_t number);
void columns_print(FILE *out, const struct columns *columns);
void columns_free(struct columns *columns);

#endif
