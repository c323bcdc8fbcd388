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

static void resolve(void)
{
	static bool resolving;

	if (__atomic_exchange_n(&resolving, true, __ATOMIC_ACQ_REL))
		return;
#define RESOLVE(name) next.name = (__typeof__(next.name))lookup_real(#name);
	EACH(RESOLVE)
#undef RESOLVE
	__atomic_store_n(&found, true, __ATOMIC_RELEASE);
}

static inline const struct allocator *behind(void)
{
	if (__builtin_expect(!__atomic_load_n(&found, __ATOMIC_ACQUIRE), 0))
		resolve();
	return __builtin_expect(found, 1) ? &next : &early_allocator;
}

/* --- calls that raise events --- */

/* The frame that called the next allocator; 0 outside of calls.  Calls from frames
 * below it come from the allocator itself and raise no events. */
static __thread uintptr_t inside;

#define HERE	    ((uintptr_t)__builtin_frame_address(0))
#define IS_INSIDE() (HERE < inside)

#define BEHIND(call) \
	({ \
		uintptr_t outer_ = inside; \
		__typeof__(behind()->call) result_; \
\
		inside = HERE; \
		result_ = behind()->call; \
		inside = outer_; \
		result_; \
	})

static void *got(void *pointer, size_t size, size_t alignment,
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

/* The code of operator new, and of the one with an alignment; new[] calls them. */
static struct {
	uintptr_t low, size;
} news[2];

#define CALLER	      ((uintptr_t)__builtin_return_address(0))
#define IS_NEW(which) (CALLER - news[which].low < news[which].size)

static void *told_malloc(size_t size)
{
	return got(BEHIND(malloc(size)), size, 0,
		   __builtin_expect(IS_NEW(0), 0) ? SHIM_ALLOCATION_NEW :
						    SHIM_ALLOCATION_MALLOC);
}

/* The product does not overflow: the allocator would have returned NULL. */
static void *told_calloc(size_t count, size_t size)
{
	return got(BEHIND(calloc(count, size)), count * size, 0,
		   SHIM_ALLOCATION_CALLOC);
}

static void *told_realloc(void *pointer, size_t size)
{
	struct allocations_change change;
	void *moved;

	if (!pointer)
		return got(BEHIND(realloc(NULL, size)), size, 0,
			   SHIM_ALLOCATION_REALLOC);
	if (is_early(pointer))
		return no_memory();
	if (IS_INSIDE())
		return behind()->realloc(pointer, size);
	allocations_change_begins(&change, pointer);
	moved = BEHIND(realloc(pointer, size));
	allocations_changed(&change, moved, size);
	return moved;
}

/* Avoids the allocator's own function: it may call realloc through a wrapper or
 * directly. */
static void *told_reallocarray(void *pointer, size_t count, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(count, size, &all))
		return no_memory();
	return told_realloc(pointer, all);
}

static void told_free(void *pointer)
{
	if (!pointer || is_early(pointer))
		return;
	if (!IS_INSIDE()) {
		uintptr_t outer = inside;

		allocations_gives(pointer);
		inside = HERE;
		behind()->free(pointer);
		inside = outer;
	} else {
		behind()->free(pointer);
	}
}

static int told_posix_memalign(void **pointer, size_t alignment, size_t size)
{
	int result = behind()->posix_memalign ?
			     BEHIND(posix_memalign(pointer, alignment, size)) :
			     ENOMEM;

	if (result == 0)
		got(*pointer, size, alignment, SHIM_ALLOCATION_ALIGNED);
	return result;
}

#define TOLD_ALIGNED(name) \
	static void *told_##name(size_t alignment, size_t size) \
	{ \
		return behind()->name ? \
			       got(BEHIND(name(alignment, size)), size, \
				   alignment, \
				   IS_NEW(1) ? SHIM_ALLOCATION_NEW : \
					       SHIM_ALLOCATION_ALIGNED) : \
			       no_memory(); \
	}

TOLD_ALIGNED(aligned_alloc)
TOLD_ALIGNED(memalign)

#define TOLD_PAGES(name) \
	static void *told_##name(size_t size) \
	{ \
		return behind()->name ? got(BEHIND(name(size)), size, 4096, \
					    SHIM_ALLOCATION_ALIGNED) : \
					no_memory(); \
	}

TOLD_PAGES(valloc)
TOLD_PAGES(pvalloc)

/* --- the wrappers: each jumps through this table --- */

static struct allocator active = {
#define BEGIN(name) .name = told_##name,
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

static void pass_by(void)
{
	struct got_slots_function functions[SLOTS_FUNCTIONS] = { 0 };
	unsigned count = 0;

	/* free() of the early memory must not reach the allocator. */
	if (behind() == &early_allocator || early_used)
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

/* GOT slots lead to the wrappers again. */
static void open_doors(void)
{
	struct got_slots_function functions[SLOTS_FUNCTIONS] = { 0 };
	unsigned count = 0;

#define OPEN(name) \
	functions[count++] = (struct got_slots_function){ #name, (void *)name, \
							  (void *)name }; \
	__atomic_store_n(&active.name, told_##name, __ATOMIC_RELEASE);
	EACH(OPEN)
#undef OPEN
	got_slots_bypass(SLOTS_ALLOCATIONS, functions, is_first_malloc());
}

static void get_ready(void)
{
	find_news();
	if (!is_first_malloc())
		log_line("%s",
			 "the program has a malloc of its own: its allocations "
			 "are not recorded");
}

void edge_allocations_decide(bool is_last_chance)
{
	static bool decided;

	if (decided || !allocations_decide(is_last_chance))
		return;
	decided = true;
	if (!allocations_raise_events()) {
		pass_by();
		return;
	}
	got_slots_use_wrappers(SLOTS_ALLOCATIONS);
	get_ready();
}

/* The wrappers come first: from here on a call may raise its event or not. */
static void begin_late(void)
{
	if (!allocations_wait_for_late())
		return;
	open_doors();
	get_ready();
	allocations_begin_late();
}

SUBSCRIBE(module_attached, begin_late);

void edge_allocations_resolve(void)
{
	behind();
}
