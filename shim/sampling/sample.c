/*
 * The sampler: a timer for each thread, and one signal.  The handler raises sample_hit.
 * The handler counts the sample as lost in a thread without a record, while the program
 * has moved the thread pointer, and after sampling was switched off.
 */
#define _GNU_SOURCE
#include "sampling/sample.h"

#include "arch.h"
#include "image/image_facts.h"
#include "os/clock.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/tasks.h"
#include "runtime/contract.h"
#include "runtime/hidden_signals.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "sampling/open_call.h"
#include "sampling/sample_timers.h"
#include "sampling/snapshot.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <shim/builtin.h>
#include <shim/record.h>
#include <shim/sampling.h>
#include <ucontext.h>

#include <shim/banned.h>

#define FREQUENCY_FIRST_HZ 100
#define MONOTONIC	   1

static struct shim_profiler_handle *owner;
static uint32_t mode, frequency_hz;
static uint32_t distance = 1; /* of two signals, in periods */
static struct shim_sample_counts counts;
static bool needs_signal; /* the signal is needed for snapshots */

static void add_count(uint64_t *counter, uint64_t many)
{
	__atomic_add_fetch(counter, many, __ATOMIC_RELAXED);
}

/* --- small stacks --- */

/*
 * A signal takes some kilobytes (3.5 with AVX-512) of the current stack.  Threads of
 * libc have room for that; stacks that the program makes may not.  If the program makes
 * such stacks, shim gives each thread without a signal stack a new one, which the
 * program does not see (edge/signals.c).  On a thread with a signal stack, shim's
 * handler uses that one, as any handler does.
 */
#define STACK_IS_SMALL	  (32u << 10)
#define SIGNAL_STACK_SIZE (64u << 10)
#define LIBC_STACK_MAX	  (1ul << 30)

static bool has_small_stacks;

static bool make_signal_stack(struct thread *self)
{
	if (!self->signal_stack)
		self->signal_stack = shim_memory_map(SIGNAL_STACK_SIZE);
	return self->signal_stack != NULL;
}

static void use_signal_stack(struct thread *self)
{
	uintptr_t low, high;
	bool in_use;

	if (sys_signal_stack(&low, &high, &in_use) == 0 && low == high &&
	    make_signal_stack(self))
		sys_set_signal_stack(self->signal_stack, SIGNAL_STACK_SIZE);
}

/* Sets the signal stack that the kernel restores when the handler returns. */
static void use_signal_stack_after(struct thread *self, ucontext_t *context)
{
	if (!(context->uc_stack.ss_flags & SS_DISABLE) ||
	    !make_signal_stack(self))
		return;
	context->uc_stack = (stack_t){ .ss_sp = self->signal_stack,
				       .ss_size = SIGNAL_STACK_SIZE };
}

void sample_stack_after(ucontext_t *context)
{
	if (has_small_stacks && thread_current)
		use_signal_stack_after(thread_current, context);
}

/* libc puts a thread's control block at the upper end of its stack. */
static bool may_be_small(void)
{
	uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
	uintptr_t low, high;

	if (arch_thread_pointer() - sp < LIBC_STACK_MAX ||
	    sys_gettid() == sys_getpid())
		return false;
	shim_stack_find(sp, &low, &high);
	return high - low < STACK_IS_SMALL;
}

void sample_stack_created(size_t size)
{
	if (hidden_signals() == 0 || size >= STACK_IS_SMALL)
		return;
	has_small_stacks = true;
	if (thread_current)
		use_signal_stack(thread_current);
}

bool sample_is_our_stack(const void *low)
{
	return low && thread_current && low == thread_current->signal_stack;
}

/* --- a sample --- */

static struct sample_rate rate_now(void)
{
	return (struct sample_rate){ mode, frequency_hz, sample_signal,
				     __atomic_load_n(&distance,
						     __ATOMIC_RELAXED) };
}

typedef void (*plain_handler)(int signal);
typedef void (*full_handler)(int signal, siginfo_t *info, void *context);

/* Whether a tracer delivers the signal of a timer later than it came, as ltrace does: nothing
 * tells then that the timer has sent it.  At the end of a system call, the kernel seems to
 * have sent it, otherwise the tracer. */
static bool is_late(const siginfo_t *info)
{
	bool is_of_kernel = info->si_code == SI_KERNEL;
	uint32_t tracer;

	if (!is_of_kernel && info->si_code != SI_USER)
		return false;
	tracer = tasks_tracer((uint32_t)sys_gettid());
	return tracer != 0 &&
	       (is_of_kernel || (uint32_t)info->si_pid == tracer);
}

