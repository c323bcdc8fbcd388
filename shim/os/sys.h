/*
 * The system calls of shim.  Every system call is in one of the files sys*.c, so that a
 * test can replace these files and let the n-th call fail.  Functions return 0 or a
 * value, or -errno; errno itself stays untouched.
 */
#ifndef SHIM_SYS_H
#define SHIM_SYS_H

#include "os/sys_action.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program has forbidden system calls, and the kernel would kill it for a call of
 * shim.  Every function below then returns -EPERM and makes no system call, except
 * sys_pass_on, sys_end_process and sys_park. */
void sys_forbid(void);
bool sys_is_forbidden(void);
/* Ends sys_forbid: a child that shared the memory had forbidden system calls for itself. */
void sys_allow(void);
/* Whether sys_forbid waits for other threads, or has ended. */
bool sys_is_closing(void);

int sys_open(const char *path, int flags, unsigned mode);
/* Opens @name relative to @directory, which is a descriptor or AT_FDCWD, here and in the
 * other functions with @directory. */
int sys_open_at(int directory, const char *name, int flags, unsigned mode);
/* Creates a file; the umask applies to @mode. */
int sys_create(const char *path, int flags, unsigned mode);
int sys_close(int fd);
long sys_read(int fd, void *buffer, size_t size);
long sys_read_at(int fd, void *buffer, size_t size, uint64_t offset);
/* The identity and size of a file; @device as in struct map.  -ESPIPE if @fd
 * is not a regular file. */
int sys_file(int fd, uint64_t *device, uint64_t *inode, uint64_t *size);
/* The status of the descriptor's file (trust.h).  @fd may be a descriptor of O_PATH. */
struct sys_status;
int sys_get_status(int fd, struct sys_status *status);
/* Whether the file system of the descriptor's file is mounted read-only. */
bool sys_is_read_only(int fd);
/* Works with any access mode of @fd; the umask does not apply. */
int sys_set_mode(int fd, unsigned mode);
/* Raises neither SIGPIPE nor SIGXFSZ. */
long sys_write(int fd, const void *buffer, size_t size);
/* Returns 0, or -errno after a part of it. */
int sys_write_all(int fd, const void *buffer, size_t size);
/* Whether a write of some kilobytes would not block. */
bool sys_is_writable(int fd);
int sys_remove(const char *path);
int sys_remove_at(int directory, const char *name);
int sys_remove_directory(const char *path);
int sys_rename(const char *path, const char *to);
/* The umask applies to @mode. */
int sys_make_directory_at(int directory, const char *name, unsigned mode);
long sys_read_link(const char *path, char *buffer, size_t size);
int sys_get_directory(char *buffer, size_t size);
/* Allocates the disk blocks of [offset, offset + size) of the file. */
int sys_allocate(int fd, uint64_t offset, uint64_t size);
int sys_map_file(int fd, uint64_t offset, size_t size, void **memory);
/* The first @size bytes of the file, read-only. */
int sys_map_to_read(int fd, size_t size, void **memory);
int sys_map(size_t size, void **memory);
/* Replaces the mappings at @memory by zeroed private memory. */
int sys_map_over(void *memory, size_t size);
/* Whether the processor compares return addresses with copies of its own (CET). */
bool sys_has_shadow_stack(void);

/* Maps zeroed private memory at @memory; -EEXIST if a mapping is there. */
int sys_map_at(void *memory, size_t size);
/* The same, but fork children share it. */
int sys_map_shared_at(void *memory, size_t size);
/* Maps the same shared memory a second time, at another address. */
int sys_map_again(void *shared, size_t size, void **memory);
int sys_unmap(void *memory, size_t size);
/* The bytes that these functions have mapped and not unmapped. */
uint64_t sys_mapped(void);
/* Frees the pages of private memory, which then read as zero.  -EINVAL if they are
 * locked. */
