/*
 * What every file of the report leans on: ending with a message, memory that
 * is there or ends the program, growing arrays, a hash map, and text that
 * cannot hurt a terminal.  Nothing here knows what a recording is.
 */
#ifndef REPORT_UTIL_H
#define REPORT_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NONE UINT32_MAX

/* Ends with status 1; what -o had begun to write is removed. */
_Noreturn void die(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* The same with status 2, for a wrong command line; it names the --help of
 * usage_verb()'s last. */
void usage_verb(const char *name);
_Noreturn void die_usage(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* From here on die() ends the process and does nothing else: what is to be tidied up
 * belongs to another one. */
void die_at_once(void);
/* Says it on stderr and keeps it for the json output. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
size_t warning_count(void);
const char *warning_text(size_t i);

/* One line on stderr that renews itself, when stderr is a terminal and more
 * than a second has passed since the program began. */
void progress(const char *what, uint64_t done, uint64_t all);
void progress_end(void);

/* NULL is never returned.  What keep_*() return lives as long as we do. */
void *allocate(size_t count, size_t size);
void *grow(void *memory, size_t count, size_t size);
const char *keep_text(const char *text, size_t size);
const char *keep_format(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Makes room for one more element in an array that doubles. */
#define GROW(array, count, capacity)                                        \
	do {                                                                \
		if ((count) == (capacity)) {                                \
			(capacity) = (capacity) ? (capacity) * 2 : 16;      \
			(array) = grow((array), (capacity),                 \
				       sizeof(*(array)));                   \
		}                                                           \
	} while (0)

/* uint64_t -> uint32_t; NONE is not a value. */
struct map {
	uint64_t *keys;
	uint32_t *values;	/* value + 1; 0: free */
	size_t capacity;	/* 0 or a power of two */
	size_t count;
};

uint32_t map_get(const struct map *map, uint64_t key);
/* The value of @key, which is @value from now on if it had none. */
uint32_t map_add(struct map *map, uint64_t key, uint32_t value);
/* Gives @key that value, whatever it had. */
void map_set(struct map *map, uint64_t key, uint32_t value);
void map_free(struct map *map);

/* Equal strings get equal numbers: 0, 1, 2... */
struct names {
	const char **text;
	uint32_t *slots;
	size_t capacity;
	uint32_t count, room;
};

uint32_t names_add(struct names *names, const char *text);
/* Its number, or NONE. */
uint32_t names_find(const struct names *names, const char *text);
void names_free(struct names *names);

/*
 * Where reports go: stdout, or a temporary file that gets the name the user
 * asked for when everything is in it.
 */
FILE *output_open(const char *path);
void output_close(void);
/*
 * A new file in @directory, which the user has named @directory_name.  The other gives it
 * @name, or @name and a number if there is something of that name already, and returns
 * which: nothing is written over, and no link followed.
 */
FILE *output_create(int directory, const char *directory_name);
const char *output_close_as(const char *name);
/* Removes what is not complete. */
void output_discard(void);

/*
 * Text from outside (names, paths, logs), so that a terminal only prints it:
 * control characters, bytes that are not UTF-8 and marks that reorder text
 * come out as \xNN.  put_text_cut() stops at @columns with an ellipsis.
 */
void put_text(FILE *out, const char *text);
void put_text_cut(FILE *out, const char *text, size_t columns);
void make_harmless(char *text);		/* with ? instead */
size_t text_columns(const char *text);
void put_json(FILE *out, const char *text);	/* quoted; NULL: null */
void put_csv(FILE *out, const char *text);
const char *base_name(const char *path);

#define SHORT_TEXT 32

/* "12.3 ms", "1.00 s"; at most 9 columns.  What is returned need not begin where
 * @text does. */
const char *human_ns(char text[SHORT_TEXT], double ns)
	__attribute__((warn_unused_result));
/* "1,234,567" */
const char *human_count(char text[SHORT_TEXT], uint64_t count)
	__attribute__((warn_unused_result));
/* To print as an integer: not negative, and never undefined. */
uint64_t whole(double value);

#endif
