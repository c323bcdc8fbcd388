/* A directory that gets its name when everything is in it. */
#ifndef REPORT_BASE_DIRECTORY_H
#define REPORT_BASE_DIRECTORY_H

/* Makes it, mode 0700, under another name, which is returned; dies if there is
 * something at @path.  One at a time. */
const char *directory_begin(const char *path);
void directory_end(void);
/* Removes what has been made and dies: errno is what happened to @path. */
_Noreturn void directory_give_up(const char *path);

#endif
