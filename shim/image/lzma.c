/*
 * LZMA2 is chunks of plain bytes and of LZMA: bits from a range coder, each with the
 * probability that its context has shown so far, which say the next byte or how many bytes
 * to repeat from which distance.
 */
#include "image/lzma.h"

#include <stdint.h>

#include <shim/banned.h>

#define HALF	       1024u /* of 2048: both bits are as probable */
#define POSITIONS      16    /* at most 4 bits of the position are a context */
#define STATES	       12    /* what the last symbols were */
#define LITERAL_STATES 7     /* the first ones: the last symbol was a byte */
#define LITERALS_ROOM  (0x300u << 4)
#define LENGTH_MIN     2u
#define SLOTS_NEAR     4u  /* distances that are their slot */
#define SLOTS_MODELED  14u /* distances whose lower bits have contexts, too */
#define FAR_BITS       4   /* the lowest of the others have contexts */

struct lengths {
	uint16_t is_long, is_longest;
	uint16_t low[POSITIONS][8], middle[POSITIONS][8], high[256];
};

struct lzma {
	/* The result.  No distance reaches before @reset. */
	unsigned char *at, *end, *reset;
	bool is_damaged;
	/* What the chunk has left, and the range coder. */
	const unsigned char *from, *from_end;
	uint32_t range, code;
	/* Of the last symbols. */
	unsigned state;
	uint32_t distances[4];
	/* From the properties: masks of the position, and bits of the last byte. */
	uint32_t position_mask, literal_mask;
	unsigned literal_bits;
	bool has_properties;
	/* All of them uint16_t: probabilities. */
	struct lzma_contexts {
		uint16_t is_match[STATES][POSITIONS];
		uint16_t is_repeat[STATES];
		uint16_t is_not_first[STATES];
		uint16_t is_long_first[STATES][POSITIONS];
		uint16_t is_not_second[STATES];
		uint16_t is_not_third[STATES];
		uint16_t slots[4][64];
		uint16_t modeled[116];
		uint16_t far[1 << FAR_BITS];
		struct lengths match, repeat;
		uint16_t literals[LITERALS_ROOM];
	} contexts;
};

size_t lzma_size(void)
{
	return sizeof(struct lzma);
}

void lzma_begin(struct lzma *lzma, void *result, size_t size)
{
	lzma->at = lzma->reset = result;
	lzma->end = lzma->at + size;
}

size_t lzma_left(const struct lzma *lzma)
{
	return (size_t)(lzma->end - lzma->at);
}

/* --- bits --- */

static void fill(struct lzma *lzma)
{
	if (lzma->range >= 1u << 24)
		return;
	lzma->range <<= 8;
	lzma->code <<= 8;
	if (lzma->from < lzma->from_end)
		lzma->code |= *lzma->from++;
	else
		lzma->is_damaged = true;
}

static unsigned read_bit(struct lzma *lzma, uint16_t *context)
{
	uint32_t part;

	fill(lzma);
	part = (lzma->range >> 11) * *context;
	if (lzma->code < part) {
		lzma->range = part;
		*context += (2048 - *context) >> 5;
		return 0;
	}
	lzma->range -= part;
	lzma->code -= part;
	*context -= *context >> 5;
	return 1;
}

/* Bits without contexts: both are as probable. */
static uint32_t read_plain(struct lzma *lzma, unsigned count)
{
	uint32_t value = 0;

	while (count-- > 0) {
		fill(lzma);
		lzma->range /= 2;
		value <<= 1;
		if (lzma->code >= lzma->range) {
			lzma->code -= lzma->range;
			value |= 1;
		}
	}
	return value;
}

/* @count bits, the highest first; the bits before are the context of each. */
static uint32_t read_bits(struct lzma *lzma, uint16_t *contexts, unsigned count)
{
	uint32_t value = 1;

	for (unsigned i = 0; i < count; i++)
		value = value << 1 | read_bit(lzma, &contexts[value]);
	return value - (1u << count);
}

