/*
 * The sampling profiler:
 * `-p sampling[:hz=N,clock=cpu|wall|thread,unwinder=own|libunwind|both]`.
 *
 * Each thread has a tree of its sampled stacks in a separate file.  A sample adds its
 * weight to the innermost node.  Nothing interrupts a sample, and samples of one thread
 * come one after the other, so each file has one writer and needs no lock.  The stored
 * data is complete at any moment.
 *
 * The nodes have the addresses of instructions, not of functions, so that the report
 * finds inlined functions and lines.
 */
#include "options/start.h"
#include "sampling/python.h"

#include <shim/cpu.h>
#include <shim/record.h>
#include <shim/sampling.h>
#include <shim/stack.h>

#include <shim/banned.h>

#define FREQUENCY_HZ  1000
#define DEPTH_MAX     SHIM_STACK_DEPTH_MAX
#define TABLE_MIN     256
#define RETRY_SAMPLES 64

struct samples {
	struct samples *next; /* in the list of all, which only grows */
	uint32_t tid;	      /* of the thread that uses it, or used it last */
	uint32_t recording;   /* the value of recordings when it was made */
	bool is_ending;
	struct shim_record *record;
	struct shim_sample_root *root;
	char *at, *end; /* of the last chunk */
	uint32_t chunks;
	uint32_t retry; /* samples to lose before the next try */
	enum shim_lost cause;
	struct shim_sampled_node **table; /* of all paths: open addressing */
	uint64_t room, used;
	uintptr_t stack[DEPTH_MAX];
	/* of an interpreter: @stack with functions of its language */
	struct python_thread *python;
	uintptr_t mixed[DEPTH_MAX];
};

static struct samples *all;
static __thread struct samples *thread_samples
	__attribute__((tls_model("initial-exec")));
static uint32_t recordings; /* that this process had before this one */
static struct shim_profiler_handle *handle;
static uint64_t period_ns;
static uint32_t mode = SHIM_SAMPLE_PROCESS;

/* --- nodes --- */

static void *allocate(struct samples *samples, size_t size)
{
	void *memory;
	size_t got;

	if ((size_t)(samples->end - samples->at) < size) {
		if (samples->retry > 0 || samples->chunks == SHIM_FILE_CHUNKS) {
			samples->retry -= samples->retry > 0;
			return NULL;
		}
		memory = shim_record_grow(samples->record, size, &got,
					  &samples->cause);
		if (!memory) {
			samples->retry = RETRY_SAMPLES;
			return NULL;
		}
		samples->chunks++;
		samples->at = memory;
		samples->end = samples->at + got;
	}
	memory = samples->at;
	samples->at += size;
	return memory;
}

static uint64_t hash(uint64_t parent, uint64_t address)
{
	return (parent * 0x9e3779b97f4a7c15ull ^ address) *
		       0xff51afd7ed558ccdull >>
	       20;
}

static struct shim_sampled_node **slot_of(struct shim_sampled_node **table,
					  uint64_t room, uint64_t parent,
					  uint64_t address)
{
	uint64_t i = hash(parent, address);

	for (;; i++) {
		struct shim_sampled_node **place = &table[i & (room - 1)];

		if (!*place || ((*place)->parent == parent &&
				(*place)->address == address))
			return place;
	}
}

/* The old table stays mapped: this file frees nothing. */
static bool grow_table(struct samples *samples)
{
	uint64_t room = samples->room ? samples->room * 2 : TABLE_MIN;
	struct shim_sampled_node **table = shim_memory_map(room *
							   sizeof(*table));

	if (!table)
		return false;
	for (uint64_t i = 0; i < samples->room; i++) {
		struct shim_sampled_node *node = samples->table[i];

		if (node)
			*slot_of(table, room, node->parent,
				 node->address) = node;
	}
	samples->table = table;
	samples->room = room;
	return true;
}

static struct shim_sampled_node *find_child(struct samples *samples,
					    uint64_t parent, uint64_t address)
{
	struct shim_sampled_node **place, *node;

	if (samples->used * 2 >= samples->room && !grow_table(samples)) {
		samples->cause = SHIM_LOST_MEMORY;
		return NULL;
	}
	place = slot_of(samples->table, samples->room, parent, address);
	if (*place)
		return *place;
	node = allocate(samples, sizeof(*node));
	if (!node)
		return NULL;
	if (address > SHIM_SAMPLE_CUT)
		shim_image_note(address & SHIM_NODE_ADDRESS);
	node->parent = parent;
	node->address = address;
	__atomic_store_n(&node->function, SHIM_NODE_SAMPLED, __ATOMIC_RELEASE);
	*place = node;
	samples->used++;
	return node;
}

