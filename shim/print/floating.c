/*
 * Converts floating point numbers with integer arithmetic, because the program's
 * floating point state must not change.
 */
#include "print/floating.h"

#include <shim/banned.h>

struct layout {
	unsigned size, mantissa_bits, exponent_bits;
	bool has_one; /* the leading 1 of the mantissa is stored */
};

static const struct layout layouts[] = {
	[SHIM_TYPETREE_BINARY16] = { 2, 10, 5, false },
	[SHIM_TYPETREE_BINARY32] = { 4, 23, 8, false },
	[SHIM_TYPETREE_BINARY64] = { 8, 52, 11, false },
	[SHIM_TYPETREE_X87] = { 10, 64, 15, true },
	[SHIM_TYPETREE_BINARY128] = { 16, 112, 15, false },
};

unsigned floating_size(uint8_t format)
{
	return layouts[format].size;
}

/* --- long numbers --- */

static void drop_zero_words(struct print_big *big)
{
	while (big->count > 0 && big->words[big->count - 1] == 0)
		big->count--;
}

static void set_words(struct print_big *big, const uint32_t words[4])
{
	big->count = 4;
	for (unsigned i = 0; i < 4; i++)
		big->words[i] = words[i];
	drop_zero_words(big);
}

static void multiply(struct print_big *big, uint32_t factor)
{
	uint64_t carry = 0;

	for (uint32_t i = 0; i < big->count; i++) {
		carry += (uint64_t)big->words[i] * factor;
		big->words[i] = (uint32_t)carry;
		carry >>= 32;
	}
	if (carry && big->count < PRINT_BIG_WORDS)
		big->words[big->count++] = (uint32_t)carry;
}

static void multiply_by_ten_to(struct print_big *big, unsigned power)
{
	for (; power >= 9; power -= 9)
		multiply(big, 1000000000);
	for (; power > 0; power--)
		multiply(big, 10);
}

static void shift_left(struct print_big *big, unsigned bits)
{
	unsigned words = bits / 32;

	multiply(big, 1u << bits % 32);
	if (big->count == 0 || words == 0)
		return;
	for (uint32_t i = big->count; i-- > 0;)
		big->words[i + words] = big->words[i];
	for (uint32_t i = 0; i < words; i++)
		big->words[i] = 0;
	big->count += words;
}

static uint32_t word_at(const struct print_big *big, uint32_t index)
{
	return index < big->count ? big->words[index] : 0;
}

/* The sign of a + b - c; @b may be NULL. */
static int compare(const struct print_big *a, const struct print_big *b,
		   const struct print_big *c)
{
	uint32_t count = a->count > c->count ? a->count : c->count;
	int64_t rest = 0;

	if (b && b->count > count)
		count = b->count;
	for (uint32_t i = count; i-- > 0;) {
		rest = rest * ((int64_t)1 << 32) + word_at(a, i) +
		       (b ? word_at(b, i) : 0) - word_at(c, i);
		/* Lower words cannot change the sign any more. */
		if (rest > 1 || rest < -1)
			break;
	}
	/* A rest of -1 is final here, because the loop has compared all words. */
	return rest > 0 ? 1 : rest < 0 ? -1 : 0;
}

static void subtract(struct print_big *big, const struct print_big *other)
{
	uint64_t borrow = 0;

	for (uint32_t i = 0; i < big->count; i++) {
		uint64_t rest = (uint64_t)big->words[i] - word_at(other, i) -
				borrow;

		big->words[i] = (uint32_t)rest;
		borrow = rest >> 63;
	}
	drop_zero_words(big);
}

/* --- numbers --- */

static uint32_t extract_bits(const uint32_t words[4], unsigned bit,
			     unsigned bits)
{
	uint64_t pair = words[bit / 32];

	if (bit / 32 < 3)
		pair |= (uint64_t)words[bit / 32 + 1] << 32;
	return (uint32_t)(pair >> bit % 32 & ((1ull << bits) - 1));
}

bool floating_is_zero(const uint32_t words[4])
{
	return (words[0] | words[1] | words[2] | words[3]) == 0;
}

static void mask_bits(uint32_t words[4], unsigned bits)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned first = i * 32;

		if (first >= bits)
			words[i] = 0;
		else if (bits - first < 32)
			words[i] &= (1u << (bits - first)) - 1;
	}
}

