/*
 * Prints a value by its type tree.  A callback reads the memory that pointers lead to,
 * so the same code prints values of the live process and of a recording.
 */
#include "print/print.h"

#include "print/floating.h"

#include <shim/banned.h>

#define DEPTH_MAX    8 /* each level takes about 300 bytes of stack */
#define PAGE_SIZE    4096u
#define SHORT_TEXT   64u
#define SHORT_LIST   16u
#define LONG_LIST    256u
#define SHORT_LENGTH 4096u /* bytes of text after which lists end */
#define LONG_LENGTH  65536u

struct printer {
	const struct print_job *job;
	struct print_space *space;
	const struct shim_typetree_node *nodes;
	const struct shim_typetree_part *parts;
	const char *names;
	bool is_json, is_plain, is_long;
	unsigned depth;
	char *text;
	size_t size, length;
	bool is_cut; /* nothing more fits */
};

/* Bytes of the value itself, or of memory that the callback reads. */
struct place {
	uintptr_t address;
	bool is_own;
};

static void print_node(struct printer *printer, uint32_t index,
		       struct place place);

/* --- text --- */

/* Appends @bytes, one character, as a whole or not at all. */
static void put(struct printer *printer, const char *bytes, size_t size)
{
	if (!printer->is_cut && printer->length + size < printer->size) {
		for (size_t i = 0; i < size; i++)
			printer->text[printer->length + i] = bytes[i];
		printer->text[printer->length + size] = '\0';
	} else {
		printer->is_cut = true;
	}
	printer->length += size;
}

static void put_string(struct printer *printer, const char *string)
{
	for (; *string; string++)
		put(printer, string, 1);
}

/* Appends the string for the format in use. */
static void put_either(struct printer *printer, const char *plain,
		       const char *json)
{
	put_string(printer, printer->is_json ? json : plain);
}

static char hex_digit(unsigned value)
{
	return "0123456789abcdef"[value & 15];
}

static void put_hex(struct printer *printer, uint64_t number)
{
	int shift = 60;

	put_string(printer, "0x");
	while (shift > 0 && number >> shift == 0)
		shift -= 4;
	for (; shift >= 0; shift -= 4) {
		char digit = hex_digit((unsigned)(number >> shift));

		put(printer, &digit, 1);
	}
}

static void put_decimal(struct printer *printer, uint64_t number)
{
	char digits[20];
	size_t n = sizeof(digits);

	do
		digits[--n] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	for (; n < sizeof(digits); n++)
		put(printer, &digits[n], 1);
}

/* The length of the UTF-8 sequence at @text; 0 if it is invalid. */
static size_t decode(const unsigned char *text, size_t size,
		     uint32_t *character)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t c = text[0];
	size_t length;

	*character = c;
	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	length = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (length > size)
		return 0;
	c &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*character = c;
	return length;
}

static size_t encode(uint32_t c, char *text)
{
	size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (length == 1) {
		text[0] = (char)c;
		return 1;
	}
	for (size_t i = length - 1; i > 0; i--, c >>= 6)
		text[i] = (char)(0x80 | (c & 0x3f));
	text[0] = (char)((0xf00u >> length & 0xffu) | c);
	return length;
}

/* False for C0, DEL, C1, line and paragraph separators, and marks that change the
 * direction of text. */
static bool is_harmless(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) &&
	       !(c >= 0x200e && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
	       !(c >= 0x2066 && c <= 0x2069) && c != 0x61c && c != 0xfeff;
}

static void put_byte_escape(struct printer *printer, unsigned char byte)
{
	char escape[] = { '\\', 'x', hex_digit(byte >> 4), hex_digit(byte) };

	/* JSON has no escape for bytes, so it gets the characters "\xNN". */
	put_either(printer, "", "\\");
	for (size_t i = 0; i < sizeof(escape); i++)
		put(printer, &escape[i], 1);
}

/* All characters that need it are in the first plane of Unicode. */
static void put_json_escape(struct printer *printer, uint32_t c)
{
	put_string(printer, "\\u");
	for (int shift = 12; shift >= 0; shift -= 4) {
		char digit = hex_digit(c >> shift);

		put(printer, &digit, 1);
	}
}