static uint32_t read_bits_reversed(struct lzma *lzma, uint16_t *contexts,
				   unsigned count)
{
	uint32_t node = 1, value = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned bit = read_bit(lzma, &contexts[node]);

		node = node << 1 | bit;
		value |= bit << i;
	}
	return value;
}

/* --- symbols --- */

static uint32_t position(const struct lzma *lzma)
{
	return (uint32_t)(lzma->at - lzma->reset);
}

static void put_literal(struct lzma *lzma)
{
	uint32_t before = position(lzma) > 0 ? lzma->at[-1] : 0;
	uint32_t kind = ((position(lzma) & lzma->literal_mask)
			 << lzma->literal_bits) +
			(before >> (8 - lzma->literal_bits));
	uint16_t *contexts = lzma->contexts.literals + 0x300 * kind;
	uint32_t value = 1, expected, offset = 0x100;

	if (lzma->state < LITERAL_STATES) {
		value = read_bits(lzma, contexts, 8);
	} else {
		/* The byte that a repetition would have is a context, too, as long as
		 * the bits are the same. */
		expected = *(lzma->at - lzma->distances[0] - 1);
		while (value < 0x100) {
			uint32_t bit;

			expected <<= 1;
			bit = read_bit(lzma,
				       &contexts[offset + (expected & offset) +
						 value]);
			value = value << 1 | bit;
			offset &= bit ? expected : ~expected;
		}
	}
	*lzma->at++ = (unsigned char)value;
	lzma->state = lzma->state < 4  ? 0 :
		      lzma->state < 10 ? lzma->state - 3 :
					 lzma->state - 6;
}

static uint32_t read_length(struct lzma *lzma, struct lengths *lengths,
			    unsigned place)
{
	if (!read_bit(lzma, &lengths->is_long))
		return LENGTH_MIN + read_bits(lzma, lengths->low[place], 3);
	if (!read_bit(lzma, &lengths->is_longest))
		return LENGTH_MIN + 8 +
		       read_bits(lzma, lengths->middle[place], 3);
	return LENGTH_MIN + 16 + read_bits(lzma, lengths->high, 8);
}

static uint32_t read_distance(struct lzma *lzma, uint32_t length)
{
	uint32_t kind = length - LENGTH_MIN < 3 ? length - LENGTH_MIN : 3;
	uint32_t slot = read_bits(lzma, lzma->contexts.slots[kind], 6);
	unsigned bits = slot / 2 - 1;
	uint32_t distance;

	if (slot < SLOTS_NEAR)
		return slot;
	distance = (2 | (slot & 1)) << bits;
	if (slot < SLOTS_MODELED)
		return distance + read_bits_reversed(lzma,
						     lzma->contexts.modeled +
							     distance - slot,
						     bits);
	distance += read_plain(lzma, bits - FAR_BITS) << FAR_BITS;
	return distance +
	       read_bits_reversed(lzma, lzma->contexts.far, FAR_BITS);
}

/* Makes distance @number of the last four the first. */
static void choose(struct lzma *lzma, unsigned number)
{
	uint32_t chosen = lzma->distances[number];

	for (unsigned i = number; i > 0; i--)
		lzma->distances[i] = lzma->distances[i - 1];
	lzma->distances[0] = chosen;
}

static void repeat(struct lzma *lzma, uint32_t length,
		   const unsigned char *chunk_end)
{
	if (lzma->distances[0] >= position(lzma) ||
	    length > (size_t)(chunk_end - lzma->at)) {
		lzma->is_damaged = true;
		return;
	}
	for (; length > 0; length--, lzma->at++)
		*lzma->at = *(lzma->at - lzma->distances[0] - 1);
}