void floating_take_apart(uint8_t format, const uint32_t words[4],
			 struct floating *number)
{
	const struct layout *layout = &layouts[format];
	uint32_t all = (1u << layout->exponent_bits) - 1;
	unsigned bits = layout->mantissa_bits;
	uint32_t exponent = extract_bits(words, bits, layout->exponent_bits);
	unsigned one = layout->has_one ? bits - 1 : bits;
	uint32_t *mantissa = number->mantissa;
	bool has_one;

	number->is_negative = extract_bits(words, bits + layout->exponent_bits,
					   1) != 0;
	for (unsigned i = 0; i < 4; i++)
		mantissa[i] = words[i];
	mask_bits(mantissa, bits);
	has_one = layout->has_one ? extract_bits(mantissa, one, 1) != 0 :
				    exponent != 0;
	mask_bits(mantissa, one);
	number->is_infinite = exponent == all && floating_is_zero(mantissa) &&
			      has_one;
	/* An x87 number without its leading 1 is invalid, and is treated as NaN. */
	number->is_nan = (exponent == all && !number->is_infinite) ||
			 (exponent != 0 && !has_one);
	number->is_edge = exponent > 1 && floating_is_zero(mantissa);
	if (has_one)
		mantissa[one / 32] |= 1u << one % 32;
	number->exponent = (int)(exponent ? exponent : 1) - (int)(all >> 1) -
			   (int)one;
}

static int bit_length(const uint32_t words[4])
{
	int length = 128;

	while (length > 0 && !extract_bits(words, (unsigned)length - 1, 1))
		length--;
	return length;
}

/* floor(x log10(2)) + 1.  The error is 1e-6 for the largest @x, and no power of two is
 * that close to a power of ten. */
static int estimate_power(int x)
{
	return (int)(x * 5171655946ll >> 34) + 1;
}

/*
 * Computes value / scale, which is the number divided by 10^power, and the distances
 * above and below it within which a decimal reads back as the same number.  The
 * algorithm is Steele and White's, with exact integers.  Returns the power; value /
 * scale is about 0.1 to 1.
 */
static int scale_number(struct print_space *space,
			const struct floating *number)
{
	static const uint32_t one[4] = { 1 };
	unsigned edge = number->is_edge;
	int power = estimate_power(number->exponent +
				   bit_length(number->mantissa) - 1);

	set_words(&space->value, number->mantissa);
	set_words(&space->scale, one);
	set_words(&space->above, one);
	set_words(&space->below, one);
	shift_left(&space->value, 1 + edge);
	shift_left(&space->scale, 1 + edge);
	shift_left(&space->above, edge);
	if (number->exponent >= 0) {
		shift_left(&space->value, (unsigned)number->exponent);
		shift_left(&space->above, (unsigned)number->exponent);
		shift_left(&space->below, (unsigned)number->exponent);
	} else {
		shift_left(&space->scale, (unsigned)-number->exponent);
	}
	if (power >= 0) {
		multiply_by_ten_to(&space->scale, (unsigned)power);
	} else {
		multiply_by_ten_to(&space->value, (unsigned)-power);
		multiply_by_ten_to(&space->above, (unsigned)-power);
		multiply_by_ten_to(&space->below, (unsigned)-power);
	}
	return power;
}

static void multiply_all_by_ten(struct print_space *space)
{
	multiply(&space->value, 10);
	multiply(&space->above, 10);
	multiply(&space->below, 10);
}

unsigned floating_digits(struct print_space *space,
			 const struct floating *number, char digits[40],
			 int *power)
{
	/* A decimal half-way between two numbers reads back as the even one. */
	int limit = number->mantissa[0] & 1 ? 1 : 0;
	bool is_low, is_high;
	unsigned n = 0;

	*power = scale_number(space, number);
	if (compare(&space->value, &space->above, &space->scale) >= limit)
		++*power;
	else
		multiply_all_by_ten(space);
	do {
		char digit = '0';

		if (n > 0)
			multiply_all_by_ten(space);
		while (compare(&space->value, NULL, &space->scale) >= 0) {
			subtract(&space->value, &space->scale);
			digit++;
		}
		is_low = compare(&space->value, NULL, &space->below) <= -limit;
		is_high = compare(&space->value, &space->above,
				  &space->scale) >= limit;
		digits[n++] = digit;
	} while (!is_low && !is_high && n < 40);
	if (is_high && (!is_low || compare(&space->value, &space->value,
					   &space->scale) >= 0))
		digits[n - 1]++;
	return n;
}
