/*
 * monitor(3): the life of sets of counters, for the process or for each thread.  The
 * functions of <shim/compat/mon.h> and default profiling start and stop them; fork, exec and the
 * end of the process write them.  The sampler's handler counts in them without a lock,
 * so a set is freed only when no handler uses it.
 */
#define _GNU_SOURCE
#include "monitor/monitor.h"

#include "image/image.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"
#include "runtime/thread.h"
#include "sampling/sample.h"

#include <errno.h>
#include <shim/builtin.h>
#include <shim/format.h>
#include <shim/info.h>
#include <shim/sampling.h>

#include <shim/banned.h>

#define FREQUENCY_HZ 250

static struct monitor_flags flags;
static struct monitor_directory directory;
static uint32_t frequency_hz = FREQUENCY_HZ;
static bool is_requested; /* by -p pchist */
static bool is_default;	  /* default profiling runs */
static int owner_pid;
static shim_image last_permanent; /* images with larger ids came by dlopen */
static struct shim_profiler_handle *handle;

static struct monitor_set *shared;	/* the set of the process, or NULL */
static struct monitor_set *thread_sets; /* the threads' sets */
static __thread struct monitor_set *thread_set
	__attribute__((tls_model("initial-exec")));
static uint64_t threads = 1; /* the number of threads that shim has seen */
static __thread uint64_t thread_number
	__attribute__((tls_model("initial-exec")));
static uint32_t readers; /* threads that use sets without the lock */

/* --- counting --- */

static bool is_gmon(void)
{
	return !text_equal(config.prof_format, "mon");
}

static struct monitor_set *current(void)
{
	return flags.threads ? thread_set :
			       __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
}

static int make_thread_set(void *unused);

static bool count_at(uintptr_t pc, uint32_t count)
{
	struct monitor_set *set;
	bool default_wishes = false;

	if (flags.threads && is_default && !thread_set)
		state_call_locked(make_thread_set, NULL);
	__atomic_add_fetch(&readers, 1, __ATOMIC_SEQ_CST);
	set = current();
	if (set)
		default_wishes = monitor_add_to(set, pc, count);
	__atomic_sub_fetch(&readers, 1, __ATOMIC_RELEASE);
	return default_wishes;
}

int monitor_add(uintptr_t pc, uint32_t count)
{
	return count_at(pc, count) ? 0 : -EINVAL;
}

static void on_sample_hit(struct shim_profiler *profiler, uintptr_t ip,
			  const void *context, uint32_t weight)
{
	(void)profiler;
	(void)context;
	count_at(ip, weight);
}

/* --- sets --- */

/* Frees @set, which new readers cannot find.  Waits for the readers that use it.  If
 * they do not finish, the set is never freed. */
static void retire(struct monitor_set *set)
{
	for (unsigned tries = 0; tries < 1000; tries++) {
		if (__atomic_load_n(&readers, __ATOMIC_SEQ_CST) == 0) {
			monitor_free_set(set);
			return;
		}
		sys_yield();
	}
}

/* The calling thread's number.  The first thread has 1; each other thread gets the next
 * number when it first counts. */
static uint64_t get_number(void)
{
	if (thread_number == 0)
		thread_number = __atomic_add_fetch(&threads, 1,
						   __ATOMIC_RELAXED);
	return thread_number;
}

static void install_set(struct monitor_set *set)
{
	struct monitor_set *before = current(), **at = &thread_sets;

	set->counts = true;
	if (!flags.threads) {
		__atomic_store_n(&shared, set, __ATOMIC_SEQ_CST);
	} else {
		set->thread = get_number();
		thread_set = set;
		while (*at && *at != before)
			at = &(*at)->next;
		if (*at)
			*at = before->next;
		set->next = thread_sets;
		thread_sets = set;
	}
	if (before)
		retire(before);
}

/* --- default profiling --- */

static bool is_wanted_image(const struct image_entry *image, bool with_all)
{
	if (image->id == 0 || image->id > last_permanent ||
	    image == image_find((uintptr_t)&is_wanted_image))
		return false;
	if (flags.included_count > 0)
		return monitor_is_named(flags.included, flags.included_count,
					image);
	return with_all || (image->flags & SHIM_IMAGE_PROGRAM);
}

static struct monitor_wish default_wishes[MONITOR_RANGES_MAX];

