/*
 * Processes apart.  What reads ELF files of strangers - elfutils, decompressors, the
 * demangler - may crash, loop, or ask for all memory there is.  It does so in a process of
 * its own, one for each file: with limits, without the right to open anything, and with
 * nothing in it but that file.
 *
 * They are forks of one that is forked first, when there is nothing yet that they could
 * see.  What goes to and fro is bytes and descriptors; nobody believes what comes back.
 */
#ifndef REPORT_APART_H
#define REPORT_APART_H

#include <sys/types.h>

#include "util.h"

/* At a time. */
#define APART_MAX 20

/* One of them, as we see it. */
struct apart {
	int fd;
	pid_t pid;
	FILE *in;			/* what it says */
	uint64_t bytes;			/* of files that it has */
};

/* From here on there may be some; what is in memory then is in them. */
void apart_begin(void);
/* False, once with a warning: there can be none. */
bool apart_open(struct apart *apart);
void apart_close(struct apart *apart);
/* Closes it, and why it ended before it was told to. */
const char *apart_blame(struct apart *apart);

/* Sends bytes, and the descriptor @pass unless it is negative; false: nobody takes them. */
bool apart_send(struct apart *apart, const void *bytes, size_t size, int pass);
/* A file of so many bytes goes to it: it may take the more for it. */
void apart_allow(struct apart *apart, uint64_t bytes);

/* --- in them --- */

/* What they do (elf_names.c): @fd is the other end.  They end when it returns. */
void elf_names_serve(int fd);
/* Reads @size bytes, and *@passed gets a descriptor that came with them, or -1. */
bool apart_take(int fd, void *bytes, size_t size, int *passed);

#endif
