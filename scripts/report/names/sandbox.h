/*
 * Sandboxes.  What reads ELF files of strangers - elfutils, decompressors, the
 * demangler - may crash, loop, or ask for all memory there is.  It does so in a process of
 * its own, one for each file: with limits, without the right to open anything, and with
 * nothing in it but that file.
 *
 * They are forks of one that is forked first, when there is nothing yet that they could
 * see.  What goes to and fro is bytes and descriptors; nobody believes what comes back.
 */
#ifndef REPORT_NAMES_SANDBOX_H
#define REPORT_NAMES_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* At a time. */
#define SANDBOX_MAX 20

/* One of them, as we see it. */
struct sandbox {
	int fd;
	pid_t pid;
	FILE *in;	/* what it says */
	uint64_t bytes; /* of files that it has */
};

/* From here on there may be some; what is in memory then is in them.  They call @work: @fd
 * is the other end, and they end when it returns. */
void sandbox_begin(void (*work)(int fd));
/* False, once with a warning: there can be none. */
bool sandbox_open(struct sandbox *sandbox);
void sandbox_close(struct sandbox *sandbox);
/* Closes it, and why it ended before it was told to. */
const char *sandbox_blame(struct sandbox *sandbox);

/* Sends bytes, and the descriptor @pass unless it is negative; false: nobody takes them. */
bool sandbox_send(struct sandbox *sandbox, const void *bytes, size_t size,
		  int pass);
/* A file of so many bytes goes to it: it may take the more for it. */
void sandbox_allow(struct sandbox *sandbox, uint64_t bytes);
/* Reads @size bytes, and *@passed gets a descriptor that came with them, or -1. */
bool sandbox_take(int fd, void *bytes, size_t size, int *passed);

#endif
