/*
 * A program with known waits: waits CASE.  The lock is released only when the waiting
 * thread is seen to sleep, so each wait counts once.  It prints its own measurements:
 * "waited LOCK WAITS NANOSECONDS".
 */
#include "truth.h"

#include <cerrno>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>

namespace app
{
std::mutex guard;
std::timed_mutex timed;
std::recursive_mutex recursive;
std::shared_mutex shared;
std::mutex ready_guard;
std::condition_variable ready;
}

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	long head;
	pthread_mutex_t lock;
} pool = { 0, PTHREAD_MUTEX_INITIALIZER };
static sem_t slots;

/* --- detection of the waiting thread --- */

static volatile int waiter;	/* tid of the thread that is about to wait */

QUIET static void nap(long us = 100)
{
	struct timespec time = { 0, us * 1000 };

	nanosleep(&time, nullptr);
}

QUIET static bool sleeps(int tid)
{
	char path[64], text[400];
	const char *end;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return false;
	size = fread(text, 1, sizeof(text) - 1, file);
	text[size] = '\0';
	fclose(file);
	end = strrchr(text, ')');
	return end && end[2] == 'S';
}

QUIET static void await_waiter()
{
	while (!waiter || !sleeps(waiter))
		nap();
	waiter = 0;
}

QUIET static double now()
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

struct measured {
	const char *lock;
	long waits;
	double time;
};

/* @take waits; the program measures the time. */
template <typename Take>
QUIET static void measure(struct measured &of, Take take)
{
	double begin;

	waiter = (int)syscall(SYS_gettid);
	begin = now();
	take();
	of.time += now() - begin;
	of.waits++;
}

QUIET static void say(const struct measured &of)
{
	char line[100];

	snprintf(line, sizeof(line), "waited %s %ld %.0f\n", of.lock, of.waits,
		 of.time);
	print_text(line);
}

/* Runs @wait in this thread @times, each time while another thread holds the object,
 * for which hold() calls @take and @give. */
template <typename Take, typename Give>
APART static void hold(Take take, Give give, volatile int &has, long us)
{
	take();
	has = 1;
	await_waiter();
	nap(us);
	give();
}

template <typename Take, typename Give>
static void holder(Take take, Give give, volatile int &has, int times, long us)
{
	for (int i = 0; i < times; i++) {
		while (has)
			nap();
		hold(take, give, has, us);
	}
}

template <typename Take, typename Give, typename Wait>
QUIET static void fight(struct measured of, int times, Take take, Give give,
			Wait wait, long us = 200)
{
	volatile int has = 0;
	std::thread other([&] { holder(take, give, has, times, us); });

	for (int i = 0; i < times; i++) {
		while (!has)
			nap();
		wait(of);
		has = 0;
	}
	other.join();
	say(of);
}

static void take_cache() { pthread_mutex_lock(&cache_lock); }
static void give_cache() { pthread_mutex_unlock(&cache_lock); }

/* --- the cases --- */

APART static void lookup(struct measured &of)
{
	measure(of, [] { take_cache(); });
	give_cache();
}

APART static void reader(struct measured &of)
{
	lookup(of);
}

APART static void writer(struct measured &of)
{
	lookup(of);
}

static void paths()
{
	struct measured cache = { "cache_lock", 0, 0 };

	fight(cache, 3, take_cache, give_cache, reader);
	fight(cache, 5, take_cache, give_cache, writer);
	fight({ "pool+8", 0, 0 }, 2, [] { pthread_mutex_lock(&pool.lock); },
	      [] { pthread_mutex_unlock(&pool.lock); },
	      [](struct measured &of) {
		      measure(of, [] { pthread_mutex_lock(&pool.lock); });
		      pthread_mutex_unlock(&pool.lock);
	      });
}

/* Long waits, so that the program's own reading of the clock does not matter. */
static void times()
{
	fight({ "cache_lock", 0, 0 }, 60, take_cache, give_cache, reader, 3000);
}

