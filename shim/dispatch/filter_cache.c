/*
 * The answers of filters and mappers, by function.  A lookup is one hash and
 * takes no lock.  Each slot has a generation: an answer with an
 * older one is stale, so a new filter costs no walk through the table.
 */
#include "dispatch/filter_cache.h"

#include "dispatch/call_sites.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include <shim/record.h>

#include <shim/banned.h>

struct slot {
	struct shim_profiler_handle *handle; /* NULL: free */
	bool is_filter;
	uint16_t age; /* the generation of valid answers */
};

static struct slot slots[FILTER_SLOTS];
uint32_t filter_cache_version = 1;

struct filter_cache_map *filter_cache_map;
static int single_filter = -1, single_mapper = -1;

/* --- slots --- */

static void renew(int slot)
{
	if (++slots[slot].age == 0)
		slots[slot].age = 1;
	__atomic_add_fetch(&filter_cache_version, 1, __ATOMIC_ACQ_REL);
	call_sites_unfilter_all();
}

int filter_cache_take(struct shim_profiler_handle *handle, bool is_filter)
{
	ASSERT_LOCKED();
	for (int i = 0; i < FILTER_SLOTS; i++) {
		if (slots[i].handle)
			continue;
		slots[i].is_filter = is_filter;
		renew(i);
		__atomic_store_n(&slots[i].handle, handle, __ATOMIC_RELEASE);
		return i;
	}
	return -1;
}

void filter_cache_release(int slot)
{
	ASSERT_LOCKED();
	SHIM_ASSERT(slot >= 0 && slot < FILTER_SLOTS && slots[slot].handle);
	__atomic_store_n(&slots[slot].handle, NULL, __ATOMIC_RELEASE);
	renew(slot);
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
	renew(slot);
	NOTIFY(filters_change);
}

void filter_cache_invalidate_filters(void)
{
	NOTIFY(filters_change);
	for (int i = 0; i < FILTER_SLOTS; i++)
		if (slots[i].handle && slots[i].is_filter)
			renew(i);
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

static void put(struct filter_cache_map *m, struct filter_answer *record)
{
	size_t i = filter_cache_hash(record->function) & m->mask;

	/* A search in a full table would never end. */
	SHIM_ASSERT(m->used < m->mask);
	while (m->records[i])
		i = (i + 1) & m->mask;
	__atomic_store_n(&m->records[i], record, __ATOMIC_RELEASE);
	m->used++;
}

static bool make_room(void)
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
			put(larger, filter_cache_map->records[i]);
	__atomic_store_n(&filter_cache_map, larger, __ATOMIC_RELEASE);
	return true;
}

static struct filter_answer *allocate(void)
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
	if (!make_room())
		return -1;
	record = allocate();
	if (!record)
		return -1;
	record->function = function;
	put(filter_cache_map, record);
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
		record->life++;
		record->version = 0;
		record->stubborn = 0;
		for (int slot = 0; slot < FILTER_SLOTS; slot++)
			record->ages[slot] = 0;
	}
}

/* --- asking --- */

struct question {
	struct shim_profiler_handle *handle;
	shim_function function;
	bool is_filter;
	uint8_t flags;
	uintptr_t client;
};

static void ask_filter(struct question *question)
{
	shim_call_instrumentation_filter_callback filter =
		question->handle->filter;

	if (filter)
		question->flags = (uint8_t)filter(question->handle->profiler,
						  question->function);
}

static void ask_mapper(struct question *question)
{
	struct shim_profiler_handle *handle = question->handle;
	int hook = 1;

	if (handle->mapper2)
		question->client = handle->mapper2(question->function,
						   handle->mapper_data, &hook);
	else if (handle->mapper)
		question->client = handle->mapper(question->function, &hook);
	if (!hook)
		question->flags = 0;
	if (question->client == 0)
		question->client = question->function;
}

static void ask_it(struct question *question)
{
	if (question->is_filter)
		ask_filter(question);
	else
		ask_mapper(question);
}

/* A question to one slot about @record, and its answer. */
struct answer {
	struct filter_answer *record;
	uint32_t life, now;
	int number;
	uint16_t age;
	struct question question;
};

/* The first answer wins. */
static int publish(void *argument)
{
	const struct answer *answer = argument;
	struct filter_answer *record = answer->record;
	int number = answer->number;

	if (record->life != answer->life || record->ages[number] == answer->age)
		return 0;
	record->flags[number] = answer->question.flags;
	record->client[number] = answer->question.client;
	__atomic_store_n(&record->ages[number], answer->age, __ATOMIC_RELEASE);
	return 0;
}

/* If the system calls of the lock are forbidden, no other thread publishes either. */
static void do_slowly(int (*work)(void *), struct answer *answer)
{
	if (state_slowly(work, answer) < 0)
		work(answer);
}