static const char *short_escape(uint32_t c, char quote)
{
	switch (c) {
	case '\n': return "\\n";
	case '\t': return "\\t";
	case '\r': return "\\r";
	case '\\': return "\\\\";
	case '"': return quote == '"' ? "\\\"" : NULL;
	case '\'': return quote == '\'' ? "\\'" : NULL;
	default: return NULL;
	}
}

/* Appends the first character of @text, escaped for a string in @quote.  Returns its
 * size in @text. */
static size_t put_escaped(struct printer *printer, const unsigned char *text,
			  size_t size, char quote)
{
	uint32_t c;
	size_t length = decode(text, size, &c);
	const char *escape = length ?
				     short_escape(c, printer->is_json ? '"' :
									quote) :
				     NULL;

	if (length == 0) {
		put_byte_escape(printer, text[0]);
		return 1;
	}
	if (escape)
		put_string(printer, escape);
	else if (is_harmless(c))
		put(printer, (const char *)text, length);
	else if (printer->is_json)
		put_json_escape(printer, c);
	else
		for (size_t i = 0; i < length; i++)
			put_byte_escape(printer, text[i]);
	return length;
}

static void put_all_escaped(struct printer *printer, const unsigned char *text,
			    size_t size, char quote)
{
	for (size_t at = 0; at < size;)
		at += put_escaped(printer, text + at, size - at, quote);
}

static size_t length_of(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static void put_name(struct printer *printer, const char *name)
{
	put_all_escaped(printer, (const unsigned char *)name, length_of(name),
			'\0');
}

/* Appends a word: bare in text, a string in JSON. */
static void put_word(struct printer *printer, const char *word)
{
	put_either(printer, "", "\"");
	put_name(printer, word);
	put_either(printer, "", "\"");
}

/* --- bytes --- */

static void copy(void *to, const void *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
}

static size_t left_in_page(uintptr_t address)
{
	return PAGE_SIZE - address % PAGE_SIZE;
}

static bool read(struct printer *printer, uintptr_t from, void *to, size_t size)
{
	const struct print_job *job = printer->job;

	return job->read && !printer->is_plain &&
	       job->read(job->argument, from, to, size) == 0;
}

/* Reads ahead: the next read is often of the following bytes. */
static bool move_window(struct printer *printer, uintptr_t from)
{
	struct print_space *space = printer->space;
	size_t size = left_in_page(from);

	if (size > PRINT_WINDOW)
		size = PRINT_WINDOW;
	space->window_size = 0;
	if (!read(printer, from, space->window, size))
		return false;
	space->window_start = from;
	space->window_size = size;
	return true;
}

static bool get_piece(struct printer *printer, uintptr_t from, void *to,
		      size_t size)
{
	struct print_space *space = printer->space;
	uintptr_t offset = from - space->window_start;

	if (offset >= space->window_size ||
	    size > space->window_size - offset) {
		if (!move_window(printer, from))
			return false;
		offset = 0;
	}
	copy(to, space->window + offset, size);
	return true;
}

/* @size is at most PRINT_WINDOW. */
static bool get(struct printer *printer, struct place place, void *to,
		size_t size)
{
	size_t first = left_in_page(place.address);

	if (place.is_own) {
		copy(to, (const void *)place.address, size);
		return true;
	}
	if (place.address + size < place.address)
		return false;
	if (first >= size)
		return get_piece(printer, place.address, to, size);
	return get_piece(printer, place.address, to, first) &&
	       get_piece(printer, place.address + first, (char *)to + first,
			 size - first);
}

static struct place at(struct place place, uint64_t offset)
{
	place.address += offset;
	return place;
}

static void put_unreadable(struct printer *printer, uintptr_t address)
{
	put_either(printer, "", "{\"unreadable\": \"");
	put_hex(printer, address);
	put_either(printer, " (unreadable)", "\"}");
}

static void put_elision(struct printer *printer)
{
	put_either(printer, "{...}", "\"{...}\"");
}

static bool is_full(const struct printer *printer)
{
	return printer->length >
	       (printer->is_long ? LONG_LENGTH : SHORT_LENGTH);
}

/* --- integers --- */

struct integer {
	uint64_t low, high;
};

static bool is_signed(const struct shim_typetree_node *node)
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

static bool get_integer(struct printer *printer,
			const struct shim_typetree_node *node,
			struct place place, struct integer *number)
{
	*number = (struct integer){ 0, 0 };
	if (!get(printer, place, number, node->size))
		return false;
	extend(number, (unsigned)node->size * 8, is_signed(node));
	return true;
}

/* Reads bits [bit, bit + bits) of the bytes at @place. */
static bool get_bits(struct printer *printer,
		     const struct shim_typetree_part *part, struct place place,
		     bool with_sign, struct integer *number)
{
	unsigned char bytes[9] = { 0 };
	uint64_t low;

	if (!get(printer, place, bytes, (part->bit + part->bits + 7u) / 8))
		return false;
	copy(&low, bytes, 8);
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
		put(printer, &digits[n], 1);
}

static void put_integer(struct printer *printer, struct integer number,
			bool with_sign)
{
	if (with_sign && number.high >> 63) {
		put_string(printer, "-");
		number.low = ~number.low + 1;
		number.high = ~number.high + (number.low == 0);
	}
	if (number.high == 0)
		put_decimal(printer, number.low);
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

		length = encode(c > 0x10ffff ? 0 : c, text);
		/* Prints an invalid character as a number. */
		if (c > 0x10ffff ||
		    decode((unsigned char *)text, length, &decoded) != length) {
			put_decimal(printer, number.low);
			return;
		}
	}
	put_either(printer, "'", "\"");
	put_escaped(printer, (unsigned char *)text, length, '\'');
	put_either(printer, "'", "\"");
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

		put_string(printer, between);
		put_name(printer, printer->names + part->name);
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
		put_word(printer, printer->names + part->name);
	} else if (has_names_for(printer, node, number.low)) {
		put_either(printer, "", "\"");
		put_flags(printer, node, number.low);
		put_either(printer, "", "\"");
	} else {
		if (!printer->is_json) {
			put_string(printer, "(");
			put_name(printer, printer->names + node->name);
			put_string(printer, ") ");
		}
		put_integer(printer, number, is_signed(node));
	}
}

