/* Maps of code that programs make while they run: /tmp/perf-PID.map. */
#ifndef RUN_JIT_MAP_H
#define RUN_JIT_MAP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * jit_file_is_ours - whether a file belongs to the user, was written since @start_real_ns, and
 * has at most @size_most bytes
 *
 * Anybody may write to the directories of such files.
 */
bool jit_file_is_ours(int fd, uint64_t start_real_ns, uint64_t size_most);

/*
 * jit_map_keep - copy the map of process @pid into its directory, as "jit-map"
 *
 * @start_real_ns: when the process began; an older map is another process's.  A map that
 * belongs to another user is not read.  It is no error that there is none.
 */
void jit_map_keep(int directory, uint32_t pid, uint64_t start_real_ns);

#endif
