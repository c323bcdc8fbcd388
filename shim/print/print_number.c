/*
 * Prints integers, characters, enumerators and floating-point numbers.
 */
#include "print/print_number.h"

#include "os/characters.h"
#include "print/floating.h"

#include <shim/banned.h>

/* --- integers --- */

bool number_is_signed(const struct shim_typetree_node *node)
{
	return node->kind == SHIM_TYPE_SIGNED ||
	       (node->kind == SHIM_TYPE_ENUM && node->is_signed);
}

static void extend(struct integer *number, unsigned bits, bool with_sign)
{
	uint64_t sign;

	if (bits >= 128)
		return;
	if (bits >= 64) {
		number->high = with_sign && number->low >> 63 ? UINT64_MAX : 0;
		return;
	}
	sign = number->low >> (bits - 1) & 1;
	number->low &= (1ull << bits) - 1;
	if (with_sign && sign)
		number->low |= UINT64_MAX << bits;
	number->high = with_sign && sign ? UINT64_MAX : 0;
}

bool number_get(struct printer *printer, const struct shim_typetree_node *node,
		struct place place, struct integer *number)
{
	*number = (struct integer){ 0, 0 };
	if (!printer_get(printer, place, number, node->size))
		return false;
	extend(number, (unsigned)node->size * 8, number_is_signed(node));
	return true;
}

bool number_get_bits(struct printer *printer,
		     const struct shim_typetree_part *part, struct place place,
		     bool with_sign, struct integer *number)
{
	unsigned char bytes[9] = { 0 };
	uint64_t low;

	if (!printer_get(printer, place, bytes,
			 (part->bit + part->bits + 7u) / 8))
		return false;
	printer_copy(&low, bytes, 8);
	number->low = low >> part->bit;
	if (part->bit > 0)
		number->low |= (uint64_t)bytes[8] << (64 - part->bit);
	extend(number, part->bits, with_sign);
	return true;
}

/* Divides @words by 10^9; returns the remainder. */
static uint32_t divide(uint32_t words[4])
{
	uint64_t rest = 0;

	for (int i = 3; i >= 0; i--) {
		rest = rest << 32 | words[i];
		words[i] = (uint32_t)(rest / 1000000000);
		rest %= 1000000000;
	}
	return (uint32_t)rest;
}

static void put_wide(struct printer *printer, struct integer number)
{
	uint32_t words[4] = { (uint32_t)number.low,
			      (uint32_t)(number.low >> 32),
			      (uint32_t)number.high,
			      (uint32_t)(number.high >> 32) };
	char digits[45];
	size_t n = sizeof(digits);

	while (words[0] | words[1] | words[2] | words[3]) {
		uint32_t group = divide(words);

		for (int i = 0; i < 9; i++, group /= 10)
			digits[--n] = (char)('0' + group % 10);
	}
	while (digits[n] == '0')
		n++;
	for (; n < sizeof(digits); n++)
		printer_put(printer, &digits[n], 1);
}

static void put_integer(struct printer *printer, struct integer number,
			bool with_sign)
{
	if (with_sign && number.high >> 63) {
		printer_put_string(printer, "-");
		number.low = ~number.low + 1;
		number.high = ~number.high + (number.low == 0);
	}
	if (number.high == 0)
		printer_put_decimal(printer, number.low);
	else
		put_wide(printer, number);
}

static void put_character(struct printer *printer, struct integer number,
			  size_t size)
{
	char text[4] = { (char)number.low };
	size_t length = 1;
	uint32_t decoded;

	if (size > 1) {
		uint32_t c = (uint32_t)number.low;

		length = printer_encode_utf8(c > 0x10ffff ? 0 : c, text);
		/* Prints an invalid character as a number. */
		if (c > 0x10ffff ||
		    character_at(text, length, &decoded) != length) {
			printer_put_decimal(printer, number.low);
			return;
		}
	}
	printer_put_either(printer, "'", "\"");
	printer_put_escaped(printer, (unsigned char *)text, length, '\'');
	printer_put_either(printer, "'", "\"");
}

/* --- enumerators --- */

static const struct shim_typetree_part *
find_enumerator(const struct printer *printer,
		const struct shim_typetree_node *node, int64_t value)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;

	for (uint32_t i = 0; i < node->count; i++)
		if (parts[i].value == value)
			return &parts[i];
	return NULL;
}

static bool has_names_for(const struct printer *printer,
			  const struct shim_typetree_node *node, uint64_t value)
{
	if (!node->is_flags || value == 0)
		return false;
	for (; value; value &= value - 1)
		if (!find_enumerator(printer, node, (int64_t)(value & -value)))
			return false;
	return true;
}

static void put_flags(struct printer *printer,
		      const struct shim_typetree_node *node, uint64_t value)
{
	const char *between = "";

	for (; value; value &= value - 1) {
		const struct shim_typetree_part *part = find_enumerator(
			printer, node, (int64_t)(value & -value));

		printer_put_string(printer, between);
		printer_put_name(printer, printer->names + part->name);
		between = "|";
	}
}

