/* An output directory that gets its name when it is complete. */
#ifndef REPORT_BASE_DIRECTORY_H
#define REPORT_BASE_DIRECTORY_H

/*
 * Makes the directory, mode 0700, and returns its temporary name; dies if @path
 * exists.  Only one such directory can be open at a time.  Until
 * directory_end(), die() and signals that end the process remove it.
 */
const char *directory_begin(const char *path);
void directory_end(void);
/* Makes @place/@name.XXXXXX, which is removed when the program ends, and returns its name.
 * It counts as such a directory. */
const char *directory_make_temporary(const char *place, const char *name);
/* Dies; errno is the error that occurred at @path. */
_Noreturn void directory_give_up(const char *path);

/* Removes a file, or a directory and its content, as far as possible. */
void directory_remove(int directory, const char *name);

#endif
