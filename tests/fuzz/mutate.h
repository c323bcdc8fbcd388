/* Changes to a recording that keep its structure, or most of it. */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include "shapes.h"

#define WHAT_SIZE 2000

/* The recording at @path, a copy nobody else needs, is as @shape says. */
void mutate_begin(const char *path, const struct recording_shape *shape);
/* Changes it by chance, on the disk; says how in @what. */
void mutate(char what[WHAT_SIZE]);
/* Makes it as it was. */
void mutate_undo(void);

#endif