static void lose_late_sample(void)
{
	static bool is_logged;

	add_count(&counts.lost, 1);
	shim_record_lost_other(SHIM_LOST_SAMPLES, SHIM_LOST_OTHER, 1);
	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		log_line("%s", "a tracer (ltrace) delivers signals of timers "
			       "later than they come: these samples are lost");
}

/* Passes a signal of libc or of another process to libc's action. */
static void pass_to_libc(int signal, siginfo_t *info, void *context)
{
	struct sys_action action = sample_program_action;

	if (hidden_blocked() & hidden_bit(signal)) {
		hidden_pend(signal);
		return;
	}
	if (action.handler == (void *)SIG_IGN)
		return;
	if (action.handler == (void *)SIG_DFL) {
		if (is_late(info)) {
			lose_late_sample();
			return;
		}
		sys_signal_action(signal, &action, NULL);
		sys_signal_thread(signal);
		sys_block_signal(signal, false);
		return;
	}
	if (action.flags & SA_SIGINFO)
		((full_handler)action.handler)(signal, info, context);
	else
		((plain_handler)action.handler)(signal);
}

static bool is_real(uint32_t which)
{
	return which == SHIM_SAMPLE_REAL;
}

static void raise_hit(struct thread *self, ucontext_t *context, uint32_t weight)
{
	const void *outer = self->sample_context;

	add_count(&counts.accepted, weight);
	self->sample_context = context;
	self->is_sample_soon = false;
	RAISE(sample_hit, unwind_interrupted_ip(context), context, weight);
	self->sample_context = outer;
}

/*
 * Callbacks may take longer than the time between two samples, and the program would
 * not make progress.  So callbacks get half of a thread's time.  Samples beyond that
 * raise no event; their weight is added to the next sample.
 */
static void raise_in_turn(struct thread *self, ucontext_t *context,
			  uint32_t weight, const struct sample_rate *rate)
{
	uint64_t share_ns = weight * (uint64_t)(500000000u / frequency_hz);

	weight += self->sample_weight;
	if (self->sample_debt_ns > share_ns) {
		self->sample_debt_ns -= share_ns;
		self->sample_weight = weight;
		return;
	}
	self->sample_weight = 0;
	raise_hit(self, context, weight);
	self->sample_debt_ns = timers_leave_out(self, rate);
}

/* Returns the sample's weight. */
static uint32_t count_signal(struct thread *self, const siginfo_t *info,
			     const struct sample_rate *rate)
{
	uint32_t weight = 1 + (uint32_t)info->si_overrun;

	if (self && rate->mode != SHIM_SAMPLE_NONE)
		weight = timers_weigh(self, info, rate);
	add_count(&counts.sent, weight);
	add_count(&counts.received, weight);
	add_count(&counts.signals, 1);
	return weight;
}

static void take_sample(ucontext_t *context, const siginfo_t *info)
{
	struct thread *self = thread_current;
	struct sample_rate rate = rate_now();
	uint32_t weight = count_signal(self, info, &rate);

	if (!self ||
	    __atomic_load_n(&mode, __ATOMIC_RELAXED) == SHIM_SAMPLE_NONE) {
		add_count(&counts.lost, weight);
		return;
	}
	if (has_small_stacks)
		use_signal_stack_after(self, context);
	/* Timers that expire at the kernel's ticks cannot expire too often. */
	if (weight > 0 && (rate.mode == SHIM_SAMPLE_REAL || self->is_fine))
		raise_in_turn(self, context, weight, &rate);
	else if (weight > 0) {
		raise_hit(self, context, weight);
		timers_leave_out(self, &rate);
	}
	/* The callbacks may have changed it. */
	rate = rate_now();
	timers_keep_distance(self, &rate);
}

struct search {
	uint32_t tid;
	struct thread *found;
};

static bool find_by_tid(struct thread *thread, void *argument)
{
	struct search *search = argument;

	if (thread->tid == search->tid)
		search->found = thread;
	return !search->found;
}

/* Without libc's thread pointer, the profilers' data of the thread is out of reach. */
static void lose_sample(const siginfo_t *info)
{
	static bool is_logged;
	struct sample_rate rate = rate_now();
	struct search search = { .tid = (uint32_t)sys_gettid() };
	uint32_t weight;

	thread_each(find_by_tid, &search);
	weight = count_signal(search.found, info, &rate);
	add_count(&counts.lost, weight);
	shim_record_lost_other(SHIM_LOST_SAMPLES, SHIM_LOST_OTHER, weight);
	if (!__atomic_exchange_n(&is_logged, true, __ATOMIC_RELAXED))
		log_line("%s",
			 "the program has replaced a thread pointer (Go does "
			 "so without cgo): the thread has no samples until the "
			 "program restores the pointer");
}

