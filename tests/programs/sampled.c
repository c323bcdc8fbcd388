/*
 * A program that samples itself: sampled CASE MODE HZ.  Each case prints its errors,
 * and then "hits HITS weight WEIGHT" and more figures for tests/whole/sampling.py.
 * Without shim there are no samples.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <shim/sampling.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_destroy
#pragma weak shim_profiler_on_sample_hit
#pragma weak shim_profiler_enable_sampling
#pragma weak shim_profiler_set_sample_mode
#pragma weak shim_profiler_get_sample_mode
#pragma weak shim_get_sample_counts

#define THREADS 4

static const char *wanted = "";
static uint32_t mode, frequency_hz = 100;
static struct shim_profiler_handle *first, *second, *third, *watcher;

/* --- hits --- */

static unsigned long hits, weight, second_weight, wrong_ip;
static __thread unsigned long own_weight;

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t more)
{
	const ucontext_t *user = context;

	(void)profiler;
	__atomic_add_fetch(&hits, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&weight, more, __ATOMIC_RELAXED);
	own_weight += more;
#ifdef __x86_64__
	if (ip != (uintptr_t)user->uc_mcontext.gregs[REG_RIP])
		wrong_ip++;
#endif
	(void)user;
	errno = EXDEV;	/* the program must not see this value */
}

static void second_hit(struct shim_profiler *profiler, uintptr_t ip,
		       const void *context, uint32_t more)
{
	(void)profiler;
	(void)ip;
	(void)context;
	__atomic_add_fetch(&second_weight, more, __ATOMIC_RELAXED);
}

