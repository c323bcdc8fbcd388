/*
 * The simplest possible reader of a recording: it adds up the counts.
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
	unsigned broken; /* chunks beyond the end of the file */
};

/* Adds up all processes of the recording in @directory. */
void recording_read(const char *directory, struct recording *recording);

/* Removes the directory and all of its content. */
void recording_remove(const char *directory);

#endif
