/*
 * Does the same work each time, with something for each profiler: threads, a signal
 * whose handler calls and allocates, exceptions, a jump, a contended lock, and a forked
 * child that repeats all of this.
 *
 *     combined [SAMPLES]    that the sampler must take before it ends
 */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <shim/sampling.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#pragma weak shim_get_sample_counts

#define PROCESSOR_NS 60000000

static unsigned samples_wanted; /* of spin() */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile double sum;
static jmp_buf back;

struct error {
	int depth;
};

__attribute__((noinline)) static void *take(size_t size)
{
	return malloc(size);
}

__attribute__((noinline)) static void give(void *memory)
{
	free(memory);
}

__attribute__((noinline)) static void leaf(int n)
{
	sum = sum + n;
}

__attribute__((noinline)) static void work(int n)
{
	for (int i = 0; i < n; i++)
		leaf(i);
	give(take(100 + (size_t)n));
}

static void on_signal(int)
{
	work(2);
}

__attribute__((noinline)) static void descend(int n)
{
	if (n == 0)
		throw error{ n };
	descend(n - 1);
	leaf(n);
}

__attribute__((noinline)) static void fail(int n)
{
	try {
		descend(n);
	} catch (const error &) {
		leaf(1);
	}
}

__attribute__((noinline)) static void jump(int n)
{
	if (n == 0)
		longjmp(back, 1);
	jump(n - 1);
	leaf(n);
}

__attribute__((noinline)) static void leave_by_jump()
{
	if (setjmp(back) == 0)
		jump(3);
	leaf(2);
}

static void *in_thread(void *)
{
	for (int i = 0; i < 50; i++)
		work(i % 7);
	fail(2);
	return take(1000);
}

static void *contend(void *)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The lock is held until it has libc's mark of a mutex for which a thread waits. */
static void hold_lock()
{
	struct timespec pause = { 0, 1000000 };
	pthread_t thread;

	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, contend, NULL);
	while (__atomic_load_n(&lock.__data.__lock, __ATOMIC_RELAXED) != 2)
		nanosleep(&pause, NULL);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

/* Not recorded: spin() calls it as often as it takes. */
__attribute__((no_instrument_function)) static long long processor_ns()
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((no_instrument_function)) static unsigned long long samples()
{
	struct shim_sample_counts counts = {};

	if (shim_get_sample_counts)
		shim_get_sample_counts(&counts);
	return counts.accepted;
}

/* What ran before may have used any time.  On a busy machine, the kernel's ticks may find a
 * thread that has slept only after 90 ms of its time and more: until then the sampler takes it
 * for asleep. */
__attribute__((noinline)) static void spin()
{
	const unsigned long long before = samples();
	long long begin = processor_ns();

	do {
		for (int i = 0; i < 100000; i++)
			sum = sum + 1.0 / (i + 1);
	} while (processor_ns() - begin < PROCESSOR_NS ||
		 samples() - before < samples_wanted);
}

static void run_all()
{
	pthread_t threads[3];
	void *kept;

	for (auto &thread : threads) {
		pthread_create(&thread, NULL, in_thread, NULL);
		pthread_join(thread, &kept);
		give(kept);
	}
	for (int i = 0; i < 5; i++)
		raise(SIGUSR1);
	for (int i = 0; i < 4; i++)
		fail(i);
	leave_by_jump();
	hold_lock();
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	samples_wanted = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	signal(SIGUSR1, on_signal);
	run_all();
	spin();
	child = fork();
	if (child == 0) {
		run_all();
		exit(4);
	}
	waitpid(child, &status, 0);
	work(3);
	printf("child %d\n", WEXITSTATUS(status));
	return 3;
}
