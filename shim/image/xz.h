/*
 * Decompresses the .xz format, as far as .gnu_debugdata uses it: LZMA2 without other
 * filters.  Nothing in the data is trusted, and sums are not checked: what reads the
 * result trusts it no more than a file.  It calls nothing but the system.
 */
#ifndef SHIM_XZ_H
#define SHIM_XZ_H

#include <stddef.h>

/* Decompresses @size bytes at @packed into *@memory.  The caller unmaps *@unpacked bytes.
 * Returns 0 or -errno; -ENOEXEC if this is not such a file.  State lock held. */
int xz_unpack(const unsigned char *packed, size_t size, void **memory,
	      size_t *unpacked);

#endif