/* Another distance, or one of the last four.  Returns the length. */
static uint32_t read_match(struct lzma *lzma, unsigned place)
{
	struct lzma_contexts *contexts = &lzma->contexts;
	unsigned state = lzma->state;
	bool is_after_literal = state < LITERAL_STATES;
	uint32_t length;

	if (!read_bit(lzma, &contexts->is_repeat[state])) {
		choose(lzma, 3);
		lzma->state = is_after_literal ? 7 : 10;
		length = read_length(lzma, &contexts->match, place);
		lzma->distances[0] = read_distance(lzma, length);
		return length;
	}
	if (!read_bit(lzma, &contexts->is_not_first[state])) {
		if (!read_bit(lzma, &contexts->is_long_first[state][place])) {
			lzma->state = is_after_literal ? 9 : 11;
			return 1;
		}
	} else if (!read_bit(lzma, &contexts->is_not_second[state])) {
		choose(lzma, 1);
	} else {
		choose(lzma,
		       2 + read_bit(lzma, &contexts->is_not_third[state]));
	}
	lzma->state = is_after_literal ? 8 : 11;
	return read_length(lzma, &contexts->repeat, place);
}

static void put_symbols(struct lzma *lzma, const unsigned char *chunk_end)
{
	while (lzma->at < chunk_end && !lzma->is_damaged) {
		unsigned place = position(lzma) & lzma->position_mask;

		if (read_bit(lzma,
			     &lzma->contexts.is_match[lzma->state][place]))
			repeat(lzma, read_match(lzma, place), chunk_end);
		else
			put_literal(lzma);
	}
}

/* --- chunks --- */

static void reset_state(struct lzma *lzma)
{
	uint16_t *contexts = (uint16_t *)&lzma->contexts;

	for (size_t i = 0; i < sizeof(lzma->contexts) / sizeof(*contexts); i++)
		contexts[i] = HALF;
	for (unsigned i = 0; i < 4; i++)
		lzma->distances[i] = 0;
	lzma->state = 0;
}

static bool set_properties(struct lzma *lzma, unsigned value)
{
	unsigned literal_bits = value % 9, literal_position = value / 9 % 5;

	if (value >= 9 * 5 * 5 || literal_bits + literal_position > 4)
		return false;
	lzma->literal_bits = literal_bits;
	lzma->literal_mask = (1u << literal_position) - 1;
	lzma->position_mask = (1u << (value / 45)) - 1;
	lzma->has_properties = true;
	return true;
}

/* Returns what follows the chunk, or NULL. */
static const unsigned char *put_plain(struct lzma *lzma,
				      const unsigned char *from,
				      const unsigned char *end)
{
	size_t size;

	if (end - from < 2)
		return NULL;
	size = (size_t)(from[0] << 8 | from[1]) + 1;
	from += 2;
	if (size > (size_t)(end - from) || size > lzma_left(lzma))
		return NULL;
	for (; size > 0; size--)
		*lzma->at++ = *from++;
	return from;
}

static const unsigned char *put_packed(struct lzma *lzma, unsigned control,
				       const unsigned char *from,
				       const unsigned char *end)
{
	unsigned reset = control >> 5 & 3;
	size_t size, packed;

	if (end - from < 5)
		return NULL;
	size = ((size_t)(control & 0x1f) << 16) + (size_t)(from[0] << 8) +
	       from[1] + 1;
	packed = (size_t)(from[2] << 8 | from[3]) + 1;
	from += 4;
	if (reset >= 2 && !set_properties(lzma, *from++))
		return NULL;
	if (!lzma->has_properties || packed < 5 ||
	    packed > (size_t)(end - from) || size > lzma_left(lzma))
		return NULL;
	if (reset >= 1)
		reset_state(lzma);
	/* The first byte is 0. */
	lzma->range = UINT32_MAX;
	lzma->code = (uint32_t)from[1] << 24 | (uint32_t)from[2] << 16 |
		     (uint32_t)from[3] << 8 | from[4];
	lzma->from = from + 5;
	lzma->from_end = from + packed;
	put_symbols(lzma, lzma->at + size);
	return lzma->is_damaged ? NULL : lzma->from_end;
}

const unsigned char *lzma2_unpack(struct lzma *lzma, const unsigned char *from,
				  const unsigned char *end)
{
	while (from && from < end) {
		unsigned control = *from++;

		if (control == 0)
			return from;
		if (control == 1 || control >= 0xe0)
			lzma->reset = lzma->at;
		if (control >= 0x80)
			from = put_packed(lzma, control, from, end);
		else if (control <= 2)
			from = put_plain(lzma, from, end);
		else
			return NULL;
	}
	return NULL;
}
