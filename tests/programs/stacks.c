/*
 * Compares stack snapshots of shim with those of the C library's unwinder: stacks CASE.
 * Prints errors, and then how much was compared.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <shim/sampling.h>
#include <shim/stack.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_sample_hit
#pragma weak shim_profiler_enable_sampling
#pragma weak shim_profiler_set_sample_mode
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_stack_addresses
#pragma weak shim_stack_snapshot
#pragma weak shim_thread_current

#define DEPTH 256
#define APART __attribute__((noinline, noclone))

static const char *wanted = "";
static uintptr_t library_swap; /* libc's swapcontext */
static struct shim_profiler_handle *handle;
static unsigned long walks, frames, unfinished, wrong;

static void complain(const char *what, uintptr_t ours, uintptr_t theirs)
{
	Dl_info info = { 0 };

	if (wrong++ > 5)
		return;
	dladdr((void *)theirs, &info);
	printf("wrong: %s: %lx, not %lx (%s)\n", what, (unsigned long)ours,
	       (unsigned long)theirs,
	       info.dli_sname ? info.dli_sname : info.dli_fname);
}

/* Compares both from the first occurrence of @first on. */
static void compare(const uintptr_t *ours, unsigned count, void **theirs,
		    unsigned their_count, bool done)
{
	unsigned skip = 0;

	while (skip < their_count && (uintptr_t)theirs[skip] != ours[0])
		skip++;
	walks++;
	if (skip == their_count) {
		complain("nowhere in the C library's", ours[0],
			 (uintptr_t)theirs[0]);
		return;
	}
	if (!done)
		unfinished++;
	for (unsigned i = 0; i < count && skip + i < their_count; i++) {
		frames++;
		if (ours[i] != (uintptr_t)theirs[skip + i]) {
			complain("another caller", ours[i],
				 (uintptr_t)theirs[skip + i]);
			return;
		}
	}
	/* If the end is not marked, the other unwinder may see one frame more. */
	if (done && (their_count - skip > count + 1 ||
		     count > their_count - skip))
		complain("another length", count, their_count - skip);
}

/* A sample does not interrupt another sample, whatever that one does to its mask. */
static void change_mask(void)
{
	static volatile int inside;
	struct timespec begin, end;
	sigset_t all, before;

	if (inside++)
		complain("inside of another", (uintptr_t)inside, 0);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &end);
	while ((end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec -
		       begin.tv_nsec < 1500000);
	inside--;
	walks++;
}

static void run_coroutine(void);

/* A coroutine's stack has no marked end, but the snapshot reaches the coroutine's first
 * frame. */
static bool is_whole(const uintptr_t *addresses, uint32_t count, int result)
{
	if (result == SHIM_OK)
		return true;
	for (uint32_t i = 0; i < count; i++)
		if (addresses[i] - (uintptr_t)run_coroutine < 256)
			return true;
	return false;
}

/* Takes both snapshots at the same interrupted place. */
static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	uintptr_t ours[DEPTH];
	void *theirs[DEPTH];
	uint32_t count = 0;
	int result, their_count;

	(void)profiler;
	(void)weight;
	result = shim_stack_addresses(context, DEPTH, &count, ours);
	if (count == 0 || ours[0] != ip)
		complain("another place", ours[0], ip);
	if (strcmp(wanted, "masks") == 0) {
		change_mask();
		return;
	}
	if (strcmp(wanted, "torture") == 0) {
		walks++;
		unfinished += result != SHIM_OK;
		return;
	}
	/* Where the compiler's tables are wrong (gcc: the end of a function that aligns
	 * its stack), the other unwinder may crash. */
	if (!is_whole(ours, count, result)) {
		walks++;
		unfinished++;
		return;
	}
	/* In the middle of it, some registers belong to one stack and some to the
	 * other: there the other unwinder may crash as well. */
	if (ip - library_swap < 256)
		return;
	their_count = backtrace(theirs, DEPTH);
	compare(ours, count, theirs, (unsigned)their_count, result == SHIM_OK);
}

/* --- code to be interrupted --- */

static volatile double sink;

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	sink += x;
	return x < y ? -1 : x > y;
}

