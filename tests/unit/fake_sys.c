#define _GNU_SOURCE
#include "fake_sys.h"

#define sys_forbid	      real_forbid
#define sys_is_closing	      real_is_closing
#define sys_is_forbidden      real_is_forbidden
#define sys_open	      real_open
#define sys_close	      real_close
#define sys_read	      real_read
#define sys_read_at	      real_read_at
#define sys_file	      real_file
#define sys_write	      real_write
#define sys_open_at	      real_open_at
#define sys_get_status	      real_get_status
#define sys_set_mode	      real_set_mode
#define sys_remove_at	      real_remove_at
#define sys_make_directory_at real_make_directory_at
#define sys_user	      real_user
#define sys_is_writable	      real_is_writable
#define sys_remove_directory  real_remove_directory
#define sys_remove	      real_remove
#define sys_rename	      real_rename
#define sys_create	      real_create
#define sys_read_link	      real_read_link
#define sys_get_directory     real_get_directory
#define sys_allocate	      real_allocate
#define sys_map_file	      real_map_file
#define sys_map		      real_map
#define sys_unmap	      real_unmap
#define sys_empty	      real_empty
#define sys_protect	      real_protect
#define sys_gettid	      real_gettid
#define sys_getpid	      real_getpid
#define sys_getppid	      real_getppid
#define sys_is_alive	      real_is_alive
#define sys_thread_name	      real_thread_name
#define sys_block_signals     real_block_signals
#define sys_restore_signals   real_restore_signals
#define sys_limit	      real_limit
#define sys_find_mapping      real_find_mapping
#define sys_signal_stack      real_signal_stack
#define sys_time_ns	      real_time_ns
#define sys_clock_resolution  real_clock_resolution
#define sys_clock_is_readable real_clock_is_readable
#define sys_host_name	      real_host_name
#define sys_kernel	      real_kernel
#define sys_identity	      real_identity
#define sys_yield	      real_yield
#define sys_sleep_ms	      real_sleep_ms
#define sys_barrier	      real_barrier
#define sys_write_at	      real_write_at
#define sys_sync_cores	      real_sync_cores
#define sys_peek	      real_peek
#define sys_peek_pages	      real_peek_pages
#define sys_poke	      real_poke
#define sys_open_memory	      real_open_memory
#define sys_block_signal      real_block_signal
#define sys_pending_signals   real_pending_signals
#define sys_signal_action     real_signal_action
#define sys_timer_make	      real_timer_make
#define sys_set_signal_stack  real_set_signal_stack
#define sys_timer_set	      real_timer_set
#define sys_timer_delete      real_timer_delete
#define sys_signal_thread     real_signal_thread
#define sys_queue_signal      real_queue_signal
#define sys_run_sharing	      real_run_sharing
#define sys_wait_process      real_wait_process
#define sys_limit_time	      real_limit_time
#define sys_end_with_parent   real_end_with_parent
#define sys_unblock_signals   real_unblock_signals
#define sys_map_shared	      real_map_shared
#define sys_map_shared_at     real_map_shared_at
#define sys_map_at	      real_map_at
#define sys_map_over	      real_map_over
#define sys_map_to_read	      real_map_to_read
#define sys_map_again	      real_map_again
#define sys_read_directory    real_read_directory
#define sys_drop	      real_drop
#define sys_wait	      real_wait
#include "os/sys.c"
#include "os/sys_clocks.c"
#include "os/sys_code.c"
#include "os/sys_signals.c"
#undef sys_forbid
#undef sys_is_closing
#undef sys_unblock_signals
#undef sys_map_shared_at
#undef sys_map_at
#undef sys_map_over
#undef sys_map_to_read
#undef sys_map_again
#undef sys_read_directory
#undef sys_drop
#undef sys_wait
#undef sys_is_forbidden
#undef sys_open
#undef sys_close
#undef sys_read
#undef sys_read_at
#undef sys_file
#undef sys_write
#undef sys_open_at
#undef sys_get_status
#undef sys_set_mode
#undef sys_remove_at
#undef sys_make_directory_at
#undef sys_user
#undef sys_is_writable
#undef sys_remove_directory
#undef sys_remove
#undef sys_rename
#undef sys_create
#undef sys_read_link
#undef sys_get_directory
#undef sys_allocate
#undef sys_map_file
#undef sys_map
#undef sys_unmap
#undef sys_empty
#undef sys_protect
#undef sys_gettid
#undef sys_getpid
#undef sys_getppid
#undef sys_is_alive
#undef sys_thread_name
#undef sys_block_signals
#undef sys_restore_signals
#undef sys_limit
#undef sys_find_mapping
#undef sys_signal_stack
#undef sys_time_ns
#undef sys_clock_resolution
#undef sys_clock_is_readable
#undef sys_host_name
#undef sys_kernel
#undef sys_identity
#undef sys_yield
#undef sys_sleep_ms
#undef sys_barrier
#undef sys_write_at
#undef sys_sync_cores
#undef sys_peek
#undef sys_peek_pages
#undef sys_poke
#undef sys_open_memory
#undef sys_block_signal
#undef sys_pending_signals
#undef sys_signal_action
#undef sys_timer_make
#undef sys_set_signal_stack
#undef sys_timer_set
#undef sys_timer_delete
#undef sys_signal_thread
#undef sys_queue_signal
#undef sys_run_sharing
#undef sys_wait_process
#undef sys_limit_time
#undef sys_end_with_parent
#undef SHIM_SYS_H
#include "os/sys.h"

