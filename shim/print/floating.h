/* Splits binary floating-point numbers of any format into sign, mantissa and exponent,
 * and converts them to decimal digits. */
#ifndef SHIM_FLOATING_H
#define SHIM_FLOATING_H

#include "print/print.h"

struct floating {
	bool is_negative, is_infinite, is_nan;
	bool is_edge; /* the gap below it is half of the gap above it */
	uint32_t mantissa[4];
	int exponent; /* of two */
};

/* The number of bytes of a number that are not padding; @format is an enum
 * shim_typetree_format. */
unsigned floating_size(uint8_t format);

void floating_take_apart(uint8_t format, const uint32_t words[4],
			 struct floating *number);

bool floating_is_zero(const uint32_t words[4]);

/*
 * Stores the shortest @digits that read back as @number; among these, the ones nearest
 * to it.  @number is finite and not 0.  Returns the count of digits; the number is
 * 0.DIGITS times 10^*@power.  Uses @space as working memory.
 */
unsigned floating_digits(struct print_space *space,
			 const struct floating *number, char digits[40],
			 int *power);

#endif
