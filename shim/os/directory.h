/*
 * A directory of the recording: its path and its identity.
 *
 * No descriptor of it stays open, so it is opened again for each file.  A user
 * who may write to a directory above could have replaced it meanwhile; a
 * directory with another owner or inode is refused.
 */
#ifndef SHIM_DIRECTORY_H
#define SHIM_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#define DIRECTORY_PATH_SIZE 2048

struct directory {
	char path[DIRECTORY_PATH_SIZE]; /* absolute */
	uint64_t device, inode;
	unsigned user;
};

/* Each returns a descriptor (O_PATH), or -errno, or a reason of trust.h. */

/* Opens the directory at its path; it must give no other user any access. */
int directory_find(struct directory *directory);

/* Creates it; -EEXIST if the name is taken. */
int directory_make(struct directory *directory);

/* Opens it again, and checks its identity. */
int directory_open(const struct directory *directory);

/* Whether the directory @fd has a subdirectory @name of this user that
 * contains a file @file of this user. */
bool directory_holds(int fd, const char *name, const char *file);

#endif
