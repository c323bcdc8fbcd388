/*
 * attached_unready: a program to attach to, with a thread that libc has made data for before
 * the attach, and that begins after it: what an attach adds to the data of threads is 0 there,
 * as in a thread that is being created meanwhile.
 *
 * After each line of standard input, such a thread makes 1,000 calls.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK	(256 << 10)
#define THREADS 8
/* Of what libc's thread begins with: the addresses of itself, and the guards of stack and
 * pointers. */
#define OWN    0x10
#define GUARDS 0x28

/* Of the dynamic linker, for libc. */
void *_dl_allocate_tls(void *memory);

static volatile int sink;

__attribute__((noinline)) static void leaf(int x)
{
	sink = x;
}

__attribute__((noinline)) static void work(void)
{
	for (int i = 0; i < 1000; i++)
		leaf(i);
}

/* Without libc, which does not know the thread. */
__attribute__((no_instrument_function)) static int begin(void *unused)
{
	(void)unused;
	work();
	return 0;
}

__attribute__((no_instrument_function)) static char *make_data(void)
{
	char *data = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *head = data + STACK - 4096;

	head = _dl_allocate_tls(head);
	*(char **)head = *(char **)(head + OWN) = head;
	memcpy(head + GUARDS, (char *)__builtin_thread_pointer() + GUARDS, 16);
	return head;
}

__attribute__((no_instrument_function)) static int run(char *head)
{
	static volatile int tid;
	char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int now;

	tid = 1;
	if (clone(begin, stack + STACK,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
			  CLONE_CHILD_CLEARTID,
		  NULL, NULL, head, &tid) < 0)
		return 1;
	while ((now = tid) != 0)
		syscall(SYS_futex, &tid, FUTEX_WAIT, now, NULL, NULL, 0);
	return 0;
}

int main(void)
{
	char line[16], *heads[THREADS];
	unsigned wrong = 0, next = 0;

	for (int i = 0; i < THREADS; i++)
		heads[i] = make_data();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && line[0] != 'e') {
		wrong += next == THREADS || run(heads[next++]);
		puts("turn");
		fflush(stdout);
	}
	printf("wrong %u interrupted 0\n", wrong);
	return 0;
}