/* Finds the objects to profile.  The program comes first, because its file has the
 * set's name. */
static uint32_t find_objects(bool with_all)
{
	struct image_entry *const *images;
	uint32_t count = 0, all_images;
	uintptr_t low, high, entry;

	image_pin();
	all_images = image_list(&images);
	for (uint32_t i = 0; i < all_images && count < MONITOR_RANGES_MAX;
	     i++) {
		const struct image_entry *image = images[i];

		if (!is_wanted_image(image, with_all) ||
		    !monitor_find_code(image, &low, &high, &entry))
			continue;
		default_wishes[count++] = (struct monitor_wish){
			.low = image->bias + low,
			.high = image->bias + high,
		};
		if (image->flags & SHIM_IMAGE_PROGRAM) {
			struct monitor_wish first = default_wishes[0];

			default_wishes[0] = default_wishes[count - 1];
			default_wishes[count - 1] = first;
		}
	}
	image_unpin();
	return count;
}

static void find_default(struct monitor_request *request, bool by_default)
{
	/* A file for prof has all objects (row T-7). */
	bool with_all = flags.all || (!by_default && !is_gmon());

	*request = (struct monitor_request){
		.wishes = default_wishes,
		.count = find_objects(with_all),
		.by_default = by_default,
	};
	for (uint32_t i = 0; i < flags.included_count; i++) {
		bool is_there = false;

		image_pin();
		for (uint32_t n = 0; n < request->count && !is_there; n++) {
			const struct image_entry *image = image_find(
				default_wishes[n].low);

			is_there = image && monitor_is_named(&flags.included[i],
							     1, image);
		}
		image_unpin();
		if (!is_there)
			log_line("PROFFLAGS: -incobj %s: no such object is "
				 "loaded",
				 flags.included[i]);
	}
}

/* --- the sampler --- */

static void on_forked(struct shim_profiler *profiler);
static void on_recording_began(struct shim_profiler *profiler);
static void on_executing(struct shim_profiler *profiler, const char *path);
static void on_shutdown(struct shim_profiler *profiler);
static void on_system_closing(struct shim_profiler *profiler);
static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation);
static void on_thread_started(struct shim_profiler *profiler,
			      shim_thread thread);

static int make_handle(void)
{
	if (handle)
		return 0;
	handle = handle_create(NULL);
	if (!handle || sample_enable(handle) < 0)
		return -EAGAIN;
	shim_profiler_on_sample_hit(handle, on_sample_hit);
	shim_profiler_on_forked(handle, on_forked);
	shim_profiler_on_recording_began(handle, on_recording_began);
	shim_profiler_on_executing(handle, on_executing);
	shim_profiler_on_runtime_shutdown_end(handle, on_shutdown);
	shim_profiler_on_system_closing(handle, on_system_closing);
	shim_profiler_on_image_unloaded(handle, on_image_unloaded);
	if (flags.threads)
		shim_profiler_on_thread_started(handle, on_thread_started);
	return 0;
}

/* Starts or stops the sampler.  If another profiler has the sampler, that profiler
 * decides about mode and rate. */
static int switch_sampler(bool on)
{
	uint32_t mode = SHIM_SAMPLE_NONE;

	if (shim_profiler_get_sample_mode(handle, &mode, NULL) != SHIM_OK) {
		if (on && mode == SHIM_SAMPLE_NONE)
			log_line("%s", "pchist: another profiler has the "
				       "sampler, and has not started it");
		return 0;
	}
	if ((mode != SHIM_SAMPLE_NONE) == on)
		return 0;
	return shim_profiler_set_sample_mode(
		       handle, on ? SHIM_SAMPLE_PROCESS : SHIM_SAMPLE_NONE,
		       frequency_hz) == SHIM_OK ?
		       0 :
		       -EAGAIN;
}

static uint32_t rate_hz(void)
{
	uint32_t mode, rate = 0;

	if (handle)
		shim_profiler_get_sample_mode(handle, &mode, &rate);
	return rate ? rate : frequency_hz;
}

/* --- starting --- */

static int name_of(const struct monitor_set *set, char name[MONITOR_PATH_SIZE])
{
	return monitor_name(&flags, &directory, is_gmon(), set->thread, name);
}

