/*
 * rings - waits for results of io_uring and of aio, by system calls that a handler interrupts.  One has
 * its number from a register that the compiler has set long before, as in liburing.
 * tests/whole/sampling.py.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMES 12
#define MS    1000000

static int ring;
static struct io_uring_params parameters;
static char *entries, *queue;
static struct io_uring_sqe *requests;
static volatile int handled;

static void on_alarm(int signal)
{
	(void)signal;
	handled++;
}

static int begin(void)
{
	ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
	if (ring < 0)
		return -1;
	queue = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		     IORING_OFF_SQ_RING);
	entries = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
		       IORING_OFF_CQ_RING);
	requests = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
			IORING_OFF_SQES);
	return queue == MAP_FAILED || entries == MAP_FAILED ||
			       requests == MAP_FAILED ?
		       -1 :
		       0;
}

static uint32_t *of_queue(uint32_t offset)
{
	return (uint32_t *)(queue + offset);
}

static void prepare(struct __kernel_timespec *time)
{
	uint32_t *tail = of_queue(parameters.sq_off.tail);
	uint32_t at = *tail & *of_queue(parameters.sq_off.ring_mask);

	memset(&requests[at], 0, sizeof(*requests));
	requests[at].opcode = IORING_OP_TIMEOUT;
	requests[at].addr = (uintptr_t)time;
	requests[at].len = 1;
	of_queue(parameters.sq_off.array)[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

static unsigned take(void)
{
	uint32_t *head = (uint32_t *)(entries + parameters.cq_off.head);
	uint32_t *tail = (uint32_t *)(entries + parameters.cq_off.tail);
	unsigned count = __atomic_load_n(tail, __ATOMIC_ACQUIRE) - *head;

	__atomic_store_n(head, *head + count, __ATOMIC_RELEASE);
	return count;
}

static long enter(long submits, long waits_for, long flags, void *argument,
		  long size)
{
	register long number __asm__("r15") = SYS_io_uring_enter;
	register long flags_ __asm__("r10") = flags;
	register void *argument_ __asm__("r8") = argument;
	register long size_ __asm__("r9") = size;
	long result;

	__asm__ volatile("mov %%r15d, %%eax\n\tsyscall"
			 : "=&a"(result)
			 : "D"((long)ring), "S"(submits), "d"(waits_for),
			   "r"(flags_), "r"(argument_), "r"(size_), "r"(number)
			 : "rcx", "r11", "memory");
	return result;
}

int main(void)
{
	struct __kernel_timespec time = { 0, 20 * MS };
	struct io_uring_getevents_arg limited = { .ts = (uintptr_t)&time };
	struct sigaction action = { .sa_handler = on_alarm,
				    .sa_flags = SA_RESTART };
	struct itimerval alarm = { { 0, 0 }, { 0, 30000 } };
	unsigned timed_out = 0, submitted = 0, there = 0, interrupted = 0;
	unsigned older = 0;
	unsigned long context = 0;
	char event[32];
	sigset_t empty;
	struct {
		const sigset_t *set;
		size_t size;
	} mask = { &empty, 8 };

	sigemptyset(&empty);
	if (begin() < 0) {
		printf("no ring: %s\n", strerror(errno));
		return 0;
	}
	for (int i = 0; i < TIMES; i++)
		timed_out += enter(0, 1,
				   IORING_ENTER_GETEVENTS |
					   IORING_ENTER_EXT_ARG,
				   &limited, sizeof(limited)) == -ETIME;
	syscall(SYS_io_setup, 4, &context);
	for (int i = 0; i < TIMES; i++)
		older += syscall(SYS_io_pgetevents, context, 1, 1, event, &time,
				 i % 2 ? &mask : NULL) == 0;
	printf("timed out %u, of the older kind %u\n", timed_out, older);
	for (int i = 0; i < TIMES; i++) {
		prepare(&time);
		submitted += syscall(SYS_io_uring_enter, ring, 1, 1,
				     IORING_ENTER_GETEVENTS, NULL, 8) == 1;
		there += take() == 1;
	}
	printf("submitted %u, with their results %u\n", submitted, there);
	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < TIMES; i++) {
		setitimer(ITIMER_REAL, &alarm, NULL);
		interrupted += enter(0, 1, IORING_ENTER_GETEVENTS,
				     i % 2 ? &empty : NULL, 8) == -EINTR;
	}
	printf("interrupted %u by %d\n", interrupted, handled);
	return 0;
}
