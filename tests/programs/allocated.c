/*
 * A program that checks its own allocation callbacks: allocated CASE.  It knows what it
 * allocates, prints differences ("wrong: ..."), and at the end "told ALLOCATIONS BYTES
 * RELEASES CHANGES live BLOCKS".
 *
 * It uses no stdio: libc's allocations would raise callbacks, too.
 */
#define _GNU_SOURCE
#include "truth.h"
#include "slot.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <shim/allocations.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_enable_allocations
#pragma weak shim_profiler_enable_sampled_allocations
#pragma weak shim_profiler_on_allocation
#pragma weak shim_profiler_on_deallocation
#pragma weak shim_profiler_on_reallocation
#pragma weak shim_block_walk
#pragma weak shim_get_allocation_counts

static struct shim_profiler_handle *handle;
static const char *loaded;
/* The library whose malloc the program would call without shim. */
static const char *behind = "libc.so";

/* --- the callbacks --- */

enum what { NOTHING, ALLOCATION, RELEASE, REALLOCATION };

struct told {
	enum what what;
	struct shim_block block, before;
};

#define TOLD_MAX 65536

static struct told told[TOLD_MAX];
static unsigned told_count;
static bool callback_allocates;
static unsigned long allocations, bytes, releases, changes;

QUIET static void wrong(const char *text, long number)
{
	char line[200];

	snprintf(line, sizeof(line), "wrong: %s (%ld)\n", text, number);
	print_text(line);
}

#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition))                                              \
			wrong(#condition, __LINE__);                           \
	} while (0)

QUIET static void note(enum what what, const struct shim_block *block,
		       const struct shim_block *before)
{
	unsigned at = __atomic_fetch_add(&told_count, 1, __ATOMIC_RELAXED);

	if (at >= TOLD_MAX)
		return;
	told[at].what = what;
	told[at].block = *block;
	if (before)
		told[at].before = *before;
}

QUIET static void on_allocation(struct shim_profiler *profiler,
				const struct shim_block *block)
{
	(void)profiler;
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&bytes, block->size, __ATOMIC_RELAXED);
	note(ALLOCATION, block, NULL);
	if (callback_allocates)
		free(malloc(100));
	errno = EXDEV;	/* the program must not see this value */
}

QUIET static void on_deallocation(struct shim_profiler *profiler,
			     const struct shim_block *block)
{
	(void)profiler;
	__atomic_add_fetch(&releases, 1, __ATOMIC_RELAXED);
	note(RELEASE, block, NULL);
	if (callback_allocates)
		free(malloc(100));
	errno = EXDEV;
}

QUIET static void on_reallocation(struct shim_profiler *profiler,
				  const struct shim_block *before,
				  const struct shim_block *after)
{
	(void)profiler;
	__atomic_add_fetch(&changes, 1, __ATOMIC_RELAXED);
	note(REALLOCATION, after, before);
	errno = EXDEV;
}

/* Takes the next callback, which must be of that kind. */
static unsigned looked_at;

QUIET static struct told *next(enum what what, long line)
{
	static struct told none;

	if (looked_at >= told_count) {
		wrong("nothing was told", line);
		return &none;
	}
	if (told[looked_at].what != what)
		wrong("another thing was told", line);
	return &told[looked_at++];
}

QUIET static void nothing(long line)
{
	if (looked_at != told_count)
		wrong("something was told", line);
	looked_at = told_count;
}

#define NEXT(what) next(what, __LINE__)
#define NOTHING_MORE() nothing(__LINE__)

QUIET static void got(void *pointer, size_t size, size_t alignment,
		      uint32_t kind, long line)
{
	struct told *last = next(ALLOCATION, line);

	if (last->block.address != (uintptr_t)pointer ||
	    last->block.size != size || last->block.alignment != alignment ||
	    last->block.kind != kind || last->block.serial == 0)
		wrong("the block is another", line);
}

QUIET static void gave(void *pointer, size_t size, long line)
{
	struct told *last = next(RELEASE, line);

	if (last->block.address != (uintptr_t)pointer ||
	    last->block.size != size)
		wrong("the block is another", line);
}

/* Keeps the compiler from removing calls of malloc. */
static void *volatile keep;