static void keep_name(struct monitor_set *set)
{
	static char name[MONITOR_PATH_SIZE];

	if (set->kept && name_of(set, name) == 0)
		monitor_keep_name(set, name, is_gmon(), rate_hz());
}

static int continue_counting(struct monitor_set *set)
{
	set->is_stopped = false;
	monitor_keep_done(set, false);
	__atomic_store_n(&set->counts, true, __ATOMIC_RELAXED);
	monitor_counts_arcs = true;
	return switch_sampler(true);
}

/* Whether a call of monitor(3) only switches counting on (row T-36). */
static bool is_ignored(const struct monitor_set *set,
		       const struct monitor_request *request)
{
	if (request->by_default || flags.disable_default)
		return false;
	return is_default || (!flags.threads && set && !set->is_stopped);
}

/* Whether another thread has started the set.  Threads share it, so all must give the
 * same arguments (row T-18). */
static bool is_of_other_thread(const struct monitor_set *set)
{
	return set && !flags.threads && !set->is_stopped &&
	       set->starter != sys_gettid();
}

static int start_counting(void *argument)
{
	struct monitor_request *request = argument, objects;
	struct monitor_set *set = current();
	int r;

	monitor_read_directory(&directory);
	if (request->count == 0) {
		find_default(&objects, request->by_default);
		request = &objects;
	}
	r = monitor_check(request);
	if (r == 0)
		r = make_handle();
	if (r < 0)
		return r;
	if (set && (is_ignored(set, request) || monitor_is_like(set, request)))
		return continue_counting(set);
	if (is_of_other_thread(set) && !request->by_default)
		return -EINVAL;
	r = monitor_make_set(&flags, request, &set);
	if (r < 0)
		return r;
	set->starter = sys_gettid();
	owner_pid = sys_getpid();
	install_set(set);
	r = continue_counting(set);
	keep_name(set);
	return r;
}

static int make_thread_set(void *unused)
{
	struct monitor_request request;
	struct monitor_set *set;

	(void)unused;
	if (thread_set || !is_default)
		return 0;
	find_default(&request, true);
	if (monitor_make_set(&flags, &request, &set) == 0) {
		install_set(set);
		keep_name(set);
	}
	return 0;
}

static void on_thread_started(struct shim_profiler *profiler,
			      shim_thread thread)
{
	(void)profiler;
	(void)thread;
	get_number();
	if (is_default && !thread_set)
		state_call_locked(make_thread_set, NULL);
}

int monitor_start(uintptr_t low, uintptr_t high)
{
	struct monitor_wish wish = { .low = low, .high = high };
	struct monitor_request request = { .wishes = &wish };

	request.count = low || high;
	return state_call_locked(start_counting, &request);
}

int monitor_start_in(const struct monitor_wish *wishes, uint32_t count,
		     bool is_wide)
{
	struct monitor_request request = { wishes, count, is_wide ? 4 : 2,
					   false };

	if (is_gmon() && config.monitor_gmon[0] != '1')
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++)
		if (!wishes[i].counters)
			return -EINVAL;
	if (count == 0)
		return -EINVAL;
	return state_call_locked(start_counting, &request);
}

int monitor_control(bool on)
{
	struct monitor_set *set = current();
	int before;

	if (!set)
		return -EINVAL;
	before = set->counts;
	if (on && set->is_stopped) {
		set->is_stopped = false;
		monitor_keep_done(set, false);
		switch_sampler(true);
	}
	__atomic_store_n(&set->counts, on, __ATOMIC_RELAXED);
	if (!flags.threads)
		__atomic_store_n(&monitor_counts_arcs, on, __ATOMIC_RELAXED);
	return before;
}

/* --- writing; the lock is held --- */

static int log_failure(const char *name, int r)
{
	static bool is_reported;

	if (r < 0 && !is_reported)
		log_error("cannot write the profile to %s", name, r);
	is_reported |= r < 0;
	return r;
}

static int write_set(struct monitor_set *set, bool zeroes, const char *name)
{
	struct monitor_output output = {
		.name = name,
		.is_gmon = is_gmon(),
		.zeroes = zeroes,
		.has_arcs = set == shared || (!shared && !set->next),
		.rate_hz = rate_hz(),
	};

	return log_failure(name, monitor_write_set(set, &output));
}

