/* Binary floating point numbers of any format, taken apart and as decimal
 * digits. */
#ifndef SHIM_FLOATING_H
#define SHIM_FLOATING_H

#include "print/print.h"

struct floating {
	bool is_negative, is_infinite, is_nan;
	bool is_edge; /* the next smaller one is only half as far as the next */
	uint32_t mantissa[4];
	int exponent; /* of two */
};

/* How many bytes of a number of @format mean something; enum shim_typetree_format.
 */
unsigned floating_size(uint8_t format);

void floating_take_apart(uint8_t format, const uint32_t words[4],
			 struct floating *number);

bool floating_is_zero(const uint32_t words[4]);

/*
 * The fewest @digits that are read back as @number, which is finite and not 0,
 * and of these the nearest; how many.  The number is 0.DIGITS by 10^*@power.
 * Works in @space.
 */
unsigned floating_digits(struct print_space *space,
			 const struct floating *number, char digits[40],
			 int *power);

#endif
