/*
 * The answers of filters and mappers, by function.  A lookup is one hash and takes no
 * lock.  Each slot has an age.  An answer with another age is invalid, so a new filter
 * needs no walk through the table.
 */
#include "dispatch/filter_cache.h"

#include "dispatch/call_sites.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include <shim/builtin.h>
#include <shim/record.h>

#include <shim/banned.h>

struct slot {
	struct shim_profiler_handle *handle; /* NULL: free */
	bool is_filter;
	uint16_t age; /* the age of valid answers */
};

static struct slot slots[FILTER_SLOTS];
uint32_t filter_cache_version = 1;

struct filter_cache_map *filter_cache_map;
static int single_filter = -1, single_mapper = -1;

/* --- slots --- */

static void invalidate_slot(int slot)
{
	if (++slots[slot].age == 0)
		slots[slot].age = 1;
	__atomic_add_fetch(&filter_cache_version, 1, __ATOMIC_ACQ_REL);
	call_sites_unfilter_all();
}

int filter_cache_claim_slot(struct shim_profiler_handle *handle, bool is_filter)
{
	ASSERT_LOCKED();
	for (int i = 0; i < FILTER_SLOTS; i++) {
		if (slots[i].handle)
			continue;
		slots[i].is_filter = is_filter;
		invalidate_slot(i);
		__atomic_store_n(&slots[i].handle, handle, __ATOMIC_RELEASE);
		return i;
	}
	return -1;
}

void filter_cache_release_slot(int slot)
{
	ASSERT_LOCKED();
	SHIM_ASSERT(slot >= 0 && slot < FILTER_SLOTS && slots[slot].handle);
	__atomic_store_n(&slots[slot].handle, NULL, __ATOMIC_RELEASE);
	invalidate_slot(slot);
}

void filter_cache_single(int filter, int mapper)
{
	ASSERT_LOCKED();
	if (filter == single_filter && mapper == single_mapper)
		return;
	single_filter = filter;
	single_mapper = mapper;
	__atomic_add_fetch(&filter_cache_version, 1, __ATOMIC_ACQ_REL);
}

void filter_cache_invalidate(int slot)
{
	NOTIFY(filters_change);
	invalidate_slot(slot);
	NOTIFY(filters_change);
}

void filter_cache_invalidate_filters(void)
{
	NOTIFY(filters_change);
	for (int i = 0; i < FILTER_SLOTS; i++)
		if (slots[i].handle && slots[i].is_filter)
			invalidate_slot(i);
	NOTIFY(filters_change);
}

/* --- records --- */

struct filter_answer *filter_cache_find(shim_function function)
{
	struct filter_cache_map *m = __atomic_load_n(&filter_cache_map,
						     __ATOMIC_ACQUIRE);

	if (!m)
		return NULL;
	for (size_t i = filter_cache_hash(function) & m->mask;;
	     i = (i + 1) & m->mask) {
		struct filter_answer *record = __atomic_load_n(
			&m->records[i], __ATOMIC_ACQUIRE);

		if (!record || record->function == function)
			return record;
	}
}

uint32_t shim_filter_version(void)
{
	return __atomic_load_n(&filter_cache_version, __ATOMIC_ACQUIRE);
}

int shim_filter_admits(uintptr_t function)
{
	uint32_t now = shim_filter_version();
	const struct filter_answer *answer;

	if (single_filter < 0)
		return 1;
	answer = filter_cache_find(function);
	if (!answer ||
	    __atomic_load_n(&answer->version, __ATOMIC_ACQUIRE) != now)
		return -1;
	return (answer->single_flags & SHIM_CALL_INSTRUMENTATION_ENTER) != 0;
}

static void insert_record(struct filter_cache_map *m,
			  struct filter_answer *record)
{
	size_t i = filter_cache_hash(record->function) & m->mask;

	/* A search in a full table would never end. */
	SHIM_ASSERT(m->used < m->mask);
	while (m->records[i])
		i = (i + 1) & m->mask;
	__atomic_store_n(&m->records[i], record, __ATOMIC_RELEASE);
	m->used++;
}

static bool grow_map(void)
{
	size_t size = filter_cache_map ? (filter_cache_map->mask + 1) * 2 :
					 4096;
	struct filter_cache_map *larger;
	void *memory;

	if (filter_cache_map &&
	    filter_cache_map->used * 2 <= filter_cache_map->mask)
		return true;
	if (sys_map(sizeof(*larger) + size * sizeof(void *), &memory) < 0)
		return false;
	larger = memory;
	larger->mask = size - 1;
	for (size_t i = 0; filter_cache_map && i <= filter_cache_map->mask; i++)
		if (filter_cache_map->records[i])
			insert_record(larger, filter_cache_map->records[i]);
	__atomic_store_n(&filter_cache_map, larger, __ATOMIC_RELEASE);
	return true;
}

