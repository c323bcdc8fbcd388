/*
 * The hooks of calltree read a coarse clock, which costs them one load.  The kernel's
 * clock ticks only 100 to 1,000 times a second, which makes the times of short runs
 * uncertain.  So a process of profrun, the writer, sleeps and writes the processor's
 * counter into a shared page, and sleeps again.  A writer that gets no processor for a
 * while writes late, but it writes the time of that moment.
 *
 * Hooks only notice that the page has changed.  So the page must change once more when
 * the writer ends, in whatever way: then each thread goes back to the kernel's tick.
 * The writer is a process of its own: it outlives profrun (SIGKILL) by a moment and
 * does that itself; if the writer dies, profrun does it.
 *
 * If both are killed, the kernel does it.  It writes a zero of four bytes to a chosen
 * address when a thread ends whose memory another thread still uses.  So the writer has
 * a second thread, which sleeps; both name the address whose last byte is the lowest of
 * the clock, and the first that ends makes it 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "os/fine_tick.h"
#include "private.h"
#include "supervise.h"
#include "tick.h"

#include <shim/cpu.h>
#include <shim/format.h>

#define PAGE	   4096
#define START_NS   200000
#define WAITS	   10000 /* of half of START_NS: a second */
#define SECOND_NS  1000000000
#define SLICE_NS   100000
#define LENGTH_NEW 256 /* ticks, until @length is written again */
#define READINGS   8

/* The writer's pace: number of ticks between checks; on average later than LATE_NS means
 * that no processor is free. */
#define PACE_TICKS     64
#define LATE_NS	       60000
#define BUSY_PERIOD_NS 2000000

static pid_t writer = -1;
static bool *is_settled; /* shared: the file is there, or will not be */
static const char *directory;
static const bool *has_directory;
static long period_ns;

/* --- the file ------------------------------------------------------------ */

static void read_boot(char *boot, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, boot, size - 1);

	if (fd >= 0)
		close(fd);
	boot[got > 0 ? got : 0] = '\0';
	boot[strcspn(boot, "\n")] = '\0';
}

static bool has_room(int fd, int flags)
{
	struct stat st;

	if (flags & O_CREAT)
		return posix_fallocate(fd, 0, PAGE) == 0;
	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= PAGE;
}

/* The file, created if @flags has O_CREAT; NULL: it is not there or has no room. */
static struct shim_tick *map_file(int flags)
{
	int above = private_open(AT_FDCWD, directory), fd;
	void *memory = MAP_FAILED;

	if (above < 0)
		return NULL;
	fd = openat(above, FINE_TICK_NAME,
		    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0600);
	close(above);
	if (fd < 0)
		return NULL;
	if (has_room(fd, flags))
		memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

static void sleep_until(const struct timespec *then)
{
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, then, NULL);
}

static void add_ns(struct timespec *time, long ns)
{
	time->tv_nsec += ns;
	if (time->tv_nsec >= SECOND_NS) {
		time->tv_nsec -= SECOND_NS;
		time->tv_sec++;
	}
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec :
					a->tv_nsec < b->tv_nsec;
}

static long ns_between(const struct timespec *from, const struct timespec *to)
{
	return (to->tv_sec - from->tv_sec) * SECOND_NS + to->tv_nsec -
	       from->tv_nsec;
}

/* The last change.  Threads then read the kernel's tick, which must not be earlier than
 * what they have read here. */
static void finish(struct shim_tick *page)
{
	struct timespec last, kernel, wake;

	clock_gettime(CLOCK_MONOTONIC, &last);
	for (int i = 0; i < 100; i++) {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &kernel);
		if (!is_before(&kernel, &last))
			break;
		clock_gettime(CLOCK_MONOTONIC, &wake);
		add_ns(&wake, 1000000);
		sleep_until(&wake);
	}
	page->is_over = 1;
	__atomic_store_n(&page->clock, (page->clock | 1) + 2, __ATOMIC_RELEASE);
}

static uint64_t read_clock(void)
{
	return shim_clock_read() | 1;
}

/* --- the writer ---------------------------------------------------------- */

/* The average over time, not over ticks: a long one covers more of it. */
struct lengths {
	uint64_t last;
	double sum, squares;
	unsigned count;
};

/* False: the kernel has changed it, because this process was killed, or somebody who
 * is not asked to. */