/* --- a thread's file --- */

/* The table has no roots: each thread that uses the file has its own root. */
static bool begin_root(struct samples *samples, uint32_t tid)
{
	struct shim_sample_root *root = allocate(samples, sizeof(*root));

	if (!root)
		return false;
	root->period_ns = period_ns;
	root->mode = mode;
	shim_thread_name(root->name);
	__atomic_store_n(&root->function, SHIM_NODE_THREAD | tid,
			 __ATOMIC_RELEASE);
	samples->root = root;
	return true;
}

static bool is_of_this_recording(const struct samples *samples)
{
	return samples->recording ==
	       __atomic_load_n(&recordings, __ATOMIC_RELAXED);
}

static struct samples *make_samples(uint32_t tid, enum shim_lost *cause)
{
	uint32_t recording = __atomic_load_n(&recordings, __ATOMIC_ACQUIRE);
	struct shim_record *record;
	struct samples *samples;
	void *memory;
	size_t size;

	/* The record is opened first: without memory for it, each later try would fail,
	 * too. */
	record = shim_record_open("sampling", &memory, &size, cause);
	if (!record)
		return NULL;
	*cause = SHIM_LOST_MEMORY;
	samples = shim_memory_map(sizeof(*samples));
	if (!samples)
		return NULL;
	samples->tid = tid;
	samples->recording = recording;
	samples->record = record;
	samples->chunks = 1;
	samples->at = memory;
	samples->end = samples->at + size;
	samples->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&all, &samples->next, samples,
					    false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return samples;
}

