/*
 * Code whose unwind tables have operations that shim's unwinder does not evaluate:
 * odd_tables [threads].  Prints how a walk of shim_stack_addresses ends, and whether
 * libshim-unwind.so is loaded; with "threads", threads and forked children compute there.
 */
#include <pthread.h>
#include <shim/stack.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak shim_stack_addresses

#define APART	 __attribute__((noinline, noclone))
#define THREADS	 4
#define CHILDREN 8

/* Calls @function(@argument).  The CFA is (rsp + 32) * 1 until the call returns. */
void by_expression(void (*function)(void *), void *argument);

__asm__(".text\n"
	".globl by_expression\n"
	".type by_expression, @function\n"
	"by_expression:\n\t"
	".cfi_startproc\n\t"
	"push %rbp\n\t"
	".cfi_def_cfa_offset 16\n\t"
	".cfi_offset %rbp, -16\n\t"
	"sub $16, %rsp\n\t"
	/* DW_CFA_def_cfa_expression: breg7 32, lit1, mul */
	".cfi_escape 0x0f, 4, 0x77, 32, 0x31, 0x1e\n\t"
	"mov $1, %ebp\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsi, %rdi\n\t"
	"call *%rax\n\t"
	"nop\n\t"
	"add $16, %rsp\n\t"
	".cfi_def_cfa %rsp, 16\n\t"
	"pop %rbp\n\t"
	".cfi_def_cfa_offset 8\n\t"
	"ret\n\t"
	".cfi_endproc\n"
	".size by_expression, . - by_expression\n");

static APART void take(void *unused)
{
	uintptr_t addresses[64];
	uint32_t total = 0;
	enum shim_result result = shim_stack_addresses(NULL, 64, &total,
						       addresses);

	(void)unused;
	printf("walk %s\n", result == SHIM_OK ? "whole" : "cut");
}

static APART void compute(void *rounds)
{
	volatile uint64_t x = 1;

	for (uintptr_t i = 0; i < (uintptr_t)rounds; i++)
		x = x * 6364136223846793005u + 1;
}

static APART void *in_thread(void *rounds)
{
	by_expression(compute, rounds);
	return NULL;
}

static bool has_failed(pid_t child)
{
	int status;

	return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

static int run_threads(void)
{
	void *const rounds = (void *)(uintptr_t)100000000;
	void *const few = (void *)(uintptr_t)4000000;
	pthread_t threads[THREADS];
	int failed = 0;

	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, in_thread, rounds);
	for (unsigned i = 0; i < CHILDREN; i++) {
		pid_t child = fork();

		if (child == 0) {
			in_thread(few);
			_exit(0);
		}
		failed += has_failed(child);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("failed %d\n", failed);
	return 0;
}

static bool is_loaded(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	bool found = false;

	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, "libshim-unwind.so") != NULL;
	if (maps)
		fclose(maps);
	return found;
}

APART int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "threads") == 0)
		return run_threads();
	if (!shim_stack_addresses)
		return 1;
	by_expression(take, NULL);
	printf("library %s\n", is_loaded() ? "loaded" : "absent");
	return 0;
}