static void cxx()
{
	using namespace app;

	fight({ "app::guard", 0, 0 }, 2, [] { guard.lock(); },
	      [] { guard.unlock(); },
	      [](struct measured &of) {
		      measure(of, [] { guard.lock(); });
		      guard.unlock();
	      });
	fight({ "app::timed", 0, 0 }, 2, [] { timed.lock(); },
	      [] { timed.unlock(); },
	      [](struct measured &of) {
		      measure(of, [] {
			      timed.try_lock_for(std::chrono::seconds(60));
		      });
		      timed.unlock();
	      });
	fight({ "app::recursive", 0, 0 }, 2, [] { recursive.lock(); },
	      [] { recursive.unlock(); },
	      [](struct measured &of) {
		      measure(of, [] { recursive.lock(); });
		      recursive.unlock();
	      });
	fight({ "app::shared", 0, 0 }, 2, [] { shared.lock(); },
	      [] { shared.unlock(); },
	      [](struct measured &of) {
		      measure(of, [] { shared.lock_shared(); });
		      shared.unlock_shared();
	      });
	struct measured woken = { "app::ready", 0, 0 };
	bool is_ready = false;
	std::thread other([&] {
		await_waiter();
		nap(10000);
		std::lock_guard<std::mutex> hold(ready_guard);
		is_ready = true;
		ready.notify_all();
	});
	{
		std::unique_lock<std::mutex> hold(ready_guard);

		while (!is_ready)
			measure(woken, [&] { ready.wait(hold); });
	}
	other.join();
	say(woken);
}

APART static void spin()
{
	for (int i = 0; i < 1000; i++)
		if (pthread_mutex_trylock(&cache_lock) == 0)
			abort();
}

static void tries()
{
	take_cache();
	std::thread(spin).join();
	give_cache();
}

APART static void in_child()
{
	fight({ "cache_lock", 0, 0 }, 4, take_cache, give_cache, reader);
}

static void forked()
{
	fight({ "cache_lock", 0, 0 }, 2, take_cache, give_cache, writer);
	if (fork() == 0) {
		in_child();
		_exit(0);
	}
	wait(nullptr);
}

/* One thread waits forever until the program is killed. */
APART static void hang()
{
	waiter = (int)syscall(SYS_gettid);
	pthread_mutex_lock(&cache_lock);
}

APART static void owner()
{
	take_cache();
	std::thread(hang).detach();
	await_waiter();
	nap(50000);
	nap(50000);
	kill(getpid(), SIGKILL);
}

static void killed()
{
	owner();
}

static sigjmp_buf back;

QUIET static void jump(int)
{
	siglongjmp(back, 1);
}

APART static void jumper()
{
	if (sigsetjmp(back, 1))
		return;
	waiter = (int)syscall(SYS_gettid);
	sem_wait(&slots);
}

static void left()
{
	pthread_t self = pthread_self(), cancelled;
	struct sigaction action = {};

	action.sa_handler = jump;
	sigaction(SIGUSR1, &action, nullptr);
	std::thread other([&] {
		await_waiter();
		pthread_kill(self, SIGUSR1);
	});
	jumper();
	other.join();
	pthread_create(&cancelled, nullptr, [](void *) -> void * {
		waiter = (int)syscall(SYS_gettid);
		sem_wait(&slots);
		return nullptr;
	}, nullptr);
	await_waiter();
	pthread_cancel(cancelled);
	pthread_join(cancelled, nullptr);
}

/* A lock that is in no variable, and one of a library that is unloaded. */
static void elsewhere()
{
	pthread_mutex_t *mine = (pthread_mutex_t *)malloc(sizeof(*mine));

	pthread_mutex_init(mine, nullptr);
	fight({ "heap", 0, 0 }, 2, [=] { pthread_mutex_lock(mine); },
	      [=] { pthread_mutex_unlock(mine); },
	      [=](struct measured &of) {
		      measure(of, [=] { pthread_mutex_lock(mine); });
		      pthread_mutex_unlock(mine);
	      });
	for (const char *name : { getenv("FIRST"), getenv("SECOND") }) {
		void *library = dlopen(name, RTLD_NOW);
		pthread_mutex_t *its =
			(pthread_mutex_t *)dlsym(library, "exported");

		fight({ "library", 0, 0 }, 1, [=] { pthread_mutex_lock(its); },
		      [=] { pthread_mutex_unlock(its); },
		      [=](struct measured &of) {
			      measure(of, [=] { pthread_mutex_lock(its); });
			      pthread_mutex_unlock(its);
		      });
		dlclose(library);
	}
}

static const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{ "paths", paths },   { "times", times },   { "cxx", cxx },
	{ "tries", tries },   { "forked", forked }, { "killed", killed },
	{ "left", left },     { "elsewhere", elsewhere },
};

int main(int count, char **arguments)
{
	for (auto &one : cases)
		if (count > 1 && !strcmp(one.name, arguments[1])) {
			one.run();
			return 0;
		}
	return 2;
}