static bool write_clock(struct shim_tick *page, struct lengths *lengths)
{
	uint64_t now = read_clock(), last = lengths->last;
	double length = (double)(now - last);

	if (!__atomic_compare_exchange_n(&page->clock, &last, now, false,
					 __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return false;
	lengths->last = now;
	lengths->sum += length;
	lengths->squares += length * length;
	if (++lengths->count % LENGTH_NEW == 0)
		page->length = (uint64_t)(lengths->squares / lengths->sum);
	return true;
}

struct reading {
	uint64_t clock;
	struct timespec time;
};

/* Of several readings of both clocks the one that took least: no other process had the
 * processor in its middle. */
static struct reading read_both(void)
{
	struct reading best = { 0 }, now;
	uint64_t least = UINT64_MAX, taken;

	for (int i = 0; i < READINGS; i++) {
		now.clock = shim_clock_read();
		clock_gettime(CLOCK_MONOTONIC, &now.time);
		taken = shim_clock_read() - now.clock;
		if (taken < least) {
			least = taken;
			best = now;
		}
	}
	return best;
}

/* The expected length.  Ticks are 0.5 to 1.5 periods long; their weighted mean is 13/12
 * of a period. */
static uint64_t expected_length(void)
{
	struct reading a = read_both(), b;
	struct timespec wake = a.time;

	add_ns(&wake, START_NS);
	sleep_until(&wake);
	b = read_both();
	return (uint64_t)((double)(b.clock - a.clock) * (double)period_ns * 13 /
			  12 / (double)ns_between(&a.time, &b.time));
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Where no processor is free, each tick takes one away from a program, for 5 to 20 us.
 * Lateness shows it: then ticks are fewer. */
struct pace {
	long period_ns, late_ns;
	int ticks;
};

static void keep_pace(struct pace *pace, long late_ns)
{
	pace->late_ns += late_ns;
	if (++pace->ticks < PACE_TICKS)
		return;
	pace->period_ns = pace->late_ns > PACE_TICKS * LATE_NS &&
					  period_ns < BUSY_PERIOD_NS ?
				  BUSY_PERIOD_NS :
				  period_ns;
	pace->ticks = 0;
	pace->late_ns = 0;
}

/* At random times, so that a program that does things at a fixed rate does not always
 * meet the tick in the same one. */
static void write_clocks(struct shim_tick *page, pid_t parent)
{
	struct lengths lengths = { .last = page->clock };
	struct pace pace = { .period_ns = period_ns };
	uint64_t random = shim_clock_read() | 1;
	struct timespec now, next;

	clock_gettime(CLOCK_MONOTONIC, &now);
	next = now;
	while (getppid() == parent) {
		add_ns(&next,
		       pace.period_ns / 2 + (long)(next_random(&random) >> 11) %
						    pace.period_ns);
		if (is_before(&next, &now))
			next = now;
		sleep_until(&next);
		if (!write_clock(page, &lengths))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
		keep_pace(&pace, ns_between(&next, &now));
	}
	finish(page);
	private_remove(directory, FINE_TICK_NAME);
}

/* The thread that sleeps.  It shares the other's thread-local data, so it does nothing
 * else. */
static int sleep_on(void *unused)
{
	(void)unused;
	while (pause() < 0)
		continue;
	return 0;
}

static void change_when_killed(struct shim_tick *page)
{
	static char stack[16384] __attribute__((aligned(16)));
	char *word = (char *)page + offsetof(struct shim_tick, clock) - 3;

	if (clone(sleep_on, stack + sizeof(stack),
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			  CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
		  NULL, NULL, NULL, word) > 0)
		syscall(SYS_set_tid_address, word);
}

static struct shim_tick *make_file(void)
{
	struct shim_tick *page = map_file(O_CREAT | O_EXCL);

	if (page == NULL) {
		private_remove(directory, FINE_TICK_NAME);
		return NULL;
	}
	page->version = SHIM_FORMAT_VERSION;
	page->header_size = sizeof(*page);
	read_boot(page->boot, sizeof(page->boot));
	page->length = expected_length();
	page->clock = read_clock();
	memcpy(page->magic, SHIM_TICK_MAGIC, sizeof(page->magic));
	return page;
}

static void settle(void)
{
	__atomic_store_n(is_settled, true, __ATOMIC_RELEASE);
}

/* The kernel's struct sched_attr; libc has none. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* Since Linux 6.12, a task that requests a short time slice gets a processor sooner.
 * The other attributes stay as they are. */
static void ask_for_little(void)
{
	struct attributes about;

	if (syscall(SYS_sched_getattr, 0, &about, sizeof(about), 0) < 0)
		return;
	about.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &about, 0);
}

static void be_writer(pid_t parent)
{
	const struct timespec pause = { .tv_nsec = START_NS };
	struct shim_tick *page;

	descriptors_close_from(0);
	prctl(PR_SET_TIMERSLACK, 1);
	ask_for_little();
	while (!__atomic_load_n(has_directory, __ATOMIC_ACQUIRE)) {
		if (getppid() != parent)
			_exit(0);
		nanosleep(&pause, NULL);
	}
	page = make_file();
	if (page != NULL)
		change_when_killed(page);
	settle();
	if (page != NULL)
		write_clocks(page, parent);
	_exit(0);
}

/* --- profrun ------------------------------------------------------------- */

/* Processes that go on see that the clock has changed before finish() has waited for the
 * kernel's tick.  They need not be told that the writer was killed. */
static void announce_end(void)
{
	struct shim_tick *page = map_file(0);

	if (page == NULL)
		return;
	__atomic_store_n(&page->is_ending, 1, __ATOMIC_RELEASE);
	munmap(page, PAGE);
}

static void end_ticks(void)
{
	struct shim_tick *page = map_file(0);

	/* In a file that was truncated, the program finds zeros. */
	if (page != NULL) {
		finish(page);
		munmap(page, PAGE);
	}
	private_remove(directory, FINE_TICK_NAME);
}

static void on_writer_ended(void)
{
	writer = -1;
	settle();
	end_ticks();
}

void tick_begin(unsigned hz, const char *where, const bool *is_there)
{
	pid_t parent = getpid();

	period_ns = SECOND_NS / hz;
	directory = where;
	has_directory = is_there;
	is_settled = mmap(NULL, sizeof(*is_settled), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (is_settled == MAP_FAILED)
		return;
	writer = fork();
	if (writer == 0)
		be_writer(parent);
	if (writer > 0)
		supervise_helper(writer, on_writer_ended);
}

void tick_wait(void)
{
	const struct timespec pause = { .tv_nsec = START_NS / 2 };

	for (int i = 0; i < WAITS && writer > 0; i++) {
		if (__atomic_load_n(is_settled, __ATOMIC_ACQUIRE))
			break;
		nanosleep(&pause, NULL);
	}
}

void tick_end(void)
{
	if (writer <= 0)
		return;
	announce_end();
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
	on_writer_ended();
}
