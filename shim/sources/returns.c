/*
 * The mirror of stacks (returns.h), in chunks that are mapped as calls reach them.  Each
 * thread keeps the range of chunks around its stack pointer, so a call compares two
 * numbers.
 */
#include "sources/returns.h"

#include "arch.h"
#include "dispatch/plan.h"
#include "os/sys.h"
#include "runtime/log.h"

#include <errno.h>
#include <shim/builtin.h>
#include <shim/cpu.h>
#include <shim/record.h>

#include <shim/banned.h>

#ifdef ARCH_HAS_RETURNS

#define CHUNK_SHIFT 20 /* as in arch/.../returns.S */
#define MIRROR_SIZE (2ull << CHUNK_SHIFT)
#define HIDDEN	    __attribute__((visibility("hidden")))

/* arch/.../returns.S */
void shim_entry(void);
void shim_returned(void);
void shim_entry_kept(void);
void returns_enter_mcount(void);
void returns_count_mcount(void);
void returns_count_fentry(void);
void returns_nothing(shim_function function, const void *site, uintptr_t frame);
void returns_plan_enter(shim_function function, const void *site,
			uintptr_t frame);
void returns_plan_mcount(shim_function function, const void *site,
			 uintptr_t frame);
void returns_plan_leave(shim_function function, const void *site,
			uintptr_t frame);
void returns_plan_tailcall(shim_function function, const void *site,
			   uintptr_t frame);

/* The hooks of enter, leave and tail call. */
HIDDEN shim_frame_hook returns_hooks[3] = { returns_nothing, returns_nothing,
					    returns_nothing };

/* The hook of enter at a call of mcount. */
HIDDEN shim_frame_hook returns_hook_of_mcount = returns_nothing;

/* What arch_returned jumps to. */
HIDDEN void (*returns_leave)(void) = shim_returned;

/* An address in the chunk of the stack whose mirror this thread knows to be mapped. */
HIDDEN __thread uintptr_t returns_window;

/* --- chunks of stack whose mirror is mapped --- */

#define CHUNKS_ROOM  65536u
#define CHUNKS_MAX   (CHUNKS_ROOM / 4 * 3)
#define CHUNK_MAPPED (1ull << 32)
#define CHUNK_TAKEN  (2ull << 32) /* other memory is where its mirror would be */

/* A hash table that only grows.  An entry is the number of a chunk, then with a flag. */
static uint64_t chunks[CHUNKS_ROOM];
static uint32_t chunk_count;

