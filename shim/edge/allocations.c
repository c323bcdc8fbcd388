/*
 * Wrappers of the allocator.  They call the next definition, which the program would
 * have called without shim, and raise events if a profiler has enabled allocations.
 *
 * Each wrapper is one load and a jump.  If no profiler has enabled allocations, GOT
 * slots bypass the wrappers (dispatch/got_slots.h).  The wrappers have libc's names, so
 * this file does not include <shim/banned.h>; it calls none of these functions.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "dispatch/got_slots.h"
#include "heap/allocations.h"
#include "module/module.h"
#include "os/lookup.h"
#include "runtime/log.h"

#include <errno.h>
#include <stdlib.h>

#define EACH(FUNCTION) \
	FUNCTION(malloc) \
	FUNCTION(calloc) \
	FUNCTION(realloc) \
	FUNCTION(reallocarray) \
	FUNCTION(free) \
	FUNCTION(posix_memalign) \
	FUNCTION(aligned_alloc) \
	FUNCTION(memalign) \
	FUNCTION(valloc) \
	FUNCTION(pvalloc)

struct allocator {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*reallocarray)(void *, size_t, size_t);
	void (*free)(void *);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
};

/* --- memory for the loader while it looks up the allocator --- */

static char early[4096] __attribute__((aligned(16)));
static size_t early_used;

static bool is_early(const void *pointer)
{
	return (uintptr_t)pointer - (uintptr_t)early < sizeof(early);
}

static void *early_malloc(size_t size)
{
	size_t at;

	if (size > sizeof(early))
		return NULL;
	size = (size + 15) & ~(size_t)15;
	at = __atomic_fetch_add(&early_used, size, __ATOMIC_RELAXED);
	return at + size <= sizeof(early) ? early + at : NULL;
}

static void *early_calloc(size_t count, size_t size)
{
	size_t all;

	return __builtin_mul_overflow(count, size, &all) ? NULL :
							   early_malloc(all);
}

static void *early_realloc(void *pointer, size_t size)
{
	(void)pointer;
	(void)size;
	return NULL;
}

static void early_free(void *pointer)
{
	(void)pointer;
}

static const struct allocator early_allocator = {
	.malloc = early_malloc,
	.calloc = early_calloc,
	.realloc = early_realloc,
	.free = early_free,
};

/* --- the next allocator --- */

static struct allocator next;
static bool found;

static void find_allocator(void)
{
	static bool resolving;

	if (__atomic_exchange_n(&resolving, true, __ATOMIC_ACQ_REL))
		return;
#define RESOLVE(name) next.name = (__typeof__(next.name))lookup_real(#name);
	EACH(RESOLVE)
#undef RESOLVE
	__atomic_store_n(&found, true, __ATOMIC_RELEASE);
}

static inline const struct allocator *next_allocator(void)
{
	if (__builtin_expect(!__atomic_load_n(&found, __ATOMIC_ACQUIRE), 0))
		find_allocator();
	return __builtin_expect(found, 1) ? &next : &early_allocator;
}

/* --- calls that raise events --- */

/* The frame that has called the next allocator; 0 outside of calls.  Calls from frames
 * below come from the allocator itself and raise no events. */
static __thread uintptr_t frame_of_next;

#define HERE	    ((uintptr_t)__builtin_frame_address(0))
#define IS_INSIDE() (HERE < frame_of_next)

#define CALL_NEXT(call) \
	({ \
		uintptr_t outer_ = frame_of_next; \
		__typeof__(next_allocator()->call) result_; \
\
		frame_of_next = HERE; \
		result_ = next_allocator()->call; \
		frame_of_next = outer_; \
		result_; \
	})

static void *report_got(void *pointer, size_t size, size_t alignment,
			enum shim_allocation_kind kind)
{
	if (pointer && !IS_INSIDE() && !is_early(pointer))
		allocations_got(pointer, size, alignment, kind);
	return pointer;
}

static void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

/* The code of operator new, and of operator new with an alignment; new[] calls these
 * two. */
static struct {
	uintptr_t low, size;
} news[2];

#define CALLER	      ((uintptr_t)__builtin_return_address(0))
#define IS_NEW(which) (CALLER - news[which].low < news[which].size)

static void *watched_malloc(size_t size)
{
	return report_got(CALL_NEXT(malloc(size)), size, 0,
			  __builtin_expect(IS_NEW(0), 0) ?
				  SHIM_ALLOCATION_NEW :
				  SHIM_ALLOCATION_MALLOC);
}

/* If the product overflows, the allocator has returned NULL, and the size is not used. */
static void *watched_calloc(size_t count, size_t size)
{
	return report_got(CALL_NEXT(calloc(count, size)), count * size, 0,
			  SHIM_ALLOCATION_CALLOC);
}

static void *watched_realloc(void *pointer, size_t size)
{
	struct allocations_change change;
	void *moved;

	if (!pointer)
		return report_got(CALL_NEXT(realloc(NULL, size)), size, 0,
				  SHIM_ALLOCATION_REALLOC);
	if (is_early(pointer))
		return no_memory();
	if (IS_INSIDE())
		return next_allocator()->realloc(pointer, size);
	allocations_change_begins(&change, pointer);
	moved = CALL_NEXT(realloc(pointer, size));
	allocations_changed(&change, moved, size);
	return moved;
}

/* Does not call the allocator's reallocarray, because it may call realloc through the
 * wrapper or directly. */
static void *watched_reallocarray(void *pointer, size_t count, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(count, size, &all))
		return no_memory();
	return watched_realloc(pointer, all);
}