#define GOT(pointer, size, alignment, kind)                                    \
	got(pointer, size, alignment, SHIM_ALLOCATION_##kind, __LINE__)
#define FREE(pointer, size)                                                    \
	do {                                                                   \
		void *volatile freed_ = (pointer);                             \
		free(freed_);                                                  \
		gave(freed_, size, __LINE__);                                  \
	} while (0)

/* --- cases --- */

static void family(void)
{
	void *a, *b;
	int result;

	errno = 0;
	a = keep = malloc(10);
	GOT(a, 10, 0, MALLOC);
	b = keep = calloc(3, 7);
	GOT(b, 21, 0, CALLOC);
	FREE(a, 10);
	FREE(b, 21);
	a = keep = realloc(NULL, 33);
	GOT(a, 33, 0, REALLOC);
	FREE(a, 33);
	a = keep = reallocarray(NULL, 5, 9);
	GOT(a, 45, 0, REALLOC);
	FREE(a, 45);
	result = posix_memalign(&a, 256, 100);
	EXPECT(result == 0 && (uintptr_t)a % 256 == 0);
	GOT(a, 100, 256, ALIGNED);
	FREE(a, 100);
	a = keep = aligned_alloc(64, 128);
	GOT(a, 128, 64, ALIGNED);
	FREE(a, 128);
	a = keep = memalign(32, 7);
	GOT(a, 7, 32, ALIGNED);
	FREE(a, 7);
	a = keep = valloc(5);
	GOT(a, 5, 4096, ALIGNED);
	FREE(a, 5);
	a = keep = pvalloc(5);
	GOT(a, 5, 4096, ALIGNED);
	FREE(a, 5);
	a = keep = malloc(0);
	GOT(a, 0, 0, MALLOC);
	FREE(a, 0);
	a = keep = strdup("some text");
	GOT(a, 10, 0, MALLOC);
	FREE(a, 10);
	free(NULL);
	NOTHING_MORE();
	EXPECT(errno == 0);
}

static void changed(void)
{
	struct told *last;
	uint64_t serial;
	void *a, *b, *c;

	a = keep = malloc(100);
	GOT(a, 100, 0, MALLOC);
	serial = told[told_count - 1].block.serial;
	b = keep = realloc(a, 101);	/* in place */
	EXPECT(a == b);
	last = NEXT(REALLOCATION);
	EXPECT(last->before.address == (uintptr_t)b && last->before.size == 100);
	EXPECT(last->block.address == (uintptr_t)b && last->block.size == 101);
	EXPECT(last->before.serial == serial && last->block.serial == serial);
	EXPECT(last->block.kind == SHIM_ALLOCATION_REALLOC);
	c = keep = malloc(100);		/* in its way */
	GOT(c, 100, 0, MALLOC);
	EXPECT(told[told_count - 1].block.serial != serial);
	a = keep = realloc(b, 100000);
	EXPECT(a != b);
	last = NEXT(REALLOCATION);
	EXPECT(last->before.address == (uintptr_t)b && last->before.size == 101);
	EXPECT(last->block.address == (uintptr_t)a);
	EXPECT(last->block.size == 100000 && last->block.serial == serial);
	b = keep = reallocarray(a, 100, 3);
	last = NEXT(REALLOCATION);
	EXPECT(last->block.size == 300 && last->block.serial == serial);
	EXPECT(realloc(b, 0) == NULL);
	last = NEXT(RELEASE);
	EXPECT(last->block.serial == serial && last->block.size == 300);
	FREE(c, 100);
	/* The same address becomes another block. */
	for (int i = 0; i < 100; i++) {
		a = keep = malloc(24);
		GOT(a, 24, 0, MALLOC);
		EXPECT(told[told_count - 1].block.serial != serial);
		serial = told[told_count - 1].block.serial;
		FREE(a, 24);
		EXPECT(told[told_count - 1].block.serial == serial);
	}
	NOTHING_MORE();
}

static void failing(void)
{
	volatile size_t too_much = (size_t)1 << 62;
	void *a, *b = &b;

	a = keep = malloc(10);
	GOT(a, 10, 0, MALLOC);
	errno = 0;
	EXPECT(malloc(too_much) == NULL && errno == ENOMEM);
	errno = 0;
	EXPECT(calloc(too_much, 16) == NULL && errno == ENOMEM);
	errno = 0;
	EXPECT(realloc(keep, too_much) == NULL && errno == ENOMEM);
	errno = 0;
	keep = a;
	EXPECT(reallocarray(keep, too_much, 16) == NULL && errno == ENOMEM);
	errno = 0;
	EXPECT(posix_memalign(&b, 24, 10) == EINVAL && b == &b && errno == 0);
	EXPECT(posix_memalign(&b, 64, too_much) == ENOMEM);
	EXPECT(aligned_alloc(64, too_much) == NULL);
	NOTHING_MORE();
	FREE(keep, 10);
}

static void inside(void)
{
	void *a;

	callback_allocates = true;
	a = keep = malloc(10);
	EXPECT(strstr(called_object(), "libshim"));
	GOT(a, 10, 0, MALLOC);
	FREE(a, 10);
	callback_allocates = false;
	NOTHING_MORE();
}

/* 8 threads pass blocks around, so that each block is freed by another thread. */
#define PASSED 20000
#define THREADS 8

static void *volatile box[64];

static void *pass(void *argument)
{
	unsigned random = (unsigned)(uintptr_t)argument * 7919;

	for (int i = 0; i < PASSED; i++) {
		void *mine = malloc(1 + i % 500), *other;

		random = random * 1103515245 + 12345;
		other = __atomic_exchange_n(&box[random >> 8 & 63], mine,
					    __ATOMIC_ACQ_REL);
		if (i % 3 == 0)
			other = realloc(other, 1 + i % 700);
		free(other);
	}
	return NULL;
}

static void threads(void)
{
	unsigned long before = allocations - releases;
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, pass, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 64; i++)
		free(box[i]);
	/* libc keeps some blocks for later threads: it frees no more than it
	 * allocated. */
	EXPECT(allocations - releases - before < 3 * THREADS);
	EXPECT(allocations >= PASSED * THREADS);
}

