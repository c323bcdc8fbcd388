/*
 * Shortens demangled names, which it reads from the left.  Text before a space
 * at the outermost level is the return type.  Template arguments and parameters
 * are skipped as balanced brackets.  A name with unbalanced brackets keeps its
 * full form.  Rust's "<Type as Trait>::method" keeps both.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/short_name.h"
#include "base/text.h"

#define ANONYMOUS "(anonymous namespace)"
#define DECLTYPE  "decltype ("
#define LEFT_OUT  "...::"

/* The position in the name, and the text that is kept. */
struct shortening {
	const char *at;
	char *text;
	size_t size;
	/* begin of the name, after words such as "virtual thunk to" */
	size_t begin;
	/* a pointer to a function: "void (*f(int))(char)" */
	bool returns_pointer;
};

/* The length of the prefix in @list with which @text begins; 0: none. */
static size_t prefix_in(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (!strncmp(text, *list, strlen(*list)))
			return strlen(*list);
	return 0;
}

static void keep_bytes(struct shortening *name, size_t length)
{
	memcpy(name->text + name->size, name->at, length);
	name->size += length;
	name->at += length;
}

static bool is_in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The length of the operator symbol at @text; the longest one matches. */
static size_t symbol_length(const char *text)
{
	static const char *const symbols[] = {
		"()", "[]", "<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<=",
		">=", "==", "!=",  "&&",  "||",	 "++",	"--", "+=", "-=", "*=",
		"/=", "%=", "^=",  "&=",  "|=",	 "<",	">",  "+",  "-",  "*",
		"/",  "%",  "^",   "&",	  "|",	 "~",	"!",  "=",  ",",  NULL
	};

	return prefix_in(text, symbols);
}

/* The length of "operator<<" at @text; 0: no operator, or one that is a
 * word. */
static size_t operator_length(const char *text)
{
	size_t length = strlen("operator"), symbol;

	if (strncmp(text, "operator", length))
		return 0;
	symbol = symbol_length(text + length);
	return symbol ? length + symbol : 0;
}

/* The position after the bracket that closes the one at @text; NULL: there is
 * none.  (A minus before a closing angle bracket makes an arrow.) */
static const char *skip_brackets(const char *text)
{
	size_t depth = 0, length;

	for (; *text; text++) {
		length = depth && !is_in_name(text[-1]) ?
				 operator_length(text) :
				 0;
		if (length) {
			text += length - 1;
		} else if (strchr("<([{", *text)) {
			depth++;
		} else if (strchr(">)]}", *text) &&
			   !(*text == '>' && text[-1] == '-')) {
			if (--depth == 0)
				return text + 1;
		}
	}
	return NULL;
}

static bool skip(struct shortening *name)
{
	const char *end = skip_brackets(name->at);

	if (end)
		name->at = end;
	return end != NULL;
}

static bool is_at_part(const struct shortening *name)
{
	return name->size == name->begin ||
	       (name->size >= name->begin + 2 &&
		!memcmp(name->text + name->size - 2, "::", 2));
}

/* Keeps an operator: a symbol, new, delete, a literal, or a conversion to a
 * type. */
static bool keep_operator(struct shortening *name)
{
	size_t length = operator_length(name->at);

	if (length) {
		keep_bytes(name, length);
		name->at += name->at[0] == ' ' && name->at[1] == '<';
		return true;
	}
	while (*name->at && *name->at != '(') {
		if (*name->at != '<')
			keep_bytes(name, 1);
		else if (!skip(name))
			return false;
	}
	return true;
}

/* Keeps "{lambda(int)#1}" without the parameters. */
static bool keep_unnamed(struct shortening *name)
{
	while (*name->at && *name->at != '}') {
		if (*name->at != '<' && *name->at != '(')
			keep_bytes(name, 1);
		else if (!skip(name))
			return false;
	}
	if (*name->at)
		keep_bytes(name, 1);
	return true;
}

/* Reads parameters: those of the name, of a function around it, or of its
 * return type. */
static bool read_parameters(struct shortening *name)
{
	static const char *const qualifiers[] = { " const",	" volatile",
						  " &&",	" &",
						  " immutable", " inout",
						  " shared",	NULL };

	if (name->size == name->begin &&
	    (name->at[1] == '*' || name->at[1] == '&')) {
		name->returns_pointer = true;
		name->at += 1 + strspn(name->at + 1, "*&");
		return true;
	}
	/* Go: "main.(*Shape).Area" */
	if (name->size > name->begin && name->text[name->size - 1] == '.') {
		const char *end = skip_brackets(name->at);

		if (end)
			keep_bytes(name, (size_t)(end - name->at));
		return end != NULL;
	}
	if (is_at_part(name) || !skip(name))
		return false;
	while (prefix_in(name->at, qualifiers))
		name->at += prefix_in(name->at, qualifiers);
	if (*name->at == ')' && name->returns_pointer)
		name->at += strlen(name->at);
	if (!*name->at || !strncmp(name->at, " [", 2) || *name->at == '[') {
		memcpy(name->text + name->size, "()", 2);
		name->size += 2;
		return true;
	}
	return *name->at == ' ' || *name->at == '.' ||
	       !strncmp(name->at, "::", 2);
}

