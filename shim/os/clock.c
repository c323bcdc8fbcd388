/*
 * The exact and the coarse clock.  The coarse clock is a word of the kernel's [vvar] page,
 * which has no fixed layout.  shim searches the page for the word whose value matches the
 * processor's counter at the last tick.
 */
#include "os/clock.h"

#include "os/fine_tick.h"
#include "os/maps.h"
#include "os/sys.h"
#include "os/text.h"

#include <shim/cpu.h>
#include <shim/record.h>
#include <time.h>

#include <shim/builtin.h>
#include <shim/banned.h>

struct reading {
	uint64_t clock;
	uint64_t mono_ns;
};

static const volatile uint64_t *tick;
static uint64_t tick_length;
static uint64_t hz;
static uintptr_t vvar;
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

uint64_t clock_read(void)
{
	if (!shim_clock_is_closed())
		return shim_clock_read();
	return tick ? *tick : 0;
}

static bool find_vvar(const struct map *map, void *argument)
{
	(void)argument;
	if (!text_equal(map->path, "[vvar]"))
		return true;
	vvar = map->start;
	return false;
}

/* In a traced program, a tick may come between any two system calls. */
#define TRIES		20
#define TRIES_WITH_TICK 5

/* Reads the coarse counter and the coarse kernel clock of the same tick. */
static struct reading read_coarse_clocks(void)
{
	struct reading now = { 0, 0 };

	for (int i = 0; i < TRIES; i++) {
		now.clock = tick ? *tick : 0;
		if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &now.mono_ns) < 0 ||
		    !tick || *tick == now.clock)
			break;
	}
	return now;
}

/* The largest distance of a valid pair of readings, in clock units.  A system call takes
 * about a microsecond, a preemption far longer. */
#define VALID_DISTANCE 2000

static struct reading read_clocks(void)
{
	struct reading best = { 0, 0 };
	uint64_t best_distance = ~0ull;

	if (shim_clock_is_closed())
		return read_coarse_clocks();
	for (int i = 0; i < 50 && best_distance > VALID_DISTANCE; i++) {
		uint64_t before = shim_clock_read(), mono_ns, distance;

		if (sys_time_ns(CLOCK_MONOTONIC, &mono_ns) < 0)
			break;
		distance = shim_clock_read() - before;
		if (distance < best_distance) {
			best = (struct reading){ before + distance / 2,
						 mono_ns };
			best_distance = distance;
		}
	}
	return best;
}

/* The result is exact to 0.1 %, enough to distinguish the tick from other numbers. */
static uint64_t measure_hz(void)
{
	struct reading a = read_clocks(), b;

	do
		b = read_clocks();
	while (b.mono_ns - a.mono_ns < 200000 && b.mono_ns != 0);
	if (b.mono_ns <= a.mono_ns)
		return 0;
	return (uint64_t)((unsigned __int128)(b.clock - a.clock) * 1000000000u /
			  (b.mono_ns - a.mono_ns));
}

/* Whether @value is the counter's value of @age_ns ago. */
static bool matches(uint64_t value, uint64_t now, uint64_t age_ns)
{
	uint64_t age, expected;

	if (value > now || now - value > hz / 10)
		return false;
	age = now - value;
	expected = (uint64_t)((unsigned __int128)age_ns * hz / 1000000000u);
	return age + hz / 100000 > expected &&
	       age < expected + expected / 100 + hz / 100000;
}

/*
 * Returns NULL if the page does not have the tick.  Returns NULL and sets *@has_ticked if
 * a tick came between the two readings.  Reads only the first page: other pages of [vvar]
 * may belong to a hypervisor and fault.
 */
static const volatile uint64_t *find_tick(bool *has_ticked)
{
	const volatile uint64_t *words = (const volatile uint64_t *)vvar;
	uint64_t coarse_ns, again_ns;
	struct reading now;

	if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &coarse_ns) < 0)
		return NULL;
	now = read_clocks();
	if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &again_ns) < 0)
		return NULL;
	*has_ticked = coarse_ns != again_ns;
	if (*has_ticked)
		return NULL;
	for (size_t i = 0; i < 4096 / sizeof(*words); i++)
		if (matches(words[i], now.clock, now.mono_ns - coarse_ns))
			return &words[i];
	return NULL;
}

static void measure_tick(void)
{
	uint64_t resolution_ns;
	int ticked = 0;

	if (hz == 0 || maps_read(find_vvar, NULL) < 0 || !vvar ||
	    sys_clock_resolution(CLOCK_MONOTONIC_COARSE, &resolution_ns) < 0)
		return;
	tick_length = (uint64_t)((unsigned __int128)resolution_ns * hz /
				 1000000000u);
	/* An interruption between two readings spoils an attempt. */
	for (int i = 0; i < TRIES && !tick && ticked < TRIES_WITH_TICK; i++) {
		bool has_ticked = false;

		tick = find_tick(&has_ticked);
		ticked += has_ticked;
	}
}

bool clock_start(void)
{
	if (sys_clock_is_readable() < 0) {
		clock_close();
		return true;
	}
	hz = measure_hz();
	measure_tick();
	return tick != NULL;
}

const volatile uint64_t *shim_clock_coarse(uint64_t *length)
{
	if (length)
		*length = tick_length;
	return tick;
}

void clock_describe(struct shim_meta *meta)
{
	struct reading now = read_clocks();

	meta->clock = SHIM_CLOCK_TSC;
	meta->clock_hz = hz;
	meta->tick = tick ? tick_length : 0;
	fine_tick_describe(meta);
	meta->first_clock = meta->last_clock = now.clock;
	meta->first_mono_ns = meta->last_mono_ns = now.mono_ns;
	sys_time_ns(CLOCK_REALTIME, &meta->start_real_ns);
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
	struct reading now;

	if (!meta || sys_is_forbidden() || shim_clock_is_closed())
		return;
	now = read_clocks();
	if (now.mono_ns == 0)
		return;
	meta->last_clock = now.clock;
	meta->last_mono_ns = now.mono_ns;
}
