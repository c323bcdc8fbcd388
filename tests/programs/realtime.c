/*
 * A program that uses each real-time signal itself, while it is sampled: with a
 * handler, sigwait, sigtimedwait and signalfd, queued with values, in two threads, in
 * a forked child; and what libc does with the signals that it keeps for itself.
 * realtime [HZ]: with HZ and shim it samples itself by the wall clock.  Prints what went wrong.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <shim/sampling.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_sample_hit
#pragma weak shim_profiler_enable_sampling
#pragma weak shim_profiler_set_sample_mode

#define LAST 64 /* whatever SIGRTMAX says */

#define EXPECT(condition, ...)                                                 \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("wrong: line %d: %s: ", __LINE__, #condition);  \
			printf(__VA_ARGS__);                                   \
			printf("\n");                                          \
		}                                                              \
	} while (0)

static unsigned long weight;
static bool is_sampled;

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t more)
{
	(void)profiler, (void)ip, (void)context;
	__atomic_add_fetch(&weight, more, __ATOMIC_RELAXED);
}

static void spin(double seconds)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((double)(now.tv_sec - begin.tv_sec) +
		       (double)(now.tv_nsec - begin.tv_nsec) / 1e9 <
	       seconds);
}

static void still_sampled(const char *after)
{
	unsigned long before = weight;

	spin(0.05);
	if (is_sampled)
		EXPECT(weight > before, "no samples after %s", after);
}

/* --- a handler --- */

static volatile sig_atomic_t count, sum;

static void handle(int signal, siginfo_t *info, void *context)
{
	(void)context;
	count += 1;
	sum += info->si_code == SI_QUEUE ? info->si_value.sival_int : signal;
}

static void handlers(void)
{
	struct sigaction action = { .sa_sigaction = handle,
				    .sa_flags = SA_SIGINFO }, old;

	for (int i = SIGRTMIN; i <= LAST; i++) {
		EXPECT(sigaction(i, NULL, &old) == 0 &&
			       old.sa_handler == SIG_DFL, "%d is taken", i);
		EXPECT(sigaction(i, &action, NULL) == 0, "%d", i);
		count = sum = 0;
		for (int n = 1; n <= 3; n++)
			EXPECT(sigqueue(getpid(), i,
					(union sigval){ .sival_int = n }) == 0,
			       "%d", i);
		EXPECT(count == 3 && sum == 6, "%d: %d, %d", i, count, sum);
		raise(i);
		EXPECT(count == 4 && sum == 6 + i, "%d: %d", i, sum);
		EXPECT(sigaction(i, NULL, &old) == 0 &&
			       old.sa_sigaction == handle, "forgotten: %d", i);
		signal(i, SIG_IGN);
		raise(i);
		signal(i, SIG_DFL);
	}
	EXPECT(SIGRTMAX == LAST, "%d", SIGRTMAX);
}

/* --- waiting for them; all are blocked in all threads --- */

static sigset_t all;

static void *send_all(void *unused)
{
	(void)unused;
	for (int i = SIGRTMIN; i <= LAST; i++)
		for (int n = 1; n <= 3; n++)
			EXPECT(sigqueue(getpid(), i,
					(union sigval){ .sival_int = n }) == 0,
			       "%d", i);
	return NULL;
}

/* Real-time signals arrive in the order of their numbers, and as they were queued. */
static void expect_all(bool (*get)(siginfo_t *info))
{
	siginfo_t info;

	for (int i = SIGRTMIN; i <= LAST; i++)
		for (int n = 1; n <= 3; n++) {
			memset(&info, 0, sizeof(info));
			EXPECT(get(&info), "%d", i);
			EXPECT(info.si_signo == i &&
				       info.si_value.sival_int == n &&
				       info.si_pid == getpid(),
			       "%d: %d with %d", i, info.si_signo,
			       info.si_value.sival_int);
		}
}

static bool wait_a_time(siginfo_t *info)
{
	struct timespec time = { .tv_sec = 10 };
	int r;

	do
		r = sigtimedwait(&all, info, &time);
	while (r < 0 && errno == EINTR);
	return r > 0;
}

static bool wait_info(siginfo_t *info)
{
	return sigwaitinfo(&all, info) > 0;
}

static int fd;

static bool read_it(siginfo_t *info)
{
	struct signalfd_siginfo got;

	if (read(fd, &got, sizeof(got)) != sizeof(got))
		return false;
	info->si_signo = (int)got.ssi_signo;
	info->si_value.sival_int = got.ssi_int;
	info->si_pid = (pid_t)got.ssi_pid;
	return true;
}

