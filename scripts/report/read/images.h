/* The images of a process (the program and its libraries) and their load
 * addresses. */
#ifndef REPORT_READ_IMAGES_H
#define REPORT_READ_IMAGES_H

#include <stdint.h>

struct process;

struct image {
	uint32_t generation;
	uint32_t object;      /* owned by symbols.h */
	uint32_t data_object; /* owned by locks.c */
	uint64_t start, end, bias;
	uint64_t load_clock, unload_clock;
	uint32_t build_id_size;
	const unsigned char *build_id;
	const char *path;
};

/* Called after the last image of @process was read. */
void images_index(struct process *process);
/* Frees the images of @process. */
void images_free(struct process *process);
/*
 * The image that covered @address, or NULL if it is unknown.  With @generation
 * 0, an unloaded image is also accepted if no other image was ever at @address:
 * then the program ended before it could write the generation into its nodes.
 */
struct image *process_image(const struct process *process, uint64_t address,
			    uint32_t generation);
/* The last image of @generation that begins at or before @address, or NULL. */
struct image *process_image_before(const struct process *process,
				   uint64_t address, uint32_t generation);

#endif