/* Answers a request for a snapshot of this thread. */
static void answer_snapshot(ucontext_t *context)
{
	struct thread *self = thread_current;

	if (!self)
		return;
	if (has_small_stacks)
		use_signal_stack_after(self, context);
	snapshot_answer(self, context);
}

/* The value of the signal that asks a thread to make its record. */
static char adoption_value;

/* The calling thread makes its record in this handler.  The signal stays blocked then: after
 * the return of a nested handler, the kernel could not continue the interrupted call. */
static __thread bool is_adopted;

/* The timer of a thread is set when the thread makes its record. */
static void adopt_thread(void)
{
	is_adopted = true;
	thread_get();
	is_adopted = false;
}

static void handle_signal(int signal, siginfo_t *info, void *context)
{
	int *error = thread_current ? thread_current->error : &errno;
	int before = *error;
	bool is_ours = true;

	/* Callbacks may reach a function with a trap. */
	if (hidden_signals() & hidden_bit(SIGTRAP))
		sys_block_signal(SIGTRAP, false);
	if (timers_have_sent(info))
		take_sample(context, info);
	else if (info->si_code == SI_QUEUE &&
		 info->si_value.sival_ptr == &snapshot_value)
		answer_snapshot(context);
	else if (info->si_code == SI_QUEUE &&
		 info->si_value.sival_ptr == &adoption_value)
		adopt_thread();
	else
		is_ours = false;
	if (!is_ours)
		pass_to_libc(signal, info, context);
	*error = before;
	if (is_ours && thread_current)
		syscall_restart_call(thread_current, context,
				     is_real(rate_now().mode), &counts.resumed);
}

static void look_for_go(struct image_entry *image,
			const struct image_facts *facts, bool may_go)
{
	(void)image, (void)may_go;
	if (facts->is_of_go)
		sys_expect_moved_pointer();
}

SUBSCRIBE(image_came, look_for_go);

static void handle_timer_signal(int signal, siginfo_t *info, void *context)
{
	if (sys_is_forbidden() || sys_still_has_thread_data())
		handle_signal(signal, info, context);
	else if (timers_have_sent(info))
		lose_sample(info);
}

/* --- timers; the state lock is held --- */

static bool has_ended;

static int set_timer(struct thread *thread)
{
	struct sample_rate rate = rate_now();

	if (mode == SHIM_SAMPLE_NONE || has_ended ||
	    (thread->state & THREAD_OWN))
		return 0;
	return timers_set(thread, &rate);
}

/* A timer takes room for one signal for as long as it is there. */
static void log_failure(const struct thread *thread, int r)
{
	if (r == -EAGAIN)
		log_line(
			"the thread %s is not sampled: its user's processes have "
			"as many timers and pending signals as they may "
			"(raise ulimit -i)",
			thread->name);
	else
		log_error("the thread %s is not sampled", thread->name, r);
}

/* A thread may have ended unnoticed.  Then its failure does not count. */
static bool set_each(struct thread *thread, void *unused)
{
	int r;

	(void)unused;
	if (thread->state & THREAD_ENDED)
		return true;
	r = set_timer(thread);
	if (r < 0 && sys_is_alive(sys_getpid(), (int)thread->tid)) {
		add_count(&counts.timers_failed, 1);
		log_failure(thread, r);
	}
	return true;
}

static bool remove_each(struct thread *thread, void *unused)
{
	(void)unused;
	timers_remove(thread);
	return true;
}

static int set_timer_locked(void *argument)
{
	return set_each(argument, NULL) ? 0 : -1;
}

static int remove_timer_locked(void *argument)
{
	timers_remove(argument);
	return 0;
}

static bool is_on(void)
{
	return __atomic_load_n(&mode, __ATOMIC_RELAXED) != SHIM_SAMPLE_NONE;
}

bool sample_is_wanted(void)
{
	return is_on() || __atomic_load_n(&needs_signal, __ATOMIC_RELAXED);
}

static void thread_came(struct thread *thread)
{
	const bool is_trapped = hidden_signals() & hidden_bit(SIGTRAP);

	if ((!sample_is_wanted() && !is_trapped) ||
	    (thread->state & THREAD_OWN))
		return;
	if (may_be_small())
		use_signal_stack(thread);
	if (!sample_is_wanted())
		return;
	/* The thread may have inherited a signal mask that blocks the signal. */
	if (!is_adopted)
		hidden_thread_begins(0);
	sample_signal_keep();
	state_call_locked(set_timer_locked, thread);
}