#define EXPECT(condition, ...)                                                 \
	do {                                                                   \
		if (!(condition)) {                                            \
			printf("wrong: line %d: %s: ", __LINE__, #condition);  \
			printf(__VA_ARGS__);                                   \
			printf("\n");                                          \
		}                                                              \
	} while (0)

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double processor_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static volatile unsigned long sink;

static void spin(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		for (unsigned i = 0; i < 10000; i++)
			sink += i;
}

static void spin_processor(double seconds)
{
	struct timespec time;
	double end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	end = (double)time.tv_sec + (double)time.tv_nsec / 1e9 + seconds;
	do {
		for (unsigned i = 0; i < 100000; i++)
			sink += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	} while ((double)time.tv_sec + (double)time.tv_nsec / 1e9 < end);
}

static void in_threads(unsigned count, void *(*call)(void *))
{
	pthread_t threads[64];

	for (unsigned i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, call, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

/* --- ownership of the sampler --- */

static uint32_t got_mode, got_frequency;

static int get(struct shim_profiler_handle *handle)
{
	got_mode = got_frequency = 77;
	return shim_profiler_get_sample_mode(handle, &got_mode, &got_frequency);
}

static bool got(uint32_t mode_, uint32_t frequency)
{
	return got_mode == mode_ && got_frequency == frequency;
}

static void change_in_handler(int signal_)
{
	(void)signal_;
	EXPECT(shim_profiler_set_sample_mode(first, SHIM_SAMPLE_PROCESS, 333) ==
		       SHIM_OK, "in a handler");
}

static void before_main_owner(void)
{
	EXPECT(get(first) == SHIM_S_FALSE && got(0, 0), "%u %u", got_mode,
	       got_frequency);
	EXPECT(shim_profiler_set_sample_mode(first, 1, 100) == SHIM_E_FAIL,
	       "never enabled");
	EXPECT(shim_profiler_set_sample_mode(NULL, 1, 100) ==
		       SHIM_E_INVALIDARG, "NULL is nobody");
	EXPECT(shim_profiler_enable_sampling(NULL) == SHIM_E_INVALIDARG, "NULL");
	EXPECT(shim_profiler_enable_sampling(first) == SHIM_OK, "first");
	EXPECT(get(first) == SHIM_OK && got(0, 100), "%u %u", got_mode,
	       got_frequency);
	spin_processor(0.05);
	EXPECT(hits == 0, "%lu hits with no mode", hits);
	EXPECT(shim_profiler_enable_sampling(second) == SHIM_OK, "second");
	EXPECT(shim_profiler_enable_sampling(third) == SHIM_OK, "third");
	EXPECT(get(second) == SHIM_S_FALSE && got(0, 100), "%u %u", got_mode,
	       got_frequency);
}

/* A failed request changes nothing. */
static void without_timers(void)
{
	struct rlimit before, none;

	getrlimit(RLIMIT_SIGPENDING, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_SIGPENDING, &none);
	EXPECT(shim_profiler_set_sample_mode(first, 2, 50) == SHIM_E_FAIL,
	       "no timers");
	EXPECT(get(first) == SHIM_OK && got(0, 10), "%u %u", got_mode,
	       got_frequency);
	setrlimit(RLIMIT_SIGPENDING, &before);
}

static void owner(void)
{
	unsigned long before;

	EXPECT(shim_profiler_enable_sampling(first) ==
		       SHIM_E_CALL_ONLY_FROM_INIT, "too late");
	EXPECT(shim_profiler_set_sample_mode(first, 1, 250) == SHIM_OK, "250");
	EXPECT(shim_profiler_set_sample_mode(second, 2, 99) == SHIM_E_FAIL,
	       "no owner");
	EXPECT(get(second) == SHIM_S_FALSE && got(1, 250), "%u %u", got_mode,
	       got_frequency);
	EXPECT(shim_profiler_get_sample_mode(first, NULL, NULL) == SHIM_OK,
	       "nothing asked");
	EXPECT(shim_profiler_set_sample_mode(first, 1, 0) == SHIM_E_INVALIDARG,
	       "0 Hz");
	EXPECT(shim_profiler_set_sample_mode(first, 4, 10) == SHIM_E_INVALIDARG,
	       "mode 4");
	EXPECT(get(first) == SHIM_OK && got(1, 250), "%u %u", got_mode,
	       got_frequency);
	signal(SIGUSR1, change_in_handler);
	raise(SIGUSR1);
	EXPECT(get(first) == SHIM_OK && got(1, 333), "%u %u", got_mode,
	       got_frequency);
	spin_processor(0.3);
	EXPECT(weight > 60 && weight < 140, "%lu at 333 Hz", weight);
	EXPECT(weight == second_weight, "%lu %lu", weight, second_weight);
	EXPECT(shim_profiler_set_sample_mode(first, 0, 10) == SHIM_OK, "pause");
	before = weight;
	spin_processor(0.05);
	EXPECT(weight == before, "%lu more", weight - before);
	without_timers();
	EXPECT(shim_profiler_set_sample_mode(first, 2, 1000000000) == SHIM_OK,
	       "10^9");
	spin(0.1);
	EXPECT(get(first) == SHIM_OK && got(2, SHIM_SAMPLE_FREQUENCY_MAX),
	       "%u %u", got_mode, got_frequency);
	EXPECT(shim_profiler_set_sample_mode(first, 1, 1) == SHIM_OK, "1 Hz");
	/* The sampler goes to the profiler that asked next, not to the one that came
	 * last. */
	EXPECT(shim_profiler_destroy(first) == SHIM_OK, "destroy");
	EXPECT(get(third) == SHIM_S_FALSE && got(1, 1), "%u %u", got_mode,
	       got_frequency);
	EXPECT(get(second) == SHIM_OK, "not handed on");
	EXPECT(shim_profiler_set_sample_mode(second, 1, 500) == SHIM_OK, "500");
	EXPECT(shim_profiler_destroy(second) == SHIM_OK, "destroy");
	EXPECT(shim_profiler_destroy(third) == SHIM_OK, "destroy");
	EXPECT(get(watcher) == SHIM_S_FALSE && got(0, 100), "%u %u", got_mode,
	       got_frequency);
	weight = 0;
	spin_processor(0.05);
	EXPECT(weight == 0, "%lu with no owner", weight);
	EXPECT(wrong_ip == 0, "%lu", wrong_ip);
}

/* --- spinning and sleeping --- */

static void *spinner(void *number)
{
	spin_processor(0.5);
	printf("thread %lu weight %lu\n", (unsigned long)(uintptr_t)number,
	       own_weight);
	return NULL;
}

static double pause_seconds = 5;

static void sleep_for(double seconds)
{
	struct timespec time = { (time_t)seconds,
				 (long)((seconds - (double)(time_t)seconds) *
					1e9) };

	EXPECT(nanosleep(&time, NULL) == 0, "%s", strerror(errno));
}

static void *sleeper(void *number)
{
	double begin = now(), time;

	/* One long sleep, many short ones, and two in between. */
	if ((uintptr_t)number == 0)
		sleep_for(pause_seconds);
	else
		for (unsigned i = 0; i < 10000 && now() - begin < pause_seconds;
		     i++)
			sleep_for((uintptr_t)number == 1 ?
					  0.003 :
					  0.04 * (double)(uintptr_t)number);
	time = now() - begin;
	printf("thread %lu weight %lu time %.3f\n",
	       (unsigned long)(uintptr_t)number, own_weight, time);
	return NULL;
}

/* --- calls that fail with EINTR for any handler --- */

static int sockets[2], epoll;
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static struct timespec in(double seconds, int clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += (long)(seconds * 1e9);
	while (time.tv_nsec >= 1000000000) {
		time.tv_nsec -= 1000000000;
		time.tv_sec++;
	}
	return time;
}

#define WAIT 0.06

static struct {
	const char *name;
	int error;	/* error of a wait that is never ended; 0: the call returns 0 */
} waits[] = {
	{ "nanosleep", 0 },
	{ "clock_nanosleep", 0 },
	{ "clock_nanosleep absolute", 0 },
	{ "usleep", 0 },
	{ "poll", 0 },
	{ "ppoll", 0 },
	{ "select", 0 },
	{ "pselect", 0 },
	{ "epoll_wait", 0 },
	{ "epoll_pwait", 0 },
	{ "recv", EAGAIN },
	{ "sigtimedwait", EAGAIN },
	{ "sem_timedwait", ETIMEDOUT },
	{ "pthread_cond_timedwait", ETIMEDOUT },
	{ "futex", ETIMEDOUT },
	{ "nanosleep by syscall", 0 },
};

#define WAITS (sizeof(waits) / sizeof(*waits))

static int wait_once(unsigned which)
{
	struct timespec time = { 0, (long)(WAIT * 1e9) };
	struct timeval time_us = { 0, (long)(WAIT * 1e6) };
	struct epoll_event event;
	struct pollfd fd = { .fd = sockets[0], .events = POLLIN };
	sigset_t set;
	fd_set fds;
	char byte;
	int r = 0, word = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	FD_ZERO(&fds);
	FD_SET(sockets[0], &fds);
	errno = 0;
	switch (which) {
	case 0: return nanosleep(&time, NULL);
	case 1:
		errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
		return errno ? -1 : 0;
	case 2:
		time = in(WAIT, CLOCK_MONOTONIC);
		errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time,
					NULL);
		return errno ? -1 : 0;
	case 3: return usleep((unsigned)(WAIT * 1e6));
	case 4: return poll(&fd, 1, (int)(WAIT * 1e3));
	case 5: return ppoll(&fd, 1, &time, &set);
	case 6: return select(sockets[0] + 1, &fds, NULL, NULL, &time_us);
	case 7: return pselect(sockets[0] + 1, &fds, NULL, NULL, &time, &set);
	case 8: return epoll_wait(epoll, &event, 1, (int)(WAIT * 1e3));
	case 9: return epoll_pwait(epoll, &event, 1, (int)(WAIT * 1e3), &set);
	case 10: return (int)recv(sockets[0], &byte, 1, 0);
	case 11: return sigtimedwait(&set, NULL, &time);
	case 12:
		time = in(WAIT, CLOCK_REALTIME);
		return sem_timedwait(&semaphore, &time);
	case 13:
		time = in(WAIT, CLOCK_REALTIME);
		pthread_mutex_lock(&mutex);
		r = pthread_cond_timedwait(&condition, &mutex, &time);
		pthread_mutex_unlock(&mutex);
		errno = r;
		return r ? -1 : 0;
	case 14:
		return (int)syscall(SYS_futex, &word, 0, 0, &time, 0, 0);
	case 15: return (int)syscall(SYS_nanosleep, &time, NULL);
	}
	return r;
}

static void *waiter(void *number)
{
	unsigned which = (unsigned)(uintptr_t)number;
	/* A call that restarted with each signal would never end. */
	double longest = 5 * WAIT;

	for (unsigned i = 0; i < 15; i++) {
		double begin = now(), time;
		int r = wait_once(which);

		time = now() - begin;
		EXPECT(waits[which].error ? r == -1 : r == 0, "%s: %d, %s",
		       waits[which].name, r, strerror(errno));
		EXPECT(waits[which].error == 0 || errno == waits[which].error,
		       "%s: %s", waits[which].name, strerror(errno));
		EXPECT(time > WAIT - 0.002, "%s: %.4f s", waits[which].name,
		       time);
		if (time > longest)
			printf("late %s %.4f\n", waits[which].name, time);
	}
	return NULL;
}

static void waiting(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct timeval time = { 0, (long)(WAIT * 1e6) };

	sem_init(&semaphore, 0, 0);
	epoll = epoll_create1(0);
	socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[0], &event);
	in_threads(WAITS, waiter);
}

/* --- calls that could do a part of their work --- */

#define PART  (1u << 20)
#define PARTS 20

static int part_pipe[2];
static char part[PART];

/* Reads slowly, so that the writer has to sleep. */
static void *take_parts(void *unused)
{
	char taken[4096];
	ssize_t got;

	while ((got = read(part_pipe[0], taken, sizeof(taken))) > 0)
		if (write(sockets[0], taken, (size_t)got) != got)
			printf("wrong: a socket took a part\n");
	close(sockets[0]);
	return unused;
}

static void *get_parts(void *unused)
{
	static char got[PART];

	for (unsigned i = 0; i < PARTS; i++) {
		ssize_t size = recv(sockets[1], got, PART, MSG_WAITALL);

		EXPECT(size == PART, "received %zd", size);
		EXPECT(memcmp(got, part, PART) == 0, "something else");
		if (size != PART)
			break;
	}
	return unused;
}

static void parts(void)
{
	pthread_t taker, getter;

	for (unsigned i = 0; i < PART; i++)
		part[i] = (char)(i * 2654435761u >> 24);
	if (pipe(part_pipe) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		return;
	pthread_create(&taker, NULL, take_parts, NULL);
	pthread_create(&getter, NULL, get_parts, NULL);
	for (unsigned i = 0; i < PARTS; i++) {
		ssize_t size = write(part_pipe[1], part, PART);

		EXPECT(size == PART, "wrote %zd", size);
		if (size != PART)
			break;
	}
	close(part_pipe[1]);
	pthread_join(taker, NULL);
	pthread_join(getter, NULL);
}

/* The same with calls that take many pieces, or many messages. */

#define PIECES 5

static int from_sender[2], to_getter[2];

static void *pump(void *unused)
{
	char taken[4096];
	ssize_t got;

	while ((got = read(from_sender[0], taken, sizeof(taken))) > 0)
		if (write(to_getter[1], taken, (size_t)got) != got)
			printf("wrong: a socket took a part\n");
	shutdown(to_getter[1], SHUT_WR);
	return unused;
}

static void cut(char *memory, struct iovec *pieces)
{
	static const size_t ends[] = { 1, 100, 4097, PART / 2 + 3, PART };
	size_t begin = 0;

	for (unsigned i = 0; i < PIECES; i++) {
		pieces[i].iov_base = memory + begin;
		pieces[i].iov_len = ends[i] - begin;
		begin = ends[i];
	}
}

static void *get_messages(void *unused)
{
	static char got[PART];
	struct iovec pieces[PIECES];
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = PIECES };

	cut(got, pieces);
	for (unsigned i = 0; i < PARTS; i++) {
		ssize_t size = recvmsg(to_getter[0], &message, MSG_WAITALL);

		EXPECT(size == PART, "received %zd", size);
		EXPECT(memcmp(got, part, PART) == 0, "something else");
		if (size != PART)
			exit(1);
	}
	return unused;
}

static ssize_t send_messages(struct iovec *pieces)
{
	struct mmsghdr messages[PIECES] = { 0 };
	ssize_t total = 0;
	int count;

	for (unsigned i = 0; i < PIECES; i++) {
		messages[i].msg_hdr.msg_iov = &pieces[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	count = sendmmsg(from_sender[1], messages, PIECES, 0);
	for (int i = 0; i < count; i++)
		total += messages[i].msg_len;
	return total;
}

static ssize_t send_part(unsigned how, int file)
{
	struct iovec pieces[PIECES];
	struct msghdr message = { .msg_iov = pieces, .msg_iovlen = PIECES };
	off_t offset = 0;

	cut(part, pieces);
	switch (how) {
	case 0: return sendmsg(from_sender[1], &message, 0);
	case 1: return sendfile(from_sender[1], file, &offset, PART);
	case 2: return send_messages(pieces);
	}
	return writev(from_sender[1], pieces, PIECES);
}

static int make_file(void)
{
	int file = memfd_create("part", 0);

	if (file >= 0 && write(file, part, PART) != PART)
		printf("wrong: no file\n");
	return file;
}

static void send_parts(bool by_pipe)
{
	pthread_t pumper, getter;
	int file = make_file();

	if ((by_pipe ? pipe(from_sender) :
		       socketpair(AF_UNIX, SOCK_STREAM, 0, from_sender)) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, to_getter) < 0)
		return;
	pthread_create(&pumper, NULL, pump, NULL);
	pthread_create(&getter, NULL, get_messages, NULL);
	for (unsigned i = 0; i < PARTS; i++) {
		unsigned how = by_pipe ? 3 : i % 4;
		ssize_t size = send_part(how, file);

		EXPECT(size == PART, "sent %zd by %u", size, how);
		if (size != PART)
			exit(1);
	}
	close(from_sender[1]);
	pthread_join(pumper, NULL);
	pthread_join(getter, NULL);
	close(file);
}

static void random_parts(void)
{
	static char got[32u << 20];

	for (unsigned i = 0; i < 2; i++) {
		ssize_t size = getrandom(got, sizeof(got), 0);

		EXPECT(size == (ssize_t)sizeof(got), "got %zd", size);
	}
}

/* A call that waits for room with a time limit: the kernel does not restart it. */
static void *accept_late(void *listener)
{
	usleep(300000);
	for (unsigned i = 0; i < 3; i++)
		accept(*(int *)listener, NULL, NULL);
	return NULL;
}

static void connect_late(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct timeval time = { 5, 0 };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pthread_t accepter;

	snprintf(name.sun_path + 1, 50, "shim sampled %d", (int)getpid());
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) < 0 ||
	    listen(listener, 0) < 0)
		return;
	pthread_create(&accepter, NULL, accept_late, &listener);
	for (unsigned i = 0; i < 3; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
		EXPECT(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0,
		       "connect %d", errno);
	}
	pthread_join(accepter, NULL);
}