static void put_number(struct printer *printer,
		       const struct shim_typetree_node *node,
		       struct integer number)
{
	switch (node->kind) {
	case SHIM_TYPE_BOOL:
		/* Prints an invalid bool as a number. */
		if (number.low > 1)
			put_decimal(printer, number.low);
		else
			put_string(printer, number.low ? "true" : "false");
		break;
	case SHIM_TYPE_CHARACTER:
		put_character(printer, number, node->size);
		break;
	case SHIM_TYPE_ENUM: put_enumerator(printer, node, number); break;
	default: put_integer(printer, number, is_signed(node));
	}
}

static void print_integer(struct printer *printer,
			  const struct shim_typetree_node *node,
			  struct place place)
{
	struct integer number;

	if (get_integer(printer, node, place, &number))
		put_number(printer, node, number);
	else
		put_unreadable(printer, place.address);
}

/* --- floating point --- */

static void put_digits(struct printer *printer, const char *digits, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		put(printer, &digits[i], 1);
}

static void put_zeros(struct printer *printer, int count)
{
	while (count-- > 0)
		put_string(printer, "0");
}

static void put_exponent(struct printer *printer, int exponent)
{
	unsigned size = (unsigned)(exponent < 0 ? -exponent : exponent);

	put_string(printer, exponent < 0 ? "e-" : "e+");
	put_zeros(printer, size < 10);
	put_decimal(printer, size);
}

static void put_positional(struct printer *printer, const char *digits,
			   unsigned n, int power)
{
	unsigned before = power > 0 ? (unsigned)power : 0;

	if (power <= 0) {
		put_string(printer, "0.");
		put_zeros(printer, -power);
	}
	put_digits(printer, digits, before < n ? before : n);
	put_zeros(printer, (int)before - (int)n);
	if (power > 0 && before < n)
		put_string(printer, ".");
	if (before < n)
		put_digits(printer, digits + before, n - before);
}