int sys_empty(void *memory, size_t size);
/* Does the same for pages that may be locked in memory.  They stay locked. */
int sys_drop(void *memory, size_t size);
/* Asks for huge pages. */
void sys_prefer_huge(void *memory, size_t size);
int sys_protect(void *memory, size_t size, int protection);
/* Lets private memory be executed and not written (sys_code.c). */
int sys_make_code(void *memory, size_t size);
int sys_gettid(void);
int sys_getpid(void);
int sys_getppid(void);
bool sys_is_alive(int pid, int tid);
int sys_thread_name(char name[16]);
/* Blocks all signals but those of the last sys_keep_open, for work that must end before
 * system calls are forbidden: sys_forbid waits for it. */
int sys_block_signals(uint64_t *before);
void sys_keep_open(uint64_t signals);
/* Restores the mask that sys_block_signals has stored, also when system calls are
 * forbidden: another thread has forbidden them since. */
int sys_restore_signals(uint64_t before);
/* The same for a thread that sleeps meanwhile: sys_forbid does not wait for it. */
int sys_hold_signals(uint64_t *before);
int sys_release_signals(uint64_t before);
/* Sets the mask of blocked signals. */
int sys_set_signals(uint64_t blocked);
/* Whether any thread is between sys_block_signals and sys_restore_signals. */
bool sys_has_blocked_signals(void);
/* In a fork child: the other threads do not exist. */
void sys_signals_forked(void);
/* Blocks or unblocks one signal in the calling thread. */
int sys_block_signal(int signal, bool blocked);
/* Unblocks @signals in the calling thread; *@before gets the mask before. */
int sys_unblock_signals(uint64_t signals, uint64_t *before);
/* The signals that are pending for the calling thread because it blocks them. */
int sys_pending_signals(uint64_t *signals);

/* @action and @before may be NULL. */
int sys_signal_action(int signal, const struct sys_action *action,
		      struct sys_action *before);
/* Sends @signal to the calling thread. */
void sys_signal_thread(int signal);
/* Sends @signal with @value to thread @tid; -ESRCH if it has ended. */
int sys_queue_signal(int tid, int signal, void *value);

/* Sends @signal to thread @tid with a siginfo that the kernel has delivered before. */
int sys_send_again(int tid, int signal, const void *info);

/* Creates a timer that sends @signal with @value to a thread.  The timer is
 * not running at first.  @clock is a clock id, or 0 for the thread's
 * processor time. */
int sys_timer_make(int clock, int tid, int signal, void *value, int *timer);
int sys_timer_set(int timer, uint64_t first_ns, uint64_t period_ns);
int sys_timer_delete(int timer);
/* Sets the alternate signal stack of the calling thread. */
int sys_set_signal_stack(void *low, size_t size);
/* Makes a system call of the program, also after sys_forbid. */
long sys_pass_on(long number, long a, long b, long c, long d, long e, long f);

/*
 * Runs @process, which must not return, in a child that shares the memory of
 * this process, and waits as vfork does.  No SIGCHLD is sent at its end.
 * Returns the child's id, or -errno.
 */
long sys_run_sharing(void (*process)(void));
/* Waits for a child of sys_run_sharing; *@status is the status of wait4. */
int sys_wait_process(long pid, int *status);
/* For the child: ends it. */
void sys_end_process(int status) __attribute__((noreturn));
/* For the child: the kernel kills it when its parent's thread ends. */
int sys_end_with_parent(void);
/* For the child: @timer (ITIMER_*) sends its signal after @seconds. */
int sys_limit_time(int timer, unsigned seconds);

/* The soft limit of a resource, RLIMIT_*. */
int sys_limit(int which, uint64_t *limit);
/* The mapping that contains @address, or @or_next, the first one after it.  Stores its path
 * in the @size bytes of @path.  @maps is a descriptor of /proc/self/maps.  -ENOENT: there is
 * none; after any other error the caller must read that file instead. */
struct map;
int sys_find_mapping(int maps, uintptr_t address, bool or_next, struct map *map,
		     char *path, size_t size);
int sys_signal_stack(uintptr_t *low, uintptr_t *high, bool *in_use);
int sys_time_ns(int clock, uint64_t *time_ns);
/* The processor time of a thread of this process. */
int sys_thread_time_ns(int tid, uint64_t *time_ns);
/* The resolution of @clock in nanoseconds. */
int sys_clock_resolution(int clock, uint64_t *resolution_ns);
/* Whether the thread has thread-local data of this library: libc has made it, and the program
 * has not moved the thread pointer away from it, perhaps to where nothing can be read. */