/* Reuses the file of a thread that has ended. */
static struct samples *reuse_samples(uint32_t tid)
{
	for (struct samples *samples = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
	     samples; samples = samples->next) {
		uint32_t owner = __atomic_load_n(&samples->tid,
						 __ATOMIC_RELAXED);

		if (!is_of_this_recording(samples) ||
		    (owner != tid && shim_thread_is_alive(owner)))
			continue;
		if (__atomic_compare_exchange_n(&samples->tid, &owner, tid,
						false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return samples;
	}
	return NULL;
}

static struct samples *get_samples(uint32_t weight)
{
	enum shim_lost cause = SHIM_LOST_OTHER;
	struct samples *samples = thread_samples;
	uint32_t tid;

	if (samples && is_of_this_recording(samples))
		return samples;
	tid = shim_thread_id();
	samples = reuse_samples(tid);
	if (!samples)
		samples = make_samples(tid, &cause);
	if (samples && !begin_root(samples, tid)) {
		cause = samples->cause;
		samples = NULL;
	}
	if (!samples) {
		shim_record_lost_other(SHIM_LOST_SAMPLES, cause, weight);
		return NULL;
	}
	samples->is_ending = false;
	thread_samples = samples;
	shim_thread_watch();
	return samples;
}

/* --- events --- */

static struct shim_sampled_node *add_stack(struct samples *samples,
					   const uintptr_t *stack,
					   uint32_t count, bool is_whole)
{
	uint64_t parent = (uint64_t)samples->root;
	struct shim_sampled_node *node = NULL;

	if (!is_whole) {
		node = find_child(samples, parent, SHIM_SAMPLE_CUT);
		if (!node)
			return NULL;
		parent = (uint64_t)node;
	}
	while (count-- > 0) {
		uint64_t address = stack[count] & SHIM_NODE_ADDRESS;

		/* SHIM_STACK_GUESS and SHIM_NODE_EXACT are the same bit. */
		if (address)
			address |= stack[count] & SHIM_STACK_GUESS;
		node = find_child(samples, parent,
				  address ? address : SHIM_SAMPLE_UNKNOWN);
		if (!node)
			return NULL;
		parent = (uint64_t)node;
	}
	return node;
}

static void *allocate_for_python(void *samples, size_t size)
{
	return allocate(samples, size);
}

static void on_sample_hit(struct shim_profiler *profiler, uintptr_t ip,
			  const void *context, uint32_t weight)
{
	struct samples *samples = get_samples(weight);
	struct shim_sampled_node *node;
	const uintptr_t *stack;
	uint32_t count = 0, mixed = 0;
	bool is_whole;

	(void)profiler;
	if (!samples)
		return;
	is_whole = shim_stack_calls(context, 0, DEPTH_MAX, &count,
				    samples->stack) == SHIM_OK;
	if (count == 0) {
		samples->stack[0] = ip;
		count = 1;
	}
	if (count > DEPTH_MAX)
		count = DEPTH_MAX;
	count = shim_fold_mcount(samples->stack, count);
	stack = samples->stack;
	if (python_is_there())
		mixed = python_mix(&samples->python, allocate_for_python,
				   samples, stack, count, samples->mixed,
				   DEPTH_MAX);
	if (mixed > 0) {
		stack = samples->mixed;
		count = mixed;
	}
	node = add_stack(samples, stack, count, is_whole);
	if (!node) {
		samples->root->lost[samples->cause] += weight;
		return;
	}
	node->signals++;
	shim_local_add(&node->samples, weight);
	if (mode == SHIM_SAMPLE_REAL && !samples->is_ending &&
	    !shim_clock_is_closed()) {
		samples->root->last_node = (uint64_t)node;
		samples->root->last_clock = shim_clock_read();
	}
}

static void on_thread_ended(struct shim_profiler *profiler)
{
	struct samples *samples = thread_samples;

	(void)profiler;
	if (!samples || !is_of_this_recording(samples) ||
	    samples->tid != shim_thread_id())
		return;
	/* The file is reused only after the thread has ended, because more samples may
	 * come until then. */
	samples->is_ending = true;
	samples->root->last_clock = 0;
}

/* The child has its own recording. */
static void on_forked(struct shim_profiler *profiler)
{
	(void)profiler;
	thread_samples = NULL;
	all = NULL;
}

/* Each thread makes other data at its next sample. */
static void on_recording_began(struct shim_profiler *profiler)
{
	(void)profiler;
	__atomic_fetch_add(&recordings, 1, __ATOMIC_RELEASE);
	all = NULL;
}

static void on_image_loaded(struct shim_profiler *profiler, shim_image image)
{
	(void)profiler;
	python_image_loaded(image);
}

/* Other functions may use the image's addresses later. */
static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	(void)profiler;
	python_image_unloaded(low, high);
	for (struct samples *samples = __atomic_load_n(&all, __ATOMIC_ACQUIRE);
	     samples; samples = samples->next) {
		struct shim_sampled_node **table = samples->table;
		uint64_t room = samples->room;

		for (uint64_t i = 0; table && i < room; i++) {
			uint64_t address = table[i] ? table[i]->address : 0;

			address &= ~(uint64_t)SHIM_NODE_EXACT;
			if (address >= low && address < high)
				table[i]->address |= (uint64_t)generation << 48;
		}
	}
}

/* --- start --- */

static uint64_t frequency_hz = FREQUENCY_HZ;
static uint32_t unwinder; /* enum shim_unwinder */

static void take_option(enum option_name name, const struct option_value *value)
{
	static const uint32_t modes[] = {
		SHIM_SAMPLE_PROCESS,
		SHIM_SAMPLE_REAL,
		SHIM_SAMPLE_THREAD,
	};

	if (name == OPTION_sampling_HZ)
		frequency_hz = value->number;
	else if (name == OPTION_sampling_UNWINDER)
		unwinder = (uint32_t)value->number; /* own|libunwind|both */
	else
		mode = modes[value->number]; /* cpu|wall|thread */
}

static bool start_sampling(void)
{
	handle = shim_profiler_create(NULL);
	if (!handle || shim_profiler_enable_sampling(handle) != SHIM_OK) {
		shim_record_log(
			"sampling: samples cannot be taken on this machine");
		return false;
	}
	if (unwinder != SHIM_UNWINDER_OWN)
		shim_stack_set_unwinder(unwinder);
	python_begin();
	period_ns = 1000000000u / frequency_hz;
	shim_profiler_on_sample_hit(handle, on_sample_hit);
	shim_profiler_on_thread_ended(handle, on_thread_ended);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_recording_began(handle, on_recording_began);
	shim_profiler_on_image_loaded(handle, on_image_loaded);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	if (shim_profiler_set_sample_mode(handle, mode,
					  (uint32_t)frequency_hz) == SHIM_OK)
		return true;
	shim_record_log("sampling: another profiler uses the sampler");
	return false;
}

static bool record_samples(bool is_on)
{
	if (shim_profiler_set_sample_mode(
		    handle, is_on ? mode : (uint32_t)SHIM_SAMPLE_NONE,
		    (uint32_t)frequency_hz) == SHIM_OK)
		return true;
	shim_record_log("sampling: another profiler uses the sampler");
	return false;
}

BUILTIN(sampling, take_option, start_sampling, .record = record_samples);
