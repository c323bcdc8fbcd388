/*
 * The exact clock, the processor's counter, and its relation to the kernel's clocks.
 */
#include "os/clock.h"

#include "os/coarse_clock.h"
#include "os/fine_tick.h"
#include "os/sys.h"

#include <fcntl.h>
#include <shim/cpu.h>
#include <shim/record.h>
#include <time.h>

#include <shim/builtin.h>
#include <shim/banned.h>

static uint64_t hz;
static bool
	any_closed; /* a thread has lost the clock: new threads may inherit that */
static __thread bool closed;

void clock_close(void)
{
	closed = true;
	any_closed = true;
}

bool shim_clock_is_closed(void)
{
	if (!closed && any_closed)
		closed = sys_is_forbidden() || sys_clock_is_readable() < 0;
	return closed;
}

uint64_t clock_hz(void)
{
	return hz;
}

size_t clock_read_boot(char boot[CLOCK_BOOT_SIZE])
{
	int fd = sys_open("/proc/sys/kernel/random/boot_id",
			  O_RDONLY | O_CLOEXEC, 0);
	long size = fd < 0 ? -1 : sys_read(fd, boot, CLOCK_BOOT_SIZE - 1);

	if (fd >= 0)
		sys_close(fd);
	if (size <= 1)
		return 0;
	boot[size - 1] = '\0'; /* the newline */
	return (size_t)size - 1;
}

uint64_t clock_read(void)
{
	if (!shim_clock_is_closed())
		return shim_clock_read();
	return coarse_clock_read();
}

/*
 * A pair of readings at a smaller distance, in clock units, needs no better one.  A system
 * call takes about a microsecond, a preemption far longer.  Where calls take longer, the best
 * of many tries says what is good.
 */
#define MANY_TRIES 50

static uint64_t good_distance = 2000;

static void learn_distance(uint64_t best, int tries)
{
	if (tries == MANY_TRIES && best != ~0ull && best > good_distance)
		good_distance = best + best / 4;
}

uint64_t clock_read_both(struct clock_reading *reading, int tries)
{
	uint64_t best_distance = ~0ull;

	*reading = (struct clock_reading){ 0, 0 };
	for (int i = 0; i < tries && best_distance > good_distance; i++) {
		uint64_t before = shim_clock_read(), mono_ns, distance;

		if (sys_time_ns(CLOCK_MONOTONIC, &mono_ns) < 0)
			break;
		distance = shim_clock_read() - before;
		if (distance < best_distance) {
			*reading = (struct clock_reading){
				before + distance / 2, mono_ns
			};
			best_distance = distance;
		}
	}
	learn_distance(best_distance, tries);
	return best_distance;
}

static struct clock_reading read_clocks(void)
{
	struct clock_reading now;

	if (shim_clock_is_closed())
		return coarse_clock_read_both();
	clock_read_both(&now, MANY_TRIES);
	return now;
}

/* The result is exact to 0.1 %, enough to distinguish the tick from other numbers. */
static uint64_t measure_hz(void)
{
	struct clock_reading a = read_clocks(), b;

	do
		b = read_clocks();
	while (b.mono_ns - a.mono_ns < 200000 && b.mono_ns != 0);
	if (b.mono_ns <= a.mono_ns)
		return 0;
	return (uint64_t)((unsigned __int128)(b.clock - a.clock) * 1000000000u /
			  (b.mono_ns - a.mono_ns));
}

bool clock_start(void)
{
	if (sys_clock_is_readable() < 0) {
		clock_close();
		return true;
	}
	hz = measure_hz();
	return hz != 0 && coarse_clock_start(hz);
}

void clock_describe(struct shim_meta *meta)
{
	struct clock_reading now = read_clocks();

	meta->clock = SHIM_CLOCK_TSC;
	meta->clock_hz = hz;
	meta->tick = coarse_clock_length();
	fine_tick_describe(meta);
	meta->first_clock = meta->last_clock = now.clock;
	meta->first_mono_ns = meta->last_mono_ns = now.mono_ns;
	sys_time_ns(CLOCK_REALTIME, &meta->start_real_ns);
	sys_time_ns(CLOCK_PROCESS_CPUTIME_ID, &meta->first_cpu_ns);
}

bool shim_clock_cpu(uint64_t *time)
{
	uint64_t ns;

	if (sys_is_forbidden() || hz == 0 ||
	    sys_time_ns(CLOCK_THREAD_CPUTIME_ID, &ns) < 0)
		return false;
	*time = (uint64_t)((unsigned __int128)ns * hz / 1000000000u);
	return true;
}

void clock_note(struct shim_meta *meta)
{
	struct clock_reading now;

	if (!meta || sys_is_forbidden() || shim_clock_is_closed())
		return;
	now = read_clocks();
	if (now.mono_ns == 0)
		return;
	meta->last_clock = now.clock;
	meta->last_mono_ns = now.mono_ns;
}

void clock_note_cpu(struct shim_meta *meta)
{
	if (!sys_is_forbidden() && !shim_clock_is_closed())
		sys_time_ns(CLOCK_PROCESS_CPUTIME_ID, &meta->last_cpu_ns);
}
