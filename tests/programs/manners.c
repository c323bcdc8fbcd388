/*
 * Traces of hooks that a program could notice: prints one line for each, which must be
 * the same with shim and without.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <dirent.h>
#include <errno.h>
#include <fenv.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

static APART void leaf(void)
{
	COUNTED;
}

/* Every call is a new path: shim makes nodes, chunks and tables. */
static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
	leaf();
}

QUIET static int count_entries(const char *directory)
{
	DIR *open = opendir(directory);
	int count = 0;

	while (readdir(open))
		count++;
	closedir(open);
	return count;
}

QUIET static void print_number(const char *what, unsigned long number)
{
	char line[100];

	snprintf(line, sizeof(line), "%s %lu\n", what, number);
	print_text(line);
}

QUIET static void print_line_of(const char *file, const char *key)
{
	char line[200];
	FILE *open = fopen(file, "r");

	while (open && fgets(line, sizeof(line), open))
		if (strncmp(line, key, strlen(key)) == 0)
			print_text(line);
	if (open)
		fclose(open);
}

QUIET static void print_timers(void)
{
	FILE *open = fopen("/proc/self/timers", "r");
	int lines = 0, c;

	while (open && (c = getc(open)) != EOF)
		lines += c == '\n';
	if (open)
		fclose(open);
	print_number("timers", lines);
}

/* SIGBUS may belong to the program: a file that it shortens must not end it. */
QUIET static void print_handlers(void)
{
	FILE *open = fopen("/proc/self/status", "r");
	unsigned long long caught;
	char line[200];

	while (open && fgets(line, sizeof(line), open))
		if (sscanf(line, "SigCgt: %llx", &caught) == 1) {
			snprintf(line, sizeof(line), "SigCgt:\t%016llx\n",
				 caught & ~(1ull << (SIGBUS - 1)));
			print_text(line);
		}
	if (open)
		fclose(open);
}

QUIET static void print_surroundings(void)
{
	print_number("descriptors", count_entries("/proc/self/fd"));
	print_number("threads", count_entries("/proc/self/task"));
	print_handlers();
	print_line_of("/proc/self/status", "SigIgn");
	print_line_of("/proc/self/status", "SigBlk");
	print_line_of("/proc/thread-self/children", "");
	print_timers();
}

/* Calls hooks and prints whether they changed anything that a call must preserve. */
QUIET static void try_calls(void (*call)(int), int n, const char *what)
{
	sigset_t before, after;
	stack_t stack_before, stack_after;
	unsigned int mxcsr;
	unsigned short control, control_after;
	int same = 1;

	sigemptyset(&before);
	sigemptyset(&after);
	sigaltstack(NULL, &stack_before);
	sigprocmask(SIG_SETMASK, NULL, &before);
	fesetround(FE_UPWARD);
	feclearexcept(FE_ALL_EXCEPT);
	mxcsr = _mm_getcsr();
	__asm__ volatile("fnstcw %0" : "=m"(control));
	errno = 4711;
	call(n);
	same &= errno == 4711;
	__asm__ volatile("fnstcw %0" : "=m"(control_after));
	if (_mm_getcsr() != mxcsr || control != control_after)
		same = 0;
	fesetround(FE_TONEAREST);
	sigprocmask(SIG_SETMASK, NULL, &after);
	if (memcmp(&before, &after, 8) != 0)
		same = 0;
	sigaltstack(NULL, &stack_after);
	if (stack_before.ss_sp != stack_after.ss_sp ||
	    stack_before.ss_flags != stack_after.ss_flags)
		same = 0;
	print_text(what);
	print_text(same ? ": unchanged\n" : ": changed\n");
}

QUIET static void *thread(void *argument)
{
	try_calls((void (*)(int))leaf, 0, "first call of a thread");
	try_calls(down, 2000, "new paths");
	try_calls(down, 2000, "known paths");
	return argument;
}

/* The vector registers that a call may change in general, but that the compiler knows
 * this function preserves. */
QUIET static __attribute__((noinline)) int vectors_are_kept(void)
{
	uint64_t in[4] = { 1, 2, 3, 4 }, out[4] = { 0 };

	__asm__ volatile("movdqu %1, %%xmm0\n\t"
			 "movdqu %1, %%xmm15\n\t"
			 "fldpi\n\t"
			 "mov $0x1234, %%edi\n\t"
			 "xor %%esi, %%esi\n\t"
			 "sub $128, %%rsp\n\t"
			 "mov %%rsp, %%rbx\n\t"
			 "and $-16, %%rsp\n\t"
			 "call __cyg_profile_func_enter@plt\n\t"
			 "mov $0x1234, %%edi\n\t"
			 "xor %%esi, %%esi\n\t"
			 "call __cyg_profile_func_exit@plt\n\t"
			 "mov %%rbx, %%rsp\n\t"
			 "add $128, %%rsp\n\t"
			 "fstp %%st(0)\n\t"
			 "movdqu %%xmm0, %0\n\t"
			 "movdqu %%xmm15, 16+%0\n\t"
			 : "=m"(out)
			 : "m"(in)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9",
			   "r10", "r11", "xmm0", "xmm15", "memory", "cc");
	return memcmp(in, out, 16) == 0 && memcmp(in, out + 2, 16) == 0;
}

int main(void)
{
	pthread_t second;

	COUNTED;
	print_surroundings();
	try_calls((void (*)(int))leaf, 0, "a call");
	try_calls(down, 3000, "new paths");
	try_calls(down, 3000, "known paths");
	print_text(vectors_are_kept() ? "vectors kept\n" : "vectors lost\n");
	pthread_create(&second, NULL, thread, NULL);
	pthread_join(second, NULL);
	print_surroundings();
	print_counts();
	return 0;
}