unsigned fake_calls;
static unsigned fail_at;
static int fail_error;
static bool fail_for_good;
static const char *failed;
static void (*watcher)(const char *name);
static char *names;
static unsigned names_room;
static uint64_t slow_ns, ahead_ns;
static uint32_t *waits_ms;
static unsigned waits_room, waited;
static bool stands_still;

static struct {
	const char *path, *text;
	unsigned piece;
	unsigned at;
	int fd;
} file = { .fd = -1 };

void fake_fail(unsigned n, int error, bool for_good)
{
	fake_calls = 0;
	fail_at = n;
	fail_error = error;
	fail_for_good = for_good;
	failed = NULL;
}

const char *fake_failed(void)
{
	return failed;
}

void fake_watch(void (*called)(const char *name))
{
	watcher = called;
}

void fake_note_names(char *memory, unsigned room)
{
	names = memory;
	names_room = room;
}

void fake_slow(uint64_t each_ns)
{
	slow_ns = each_ns;
}

void fake_waits(uint32_t *memory, unsigned room)
{
	waits_ms = memory;
	waits_room = room;
	stands_still = true;
}

unsigned fake_waited(void)
{
	return __atomic_load_n(&waited, __ATOMIC_ACQUIRE);
}

void fake_file(const char *path, const char *text, unsigned piece)
{
	file.path = path;
	file.text = text;
	file.piece = piece;
}

/* 0, or the negative error that this call has to return. */
static int fails(const char *name)
{
	unsigned call_number = __atomic_add_fetch(&fake_calls, 1,
						  __ATOMIC_RELAXED);

	if (watcher)
		watcher(name);
	if (names && call_number < names_room)
		names[call_number] = name[0];
	if (fail_at == 0 || call_number < fail_at ||
	    (call_number > fail_at && !fail_for_good))
		return 0;
	if (call_number == fail_at)
		failed = name;
	return -fail_error;
}

