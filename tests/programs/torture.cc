/*
 * Eight threads with actions that must not be interrupted: torture SECONDS PLUGIN.  The
 * program checks the results of each, and ends when each thread has got something done; the
 * output is the same however often the threads are sampled.
 */
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static double end;
static const char *plugin;
static std::atomic<unsigned long> done[8];
static std::atomic<unsigned> wrong;

static double now()
{
	timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void check(bool good, const char *what)
{
	if (!good && wrong++ < 5)
		printf("wrong: %s\n", what);
}

static void allocate(unsigned n)
{
	std::vector<char *> blocks;

	for (unsigned i = 0; i < 50; i++) {
		size_t size = (n * 7919 + i * 104729) % 5000 + 1;
		char *block = (char *)malloc(size);

		memset(block, (int)i, size);
		blocks.push_back(block);
	}
	for (unsigned i = 0; i < 50; i++) {
		check(blocks[i][0] == (char)i, "memory");
		free(blocks[i]);
	}
}

static void load(unsigned)
{
	void *library = dlopen(plugin, RTLD_NOW);

	check(library && dlsym(library, "plugin_function"), "dlopen");
	if (library)
		dlclose(library);
}

static void split(unsigned n)
{
	int status = -1, wanted = (int)(n % 100);
	pid_t waited = 0, child = fork();

	if (child == 0)
		_exit(wanted);
	if (child > 0)
		waited = waitpid(child, &status, 0);
	if (waited != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != wanted) {
		if (wrong++ < 5)
			printf("wrong: fork %d waited %d error %d status %#x\n",
			       child, waited, errno, (unsigned)status);
	}
}

static void print(unsigned n)
{
	char text[100];
	FILE *file = fopen("/dev/null", "w");

	fprintf(file, "%u %f %s\n", n, n / 3.0, "text");
	fclose(file);
	snprintf(text, sizeof(text), "%08.3f|%s|%lx", n / 7.0, "abc", 255ul);
	check(strstr(text, "|abc|ff"), "printf");
}

static int throw_down(unsigned depth, unsigned n)
{
	std::string text(n % 30, 'x');

	if (depth == 0)
		throw std::runtime_error(text);
	return throw_down(depth - 1, n) + 1;
}

static void except(unsigned n)
{
	try {
		throw_down(10, n);
	} catch (const std::runtime_error &error) {
		check(strlen(error.what()) == n % 30, "exception");
	}
}

static void *nothing(void *argument)
{
	return argument;
}

static void start(unsigned n)
{
	pthread_t thread;
	void *result = nullptr;

	if (pthread_create(&thread, nullptr, nothing, (void *)(uintptr_t)n) == 0)
		pthread_join(thread, &result);
	check(result == (void *)(uintptr_t)n, "thread");
}

static void nap(unsigned)
{
	timespec time = { 0, 200000 };

	check(nanosleep(&time, nullptr) == 0, "nanosleep");
}

static void (*const things[8])(unsigned) = { allocate, load,  split, print,
					     except,   start, nap,   allocate };

int main(int count, char **arguments)
{
	std::vector<std::thread> threads;

	if (count < 3)
		return 2;
	end = now() + atof(arguments[1]);
	plugin = arguments[2];
	for (unsigned i = 0; i < 8; i++)
		threads.emplace_back([i] {
			/* A busy machine may let a thread begin after the end. */
			for (unsigned n = 0; n == 0 || now() < end; n++) {
				things[i](n);
				done[i]++;
			}
		});
	for (auto &thread : threads)
		thread.join();
	if (getenv("TORTURE_COUNTS"))
		for (unsigned i = 0; i < 8; i++)
			fprintf(stderr, "%lu ", (unsigned long)done[i]);
	printf("done\n");
	return wrong ? 1 : 0;
}
