/*
 * Stack snapshots of other threads: others CASE.  Prints errors, and how often each
 * result code came.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_thread_started
#pragma weak shim_profiler_on_sample_hit
#pragma weak shim_profiler_enable_sampling
#pragma weak shim_profiler_set_sample_mode
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_stack_snapshot
#pragma weak shim_thread_current

#define APART __attribute__((noinline, noclone))
#define QUIET __attribute__((no_instrument_function))

static struct shim_profiler_handle *handle;
static volatile bool has_begun; /* the other's work */
static volatile bool ends;
static volatile double sink;
static const char *itself;

QUIET static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- the snapshots --- */

#define DEPTH 64

struct stack {
	unsigned count;
	shim_function functions[DEPTH];
};

static unsigned stop_after; /* in frames; 0: never */

QUIET static enum shim_result note(shim_function function, uintptr_t ip,
				   uintptr_t frame, uint32_t context_size,
				   const void *context, void *client_data)
{
	const struct shim_snapshot_context *registers = context;
	struct stack *stack = client_data;

	if (context_size != 0 && (registers->registers[16] != ip ||
				  registers->registers[7] != frame))
		printf("wrong: registers\n");
	if (stack->count < DEPTH)
		stack->functions[stack->count] = function;
	stack->count++;
	return stack->count == stop_after ? SHIM_E_FAIL : SHIM_OK;
}

QUIET static int ask(shim_thread thread, uint32_t flags, struct stack *stack)
{
	stack->count = 0;
	return shim_stack_snapshot(thread, note, flags, stack, NULL, 0);
}

QUIET static bool has(const struct stack *stack, void *function)
{
	for (unsigned i = 0; i < stack->count && i < DEPTH; i++)
		if (stack->functions[i] == (shim_function)function)
			return true;
	return false;
}

QUIET static void expect(int got, int want, const char *what)
{
	if (got != want)
		printf("wrong: %s: %x, not %x\n", what, (unsigned)got,
		       (unsigned)want);
}

/* The callback may stop the snapshot at any frame. */
QUIET static void stop_at_each(shim_thread thread, unsigned frames)
{
	struct stack stack;

	for (stop_after = 1; stop_after <= frames; stop_after++) {
		expect(ask(thread, 0, &stack), SHIM_E_STACKSNAPSHOT_ABORTED,
		       "stopped");
		if (stack.count != stop_after)
			printf("wrong: %u frames, not %u\n", stack.count,
			       stop_after);
	}
	stop_after = 0;
}

QUIET static void expect_soon(double begin, double limit, const char *what)
{
	if (now() - begin > limit)
		printf("wrong: %s took %.2f s\n", what, now() - begin);
}

/* --- the other thread --- */

struct other {
	void (*work)(void);
	pthread_t thread;
	shim_thread id;
	pid_t tid;
};

QUIET static void *be_other(void *argument)
{
	struct other *other = argument;
	shim_thread id = 0;

	other->tid = (pid_t)syscall(SYS_gettid);
	shim_thread_current(&id);
	__atomic_store_n(&other->id, id, __ATOMIC_RELEASE);
	other->work();
	return NULL;
}

QUIET static void begin(struct other *other, void (*work)(void))
{
	other->work = work;
	other->id = 0;
	ends = has_begun = false;
	pthread_create(&other->thread, NULL, be_other, other);
	for (unsigned tries = 0; !has_begun && tries < 50000; tries++)
		usleep(100);
	/* It may sleep then. */
	usleep(20000);
}

QUIET static void end(struct other *other)
{
	ends = true;
	pthread_join(other->thread, NULL);
}

static APART void compute(void)
{
	has_begun = true;
	while (!ends)
		sink += 1;
	sink += 1;
}

static APART void ask_myself(void);
static bool asks;

static APART void work(void)
{
	if (asks)
		ask_myself();
	else
		compute();
	sink += 1;
}

static APART void sleep_once(void)
{
	struct timespec time = { 1, 0 };
	double before = now();

	has_begun = true;
	if (nanosleep(&time, NULL) != 0)
		printf("wrong: the sleep failed\n");
	if (now() - before < 1 || now() - before > 3)
		printf("wrong: it slept %.2f s\n", now() - before);
}

