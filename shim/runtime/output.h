/*
 * Fills a caller's buffer, for all public functions (rows C-7 to C-28).  A function
 * checks its arguments before it writes anything.
 */
#ifndef SHIM_OUTPUT_H
#define SHIM_OUTPUT_H

#include <shim/shim.h>
#include <stdbool.h>

/* The caller's buffer and count. */
struct output {
	size_t element; /* 0: text */
	uint32_t count;
	uint32_t *total;
	void *buffer;
};

static inline bool output_is_valid(uint32_t count, const void *buffer)
{
	return buffer || count == 0;
}

static inline uint32_t output_saturate(uint64_t number)
{
	return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* Stores the number of elements in *@total; returns the number that fits. */
static inline uint32_t output_count(uint64_t all, uint32_t count,
				    uint32_t *total)
{
	if (total)
		*total = output_saturate(all);
	return all < count ? (uint32_t)all : count;
}

/*
 * Copies @size bytes of text, including the NUL of the last string.  If the text does
 * not fit, it cuts the text between two characters and adds a NUL.
 */
static inline void output_text(const char *text, size_t size, uint32_t count,
			       uint32_t *total, char *buffer)
{
	uint32_t fill = output_count(size, count, total);

	if (fill < size && fill > 0) {
		uint32_t back = 0;

		fill--;
		while (back < 3 && back < fill &&
		       ((unsigned char)text[fill - back] & 0xc0) == 0x80)
			back++;
		if (((unsigned char)text[fill - back] & 0xc0) != 0x80)
			fill -= back;
		buffer[fill] = '\0';
	}
	for (uint32_t i = 0; i < fill; i++)
		buffer[i] = text[i];
}

static inline void output_bytes(const void *from, size_t element, uint64_t all,
				uint32_t count, uint32_t *total, void *to)
{
	size_t size = output_count(all, count, total) * element;

	for (size_t i = 0; i < size; i++)
		((char *)to)[i] = ((const char *)from)[i];
}

#endif
