/*
 * Functions of libc that shim interposes and few programs call: checks their results
 * and effects.
 */
#define _GNU_SOURCE
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef void handler(int);

handler *bsd_signal(int, handler *);
handler *ssignal(int, handler *);
handler *sysv_signal(int, handler *);
handler *__sysv_signal(int, handler *);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *,
		const sigset_t *, size_t);
void *mmap64(void *, size_t, int, int, int, off64_t);

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	handled += signal;
}

static void try_signal(const char *name, handler *(*set)(int, handler *))
{
	struct sigaction now;
	handler *before;

	handled = 0;
	before = set(SIGUSR1, handle);
	sigaction(SIGUSR1, NULL, &now);
	printf("%s: before %d, ours %d, flags %x", name, before == SIG_DFL,
	       now.sa_handler == handle, now.sa_flags & ~0x04000000);
	raise(SIGUSR1);
	sigaction(SIGUSR1, NULL, &now);
	printf(", handled %d, still %d", handled == SIGUSR1,
	       now.sa_handler == handle);
	before = set(999, handle);
	printf(", of none %d %d\n", before == SIG_ERR, errno == EINVAL);
	signal(SIGUSR1, SIG_DFL);
}

static void try_waiting(void)
{
	struct timespec soon = { 0, 1000000 };
	siginfo_t info;
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR2);
	r = sigwaitinfo(&set, &info);
	printf("sigwaitinfo %d %d\n", r == SIGUSR2, info.si_pid == getpid());
	r = sigtimedwait(&set, &info, &soon);
	printf("sigtimedwait %d %d\n", r, errno == EAGAIN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* All of these unblock, while they wait, a signal that is blocked before and after. */
static void try_polling(void)
{
	struct timespec long_time = { 20, 0 };
	struct pollfd none = { .fd = -1 };
	struct epoll_event event;
	sigset_t usr1, all_in, now;
	int epoll = epoll_create1(0), r;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, &all_in);
	signal(SIGUSR1, handle);
	handled = 0;
	raise(SIGUSR1);
	r = __ppoll_chk(&none, 1, &long_time, &all_in, sizeof(none));
	printf("__ppoll_chk %d %d %d\n", r, errno == EINTR, handled == SIGUSR1);
	raise(SIGUSR1);
	errno = 0;
	r = epoll_pwait2(epoll, &event, 1, &long_time, &all_in);
	printf("epoll_pwait2 %d %d %d\n", r, errno == EINTR,
	       handled == 2 * SIGUSR1);
	sigprocmask(SIG_SETMASK, NULL, &now);
	printf("the mask is back %d\n", sigismember(&now, SIGUSR1));
	sigprocmask(SIG_SETMASK, &all_in, NULL);
	signal(SIGUSR1, SIG_DFL);
	close(epoll);
}

static void *tell_mask(void *unused)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	printf("a thread blocks USR1 %d, USR2 %d\n", sigismember(&now, SIGUSR1),
	       sigismember(&now, SIGUSR2));
	return unused;
}

static void try_mask_of_attribute(void)
{
	pthread_attr_t attribute;
	pthread_t thread;
	sigset_t set, got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_attr_init(&attribute);
	printf("pthread_attr_setsigmask_np %d",
	       pthread_attr_setsigmask_np(&attribute, &set));
	printf(", get %d", pthread_attr_getsigmask_np(&attribute, &got));
	printf(" %d %d\n", sigismember(&got, SIGUSR1), sigismember(&got, SIGUSR2));
	pthread_create(&thread, &attribute, tell_mask, NULL);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attribute);
}

static void try_mapping(void)
{
	char *memory = mmap64(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	printf("mmap64 %d", memory != MAP_FAILED);
	memory[5] = 7;
	memory = mremap(memory, 1 << 20, 1 << 21, MREMAP_MAYMOVE);
	printf(", mremap %d %d", memory != MAP_FAILED, memory[5]);
	printf(", munmap %d\n", munmap(memory, 1 << 21));
	memory = mmap64(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("of nothing %d %d\n", memory == MAP_FAILED, errno == EINVAL);
}

int main(void)
{
	try_signal("bsd_signal", bsd_signal);
	try_signal("ssignal", ssignal);
	try_signal("sysv_signal", sysv_signal);
	try_signal("__sysv_signal", __sysv_signal);
	try_waiting();
	try_polling();
	try_mask_of_attribute();
	try_mapping();
	return 6;
}
