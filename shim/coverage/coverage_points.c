/*
 * Programs that count themselves, because the compiler has added counters
 * (-fsanitize-coverage).  The addresses of the counted code are in tables (clang), or
 * are the addresses of the calls (gcc).  The profiler provides the memory for the
 * counts, in its recording.
 */
#include "coverage/coverage.h"

#include "image/image.h"
#include "os/assert.h"
#include "os/sys.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <errno.h>
#include <shim/cpu.h>
#include <shim/record.h>

#include <shim/banned.h>

/* A guard consists of the number of its object, from 1 on, and its own number there. */
#define OBJECTS_MAX 255
#define GUARD_BITS  24
#define GUARD_MASK  ((1u << GUARD_BITS) - 1)

/* An object whose code calls counters or has guards. */
struct points {
	struct coverage_object *object;
	uintptr_t start, size; /* of the object; 0 with guards */
	uint64_t *counts;
	uint32_t *guards, guard_count;
};

static struct points all[OBJECTS_MAX + 1];
static uint32_t used; /* number of entries in use; all[0] stays unused */
static bool is_shared;
static uint32_t is_busy;

void coverage_forks(void)
{
	if (used)
		__atomic_store_n(&is_shared, true, __ATOMIC_RELEASE);
}

static inline void add_one(uint64_t *count)
{
	if (shim_is_single_threaded() && !is_shared)
		shim_fetch_add(count, 1);
	else
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

/* --- objects --- */

static struct coverage_object *describe(uintptr_t address)
{
	struct coverage_object *object = NULL;
	struct image_entry *image;

	image_pin();
	image = image_find(address);
	if (!image) {
		image_unpin();
		image_look_again();
		image_pin();
		image = image_find(address);
	}
	if (image)
		object = coverage_make(image, SHIM_COVERAGE_POINTS);
	else
		log_line("%s",
			 "an instrumented object is not among the images: its "
			 "counts are lost");
	image_unpin();
	return object;
}

static void log_failure(const struct coverage_object *object, int error)
{
	log_error("the counts of an object are lost: %s", object->info.path,
		  error);
}

/* Gets the memory for @count counts from the profiler.  @lines is NULL if the object
 * has a count for every four bytes. */
static uint64_t *get_counts(struct coverage_object *object,
			    const struct shim_coverage_line *lines,
			    uint64_t count)
{
	if (count > GUARD_MASK) {
		log_failure(object, -EFBIG);
		return NULL;
	}
	object->info.lines = lines;
	object->info.line_count = (uint32_t)count;
	coverage_raise_object(object);
	if (!object->info.counts)
		object->info.counts = shim_memory_map(count * sizeof(uint64_t));
	if (!object->info.counts)
		log_failure(object, -ENOMEM);
	return object->info.counts;
}

/* Only one thread at a time registers an object.  A thread or signal handler that comes
 * meanwhile does not wait: its counts are lost.  The counts of an object are lost, too,
 * when the table is full. */
static bool begin_registration(void)
{
	static bool is_logged;

	if (used < OBJECTS_MAX &&
	    !__atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE))
		return true;
	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		log_line("%s",
			 used < OBJECTS_MAX ?
				 "two threads registered instrumented objects "
				 "at once: some counts are lost" :
				 "more than 255 objects are instrumented: the "
				 "counts of the others are lost");
	return false;
}

/* Holds between begin_registration and end_registration. */
#define ASSERT_ALONE() SHIM_ASSERT(is_busy &&used < OBJECTS_MAX)

static void end_registration(void)
{
	SHIM_ASSERT(is_busy);
	__atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
}

static void publish(const struct points *points)
{
	ASSERT_ALONE();
	all[used + 1] = *points;
	__atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
}

/* --- counting by calls --- */

static struct points *find_points(uintptr_t code)
{
	uint32_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (uint32_t i = count; i > 0; i--)
		if (code - all[i].start < all[i].size)
			return &all[i];
	return NULL;
}

/* Adds the object of @code at its first call.  Without memory, the object has no
 * counts. */
static void add_object(uintptr_t code)
{
	struct points points = { .start = code & ~4095ul, .size = 4096 };
	uint64_t signals = shim_signals_block();

	if (begin_registration()) {
		points.object = describe(code);
		if (points.object) {
			points.start = points.object->start;
			points.size = points.object->size;
			points.counts = get_counts(points.object, NULL,
						   points.size / 4 + 1);
		}
		publish(&points);
		end_registration();
	}
	shim_signals_restore(signals);
}

void coverage_count_at(uintptr_t code)
{
	static struct points *last = all;
	struct points *points = __atomic_load_n(&last, __ATOMIC_RELAXED);

	if (__builtin_expect(code - points->start >= points->size, 0)) {
		if (!coverage_is_on() || state_get() != STATE_RUNNING)
			return;
		points = find_points(code);
		if (!points) {
			add_object(code);
			points = find_points(code);
		}
		if (!points)
			return;
		__atomic_store_n(&last, points, __ATOMIC_RELAXED);
	}
	if (points->counts)
		add_one(&points->counts[(code - points->start) / 4]);
}

static void points_gone(uintptr_t start, uintptr_t end)
{
	for (uint32_t i = 1; i <= used; i++)
		if (all[i].start >= start && all[i].start < end)
			all[i].size = 0;
}

SUBSCRIBE(image_went, points_gone);

/* --- counting by guards --- */

void coverage_count(uint32_t guard)
{
	const struct points *points = &all[guard >> GUARD_BITS];

	if (points->counts)
		add_one(&points->counts[guard & GUARD_MASK]);
}

/* Every source file of an object calls this for all guards of the object.  The calls
 * for the addresses follow. */
void coverage_number(uint32_t *guards, uint32_t *guards_end)
{
	struct points points = { .guards = guards };
	uint64_t count = (uint64_t)(guards_end - guards);
	uint64_t signals;

	if (!coverage_is_on() || count == 0 || count > GUARD_MASK || guards[0])
		return;
	signals = shim_signals_block();
	if (begin_registration()) {
		points.guard_count = (uint32_t)count;
		publish(&points);
		for (uint32_t i = 0; i < count; i++)
			guards[i] = used << GUARD_BITS | i;
		end_registration();
	}
	shim_signals_restore(signals);
}

/* Returns the guards that were numbered last, if they have no addresses yet. */
static struct points *find_guards(uint64_t count)
{
	for (uint32_t i = used; i > 0; i--)
		if (all[i].guard_count == count && !all[i].object)
			return &all[i];
	return NULL;
}

static struct shim_coverage_line *
read_places(const struct coverage_object *object, const uintptr_t *places,
	    uint64_t count)
{
	struct shim_coverage_line *lines = shim_memory_map(
		count * sizeof(struct shim_coverage_line));

	if (!lines)
		log_failure(object, -ENOMEM);
	for (uint64_t i = 0; lines && i < count; i++)
		lines[i].offset = (uint32_t)(places[2 * i] - object->start);
	return lines;
}

void coverage_place(const uintptr_t *places, const uintptr_t *places_end)
{
	uint64_t count = (uint64_t)(places_end - places) / 2;
	uint64_t signals = shim_signals_block();
	struct points *points = NULL;

	if (coverage_is_on() && count > 0 && begin_registration()) {
		points = find_guards(count);
		if (points)
			points->object = describe(places[0]);
		if (points && points->object) {
			struct shim_coverage_line *lines = read_places(
				points->object, places, count);

			if (lines)
				points->counts = get_counts(points->object,
							    lines, count);
		}
		end_registration();
	}
	shim_signals_restore(signals);
}