SUBSCRIBE(thread_came, thread_came);

void sample_thread_gone(struct thread *thread)
{
	if (thread->has_timer)
		state_call_locked(remove_timer_locked, thread);
}

SUBSCRIBE(thread_reset, sample_thread_gone);

/* The timers of the records belong to the parent. */
void sample_forked(void)
{
	counts = (struct shim_sample_counts){ 0 };
	sample_signal_forked();
	sample_signal_block(false);
	snapshot_forked();
	if (thread_current) {
		thread_current->rests &= ~1u;
		thread_came(thread_current);
	}
}

/*
 * Called before execve.  A pending signal would end the new program, which has no
 * handler for it; a blocked signal would stay blocked there.  The timers of other
 * threads end with these threads.  A child of vfork has no timers: the record belongs
 * to its parent.
 */
static bool is_of_another(const struct thread *self)
{
	return !self || (int)self->tid != sys_gettid();
}

void sample_exec_begins(void)
{
	if (!sample_is_wanted())
		return;
	if (!is_of_another(thread_current)) {
		sample_thread_gone(thread_current);
		snapshot_close(thread_current);
	}
	/* A pending signal is delivered here. */
	sample_signal_block(false);
}

void sample_exec_failed(void)
{
	if (!sample_is_wanted() || is_of_another(thread_current))
		return;
	snapshot_open(thread_current);
	state_call_locked(set_timer_locked, thread_current);
}

void sample_give_up(void)
{
	sample_signal_block(false);
	mode = SHIM_SAMPLE_NONE;
}

void sample_signal_block(bool blocked)
{
	if (sample_is_wanted())
		sys_block_signal(sample_signal, blocked);
}

/* The jump may leave a handler of the program that ran while shim continued a system
 * call. */
void sample_jumped(void)
{
	struct thread *self = thread_current;

	if (!self || !(self->rests & 1))
		return;
	self->rests++;
	sys_block_signal(sample_signal, false);
}

static int stop_locked(void *unused)
{
	ASSERT_LOCKED();
	(void)unused;
	mode = SHIM_SAMPLE_NONE;
	thread_each(remove_each, NULL);
	return 0;
}

void sample_stop(void)
{
	if (is_on())
		state_call_locked(stop_locked, NULL);
}

static int end_locked(void *reason)
{
	if (is_on() && !has_ended)
		log_line("%s: no more samples are taken", (const char *)reason);
	has_ended = true;
	thread_each(remove_each, NULL);
	return 0;
}

void sample_end(const char *reason)
{
	state_call_locked(end_locked, (void *)reason);
}

static bool is_of_another_task(struct thread *thread, void *tid)
{
	return (thread->state & THREAD_ENDED) ||
	       thread->tid != *(const uint32_t *)tid;
}

static bool ask_task(uint32_t tid, void *unused)
{
	(void)unused;
	if ((int)tid != sys_gettid() && thread_each(is_of_another_task, &tid))
		sys_queue_signal((int)tid, sample_signal, &adoption_value);
	return true;
}

void sample_adopt_threads(void)
{
	if (is_on() && sample_signal != 0)
		tasks_each(ask_task, NULL);
}

static bool is_paused;
static typeof(mode) paused_mode; /* the mode when the pause ends */

static int pause_locked(void *begins)
{
	ASSERT_LOCKED();
	is_paused = *(bool *)begins;
	if (is_paused) {
		paused_mode = mode;
		return stop_locked(NULL);
	}
	mode = paused_mode;
	if (is_on())
		thread_each(set_each, NULL);
	return 0;
}

void sample_pause(bool begins)
{
	if (begins != is_paused)
		state_call_locked(pause_locked, &begins);
}

/* --- enabling --- */

/* Calls that began before shim could see them are noted while no signal can come. */
static int take_signal(void)
{
	if (sample_signal != 0)
		return 0;
	if (lookup_was_attached() || state_main_started())
		open_calls_note();
	return sample_signal_take((void *)handle_timer_signal);
}

int sample_signal_want(void)
{
	int r;

	ASSERT_LOCKED();
	if (ARCH_HAS_RESTORER == 0)
		return -ENOSYS;
	r = take_signal();
	if (r == 0)
		__atomic_store_n(&needs_signal, true, __ATOMIC_RELEASE);
	return r;
}

