/* A set of strings: equal strings get equal numbers (0, 1, 2...). */
#ifndef REPORT_BASE_NAMES_H
#define REPORT_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Equal strings get equal numbers: 0, 1, 2... */
struct names {
	const char **text;
	uint32_t *slots;
	size_t capacity;
	uint32_t count, room;
};

/* Adds @text, which must stay. */
uint32_t names_add(struct names *names, const char *text);
/* Adds a copy of @text. */
uint32_t names_keep(struct names *names, const char *text);
/* Returns the number of the string, or NONE. */
uint32_t names_find(const struct names *names, const char *text);
void names_free(struct names *names);

#endif
