/*
 * The text of a value, from its bytes and its type.  Nothing is known here of
 * the process the value is from: what pointers lead to is asked of the caller.
 */
#ifndef SHIM_PRINT_H
#define SHIM_PRINT_H

#include <shim/typetree.h>
#include <stddef.h>

#define PRINT_TEXT_MAX	 1024 /* bytes of a string, at the most */
#define PRINT_WINDOW	 256
#define PRINT_BIG_WORDS	 528 /* of the longest long double's numbers */
#define PRINT_NAME_SIZE	 256

struct print_big {
	uint32_t count; /* of words in use: the last one is not 0 */
	uint32_t words[PRINT_BIG_WORDS];
};

/* Room to work in, some 10 KiB: not on the program's stack. */
struct print_space {
	struct print_big value, scale, above, below;
	uintptr_t window_start;
	size_t window_size;
	unsigned char window[PRINT_WINDOW];
	unsigned char text[PRINT_TEXT_MAX + 4];
	char name[PRINT_NAME_SIZE];
};

struct print_job {
	const struct shim_typetree *tree; /* print_is_valid */
	const void *value;		/* as many bytes as the type has */
	uint32_t flags;			/* enum shim_print_flags */
	/* Reads memory of where the value is from: all of it, or a failure
	 * (-errno).  Never asked for bytes of two pages at once. */
	int (*read)(void *argument, uintptr_t from, void *to, size_t size);
	/* What @address is in: *@name, at most @size bytes with its NUL, and how
	 * far from its start. */
	bool (*name)(void *argument, uintptr_t address, char *name, size_t size,
		     uint64_t *offset);
	void *argument;
	struct print_space *space; /* NULL: it needs none */
};

/* Numbers alone need none. */
bool print_needs_space(const struct shim_typetree *tree);

/*
 * Writes as much of the text as goes into @size bytes of @text, cut between two
 * characters and ended by a NUL; returns how many the whole has, NUL included.
 * It is bounded: some 4 KiB, 64 with SHIM_PRINT_LONG.
 */
size_t print_write(const struct print_job *job, char *text, size_t size);

/* Whether @tree, of which there are @size bytes, can be printed from. */
bool print_is_valid(const struct shim_typetree *tree, size_t size);

#endif
