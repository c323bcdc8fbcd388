/*
 * dlopen for what we load ourselves, and what is done whenever something came.
 */
#ifndef SHIM_OPEN_H
#define SHIM_OPEN_H

/* As dlopen: modules are told that it came, not that it was asked for or could not
 * be had. */
void *module_open(const char *path, int flags);

/* Something was opened: whoever wants to know of images is told. */
void open_look_again(void);

#endif
