/*
 * Eight threads that allocate, lock, throw, fork, load libraries, send signals and
 * cancel threads, all at once: turmoil SECONDS PLUGIN.  The program checks the results
 * of each; the output is the same under every profiler.  TRUTH names a file for the
 * program's own counts: exceptions and calls of the parent process.  Lines that are
 * always or never reached have a mark.
 */
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <exception>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define QUIET __attribute__((no_instrument_function))
#define APART __attribute__((noinline))

static double end;
static const char *plugin;
static std::atomic<unsigned> wrong;
static std::atomic<unsigned long> thrown, caught, steps, handled;
static std::atomic<unsigned long> done[10];

QUIET static double now()
{
	timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void check(bool good, const char *what)
{
	if (!good && wrong++ < 5)
		printf("wrong: %s\n", what);	//@ never
}

/* --- objects that threads pass to each other --- */

static std::mutex box_lock;
static std::condition_variable box_filled;
static std::vector<char *> box;

/* Blocks are freed by any thread. */
static void allocate(unsigned n)
{
	std::vector<char *> mine;

	for (unsigned i = 0; i < 40; i++) {
		size_t size = (n * 7919 + i * 104729) % 5000 + 2;
		char *block = (char *)malloc(size);

		block[0] = block[size - 1] = (char)i;	//@ always
		if (i % 4 == 0)
			block = (char *)realloc(block, size * 2);
		check(block[0] == (char)i, "memory");
		mine.push_back(block);
	}
	{
		std::lock_guard<std::mutex> hold(box_lock);

		for (unsigned i = 0; i < 20; i++) {
			box.push_back(mine.back());
			mine.pop_back();
		}
	}
	box_filled.notify_all();
	for (char *block : mine)
		free(block);
}

static void collect(unsigned)
{
	std::unique_lock<std::mutex> hold(box_lock);
	std::vector<char *> others;

	box_filled.wait_for(hold, std::chrono::milliseconds(2),
			    [] { return !box.empty(); });
	others.swap(box);
	hold.unlock();
	for (char *block : others)
		free(block);
}

/* --- locks --- */

static std::mutex counter_lock;
static std::shared_mutex table_lock;
static pthread_spinlock_t spin;
static sem_t tokens;
static long counter, table[2], spun;
static std::atomic<long> expected;

APART static void lock(unsigned n)
{
	{
		std::lock_guard<std::mutex> hold(counter_lock);

		counter++;
	}
	expected++;
	if (n % 8 == 0) {
		std::unique_lock<std::shared_mutex> hold(table_lock);

		table[0]++;	//@ always
		table[1]++;
	} else {
		std::shared_lock<std::shared_mutex> hold(table_lock);

		check(table[0] == table[1], "readers beside a writer");
	}
	pthread_spin_lock(&spin);
	spun++;
	pthread_spin_unlock(&spin);
	while (sem_wait(&tokens) != 0)
		check(errno == EINTR, "sem_wait");
	sem_post(&tokens);
	if (counter_lock.try_lock())
		counter_lock.unlock();
}

/* --- exceptions --- */

struct Step {
	std::string text;
	APART explicit Step(unsigned n) : text(n % 60, 'x')
	{
		steps++;	//@ always
	}
	APART ~Step()
	{
		text.clear();
	}
};

static int throw_down(unsigned depth, unsigned n)
{
	Step step(n + depth);

	if (depth == 0) {
		thrown++;	//@ always
		if (n % 2)
			throw std::runtime_error(step.text);	//@ always
		throw (int)n;	//@ always
	}
	return throw_down(depth - 1, n) + 1;
}

static void except(unsigned n)
{
	try {
		throw_down(n % 20, n);
	} catch (const std::runtime_error &error) {
		caught++;
		check(strlen(error.what()) == n % 60, "exception");
	} catch (int number) {
		caught++;
		check(number == (int)n, "number");
	}
}

/* --- processes and libraries --- */

static void split(unsigned n)
{
	int status = -1, wanted = (int)(n % 100);
	pid_t waited = 0, child = fork();

	if (child == 0) {
		std::mutex mine;

		try {
			std::lock_guard<std::mutex> hold(mine);

			free(malloc(100));	//@ always
			throw wanted;
		} catch (int number) {
			_exit(number);	//@ always
		}
	}
	if (child > 0)
		do {
			waited = waitpid(child, &status, 0);
		} while (waited < 0 && errno == EINTR);
	if (waited != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != wanted) {
		if (wrong++ < 5)
			printf("wrong: fork %d waited %d error %d status %#x\n",
			       child, waited, errno, (unsigned)status);
	}
}

static void load(unsigned n)
{
	void *library = dlopen(plugin, RTLD_NOW);
	int (*call)(int) = library ? (int (*)(int))dlsym(library, "plugin_call") :
				     nullptr;

	check(call && call((int)n) == (int)n + 1, "dlopen");
	if (library)
		dlclose(library);	//@ always
}

/* --- threads and signals --- */

static pthread_mutex_t never_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *wait_for_ever(void *)
{
	pthread_mutex_lock(&never_lock);
	pthread_cleanup_push([](void *) { pthread_mutex_unlock(&never_lock); },
			     nullptr);
	for (;;)
		pthread_cond_wait(&never, &never_lock);
	pthread_cleanup_pop(0);
	return nullptr;
}

static void cancel(unsigned)
{
	pthread_t thread;
	void *result = nullptr;

	if (pthread_create(&thread, nullptr, wait_for_ever, nullptr) != 0)
		return;
	pthread_cancel(thread);	//@ always
	pthread_join(thread, &result);
	check(result == PTHREAD_CANCELED, "cancel");
}

static void on_signal(int)
{
	handled++;	//@ always
	if (sem_trywait(&tokens) == 0)
		sem_post(&tokens);
}

static pthread_t all[8];

static void interrupt(unsigned n)
{
	check(pthread_kill(all[n % 8], SIGUSR1) == 0, "pthread_kill");
}

static void nap(unsigned)
{
	timespec time = { 0, 200000 };

	nanosleep(&time, nullptr);	//@ always
}

/* The test requests a heap snapshot now and then. */
extern "C" int shim_heap_snapshot_now(unsigned *number);
#pragma weak shim_heap_snapshot_now

static void look(unsigned n)
{
	if (n % 8 == 0 && shim_heap_snapshot_now)
		shim_heap_snapshot_now(nullptr);
}

static void (*const things[10])(unsigned) = {
	allocate, collect, lock, except, split, load, cancel, interrupt, nap,
	look,
};

/* --- each thread does everything, the expensive actions less often --- */

static pthread_barrier_t start, finish;

static void work(unsigned number)
{
	unsigned random = number * 2654435761u + 1;

	all[number] = pthread_self();
	pthread_barrier_wait(&start);
	for (unsigned thing = 0; number == 0 && thing < 10; thing++) {
		things[thing](0);
		done[thing]++;
	}
	for (unsigned n = 0; now() < end; n++) {
		random = random * 1664525 + 1013904223;
		unsigned which = random >> 16;
		unsigned thing = which % 64 == 0 ? 4 + which / 64 % 3 :
				 which % 16 == 0 ? 8 :
						   which % 4;

		if (which % 32 == 7)
			thing = which % 512 == 7 ? 9 : 7;
		things[thing](n);
		done[thing]++;
	}
	pthread_barrier_wait(&finish);
}

static void tell_truth()
{
	const char *name = getenv("TRUTH");
	FILE *file = name ? fopen(name, "w") : nullptr;

	if (!file)
		return;
	fprintf(file, "thrown %lu\ncaught %lu\nsteps %lu\nhandled %lu\n",
		thrown.load(), caught.load(), steps.load(), handled.load());
	for (auto &one : done)
		fprintf(file, "thing %lu\n", one.load());
	fclose(file);
}

int main(int count, char **arguments)
{
	struct sigaction action = {};
	std::vector<std::thread> threads;

	if (count < 3)
		return 2;
	end = now() + atof(arguments[1]);
	plugin = arguments[2];
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, nullptr);
	pthread_spin_init(&spin, 0);
	sem_init(&tokens, 0, 3);
	pthread_barrier_init(&start, nullptr, 8);
	pthread_barrier_init(&finish, nullptr, 8);
	for (unsigned i = 0; i < 8; i++)
		threads.emplace_back(work, i);
	for (auto &thread : threads)
		thread.join();
	for (char *block : box)
		free(block);
	check(counter == expected && spun == expected, "locks");
	for (unsigned i = 0; i < 9; i++)
		check(done[i] > 0, "nothing done");
	tell_truth();
	printf("%s\n", wrong ? "wrong" : "done");
	return wrong ? 1 : 42;
}