static void put_finite(struct printer *printer, const struct floating *number)
{
	char digits[40];
	int power;
	unsigned n;

	if (number->is_negative)
		put_string(printer, "-");
	if (floating_is_zero(number->mantissa)) {
		put_string(printer, "0");
		return;
	}
	n = floating_digits(printer->space, number, digits, &power);
	if (power > -4 && power <= 16) {
		put_positional(printer, digits, n, power);
		return;
	}
	put_digits(printer, digits, 1);
	if (n > 1)
		put_string(printer, ".");
	put_digits(printer, digits + 1, n - 1);
	put_exponent(printer, power - 1);
}

static void put_floating(struct printer *printer, const struct floating *number)
{
	if (number->is_nan)
		put_word(printer, number->is_negative ? "-nan" : "nan");
	else if (number->is_infinite)
		put_word(printer, number->is_negative ? "-inf" : "inf");
	else
		put_finite(printer, number);
}

static bool get_floating(struct printer *printer,
			 const struct shim_typetree_node *node,
			 struct place place, struct floating *number)
{
	uint32_t words[4] = { 0 };

	if (!get(printer, place, words, floating_size(node->format)))
		return false;
	floating_take_apart(node->format, words, number);
	return true;
}

static void print_floating(struct printer *printer,
			   const struct shim_typetree_node *node,
			   struct place place)
{
	struct floating number;

	if (get_floating(printer, node, place, &number))
		put_floating(printer, &number);
	else
		put_unreadable(printer, place.address);
}

static void print_complex(struct printer *printer,
			  const struct shim_typetree_node *node,
			  struct place place)
{
	struct floating real, imaginary;
	bool is_negative;

	if (!get_floating(printer, node, place, &real) ||
	    !get_floating(printer, node, at(place, node->size / 2),
			  &imaginary)) {
		put_unreadable(printer, place.address);
		return;
	}
	put_either(printer, "", "{\"real\": ");
	put_floating(printer, &real);
	is_negative = imaginary.is_negative && !printer->is_json;
	if (is_negative)
		imaginary.is_negative = false;
	put_either(printer, is_negative ? " - " : " + ", ", \"imaginary\": ");
	put_floating(printer, &imaginary);
	put_either(printer, "i", "}");
}

/* --- strings --- */

#define TO_NUL UINT64_MAX

static size_t text_max(const struct printer *printer)
{
	return printer->is_long ? PRINT_TEXT_MAX : SHORT_TEXT;
}

/* Reads as many bytes as possible, at most @wanted, and with @to_nul up to the NUL. */
static size_t get_text(struct printer *printer, struct place place,
		       size_t wanted, bool to_nul, bool *has_end)
{
	unsigned char *text = printer->space->text;
	size_t got = 0;

	*has_end = false;
	while (got < wanted) {
		uintptr_t from = place.address + got;
		size_t piece = left_in_page(from);

		if (piece > wanted - got)
			piece = wanted - got;
		if (place.is_own)
			copy(text + got, (const void *)from, piece);
		else if (from < place.address ||
			 !read(printer, from, text + got, piece))
			return got;
		for (size_t i = 0; to_nul && i < piece; i++) {
			if (text[got + i] != '\0')
				continue;
			*has_end = true;
			return got + i;
		}
		got += piece;
	}
	return got;
}

/* The size of @text cut to @max bytes, between two characters if it is UTF-8. */
static size_t cut_text(const unsigned char *text, size_t size, size_t max)
{
	size_t back = 0;

	if (size <= max)
		return size;
	while (back < 3 && back < max && (text[max - back] & 0xc0) == 0x80)
		back++;
	return (text[max - back] & 0xc0) == 0x80 ? max : max - back;
}