static void *churn(void *argument)
{
	while (!*(volatile bool *)argument)
		free(malloc(100));
	return NULL;
}

static void forks(void)
{
	static bool stop;
	pthread_t thread[3];
	void *volatile a = malloc(77);

	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, churn, &stop);
	for (int i = 0; i < 200; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			unsigned long gone = releases, more = allocations;

			for (int k = 0; k < 100; k++)
				free(malloc(50));
			free(a);
			if (releases != gone + 101) wrong("releases", (long)(releases - gone));
			EXPECT(allocations == more + 100);
			_exit(0);
		}
		EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	}
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	free(a);
}

/* Not while the allocator runs: programs must not allocate in a handler then,
 * either. */
static volatile sig_atomic_t in_allocator, handled;

static void in_handler(int signal_)
{
	(void)signal_;
	if (in_allocator)
		return;
	free(malloc(200));
	handled++;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = in_handler };

	sigaction(SIGALRM, &action, NULL);
	ualarm(500, 500);
	while (handled < 100) {
		void *volatile a;

		in_allocator = 1;
		a = malloc(10);
		in_allocator = 0;
		for (volatile int i = 0; i < 1000; i++)
			;
		in_allocator = 1;
		free(a);
		in_allocator = 0;
	}
	ualarm(0, 0);
	EXPECT(allocations - releases == 0);
}

QUIET static enum shim_result in_walk(const struct shim_block *block,
				      void *data)
{
	unsigned *left = data;

	EXPECT(block->size == 1000 || *left > 1000);
	return --*left == 0 ? SHIM_E_FAIL : SHIM_OK;
}

/* Row C-4. */
static void walk(void)
{
	struct shim_allocation_counts counts;
	unsigned left = 1u << 30;
	void *block[100];

	shim_block_walk(in_walk, &left);
	EXPECT(left == 1u << 30);
	for (int i = 0; i < 100; i++)
		block[i] = malloc(1000);
	for (int i = 0; i < 2; i++) {
		left = 10;
		EXPECT(shim_block_walk(in_walk, &left) == SHIM_S_FALSE);
		EXPECT(left == 0);
	}
	left = 1000;
	EXPECT(shim_block_walk(in_walk, &left) == SHIM_OK);
	EXPECT(left == 900);
	EXPECT(shim_block_walk(NULL, &left) == SHIM_E_INVALIDARG);
	for (int i = 0; i < 100; i++)
		free(block[i]);
	EXPECT(shim_get_allocation_counts(&counts) == SHIM_OK);
	EXPECT(counts.untold == 0 && counts.early_lost == 0);
	EXPECT(shim_profiler_enable_allocations(handle) ==
	       SHIM_E_CALL_ONLY_FROM_INIT);
	EXPECT(shim_profiler_enable_sampled_allocations(handle, 4096, 1) ==
	       SHIM_E_CALL_ONLY_FROM_INIT);
}

