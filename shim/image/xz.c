/*
 * A stream is a header of 12 bytes, blocks, an index with the sizes of the blocks, and a
 * footer of 12 bytes with the size of the index.  So the size of the result is known
 * before, and the result itself is the dictionary.
 */
#include "image/xz.h"

#include "image/lzma.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <errno.h>
#include <stdint.h>

#include <shim/banned.h>

#define HEADER_SIZE   12u
#define FOOTER_SIZE   12u
#define CHECK_SIZE    4u /* of a header, and of the index */
#define RESULT_MAX    (1ull << 30)
#define LZMA2	      0x21u
#define HAS_PACKED    0x40u /* the block's header has this size */
#define HAS_UNPACKED  0x80u
#define OTHER_FILTERS 0x03u
#define NUMBER_MAX    9 /* bytes */

/* --- reading --- */

struct reader {
	const unsigned char *at, *end;
	bool is_short;
};

static unsigned read_byte(struct reader *reader)
{
	if (reader->at < reader->end)
		return *reader->at++;
	reader->is_short = true;
	return 0;
}

/* Seven bits a byte, the lowest first. */
static uint64_t read_number(struct reader *reader)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < NUMBER_MAX; i++) {
		unsigned byte = read_byte(reader);

		number |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80))
			return number;
	}
	reader->is_short = true;
	return 0;
}

static void skip(struct reader *reader, uint64_t size)
{
	if (size > (uint64_t)(reader->end - reader->at)) {
		reader->is_short = true;
		return;
	}
	reader->at += size;
}

/* --- the parts of a stream --- */

static size_t sum_size(unsigned kind)
{
	static const unsigned char sizes[] = { 0, 4, 8, 16, 32, 64 };

	return sizes[(kind + 2) / 3];
}

static bool begins_stream(const unsigned char *packed)
{
	static const unsigned char magic[] = { 0xfd, '7', 'z', 'X', 'Z', 0, 0 };

	for (unsigned i = 0; i < sizeof(magic); i++)
		if (packed[i] != magic[i])
			return false;
	return packed[sizeof(magic)] < 16;
}

/* The size of all blocks after decompression, as the index at the end says; 0: none. */
static uint64_t find_size(const unsigned char *packed, size_t size)
{
	const unsigned char *footer = packed + size - FOOTER_SIZE;
	struct reader reader = { .end = footer };
	uint64_t index, total = 0;
	uint32_t words;

	__builtin_memcpy(&words, footer + CHECK_SIZE, sizeof(words));
	index = (words + 1ull) * 4;
	if (footer[10] != 'Y' || footer[11] != 'Z' ||
	    index > size - HEADER_SIZE - FOOTER_SIZE)
		return 0;
	reader.at = footer - index;
	if (read_byte(&reader) != 0)
		return 0;
	for (uint64_t left = read_number(&reader); left > 0; left--) {
		read_number(&reader);
		total += read_number(&reader);
		if (reader.is_short || total > RESULT_MAX)
			return 0;
	}
	return total;
}

/* Passes a block's header.  False if the block has other filters than LZMA2. */
static bool read_header(struct reader *reader, size_t size)
{
	struct reader header = { .at = reader->at };
	unsigned flags;

	skip(reader, size - 1);
	if (reader->is_short)
		return false;
	header.end = reader->at - CHECK_SIZE;
	flags = read_byte(&header);
	if (flags & OTHER_FILTERS)
		return false;
	if (flags & HAS_PACKED)
		read_number(&header);
	if (flags & HAS_UNPACKED)
		read_number(&header);
	return read_number(&header) == LZMA2 && !header.is_short;
}

static int unpack_blocks(const unsigned char *packed, size_t size,
			 struct lzma *lzma)
{
	struct reader reader = { .at = packed + HEADER_SIZE,
				 .end = packed + size - FOOTER_SIZE };
	size_t sum = sum_size(packed[7]);
	unsigned first;

	/* The index begins with 0. */
	while ((first = read_byte(&reader)) != 0) {
		const unsigned char *data;

		if (!read_header(&reader, (first + 1) * 4))
			return -ENOEXEC;
		data = reader.at;
		reader.at = lzma2_unpack(lzma, data, reader.end);
		if (!reader.at)
			return -ENOEXEC;
		skip(&reader, (size_t)(data - reader.at) % 4 + sum);
	}
	return reader.is_short || lzma_left(lzma) > 0 ? -ENOEXEC : 0;
}

int xz_unpack(const unsigned char *packed, size_t size, void **memory,
	      size_t *unpacked)
{
	struct lzma *lzma;
	uint64_t total;
	void *work;
	int r;

	ASSERT_LOCKED();
	if (size < HEADER_SIZE + FOOTER_SIZE || !begins_stream(packed))
		return -ENOEXEC;
	total = find_size(packed, size);
	if (total == 0)
		return -ENOEXEC;
	r = sys_map(total, memory);
	if (r < 0)
		return r;
	r = sys_map(lzma_size(), &work);
	if (r == 0) {
		lzma = work;
		lzma_begin(lzma, *memory, total);
		r = unpack_blocks(packed, size, lzma);
		sys_unmap(work, lzma_size());
	}
	if (r < 0)
		sys_unmap(*memory, total);
	*unpacked = total;
	return r;
}
