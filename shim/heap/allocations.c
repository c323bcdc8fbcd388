/*
 * Events of allocations.  A buffer keeps the calls that come before profilers are set
 * up, because shim cannot know earlier whether a profiler enables their events.
 */
#include "heap/allocations.h"

#include "heap/allocations_sampled.h"
#include "heap/heap_table.h"
#include "os/sys.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include <shim/builtin.h>
#include <shim/cpu.h>
#include <shim/record.h>

#include <shim/banned.h>

enum mode { KEEPING, RAISING, IGNORING };

static enum mode mode;
static bool is_requested, wants_all;
static uint64_t wanted_period, wanted_seed;

/* The coarse clock; a constant 0 if there is none. */
static const volatile uint64_t no_tick;
static const volatile uint64_t *tick = &no_tick;
static struct shim_allocation_counts counts;

/* --- serial numbers --- */

/* A serial number is a thread's number (from 1) multiplied by this, plus a count. */
#define SERIAL_THREAD (1ull << 40)

static __thread uint64_t next_serial;
/* The serial number of the thread's last block, or 0. */
static __thread uint64_t last_serial;
static uint64_t serial_threads;

/* A signal handler that interrupts make_serial takes the numbers of another thread, so
 * no number is used twice. */
static uint64_t make_serial(void)
{
	uint64_t serial = shim_fetch_add(&next_serial, 1);

	if (__builtin_expect(serial < SERIAL_THREAD, 0)) {
		serial = __atomic_add_fetch(&serial_threads, 1,
					    __ATOMIC_RELAXED) *
			 SERIAL_THREAD;
		next_serial = serial + 1;
	}
	return serial;
}

/* --- raising events --- */

/* False in a profiler's callbacks, slow hooks and threads, and while the loader
 * allocates memory for libraries that shim loads. */
static inline bool is_the_programs(void)
{
	const struct thread *self = thread_current;
	uint32_t state = !self	     ? 0 :
			 self->frame ? thread_get_state(self) :
				       self->state;

	return (state & THREAD_NOT_THE_PROGRAM) == 0;
}

/* The built-in profiler that has these callbacks.  It is never detached, so shim calls
 * it without a guard, which would take longer than the callback. */
static struct shim_profiler_handle *recorder;

static void find_tick(void)
{
	uint64_t length = 0;
	const volatile uint64_t *found = shim_clock_coarse(&length);

	heap_table_set_clock(length);
	if (found)
		tick = found;
}

static void find_recorder(void)
{
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (h->builtin && h->allocation)
			recorder = h;
}

#define RAISE_FAST(event, ...) \
	do { \
		if (events_counts.event > (recorder != NULL)) \
			RAISE_TO(AUDIENCE_MODULES, event, __VA_ARGS__); \
		if (recorder) \
			recorder->event(recorder->profiler, __VA_ARGS__); \
	} while (0)

