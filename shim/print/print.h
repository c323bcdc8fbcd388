/*
 * The text of a value, from its bytes and its type.  This code does not use the process
 * of the value: callbacks read the memory that pointers lead to.
 */
#ifndef SHIM_PRINT_H
#define SHIM_PRINT_H

#include <shim/typetree.h>
#include <stddef.h>

#define PRINT_TEXT_MAX	1024 /* bytes of a string, at most */
#define PRINT_WINDOW	256
#define PRINT_BIG_WORDS 528 /* enough for any long double */
#define PRINT_NAME_SIZE 256

struct print_big {
	uint32_t count; /* words in use; the last one is not 0 */
	uint32_t words[PRINT_BIG_WORDS];
};

/* Working memory, about 10 KiB, too large for the program's stack. */
struct print_space {
	struct print_big value, scale, above, below;
	uintptr_t window_start;
	size_t window_size;
	unsigned char window[PRINT_WINDOW];
	unsigned char text[PRINT_TEXT_MAX + 4];
	char name[PRINT_NAME_SIZE];
};

struct print_job {
	const struct shim_typetree *tree; /* checked by print_is_valid */
	const void *value;		  /* as many bytes as the type has */
	uint32_t flags;			  /* enum shim_print_flags */
	/* Reads memory of the value's process: 0, or -errno if not all of it
	 * can be read.  The bytes never cross a page. */
	int (*read)(void *argument, uintptr_t from, void *to, size_t size);
	/* Finds the symbol that contains @address: its name, of at most @size
	 * bytes with its NUL, and the offset from its start. */
	bool (*name)(void *argument, uintptr_t address, char *name, size_t size,
		     uint64_t *offset);
	void *argument;
	struct print_space *space; /* NULL if the type needs none */
};

/* False if the type is an integer, which needs no print_space. */
bool print_needs_space(const struct shim_typetree *tree);

/*
 * Writes as much of the text as fits into @size bytes of @text, cut between two
 * characters and terminated by a NUL.  Returns the size of the whole text with its NUL:
 * at most about 4 KiB, or 64 KiB with SHIM_PRINT_LONG.
 */
size_t print_write(const struct print_job *job, char *text, size_t size);

/* Whether print_write can use @tree, which has @size bytes. */
bool print_is_valid(const struct shim_typetree *tree, size_t size);

#endif