/* @length: the bytes of the string, or TO_NUL; @room: the most bytes there can be. */
static void print_text(struct printer *printer, struct place place,
		       uint64_t length, uint64_t room)
{
	size_t max = text_max(printer), wanted = max + 1, got, shown;
	bool to_nul = length == TO_NUL, has_end, is_cut;

	if (length < wanted)
		wanted = (size_t)length;
	if (room < wanted)
		wanted = (size_t)room;
	got = get_text(printer, place, wanted, to_nul, &has_end);
	if (got == 0 && wanted > 0 && !has_end) {
		put_unreadable(printer, place.address);
		return;
	}
	/* A full array has no NUL. */
	is_cut = !has_end && got != length && got != room;
	shown = cut_text(printer->space->text, got, max);
	is_cut |= shown < got;
	put_either(printer, "", is_cut ? "{\"cut\": " : "");
	put_string(printer, "\"");
	put_all_escaped(printer, printer->space->text, shown, '"');
	put_string(printer, "\"");
	if (is_cut)
		put_either(printer, "...", "}");
}

static bool is_text(const struct shim_typetree_node *node)
{
	return node->size == 1 && (node->kind == SHIM_TYPE_CHARACTER ||
				   node->kind == SHIM_TYPE_SIGNED ||
				   node->kind == SHIM_TYPE_UNSIGNED);
}

/* --- pointers --- */

static void put_address(struct printer *printer, uintptr_t address)
{
	const struct print_job *job = printer->job;
	char *name = printer->space->name;
	uint64_t offset = 0;

	put_either(printer, "", "\"");
	put_hex(printer, address);
	if (job->name && !printer->is_plain &&
	    job->name(job->argument, address, name, PRINT_NAME_SIZE, &offset)) {
		put_string(printer, " <");
		put_name(printer, name);
		if (offset > 0) {
			put_string(printer, "+");
			put_decimal(printer, offset);
		}
		put_string(printer, ">");
	}
	put_either(printer, "", "\"");
}

static bool get_address(struct printer *printer, struct place place,
			uintptr_t *address)
{
	return get(printer, place, address, sizeof(*address));
}

static void print_pointer(struct printer *printer,
			  const struct shim_typetree_node *node,
			  struct place place)
{
	uintptr_t address;

	if (!get_address(printer, place, &address))
		put_unreadable(printer, place.address);
	else if (address == 0)
		put_either(printer, "NULL", "null");
	else if (node->inner && is_text(&printer->nodes[node->inner]) &&
		 !printer->is_plain)
		print_text(printer, (struct place){ address, false }, TO_NUL,
			   TO_NUL);
	else
		put_address(printer, address);
}

static void print_reference(struct printer *printer,
			    const struct shim_typetree_node *node,
			    struct place place)
{
	struct place object = { 0, false };
	char byte;

	if (!get_address(printer, place, &object.address))
		put_unreadable(printer, place.address);
	else if (object.address == 0)
		put_either(printer, "NULL", "null");
	else if (printer->is_plain || !node->inner ||
		 printer->nodes[node->inner].kind == SHIM_TYPE_FUNCTION)
		put_address(printer, object.address);
	else if (!get(printer, object, &byte, 1))
		put_unreadable(printer, object.address);
	else
		print_node(printer, node->inner, object);
}

/* A pointer to a field is its offset; -1 is NULL, because 0 is the first field.  A
 * pointer to a function is its address, or an odd number if the function is virtual. */
static void print_member_pointer(struct printer *printer,
				 const struct shim_typetree_node *node,
				 struct place place)
{
	bool is_field = node->size == sizeof(uintptr_t);
	uintptr_t value;

	if (!get_address(printer, place, &value))
		put_unreadable(printer, place.address);
	else if (value == (is_field ? UINTPTR_MAX : 0))
		put_either(printer, "NULL", "null");
	else if (is_field)
		put_decimal(printer, value);
	else
		put_address(printer, value);
}

/* --- lists --- */

static void print_elements(struct printer *printer, uint32_t inner,
			   uint64_t count, struct place place)
{
	uint64_t max = printer->is_long ? LONG_LIST : SHORT_LIST;

	for (uint64_t i = 0; i < count; i++) {
		if (i > 0)
			put_string(printer, ", ");
		if (i == max || is_full(printer)) {
			put_either(printer, "...", "\"...\"");
			return;
		}
		print_node(printer, inner,
			   at(place, i * printer->nodes[inner].size));
	}
}

