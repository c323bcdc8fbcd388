/*
 * The operating system, all of it: every system call shim makes is one of these
 * functions, so that a test can replace this file and make the n-th one fail.
 * They return 0 or a value, or -errno; errno itself is never touched.
 */
#ifndef SHIM_SYS_H
#define SHIM_SYS_H

#include "os/sys_action.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After this every function below fails with -EPERM and calls nothing: the
 * program has forbidden system calls and would be killed for ours. */
void sys_forbid(void);
bool sys_is_forbidden(void);

int sys_open(const char *path, int flags, unsigned mode);
/* The same of a name in @directory, a descriptor or AT_FDCWD, as of the others
 * that have one. */
int sys_open_at(int directory, const char *name, int flags, unsigned mode);
/* Creates a file as everybody does: what the umask leaves of @mode. */
int sys_create(const char *path, int flags, unsigned mode);
int sys_close(int fd);
long sys_read(int fd, void *buffer, size_t size);
long sys_read_at(int fd, void *buffer, size_t size, uint64_t offset);
/* What fd is: @device as struct map has it, and how long.  -ESPIPE if it is no
 * regular file. */
int sys_file(int fd, uint64_t *device, uint64_t *inode, uint64_t *size);
/* What the descriptor is of (trust.h); O_PATH is enough. */
struct sys_status;
int sys_get_status(int fd, struct sys_status *status);
/* Whatever the descriptor was opened for, and the umask is. */
int sys_set_mode(int fd, unsigned mode);
/* No signal comes of it: SIGPIPE, SIGXFSZ. */
long sys_write(int fd, const void *buffer, size_t size);
/* Whether a write of some kilobytes would not have to wait. */
bool sys_is_writable(int fd);
int sys_remove(const char *path);
int sys_remove_at(int directory, const char *name);
int sys_remove_directory(const char *path);
int sys_rename(const char *path, const char *to);
/* The umask may leave less of @mode. */
int sys_make_directory_at(int directory, const char *name, unsigned mode);
long sys_read_link(const char *path, char *buffer, size_t size);
int sys_get_directory(char *buffer, size_t size);
/* Makes [offset, offset + size) of the file exist with its blocks allocated. */
int sys_allocate(int fd, uint64_t offset, uint64_t size);
int sys_map_file(int fd, uint64_t offset, size_t size, void **memory);
int sys_map(size_t size, void **memory);
/* Private memory in the place of what is mapped there. */
int sys_map_over(void *memory, size_t size);
int sys_unmap(void *memory, size_t size);
int sys_empty(void *memory, size_t size);
/* The same where the pages may be locked in memory, and stay that. */
int sys_drop(void *memory, size_t size);
/* In large pages, if the system has some to give. */
void sys_prefer_huge(void *memory, size_t size);
int sys_protect(void *memory, size_t size, int protection);
int sys_gettid(void);
int sys_getpid(void);
int sys_getppid(void);
bool sys_is_alive(int pid, int tid);
int sys_thread_name(char name[16]);
/* All but those that were last given to the second. */
int sys_block_signals(uint64_t *before);
void sys_keep_open(uint64_t signals);
int sys_restore_signals(uint64_t before);
/* In the calling thread's mask. */
int sys_block_signal(int signal, bool blocked);
/* Takes @signals out of that mask, which was *@before. */
int sys_unblock_signals(uint64_t signals, uint64_t *before);
/* What would be delivered if it were not blocked. */
int sys_pending_signals(uint64_t *signals);

/* NULL for what is not asked for. */
int sys_signal_action(int signal, const struct sys_action *action,
		      struct sys_action *before);
/* Sends @signal to a thread of this process, which then ends, or it would have
 * been no use. */
void sys_signal_thread(int signal);
/* Sends it to another one, with @value; -ESRCH: it has ended. */
int sys_queue_signal(int tid, int signal, void *value);

/* Hands on one that came, with what came with it. */
int sys_send_again(int tid, int signal, const void *info);

/* A timer that sends @signal with @value to a thread; it stands still at first.
 * @clock is a number of time.h, or 0 for the thread's processor time. */
int sys_timer_make(int clock, int tid, int signal, void *value, int *timer);
int sys_timer_set(int timer, uint64_t first_ns, uint64_t period_ns);
int sys_timer_delete(int timer);
/* For the calling thread's handlers that want one. */
int sys_set_signal_stack(void *low, size_t size);
/* RLIMIT_*: the soft limit. */
int sys_limit(int which, uint64_t *limit);
/* Where the mapping that holds @address lies and what it is called, of
 * /proc/self/maps, which is open as @maps; an error of any kind: look there. */
int sys_find_mapping(int maps, uintptr_t address, uintptr_t *low,
		     uintptr_t *high, char name[64]);
int sys_signal_stack(uintptr_t *low, uintptr_t *high, bool *in_use);
int sys_time_ns(int clock, uint64_t *time_ns);
/* How far apart the values of @clock are. */
int sys_clock_resolution(int clock, uint64_t *resolution_ns);
/* 0, or -EPERM if reading the processor's counter would trap. */
int sys_clock_is_readable(void);
int sys_host_name(char *name, size_t size);
/* "Linux 6.1.0" */
int sys_kernel(char *text, size_t size);
/* Whether the program has rights that its user has not. */
int sys_identity(bool *privileged);
void sys_yield(void);
void sys_sleep_ms(unsigned time_ms);
/* Every thread of the process has passed a memory barrier when it returns. */
void sys_barrier(void);
long sys_write_at(int fd, const void *buffer, size_t size, uint64_t offset);
/* When it returns, no thread runs code as it was before. */
int sys_sync_cores(void);
/* Who owns a file, and its mode with type. */
int sys_file_owner(const char *path, unsigned *uid, unsigned *mode);
/* The effective user. */
int sys_user(unsigned *user);
int sys_name_thread(const char *name);
/* Sleeps while *@word is @value, until somebody wakes it, for @time_ms (0: as
 * long as it takes). */
void sys_wait(uint32_t *word, uint32_t value, unsigned time_ms);
void sys_wake_one(uint32_t *word);
void sys_wake(uint32_t *word);

/* For a thread of ours when system calls are forbidden: never returns.  One call
 * is made, of a kind that no program with threads can do without. */
void sys_park(void) __attribute__((noreturn));

/* --- for the control thread --- */

/* A table of descriptors of its own for the calling thread, empty. */
int sys_hide_files(void);
/* A socket at @path, for its owner only. */
int sys_listen(const char *path);
/* Waits for input on @fd; 0 if there is none after @time_ms. */
int sys_wait_input(int fd, unsigned time_ms);
int sys_accept(int fd);
/* The user at the other end. */
int sys_peer(int fd, unsigned *uid);
/* Like sys_write, never a signal. */
long sys_send(int fd, const void *buffer, size_t size);
/* The names in a directory: struct linux_dirent64. */
long sys_read_directory(int fd, void *buffer, size_t size);

/* This process's memory as a file. */
int sys_open_memory(int flags);
/* Copies from this process's own memory; a bad address is -EFAULT. */
int sys_peek(const void *from, void *to, size_t size);
/* Stores into it; what is not writable memory is -EFAULT. */
int sys_poke(void *to, const void *from, size_t size);

#endif
