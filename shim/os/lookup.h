/*
 * Symbols of loaded objects, found without the loader's functions.  Those
 * allocate with the program's malloc if a symbol is missing, overwrite the
 * message of the program's next dlerror(), and may be defined by the program
 * itself.
 *
 * The search covers the objects that were loaded at the start; they are never
 * unloaded. Of several versions of a symbol it finds the default one, as dlsym
 * does.
 */
#ifndef SHIM_LOOKUP_H
#define SHIM_LOOKUP_H

#include <stddef.h>

#include <stdbool.h>

struct link_map;
struct r_debug;

/* The first definition, which the program's calls reach; NULL if there is none. */
void *lookup_first(const char *name);
/* The same; *@size gets the symbol's size. */
void *lookup_first_sized(const char *name, size_t *size);

/* The first definition after shim's, which calls would reach without shim. */
void *lookup_next(const char *name);
/* The same in any namespace: uses dlsym if the loader's list lacks shim. */
void *lookup_real(const char *name);
/* False if the loader's list lacks shim, which is then in another namespace. */
bool lookup_is_possible(void);

/* The definition in @object alone, a handle of dlopen, whenever it was
 * loaded.  The caller keeps the object from being unloaded. */
void *lookup_in(const struct link_map *object, const char *name);

/*
 * The first definition in an object and its dependencies, whenever they were
 * loaded.  The object is the one that contains @code, or whose soname or file
 * name is @object.  Takes the loader's lock.
 */
void *lookup_near(const void *code, const char *name);
void *lookup_beside(const char *object, const char *name);

/* The loader's list for debuggers; NULL if there is none. */
const struct r_debug *lookup_list(void);

#endif
