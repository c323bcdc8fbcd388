/*
 * Include this last in code that runs inside the program: it makes the compiler
 * refuse what may allocate, lock, print or end there.
 *
 *     malloc & co.      shim_memory_map(), or static storage
 *     stdio             the recording's log
 *     exit, abort       return an error; the program goes on
 *     getenv            configuration is read once, by shim/runtime/config.c
 *     memcpy & co. from libc may be interposed by the program: __builtin_memcpy
 *     for constant sizes, loops otherwise
 */
#ifndef SHIM_BANNED_H
#define SHIM_BANNED_H
#ifndef __cplusplus
#pragma GCC poison malloc calloc realloc free strdup asprintf
#pragma GCC poison printf fprintf sprintf snprintf puts fputs perror
#pragma GCC poison fopen fclose fread fwrite fflush
#pragma GCC poison getenv setenv system popen
#endif
#endif