static void add_one(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static bool is_attached;

/* shim does not see which blocks the program releases while shim is detached.  Entries of
 * such blocks would stay for ever, and a later block at the same address would get an entry
 * beside them. */
void allocations_attached(void)
{
	is_attached = true;
	heap_table_forget();
	sampled_forget();
}

void shim_older_release(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (meta)
		add_one(&meta->older_releases);
}

/* After an attach, the block is older, or libc allocated it by calls that shim does not
 * see then. */
static void count_unknown(void)
{
	if (is_attached)
		shim_older_release();
	else
		add_one(&counts.unknown);
}

/* A block that is not sampled is still the thread's last block. */
static bool is_wanted(size_t size)
{
	bool wanted = sampled_finds(size);

	if (!wanted)
		last_serial = 0;
	return wanted;
}

static void raise_deallocation(struct shim_block *block, uint64_t *note)
{
	block->note = note;
	RAISE_FAST(deallocation, block);
}

/* After an attach, shim does not see each release.  Where a new block begins, the one before
 * was released. */
static void end_former(uintptr_t address)
{
	struct shim_block former;
	uint64_t note;

	if (!sampled_may_have(address) ||
	    !heap_table_take(address, &former, &note))
		return;
	sampled_remove(address);
	sampled_weigh(&former);
	former.is_last = 0;
	raise_deallocation(&former, &note);
}

static inline bool add_block(struct shim_block *block, uint64_t *note)
{
	bool added;

	if (is_attached)
		end_former(block->address);
	added = heap_table_add(block, *note);
	if (added)
		sampled_add(block->address);
	else
		add_one(&counts.untold);
	last_serial = block->serial;
	return added;
}

static inline bool remove_block(uintptr_t address, struct shim_block *block,
				uint64_t *note)
{
	if (!sampled_may_have(address) ||
	    !heap_table_take(address, block, note)) {
		if (sampled_period == 0)
			count_unknown();
		return false;
	}
	sampled_remove(address);
	sampled_weigh(block);
	block->is_last = block->serial == last_serial;
	return true;
}

static void raise_allocation(uintptr_t address, size_t size, size_t alignment,
			     enum shim_allocation_kind kind)
{
	uint64_t no_word = 0;
	struct shim_block block = {
		.address = address,
		.size = size,
		.alignment = alignment,
		.kind = kind,
		.clock = *tick,
		.note = &no_word,
	};

	if (!is_wanted(size))
		return;
	block.serial = make_serial();
	sampled_weigh(&block);
	add_block(&block, &no_word);
	RAISE_FAST(allocation, &block);
}

static void raise_release(uintptr_t address)
{
	struct shim_block block;
	uint64_t note;

	if (remove_block(address, &block, &note))
		raise_deallocation(&block, &note);
}

/* A new block is sampled like any other.  If it is not sampled, only the release of the
 * old block is reported. */
static void raise_change(struct allocations_change *change, uintptr_t address,
			 size_t size)
{
	struct shim_block after = change->before;

	if (!is_wanted(size)) {
		raise_deallocation(&change->before, &change->note);
		return;
	}
	after.address = address;
	after.size = size;
	after.alignment = 0;
	after.kind = SHIM_ALLOCATION_REALLOC;
	after.clock = *tick;
	sampled_weigh(&after);
	change->before.note = &change->note;
	if (!add_block(&after, &change->note))
		after.note = &change->note;
	RAISE_FAST(reallocation, &change->before, &after);
}

/* --- calls before the decision --- */

struct kept {
	uintptr_t before, after; /* freed and new address; 0: none */
	size_t size, alignment;
	uint32_t kind;
	uint32_t is_whole;
};

#define KEPT_FIRST  256
#define KEPT_PIECES 10

static struct kept kept_first[KEPT_FIRST];
static struct kept *kept_pieces[KEPT_PIECES] = { kept_first };
static uint32_t kept_count, kept_raised;

/* The call with @number.  The pieces have 256, 256, 512, 1024 ... entries. */
static struct kept *kept_at(uint32_t number, bool make)
{
	unsigned piece = number < KEPT_FIRST ?
				 0 :
				 24 - (unsigned)__builtin_clz(number);
	uint32_t first = piece ? KEPT_FIRST << (piece - 1) : 0;
	size_t size = ((size_t)KEPT_FIRST << (piece ? piece - 1 : 0)) *
		      sizeof(struct kept);
	struct kept *entries, *none = NULL;
	void *memory;

	if (piece >= KEPT_PIECES)
		return NULL;
	entries = __atomic_load_n(&kept_pieces[piece], __ATOMIC_ACQUIRE);
	if (!entries && make && sys_map(size, &memory) == 0) {
		entries = memory;
		if (!__atomic_compare_exchange_n(
			    &kept_pieces[piece], &none, entries, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			sys_unmap(memory, size);
			entries = none;
		}
	}
	return entries ? &entries[number - first] : NULL;
}

static void keep_call(uintptr_t before, uintptr_t after, size_t size,
		      size_t alignment, enum shim_allocation_kind kind)
{
	uint32_t number;
	struct kept *kept;

	number = __atomic_load_n(&kept_count, __ATOMIC_RELAXED);
	if (number < KEPT_FIRST << (KEPT_PIECES - 1))
		number = __atomic_fetch_add(&kept_count, 1, __ATOMIC_RELAXED);
	kept = kept_at(number, true);
	if (!kept) {
		add_one(&counts.early_lost);
		return;
	}
	*kept = (struct kept){ before, after, size, alignment, kind, 0 };
	__atomic_store_n(&kept->is_whole, 1, __ATOMIC_RELEASE);
}

static void raise_kept(const struct kept *kept)
{
	struct allocations_change change;

	if (!kept->before) {
		raise_allocation(kept->after, kept->size, kept->alignment,
				 kept->kind);
		return;
	}
	if (!kept->after) {
		raise_release(kept->before);
		return;
	}
	if (remove_block(kept->before, &change.before, &change.note))
		raise_change(&change, kept->after, kept->size);
	else
		raise_allocation(kept->after, kept->size, 0, kept->kind);
}

static void raise_all_kept(void)
{
	uint32_t end = __atomic_load_n(&kept_count, __ATOMIC_ACQUIRE);

	for (; kept_raised < end; kept_raised++) {
		const struct kept *kept = kept_at(kept_raised, false);

		if (kept && __atomic_load_n(&kept->is_whole, __ATOMIC_ACQUIRE))
			raise_kept(kept);
	}
}

static enum mode get_mode(void)
{
	return __atomic_load_n(&mode, __ATOMIC_ACQUIRE);
}

static void set_mode(enum mode to)
{
	__atomic_store_n(&mode, to, __ATOMIC_RELEASE);
}

static void prepare_events(void)
{
	find_recorder();
	find_tick();
	sampled_start(wants_all ? 0 : wanted_period, wanted_seed);
}

bool allocations_wait_for_late(void)
{
	return is_requested && get_mode() == IGNORING;
}

void allocations_begin_late(void)
{
	prepare_events();
	set_mode(RAISING);
}

bool allocations_decide(bool is_last_chance)
{
	if (get_mode() == KEEPING && is_requested) {
		prepare_events();
		raise_all_kept();
		set_mode(RAISING);
		raise_all_kept();
	} else if (get_mode() == KEEPING && is_last_chance) {
		set_mode(IGNORING);
	}
	return get_mode() != KEEPING;
}

bool allocations_raise_events(void)
{
	return get_mode() == RAISING;
}

bool allocations_are_the_programs(void)
{
	return is_the_programs();
}

bool allocations_have_all_blocks(void)
{
	return allocations_raise_events() && sampled_period == 0 &&
	       !is_attached &&
	       __atomic_load_n(&counts.untold, __ATOMIC_RELAXED) == 0;
}

void allocations_complete(struct shim_block *block)
{
	block->is_last = 0;
	sampled_weigh(block);
}

/* --- reports of the wrappers --- */

void allocations_got(void *pointer, size_t size, size_t alignment,
		     enum shim_allocation_kind kind)
{
	enum mode now = get_mode();

	if (now == IGNORING || !is_the_programs())
		return;
	if (now == RAISING)
		raise_allocation((uintptr_t)pointer, size, alignment, kind);
	else
		keep_call(0, (uintptr_t)pointer, size, alignment, kind);
}

void allocations_gives(void *pointer)
{
	enum mode now = get_mode();

	heap_table_fetch((uintptr_t)pointer);
	if (now == IGNORING || !is_the_programs())
		return;
	if (now == RAISING)
		raise_release((uintptr_t)pointer);
	else
		keep_call((uintptr_t)pointer, 0, 0, 0, 0);
}

void allocations_change_begins(struct allocations_change *change, void *pointer)
{
	change->is_known = get_mode() == RAISING && is_the_programs() &&
			   remove_block((uintptr_t)pointer, &change->before,
					&change->note);
	change->before.address = (uintptr_t)pointer;
}

static void keep_changed(const struct allocations_change *change,
			 uintptr_t address, size_t size)
{
	if (is_the_programs() && (address || size == 0))
		keep_call(change->before.address, address, size, 0,
			  SHIM_ALLOCATION_REALLOC);
}

void allocations_changed(struct allocations_change *change, void *pointer,
			 size_t size)
{
	if (get_mode() == KEEPING)
		keep_changed(change, (uintptr_t)pointer, size);
	else if (!change->is_known && pointer)
		allocations_got(pointer, size, 0, SHIM_ALLOCATION_REALLOC);
	else if (change->is_known && pointer)
		raise_change(change, (uintptr_t)pointer, size);
	else if (change->is_known && size == 0)
		raise_deallocation(&change->before, &change->note);
	else if (change->is_known)
		add_block(&change->before, &change->note);
}

/* --- enabling them --- */

/* The program enables allocations before main; a module does so during its setup. */
static enum shim_result request_events(const char *function, const void *caller)
{
	if (!is_requested && !contract_is_setting_up() &&
	    (get_mode() != KEEPING || state_main_started()))
		return contract_refused(SHIM_E_CALL_ONLY_FROM_INIT, function,
					caller);
	is_requested = true;
	return SHIM_OK;
}

enum shim_result
shim_profiler_enable_allocations(struct shim_profiler_handle *handle)
{
	enum shim_result result;

	ENTRY_INIT_OF(handle);
	result = request_events(__func__, __builtin_return_address(0));
	if (result != SHIM_OK)
		return result;
	if (get_mode() == RAISING && sampled_period != 0)
		return SHIM_S_FALSE;
	wants_all = true;
	return SHIM_OK;
}

enum shim_result
shim_profiler_enable_sampled_allocations(struct shim_profiler_handle *handle,
					 uint64_t period, uint64_t seed)
{
	enum shim_result result;

	ENTRY_INIT_OF(handle);
	if (period < 2 || period > SHIM_ALLOCATION_PERIOD_MAX)
		return SHIM_E_INVALIDARG;
	result = request_events(__func__, __builtin_return_address(0));
	if (result == SHIM_OK && (!wanted_period || period < wanted_period)) {
		wanted_period = period;
		wanted_seed = seed;
	}
	return result;
}

struct unwind {
	shim_block_callback callback;
	void *client_data;
};

static int walk_blocks(void *argument)
{
	const struct unwind *walk = argument;
	uint64_t position = 0;
	struct shim_block block;

	while (heap_table_next(&position, &block)) {
		allocations_complete(&block);
		if (walk->callback(&block, walk->client_data) != SHIM_OK)
			return SHIM_S_FALSE;
	}
	return SHIM_OK;
}

enum shim_result shim_block_walk(shim_block_callback callback,
				 void *client_data)
{
	struct unwind walk = { callback, client_data };

	ENTRY_ASYNC();
	if (!callback)
		return SHIM_E_INVALIDARG;
	return (enum shim_result)events_run("of shim_block_walk", walk_blocks,
					    &walk);
}

enum shim_result
shim_get_allocation_counts(struct shim_allocation_counts *counted)
{
	ENTRY_ASYNC();
	if (!counted)
		return SHIM_E_INVALIDARG;
	*counted = counts;
	return SHIM_OK;
}
