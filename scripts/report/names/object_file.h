/*
 * The files of objects: where they are, and opening them.
 */
#ifndef REPORT_NAMES_OBJECT_FILE_H
#define REPORT_NAMES_OBJECT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names_answer;
struct object;

/* Allows debuginfod servers; without this call nothing uses the network. */
void object_file_allow_network(void);
bool object_file_network_allowed(void);

/*
 * object_file_look_below() makes @directory the root in which files are sought first.  If
 * @directory cannot be opened, it returns false and sets errno.
 * object_file_below() returns where this machine has the file that is @path in that root;
 * NULL if there is no such file, or no root was given.
 */
bool object_file_look_below(const char *directory);
const char *object_file_below(const char *path);

/* Opens a regular ELF file with an absolute @path and stores its size.  Returns the
 * descriptor or -1. */
int object_file_open(const char *path, uint64_t *size);

/* The path where distributions put the debug information of a build-id, or NULL. */
const char *object_file_debug_path(const unsigned char *id, size_t size);

/* The path of a copy of the object's file from a debuginfod server; NULL: none, or the
 * network is not allowed. */
const char *object_file_fetch_executable(const struct object *object);

/* The same for the source file @name of the object. */
const char *object_file_fetch_source(const struct object *object,
				     const char *name);

/* The path of a debug file that a sandbox requests with @want, or NULL.  want->number
 * counts the attempts; @name and @id come from the object. */
const char *object_file_wanted_path(const struct object *object,
				    const struct names_answer *want,
				    const char *name, const unsigned char *id);

#endif