static void pieces(void)
{
	for (unsigned i = 0; i < PART; i++)
		part[i] = (char)(i * 2654435761u >> 24);
	send_parts(false);
	send_parts(true);
	random_parts();
	connect_late();
}

/* --- two threads set a handler at once --- */

#define SETS 4000
/* On a busy processor there are fewer, because each waits for the others. */
#define SETS_SECONDS 10

static void first_handler(int signal_)
{
	(void)signal_;
}

static void second_handler(int signal_)
{
	(void)signal_;
}

static volatile unsigned set_turn, sets_done;

/* On one processor, the other thread needs it. */
static void wait_for(const volatile unsigned *counter, unsigned value)
{
	for (unsigned tries = 1;
	     __atomic_load_n(counter, __ATOMIC_ACQUIRE) < value; tries++)
		if (tries % 10000 == 0)
			sched_yield();
}

static void set_as(void (*call)(int), bool by_sigaction, void (**before)(int))
{
	struct sigaction action = { .sa_handler = call }, old;

	if (by_sigaction) {
		sigaction(SIGUSR2, &action, &old);
		*before = old.sa_handler;
	} else {
		*before = signal(SIGUSR2, call);
	}
}

static void *set_second(void *unused)
{
	void (*before)(int);

	for (unsigned i = 1; i <= SETS; i++) {
		wait_for(&set_turn, i);
		if (set_turn > SETS)
			break;
		set_as(second_handler, i % 2, &before);
		if (before == first_handler)
			__atomic_store_n(&sets_done, 2 * i + 1,
					 __ATOMIC_RELEASE);
		else
			__atomic_store_n(&sets_done, 2 * i, __ATOMIC_RELEASE);
	}
	return unused;
}

