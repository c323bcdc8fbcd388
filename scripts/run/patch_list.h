/* profrun doctor --patch: which functions of a program can be patched, and why others
 * cannot be. */
#ifndef RUN_PATCH_LIST_H
#define RUN_PATCH_LIST_H

#include "filter.h"
#include "program.h"

struct patch_function {
	const char *name;   /* "" if the object's symbols have none */
	const char *reason; /* "" if the function can be patched */
	unsigned long long address, size; /* in the object's file */
};

struct patch_object {
	const char *path;
	struct patch_function *functions; /* by address */
	unsigned int count;
	unsigned int patched, left; /* left: of 5 bytes or more, and unmarked */
};

struct patch_list {
	struct patch_object *objects;
	unsigned int count;
	char error[2 * PATH_MAX]; /* why there is no list */
};

/*
 * patch_list_read - load @program with @library, which lists its functions and ends it
 * before main
 *
 * Only the dynamic linker, and constructors of libraries that come before shim's, run.
 * Returns false if there is no list; @list->error is then the reason.  The memory of the
 * list is never freed.
 */
bool patch_list_read(struct patch_list *list, const char *library,
		     const struct program *program, const struct filter *patch);

/* patch_list_print - a line for each function, and the totals of each object */
void patch_list_print(const struct patch_list *list);

/* patch_list_print_json - an array of objects */
void patch_list_print_json(const struct patch_list *list);

#endif
