/*
 * attached_storm FILE THREADS: a program to attach to again and again.
 *
 * Its threads allocate, lock, throw, start threads, and fork, and check what they get.  The
 * mapped FILE counts the rounds of each thread.  After a line or the end of standard input,
 * it prints how often something was wrong.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile bool ends;
static unsigned long wrong;
static std::mutex mutex;
static unsigned long shared_low, shared_high; /* equal while unlocked */

static void expect(bool is_right)
{
	if (!is_right)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void throw_at(int depth)
{
	std::string local(static_cast<size_t>(depth) + 40, 'x');

	if (depth == 0)
		throw std::runtime_error("expected");
	throw_at(depth - 1);
	expect(local.empty());
}

static void do_throw(int round)
{
	bool is_caught = false;

	try {
		throw_at(round % 7);
	} catch (const std::runtime_error &) {
		is_caught = true;
	}
	expect(is_caught);
}

static void do_lock(int)
{
	std::lock_guard<std::mutex> guard(mutex);

	expect(shared_low == shared_high);
	shared_low++;
	shared_high++;
}

static void do_allocate(int round)
{
	std::vector<char *> blocks;

	for (int i = 0; i < 16; i++) {
		size_t size = static_cast<size_t>(16 << (i % 8)) + 1;
		char *block = static_cast<char *>(malloc(size));

		memset(block, round & 127, size);
		blocks.push_back(block);
	}
	for (char *block : blocks) {
		expect(block[0] == (round & 127));
		free(block);
	}
}

static void do_thread(int round)
{
	int result = 0;
	std::thread thread([&result, round] { result = round; });

	thread.join();
	expect(result == round);
}

static void do_fork(int round)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		do_allocate(round);
		_exit(7);
	}
	expect(child > 0);
	expect(waitpid(child, &status, 0) == child);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void work(uint64_t *rounds, int kind)
{
	for (int round = 0; !ends; round++) {
		do_allocate(round);
		do_lock(round);
		do_throw(round);
		if (round % 256 == 0 && kind % 4 == 1)
			do_thread(round);
		if (round % 1024 == 0 && kind % 8 == 3)
			do_fork(round);
		(*rounds)++;
	}
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 8;
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	size_t size = static_cast<size_t>(count) * 64;
	std::vector<std::thread> threads;
	char line[16];

	if (ftruncate(fd, static_cast<off_t>(size)) < 0)
		return 2;
	void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);
	if (memory == MAP_FAILED)
		return 2;
	close(fd);
	for (int i = 0; i < count; i++)
		threads.emplace_back(
			work, static_cast<uint64_t *>(memory) + i * 8, i);
	puts("ready");
	fflush(stdout);
	if (read(0, line, sizeof(line)) < 0)
		return 2;
	ends = true;
	for (std::thread &thread : threads)
		thread.join();
	printf("wrong %lu\n", wrong);
	return 0;
}
