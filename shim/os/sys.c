/*
 * All system calls of shim, as raw instructions.  libc's wrappers set errno,
 * may be interposed by the program, and are cancellation points.
 */
#define _GNU_SOURCE
#include "os/sys.h"
#include "os/maps.h"

#include "os/sys_call.h"
#include "os/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include <shim/banned.h>

bool sys_forbidden;
bool sys_closing;

/* Other threads may be in the middle of work: they have blocked signals or made code
 * writable, and need system calls to end that. */
void sys_forbid(void)
{
	__atomic_store_n(&sys_closing, true, __ATOMIC_SEQ_CST);
	for (uint32_t waited = 0;
	     waited < SYS_WAIT_STEPS && sys_has_blocked_signals();)
		waited = sys_wait_step(waited);
	sys_forbidden = true;
}

void sys_allow(void)
{
	sys_forbidden = false;
	__atomic_store_n(&sys_closing, false, __ATOMIC_SEQ_CST);
}

bool sys_is_closing(void)
{
	return __atomic_load_n(&sys_closing, __ATOMIC_SEQ_CST);
}

bool sys_is_forbidden(void)
{
	return sys_forbidden;
}

static size_t append_text(char *text, size_t size, size_t at, const char *what)
{
	while (at + 1 < size && *what)
		text[at++] = *what++;
	text[at] = '\0';
	return at;
}

/* Sets the mode of a new file after the umask was applied: otherwise shim might be
 * unable to open the file again. */
int sys_open_at(int directory, const char *name, int flags, unsigned mode)
{
	int fd = (int)sys_retry(SYS_openat, directory, (long)name, flags, mode,
				0, 0);

	if (fd >= 0 && (flags & O_CREAT))
		sys_call(SYS_fchmod, fd, mode, 0, 0, 0, 0);
	return fd;
}

int sys_open(const char *path, int flags, unsigned mode)
{
	return sys_open_at(AT_FDCWD, path, flags, mode);
}

int sys_create(const char *path, int flags, unsigned mode)
{
	return (int)sys_retry(SYS_openat, AT_FDCWD, (long)path, flags | O_CREAT,
			      mode, 0, 0);
}

