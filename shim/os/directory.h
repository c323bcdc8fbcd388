/*
 * A directory of the recording: its path, and which directory that was.
 *
 * No descriptor of it stays open, so it is opened again for each file.  Whoever may
 * write above it could have put another one in its place meanwhile, and that one is
 * refused: the same directory belongs to the same user and has the same inode.
 */
#ifndef SHIM_DIRECTORY_H
#define SHIM_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#define DIRECTORY_PATH_SIZE 2048

struct directory {
	char path[DIRECTORY_PATH_SIZE];	/* absolute */
	uint64_t device, inode;
	unsigned user;
};

/* Each returns a descriptor (O_PATH), or -errno, or a reason of trust.h. */

/* The one at its path, which must be ours alone. */
int directory_find(struct directory *directory);

/* Makes it; -EEXIST if there is something of that name. */
int directory_make(struct directory *directory);

/* The same one again. */
int directory_open(const struct directory *directory);

/* Whether @directory, open as @fd, has a directory of ours that is called @name and
 * holds a file @file of ours. */
bool directory_holds(int fd, const char *name, const char *file);

#endif
