/* Changes to a recording that preserve most of its structure. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include "shapes.h"

#define WHAT_SIZE 2000

/* Begins with the recording at @path, a private copy with the structures
 * @shape. */
void mutate_begin(const char *path, const struct recording_shape *shape);
/* Makes a random change on disk; describes it in @what. */
void mutate(char what[WHAT_SIZE]);
/* Undoes the change. */
void mutate_undo(void);

#endif