static int write_one(struct monitor_set *set, bool zeroes)
{
	static char name[MONITOR_PATH_SIZE];
	int r = name_of(set, name);

	return r < 0 ? log_failure("its name", r) :
		       write_set(set, zeroes, name);
}

struct writing {
	bool zeroes;
	bool is_interrupted; /* in a signal handler: reads no environment */
	bool is_last;
};

static int write_all(void *argument)
{
	const struct writing *writing = argument;
	int result = 0;

	if (owner_pid != sys_getpid())
		return 0;
	if (!writing->is_interrupted)
		monitor_read_directory(&directory);
	for (struct monitor_set *set = shared ? shared : thread_sets; set;
	     set = set->next) {
		int r = set->is_stopped ? 0 : write_one(set, writing->zeroes);

		if (r < 0)
			result = r;
		else if (writing->is_last)
			monitor_keep_done(set, true);
	}
	return result;
}

int monitor_write(void)
{
	struct writing writing = { flags.signal != 0, true, false };

	return state_call_locked(write_all, &writing);
}

static int stop_counting(void *unused)
{
	struct monitor_set *set = current();
	int r;

	(void)unused;
	monitor_read_directory(&directory);
	if (!set || set->is_stopped || owner_pid != sys_getpid())
		return 0;
	__atomic_store_n(&set->counts, false, __ATOMIC_RELAXED);
	set->is_stopped = true;
	if (!flags.threads) {
		monitor_counts_arcs = false;
		switch_sampler(false);
	}
	r = write_one(set, false);
	monitor_keep_done(set, r == 0);
	return r;
}

int monitor_stop(void)
{
	return state_call_locked(stop_counting, NULL);
}

static void log_count(const char *format, uint64_t count)
{
	char memory[32];
	struct text text;

	text_init(&text, memory, sizeof(memory));
	text_add_number(&text, count);
	if (count)
		log_line(format, memory);
}

static void log_losses(void)
{
	uint64_t saturated = 0;

	for (uint32_t i = 0; shared && i < shared->range_count; i++)
		saturated += shared->ranges[i].saturated;
	log_count("monitor: %s samples were not counted, because their counter "
		  "was full",
		  saturated);
	log_count("gmon.out: %s calls had no room in the table of arcs",
		  monitor_lost_arcs());
}

void monitor_finish(void)
{
	struct writing writing = { false, false, true };

	if (!shared && !thread_sets)
		return;
	if (state_call_locked(write_all, &writing) == 0 &&
	    owner_pid == sys_getpid())
		log_losses();
}

/* Writes the files now, because system calls will be forbidden. */
static void on_system_closing(struct shim_profiler *profiler)
{
	struct writing writing = { false, true, false };

	(void)profiler;
	state_call_locked(write_all, &writing);
}

static void on_shutdown(struct shim_profiler *profiler)
{
	(void)profiler;
	monitor_finish();
}

/* --- other processes --- */

/* Gives a child's set new counters, because the old ones are in the parent's recording. */
static void renew_counters(struct monitor_set *set)
{
	set->kept = NULL;
	for (uint32_t i = 0; i < set->range_count; i++)
		set->ranges[i].counters = NULL;
	if (monitor_give_counters(set) < 0)
		set->range_count = 0;
	else
		keep_name(set);
}

static void empty_set(struct monitor_set *set)
{
	set->outside = 0;
	if (set->kept) {
		renew_counters(set);
		return;
	}
	for (uint32_t i = 0; i < set->range_count; i++) {
		struct monitor_range *range = &set->ranges[i];
		char *bytes = range->counters;

		range->saturated = 0;
		if (!monitor_is_given(range) &&
		    sys_empty(bytes, range->bins * range->width) == 0)
			continue;
		for (uint64_t n = 0; n < range->bins * range->width; n++)
			if (bytes[n])
				bytes[n] = 0;
	}
}

/* In a child: starts at 0, because the counts and the other threads belong to the
 * parent. */
static void on_forked(struct shim_profiler *profiler)
{
	(void)profiler;
	owner_pid = sys_getpid();
	monitor_name_child();
	readers = 0;
	if (shared)
		empty_set(shared);
	if (thread_set)
		empty_set(thread_set);
	thread_sets = thread_set;
	if (thread_set)
		thread_set->next = NULL;
	monitor_forget_arcs();
}

