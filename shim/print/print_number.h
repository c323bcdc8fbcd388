/*
 * Converts numbers to text: integers, characters, enumerators and floating-point
 * numbers.
 */
#ifndef SHIM_PRINT_NUMBER_H
#define SHIM_PRINT_NUMBER_H

#include "print/printer.h"

struct integer {
	uint64_t low, high;
};

bool number_is_signed(const struct shim_typetree_node *node);

bool number_get(struct printer *printer, const struct shim_typetree_node *node,
		struct place place, struct integer *number);

/* Reads bits [bit, bit + bits) of the bytes at @place. */
bool number_get_bits(struct printer *printer,
		     const struct shim_typetree_part *part, struct place place,
		     bool with_sign, struct integer *number);

void number_put(struct printer *printer, const struct shim_typetree_node *node,
		struct integer number);

void print_integer(struct printer *printer,
		   const struct shim_typetree_node *node, struct place place);

void print_floating(struct printer *printer,
		    const struct shim_typetree_node *node, struct place place);

void print_complex(struct printer *printer,
		   const struct shim_typetree_node *node, struct place place);

#endif