/* Calls through libc, also syscall(), leave shim's signal unblocked. */
static APART void block_all(void)
{
	uint64_t all = ~0ull;

#ifdef __x86_64__
	register long size __asm__("r10") = 8;
	long number = SYS_rt_sigprocmask;

	__asm__ volatile("syscall"
			 : "+a"(number)
			 : "D"(SIG_SETMASK), "S"(&all), "d"(0), "r"(size)
			 : "rcx", "r11", "memory");
#else
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
#endif
	compute();
}

static APART void wait_for_child(void)
{
	pid_t child = vfork();

	if (child == 0) {
		has_begun = true;
		syscall(SYS_nanosleep, &(struct timespec){ 2, 0 }, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void answers(void)
{
	struct stack stack;
	struct other other;
	double before;

	begin(&other, work);
	for (unsigned i = 0; i < 100; i++) {
		expect(ask(other.id, i % 2, &stack), SHIM_OK, "computing");
		if (!has(&stack, compute) || !has(&stack, work))
			printf("wrong: computing: %u frames\n", stack.count);
	}
	expect(shim_stack_snapshot(other.id, note, 0, &stack, &stack, 4096),
	       SHIM_E_INVALIDARG, "a context of another thread");
	stop_at_each(other.id, 3);
	end(&other);
	expect(ask(other.id, 0, &stack),
	       SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD, "ended");

	begin(&other, sleep_once);
	for (unsigned i = 0; i < 20; i++) {
		expect(ask(other.id, 0, &stack), SHIM_OK, "asleep");
		if (!has(&stack, sleep_once))
			printf("wrong: asleep: %u frames\n", stack.count);
	}
	end(&other);

	begin(&other, block_all);
	before = now();
	expect(ask(other.id, 0, &stack), SHIM_E_STACKSNAPSHOT_UNSAFE,
	       "blocked");
	expect(ask(other.id, 0, &stack), SHIM_E_STACKSNAPSHOT_UNSAFE,
	       "still blocked");
	expect_soon(before, 4, "blocked");
	end(&other);

	begin(&other, wait_for_child);
	before = now();
	expect(ask(other.id, 0, &stack), SHIM_E_STACKSNAPSHOT_UNSAFE, "vfork");
	expect_soon(before, 1.8, "vfork");
	end(&other);
}

/* Compiled without exception tables: calltree knows the callers. */
static APART void ask_myself(void)
{
	struct stack stack;

	expect(ask(0, 0, &stack), SHIM_OK, "without tables");
	if (!has(&stack, ask_myself) || !has(&stack, work))
		printf("wrong: without tables: %u frames\n", stack.count);
	stop_at_each(0, stack.count);
}

static void without_tables(void)
{
	struct stack stack;
	struct other other;

	begin(&other, work);
	for (unsigned i = 0; i < 20; i++) {
		expect(ask(other.id, 0, &stack), SHIM_OK, "of another");
		if (!has(&stack, compute) || !has(&stack, work))
			printf("wrong: of another: %u frames\n", stack.count);
	}
	end(&other);
	asks = true;
	work();
}

/* The threads end during the snapshot. */
static volatile unsigned ended;

QUIET static void live_shortly(void)
{
	double until = now() + ended % 16 * 20e-6;

	ended++;
	while (now() < until)
		sink += 1;
}

static void dying(void)
{
	unsigned counts[3] = { 0 };
	struct stack stack;
	double until = now() + 1;

	while (now() < until) {
		struct other other = { .work = live_shortly };
		double before = now();
		int result;

		pthread_create(&other.thread, NULL, be_other, &other);
		while (__atomic_load_n(&other.id, __ATOMIC_ACQUIRE) == 0)
			;
		result = ask(other.id, 0, &stack);
		counts[0] += result == SHIM_OK;
		counts[1] += result == SHIM_E_STACKSNAPSHOT_INVALID_TGT_THREAD;
		counts[2] += result == SHIM_E_STACKSNAPSHOT_UNSAFE;
		expect_soon(before, 2, "a thread that ends");
		pthread_join(other.thread, NULL);
	}
	printf("ok %u invalid %u unsafe %u of %u\n", counts[0], counts[1],
	       counts[2], ended);
	if (counts[0] + counts[1] + counts[2] != ended)
		printf("wrong: other results\n");
}

/* --- threads that snapshot each other --- */

static struct other pair[2];
static unsigned asked[2], good[2];

QUIET static void ask_each_other(void)
{
	unsigned me = pthread_equal(pthread_self(), pair[1].thread);
	double until = now() + 1;
	struct stack stack;

	has_begun = true;
	while (now() < until && asked[me] < 20000) {
		shim_thread id = __atomic_load_n(&pair[!me].id,
						 __ATOMIC_ACQUIRE);

		if (id == 0)
			continue;
		asked[me]++;
		good[me] += ask(id, 0, &stack) == SHIM_OK;
	}
	while (!ends)
		usleep(1000);
}

static void each_other(void)
{
	double before = now();

	begin(&pair[0], ask_each_other);
	begin(&pair[1], ask_each_other);
	while (now() < before + 1.5)
		usleep(10000);
	end(&pair[0]);
	pthread_join(pair[1].thread, NULL);
	expect_soon(before, 5, "two that ask each other");
	printf("asked %u and %u, good %u and %u\n", asked[0], asked[1], good[0],
	       good[1]);
	for (unsigned i = 0; i < 2; i++)
		if (asked[i] < 20 || good[i] < asked[i] * 9 / 10)
			printf("wrong: too few answers\n");
}

/* --- in handlers --- */

static struct other sleeper;
static int in_handler = -1, in_sample = -1, self_in_sample = -1;

QUIET static void handle_it(int signal)
{
	struct stack stack;

	(void)signal;
	in_handler = ask(sleeper.id, 0, &stack);
}

QUIET static void hit(struct shim_profiler *profiler, uintptr_t ip,
		      const void *context, uint32_t weight)
{
	struct stack stack;
	shim_thread id = 0;

	(void)profiler;
	(void)ip;
	(void)context;
	(void)weight;
	shim_thread_current(&id);
	if (id == sleeper.id || sleeper.id == 0)
		return;
	in_sample = ask(sleeper.id, 0, &stack);
	self_in_sample = ask(0, 0, &stack);
}

static void handlers(void)
{
	double until = now() + 0.3;

	begin(&sleeper, work);
	signal(SIGUSR1, handle_it);
	raise(SIGUSR1);
	expect(in_handler, SHIM_OK, "in a handler");
	while (now() < until)
		sink += 1;
	shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_NONE, 1);
	expect(in_sample, SHIM_E_STACKSNAPSHOT_UNSAFE, "in a sample");
	expect(self_in_sample, SHIM_OK, "itself in a sample");
	end(&sleeper);
}

/* --- runs of frames --- */

static unsigned zeros, told;

QUIET static int compare(const void *a, const void *b)
{
	struct stack stack;

	(void)a;
	(void)b;
	if (told != 0)
		return 0;
	expect(ask(0, SHIM_SNAPSHOT_COALESCE, &stack), SHIM_OK, "runs");
	told = stack.count;
	for (unsigned i = 0; i < stack.count && i < DEPTH; i++) {
		if (stack.functions[i] != 0)
			continue;
		zeros++;
		if (i > 0 && stack.functions[i - 1] == 0)
			printf("wrong: two runs in a row\n");
	}
	/* compare and qsort; what calls main. */
	expect((int)zeros, 2, "runs");
	if (stack.functions[0] != 0)
		printf("wrong: the first is no run\n");
	return 0;
}

static APART void sort(void)
{
	int numbers[50] = { 0 };

	qsort(numbers, 50, sizeof(int), compare);
	sink += numbers[0];
}

static void runs(void)
{
	struct other other;
	struct stack stack;

	sort();
	begin(&other, work);
	expect(ask(other.id, SHIM_SNAPSHOT_COALESCE, &stack), SHIM_OK,
	       "runs of another");
	if (stack.count != 3 || stack.functions[2] != 0 || !has(&stack, work) ||
	    !has(&stack, compute))
		printf("wrong: %u frames of another\n", stack.count);
	end(&other);
}

/* --- threads in any state --- */

QUIET static void allocate(void)
{
	has_begun = true;
	while (!ends)
		for (size_t size = 1; size < 1u << 20; size *= 2)
			free(malloc(size));
}

QUIET static void load(void)
{
	has_begun = true;
	while (!ends) {
		void *library = dlopen("libm.so.6", RTLD_NOW);

		if (!library || !dlsym(library, "cos"))
			printf("wrong: dlopen\n");
		if (library)
			dlclose(library);
	}
}

QUIET static void fork_and_execute(void)
{
	has_begun = true;
	while (!ends) {
		int status = 1;
		pid_t child = fork();

		if (child == 0) {
			execl(itself, itself, "child", (char *)NULL);
			_exit(99);
		}
		if (child < 0 || waitpid(child, &status, 0) != child ||
		    status != 0)
			printf("wrong: child %d status %x errno %d\n", child,
			       (unsigned)status, errno);
	}
}

QUIET static void print(void)
{
	char text[100];

	has_begun = true;
	while (!ends)
		snprintf(text, sizeof(text), "%d %f %s", 5, 5.5, "five");
}

QUIET static unsigned fewest(const unsigned *counts)
{
	unsigned least = counts[0];

	for (unsigned i = 1; i < 8; i++)
		least = counts[i] < least ? counts[i] : least;
	return least;
}

static void torture(double seconds)
{
	static void (*const works[])(void) = { allocate, load, fork_and_execute,
					       print };
	struct other others[8];
	unsigned counts[2][8] = { 0 };
	struct stack stack;
	double before;

	for (unsigned i = 0; i < 8; i++)
		begin(&others[i], works[i % 4]);
	before = now();
	/* On a busy machine it takes longer until all threads have answered. */
	for (unsigned i = 0; now() < before + seconds ||
			     (fewest(counts[0]) < 3 && now() < before + 40);
	     i++) {
		int result = ask(others[i % 8].id, 0, &stack);

		counts[result != SHIM_OK][i % 8]++;
		/* Lets the other threads run as well. */
		if (i % 64 == 0)
			usleep(1000);
	}
	ends = true;
	for (unsigned i = 0; i < 8; i++)
		pthread_join(others[i].thread, NULL);
	for (unsigned i = 0; i < 8; i++) {
		printf("torture ok %u not %u\n", counts[0][i], counts[1][i]);
		if (counts[0][i] < 3)
			printf("wrong: too few answers\n");
	}
}

/* The program executes another one during a snapshot of its stack. */
QUIET static void *ask_all_the_time(void *argument)
{
	struct stack stack;

	for (;;)
		ask(*(shim_thread *)argument, 0, &stack);
	return NULL;
}

static void executed(void)
{
	static shim_thread id;
	pthread_t thread;

	shim_thread_current(&id);
	pthread_create(&thread, NULL, ask_all_the_time, &id);
	usleep(20000);
	execl("/nowhere", "nowhere", (char *)NULL);
	usleep(20000);
	execl(itself, itself, "child", (char *)NULL);
}

/* Another profiler's permission does not help this one. */
static unsigned refused;

QUIET static void refuse(struct shim_profiler *profiler, shim_thread thread)
{
	struct stack stack;

	(void)profiler;
	(void)thread;
	expect(ask(0, 0, &stack), SHIM_E_INCONSISTENT_WITH_FLAGS, "no mask");
	refused++;
}

__attribute__((constructor)) static void set_up(int argc, char **argv)
{
	if (argc < 2 || !shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	expect(shim_profiler_set_event_mask(handle, SHIM_ENABLE_STACK_SNAPSHOT),
	       SHIM_OK, "mask");
	if (strcmp(argv[1], "answers") == 0)
		shim_profiler_on_thread_started(shim_profiler_create(NULL),
						refuse);
	if (strcmp(argv[1], "handlers") != 0)
		return;
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_enable_sampling(handle);
	expect(shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_REAL, 1000),
	       SHIM_OK, "mode");
}

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "";

	itself = argv[0];
	if (strcmp(wanted, "answers") == 0) {
		answers();
		if (refused < 4)
			printf("wrong: %u threads were seen\n", refused);
	}
	if (strcmp(wanted, "without_tables") == 0)
		without_tables();
	if (strcmp(wanted, "dying") == 0)
		dying();
	if (strcmp(wanted, "each") == 0)
		each_other();
	if (strcmp(wanted, "handlers") == 0)
		handlers();
	if (strcmp(wanted, "runs") == 0)
		runs();
	if (strcmp(wanted, "torture") == 0)
		torture(argc > 2 ? strtod(argv[2], NULL) : 3);
	if (strcmp(wanted, "executed") == 0)
		executed();
	if (strcmp(wanted, "child") != 0)
		printf("done\n");
	return 0;
}
