/*
 * Reads ELF files in child processes that cannot open anything and have limits
 * on memory and time.  The children are forks of a process that was forked
 * before anything was read, so they inherit no data.  The parent checks all
 * bytes of their answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "names/sandbox.h"

/* The memory limit of a child beyond the size of its file: compressed debug
 * information grows to five times its size, and the structures built from it
 * need about as much again. */
#define MEMORY_LEAST   (96ull << 20)
#define MEMORY_TIMES   16
#define SECONDS_LEAST  4
#define BYTES_A_SECOND (8ull << 20)

/* A sanitizer maps nearly the whole address space. */
#ifdef REPORT_COPIES_FILES
static const bool limits_memory = false;
#else
static const bool limits_memory = true;
#endif

/* --- descriptors and bytes --- */

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int))];
};

static bool send_all(int fd, const void *bytes, size_t size, int pass)
{
	union control control = { .head = { .cmsg_len = 0 } };
	const char *at = bytes;
	ssize_t sent;

	while (size > 0) {
		struct iovec piece = { (void *)at, size };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };

		if (pass >= 0) {
			message.msg_control = &control;
			message.msg_controllen = sizeof(control);
			control.head.cmsg_level = SOL_SOCKET;
			control.head.cmsg_type = SCM_RIGHTS;
			control.head.cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(&control.head), &pass, sizeof(int));
		}
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		pass = -1;
		at += sent;
		size -= (size_t)sent;
	}
	return true;
}

bool sandbox_take(int fd, void *bytes, size_t size, int *passed)
{
	union control control;
	char *at = bytes;
	ssize_t got;

	*passed = -1;
	while (size > 0) {
		struct iovec piece = { at, size };
		struct msghdr message = { .msg_iov = &piece,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };

		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
		    control.head.cmsg_type == SCM_RIGHTS && *passed < 0)
			memcpy(passed, CMSG_DATA(&control.head), sizeof(int));
		at += got;
		size -= (size_t)got;
	}
	return true;
}

/* --- restrictions of a child --- */

static void limit(pid_t pid, int what, uint64_t value)
{
	struct rlimit limit;

	/* Sets the soft limit only: a lowered hard limit cannot be raised
	 * again. */
	if (prlimit(pid, what, NULL, &limit) != 0)
		return;
	limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
	prlimit(pid, what, &limit, NULL);
}

static uint64_t memory_now(void)
{
	unsigned long pages = 0;
	FILE *in = fopen("/proc/self/statm", "re");

	if (in && fscanf(in, "%lu", &pages) != 1)
		pages = 0;
	if (in)
		fclose(in);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t memory_for(uint64_t bytes)
{
	return MEMORY_LEAST + (bytes < UINT64_MAX / 32 ?
				       (1 + MEMORY_TIMES) * bytes :
				       UINT64_MAX / 2);
}

static uint64_t seconds_for(uint64_t bytes)
{
	return SECONDS_LEAST + bytes / BYTES_A_SECOND;
}

static uint64_t memory_before; /* memory of each child at its start */

/* The parent sets them before it tells the pid, so that sandbox_allow() adds to them. */
static void set_limits(pid_t pid)
{
	limit(pid, RLIMIT_CORE, 0);
	limit(pid, RLIMIT_FSIZE, 0);
	limit(pid, RLIMIT_NOFILE, 64);
	limit(pid, RLIMIT_CPU, seconds_for(0));
	if (limits_memory)
		limit(pid, RLIMIT_AS, memory_before + memory_for(0));
}

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef OWN_ARCH
#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
/* Allowed unless it makes memory executable. */
#define ALLOW_DATA(name) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 4), LOAD(args[2]), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), REFUSE, \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#endif

/*
 * From here on nothing can be opened, sent elsewhere or executed, whatever
 * happens to the process: files come from the parent, and answers go there.  On
 * systems without such filters, only the limits apply.
 */
static void forbid_the_rest(void)
{
#ifdef OWN_ARCH
	static struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
		REFUSE,
		LOAD(nr),
		ALLOW(read),
		ALLOW(write),
		ALLOW(recvmsg),
		ALLOW(sendmsg),
		ALLOW(pread64),
		ALLOW(lseek),
		ALLOW(close),
		ALLOW(fcntl),
		ALLOW(fstat),
		ALLOW(newfstatat),
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(brk),
		ALLOW(madvise),
		ALLOW(futex),
		ALLOW(sched_yield),
		ALLOW(getrandom),
		ALLOW(clock_gettime),
		ALLOW(getpid),
		ALLOW(gettid),
		ALLOW(rt_sigaction),
		ALLOW(rt_sigprocmask),
		ALLOW(rt_sigreturn),
		ALLOW(sigaltstack),
		ALLOW(tgkill),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW_DATA(mmap),
		ALLOW_DATA(mprotect),
		REFUSE,
	};
	static const struct sock_fprog program = {
		sizeof(filter) / sizeof(*filter), filter
	};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#endif
}

/* --- the parent of all sandboxes --- */

static int to_first = -1; /* our end */
static pid_t first, owner;
static void (*serve_one)(int fd);
static int open_ends[SANDBOX_MAX]; /* descriptors of the sandboxes, or 0 */

static _Noreturn void become_one(int fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(to_first);
	forbid_the_rest();
	serve_one(fd);
	_exit(0);
}

/* Serves its requests: a descriptor requests a new sandbox, and the answer is
 * its pid; the pid of an ended sandbox requests its wait status. */