static void print_array(struct printer *printer,
			const struct shim_typetree_node *node,
			struct place place)
{
	const struct shim_typetree_node *inner = &printer->nodes[node->inner];

	if (!node->inner || node->elements == UINT64_MAX) {
		put_either(printer, "[...]", "[\"...\"]");
		return;
	}
	if (node->kind == SHIM_TYPE_ARRAY &&
	    inner->kind == SHIM_TYPE_CHARACTER && inner->size == 1) {
		print_text(printer, place, TO_NUL, node->elements);
		return;
	}
	put_string(printer, "[");
	print_elements(printer, node->inner, node->elements, place);
	put_string(printer, "]");
}

static void put_field_name(struct printer *printer, const char *name)
{
	if (printer->is_json || name[0]) {
		put_word(printer, name);
		put_either(printer, " = ", ": ");
	}
}

static void print_field(struct printer *printer,
			const struct shim_typetree_part *part,
			struct place place)
{
	const struct shim_typetree_node *node = &printer->nodes[part->node];
	struct integer number;

	place = at(place, (uint64_t)part->value);
	put_field_name(printer, printer->names + part->name);
	if (part->bits == 0)
		print_node(printer, part->node, place);
	else if (get_bits(printer, part, place, is_signed(node), &number))
		put_number(printer, node, number);
	else
		put_unreadable(printer, place.address);
}

static void print_class(struct printer *printer,
			const struct shim_typetree_node *node,
			struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;

	if (node->is_cut) {
		put_elision(printer);
		return;
	}
	put_string(printer, "{");
	for (uint32_t i = 0; i < node->count; i++) {
		if (i > 0)
			put_string(printer, ", ");
		if (is_full(printer)) {
			put_either(printer, "...", "\"...\": null");
			break;
		}
		print_field(printer, &parts[i], place);
	}
	put_string(printer, "}");
}

/* --- classes of the C++ library --- */

static struct place place_of(const struct shim_typetree_part *part,
			     struct place place)
{
	return at(place, (uint64_t)part->value);
}

static void print_string_class(struct printer *printer,
			       const struct shim_typetree_node *node,
			       struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	struct place text = { 0, false }, length_place;
	struct integer length;

	if (printer->is_plain) {
		put_elision(printer);
		return;
	}
	if (!get_address(printer, place_of(&parts[0], place), &text.address)) {
		put_unreadable(printer, place.address);
		return;
	}
	length_place = place_of(
		&parts[1],
		parts[1].flags & SHIM_TYPETREE_INDIRECT ? text : place);
	if (!get_integer(printer, &printer->nodes[parts[1].node], length_place,
			 &length))
		put_unreadable(printer, length_place.address);
	else
		print_text(printer, text, length.low & ~(1ull << 63),
			   UINT64_MAX);
}

static void print_short_string_class(struct printer *printer,
				     const struct shim_typetree_node *node,
				     struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	struct integer size;

	if (printer->is_plain)
		put_elision(printer);
	else if (!get_integer(printer, &printer->nodes[parts[2].node],
			      place_of(&parts[2], place), &size))
		put_unreadable(printer, place.address);
	else if (size.low & 1)
		print_string_class(printer, node, place);
	else
		print_text(printer, place_of(&parts[3], place),
			   (size.low & 0xff) >> 1,
			   node->size - (uint64_t)parts[3].value);
}

static void print_sequence(struct printer *printer,
			   const struct shim_typetree_node *node,
			   struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	uint64_t size = printer->nodes[node->inner].size, count;
	struct place first = { 0, false }, last = { 0, false };

	if (printer->is_plain) {
		put_elision(printer);
		return;
	}
	if (!get_address(printer, place_of(&parts[0], place), &first.address) ||
	    !get_address(printer, place_of(&parts[1], place), &last.address)) {
		put_unreadable(printer, place.address);
		return;
	}
	/* The container is not yet constructed, or destroyed. */
	if (last.address < first.address ||
	    (last.address - first.address) % size != 0) {
		put_elision(printer);
		return;
	}
	count = (last.address - first.address) / size;
	put_either(printer, "{size ", "{\"size\": ");
	put_decimal(printer, count);
	put_either(printer, count ? ": " : "", ", \"elements\": [");
	print_elements(printer, node->inner, count, first);
	put_either(printer, "}", "]}");
}

