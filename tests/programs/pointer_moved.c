/*
 * pointer_moved MS: computes for MS ms of processor time, then with another thread pointer,
 * which its own system call has set (as Go's runtime does), and then with libc's again.
 */
#include <asm/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

/* Without libc, which needs its thread pointer. */
static long call(long number, long first, void *second)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
	return result;
}

static int64_t used_ns(void)
{
	struct timespec now;

	call(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void compute(int64_t ns)
{
	for (int64_t end = used_ns() + ns; used_ns() < end;)
		continue;
}

int main(int argc, char **argv)
{
	static uintptr_t memory[4096];
	uintptr_t before = 0;
	int64_t ns;

	if (argc != 2)
		return 2;
	ns = strtol(argv[1], NULL, 10) * INT64_C(1000000);
	compute(ns);
	call(SYS_arch_prctl, ARCH_GET_FS, &before);
	call(SYS_arch_prctl, ARCH_SET_FS, memory + 2048);
	compute(ns);
	call(SYS_arch_prctl, ARCH_SET_FS, (void *)before);
	compute(ns);
	puts("computed");
	return 3;
}