static struct filter_answer *allocate_record(void)
{
	static struct filter_answer *block;
	static size_t left;
	void *memory;

	if (left == 0) {
		if (sys_map(64 * sizeof(*block), &memory) < 0)
			return NULL;
		block = memory;
		left = 64;
	}
	left--;
	return block++;
}

static int add_record(void *argument)
{
	shim_function function = *(shim_function *)argument;
	struct filter_answer *record;

	if (filter_cache_find(function))
		return 0;
	if (!grow_map())
		return -1;
	record = allocate_record();
	if (!record)
		return -1;
	record->function = function;
	insert_record(filter_cache_map, record);
	return 0;
}

void filter_cache_forget(uintptr_t low, uintptr_t high)
{
	ASSERT_LOCKED();
	for (size_t i = 0; filter_cache_map && i <= filter_cache_map->mask;
	     i++) {
		struct filter_answer *record = filter_cache_map->records[i];

		if (!record || record->function < low ||
		    record->function >= high)
			continue;
		record->reuses++;
		record->version = 0;
		record->switch_failures = 0;
		for (int slot = 0; slot < FILTER_SLOTS; slot++)
			record->ages[slot] = 0;
	}
}

/* --- calling filters and mappers --- */

struct filter_call {
	struct shim_profiler_handle *handle;
	shim_function function;
	bool is_filter;
	uint8_t flags;
	uintptr_t client;
};

static void call_filter(struct filter_call *filter_call)
{
	shim_call_instrumentation_filter_callback filter =
		filter_call->handle->filter;

	if (filter)
		filter_call->flags = (uint8_t)filter(
			filter_call->handle->profiler, filter_call->function);
}

static void call_mapper(struct filter_call *filter_call)
{
	struct shim_profiler_handle *handle = filter_call->handle;
	int hook = 1;

	if (handle->mapper2)
		filter_call->client = handle->mapper2(
			filter_call->function, handle->mapper_data, &hook);
	else if (handle->mapper)
		filter_call->client = handle->mapper(filter_call->function,
						     &hook);
	if (!hook)
		filter_call->flags = 0;
	if (filter_call->client == 0)
		filter_call->client = filter_call->function;
}

static void call_filter_or_mapper(struct filter_call *filter_call)
{
	if (filter_call->is_filter)
		call_filter(filter_call);
	else
		call_mapper(filter_call);
}

/* The call of one slot's filter or mapper for @record, and its answer. */
struct answer {
	struct filter_answer *record;
	uint32_t reuses, now;
	int number;
	uint16_t age;
	struct filter_call filter_call;
};

/* Stores an answer in its record.  If another thread has stored one, that answer stays. */
static int publish_answer(void *argument)
{
	const struct answer *answer = argument;
	struct filter_answer *record = answer->record;
	int number = answer->number;

	if (record->reuses != answer->reuses ||
	    record->ages[number] == answer->age)
		return 0;
	record->flags[number] = answer->filter_call.flags;
	record->client[number] = answer->filter_call.client;
	__atomic_store_n(&record->ages[number], answer->age, __ATOMIC_RELEASE);
	return 0;
}

/* If system calls are forbidden, there is no lock, and no other thread publishes. */
static void run_locked(int (*work)(void *), struct answer *answer)
{
	if (state_call_locked(work, answer) < 0)
		work(answer);
}

static void call_slot(struct thread *self, struct answer *answer)
{
	struct filter_call *filter_call = &answer->filter_call;
	struct guard guard;
	bool is_quiet = false;
	uint64_t signals;
	uint32_t before;

	*filter_call = (struct filter_call){
		.handle = slots[answer->number].handle,
		.function = answer->record->function,
		.is_filter = slots[answer->number].is_filter,
		.flags = 0xff,
		.client = answer->record->function,
	};
	if (!filter_call->handle ||
	    !guard_enter(&guard, filter_call->handle, EVENT_THREAD, 0,
			 filter_call->is_filter ? "filter" : "mapper"))
		return;
	/* Built-in profilers record the calls of signal handlers, too, whose functions may
	 * need an answer themselves: they wait.  These profilers have no guard, but their
	 * filter also calls SYNC functions. */
	if (filter_call->handle->builtin)
		is_quiet = sys_block_signals(&signals) == 0;
	before = self->state;
	self->state |= THREAD_CALLBACK | THREAD_MAY_BLOCK;
	guard_run(&guard, (void (*)(void))call_filter_or_mapper,
		  (uintptr_t)filter_call);
	self->state = before;
	if (is_quiet)
		sys_restore_signals(signals);
	guard_leave(&guard);
	run_locked(publish_answer, answer);
}

