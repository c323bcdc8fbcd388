/* Directories that only the user can change, and files in them. */
#ifndef RUN_PRIVATE_H
#define RUN_PRIVATE_H

/* They return a descriptor, or an error for private_error(): -errno, or that the
 * directory belongs to another user or is open to others. */

/* private_open - open the directory @name in @above (AT_FDCWD: a path) */
int private_open(int above, const char *name);

/* private_make - create it with mode 0700, whatever the umask is */
int private_make(int above, const char *name);

/* private_create - create the file @name, mode 0600, in the directory @path */
int private_create(const char *path, const char *name);

/* private_remove - remove the file @name of the directory @path */
void private_remove(const char *path, const char *name);

const char *private_error(int error);

#endif