static void print_optional(struct printer *printer,
			   const struct shim_typetree_node *node,
			   struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;
	struct integer is_there;

	if (!get_integer(printer, &printer->nodes[parts[1].node],
			 place_of(&parts[1], place), &is_there))
		put_unreadable(printer, place.address);
	else if (is_there.low & 1)
		print_node(printer, parts[0].node, place_of(&parts[0], place));
	else
		put_either(printer, "nullopt", "null");
}

static bool print_form(struct printer *printer,
		       const struct shim_typetree_node *node,
		       struct place place)
{
	const struct shim_typetree_part *parts = printer->parts + node->first;

	switch (node->form) {
	case SHIM_TYPETREE_TEXT:
		print_string_class(printer, node, place);
		break;
	case SHIM_TYPETREE_SHORT_TEXT:
		print_short_string_class(printer, node, place);
		break;
	case SHIM_TYPETREE_SEQUENCE:
		print_sequence(printer, node, place);
		break;
	case SHIM_TYPETREE_OPTIONAL:
		print_optional(printer, node, place);
		break;
	case SHIM_TYPETREE_WRAPPER:
		print_node(printer, parts[0].node, place_of(&parts[0], place));
		break;
	default: return false;
	}
	return true;
}

/* --- any value --- */

static void print_kind(struct printer *printer,
		       const struct shim_typetree_node *node,
		       struct place place)
{
	switch (node->kind) {
	case SHIM_TYPE_VOID: put_either(printer, "void", "null"); break;
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED:
	case SHIM_TYPE_ENUM: print_integer(printer, node, place); break;
	case SHIM_TYPE_FLOAT: print_floating(printer, node, place); break;
	case SHIM_TYPE_COMPLEX: print_complex(printer, node, place); break;
	case SHIM_TYPE_POINTER: print_pointer(printer, node, place); break;
	case SHIM_TYPE_REFERENCE: print_reference(printer, node, place); break;
	case SHIM_TYPE_MEMBER_POINTER:
		print_member_pointer(printer, node, place);
		break;
	case SHIM_TYPE_ARRAY:
	case SHIM_TYPE_VECTOR: print_array(printer, node, place); break;
	case SHIM_TYPE_STRUCT:
	case SHIM_TYPE_UNION: print_class(printer, node, place); break;
	case SHIM_TYPE_FUNCTION: put_address(printer, place.address); break;
	default: put_word(printer, "(unknown)");
	}
}

static void print_node(struct printer *printer, uint32_t index,
		       struct place place)
{
	const struct shim_typetree_node *node = &printer->nodes[index];

	if (printer->depth == DEPTH_MAX) {
		put_elision(printer);
		return;
	}
	printer->depth++;
	if (!print_form(printer, node, place))
		print_kind(printer, node, place);
	printer->depth--;
}

bool print_needs_space(const struct shim_typetree *tree)
{
	switch (shim_typetree_nodes(tree)->kind) {
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED:
	case SHIM_TYPE_ENUM: return false;
	default: return true;
	}
}

size_t print_write(const struct print_job *job, char *text, size_t size)
{
	struct printer printer = {
		.job = job,
		.space = job->space,
		.nodes = shim_typetree_nodes(job->tree),
		.parts = shim_typetree_parts(job->tree),
		.names = shim_typetree_text(job->tree),
		.is_json = job->flags & SHIM_PRINT_JSON,
		.is_plain = job->flags & SHIM_PRINT_PLAIN,
		.is_long = job->flags & SHIM_PRINT_LONG,
		.text = text,
		.size = size,
	};

	if (job->space)
		job->space->window_size = 0;
	if (size > 0)
		text[0] = '\0';
	print_node(&printer, 0, (struct place){ (uintptr_t)job->value, true });
	return printer.length + 1;
}
