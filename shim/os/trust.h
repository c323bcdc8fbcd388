/*
 * Whose a file or directory is, and who else may change it.  What other users could
 * have prepared, or could change later, is not used.
 *
 * The reasons are numbers like those of the system (-errno), beyond all of them.
 */
#ifndef SHIM_TRUST_H
#define SHIM_TRUST_H

#include <stdint.h>

struct sys_status {
	uint64_t device, inode;
	uint64_t size;
	unsigned user;
	unsigned mode;		/* with the type */
	unsigned links;		/* names */
};

enum trust {
	TRUST_OWNER = 5001,	/* it belongs to another user */
	TRUST_ACCESS,		/* others may read or write it */
	TRUST_WRITE,		/* others may write it */
	TRUST_REPLACED,		/* it is not the one that it was */
	TRUST_KIND,		/* not a regular file */
	TRUST_LINKS,		/* it has more names than one */
	TRUST_SHORTENED,	/* it ends before it did */
};

/* It is the effective user's, and nobody else has any access.  0 or -errno. */
int trust_own(const struct sys_status *status);

/* It is a regular file of the user or root that nobody else may write: its code may run
 * here. */
int trust_code(const struct sys_status *status);

/*
 * So are all the directories above the file @path, which is absolute, and none of them
 * is a link.  On failure @path ends behind the first that is not.  Where everybody may
 * write but only take away what is his own (/tmp), nobody can replace the file; and
 * what root lets a group write is root's business.
 */
int trust_above(char *path);

/* It is a regular file with one name. */
int trust_file(const struct sys_status *status);

/* What -errno means, if it is one of the above; else NULL. */
const char *trust_reason(int error);

#endif
