/*
 * Regions of OpenMP with 3 threads: 4 with an explicit barrier, 1 with tasks, and 1 inside
 * of another.
 */
#include <omp.h>
#include <stdio.h>

int work(int n);
__attribute__((noinline)) int work(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

int handed(void);
__attribute__((noinline)) int handed(void)
{
	return work(10);
}

void step(void);
__attribute__((noinline)) void step(void)
{
#pragma omp parallel num_threads(3)
	{
		work(100000 * (1 + omp_get_thread_num()));
#pragma omp barrier
		work(1000);
	}
}

void tasks(void);
__attribute__((noinline)) void tasks(void)
{
#pragma omp parallel num_threads(3)
#pragma omp single nowait
	{
		for (int i = 0; i < 20; i++)
#pragma omp task
			handed();
#pragma omp taskwait
	}
}

void nested(void);
__attribute__((noinline)) void nested(void)
{
#pragma omp parallel num_threads(3)
#pragma omp critical
#pragma omp parallel num_threads(2)
	work(10);
}

int main(void)
{
	omp_set_max_active_levels(2);
	for (int i = 0; i < 4; i++)
		step();
	tasks();
	nested();
	puts("done");
	return 0;
}
