/*
 * Code that runs inside the program includes this header last.  The compiler
 * then refuses functions that may allocate, lock, print, or start a process.
 *
 *     refused             use instead
 *     malloc and the like shim_memory_map(), or static storage
 *     stdio               shim_record_log()
 *     getenv, setenv      arguments of the profiler
 *     system, popen       nothing: a profiler must not start processes here
 *
 * The compiler cannot refuse exit and abort, whose names occur elsewhere: return
 * an error instead, so that the program continues.  The program may interpose
 * memcpy and similar functions: use __builtin_memcpy for constant sizes, and
 * loops otherwise.
 *
 * Example: a hook that cannot call printf by mistake.
 *
 *     #include <shim/hooks.h>
 *     #include <stdio.h>
 *
 *     #include <shim/banned.h>
 *
 *     static uint64_t calls;
 *
 *     void entered(union shim_function_or_client function);
 *     void entered(union shim_function_or_client function)
 *     {
 *             (void)function;
 *             __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
 *     }
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
