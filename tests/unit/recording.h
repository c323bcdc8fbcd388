/*
 * The plainest reader of a recording there can be: what was counted in it.
 */
#ifndef RECORDING_H
#define RECORDING_H

#include <shim/format.h>

struct recording {
	uint64_t calls;
	uint64_t open;
	uint64_t lost[SHIM_LOST_CAUSES];
	uint64_t lost_all;
	unsigned processes; /* with a meta */
	unsigned files;
	unsigned broken; /* chunks that the file does not have */
};

/* Adds up all processes of the recording in @directory. */
void recording_read(const char *directory, struct recording *recording);

/* Removes it, or anything. */
void recording_remove(const char *directory);

#endif