/* Another recording of this process.  (A thread that samples may count one hit in both.) */
static void on_recording_began(struct shim_profiler *profiler)
{
	(void)profiler;
	for (struct monitor_set *set = shared ? shared : thread_sets; set;
	     set = set->next)
		empty_set(set);
	monitor_forget_arcs();
}

/* Ends the counting in [@low, @high), because other code may be loaded there. */
static void end_range(struct monitor_set *set, uintptr_t low, uintptr_t high)
{
	for (uint32_t i = 0; i < set->range_count; i++)
		if (set->ranges[i].low < high && low < set->ranges[i].high)
			__atomic_store_n(&set->ranges[i].is_gone, true,
					 __ATOMIC_RELAXED);
}

struct span {
	uintptr_t low, high;
};

static int end_ranges(void *argument)
{
	const struct span *span = argument;

	for (struct monitor_set *set = shared ? shared : thread_sets; set;
	     set = set->next)
		end_range(set, span->low, span->high);
	return 0;
}

static void on_image_unloaded(struct shim_profiler *profiler, uintptr_t low,
			      uintptr_t high, uint32_t generation)
{
	struct span span = { low, high };

	(void)profiler;
	(void)generation;
	state_call_locked(end_ranges, &span);
}

static bool has_counted(const struct monitor_set *set)
{
	for (uint32_t i = 0; i < set->range_count; i++) {
		const struct monitor_range *range = &set->ranges[i];
		const char *bytes = range->counters;

		for (uint64_t n = 0; n < range->bins * range->width; n++)
			if (bytes[n])
				return true;
	}
	for (struct monitor_arc *arc = monitor_next_arc(NULL); arc;
	     arc = monitor_next_arc(arc))
		if (arc->calls)
			return true;
	return false;
}

/* Changes NAME to the first free of NAME.1, NAME.2 ..., because the new program will
 * use NAME. */
static int number_name(char name[MONITOR_PATH_SIZE])
{
	size_t length = text_length(name);
	unsigned uid, mode;

	for (uint64_t n = 1; n < 10000; n++) {
		struct text text;

		text_init(&text, name + length, MONITOR_PATH_SIZE - length);
		text_add(&text, ".");
		text_add_number(&text, n);
		if (text.cut)
			return -ENAMETOOLONG;
		if (sys_file_owner(name, &uid, &mode) < 0)
			return 0;
	}
	return -EEXIST;
}

static int write_before_exec(void *unused)
{
	static char name[MONITOR_PATH_SIZE];

	(void)unused;
	for (struct monitor_set *set = shared ? shared : thread_sets; set;
	     set = set->next) {
		if (set->is_stopped || !has_counted(set) ||
		    name_of(set, name) < 0 || number_name(name) < 0)
			continue;
		/* If exec fails, counting continues from 0. */
		write_set(set, true, name);
	}
	return 0;
}

static void on_executing(struct shim_profiler *profiler, const char *path)
{
	(void)profiler;
	(void)path;
	if (owner_pid == sys_getpid())
		state_call_locked(write_before_exec, NULL);
}

/* --- start --- */

void shim_monitor_by_default(uint32_t hz)
{
	frequency_hz = hz;
	is_requested = true;
}

static void find_last_permanent(void)
{
	struct image_entry *const *images;
	uint32_t count;

	image_pin();
	count = image_list(&images);
	for (uint32_t i = 0; i < count; i++)
		if (images[i]->id > last_permanent)
			last_permanent = images[i]->id;
	image_unpin();
}

static int prepare(void *unused)
{
	(void)unused;
	return make_handle();
}

void monitor_load(void (*establish)(int signal))
{
	struct monitor_request request = { .by_default = true };
	int r;

	monitor_remember_program();
	monitor_read_flags(&flags);
	monitor_read_directory(&directory);
	/* Without this, parent and child would overwrite each other's files. */
	if (record_has_parent())
		monitor_name_child();
	find_last_permanent();
	thread_number = 1;
	if (flags.threads)
		state_call_locked(prepare, NULL);
	if (flags.signal)
		establish(flags.signal);
	if (flags.disable_default || (directory.is_set && !directory.path[0]))
		return;
	if (!is_requested && !directory.is_set && !flags.is_given)
		return;
	r = state_call_locked(start_counting, &request);
	if (r < 0)
		log_error("cannot start %s", "default profiling", r);
	is_default = r == 0;
}
