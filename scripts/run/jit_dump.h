/* Dumps of code that programs make while they run: jit-PID.dump. */
#ifndef RUN_JIT_DUMP_H
#define RUN_JIT_DUMP_H

#include <shim/format.h>

/*
 * jit_dump_keep - copy names and lines from the dump of a process into its directory, as
 * "jit-dump"
 *
 * Looks for it where the process began, in /tmp, in $JITDUMPDIR, and in the directories of
 * perf's agent for Java below $JITDUMPDIR/.debug/jit or $HOME/.debug/jit.  The code itself
 * is not copied.  It is no error that there is none.
 */
void jit_dump_keep(int directory, const struct shim_meta *meta);

#endif