static void many(void)
{
	static void *block[300000];

	for (int i = 0; i < 300000; i++)
		block[i] = malloc(16 + i % 100);
	EXPECT(allocations >= 300000);
	for (int i = 0; i < 300000; i += 2)
		free(block[i]);
	for (int i = 0; i < 300000; i += 2)
		block[i] = realloc(block[i + 1], 8);
	EXPECT(changes == 150000);
	for (int i = 0; i < 300000; i += 2)
		free(block[i]);
	EXPECT(releases == 300000);
}

static void unheard(void)
{
	const char *(*called_by_it)(void);
	void *library;

	EXPECT(strstr(called_object(), behind));
	if (loaded) {	/* allocated when the result is already decided */
		library = dlopen(loaded, RTLD_NOW);
		called_by_it = (const char *(*)(void))dlsym(library, "called");
		EXPECT(strstr(called_by_it(), behind));
	}
	EXPECT(allocations == 0);
	free(malloc(10));
	EXPECT(allocations == 0 && releases == 0);
	EXPECT(shim_profiler_enable_allocations(handle) ==
	       SHIM_E_CALL_ONLY_FROM_INIT);
}

/* Runs until the very end of the process. */
static void at_exit(void)
{
	free(malloc(1234));
	EXPECT(told[told_count - 1].what == RELEASE);
	EXPECT(told[told_count - 1].block.size == 1234);
	print_text("exit handler\n");
}

static void *late;

static void ending(void)
{
	struct shim_block *block = NULL;

	for (unsigned i = 0; i < told_count; i++)
		if (told[i].block.size == 54321)
			block = &told[i].block;
	EXPECT(block && (void *)block->address == late);
	FREE(late, 54321);
	atexit(at_exit);
}

__attribute__((destructor)) static void last(void)
{
	char line[200];

	free(malloc(4321));
	snprintf(line, sizeof(line), "told %lu %lu %lu %lu live %ld\n",
		 allocations, bytes, releases, changes,
		 (long)(allocations - releases));
	print_text(line);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "family", family },	{ "changed", changed }, { "failing", failing },
	{ "inside", inside },	{ "threads", threads }, { "forks", forks },
	{ "signals", signals }, { "walk", walk },	{ "many", many },
	{ "unheard", unheard }, { "ending", ending },
};

__attribute__((constructor)) static void first(int count, char **arguments)
{
	bool is_heard = count < 2 || strcmp(arguments[1], "unheard");

	if (!shim_profiler_create)
		return;
	if (count > 1 && !strcmp(arguments[1], "ending"))
		late = malloc(54321);	/* before any profiler has enabled allocation events */
	handle = shim_profiler_create(NULL);
	EXPECT(shim_profiler_enable_allocations(NULL) == SHIM_E_INVALIDARG);
	EXPECT(shim_profiler_enable_sampled_allocations(NULL, 4096, 1) ==
	       SHIM_E_INVALIDARG);
	EXPECT(shim_profiler_enable_sampled_allocations(handle, 1, 1) ==
	       SHIM_E_INVALIDARG);
	EXPECT(shim_profiler_enable_sampled_allocations(
		       handle, SHIM_ALLOCATION_PERIOD_MAX + 1, 1) ==
	       SHIM_E_INVALIDARG);
	/* A profiler that asks for all allocations gets them. */
	if (is_heard)
		EXPECT(shim_profiler_enable_sampled_allocations(handle, 4096,
								1) == SHIM_OK);
	if (is_heard)
		EXPECT(shim_profiler_enable_allocations(handle) == SHIM_OK &&
		       shim_profiler_enable_allocations(handle) == SHIM_OK);
	shim_profiler_on_allocation(handle, on_allocation);
	shim_profiler_on_deallocation(handle, on_deallocation);
	shim_profiler_on_reallocation(handle, on_reallocation);
}

int main(int count, char **arguments)
{
	if (count > 2)
		behind = arguments[2];
	if (count > 3)
		loaded = arguments[3];
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (count < 2 || strcmp(cases[i].name, arguments[1]))
			continue;
		looked_at = told_count;
		cases[i].run();
		if (!strcmp(arguments[1], "ending"))
			return 0;
		fflush(stdout);
		_exit(0);
	}
	return 2;
}
