/*
 * The owner of a file or directory, and the access of other users.  shim uses no file that
 * another user could have prepared or could change later.
 *
 * A check fails with a negative reason (enum trust).  Reasons are larger than all values
 * of errno, so one int can carry either.
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
	TRUST_OWNER = 5001, /* it belongs to another user */
	TRUST_ACCESS,	    /* others may read or write it */
	TRUST_WRITE,	    /* others may write it */
	TRUST_REPLACED,	    /* another file or directory has its name */
	TRUST_KIND,	    /* not a regular file */
	TRUST_LINKS,	    /* it has more than one link */
	TRUST_SHORTENED,    /* it was truncated */
};

/* Checks that the effective user owns the file and no other user has any access to it.
 * Returns 0, -errno or a reason. */
int trust_own(const struct sys_status *status);

/*
 * Checks that a file whose owner was @user belongs to the same user.  A process that has
 * entered another user namespace sees other ids for the same users, so the present
 * effective user is as good.  Returns 0, -errno or -TRUST_REPLACED.
 */
int trust_owner(const struct sys_status *status, unsigned user);

/* Checks that the code of a file may run in this process: the file is regular, belongs to
 * the user or root, and no other user may write it. */
int trust_code(const struct sys_status *status);

/*
 * Checks all directories above the file @path, which is absolute.  Each must belong to the
 * user or root, and be no link.  On failure @path is cut after the directory that
 * failed.  A sticky directory that all users may write (/tmp) passes: no other user can
 * replace the file there.  A directory of root passes if its group may write it.
 */
int trust_above(char *path);

/* Checks that the file is regular and has one link. */
int trust_file(const struct sys_status *status);

/* The text of a reason; NULL for other errors. */
const char *trust_reason(int error);

#endif
