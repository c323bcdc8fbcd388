/* Produces a little of every kind of recorded data. */
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static std::mutex mutex;
static volatile unsigned long work;

__attribute__((noinline)) static void compute(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		work = work + i;
}

__attribute__((noinline)) static int step(int n)
{
	std::lock_guard<std::mutex> lock(mutex);

	compute(200000);
	if (n % 3 == 0)
		throw std::runtime_error("three");
	return n;
}

__attribute__((noinline)) static int *keep(int n)
{
	return new int[n % 7 + 1];
}

__attribute__((noinline)) static void run(int from)
{
	std::vector<int *> kept;

	for (int i = from; i < from + 10; i++) {
		kept.push_back(keep(i));
		try {
			step(i);
		} catch (const std::exception &) {
			delete[] kept.back();
		}
	}
}

int main()
{
	std::thread one(run, 1), two(run, 2);

	run(3);
	one.join();
	two.join();
	compute(20000000);
	return 0;
}