static void *keep_busy(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

static void waits(void)
{
	struct timespec short_time = { .tv_nsec = 20000000 };
	pthread_t other, busy;
	sigset_t pending;
	int stop = 0, got;

	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	EXPECT(sigprocmask(SIG_SETMASK, &all, NULL) == 0, "mask");
	/* Another thread that could get them. */
	pthread_create(&busy, NULL, keep_busy, &stop);
	pthread_create(&other, NULL, send_all, NULL);
	expect_all(wait_a_time);
	pthread_join(other, NULL);
	send_all(NULL);
	expect_all(wait_info);
	send_all(NULL);
	fd = signalfd(-1, &all, 0);
	expect_all(read_it);
	close(fd);
	EXPECT(sigtimedwait(&all, NULL, &short_time) < 0 && errno == EAGAIN,
	       "one too many");
	EXPECT(sigpending(&pending) == 0, "pending");
	for (int i = SIGRTMIN; i <= LAST; i++)
		EXPECT(!sigismember(&pending, i), "%d is pending", i);
	pthread_kill(pthread_self(), LAST);
	EXPECT(sigpending(&pending) == 0 && sigismember(&pending, LAST),
	       "not pending");
	EXPECT(sigwait(&all, &got) == 0 && got == LAST, "%d", got);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(busy, NULL);
	still_sampled("waits");
	sigemptyset(&all);
	EXPECT(sigprocmask(SIG_SETMASK, &all, NULL) == 0, "mask");
}

/* --- libc's own --- */

static int ends[2];

static void *sleep_long(void *kind)
{
	char byte;

	if (kind)
		EXPECT(read(ends[0], &byte, 1) == 1, "%s", strerror(errno));
	else
		poll(NULL, 0, -1);
	return NULL;
}

static void *run_long(void *unused)
{
	(void)unused;
	for (;;)
		pthread_testcancel();
	return NULL;
}

/* libc waits until each thread has changed its ids. */
static void ids(void)
{
	pthread_t threads[3];
	void *result;

	EXPECT(pipe(ends) == 0, "pipe");
	pthread_create(&threads[0], NULL, sleep_long, NULL);
	pthread_create(&threads[1], NULL, sleep_long, ends);
	pthread_create(&threads[2], NULL, run_long, NULL);
	spin(0.05);
	for (int i = 0; i < 20; i++) {
		EXPECT(seteuid(geteuid()) == 0, "%s", strerror(errno));
		EXPECT(setegid(getegid()) == 0, "%s", strerror(errno));
		usleep(3000);
	}
	EXPECT(write(ends[1], "", 1) == 1, "write");
	EXPECT(pthread_join(threads[1], NULL) == 0, "join");
	for (int i = 0; i < 3; i += 2) {
		pthread_cancel(threads[i]);
		pthread_join(threads[i], &result);
		/* poll ends with EINTR for libc's signal, as without shim */
		EXPECT(result == PTHREAD_CANCELED || i == 0, "%d", i);
	}
	for (int i = 0; i < 20; i++) {
		pthread_create(&threads[0], NULL, sleep_long, ends);
		EXPECT(seteuid(geteuid()) == 0, "%s", strerror(errno));
		pthread_cancel(threads[0]);
		pthread_join(threads[0], &result);
		EXPECT(result == PTHREAD_CANCELED, "not cancelled");
	}
	still_sampled("changes of ids");
}

static void read_aside(const char *file)
{
	char byte;
	struct aiocb block = { .aio_buf = &byte, .aio_nbytes = 1,
			       .aio_fildes = open(file, O_RDONLY) };
	const struct aiocb *list[] = { &block };

	EXPECT(aio_read(&block) == 0, "%s", strerror(errno));
	while (aio_error(&block) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	EXPECT(aio_return(&block) == 1, "read");
	close(block.aio_fildes);
	still_sampled("asynchronous input");
}

static void in_child(void)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		alarm(30);
		handlers();
		waits();
		ids();
		fflush(stdout);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0, "%x",
	       status);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	uint32_t hz = argc > 1 ? (uint32_t)atoi(argv[1]) : 0;
	struct shim_profiler_handle *handle_;

	if (!shim_profiler_create || hz == 0)
		return;
	is_sampled = true;
	handle_ = shim_profiler_create(NULL);
	shim_profiler_on_sample_hit(handle_, hit);
	EXPECT(shim_profiler_enable_sampling(handle_) == SHIM_OK, "enable");
	EXPECT(shim_profiler_set_sample_mode(handle_, SHIM_SAMPLE_REAL, hz) ==
		       SHIM_OK, "set");
}

int main(int argc, char **argv)
{
	(void)argc;
	alarm(30);
	still_sampled("the start");
	read_aside(argv[0]);
	handlers();
	in_child();
	waits();
	ids();
	in_child();
	printf("done\n");
	return 0;
}
