/* The LZMA2 coding of xz.c. */
#ifndef SHIM_LZMA_H
#define SHIM_LZMA_H

#include <stdbool.h>
#include <stddef.h>

struct lzma;

/* Of a struct lzma. */
size_t lzma_size(void);
void lzma_begin(struct lzma *lzma, void *result, size_t size);
/* Decompresses the chunks at @from behind those before.  Returns what follows them, or NULL
 * if they are damaged, or too large for the result. */
const unsigned char *lzma2_unpack(struct lzma *lzma, const unsigned char *from,
				  const unsigned char *end);
/* The bytes of the result that are still missing. */
size_t lzma_left(const struct lzma *lzma);

#endif
