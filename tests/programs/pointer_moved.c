/*
 * pointer_moved MS TO: computes for MS ms of processor time, then with another thread pointer,
 * which its own system call has set (as Go's runtime does), and then with libc's again.  TO:
 *
 *	words		to words of its own
 *	nowhere		to where nothing is mapped
 *	block		to a control block like libc's, with nothing else mapped
 *	other		to one of another libc
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

/* shim looks at the pointer where Go's linker has left its note. */
__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
	".long 4, 4, 4\n.asciz \"Go\\0\"\n.long 0\n.popsection");

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

#define SIZE 32768

/* The middle of the memory. */
static void *pointer_to(const char *where)
{
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *middle = memory + SIZE / 2;

	if (memory == MAP_FAILED)
		exit(1);
	memset(memory, strcmp(where, "words") ? 0x5a : 0, SIZE);
	if (!strcmp(where, "block") || !strcmp(where, "other"))
		memcpy(middle, &middle, sizeof(middle));
	if (!strcmp(where, "nowhere"))
		munmap(memory, SIZE);
	if (!strcmp(where, "block"))
		munmap(memory, SIZE / 2);
	return middle;
}

int main(int argc, char **argv)
{
	uintptr_t before = 0;
	void *pointer;
	int64_t ns;

	if (argc != 3)
		return 2;
	pointer = pointer_to(argv[2]);
	ns = strtol(argv[1], NULL, 10) * INT64_C(1000000);
	compute(ns);
	call(SYS_arch_prctl, ARCH_GET_FS, &before);
	call(SYS_arch_prctl, ARCH_SET_FS, pointer);
	compute(ns);
	call(SYS_arch_prctl, ARCH_SET_FS, (void *)before);
	compute(ns);
	puts("computed");
	return 3;
}
