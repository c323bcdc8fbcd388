/* An output directory that gets its name when it is complete. */
#ifndef REPORT_BASE_DIRECTORY_H
#define REPORT_BASE_DIRECTORY_H

/* Makes the directory, mode 0700, and returns its temporary name; dies if @path
 * exists.  Only one such directory can be open at a time. */
const char *directory_begin(const char *path);
void directory_end(void);
/* Removes the unfinished directory and dies; errno is the error that occurred
 * at @path. */
_Noreturn void directory_give_up(const char *path);

#endif