/* The thread that saw the other's handler was the later one. */
static void set_both(void)
{
	struct sigaction now_set;
	pthread_t thread;
	void (*before)(int);
	double begin = now();

	pthread_create(&thread, NULL, set_second, NULL);
	for (unsigned i = 1; i <= SETS && now() - begin < SETS_SECONDS; i++) {
		signal(SIGUSR2, SIG_IGN);
		__atomic_store_n(&set_turn, i, __ATOMIC_RELEASE);
		set_as(first_handler, i % 3, &before);
		wait_for(&sets_done, 2 * i);
		sigaction(SIGUSR2, NULL, &now_set);
		if (now_set.sa_handler !=
		    (sets_done % 2 ? second_handler : first_handler)) {
			printf("wrong: the earlier of two handlers stays\n");
			exit(1);
		}
	}
	__atomic_store_n(&set_turn, SETS + 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

/* --- the program's own signals --- */

static volatile int handled;

static void own_handler(int signal_)
{
	(void)signal_;
	handled++;
}

static pthread_t poked;
static volatile bool poked_enough;
static volatile int go_after = INT_MAX; /* after more signals, @go gets a byte */
static int go[2];

static void *poke(void *unused)
{
	while (!poked_enough) {
		usleep(3000);
		pthread_kill(poked, SIGUSR1);
		if (handled > go_after && write(go[1], "x", 1) == 1)
			go_after = INT_MAX;
	}
	return unused;
}

static void set_handler(int flags)
{
	struct sigaction action = { .sa_handler = own_handler,
				    .sa_flags = flags };

	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
}

static void interrupted(void)
{
	pthread_t poker;
	struct timespec time = { 1, 0 };
	int pipe_[2], before;
	sigset_t none;
	char byte;

	set_handler(0);
	poked = pthread_self();
	if (pipe(pipe_) < 0 || pipe(go) < 0)
		return;
	pthread_create(&poker, NULL, poke, NULL);
	sigemptyset(&none);
	epoll = epoll_create1(0);
	for (unsigned i = 0; i < 60; i++) {
		struct epoll_event event;

		before = handled;
		EXPECT(pause() == -1 && errno == EINTR && handled > before,
		       "pause");
		EXPECT(sigsuspend(&none) == -1 && errno == EINTR, "sigsuspend");
		EXPECT(nanosleep(&time, NULL) == -1 && errno == EINTR,
		       "nanosleep");
		EXPECT(poll(NULL, 0, 1000) == -1 && errno == EINTR, "poll");
		EXPECT(select(0, NULL, NULL, NULL, NULL) == -1 &&
			       errno == EINTR, "select");
		EXPECT(epoll_wait(epoll, &event, 1, -1) == -1 && errno == EINTR,
		       "epoll_wait");
		EXPECT(read(pipe_[0], &byte, 1) == -1 && errno == EINTR,
		       "read");
	}
	set_handler(SA_RESTART);
	before = handled;
	go_after = before + 2;
	{
		pid_t child = fork();

		if (child == 0) {
			while (read(go[0], &byte, 1) != 1)
				;
			if (write(pipe_[1], "x", 1) != 1)
				_exit(1);
			_exit(0);
		}
		EXPECT(read(pipe_[0], &byte, 1) == 1, "read was not begun again: %s",
		       strerror(errno));
		EXPECT(handled > before + 2, "%d", handled - before);
		while (waitpid(child, NULL, 0) == -1)
			EXPECT(errno == EINTR, "wait");
	}
	poked_enough = true;
	pthread_join(poker, NULL);
	printf("handled\n");
}

/* A sleeping call fails whenever the program's signal arrives: also if the sampler's
 * signal arrived just before. */
static volatile unsigned reads;
static unsigned missed;
static int poke_pipe[2];
static char its_calls[64];

static bool is_in_read(void)
{
	char text[64] = { 0 }, *end;
	int fd = open(its_calls, O_RDONLY);
	bool got = read(fd, text, sizeof(text) - 1) > 0;

	close(fd);
	return got && strtol(text, &end, 10) == 0 && end != text &&
	       strtol(end, NULL, 16) == poke_pipe[0];
}

static void *poke_reader(void *unused)
{
	while (!poked_enough) {
		unsigned now = reads;
		struct timespec begin, end;

		if (!is_in_read() || now != reads)
			continue;
		pthread_kill(poked, SIGUSR1);
		clock_gettime(CLOCK_MONOTONIC, &begin);
		while (now == reads) {
			sched_yield();
			clock_gettime(CLOCK_MONOTONIC, &end);
			if (end.tv_sec - begin.tv_sec < 5)
				continue;
			if (write(poke_pipe[1], "x", 1) == 1)
				while (now == reads)
					sched_yield();
		}
	}
	return unused;
}

static void poked_asleep(void)
{
	struct timespec begin, end;
	pthread_t poker;
	char byte;

	set_handler(0);
	poked = pthread_self();
	if (pipe(poke_pipe) < 0)
		return;
	snprintf(its_calls, sizeof(its_calls), "/proc/self/task/%d/syscall",
		 (int)syscall(SYS_gettid));
	pthread_create(&poker, NULL, poke_reader, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		if (read(poke_pipe[0], &byte, 1) != -1 || errno != EINTR)
			missed++;
		reads++;
		clock_gettime(CLOCK_MONOTONIC, &end);
	} while (end.tv_sec - begin.tv_sec < 4 && missed == 0);
	poked_enough = true;
	while (pthread_tryjoin_np(poker, NULL) != 0) {
		reads++;
		usleep(1000);
	}
	EXPECT(missed == 0, "read slept on after a signal, 1 of %u", reads);
	printf("reads %u\n", reads);
}

static void alarmed(int signal_)
{
	EXPECT(signal_ == SIGPROF, "%d", signal_);
	handled++;
}

static volatile int sent;

static void rt_handler(int signal_, siginfo_t *info, void *context)
{
	(void)context;
	sent = signal_ == 64 ? info->si_value.sival_int : -1;
}

static void hidden(void)
{
	struct itimerval timer = { { 0, 5000 }, { 0, 5000 } };
	struct sigaction action = { .sa_sigaction = rt_handler,
				    .sa_flags = SA_SIGINFO }, old;
	struct timespec short_time = { 0, 20000000 };
	union sigval value = { .sival_int = 4711 };
	sigset_t all, got_;
	int fd, mark = 0;
	char buffer[1024];

	signal(SIGPROF, alarmed);
	setitimer(ITIMER_PROF, &timer, NULL);
	/* Blocks everything that can be blocked. */
	sigfillset(&all);
	sigdelset(&all, SIGPROF);
	EXPECT(sigprocmask(SIG_SETMASK, &all, NULL) == 0, "mask");
	EXPECT(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0, "mask");
	weight = 0;
	spin_processor(0.3);
	printf("blocked weight %lu\n", weight);
	EXPECT(handled >= 15, "SIGPROF %d", handled);
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_PROF, &timer, NULL);
	sigpending(&got_);
	for (int i = 34; i <= 64; i++)
		EXPECT(sigismember(&got_, i) == 0, "%d is pending", i);
	EXPECT(sigtimedwait(&all, NULL, &short_time) == -1 && errno == EAGAIN,
	       "waited for one");
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	spin_processor(0.05);
	EXPECT(read(fd, buffer, sizeof(buffer)) == -1 && errno == EAGAIN,
	       "read one");
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, &got_);
	/* The C library and the kernel agree on these numbers. */
	for (int i = 34; i <= 64; i++) {
		memset(&old, 0x55, sizeof(old));
		EXPECT(sigaction(i, NULL, &old) == 0 &&
			       old.sa_handler == SIG_DFL, "%d is taken", i);
	}
	/* Programs that handle all signals still get those that are sent to them. */
	for (int i = SIGRTMIN; i <= 64; i++)
		EXPECT(sigaction(i, &action, NULL) == 0, "%d", i);
	EXPECT(sigaction(64, NULL, &old) == 0 &&
		       old.sa_sigaction == rt_handler, "forgotten");
	sigqueue(getpid(), 64, value);
	while (!sent && mark++ < 1000)
		usleep(100);
	EXPECT(sent == 4711, "%d", sent);
	EXPECT(signal(64, SIG_IGN) == (void (*)(int))(void *)rt_handler, "?");
	raise(64);
	weight = 0;
	spin_processor(0.2);
	printf("after weight %lu\n", weight);
	printf("rtmax %d\n", SIGRTMAX);
}