int sys_close(int fd)
{
	return (int)sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

long sys_read(int fd, void *buffer, size_t size)
{
	return sys_retry(SYS_read, fd, (long)buffer, (long)size, 0, 0, 0);
}

long sys_read_at(int fd, void *buffer, size_t size, uint64_t offset)
{
	return sys_retry(SYS_pread64, fd, (long)buffer, (long)size,
			 (long)offset, 0, 0);
}

int sys_file(int fd, uint64_t *device, uint64_t *inode, uint64_t *size)
{
	struct statx info;
	int r = (int)sys_retry(SYS_statx, fd, (long)"", AT_EMPTY_PATH,
			       STATX_BASIC_STATS, (long)&info, 0);

	if (r < 0)
		return r;
	if ((info.stx_mode & S_IFMT) != S_IFREG)
		return -ESPIPE;
	*device = (uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor;
	*inode = info.stx_ino;
	*size = info.stx_size;
	return 0;
}

int sys_get_status(int fd, struct sys_status *status)
{
	struct stat file;
	int r = (int)sys_retry(SYS_fstat, fd, (long)&file, 0, 0, 0, 0);

	/* A sandbox may allow only one of them. */
	if (r < 0 && r != -EBADF)
		r = (int)sys_call(SYS_newfstatat, fd, (long)"", (long)&file,
				  AT_EMPTY_PATH, 0, 0);
	if (r < 0)
		return r;
	*status = (struct sys_status){
		.device = file.st_dev,
		.inode = file.st_ino,
		.size = (uint64_t)file.st_size,
		.user = file.st_uid,
		.mode = file.st_mode,
		.links = (unsigned)file.st_nlink,
	};
	return 0;
}

bool sys_is_read_only(int fd)
{
	struct statfs about;

	return sys_retry(SYS_fstatfs, fd, (long)&about, 0, 0, 0, 0) == 0 &&
	       about.f_flags & ST_RDONLY;
}

/* fchmod refuses a descriptor of O_PATH, so this function uses its name in /proc. */
int sys_set_mode(int fd, unsigned mode)
{
	char path[40];
	size_t at = append_text(path, sizeof(path), 0, "/proc/self/fd/");
	unsigned unit = 1;

	while (fd / 10 / unit > 0)
		unit *= 10;
	for (; unit > 0; unit /= 10)
		path[at++] = (char)('0' + (unsigned)fd / unit % 10);
	path[at] = '\0';
	return (int)sys_call(SYS_fchmodat, AT_FDCWD, (long)path, mode, 0, 0, 0);
}

bool sys_is_writable(int fd)
{
	struct pollfd poll = { .fd = fd, .events = POLLOUT };
	struct timespec no_time = { 0, 0 };

	return sys_call(SYS_ppoll, (long)&poll, 1, (long)&no_time, 0, 8, 0) >
		       0 &&
	       poll.revents == POLLOUT;
}

int sys_remove_at(int directory, const char *name)
{
	return (int)sys_call(SYS_unlinkat, directory, (long)name, 0, 0, 0, 0);
}

int sys_remove(const char *path)
{
	return sys_remove_at(AT_FDCWD, path);
}

int sys_rename(const char *path, const char *to)
{
	return (int)sys_call(SYS_renameat2, AT_FDCWD, (long)path, AT_FDCWD,
			     (long)to, 0, 0);
}

int sys_remove_directory(const char *path)
{
	return (int)sys_call(SYS_unlinkat, AT_FDCWD, (long)path, AT_REMOVEDIR,
			     0, 0, 0);
}

int sys_make_directory_at(int directory, const char *name, unsigned mode)
{
	return (int)sys_retry(SYS_mkdirat, directory, (long)name, mode, 0, 0,
			      0);
}

long sys_read_link(const char *path, char *buffer, size_t size)
{
	return sys_retry(SYS_readlinkat, AT_FDCWD, (long)path, (long)buffer,
			 (long)size, 0, 0);
}

int sys_get_directory(char *buffer, size_t size)
{
	return (int)sys_retry(SYS_getcwd, (long)buffer, (long)size, 0, 0, 0, 0);
}

/* For file systems that cannot preallocate: written zeros allocate blocks, too. */
static int write_zeros(int fd, uint64_t offset, uint64_t size)
{
	static const char zeros[4096];
	long r;

	while (size > 0) {
		size_t part = size < sizeof(zeros) ? size : sizeof(zeros);

		r = sys_call(SYS_pwrite64, fd, (long)zeros, (long)part,
			     (long)offset, 0, 0);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? (int)r : -ENOSPC;
		offset += (uint64_t)r;
		size -= (uint64_t)r;
	}
	return 0;
}

int sys_allocate(int fd, uint64_t offset, uint64_t size)
{
	long r;

	r = sys_retry(SYS_fallocate, fd, 0, (long)offset, (long)size, 0, 0);
	if (r == -EOPNOTSUPP || r == -ENOSYS)
		return write_zeros(fd, offset, size);
	return (int)r;
}

/* Of the mappings of this process; bytes, in whole pages. */
static uint64_t mapped;

static void count_mapped(long size)
{
	long pages = (size < 0 ? 4095 - size : size + 4095) / 4096;

	__atomic_fetch_add(&mapped,
			   (uint64_t)(size < 0 ? -pages : pages) * 4096,
			   __ATOMIC_RELAXED);
}

uint64_t sys_mapped(void)
{
	return __atomic_load_n(&mapped, __ATOMIC_RELAXED);
}

static int map_protected(int protection, void **memory, size_t size, int flags,
			 int fd, uint64_t offset)
{
	long r = sys_retry(SYS_mmap, 0, (long)size, protection, flags, fd,
			   (long)offset);

	if (r < 0 && r > -4096)
		return (int)r;
	count_mapped((long)size);
	*memory = (void *)r;
	return 0;
}

static int map(void **memory, size_t size, int flags, int fd, uint64_t offset)
{
	return map_protected(PROT_READ | PROT_WRITE, memory, size, flags, fd,
			     offset);
}

int sys_map_file(int fd, uint64_t offset, size_t size, void **memory)
{
	return map(memory, size, MAP_SHARED, fd, offset);
}

int sys_map_to_read(int fd, size_t size, void **memory)
{
	return map_protected(PROT_READ, memory, size, MAP_SHARED, fd, 0);
}

int sys_map(size_t size, void **memory)
{
	return map(memory, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
}

int sys_map_over(void *memory, size_t size)
{
	long r = sys_retry(
		SYS_mmap, (long)memory, (long)size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return r < 0 && r > -4096 ? (int)r : 0;
}

static int map_at(void *memory, size_t size, int flags)
{
	long r = sys_retry(
		SYS_mmap, (long)memory, (long)size, PROT_READ | PROT_WRITE,
		flags | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		0);

	if (r < 0 && r > -4096)
		return (int)r;
	count_mapped((long)size);
	if (r == (long)memory)
		return 0;
	/* Linux before 4.17 does not know the flag. */
	sys_unmap((void *)r, size);
	return -EEXIST;
}

bool sys_has_shadow_stack(void)
{
	uint64_t features = 0;
	long r = -ENOSYS;

#ifdef __x86_64__
	r = sys_call(SYS_arch_prctl, 0x5005 /* ARCH_SHSTK_STATUS */,
		     (long)&features, 0, 0, 0, 0);
#endif
	return r == 0 && (features & 1);
}

int sys_map_at(void *memory, size_t size)
{
	return map_at(memory, size, MAP_PRIVATE);
}

int sys_map_shared_at(void *memory, size_t size)
{
	return map_at(memory, size, MAP_SHARED);
}

/* mremap(2) with an old size of 0 maps a shared mapping a second time. */
int sys_map_again(void *shared, size_t size, void **memory)
{
	long r = sys_retry(SYS_mremap, (long)shared, 0, (long)size,
			   MREMAP_MAYMOVE, 0, 0);

	if (r < 0 && r > -4096)
		return (int)r;
	count_mapped((long)size);
	*memory = (void *)r;
	return 0;
}

int sys_unmap(void *memory, size_t size)
{
	int r = (int)sys_call(SYS_munmap, (long)memory, (long)size, 0, 0, 0, 0);

	if (r == 0)
		count_mapped(-(long)size);
	return r;
}

int sys_empty(void *memory, size_t size)
{
	return (int)sys_call(SYS_madvise, (long)memory, (long)size,
			     MADV_DONTNEED, 0, 0, 0);
}

void sys_prefer_huge(void *memory, size_t size)
{
	sys_call(SYS_madvise, (long)memory, (long)size, MADV_HUGEPAGE, 0, 0, 0);
}

int sys_drop(void *memory, size_t size)
{
	int r = sys_empty(memory, size);

	if (r != -EINVAL)
		return r;
	/* The pages are locked. */
	sys_call(SYS_munlock, (long)memory, (long)size, 0, 0, 0, 0);
	r = sys_empty(memory, size);
	sys_call(SYS_mlock, (long)memory, (long)size, 0, 0, 0, 0);
	return r;
}

int sys_protect(void *memory, size_t size, int protection)
{
	return (int)sys_retry(SYS_mprotect, (long)memory, (long)size,
			      protection, 0, 0, 0);
}

int sys_gettid(void)
{
	return (int)sys_insist(SYS_gettid, 0, 0, 0, 0);
}

int sys_getpid(void)
{
	return (int)sys_insist(SYS_getpid, 0, 0, 0, 0);
}

int sys_getppid(void)
{
	return (int)sys_insist(SYS_getppid, 0, 0, 0, 0);
}

bool sys_is_alive(int pid, int tid)
{
	return sys_call(SYS_tgkill, pid, tid, 0, 0, 0, 0) != -ESRCH;
}

int sys_thread_name(char name[16])
{
	return (int)sys_call(SYS_prctl, PR_GET_NAME, (long)name, 0, 0, 0, 0);
}

static uint64_t bit_of(int signal)
{
	return 1ull << (signal - 1);
}

/* Removes a signal that a system call of shim has raised.  A signal in @before was
 * pending earlier and belongs to the program. */
static void drop_signal(int signal, uint64_t before)
{
	uint64_t one = bit_of(signal);
	struct timespec no_time = { 0, 0 };

	if (!(before & one))
		sys_call(SYS_rt_sigtimedwait, (long)&one, 0, (long)&no_time,
			 sizeof(one), 0, 0);
}

long sys_pass_on(long number, long a, long b, long c, long d, long e, long f)
{
	return arch_syscall(number, a, b, c, d, e, f);
}

/* Emulators support clone with the flags of vfork.  arch_syscall must be inlined: both
 * processes continue in this frame, the parent after the child has ended. */
long sys_run_sharing(void (*process)(void))
{
	long pid;

	if (sys_forbidden)
		return -EPERM;
	pid = arch_syscall(SYS_clone, CLONE_VM | CLONE_VFORK, 0, 0, 0, 0, 0);
	if (pid == 0)
		process();
	return pid;
}

int sys_wait_process(long pid, int *status)
{
	return (int)sys_call(SYS_wait4, pid, (long)status, __WALL, 0, 0, 0);
}

void sys_end_process(int status)
{
	for (;;)
		arch_syscall(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

int sys_end_with_parent(void)
{
	return (int)sys_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
}

int sys_limit_time(int timer, unsigned seconds)
{
	struct itimerval limit = { .it_value.tv_sec = seconds };

	return (int)sys_call(SYS_setitimer, timer, (long)&limit, 0, 0, 0, 0);
}

/* Whether a write can raise neither SIGPIPE (if the reader does not leave meanwhile) nor
 * SIGXFSZ. */
static bool raises_no_signal(int fd)
{
	uint64_t limit;

	return sys_is_writable(fd) && sys_limit(RLIMIT_FSIZE, &limit) == 0 &&
	       limit == RLIM_INFINITY;
}

long sys_write(int fd, const void *buffer, size_t size)
{
	uint64_t mask, pending = ~0ull;
	long r = sys_block_signals(&mask);

	/* shim must be able to say why it records nothing. */
	if (r < 0)
		return raises_no_signal(fd) ?
			       sys_call(SYS_write, fd, (long)buffer, (long)size,
					0, 0, 0) :
			       r;
	sys_pending_signals(&pending);
	r = sys_call(SYS_write, fd, (long)buffer, (long)size, 0, 0, 0);
	if (r == -EPIPE)
		drop_signal(SIGPIPE, pending);
	else if (r == -EFBIG)
		drop_signal(SIGXFSZ, pending);
	sys_restore_signals(mask);
	return r;
}

int sys_write_all(int fd, const void *buffer, size_t size)
{
	const char *at = buffer;

	while (size > 0) {
		long r = sys_write(fd, at, size);

		if (r <= 0)
			return r < 0 ? (int)r : -EIO;
		at += r;
		size -= (size_t)r;
	}
	return 0;
}

int sys_limit(int which, uint64_t *limit)
{
	struct rlimit both;
	int r = (int)sys_retry(SYS_prlimit64, 0, which, 0, (long)&both, 0, 0);

	if (r == 0)
		*limit = both.rlim_cur;
	return r;
}

/* PROCMAP_QUERY, of Linux 6.11. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, end;
	uint64_t rights;
	uint64_t page_size, offset, inode;
	uint32_t device[2];
	uint32_t name_size, build_id_size;
	uint64_t name, build_id;
};

_Static_assert(sizeof(struct query) == 104, "layout");

int sys_find_mapping(int maps, uintptr_t address, bool or_next, struct map *map,
		     char *path, size_t size)
{
	struct query query = { .size = sizeof(query),
			       .flags = or_next ? 0x10 : 0,
			       .address = address,
			       .name_size = (uint32_t)size,
			       .name = (uintptr_t)path };
	int r;

	path[0] = '\0';
	r = (int)sys_call(SYS_ioctl, maps, (long)_IOWR('f', 17, struct query),
			  (long)&query, 0, 0, 0);
	if (r < 0)
		return r;
	*map = (struct map){
		.start = query.start,
		.end = query.end,
		.readable = query.rights & 1,
		.writable = query.rights & 2,
		.executable = query.rights & 4,
		.shared = query.rights & 8,
		.offset = query.offset,
		.device = (uint64_t)query.device[0] << 32 | query.device[1],
		.inode = query.inode,
		.path = path,
	};
	return 0;
}

int sys_host_name(char *name, size_t size)
{
	struct utsname names;
	int r = (int)sys_call(SYS_uname, (long)&names, 0, 0, 0, 0, 0);
	size_t i;

	if (r < 0)
		return r;
	for (i = 0; i + 1 < size && names.nodename[i]; i++)
		name[i] = names.nodename[i];
	name[i] = '\0';
	return 0;
}

int sys_kernel(char *text, size_t size)
{
	struct utsname names;
	int r = (int)sys_call(SYS_uname, (long)&names, 0, 0, 0, 0, 0);
	size_t at;

	if (r < 0)
		return r;
	at = append_text(text, size, 0, names.sysname);
	at = append_text(text, size, at, " ");
	append_text(text, size, at, names.release);
	return 0;
}

int sys_identity(bool *privileged)
{
	long user = sys_insist(SYS_getuid, 0, 0, 0, 0),
	     group = sys_insist(SYS_getgid, 0, 0, 0, 0);
	long own_user = sys_insist(SYS_geteuid, 0, 0, 0, 0),
	     own_group = sys_insist(SYS_getegid, 0, 0, 0, 0);

	if (user < 0 || group < 0 || own_user < 0 || own_group < 0)
		return -EPERM;
	*privileged = user != own_user || group != own_group;
	return 0;
}

void sys_yield(void)
{
	sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* If the kernel or a sandbox refuses the command, a sleep of 1 ms lets other threads
 * finish the instructions that they have begun. */
void sys_barrier(void)
{
	static bool registered;

	if (!registered) {
		sys_call(SYS_membarrier,
			 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0, 0,
			 0);
		registered = true;
	}
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (sys_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0,
		     0, 0) < 0)
		sys_sleep_ms(1);
}

long sys_write_at(int fd, const void *buffer, size_t size, uint64_t offset)
{
	return sys_retry(SYS_pwrite64, fd, (long)buffer, (long)size,
			 (long)offset, 0, 0);
}

/* A process must register before it uses this command.  execve and some forks remove the
 * registration. */
int sys_sync_cores(void)
{
	const long sync = 1 << 5; /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_... */
	const long announce = 1
			      << 6; /* ..._SYNC_CORE, REGISTER_..._SYNC_CORE */
	int r = (int)sys_call(SYS_membarrier, sync, 0, 0, 0, 0, 0);

	if (r != -EPERM)
		return r;
	r = (int)sys_call(SYS_membarrier, announce, 0, 0, 0, 0, 0);
	return r < 0 ? r : (int)sys_call(SYS_membarrier, sync, 0, 0, 0, 0, 0);
}

static int copy_memory(long number, void *ours, const void *theirs, size_t size)
{
	struct iovec local = { ours, size };
	struct iovec remote = { (void *)theirs, size };
	/* The process id would fail after the first thread has ended. */
	long r = sys_call(number, sys_gettid(), (long)&local, 1, (long)&remote,
			  1, 0);

	if (r < 0)
		return (int)r;
	return (size_t)r == size ? 0 : -EFAULT;
}

int sys_open_memory(int flags)
{
	int fd = sys_open("/proc/thread-self/mem", flags, 0);

	return fd == -ENOENT ? sys_open("/proc/self/mem", flags, 0) : fd;
}

static int read_memory(const void *from, void *to, size_t size)
{
	int fd = sys_open_memory(O_RDONLY | O_CLOEXEC);
	long r;

	if (fd < 0)
		return fd;
	r = sys_read_at(fd, to, size, (uintptr_t)from);
	sys_close(fd);
	return r == (long)size ? 0 : -EFAULT;
}

/* Reads /proc if a sandbox lacks or refuses the system call. */
int sys_peek(const void *from, void *to, size_t size)
{
	int r = copy_memory(SYS_process_vm_readv, to, from, size);

	return r < 0 && r != -EFAULT ? read_memory(from, to, size) : r;
}

/* One call copies all pages up to the first that is not mapped: the kernel divides no
 * element of the list. */
long sys_peek_pages(const void *from, void *to, unsigned count)
{
	static const size_t page = 4096;
	struct iovec local = { to, count * page }, remote[16];
	long r;

	for (unsigned i = 0; i < count; i++)
		remote[i] = (struct iovec){ (char *)from + i * page, page };
	r = sys_call(SYS_process_vm_readv, sys_gettid(), (long)&local, 1,
		     (long)remote, count, 0);
	if (r >= (long)page)
		return r / (long)page;
	if (r >= 0)
		return -EFAULT;
	return r == -EFAULT ? r : sys_peek(from, to, page) < 0 ? r : 1;
}

int sys_poke(void *to, const void *from, size_t size)
{
	return copy_memory(SYS_process_vm_writev, (void *)from, to, size);
}

int sys_file_owner(const char *path, unsigned *uid, unsigned *mode)
{
	struct stat file;
	int r = (int)sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&file,
			      0, 0, 0);

	if (r == 0) {
		*uid = file.st_uid;
		*mode = file.st_mode;
	}
	return r;
}

int sys_user(unsigned *user)
{
	long r = sys_insist(SYS_geteuid, 0, 0, 0, 0);

	if (r < 0)
		return (int)r;
	*user = (unsigned)r;
	return 0;
}

int sys_name_thread(const char *name)
{
	return (int)sys_call(SYS_prctl, PR_SET_NAME, (long)name, 0, 0, 0, 0);
}

int sys_wait(uint32_t *word, uint32_t value, unsigned time_ms)
{
	struct timespec time = { time_ms / 1000, time_ms % 1000 * 1000000l };

	return (int)sys_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, value,
			     time_ms ? (long)&time : 0, 0, 0);
}

void sys_wake_one(uint32_t *word)
{
	sys_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

void sys_wake(uint32_t *word)
{
	sys_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 0x7fffffff, 0, 0,
		 0);
}

void sys_park(void)
{
	static uint32_t word;

	for (;;)
		arch_syscall(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, 0,
			     0, 0);
}

/* The loader initializes thread-local storage after relocation, and overwrites its previous
 * content. */
#define THREAD_MARK 0x7368696d74687264

static __thread volatile uint64_t thread_mark = THREAD_MARK;

/* The kernel copies a signal mask before it looks what it is for, and -1 is for nothing. */
static bool is_readable(const volatile uint64_t *word)
{
	return sys_call(SYS_rt_sigprocmask, -1, (long)word, 0, sizeof(*word), 0,
			0) != -EFAULT;
}

static bool may_be_moved;

void sys_expect_moved_pointer(void)
{
	__atomic_store_n(&may_be_moved, true, __ATOMIC_RELAXED);
}

bool sys_still_has_thread_data(void)
{
	return !__atomic_load_n(&may_be_moved, __ATOMIC_RELAXED) ||
	       sys_has_thread_data();
}

bool sys_has_thread_data(void)
{
	uintptr_t pointer = arch_find_thread_pointer();

	return pointer && is_readable((const uint64_t *)pointer) &&
	       arch_thread_pointer() == pointer && is_readable(&thread_mark) &&
	       thread_mark == THREAD_MARK;
}

/* --- for the control thread, and for descriptors from profrun --- */

int sys_hide_files(void)
{
	int r = (int)sys_call(SYS_unshare, CLONE_FILES, 0, 0, 0, 0, 0);

	if (r < 0)
		return r;
	/* Kernels before Linux 5.9 lack the call. */
	if (sys_call(SYS_close_range, 0, -1l, 0, 0, 0, 0) < 0)
		for (int fd = 0; fd < 65536; fd++)
			sys_close(fd);
	return 0;
}

int sys_listen(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	for (size_t i = 0; path[i]; i++) {
		if (i + 1 >= sizeof(address.sun_path))
			return -ENAMETOOLONG;
		address.sun_path[i] = path[i];
	}
	fd = (int)sys_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
			   0, 0, 0);
	if (fd < 0)
		return fd;
	/* bind creates the socket's file with this mode, less the umask. */
	sys_call(SYS_fchmod, fd, 0600, 0, 0, 0, 0);
	r = (int)sys_call(SYS_bind, fd, (long)&address, sizeof(address), 0, 0,
			  0);
	if (r == 0)
		r = (int)sys_call(SYS_fchmodat, AT_FDCWD, (long)path, 0600, 0,
				  0, 0);
	if (r == 0)
		r = (int)sys_call(SYS_listen, fd, 16, 0, 0, 0, 0);
	if (r < 0)
		sys_close(fd);
	return r < 0 ? r : fd;
}

int sys_wait_input(int fd, unsigned time_ms)
{
	struct pollfd poll = { .fd = fd, .events = POLLIN };
	struct timespec time = { time_ms / 1000, time_ms % 1000 * 1000000l };

	return (int)sys_call(SYS_ppoll, (long)&poll, 1, (long)&time, 0, 8, 0);
}

int sys_accept(int fd)
{
	return (int)sys_call(SYS_accept4, fd, 0, 0,
			     SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
}

int sys_peer(int fd, unsigned *uid)
{
	struct ucred peer;
	int size = sizeof(peer);
	int r = (int)sys_call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED,
			      (long)&peer, (long)&size, 0);

	if (r == 0)
		*uid = peer.uid;
	return r;
}

long sys_send(int fd, const void *buffer, size_t size)
{
	return sys_call(SYS_sendto, fd, (long)buffer, (long)size,
			MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

int sys_connect(const char *name, unsigned time_ms)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval time = { time_ms / 1000, time_ms % 1000 * 1000l };
	size_t size = 0;
	int fd, r;

	/* The first byte stays 0. */
	for (; name[size]; size++) {
		if (size + 1 >= sizeof(address.sun_path))
			return -ENAMETOOLONG;
		address.sun_path[size + 1] = name[size];
	}
	size += sizeof(address.sun_family) + 1;
	fd = (int)sys_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC,
			   0, 0, 0, 0);
	if (fd < 0)
		return fd;
	/* It limits connect, too. */
	r = (int)sys_call(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO,
			  (long)&time, sizeof(time), 0);
	if (r == 0)
		r = (int)sys_call(SYS_connect, fd, (long)&address, (long)size,
				  0, 0, 0);
	if (r < 0)
		sys_close(fd);
	return r < 0 ? r : fd;
}

int sys_receive(int fd, void *buffer, size_t size, int *file)
{
	union {
		struct cmsghdr head;
		char memory[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { buffer, size };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	long r = sys_call(SYS_recvmsg, fd, (long)&message,
			  MSG_DONTWAIT | MSG_CMSG_CLOEXEC, 0, 0, 0);

	*file = -1;
	if (r < 0)
		return (int)r;
	if (message.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    control.head.cmsg_level == SOL_SOCKET &&
	    control.head.cmsg_type == SCM_RIGHTS)
		*file = *(int *)CMSG_DATA(&control.head);
	return (size_t)r == size ? 0 : -EIO;
}

long sys_read_directory(int fd, void *buffer, size_t size)
{
	return sys_call(SYS_getdents64, fd, (long)buffer, (long)size, 0, 0, 0);
}