static void put_enumerator(struct printer *printer,
			   const struct shim_typetree_node *node,
			   struct integer number)
{
	const struct shim_typetree_part *part = find_enumerator(
		printer, node, (int64_t)number.low);

	if (part) {
		printer_put_word(printer, printer->names + part->name);
	} else if (has_names_for(printer, node, number.low)) {
		printer_put_either(printer, "", "\"");
		put_flags(printer, node, number.low);
		printer_put_either(printer, "", "\"");
	} else {
		if (!printer->is_json) {
			printer_put_string(printer, "(");
			printer_put_name(printer, printer->names + node->name);
			printer_put_string(printer, ") ");
		}
		put_integer(printer, number, number_is_signed(node));
	}
}

void number_put(struct printer *printer, const struct shim_typetree_node *node,
		struct integer number)
{
	switch (node->kind) {
	case SHIM_TYPE_BOOL:
		/* Prints an invalid bool as a number. */
		if (number.low > 1)
			printer_put_decimal(printer, number.low);
		else
			printer_put_string(printer,
					   number.low ? "true" : "false");
		break;
	case SHIM_TYPE_CHARACTER:
		put_character(printer, number, node->size);
		break;
	case SHIM_TYPE_ENUM: put_enumerator(printer, node, number); break;
	default: put_integer(printer, number, number_is_signed(node));
	}
}

void print_integer(struct printer *printer,
		   const struct shim_typetree_node *node, struct place place)
{
	struct integer number;

	if (number_get(printer, node, place, &number))
		number_put(printer, node, number);
	else
		printer_put_unreadable(printer, place.address);
}

/* --- floating point --- */

static void put_digits(struct printer *printer, const char *digits, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		printer_put(printer, &digits[i], 1);
}

static void put_zeros(struct printer *printer, int count)
{
	while (count-- > 0)
		printer_put_string(printer, "0");
}

static void put_exponent(struct printer *printer, int exponent)
{
	unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);

	printer_put_string(printer, exponent < 0 ? "e-" : "e+");
	put_zeros(printer, size < 10);
	printer_put_decimal(printer, size);
}

static void put_positional(struct printer *printer, const char *digits,
			   unsigned n, int power)
{
	unsigned before = power > 0 ? (unsigned)power : 0;

	if (power <= 0) {
		printer_put_string(printer, "0.");
		put_zeros(printer, -power);
	}
	put_digits(printer, digits, before < n ? before : n);
	put_zeros(printer, (int)before - (int)n);
	if (power > 0 && before < n)
		printer_put_string(printer, ".");
	if (before < n)
		put_digits(printer, digits + before, n - before);
}

static void put_finite(struct printer *printer, const struct floating *number)
{
	char digits[40];
	int power;
	unsigned n;

	if (number->is_negative)
		printer_put_string(printer, "-");
	if (floating_is_zero(number->mantissa)) {
		printer_put_string(printer, "0");
		return;
	}
	n = floating_digits(printer->space, number, digits, &power);
	if (power > -4 && power <= 16) {
		put_positional(printer, digits, n, power);
		return;
	}
	put_digits(printer, digits, 1);
	if (n > 1)
		printer_put_string(printer, ".");
	put_digits(printer, digits + 1, n - 1);
	put_exponent(printer, power - 1);
}

static void put_floating(struct printer *printer, const struct floating *number)
{
	if (number->is_nan)
		printer_put_word(printer, number->is_negative ? "-nan" : "nan");
	else if (number->is_infinite)
		printer_put_word(printer, number->is_negative ? "-inf" : "inf");
	else
		put_finite(printer, number);
}

static bool get_floating(struct printer *printer,
			 const struct shim_typetree_node *node,
			 struct place place, struct floating *number)
{
	uint32_t words[4] = { 0 };

	if (!printer_get(printer, place, words, floating_size(node->format)))
		return false;
	floating_take_apart(node->format, words, number);
	return true;
}

void print_floating(struct printer *printer,
		    const struct shim_typetree_node *node, struct place place)
{
	struct floating number;

	if (get_floating(printer, node, place, &number))
		put_floating(printer, &number);
	else
		printer_put_unreadable(printer, place.address);
}

void print_complex(struct printer *printer,
		   const struct shim_typetree_node *node, struct place place)
{
	struct floating real, imaginary;
	bool is_negative;

	if (!get_floating(printer, node, place, &real) ||
	    !get_floating(printer, node, place_at(place, node->size / 2),
			  &imaginary)) {
		printer_put_unreadable(printer, place.address);
		return;
	}
	printer_put_either(printer, "", "{\"real\": ");
	put_floating(printer, &real);
	is_negative = imaginary.is_negative && !printer->is_json;
	if (is_negative)
		imaginary.is_negative = false;
	printer_put_either(printer, is_negative ? " - " : " + ",
			   ", \"imaginary\": ");
	put_floating(printer, &imaginary);
	printer_put_either(printer, "i", "}");
}