static APART void leaf(int n)
{
	char text[64];
	int numbers[64];

	for (int i = 0; i < 64; i++)
		numbers[i] = (i * 7919 + n) % 101;
	qsort(numbers, 64, sizeof(int), by_value);
	snprintf(text, sizeof(text), "%d %f %s", n, sink, "text");
	sink += (double)strlen(text);
}

static APART int recurse(int depth, int n)
{
	/* Aligns its stack, or has a frame of variable size. */
	if (depth % 3 == 0) {
		_Alignas(64) volatile char aligned[64];

		aligned[0] = (char)n;
		n = depth == 0 ? (leaf(n), n) : recurse(depth - 1, n + 1);
		return n + aligned[0] * 0;
	}
	if (depth % 3 == 1) {
		volatile char *some = __builtin_alloca((size_t)(n % 100 + 1));

		some[0] = (char)n;
		n = recurse(depth - 1, n + 1);
		return n + some[0] * 0;
	}
	n = recurse(depth - 1, n + 1);
	return n + 1;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void compute(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		recurse(20, 3);
}

static void *in_thread(void *seconds)
{
	compute(*(double *)seconds);
	return NULL;
}

/* --- in a handler of the program, on a stack of its own --- */

static volatile int in_handler;

static void handler(int signal_)
{
	(void)signal_;
	in_handler++;
	recurse(10, 5);
}

static void use_handlers(void)
{
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = handler,
				    .sa_flags = SA_ONSTACK };
	double end = now() + 0.7;

	sigaltstack(&other, NULL);
	sigaction(SIGUSR1, &action, NULL);
	while (now() < end) {
		raise(SIGUSR1);
		recurse(5, 1);
	}
}

/* --- coroutines --- */

static ucontext_t main_context, coroutine;

static void run_coroutine(void)
{
	for (;;) {
		recurse(8, 2);
		swapcontext(&coroutine, &main_context);
	}
}

static void use_coroutines(void)
{
	double end = now() + 0.7;

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = malloc(256 << 10);
	coroutine.uc_stack.ss_size = 256 << 10;
	makecontext(&coroutine, run_coroutine, 0);
	while (now() < end)
		swapcontext(&main_context, &coroutine);
}

/* --- the cost of a snapshot --- */

static double cost_of(unsigned depth);

static APART double go_down(unsigned depth, unsigned left)
{
	double result = left == 0 ? cost_of(depth) : go_down(depth, left - 1);

	sink += 1;
	return result;
}

static APART double cost_of(unsigned depth)
{
	uintptr_t addresses[DEPTH];
	uint32_t count = 0;
	double best = 1, begin;

	for (unsigned i = 0; i < 2000; i++) {
		begin = now();
		for (unsigned n = 0; n < 10; n++)
			shim_stack_addresses(NULL, DEPTH, &count, addresses);
		begin = (now() - begin) / 10;
		if (begin < best)
			best = begin;
	}
	printf("frames %u walk %.3f us\n", count, best * 1e6);
	return best + depth * 0;
}

/* --- shim_stack_snapshot --- */

static unsigned told, stop_after;
static uint32_t last_size;
static shim_function first_function;

static enum shim_result tell(shim_function function, uintptr_t ip,
			     uintptr_t frame, uint32_t context_size,
			     const void *context, void *client_data)
{
	const struct shim_snapshot_context *registers = context;

	if (told == 0)
		first_function = function;
	if (client_data != &told)
		printf("wrong: client data\n");
	if (registers && (registers->registers[16] != ip ||
			  registers->registers[7] != frame))
		printf("wrong: registers\n");
	last_size = context_size;
	return ++told == stop_after ? SHIM_E_FAIL : SHIM_OK;
}

static void expect(int got, int want, const char *what)
{
	if (got != want)
		printf("wrong: %s: %x, not %x\n", what, got, want);
}

