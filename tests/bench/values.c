/*
 * What slow hooks can tell of a program's arguments and results: for
 * tests/bench/values, which reads what this writes.
 *
 *     values:FILE          counts what was had and why the rest was not
 *     values:FILE:TIMES    calls values_stop for the first TIMES calls of each
 *                          function as well, where a debugger waits
 *     values:FILE:first    asks about the arguments of each function once
 */
#include <shim/hooks.h>
#include <shim/info.h>
#include <shim/values.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define ROOM	   (1u << 16)
#define WAYS	   (SHIM_UNAVAILABLE_CODE + 1)
#define RANGES_MAX 64

/* A debugger reads this where it stops. */
struct told {
	uintptr_t function;
	int is_leave;
	uint32_t count;
	struct shim_argument_range ranges[RANGES_MAX];
};

struct tally {
	unsigned long events, inlined, values, ways[WAYS];
};

struct seen {
	uintptr_t function;
	uint32_t arguments, found, times[2];
	uint64_t took_ns; /* time of the first inquiry about its arguments */
	uint8_t has_arguments, has_result, result;
};

static struct {
	struct tally arguments, results;
	unsigned long failures, void_results;
	struct seen seen[ROOM];
	char path[4096];
	uint32_t times;
	/* time of opening debug information ahead of inquiries */
	uint64_t opening_ns;
	int is_first_only;
	int lock;
} all;

void values_stop(const struct told *told) __attribute__((noinline));

void values_stop(const struct told *told)
{
	__asm__ volatile("" : : "r"(told) : "memory");
}

static void lock(void)
{
	while (__atomic_exchange_n(&all.lock, 1, __ATOMIC_ACQUIRE))
		;
}

static void unlock(void)
{
	__atomic_store_n(&all.lock, 0, __ATOMIC_RELEASE);
}

static struct seen *find(uintptr_t function)
{
	uint32_t i = (uint32_t)(function * 0x9e3779b97f4a7c15ull >> 40);

	while (all.seen[i % ROOM].function &&
	       all.seen[i % ROOM].function != function)
		i++;
	all.seen[i % ROOM].function = function;
	return &all.seen[i % ROOM];
}

static enum shim_unavailable why(shim_elt_info info, uint32_t position)
{
	enum shim_unavailable reason = SHIM_UNAVAILABLE_CODE;

	shim_get_value_reason(info, position, &reason);
	return reason;
}

static int is_told(struct seen *seen, int is_leave)
{
	return all.times && seen->times[is_leave]++ < all.times;
}

/* The processor time of this thread, and of the processes that read debug
 * information for it: other load on the machine is not counted. */
static uint64_t now_ns(void)
{
	struct timespec now;
	struct rusage apart;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	getrusage(RUSAGE_CHILDREN, &apart);
	return (uint64_t)(now.tv_sec + apart.ru_utime.tv_sec +
			  apart.ru_stime.tv_sec) *
		       1000000000 +
	       (uint64_t)(apart.ru_utime.tv_usec + apart.ru_stime.tv_usec) *
		       1000 +
	       (uint64_t)now.tv_nsec;
}

static void entered(union shim_function_or_client function, shim_elt_info info)
{
	union {
		struct shim_argument_info info;
		unsigned char bytes[24 + 16 * RANGES_MAX];
	} buffer;
	struct told told = { .function = function.function };
	uint32_t size = sizeof(buffer), found = 0;
	int is_inlined = 0;
	uint64_t began = now_ns(), took;
	enum shim_result result;
	struct seen *seen;

	if (all.is_first_only && find(function.function)->took_ns)
		return;
	result = shim_get_function_enter3_info(function.function, info, NULL,
					       &size, &buffer.info);
	took = now_ns() - began;
	lock();
	seen = find(function.function);
	if (seen->took_ns == 0)
		seen->took_ns = took;
	unlock();
	if (result != SHIM_OK) {
		__atomic_add_fetch(&all.failures, 1, __ATOMIC_RELAXED);
		return;
	}
	told.count = buffer.info.ranges_count;
	memcpy(told.ranges, buffer.info.ranges,
	       told.count * sizeof(told.ranges[0]));
	lock();
	all.arguments.events++;
	for (uint32_t i = 0; i < told.count; i++) {
		enum shim_unavailable reason =
			told.ranges[i].start || told.ranges[i].length == 0 ?
				SHIM_AVAILABLE :
				why(info, i);

		is_inlined |= reason == SHIM_UNAVAILABLE_INLINED;
		found += reason == SHIM_AVAILABLE;
		if (!is_inlined) {
			all.arguments.values++;
			all.arguments.ways[reason]++;
		}
	}
	all.arguments.inlined += is_inlined;
	if (!is_inlined && !seen->has_arguments) {
		seen->has_arguments = 1;
		seen->arguments = told.count;
		seen->found = found;
	}
	is_inlined |= !is_told(seen, 0);
	unlock();
	if (!is_inlined && found)
		values_stop(&told);
}

