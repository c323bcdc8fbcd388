/* Reads jitdump files (common/jitdump.h). */
#ifndef REPORT_READ_JIT_DUMP_H
#define REPORT_READ_JIT_DUMP_H

#include "read/jit_map.h"

/* Adds the code in "jit-dump" in @directory, if it is there; @name is that of the file. */
void jit_dump_read(struct jit_map *map, int directory, const char *name);

#endif
