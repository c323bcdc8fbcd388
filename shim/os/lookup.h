/*
 * Symbols of loaded objects, found without the loader's functions.  The loader's
 * functions allocate with the program's malloc if a symbol is missing, overwrite the
 * message of the program's next dlerror(), and may be defined by the program itself.
 *
 * The functions search the objects that were loaded at the start, which are never
 * unloaded.  If a symbol has several versions, they find the default version, as dlsym
 * does.
 */
#ifndef SHIM_LOOKUP_H
#define SHIM_LOOKUP_H

#include <stddef.h>

#include <stdbool.h>
#include <stdint.h>

struct link_map;
struct r_debug;

/* The first definition, which the program's calls reach; NULL if no object has one. */
void *lookup_first(const char *name);
/* Does the same and stores the symbol's size in *@size. */
void *lookup_first_sized(const char *name, size_t *size);

/* The first definition after shim's, which calls would reach without shim, or NULL. */
void *lookup_next(const char *name);
/* Does the same in any namespace: uses dlsym if the loader's list lacks shim. */
void *lookup_real(const char *name);
/* The loader's @name, dlsym or dlvsym, in any namespace: what lookup_real may use. */
void *lookup_dlsym(const char *name);

/* What a call of an imported function reaches. */
struct lookup_import {
	uintptr_t target;   /* with shim; 0 unless it was asked for */
	uintptr_t function; /* the first definition that is not shim's */
	bool is_chosen; /* @function is the resolver of an ifunc, which chooses */
	bool is_data;
};
/* @version: of the symbol; NULL: the default one.  @resolves: finds the target, too, which
 * may call the resolver of an ifunc.  False if no object but shim defines it. */
bool lookup_import(const char *name, const char *version, bool resolves,
		   struct lookup_import *import);

/* False if the loader's list lacks shim, which is then in another namespace. */
bool lookup_is_possible(void);

/*
 * shim was attached to a running program.  From now on, lookup_first and lookup_next
 * search the program and its dependencies, and not objects that it has opened, which
 * other threads may close.  Takes the loader's lock.  False if the loader's list lacks
 * shim, or the program needs it anyway.
 */
bool lookup_attach(void);
bool lookup_was_attached(void);
/* Whether the object with this dynamic section was loaded at the start, so that it is
 * never unloaded. */
bool lookup_stays(uintptr_t dynamic);
/* After lookup_attach: shim's definition; libc's definition; or NULL. */
void *lookup_ours(const char *name);
void *lookup_libc(const char *name);
/* Whether the loader has opened shim by a file name that begins with @prefix. */
bool lookup_is_opened_as(const char *prefix);

/* The definition in @object alone, or NULL.  @object is a handle of dlopen, loaded at any
 * time.  The caller prevents its unloading. */
void *lookup_in(const struct link_map *object, const char *name);

/* The definition in the object whose dynamic section is in [@start, @end), and its size; or
 * NULL.  The object may have been loaded at any time.  Takes the loader's lock. */
void *lookup_within(uintptr_t start, uintptr_t end, const char *name,
		    size_t *size);

/* Whether one of the last @count objects of the loader's list defines @name.  Takes the
 * loader's lock. */
bool lookup_last_define(unsigned long long count, const char *name);

/*
 * The first definition in an object and its dependencies, or NULL.  lookup_near searches
 * the object that contains @code, lookup_beside the object with the soname or file name
 * @object.  The objects may have been loaded at any time.  Takes the loader's lock.
 */
void *lookup_near(const void *code, const char *name);
void *lookup_beside(const char *object, const char *name);

/* Opens the library with this path, which is shim's, in a namespace of its own, because
 * the program may have another version of what it needs.  A handle for lookup_in, or NULL.
 * Takes the loader's lock. */
void *lookup_open_ours(const char *path);
/* Does the same with the library @name in the directory of libshim.so. */
void *lookup_open_beside_us(const char *name);
/* Whether the object in [@start, @end) is such a library, or in the namespace of one. */
bool lookup_is_beside_us(uintptr_t start, uintptr_t end);

/* The loader's list for debuggers, or NULL. */
const struct r_debug *lookup_list(void);

#endif
