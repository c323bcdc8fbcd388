/*
 * Sandboxes.  Code that reads untrusted ELF files (elfutils, decompressors, the
 * demangler) may crash, loop, or allocate without limit.  It runs in a process
 * of its own for each file: with limits, without permission to open anything,
 * and without any data but that file.
 *
 * Sandboxes are forks of a process that is forked first, when there are no data
 * yet.  They exchange bytes and descriptors with the report, which does not
 * trust their answers.
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

/* A sandbox, from the report's side. */
struct sandbox {
	int fd;
	pid_t pid;
	FILE *in;	/* its answers */
	uint64_t bytes; /* size of the files that it has */
};

/* Starts the parent of all sandboxes; they inherit a copy of the memory at this
 * moment.  Each sandbox calls @work with its end @fd, and ends when @work
 * returns. */
void sandbox_begin(void (*work)(int fd));
/* Returns false, with one warning, if there can be no sandbox. */
bool sandbox_open(struct sandbox *sandbox);
void sandbox_close(struct sandbox *sandbox);
/* Closes the sandbox; returns the reason why it ended early. */
const char *sandbox_blame(struct sandbox *sandbox);

/* Sends bytes, and the descriptor @pass unless it is negative; returns false if
 * the sandbox has ended. */
bool sandbox_send(struct sandbox *sandbox, const void *bytes, size_t size,
		  int pass);
/* Raises the memory limit of the sandbox before it gets a file of @bytes. */
void sandbox_allow(struct sandbox *sandbox, uint64_t bytes);
/* Reads @size bytes; *@passed gets a descriptor that came with them, or -1. */
bool sandbox_take(int fd, void *bytes, size_t size, int *passed);

#endif