static void take_samples_from(struct shim_profiler_handle *lender)
{
	owner = NULL;
	lender->samples = false;
	stop_locked(NULL);
	frequency_hz = FREQUENCY_FIRST_HZ;
	distance = 1;
	lender->samples_taken();
}

static int enable_locked(void *argument)
{
	struct shim_profiler_handle *handle_ = argument;
	int r;

	if (ARCH_HAS_RESTORER == 0) {
		/* Samples would make the program's calls fail with EINTR. */
		log_line("%s",
			 "nothing is sampled: shim cannot restart interrupted "
			 "system calls on this processor");
		return -ENOSYS;
	}
	r = take_signal();
	if (r < 0)
		return r;
	if (frequency_hz == 0)
		frequency_hz = FREQUENCY_FIRST_HZ;
	handle_->samples = true;
	if (owner && owner->samples_taken)
		take_samples_from(owner);
	if (!owner)
		owner = handle_;
	return 0;
}

void shim_lend_samples(struct shim_profiler_handle *handle_,
		       void (*taken)(void))
{
	handle_->samples_taken = taken;
}

void shim_samples_set_distance(uint32_t periods)
{
	__atomic_store_n(&distance, periods, __ATOMIC_RELAXED);
}

void shim_sample_soon(void)
{
	if (thread_current)
		thread_current->is_sample_soon = true;
}

int sample_enable(struct shim_profiler_handle *handle_)
{
	return state_call_locked(enable_locked, handle_);
}

/* The state lock may be held: built-in profilers call this with the lock. */
enum shim_result
shim_profiler_enable_sampling(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	return sample_enable(handle) < 0 ? SHIM_E_FAIL : SHIM_OK;
}

/* The next owner is the profiler that has waited longest.  State lock held. */
static void handle_left(struct shim_profiler_handle *handle)
{
	ASSERT_LOCKED();
	handle->samples = false;
	if (owner != handle)
		return;
	owner = NULL;
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (h->samples)
			owner = h;
	distance = 1;
	if (!owner) {
		frequency_hz = FREQUENCY_FIRST_HZ;
		stop_locked(NULL);
	}
}

/* --- the mode --- */

struct change {
	struct shim_profiler_handle *handle;
	uint32_t mode, frequency_hz;
};

static int change_mode(void *argument)
{
	struct change *change = argument;
	struct change before = { owner, mode, frequency_hz };
	struct thread *self = thread_current;

	if (owner != change->handle)
		return -EPERM;
	distance = 1;
	if (is_paused) {
		paused_mode = change->mode;
		frequency_hz = change->frequency_hz;
		return 0;
	}
	if (change->mode == SHIM_SAMPLE_NONE ||
	    is_real(change->mode) != is_real(mode))
		thread_each(remove_each, NULL);
	frequency_hz = change->frequency_hz;
	__atomic_store_n(&mode, change->mode, __ATOMIC_RELEASE);
	if (self && set_timer(self) < 0) {
		mode = before.mode;
		frequency_hz = before.frequency_hz;
		thread_each(remove_each, NULL);
		thread_each(set_each, NULL);
		return -EAGAIN;
	}
	thread_each(set_each, NULL);
	return 0;
}

enum shim_result
shim_profiler_set_sample_mode(struct shim_profiler_handle *handle,
			      uint32_t mode_, uint32_t frequency_hz_)
{
	struct change change = { handle, mode_, frequency_hz_ };

	ENTRY_ASYNC_OF(handle);
	if (mode_ > SHIM_SAMPLE_THREAD || frequency_hz_ == 0)
		return SHIM_E_INVALIDARG;
	if (change.frequency_hz > SHIM_SAMPLE_FREQUENCY_MAX)
		change.frequency_hz = SHIM_SAMPLE_FREQUENCY_MAX;
	return state_call_locked(change_mode, &change) < 0 ? SHIM_E_FAIL :
							     SHIM_OK;
}

enum shim_result
shim_profiler_get_sample_mode(struct shim_profiler_handle *handle,
			      uint32_t *mode_, uint32_t *frequency_hz_)
{
	ENTRY_ASYNC_OF(handle);
	if (mode_)
		*mode_ = mode;
	if (frequency_hz_)
		*frequency_hz_ = frequency_hz;
	return owner == handle ? SHIM_OK : SHIM_S_FALSE;
}

enum shim_result shim_get_sample_counts(struct shim_sample_counts *counts_)
{
	ENTRY_ASYNC();
	if (!counts_)
		return SHIM_E_INVALIDARG;
	*counts_ = counts;
	return SHIM_OK;
}

SUBSCRIBE(profiler_left, handle_left);