static void serve(int fd)
{
	pid_t self = getpid(), pid;
	int passed, word, status;

	while (sandbox_take(fd, &word, sizeof(word), &passed)) {
		if (passed >= 0) {
			pid = fork();
			if (pid == 0) {
				close(fd);
				become_one(passed, self);
			}
			if (pid > 0)
				set_limits(pid);
			close(passed);
			word = pid;
		} else {
			status = 0;
			while (waitpid(word, &status, 0) < 0 && errno == EINTR)
				;
			word = status;
		}
		if (!send_all(fd, &word, sizeof(word), -1))
			return;
	}
}

static _Noreturn void become_first(int fd, pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	/* Closes all other descriptors; an old kernel lacks the first way. */
	if ((fd > 3 && close_range(3, (unsigned)fd - 1, 0) != 0) ||
	    close_range((unsigned)fd + 1, ~0u, 0) != 0)
		for (i = 3; i < 1024; i++)
			if (i != fd)
				close(i);
	die_at_once();
	memory_before = memory_now();
	serve(fd);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	_exit(0);
}

/* Sandboxes end when the parent's ends are closed, and then their parent ends:
 * no process is left. */
static void end_sandboxes(void)
{
	size_t i;

	if (to_first < 0 || getpid() != owner)
		return;
	for (i = 0; i < SANDBOX_MAX; i++)
		if (open_ends[i] > 0)
			shutdown(open_ends[i], SHUT_RDWR);
	close(to_first);
	to_first = -1;
	while (waitpid(first, NULL, 0) < 0 && errno == EINTR)
		;
}

/* If standard input or output is closed, new descriptors may get their
 * numbers. */
static int away_from_standard(int fd)
{
	int moved = fd;

	if (fd < 3) {
		moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		close(fd);
	}
	return moved;
}

static bool make_pair(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	pair[0] = away_from_standard(pair[0]);
	pair[1] = away_from_standard(pair[1]);
	if (pair[0] >= 0 && pair[1] >= 0)
		return true;
	close(pair[0]);
	close(pair[1]);
	return false;
}

void sandbox_begin(void (*work)(int fd))
{
	int pair[2];

	if (to_first >= 0 || !make_pair(pair))
		return;
	serve_one = work;
	owner = getpid();
	fflush(NULL);
	first = fork();
	if (first == 0) {
		close(pair[0]);
		become_first(pair[1], owner);
	}
	close(pair[1]);
	to_first = pair[0];
	if (first < 0) {
		close(to_first);
		to_first = -1;
		return;
	}
	atexit(end_sandboxes);
}

/* --- the report's end of a sandbox --- */

static void note_end(int fd, int instead)
{
	size_t i;

	for (i = 0; i < SANDBOX_MAX; i++)
		if (open_ends[i] == fd) {
			open_ends[i] = instead;
			return;
		}
}

bool sandbox_open(struct sandbox *sandbox)
{
	static const struct sandbox none = { .fd = -1, .pid = -1 };
	int pair[2], word = 0, passed;

	*sandbox = none;
	if (to_first < 0 || !make_pair(pair)) {
		warn("no process can be started to read symbols: %s; functions "
		     "are shown by address",
		     strerror(errno));
		return false;
	}
	if (send_all(to_first, &word, sizeof(word), pair[1]) &&
	    sandbox_take(to_first, &word, sizeof(word), &passed) && word > 0)
		sandbox->pid = word;
	close(pair[1]);
	sandbox->fd = pair[0];
	note_end(0, sandbox->fd);
	sandbox->in = fdopen(dup(pair[0]), "r");
	if (sandbox->pid > 0 && sandbox->in)
		return true;
	warn("no process can be started to read symbols; functions are shown "
	     "by address");
	sandbox_close(sandbox);
	return false;
}

static int close_one(struct sandbox *sandbox)
{
	int word = sandbox->pid, passed;

	if (sandbox->in)
		fclose(sandbox->in);
	if (sandbox->fd >= 0) {
		note_end(sandbox->fd, 0);
		close(sandbox->fd);
	}
	sandbox->in = NULL;
	sandbox->fd = -1;
	sandbox->pid = -1;
	if (word <= 0 || !send_all(to_first, &word, sizeof(word), -1) ||
	    !sandbox_take(to_first, &word, sizeof(word), &passed))
		return 0;
	return word;
}

void sandbox_close(struct sandbox *sandbox)
{
	close_one(sandbox);
}

const char *sandbox_blame(struct sandbox *sandbox)
{
	uint64_t seconds = seconds_for(sandbox->bytes);
	int status = close_one(sandbox);

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return keep_format("that took more than %u seconds",
				   (unsigned)seconds);
	if (WIFSIGNALED(status))
		return keep_format("what read it was ended by a signal (%s)",
				   strsignal(WTERMSIG(status)));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return "what read it said what cannot be";
	return keep_format("what read it has given up, with status %d",
			   WEXITSTATUS(status));
}

bool sandbox_send(struct sandbox *sandbox, const void *bytes, size_t size,
		  int pass)
{
	return send_all(sandbox->fd, bytes, size, pass);
}

void sandbox_allow(struct sandbox *sandbox, uint64_t bytes)
{
	struct rlimit limit = { .rlim_max = RLIM_INFINITY };

	sandbox->bytes += bytes;
	if (prlimit(sandbox->pid, RLIMIT_CPU, NULL, &limit) == 0) {
		limit.rlim_cur = seconds_for(sandbox->bytes);
		prlimit(sandbox->pid, RLIMIT_CPU, &limit, NULL);
	}
	if (limits_memory &&
	    prlimit(sandbox->pid, RLIMIT_AS, NULL, &limit) == 0) {
		limit.rlim_cur += memory_for(bytes) - memory_for(0);
		prlimit(sandbox->pid, RLIMIT_AS, &limit, NULL);
	}
}
