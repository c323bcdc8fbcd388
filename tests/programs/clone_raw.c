/*
 * Tasks that share the thread-local data of the task that created them.
 *
 * tree:
 *	main 1
 *	main;by_libc 1
 *	main;by_libc;loop 1
 *	main;by_libc;loop;leaf 20000
 *	main;by_hand 1
 *	main;by_hand;loop 1
 *	main;by_hand;loop;leaf 20000
 *	task 2
 *	task;loop 2
 *	task;loop;leaf 40000
 *	main;leaf 1
 */
#define _GNU_SOURCE
#include "truth.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>

#define FLAGS                                                                  \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |    \
	 CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)

static int alive;

static APART void leaf(void)
{
	COUNTED;
}

static APART void loop(void)
{
	COUNTED;
	for (int i = 0; i < 20000; i++)
		leaf();
}

static int task(void *argument)
{
	(void)argument;
	COUNTED;
	loop();
	return 0;
}

/* errno is shared as well: no call here may set it. */
QUIET static void wait_for_task(void)
{
	while (__atomic_load_n(&alive, __ATOMIC_ACQUIRE))
		__asm__ volatile("");
}

static APART void by_libc(void)
{
	static char stack[262144] __attribute__((aligned(64)));

	COUNTED;
	alive = 1;
	clone(task, stack + sizeof(stack), FLAGS, NULL, NULL, NULL, &alive);
	loop();
	wait_for_task();
}

QUIET static void end_task(void)
{
#ifdef __aarch64__
	register long number __asm__("x8") = SYS_exit;
	register long status __asm__("x0") = 0;

	__asm__ volatile("svc #0" ::"r"(number), "r"(status) : "memory");
#else
	register long number __asm__("rax") = SYS_exit;

	__asm__ volatile("syscall" ::"r"(number), "D"(0) : "memory");
#endif
	__builtin_unreachable();
}

QUIET static __attribute__((used)) void begin_task(void)
{
	task(NULL);
	end_task();
}

/* The raw system call; afterwards the child has nothing but its stack. */
#ifdef __aarch64__
QUIET static inline __attribute__((always_inline)) void
clone_by_hand(void *stack)
{
	register long number __asm__("x8") = SYS_clone;
	register long result __asm__("x0") = FLAGS;
	register void *top __asm__("x1") = stack;
	register long parent __asm__("x2") = 0;
	register long tls __asm__("x3") = 0;
	register int *child __asm__("x4") = &alive;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "bl begin_task\n\t"
			 "1:"
			 : "+r"(result)
			 : "r"(number), "r"(top), "r"(parent), "r"(tls),
			   "r"(child)
			 : "x30", "memory");
}
#else
QUIET static inline __attribute__((always_inline)) void
clone_by_hand(void *stack)
{
	register long child __asm__("r10") = (long)&alive;
	register long tls __asm__("r8") = 0;
	long result;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "call begin_task\n\t"
			 "1:"
			 : "=a"(result)
			 : "a"(SYS_clone), "D"(FLAGS), "S"(stack), "d"(0),
			   "r"(child), "r"(tls)
			 : "rcx", "r11", "memory");
}
#endif

static APART void by_hand(void)
{
	static char stack[262144] __attribute__((aligned(64)));

	COUNTED;
	alive = 1;
	clone_by_hand(stack + sizeof(stack));
	loop();
	wait_for_task();
}

int main(void)
{
	COUNTED;
	by_libc();
	by_hand();
	leaf();
	print_counts();
	return 0;
}
