/*
 * Symbols of what is loaded, found without the loader's functions.  Those allocate
 * with the program's malloc when a symbol is missing, they drop the text that the
 * program's next dlerror() returns, and the program may define them itself.
 *
 * The objects that were loaded at the start are searched: they stay.  Of several
 * versions of a symbol the default one is found, as by dlsym.
 */
#ifndef SHIM_LOOKUP_H
#define SHIM_LOOKUP_H

#include <stddef.h>

#include <stdbool.h>

struct link_map;
struct r_debug;

/* The first definition: where the program's calls go.  NULL: there is none. */
void *lookup_first(const char *name);
/* The same; *@size gets the symbol's size. */
void *lookup_first_sized(const char *name, size_t *size);

/* The first definition after ours: where the program's calls would go without us. */
void *lookup_next(const char *name);
/* The same, wherever we are: by dlsym if the loader's list lacks us. */
void *lookup_real(const char *name);
/* False: the loader's list lacks us (we are in a namespace of our own). */
bool lookup_is_possible(void);

/* The definition in @object alone, whenever that was loaded: a handle of dlopen.
 * The caller keeps it from being unloaded. */
void *lookup_in(const struct link_map *object, const char *name);

/*
 * The first definition in the object that @code is in, or that is called @object
 * (soname or file name), and in what that needs, whenever they were loaded.  Takes the
 * loader's lock.
 */
void *lookup_near(const void *code, const char *name);
void *lookup_beside(const char *object, const char *name);

/* What the loader tells debuggers; NULL: nothing. */
const struct r_debug *lookup_list(void);

#endif