static APART void snapshots(void)
{
	ucontext_t context;
	shim_thread self = 0;

	getcontext(&context);
	shim_thread_current(&self);
	expect(shim_stack_snapshot(0, tell, 0, &told, NULL, 0),
	       SHIM_E_INCONSISTENT_WITH_FLAGS, "no flag");
	expect(shim_profiler_set_event_mask(handle, SHIM_ENABLE_STACK_SNAPSHOT), SHIM_OK,
	       "mask");
	expect(shim_stack_snapshot(0, tell, 0, &told, NULL, 0), SHIM_OK,
	       "self");
	if (told < 3 || last_size != 0 ||
	    first_function != (shim_function)snapshots)
		printf("wrong: %u frames, context %u, in %lx\n", told, last_size,
		       (unsigned long)first_function);
	told = 0;
	expect(shim_stack_snapshot(self, tell,
				      SHIM_SNAPSHOT_REGISTER_CONTEXT |
					      SHIM_SNAPSHOT_X86_OPTIMIZED,
				      &told, &context, sizeof(context)),
	       SHIM_OK, "by its name");
	if (last_size != sizeof(struct shim_snapshot_context))
		printf("wrong: context %u\n", last_size);
	told = 0;
	stop_after = 2;
	expect(shim_stack_snapshot(0, tell, 0, &told, NULL, 0),
	       SHIM_E_STACKSNAPSHOT_ABORTED, "ended");
	expect((int)told, 2, "frames until then");
	stop_after = 0;
	expect(shim_stack_snapshot(0, tell, 8, &told, NULL, 0),
	       SHIM_E_INVALIDARG, "flags");
	expect(shim_stack_snapshot(0, NULL, 0, &told, NULL, 0),
	       SHIM_E_INVALIDARG, "no callback");
	expect(shim_stack_snapshot(0, tell, 0, &told, &context, 8),
	       SHIM_E_INVALIDARG, "short context");
	expect(shim_stack_snapshot(self + (1ull << 40), tell, 0, &told, NULL,
				      0),
	       SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD, "nobody");
#ifdef __x86_64__
	context.uc_mcontext.gregs[REG_RIP] = 0x1000;
	expect(shim_stack_snapshot(0, tell, 0, &told, &context,
				      sizeof(context)),
	       SHIM_E_STACKSNAPSHOT_UNMANAGED_CTX, "no code");
	/* A stack that leads nowhere, and one that leads to itself. */
	getcontext(&context);
	context.uc_mcontext.gregs[REG_RSP] = 0x123456789000;
	context.uc_mcontext.gregs[REG_RBP] = 0x123456789000;
	expect(shim_stack_snapshot(0, tell, 0, &told, &context,
				      sizeof(context)),
	       SHIM_E_UNEXPECTED, "a broken stack");
#endif
}

__attribute__((constructor)) static void set_up(int argc, char **argv)
{
	void *warm[4];

	if (argc < 2 || !shim_profiler_create)
		return;
	wanted = argv[1];
	backtrace(warm, 4);
	handle = shim_profiler_create(NULL);
	if (strcmp(wanted, "cost") == 0 || strcmp(wanted, "snapshots") == 0)
		return;
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_enable_sampling(handle);
	expect(shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_REAL, 2000),
	       SHIM_OK, "mode");
}

int main(void)
{
	double seconds = 0.7;
	pthread_t thread;

	library_swap = (uintptr_t)dlsym(dlopen("libc.so.6", RTLD_LAZY),
					"swapcontext");
	if (strcmp(wanted, "code") == 0 || strcmp(wanted, "masks") == 0)
		compute(1);
	if (strcmp(wanted, "threads") == 0) {
		pthread_create(&thread, NULL, in_thread, &seconds);
		pthread_join(thread, NULL);
	}
	if (strcmp(wanted, "handlers") == 0)
		use_handlers();
	if (strcmp(wanted, "coroutines") == 0)
		use_coroutines();
	if (strcmp(wanted, "cost") == 0)
		for (unsigned depth = 0; depth <= 100; depth += 25)
			go_down(depth, depth);
	if (strcmp(wanted, "snapshots") == 0)
		snapshots();
	if (handle)
		shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_NONE, 1);
	printf("walks %lu frames %lu unfinished %lu wrong %lu\n", walks, frames,
	       unfinished, wrong);
	return 0;
}