static void combine_answers(struct filter_answer *record)
{
	int filter = single_filter, mapper = single_mapper;

	record->single_flags = 0xff;
	record->single_client = record->function;
	if (filter >= 0)
		record->single_flags = record->flags[filter];
	if (mapper >= 0) {
		record->single_flags &= record->flags[mapper];
		record->single_client = record->client[mapper];
	}
}

/* Publishes the record after all slots have answered. */
static int publish_record(void *argument)
{
	const struct answer *answer = argument;
	struct filter_answer *record = answer->record;

	if (record->reuses != answer->reuses || record->version == answer->now)
		return 0;
	combine_answers(record);
	__atomic_store_n(&record->version, answer->now, __ATOMIC_RELEASE);
	return 0;
}

static void call_all_slots(struct thread *self, struct filter_answer *record,
			   uint32_t now)
{
	struct answer answer = {
		.record = record,
		.reuses = __atomic_load_n(&record->reuses, __ATOMIC_ACQUIRE),
		.now = now,
	};
	struct filter_answer *asking = self->pending_answer;
	uintptr_t asking_sp = self->pending_answer_sp;

	/* A filter or mapper may query the function's image and name. */
	shim_image_note(record->function);
	self->pending_answer_sp = (uintptr_t)&answer;
	self->pending_answer = record;
	for (int i = 0; i < FILTER_SLOTS; i++) {
		answer.number = i;
		answer.age = slots[i].age;
		if (__atomic_load_n(&slots[i].handle, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&record->ages[i], __ATOMIC_ACQUIRE) !=
			    answer.age)
			call_slot(self, &answer);
	}
	self->pending_answer = asking;
	self->pending_answer_sp = asking_sp;
	run_locked(publish_record, &answer);
}

/* --- one thread calls, the others wait --- */

static bool is_complete(const struct filter_answer *record, uint32_t now)
{
	return __atomic_load_n(&record->version, __ATOMIC_ACQUIRE) == now;
}

static void release_record(struct filter_answer *record, uint32_t tid)
{
	__atomic_compare_exchange_n(&record->caller, &tid, 0, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Whether the calling task is the one that calls the filters and mappers.  False if the
 * answers are complete, or if the wait was too long: then this task calls them, too. */
static bool claim_record(struct filter_answer *record, uint32_t now,
			 uint32_t tid)
{
	for (uint32_t waited = 0; waited < SYS_WAIT_STEPS;
	     waited = sys_wait_step(waited)) {
		uint32_t owner = 0;

		if (is_complete(record, now))
			return false;
		if (__atomic_compare_exchange_n(&record->caller, &owner, tid,
						false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED) ||
		    owner == tid)
			return true;
		/* The owner may have been cancelled, or may be a thread of the
		 * parent. */
		if (waited >= SYS_WAIT_YIELDS &&
		    !sys_is_alive(sys_getpid(), (int)owner))
			release_record(record, owner);
	}
	return false;
}

static bool is_caller(const struct filter_answer *record, uint32_t tid)
{
	return __atomic_load_n(&record->caller, __ATOMIC_RELAXED) == tid;
}

/* Whether the calling task runs a filter or mapper of a module.  If tasks share the
 * thread's record, only the task in @caller does. */
static bool runs_filter(const struct thread *self, uint32_t tid)
{
	const struct filter_answer *asking = __atomic_load_n(
		&self->pending_answer, __ATOMIC_RELAXED);

	return asking && (self->state & THREAD_CALLBACK) &&
	       (!(self->state & THREAD_SHARED) || is_caller(asking, tid));
}

static struct filter_answer *find_or_add(shim_function function)
{
	struct filter_answer *record = filter_cache_find(function);

	if (record)
		return record;
	state_call_locked(add_record, &function);
	return filter_cache_find(function);
}

const struct filter_answer *filter_cache_get(struct thread *self,
					     shim_function function)
{
	uint32_t now = __atomic_load_n(&filter_cache_version, __ATOMIC_ACQUIRE),
		 tid;
	struct filter_answer *record = filter_cache_find(function);
	bool claimed;

	if (record && is_complete(record, now))
		return record;
	tid = (uint32_t)sys_gettid();
	if (runs_filter(self, tid))
		return NULL;
	record = find_or_add(function);
	if (!record || (self->state & THREAD_SHARED && is_caller(record, tid)))
		return NULL;
	claimed = (int)tid > 0 && claim_record(record, now, tid);
	if (!is_complete(record, now))
		call_all_slots(self, record, now);
	if (claimed)
		release_record(record, tid);
	return record;
}

void filter_cache_jumped(struct thread *self, uintptr_t sp)
{
	if (!self->pending_answer || self->pending_answer_sp >= sp)
		return;
	release_record(self->pending_answer, (uint32_t)sys_gettid());
	self->pending_answer = NULL;
}