/* A call that can fail. */
#define FAKE(type, name, parameters, arguments) \
	type sys_##name parameters \
	{ \
		int r = fails(#name); \
\
		return r ? r : real_##name arguments; \
	}

FAKE(int, close, (int fd), (fd))
FAKE(long, read_at, (int fd, void *buffer, size_t size, uint64_t offset),
     (fd, buffer, size, offset))
FAKE(int, file, (int fd, uint64_t *device, uint64_t *inode, uint64_t *size),
     (fd, device, inode, size))
FAKE(long, write, (int fd, const void *buffer, size_t size), (fd, buffer, size))
FAKE(int, open_at, (int directory, const char *name, int flags, unsigned mode),
     (directory, name, flags, mode))
FAKE(int, get_status, (int fd, struct sys_status *status), (fd, (void *)status))
FAKE(int, set_mode, (int fd, unsigned mode), (fd, mode))
FAKE(int, remove_at, (int directory, const char *name), (directory, name))
FAKE(int, make_directory_at, (int directory, const char *name, unsigned mode),
     (directory, name, mode))
FAKE(int, remove_directory, (const char *path), (path))
FAKE(bool, is_writable, (int fd), (fd))
FAKE(int, user, (unsigned *user), (user))
FAKE(int, remove, (const char *path), (path))
FAKE(int, create, (const char *path, int flags, unsigned mode),
     (path, flags, mode))
FAKE(int, rename, (const char *path, const char *to), (path, to))
FAKE(long, read_link, (const char *path, char *buffer, size_t size),
     (path, buffer, size))
FAKE(int, get_directory, (char *buffer, size_t size), (buffer, size))
FAKE(int, allocate, (int fd, uint64_t offset, uint64_t size),
     (fd, offset, size))
FAKE(int, map_file, (int fd, uint64_t offset, size_t size, void **memory),
     (fd, offset, size, memory))
FAKE(int, map, (size_t size, void **memory), (size, memory))
FAKE(int, map_shared_at, (void *memory, size_t size), (memory, size))
FAKE(int, map_at, (void *memory, size_t size), (memory, size))
FAKE(int, map_over, (void *memory, size_t size), (memory, size))
FAKE(int, map_to_read, (int fd, size_t size, void **memory), (fd, size, memory))
FAKE(int, map_again, (void *shared, size_t size, void **memory),
     (shared, size, memory))
FAKE(int, unmap, (void *memory, size_t size), (memory, size))
FAKE(int, drop, (void *memory, size_t size), (memory, size))
FAKE(long, read_directory, (int fd, void *buffer, size_t size),
     (fd, buffer, size))
FAKE(int, empty, (void *memory, size_t size), (memory, size))
FAKE(int, protect, (void *memory, size_t size, int protection),
     (memory, size, protection))
FAKE(int, poke, (void *to, const void *from, size_t size), (to, from, size))
FAKE(long, write_at, (int fd, const void *buffer, size_t size, uint64_t offset),
     (fd, buffer, size, offset))
FAKE(int, sync_cores, (void), ())
FAKE(int, thread_name, (char name[16]), (name))
FAKE(int, limit, (int which, uint64_t *limit), (which, limit))
FAKE(int, find_mapping,
     (int maps, uintptr_t address, bool or_next, struct map *map, char *path,
      size_t size),
     (maps, address, or_next, map, path, size))
FAKE(int, signal_stack, (uintptr_t * low, uintptr_t *high, bool *in_use),
     (low, high, in_use))
FAKE(int, clock_resolution, (int clock, uint64_t *resolution_ns),
     (clock, resolution_ns))
FAKE(int, clock_is_readable, (void), ())
FAKE(int, host_name, (char *name, size_t size), (name, size))
FAKE(int, kernel, (char *text, size_t size), (text, size))
FAKE(int, identity, (bool *privileged), (privileged))

FAKE(int, block_signal, (int signal, bool blocked), (signal, blocked))
FAKE(int, pending_signals, (uint64_t * signals), (signals))
FAKE(int, signal_action,
     (int signal, const struct sys_action *action, struct sys_action *before),
     (signal, (const void *)action, (void *)before))
FAKE(int, set_signal_stack, (void *low, size_t size), (low, size))
FAKE(int, timer_make, (int clock, int tid, int signal, void *value, int *timer),
     (clock, tid, signal, value, timer))
FAKE(int, timer_set, (int timer, uint64_t first_ns, uint64_t period_ns),
     (timer, first_ns, period_ns))
FAKE(int, timer_delete, (int timer), (timer))
FAKE(long, run_sharing, (void (*process)(void)), (process))
FAKE(int, wait_process, (long pid, int *status), (pid, status))
FAKE(int, limit_time, (int timer, unsigned seconds), (timer, seconds))
FAKE(int, end_with_parent, (void), ())
FAKE(int, queue_signal, (int tid, int signal, void *value),
     (tid, signal, value))

int sys_time_ns(int clock, uint64_t *time_ns)
{
	int r = fails("time_ns");

	if (r == 0)
		r = real_time_ns(clock, time_ns);
	if (r == 0 && stands_still)
		*time_ns = 0;
	if (r == 0)
		*time_ns += __atomic_add_fetch(&ahead_ns, slow_ns,
					       __ATOMIC_RELAXED);
	return r;
}

/* These fail only if the system forbids them. */
FAKE(int, block_signals, (uint64_t * before), (before))
FAKE(int, restore_signals, (uint64_t before), (before))
FAKE(int, unblock_signals, (uint64_t signals, uint64_t *before),
     (signals, before))

/* Without a limit, another thread ends the wait. */
int sys_wait(uint32_t *word, uint32_t value, unsigned time_ms)
{
	unsigned n = waited;

	if (!stands_still || time_ms == 0)
		return real_wait(word, value, time_ms);
	if (n < waits_room)
		waits_ms[n] = time_ms;
	__atomic_add_fetch(&ahead_ns, time_ms * 1000000ull, __ATOMIC_RELAXED);
	__atomic_store_n(&waited, n + 1, __ATOMIC_RELEASE);
	return -ETIMEDOUT;
}

int sys_open_memory(int flags)
{
	return sys_open("/proc/self/mem", flags, 0);
}

int sys_gettid(void)
{
	return real_gettid();
}

int sys_getpid(void)
{
	return real_getpid();
}

int sys_getppid(void)
{
	return real_getppid();
}

bool sys_is_alive(int pid, int tid)
{
	if (watcher)
		watcher("is_alive");
	return real_is_alive(pid, tid);
}

void sys_signal_thread(int signal)
{
	real_signal_thread(signal);
}

void sys_sleep_ms(unsigned time_ms)
{
	real_sleep_ms(time_ms);
}

void sys_barrier(void)
{
	real_barrier();
}

void sys_yield(void)
{
	real_yield();
}

void sys_forbid(void)
{
	real_forbid();
}

bool sys_is_forbidden(void)
{
	return real_is_forbidden();
}

bool sys_is_closing(void)
{
	return real_is_closing();
}

/* Reads whole pages, including a sanitizer's bytes between variables. */
__attribute__((no_sanitize_address, noinline)) static void
copy_all(volatile char *to, const volatile char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from[i];
}

/* Nothing is ever unloaded in these tests, and the system call would take most
 * of the time of all tests together. */
int sys_peek(const void *from, void *to, size_t size)
{
	int r = fails("peek");

	if (r == 0)
		copy_all(to, from, size);
	return r;
}

long sys_peek_pages(const void *from, void *to, unsigned count)
{
	int r = fails("peek");

	(void)count;
	if (r == 0)
		copy_all(to, from, 4096);
	return r < 0 ? r : 1;
}

static bool is_faked(const char *path)
{
	const char *other = file.path;

	while (other && *path && *path == *other)
		path++, other++;
	return other && *path == *other;
}

int sys_open(const char *path, int flags, unsigned mode)
{
	int r = fails("open");

	if (r)
		return r;
	if (!is_faked(path))
		return real_open(path, flags, mode);
	file.fd = real_open("/dev/null", O_RDONLY, 0);
	file.at = 0;
	return file.fd;
}

long sys_read(int fd, void *buffer, size_t size)
{
	unsigned n = 0;
	int r = fails("read");

	if (r)
		return r;
	if (fd < 0 || fd != file.fd)
		return real_read(fd, buffer, size);
	while (n < size && n < file.piece && file.text[file.at])
		((char *)buffer)[n++] = file.text[file.at++];
	return n;
}
