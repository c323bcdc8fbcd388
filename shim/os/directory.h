/*
 * A directory of the recording: its path and its identity.
 *
 * shim keeps no descriptor open, so it opens the directory again for each file.  A user who
 * may write to a directory above could have replaced it meanwhile, so shim refuses a
 * directory with another owner or inode.
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

/* Opens the directory at its path and stores its identity.  It must belong to the
 * effective user and give no other user any access. */
int directory_find(struct directory *directory);

/* Creates the directory and stores its identity; -EEXIST if the name exists. */
int directory_make(struct directory *directory);

/* Stores the identity of the directory @fd, which the opener has made.  Returns @fd, or closes
 * it and returns -errno. */
int directory_identify(struct directory *directory, int fd);

/* Opens the directory again, and checks its identity. */
int directory_open(const struct directory *directory);

/* Whether the directory @fd has a subdirectory @name of this user that
 * contains a file @file of this user. */
bool directory_holds(int fd, const char *name, const char *file);

#endif
