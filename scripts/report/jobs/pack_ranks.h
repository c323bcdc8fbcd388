/* Puts the ranks of a host into one file (read/packed.h). */
#ifndef REPORT_JOBS_PACK_RANKS_H
#define REPORT_JOBS_PACK_RANKS_H

#include "read/recording.h"

/*
 * pack_ranks - write ranks.HOST.zip, and remove the directories that are in it
 *
 * Only ranks of this host that have ended, and of which no process runs.  A
 * directory is removed when the archive is on the disk, under another name
 * first: whatever ends this process, each rank is there as a whole.  Dies if the
 * archive cannot be written; then nothing was removed.  Returns the number of
 * ranks that were packed.
 */
uint32_t pack_ranks(const struct recording *recording);

#endif
