/* Maps of code that programs make while they run: /tmp/perf-PID.map. */
#ifndef RUN_JIT_MAP_H
#define RUN_JIT_MAP_H

#include <stdint.h>

/*
 * jit_map_keep - copy the map of process @pid into its directory, as "jit-map"
 *
 * @start_real_ns: when the process began; an older map is another process's.  A map that
 * belongs to another user is not read.  It is no error that there is none.
 */
void jit_map_keep(int directory, uint32_t pid, uint64_t start_real_ns);

#endif