/* Keeps "<Type as Trait>", without their arguments. */
static bool keep_rust_type(struct shortening *name)
{
	keep_bytes(name, 1);
	while (*name->at && *name->at != '>') {
		if (!strncmp(name->at, "->", 2))
			keep_bytes(name, 2);
		else if (*name->at != '<')
			keep_bytes(name, 1);
		else if (!skip(name))
			return false;
	}
	if (!*name->at)
		return false;
	keep_bytes(name, 1);
	return true;
}

/* Reads template arguments.  Rust has them after "::", too, and names that begin with a
 * type. */
static bool read_arguments(struct shortening *name)
{
	const char *end = skip_brackets(name->at);

	if (!end)
		return false;
	if (name->size == name->begin)
		return keep_rust_type(name);
	if (is_at_part(name))
		name->size -= 2;
	name->at = end;
	return true;
}

static bool read_part(struct shortening *name)
{
	if (!strncmp(name->at, ANONYMOUS, strlen(ANONYMOUS))) {
		keep_bytes(name, strlen(ANONYMOUS));
		return true;
	}
	if (is_at_part(name) && !strncmp(name->at, "operator", 8) &&
	    !is_in_name(name->at[8]))
		return keep_operator(name);
	if (!strncmp(name->at, DECLTYPE, strlen(DECLTYPE))) {
		name->at += strlen(DECLTYPE) - 1;
		return skip(name);
	}
	switch (*name->at) {
	case '<': return read_arguments(name);
	case '[': /* a tag of the C++ ABI */ return skip(name);
	case '!': /* D's template arguments */
		if (name->at[1] != '(') {
			keep_bytes(name, 1);
			return true;
		}
		name->at++;
		return skip(name);
	case '(': return read_parameters(name);
	case '{': return keep_unnamed(name);
	case ' ':
		if (!strncmp(name->at, " [", 2)) { /* a clone */
			keep_bytes(name, strlen(name->at));
			return true;
		}
		name->at++;
		name->size = name->begin;
		return true;
	default: keep_bytes(name, 1); return true;
	}
}

const char *short_name(const char *name)
{
	static const char *const before[] = { "non-virtual thunk to ",
					      "virtual thunk to ",
					      "covariant return thunk to ",
					      "guard variable for ",
					      "TLS init function for ",
					      "TLS wrapper function for ",
					      "D main", /* of D */
					      NULL };
	struct shortening shortening = {
		.at = name, .text = allocate(strlen(name) + 1, 1)
	};
	const char *kept = name;

	keep_bytes(&shortening, prefix_in(name, before));
	shortening.begin = shortening.size;
	while (*shortening.at && read_part(&shortening))
		;
	if (!*shortening.at && shortening.size > shortening.begin &&
	    shortening.size < strlen(name))
		kept = keep_text(shortening.text, shortening.size);
	free(shortening.text);
	return kept;
}

/* --- fitting into columns --- */

/* The first scope, the mark for omitted ones, and the rest. */
struct fitted {
	const char *head; /* NULL: none */
	size_t head_columns;
	const char *between, *tail;
};

/* The position after the next scope's "::" in @name; NULL: there is none.  The
 * type of a conversion operator and the value of a group contain no scopes. */
static const char *next_part(const char *name)
{
	const char *word = strstr(name, "operator "),
		   *group = strchr(name, '[');
	const char *end = strstr(name, "::");

	return end && !(word && word < end) && !(group && group < end) ?
		       end + 2 :
		       NULL;
}

static size_t columns_of(const struct fitted *fitted)
{
	return fitted->head_columns + strlen(fitted->between) +
	       text_columns(fitted->tail);
}

static struct fitted without_middle(const char *brief, size_t columns)
{
	struct fitted fitted = { NULL, 0, "", brief };
	const char *first = next_part(brief), *part;

	if (!first)
		return fitted;
	fitted.head = keep_text(brief, (size_t)(first - brief));
	fitted.head_columns = text_columns(fitted.head);
	fitted.between = LEFT_OUT;
	for (part = next_part(first); part; part = next_part(part)) {
		fitted.tail = part;
		if (columns_of(&fitted) <= columns)
			return fitted;
	}
	fitted.head = NULL;
	fitted.head_columns = 0;
	for (part = first; part; part = next_part(part))
		fitted.tail = part;
	if (columns_of(&fitted) > columns)
		fitted.between = "";
	return fitted;
}

static struct fitted fit(const char *full, const char *brief, size_t columns)
{
	struct fitted fitted = { NULL, 0, "", full };

	if (columns_of(&fitted) <= columns)
		return fitted;
	fitted.tail = brief;
	if (columns_of(&fitted) <= columns)
		return fitted;
	return without_middle(brief, columns);
}

void put_name_fitted(FILE *out, const char *full, const char *brief,
		     size_t columns)
{
	struct fitted fitted = fit(full, brief, columns);
	size_t used = fitted.head_columns + strlen(fitted.between);

	if (fitted.head)
		put_text(out, fitted.head);
	fputs(fitted.between, out);
	put_text_cut(out, fitted.tail,
		     columns == SIZE_MAX ? SIZE_MAX : columns - used);
}
