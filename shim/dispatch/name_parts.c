/*
 * Splits C++ linker names in place, as the Itanium ABI has them, and Fortran's.  Template
 * arguments and references to earlier parts ("S0_") are skipped.
 */
#include "dispatch/name_parts.h"

#include "os/text.h"

#include <stdbool.h>

#include <shim/banned.h>

/* The most template arguments in each other; compilers write fewer. */
#define NESTING_MAX 32

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *read_source_name(const char *at, struct name_part *part)
{
	size_t length = 0;

	for (; is_digit(*at); at++)
		length = length * 10 + (size_t)(*at - '0');
	for (size_t i = 0; i < length; i++)
		if (at[i] == '\0')
			return NULL;
	*part = (struct name_part){ at, length };
	return at + length;
}

static const char *pass_source_name(const char *at)
{
	struct name_part unused;

	return read_source_name(at, &unused);
}

/* Passes digits, and an underscore if there is one. */
static const char *pass_number(const char *at)
{
	while (is_digit(*at))
		at++;
	return *at == '_' ? at + 1 : at;
}

/* @at is after the S or T of a reference to an earlier part or a template argument. */
static const char *pass_reference(const char *at)
{
	while (*at && *at != '_' && !(*at >= 'a' && *at <= 'z'))
		at++;
	return *at ? at + 1 : at;
}

static const char *pass_arguments(const char *at, unsigned nesting);

/* @at is after the L of a literal: its type and its value, or the name of a function.
 * Returns the address after its E, or NULL. */
static const char *pass_literal(const char *at, unsigned nesting)
{
	if (at[0] == '_' && at[1] == 'Z')
		return pass_arguments(at + 2, nesting);
	if (at[0] == 'S' && at[1] == 't')
		at += 2;
	if (*at == 'N')
		at = pass_arguments(at + 1, nesting);
	else if (*at == 'S')
		at = pass_reference(at + 1);
	else if (is_digit(*at))
		at = pass_source_name(at);
	while (at && *at && *at != 'E')
		at++;
	return at && *at ? at + 1 : NULL;
}

/* Whether an E ends what begins with this letter: arguments, a nested name, an expression,
 * a function's type, a pack, a local name. */
static bool has_end(char c)
{
	return c == 'I' || c == 'N' || c == 'X' || c == 'F' || c == 'J' ||
	       c == 'Z';
}

static const char *pass_argument(const char *at, unsigned nesting)
{
	if (is_digit(*at))
		return pass_source_name(at);
	if (*at == 'S' || *at == 'T')
		return pass_reference(at + 1);
	if (*at == 'L')
		return pass_literal(at + 1, nesting);
	if (at[0] == 'U' && at[1] == 'l') { /* a lambda, and its number */
		at = pass_arguments(at + 2, nesting);
		return at ? pass_number(at) : NULL;
	}
	if (at[0] == 'D' && (at[1] == 'T' || at[1] == 't')) /* decltype */
		return pass_arguments(at + 2, nesting);
	if ((at[0] == 'U' && at[1] == 't') || (at[0] == 'D' && at[1] == 'v'))
		return pass_number(at + 2);
	if (*at == 'A' || *at == '_') /* an array, or the number of a name */
		return pass_number(at + 1);
	return has_end(*at) ? pass_arguments(at + 1, nesting) : at + 1;
}

/* @at is after the I of template arguments, or after another letter that has an end.
 * Returns the address after their E, or NULL. */
static const char *pass_arguments(const char *at, unsigned nesting)
{
	if (nesting == NESTING_MAX)
		return NULL;
	while (at && *at && *at != 'E')
		at = pass_argument(at, nesting + 1);
	return at && *at ? at + 1 : NULL;
}

/* The class of the standard library that the letter after S means, or NULL. */
static const char *standard_class(char letter)
{
	switch (letter) {
	case 'a': return "allocator";
	case 'b': return "basic_string";
	case 's': return "string";
	case 'i': return "istream";
	case 'o': return "ostream";
	case 'd': return "iostream";
	default: return NULL;
	}
}

static void add(struct name_part parts[NAME_PARTS_MAX], unsigned *count,
		const char *text)
{
	parts[(*count)++] = (struct name_part){ text, text_length(text) };
}

/* Adds at most two parts. */
static const char *read_part(const char *at,
			     struct name_part parts[NAME_PARTS_MAX],
			     unsigned *count)
{
	if (is_digit(*at))
		return read_source_name(at, &parts[(*count)++]);
	if (*at == 'B') /* a tag, as of functions that return std::string */
		return pass_source_name(at + 1);
	if (*at == 'L') /* static */
		return at + 1;
	if (at[0] == 'S' && at[1] == 't') {
		add(parts, count, "std");
		return at + 2;
	}
	if (at[0] == 'S' && standard_class(at[1])) {
		add(parts, count, "std");
		add(parts, count, standard_class(at[1]));
		return at + 2;
	}
	if (*at == 'S' || *at == 'T')
		return pass_reference(at + 1);
	if (*at == 'I')
		return pass_arguments(at + 1, 0);
	if ((*at == 'C' || *at == 'D') && is_digit(at[1]) && *count > 0) {
		parts[*count] = parts[*count - 1];
		(*count)++;
		return at + 2;
	}
	add(parts, count, "operator");
	return at + text_length(at);
}

static bool is_qualifier(char c)
{
	return c == 'K' || c == 'V' || c == 'r' || c == 'R' || c == 'O';
}

/* The name ends where the compiler has appended to it, as ".constprop.0" for a copy. */
static bool ends_procedure(char c)
{
	return c == '\0' || c == '.';
}

/* gfortran's names of procedures in modules: "__module_MOD_procedure". */
static unsigned fortran_parts(const char *name, struct name_part *parts)
{
	const char *module = text_after(name, "__");

	for (const char *end = module; end && *end; end++) {
		const char *procedure = text_after(end, "_MOD_");

		if (!procedure || end == module)
			continue;
		parts[0] = (struct name_part){ module, (size_t)(end - module) };
		parts[1] = (struct name_part){ procedure, 0 };
		while (!ends_procedure(procedure[parts[1].length]))
			parts[1].length++;
		return 2;
	}
	return 0;
}

unsigned name_parts(const char *name, struct name_part parts[NAME_PARTS_MAX])
{
	const char *at = text_after(name, "_Z");
	unsigned count = 0;

	while (at && *at == 'Z') /* a local name: the enclosing function */
		at++;
	if (!at)
		return fortran_parts(name, parts);
	if (*at == 'N') {
		at++;
		while (is_qualifier(*at))
			at++;
		while (at && *at && *at != 'E' && count + 2 <= NAME_PARTS_MAX)
			at = read_part(at, parts, &count);
		return at ? count : 0;
	}
	if (*at == 'L')
		at++;
	if (at[0] == 'S' && at[1] == 't') {
		add(parts, &count, "std");
		at += 2;
	}
	return is_digit(*at) && read_source_name(at, &parts[count]) ?
		       count + 1 :
		       count;
}