static void left(union shim_function_or_client function, shim_elt_info info)
{
	struct told told = { .function = function.function,
			     .is_leave = 1,
			     .count = 1 };
	shim_frame_info frame;
	enum shim_unavailable reason;
	struct seen *seen;
	int stops = 0;

	if (all.is_first_only)
		return;
	if (shim_get_function_leave3_info(function.function, info, &frame,
					  &told.ranges[0]) != SHIM_OK) {
		__atomic_add_fetch(&all.failures, 1, __ATOMIC_RELAXED);
		return;
	}
	reason = told.ranges[0].start || told.ranges[0].length == 0 ?
			 SHIM_AVAILABLE :
			 why(info, SHIM_RESULT);
	lock();
	seen = find(function.function);
	all.results.events++;
	if (reason == SHIM_UNAVAILABLE_INLINED) {
		all.results.inlined++;
	} else if (told.ranges[0].length == 0 ||
		   reason == SHIM_UNAVAILABLE_NONE) {
		all.void_results++;
	} else {
		all.results.values++;
		all.results.ways[reason]++;
		if (!seen->has_result)
			seen->result = reason == SHIM_AVAILABLE;
		seen->has_result = 1;
		stops = reason == SHIM_AVAILABLE && is_told(seen, 1);
	}
	unlock();
	if (stops)
		values_stop(&told);
}

static void write_tally(FILE *file, const char *name, const struct tally *tally)
{
	fprintf(file, "%s %lu %lu %lu", name, tally->events, tally->inlined,
		tally->values);
	for (int i = 0; i < WAYS; i++)
		fprintf(file, " %lu", tally->ways[i]);
	fprintf(file, "\n");
}

static int by_time(const void *a, const void *b)
{
	uint64_t first = ((const struct seen *)a)->took_ns;
	uint64_t second = ((const struct seen *)b)->took_ns;

	return (first > second) - (first < second);
}

static void write_slow(FILE *file, const struct seen *seen)
{
	char name[256] = "?";

	shim_function_name(seen->function, sizeof(name), NULL, name);
	fprintf(file, "slow:%s %llu\n", name,
		(unsigned long long)seen->took_ns / 1000);
}

/* Writes the median, the maximum, and how many took longer than 2 ms. */
static void write_times(FILE *file)
{
	uint32_t first = 0, slow = 0;

	qsort(all.seen, ROOM, sizeof(all.seen[0]), by_time);
	while (first < ROOM - 1 && all.seen[first].took_ns == 0)
		first++;
	for (uint32_t i = first; i < ROOM; i++) {
		if (all.seen[i].took_ns <= 2000000)
			continue;
		slow++;
		write_slow(file, &all.seen[i]);
	}
	fprintf(file, "recipes %llu %llu %u\n",
		(unsigned long long)all.seen[(first + ROOM) / 2].took_ns / 1000,
		(unsigned long long)all.seen[ROOM - 1].took_ns / 1000, slow);
}

/* Time since the module was started: files that are opened ahead are opened in
 * between. */
static void begins(struct shim_profiler *profiler)
{
	(void)profiler;
	all.opening_ns = now_ns() - all.opening_ns;
}

static void ends(struct shim_profiler *profiler)
{
	unsigned long functions = 0, arguments = 0, found = 0, results = 0,
		      known = 0;
	FILE *file = fopen(all.path, "w");

	(void)profiler;
	if (!file)
		return;
	for (uint32_t i = 0; i < ROOM; i++) {
		const struct seen *seen = &all.seen[i];

		functions += seen->has_arguments;
		arguments += seen->arguments;
		found += seen->found;
		results += seen->has_result;
		known += seen->result;
	}
	write_tally(file, "arguments", &all.arguments);
	write_tally(file, "results", &all.results);
	fprintf(file, "functions %lu %lu %lu %lu %lu\nvoid %lu\nfailures %lu\n",
		functions, arguments, found, results, known, all.void_results,
		all.failures);
	write_times(file);
	fprintf(file, "opened %llu\n",
		(unsigned long long)all.opening_ns / 1000);
	fclose(file);
}

SHIM_PROFILER_MODULE(values)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	const char *path = strchr(description, ':');
	char *times;
	enum shim_result result;

	if (!handle || !path)
		return SHIM_E_FAIL;
	snprintf(all.path, sizeof(all.path), "%s", path + 1);
	times = strchr(all.path, ':');
	if (times) {
		*times = '\0';
		all.is_first_only = strcmp(times + 1, "first") == 0;
		all.times = (uint32_t)atoi(times + 1);
	}
	shim_profiler_enable_values(handle);
	shim_profiler_on_runtime_initialized(handle, begins);
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	all.opening_ns = now_ns();
	result = shim_profiler_set_event_mask(
		handle, SHIM_MONITOR_ENTERLEAVE | SHIM_ENABLE_FUNCTION_ARGS |
				SHIM_ENABLE_FUNCTION_RETVAL);
	if (SHIM_FAILED(result))
		return result;
	return shim_profiler_set_enter_leave_function_hooks3_with_info(
		handle, entered, left, NULL);
}