static void call_filters(struct thread *self, struct answer *answer)
{
	struct question *question = &answer->question;
	struct guard guard;
	uint32_t before;

	*question = (struct question){
		.handle = slots[answer->number].handle,
		.function = answer->record->function,
		.is_filter = slots[answer->number].is_filter,
		.flags = 0xff,
		.client = answer->record->function,
	};
	if (!question->handle ||
	    !guard_enter(&guard, question->handle, EVENT_THREAD, 0,
			 question->is_filter ? "filter" : "mapper"))
		return;
	/* Built-in profilers have no guard; their filter calls SYNC functions, too. */
	before = self->state;
	self->state |= THREAD_CALLBACK | THREAD_MAY_BLOCK;
	guard_run(&guard, (void (*)(void))ask_it, (uintptr_t)question);
	self->state = before;
	guard_leave(&guard);
	do_slowly(publish, answer);
}

static void sum_up(struct filter_answer *record)
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
static int finish(void *argument)
{
	const struct answer *answer = argument;
	struct filter_answer *record = answer->record;

	if (record->life != answer->life || record->version == answer->now)
		return 0;
	sum_up(record);
	__atomic_store_n(&record->version, answer->now, __ATOMIC_RELEASE);
	return 0;
}

static void ask_all(struct thread *self, struct filter_answer *record,
		    uint32_t now)
{
	struct answer answer = {
		.record = record,
		.life = __atomic_load_n(&record->life, __ATOMIC_ACQUIRE),
		.now = now,
	};

	/* A filter or mapper may query the function's image and name. */
	shim_image_note(record->function);
	self->asking_sp = (uintptr_t)&answer;
	self->asking = record;
	for (int i = 0; i < FILTER_SLOTS; i++) {
		answer.number = i;
		answer.age = slots[i].age;
		if (__atomic_load_n(&slots[i].handle, __ATOMIC_ACQUIRE) &&
		    __atomic_load_n(&record->ages[i], __ATOMIC_ACQUIRE) !=
			    answer.age)
			call_filters(self, &answer);
	}
	self->asking = NULL;
	do_slowly(finish, &answer);
}

/* --- one asker at a time --- */

/* The time that a thread waits for another thread's answer. */
#define WAIT_YIELDS 100
#define WAIT_STEPS  (WAIT_YIELDS + 1000) /* and then 1000 ms */

static bool is_known(const struct filter_answer *record, uint32_t now)
{
	return __atomic_load_n(&record->version, __ATOMIC_ACQUIRE) == now;
}

static void release(struct filter_answer *record, uint32_t tid)
{
	__atomic_compare_exchange_n(&record->caller, &tid, 0, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Whether the calling task becomes the asker.  False: the answers are known, or the
 * wait was too long and it asks besides the other task. */
static bool claim(struct filter_answer *record, uint32_t now, uint32_t tid)
{
	for (unsigned waited = 0; waited < WAIT_STEPS; waited++) {
		uint32_t owner = 0;

		if (is_known(record, now))
			return false;
		if (__atomic_compare_exchange_n(&record->caller, &owner, tid,
						false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED) ||
		    owner == tid)
			return true;
		if (waited < WAIT_YIELDS) {
			sys_yield();
			continue;
		}
		/* The owner may have been cancelled, or be a thread of the
		 * parent. */
		if (!sys_is_alive(sys_getpid(), (int)owner))
			release(record, owner);
		sys_sleep_ms(1);
	}
	return false;
}

static bool is_caller(const struct filter_answer *record, uint32_t tid)
{
	return __atomic_load_n(&record->caller, __ATOMIC_RELAXED) == tid;
}

/* Whether the calling task runs a filter or mapper.  If tasks share the thread's
 * record, only the asker does. */
static bool is_asking(const struct thread *self, uint32_t tid)
{
	const struct filter_answer *asking = __atomic_load_n(&self->asking,
							     __ATOMIC_RELAXED);

	return asking &&
	       (!(self->state & THREAD_SHARED) || is_caller(asking, tid));
}

static struct filter_answer *find_or_add(shim_function function)
{
	struct filter_answer *record = filter_cache_find(function);

	if (record)
		return record;
	state_slowly(add_record, &function);
	return filter_cache_find(function);
}

const struct filter_answer *filter_cache_get(struct thread *self,
					     shim_function function)
{
	uint32_t now = __atomic_load_n(&filter_cache_version, __ATOMIC_ACQUIRE),
		 tid;
	struct filter_answer *record = filter_cache_find(function);
	bool claimed;

	if (record && is_known(record, now))
		return record;
	tid = (uint32_t)sys_gettid();
	if (is_asking(self, tid))
		return NULL;
	record = find_or_add(function);
	if (!record || (self->state & THREAD_SHARED && is_caller(record, tid)))
		return NULL;
	claimed = (int)tid > 0 && claim(record, now, tid);
	if (!is_known(record, now))
		ask_all(self, record, now);
	if (claimed)
		release(record, tid);
	return record;
}

void filter_cache_jumped(struct thread *self, uintptr_t sp)
{
	if (!self->asking || self->asking_sp >= sp)
		return;
	release(self->asking, (uint32_t)sys_gettid());
	self->asking = NULL;
}
