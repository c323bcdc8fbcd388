/*
 * The owner of a file or directory, and the access of other users.  shim does
 * not use files that other users could have prepared or could change later.
 *
 * The reasons are numbers like -errno, beyond all values of errno.
 */
#ifndef SHIM_TRUST_H
#define SHIM_TRUST_H

#include <stdint.h>

struct sys_status {
	uint64_t device, inode;
	uint64_t size;
	unsigned user;
	unsigned mode;	/* with the type */
	unsigned links; /* names */
};

enum trust {
	TRUST_OWNER = 5001, /* another user owns it */
	TRUST_ACCESS,	    /* others may read or write it */
	TRUST_WRITE,	    /* others may write it */
	TRUST_REPLACED,	    /* another file or directory has its name */
	TRUST_KIND,	    /* not a regular file */
	TRUST_LINKS,	    /* it has more than one link */
	TRUST_SHORTENED,    /* it was truncated */
};

/* Checks that the effective user owns it and no other user has any access.
 * Returns 0, -errno or a reason. */
int trust_own(const struct sys_status *status);

/* Checks that it is a regular file of the user or of root that no other user
 * may write: its code may run here. */
int trust_code(const struct sys_status *status);

/*
 * Checks all directories above the file @path, which is absolute: owned by the
 * user or root, and no links.  On failure @path ends behind the first one that
 * fails.  A directory that all may write is accepted if it is sticky (/tmp): no
 * other user can replace the file there.  Root may let a group write to its own
 * directories.
 */
int trust_above(char *path);

/* Checks that it is a regular file with one link. */
int trust_file(const struct sys_status *status);

/* The text of a reason; NULL for other errors. */
const char *trust_reason(int error);

#endif