static void watched_free(void *pointer)
{
	if (!pointer || is_early(pointer))
		return;
	if (!IS_INSIDE()) {
		uintptr_t outer = frame_of_next;

		allocations_gives(pointer);
		frame_of_next = HERE;
		next_allocator()->free(pointer);
		frame_of_next = outer;
	} else {
		next_allocator()->free(pointer);
	}
}

static int watched_posix_memalign(void **pointer, size_t alignment, size_t size)
{
	int result = next_allocator()->posix_memalign ?
			     CALL_NEXT(
				     posix_memalign(pointer, alignment, size)) :
			     ENOMEM;

	if (result == 0)
		report_got(*pointer, size, alignment, SHIM_ALLOCATION_ALIGNED);
	return result;
}

#define WATCHED_ALIGNED(name) \
	static void *watched_##name(size_t alignment, size_t size) \
	{ \
		return next_allocator()->name ? \
			       report_got(CALL_NEXT(name(alignment, size)), \
					  size, alignment, \
					  IS_NEW(1) ? \
						  SHIM_ALLOCATION_NEW : \
						  SHIM_ALLOCATION_ALIGNED) : \
			       no_memory(); \
	}

WATCHED_ALIGNED(aligned_alloc)
WATCHED_ALIGNED(memalign)

#define WATCHED_PAGES(name) \
	static void *watched_##name(size_t size) \
	{ \
		return next_allocator()->name ? \
			       report_got(CALL_NEXT(name(size)), size, 4096, \
					  SHIM_ALLOCATION_ALIGNED) : \
			       no_memory(); \
	}

WATCHED_PAGES(valloc)
WATCHED_PAGES(pvalloc)

/* --- the wrappers: each jumps through this table --- */

static struct allocator active = {
#define BEGIN(name) .name = watched_##name,
	EACH(BEGIN)
#undef BEGIN
};

EDGE void *malloc(size_t size)
{
	return active.malloc(size);
}

EDGE void *calloc(size_t count, size_t size)
{
	return active.calloc(count, size);
}

EDGE void *realloc(void *pointer, size_t size)
{
	return active.realloc(pointer, size);
}

EDGE void *reallocarray(void *pointer, size_t count, size_t size)
{
	return active.reallocarray(pointer, count, size);
}

EDGE void free(void *pointer)
{
	active.free(pointer);
}

EDGE int posix_memalign(void **pointer, size_t alignment, size_t size)
{
	return active.posix_memalign(pointer, alignment, size);
}

EDGE void *aligned_alloc(size_t alignment, size_t size)
{
	return active.aligned_alloc(alignment, size);
}

EDGE void *memalign(size_t alignment, size_t size);

void *memalign(size_t alignment, size_t size)
{
	return active.memalign(alignment, size);
}

EDGE void *valloc(size_t size)
{
	return active.valloc(size);
}

EDGE void *pvalloc(size_t size);

void *pvalloc(size_t size)
{
	return active.pvalloc(size);
}

/* --- whether they raise events --- */

static bool is_first_malloc(void)
{
	if (lookup_was_attached())
		return lookup_first("malloc") == lookup_libc("malloc");
	return lookup_first("malloc") == (void *)malloc;
}

static void find_news(void)
{
	static const char *const names[] = { "_Znwm", "_ZnwmSt11align_val_t" };

	for (unsigned i = 0; i < 2; i++) {
		size_t size;
		void *function = lookup_first_sized(names[i], &size);

		if (!function)
			continue;
		news[i].low = (uintptr_t)function;
		news[i].size = size;
	}
}

static void bypass_wrappers(void)
{
	struct got_slots_function functions[SLOTS_FUNCTIONS] = { 0 };
	unsigned count = 0;

	/* free() of the early memory must not reach the allocator. */
	if (next_allocator() == &early_allocator || early_used)
		return;
#define PASS(name) \
	functions[count++] = (struct got_slots_function){ #name, (void *)name, \
							  (void *)next.name }; \
	if (next.name) \
		__atomic_store_n(&active.name, next.name, __ATOMIC_RELEASE);
	EACH(PASS)
#undef PASS
	got_slots_bypass(SLOTS_ALLOCATIONS, functions, is_first_malloc());
}

/* Points GOT slots at the wrappers again. */
static void use_wrappers(void)
{
	struct got_slots_function functions[SLOTS_FUNCTIONS] = { 0 };
	unsigned count = 0;

#define OPEN(name) \
	functions[count++] = (struct got_slots_function){ #name, (void *)name, \
							  (void *)name }; \
	__atomic_store_n(&active.name, watched_##name, __ATOMIC_RELEASE);
	EACH(OPEN)
#undef OPEN
	got_slots_bypass(SLOTS_ALLOCATIONS, functions, is_first_malloc());
}

static void prepare_events(void)
{
	find_news();
	if (!is_first_malloc())
		log_line("%s",
			 "the program has its own malloc: shim does not record "
			 "its allocations");
}

void edge_allocations_decide(bool is_last_chance)
{
	static bool decided;

	if (decided || !allocations_decide(is_last_chance))
		return;
	decided = true;
	if (!allocations_raise_events()) {
		bypass_wrappers();
		return;
	}
	got_slots_use_wrappers(SLOTS_ALLOCATIONS);
	prepare_events();
}

/* The wrappers come first.  Until the last step, a call may raise its event or not. */
static void begin_late(void)
{
	if (!allocations_wait_for_late())
		return;
	use_wrappers();
	prepare_events();
	allocations_begin_late();
}

SUBSCRIBE(module_attached, begin_late);

void edge_allocations_resolve(void)
{
	next_allocator();
}