bool sys_has_thread_data(void);
/* The program may move a thread pointer from now on: it has code of Go, or calls libc's
 * arch_prctl. */
void sys_expect_moved_pointer(void);
/* sys_has_thread_data; true at once where no thread pointer is moved, because it takes three
 * system calls. */
bool sys_still_has_thread_data(void);
/* 0, or -EPERM if reading the processor's counter would trap. */
int sys_clock_is_readable(void);
int sys_host_name(char *name, size_t size);
/* "Linux 6.1.0" */
int sys_kernel(char *text, size_t size);
/* Whether the program has privileges that its user does not have. */
int sys_identity(bool *privileged);
void sys_yield(void);
void sys_sleep_ms(unsigned time_ms);
/* Sleeps for 1 ms.  Returns the whole milliseconds that have passed, at least 1: a thread may
 * have a large timer slack, or no processor. */
uint32_t sys_pause_ms(void);

/* One step of a wait for another thread, which gives up after SYS_WAIT_STEPS: yields at first, then
 * sleeps for 1 ms, for 1000 ms in all.  Returns @waited with what the step adds, from 0 on. */
#define SYS_WAIT_YIELDS 100
#define SYS_WAIT_STEPS	(SYS_WAIT_YIELDS + 1000)
uint32_t sys_wait_step(uint32_t waited);
/* Returns after every thread of the process has passed a memory barrier. */
void sys_barrier(void);
long sys_write_at(int fd, const void *buffer, size_t size, uint64_t offset);
/* Returns after every thread has discarded stale instructions.  0 or -errno. */
int sys_sync_cores(void);
/* The owner and the mode (with type) of a file. */
int sys_file_owner(const char *path, unsigned *uid, unsigned *mode);
/* The effective user id. */
int sys_user(unsigned *user);
int sys_name_thread(const char *name);
/* Sleeps while *@word is @value, until sys_wake or sys_wake_one on @word,
 * for at most @time_ms (0: without limit).  Returns -ETIMEDOUT after that time; 0 or
 * -errno. */
int sys_wait(uint32_t *word, uint32_t value, unsigned time_ms);
void sys_wake_one(uint32_t *word);
void sys_wake(uint32_t *word);

/* Parks a thread of shim when system calls are forbidden; never returns.  The only
 * system call is futex, which every program with threads must allow. */
void sys_park(void) __attribute__((noreturn));

/* --- for the control thread, and for descriptors from profrun --- */

/* Gives the calling thread an empty descriptor table of its own. */
int sys_hide_files(void);
/* A listening socket at @path, with access for its owner only. */
int sys_listen(const char *path);
/* Waits for input on @fd; returns 0 if there is none within @time_ms. */
int sys_wait_input(int fd, unsigned time_ms);
int sys_accept(int fd);
/* The user id of the peer. */
int sys_peer(int fd, unsigned *uid);
/* Writes to a socket without waiting; raises no signal. */
long sys_send(int fd, const void *buffer, size_t size);
/* Connects to an abstract socket for packets.  -EAGAIN: for @time_ms, too many processes
 * waited to be accepted. */
int sys_connect(const char *name, unsigned time_ms);
/* Reads a packet of @size bytes, without waiting.  *@file gets the descriptor that came with
 * it, or -1.  Returns 0; -EIO if the packet is shorter; -EMFILE if this process has no room for
 * the descriptor. */
int sys_receive(int fd, void *buffer, size_t size, int *file);

/* Reads directory entries (struct linux_dirent64); returns their size, 0 at the end. */
long sys_read_directory(int fd, void *buffer, size_t size);

/* Opens the memory of this process as a file. */
int sys_open_memory(int flags);
/* Copies from memory of this process; -EFAULT if it is not mapped. */
int sys_peek(const void *from, void *to, size_t size);
/* Copies up to 16 pages of 4096 bytes from memory of this process; the first ones that are
 * mapped.  Returns their number, at least 1; -EFAULT if the first is not mapped; -errno. */
long sys_peek_pages(const void *from, void *to, unsigned count);
/* Copies to memory of this process; -EFAULT if it is not writable. */
int sys_poke(void *to, const void *from, size_t size);

#endif
