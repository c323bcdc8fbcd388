/* The descriptors of standard input, output and error, which the shell may have closed. */
#ifndef COMMON_DESCRIPTORS_H
#define COMMON_DESCRIPTORS_H

/*
 * descriptors_hold - keep the numbers 0 to 2 from files that are opened later
 *
 * Otherwise a recording would get the number of standard output, and a report or a message
 * would be written into it.  Reads and writes still fail with EBADF, and programs that are
 * executed find the descriptors closed.
 */
void descriptors_hold(void);

/*
 * descriptors_close_from - close all descriptors from @first on
 *
 * Kernels before Linux 5.9 lack the call for it; then those below 1024 are closed.
 */
void descriptors_close_from(int first);

#endif