static uint64_t *find_chunk(uint32_t chunk)
{
	uint32_t at = chunk * 0x9e3779b1u >> 16;

	for (;; at = (at + 1) % CHUNKS_ROOM) {
		uint64_t *place = &chunks[at];
		uint64_t found = __atomic_load_n(place, __ATOMIC_ACQUIRE);

		if (found == 0 &&
		    __atomic_load_n(&chunk_count, __ATOMIC_RELAXED) >=
			    CHUNKS_MAX)
			return NULL;
		if (found == 0 && __atomic_compare_exchange_n(
					  place, &found, chunk, false,
					  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_add_fetch(&chunk_count, 1, __ATOMIC_RELAXED);
			return place;
		}
		if ((uint32_t)found == chunk)
			return place;
	}
}

#define WAITS	10
#define WAIT_MS 1

/* Another task may have mapped the mirror, and is about to set the flag.  If no flag is set
 * after WAITS, other memory is there. */
static bool wait_for_other_task(uint64_t *place)
{
	uint64_t found = __atomic_load_n(place, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < WAITS && found >> 32 == 0; i++) {
		sys_wait((uint32_t *)place + 1, 0, WAIT_MS);
		found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	}
	if (found >> 32 == 0)
		__atomic_compare_exchange_n(place, &found, found | CHUNK_TAKEN,
					    false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	return found & CHUNK_MAPPED;
}

static enum shim_lost cause_of(int r)
{
	return r == -EPERM  ? SHIM_LOST_FORBIDDEN :
	       r == -EEXIST ? SHIM_LOST_LIMIT :
			      SHIM_LOST_MEMORY;
}

/* Signals are blocked: a handler between the mapping and the flag would find the memory taken,
 * and its call would be lost. */
static int map_mirror(uint64_t *place, uint32_t chunk)
{
	uintptr_t start = (uintptr_t)chunk << CHUNK_SHIFT;
	uint64_t signals;
	bool is_quiet = sys_block_signals(&signals) == 0;
	int r = sys_map_at((void *)ARCH_RETURNS_MIRROR(start), MIRROR_SIZE);

	if (r == 0)
		__atomic_store_n(place, chunk | CHUNK_MAPPED, __ATOMIC_RELEASE);
	if (is_quiet)
		sys_restore_signals(signals);
	return r;
}

/* Once in a process.  MemorySanitizer's own memory is where each mirror would be. */
static void say_taken(void)
{
	static bool is_said;

	if (!__atomic_exchange_n(&is_said, true, __ATOMIC_RELAXED))
		log_line(
			"%s",
			"other memory of the program, as MemorySanitizer's, is "
			"where shim would keep return addresses: calls of "
			"functions without marks at their ends are lost "
			"(compile with -finstrument-functions)");
}

static bool map_chunk(uint32_t chunk)
{
	uint64_t *place = find_chunk(chunk), found;
	int r;

	if (!place) {
		shim_record_lost(SHIM_LOST_LIMIT);
		return false;
	}
	found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
	if (found & CHUNK_MAPPED)
		return true;
	if (found & CHUNK_TAKEN) {
		shim_record_lost(SHIM_LOST_LIMIT);
		return false;
	}
	r = map_mirror(place, chunk);
	if (r == 0 || (r == -EEXIST && wait_for_other_task(place)))
		return true;
	if (r == -EEXIST)
		say_taken();
	shim_record_lost(cause_of(r));
	return false;
}

/* --- what the assembly asks --- */

bool returns_are_used(void)
{
	return __atomic_load_n(&chunk_count, __ATOMIC_RELAXED) > 0;
}

bool returns_are_possible(void)
{
	static enum { UNKNOWN, POSSIBLE, IMPOSSIBLE } answer;

	if (answer == UNKNOWN) {
		answer = sys_has_shadow_stack() ? IMPOSSIBLE : POSSIBLE;
		if (answer == IMPOSSIBLE)
			log_line(
				"%s",
				"the processor checks return addresses (shadow "
				"stack): functions without marks at their ends "
				"are recorded without their ends");
	}
	return answer == POSSIBLE;
}

enum returns_answer returns_open(uintptr_t slot)
{
	if (!returns_are_possible())
		return RETURNS_ENTER_ONLY;
	if (!map_chunk((uint32_t)(slot >> CHUNK_SHIFT)))
		return RETURNS_SKIP;
	returns_window = slot;
	return RETURNS_REPLACE;
}

/* An enter at a call of mcount, behind the code that makes the frame (recipe.c asks whether
 * that has changed argument registers). */
#define RETURNS_MCOUNT 3
/* Below the hook's frame, returns_plan_mcount has pushed the function's frame pointer. */
#define MCOUNT_FRAME_POINTER (-13)

/* arch/.../returns.S calls it for a plan. */
HIDDEN void returns_run(shim_function function, const void *site,
			uintptr_t frame, uint32_t event,
			const unsigned char *vectors, size_t step);

/* The registers that ENTER has pushed below the frame. */
static void read_entry(struct arch_entry *entry, uintptr_t frame,
		       const unsigned char *vectors, size_t step)
{
	const uintptr_t *pushed = (const uintptr_t *)frame;
	const uintptr_t integers[6] = { pushed[-5], pushed[-4], pushed[-3],
					pushed[-2], pushed[-6], pushed[-7] };

	for (unsigned i = 0; i < 6; i++)
		entry->integers[i] = integers[i];
	entry->stack = frame + 2 * sizeof(uintptr_t);
	for (unsigned i = 0; i < 8; i++)
		__builtin_memcpy(entry->vectors[i], vectors + i * step, 16);
}

/* The registers that shim_returned has pushed. */
static void read_exit(struct arch_exit *exit, uintptr_t frame,
		      const unsigned char *vectors, size_t step)
{
	const uintptr_t *pushed = (const uintptr_t *)frame;

	exit->integers[0] = pushed[0];
	exit->integers[1] = pushed[-2];
	for (unsigned i = 0; i < 2; i++)
		__builtin_memcpy(exit->vectors[i], vectors + i * step, 16);
}

void returns_run(shim_function function, const void *site, uintptr_t frame,
		 uint32_t event, const unsigned char *vectors, size_t step)
{
	struct arch_frame registers;
	union {
		struct arch_entry entry;
		struct arch_exit exit;
	} values;
	struct plan_call call;
	bool is_mcount = event == RETURNS_MCOUNT;

	if (is_mcount)
		event = PLAN_ENTER;
	registers.entry = NULL; /* tells signal handlers: not in a hook yet */
	registers.event = (uint16_t)event;
	registers.has_registers = 0;
	ARCH_FRAME_SET_NEAR(&registers,
			    event == PLAN_TAILCALL ? NULL : &values);
	if (event == PLAN_ENTER)
		read_entry(&values.entry, frame, vectors, step);
	if (is_mcount)
		values.entry.stack =
			((const uintptr_t *)frame)[MCOUNT_FRAME_POINTER] +
			2 * sizeof(uintptr_t);
	else if (event == PLAN_LEAVE)
		read_exit(&values.exit, frame, vectors, step);
	registers.function = function;
	registers.site = site;
	registers.return_address = shim_hook_caller(frame);
	call.event = event;
	call.function = function;
	call.site = site;
	call.frame = frame;
	/* As if the function had jumped to the hook at its end: the hook returns to the
	 * call site, and the frame is gone. */
	if (event != PLAN_ENTER)
		call.frame += 2 * sizeof(uintptr_t);
	call.return_address = registers.return_address;
	call.registers = &registers;
	call.target = 0;
	plan_dispatch(&call);
}

/* The end comes first, as in hook_table_point. */
void returns_route(const struct plan_route *route)
{
	static const shim_frame_hook plan[] = { returns_plan_enter,
						returns_plan_leave,
						returns_plan_tailcall };
	const shim_frame_hook direct[] = { route->enter, route->leave,
					   route->leave };

	for (unsigned event = 3; event-- > 0;)
		__atomic_store_n(&returns_hooks[event],
				 !route->is_on ? returns_nothing :
				 route->enter  ? direct[event] :
						 plan[event],
				 __ATOMIC_RELEASE);
	__atomic_store_n(&returns_hook_of_mcount,
			 !route->is_on ? returns_nothing :
			 route->enter  ? route->enter :
					 returns_plan_mcount,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&returns_leave,
			 route->is_on && route->marks ? route->marks->returned :
							shim_returned,
			 __ATOMIC_RELEASE);
}

void (*returns_entry(const struct plan_route *route))(void)
{
	return route->is_on && route->marks ? route->marks->entry : shim_entry;
}

void (*returns_entry_kept(const struct plan_route *route))(void)
{
	return route->is_on && route->marks ? route->marks->entry_kept :
					      shim_entry_kept;
}

uintptr_t returns_entry_unmarked(void)
{
	return (uintptr_t)shim_entry_kept;
}

uintptr_t returns_entry_mcount(void)
{
	return (uintptr_t)returns_enter_mcount;
}

uintptr_t returns_count_of_mcount(void)
{
	return (uintptr_t)returns_count_mcount;
}

uintptr_t returns_count_of_fentry(void)
{
	return (uintptr_t)returns_count_fentry;
}

#else

bool returns_are_used(void)
{
	return false;
}

bool returns_are_possible(void)
{
	return false;
}

enum returns_answer returns_open(uintptr_t slot)
{
	(void)slot;
	return RETURNS_SKIP;
}

void returns_route(const struct plan_route *route)
{
	(void)route;
}

void (*returns_entry(const struct plan_route *route))(void)
{
	(void)route;
	return NULL;
}

void (*returns_entry_kept(const struct plan_route *route))(void)
{
	(void)route;
	return NULL;
}

uintptr_t returns_entry_unmarked(void)
{
	return 0;
}

uintptr_t returns_entry_mcount(void)
{
	return 0;
}

uintptr_t returns_count_of_mcount(void)
{
	return 0;
}

uintptr_t returns_count_of_fentry(void)
{
	return 0;
}

#endif
