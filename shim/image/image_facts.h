/*
 * Properties of an image, read from its memory.
 */
#ifndef SHIM_IMAGE_FACTS_H
#define SHIM_IMAGE_FACTS_H

#include "image/image.h"

#include <stddef.h>

struct image_facts {
	uintptr_t bias;
	uintptr_t dynamic;
	size_t dynamic_size;
	uintptr_t relro;
	size_t relro_size;
	uintptr_t frames; /* .eh_frame_hdr; 0: none */
	bool is_of_go;	  /* Go's linker has made it */
	unsigned char build_id[IMAGE_BUILD_ID_SIZE];
	uint32_t build_id_size;
};

/* Reads the properties of the image mapped at @start.  False if it is no 64-bit ELF
 * image, or if another thread unmaps it meanwhile.  The caller holds the lock. */
bool image_read_facts(uintptr_t start, struct image_facts *facts);
/* The size in bytes of the address range of the image's segments, or 0.  The caller
 * holds the lock. */
uintptr_t image_read_span(uintptr_t start);

#endif