/* --- processes --- */

static int child_status(pid_t child)
{
	int status = -1;

	EXPECT(waitpid(child, &status, 0) == child, "%s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

extern char **environ;

static void processes(void)
{
	char *arguments[] = { "/bin/true", NULL };
	pid_t child;

	for (unsigned i = 0; i < 5; i++) {
		fflush(stdout);
		child = fork();
		if (child == 0) {
			weight = 0;
			/* Where others use the processor, ticks may miss 0.2 s. */
			spin_processor(0.4);
			_exit(mode == SHIM_SAMPLE_REAL ||
				      (weight > frequency_hz / 10 &&
				       weight < frequency_hz * 6 / 10) ?
				      0 : 1);
		}
		EXPECT(child_status(child) == 0, "a child's samples");
	}
	for (unsigned i = 0; i < 20; i++) {
		child = vfork();
		if (child == 0) {
			execv(arguments[0], arguments);
			_exit(9);
		}
		EXPECT(child_status(child) == 0, "vfork");
		EXPECT(posix_spawn(&child, arguments[0], NULL, NULL, arguments,
				   environ) == 0, "spawn");
		EXPECT(child_status(child) == 0, "spawn");
		EXPECT(system("exit 3") == 3 << 8, "system");
	}
	/* Signals that arrive during the exec are not for the new program. */
	for (unsigned i = 0; i < 60; i++) {
		child = fork();
		if (child == 0) {
			execv("/none", arguments);
			execv(arguments[0], arguments);
			_exit(9);
		}
		EXPECT(child_status(child) == 0, "fork, exec");
	}
	spin_processor(0.2);
}

static void *nothing(void *unused)
{
	return unused;
}

static void churn(void)
{
	for (unsigned i = 0; i < 300; i++)
		in_threads(4, nothing);
	spin_processor(0.2);
}

/* --- stacks that a signal would overflow --- */

static ucontext_t main_context, small_context;
static char small_stack[3][4096] __attribute__((aligned(64)));

static void compute_small(void)
{
	for (;;) {
		double begin = processor_time();

		while (processor_time() - begin < 0.003)
			for (unsigned i = 0; i < 30000; i++)
				sink += i;
		swapcontext(&small_context, &main_context);
	}
}

static void small_stacks(void)
{
	stack_t stack, none = { .ss_flags = SS_DISABLE };
	char other[SIGSTKSZ];

	/* The middle part is used; the others must not change. */
	memset(small_stack, 0x5a, sizeof(small_stack));
	getcontext(&small_context);
	small_context.uc_stack.ss_sp = small_stack[1];
	small_context.uc_stack.ss_size = sizeof(small_stack[1]);
	makecontext(&small_context, compute_small, 0);
	for (unsigned i = 0; i < 100; i++)
		swapcontext(&main_context, &small_context);
	for (unsigned i = 0; i < sizeof(small_stack[0]); i++)
		if (small_stack[0][i] != 0x5a || small_stack[2][i] != 0x5a) {
			printf("wrong: stack overflow\n");
			break;
		}
	EXPECT(sigaltstack(NULL, &stack) == 0 &&
		       (stack.ss_flags & SS_DISABLE) && !stack.ss_sp,
	       "a signal stack is seen");
	EXPECT(sigaltstack(&none, &stack) == 0 &&
		       (stack.ss_flags & SS_DISABLE), "cannot have none");
	stack = (stack_t){ .ss_sp = other, .ss_size = sizeof(other) };
	EXPECT(sigaltstack(&stack, NULL) == 0, "%s", strerror(errno));
	EXPECT(sigaltstack(NULL, &stack) == 0 && stack.ss_sp == other, "its own");
	sigaltstack(&none, NULL);
}

/* --- start --- */

static void report(void)
{
	struct shim_sample_counts counts = { 0 };

	if (!shim_get_sample_counts)
		return;
	shim_get_sample_counts(&counts);
	printf("hits %lu weight %lu processor %.3f\n", hits, weight,
	       processor_time());
	printf("sent %llu received %llu accepted %llu lost %llu resumed %llu "
	       "failed %llu\n",
	       (unsigned long long)counts.sent,
	       (unsigned long long)counts.received,
	       (unsigned long long)counts.accepted,
	       (unsigned long long)counts.lost,
	       (unsigned long long)counts.resumed,
	       (unsigned long long)counts.timers_failed);
}

__attribute__((constructor)) static void set_up(int argc, char **argv)
{
	if (argc > 1)
		wanted = argv[1];
	if (argc > 2)
		mode = (uint32_t)atoi(argv[2]);
	if (argc > 3)
		frequency_hz = (uint32_t)atoi(argv[3]);
	if (!shim_profiler_create || argc < 2)
		return;
	setvbuf(stdout, NULL, _IOLBF, 0);
	first = shim_profiler_create(NULL);
	second = shim_profiler_create(NULL);
	third = shim_profiler_create(NULL);
	watcher = shim_profiler_create(NULL);
	shim_profiler_on_sample_hit(first, hit);
	shim_profiler_on_sample_hit(second, second_hit);
	if (strcmp(wanted, "owner") == 0) {
		before_main_owner();
		return;
	}
	EXPECT(shim_profiler_enable_sampling(first) == SHIM_OK, "enable");
	if (mode)
		EXPECT(shim_profiler_set_sample_mode(first, mode,
						     frequency_hz) == SHIM_OK,
		       "set");
}

int main(int argc, char **argv)
{
	if (argc > 4)
		pause_seconds = atof(argv[4]);
	if (strcmp(wanted, "owner") == 0)
		owner();
	if (strcmp(wanted, "spin") == 0)
		in_threads(THREADS, spinner);
	if (strcmp(wanted, "sleep") == 0)
		in_threads(THREADS, sleeper);
	if (strcmp(wanted, "wait") == 0)
		waiting();
	if (strcmp(wanted, "interrupted") == 0)
		interrupted();
	if (strcmp(wanted, "parts") == 0)
		parts();
	if (strcmp(wanted, "pieces") == 0)
		pieces();
	if (strcmp(wanted, "set") == 0)
		set_both();
	if (strcmp(wanted, "poked") == 0)
		poked_asleep();
	if (strcmp(wanted, "hidden") == 0)
		hidden();
	if (strcmp(wanted, "processes") == 0)
		processes();
	if (strcmp(wanted, "churn") == 0)
		churn();
	if (strcmp(wanted, "small") == 0)
		small_stacks();
	if (strcmp(wanted, "idle") == 0)
		poll(NULL, 0, 300);
	report();
	return 0;
}
