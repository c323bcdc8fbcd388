/*
 * Finds the word of the coarse clock, and converts its values.
 *
 * The [vvar] page has no fixed layout.  If the clock source is the processor's counter,
 * shim searches the page for the word that has the counter's value of the last tick.
 * Otherwise it searches for the time of CLOCK_MONOTONIC_COARSE, which the page has in two
 * words.  They are in a table, and the word is a few words before the table.
 *
 * A value is converted by an anchor: a value, its time in clock units, and the rate from
 * there on.  A new anchor, with the rate since the one before, replaces it each second in
 * which the clock is read: neither a rate that was measured in a short time nor the
 * kernel's adjustments add up.
 */
#include "os/coarse_clock.h"

#include "os/clock.h"
#include "os/maps.h"
#include "os/sys.h"
#include "os/text.h"

#include <shim/cpu.h>
#include <shim/record.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <time.h>

#include <shim/banned.h>

#define PAGE_WORDS    (4096 / sizeof(uint64_t))
#define NS_PER_SECOND 1000000000u

static const volatile uint64_t *word;
static uint64_t word_length; /* of a tick, in units of the word */
static uint64_t tick_length; /* in clock units */
static uint64_t hz;
static uintptr_t vvar;

/* --- anchors --- */

struct anchor {
	uint64_t value; /* of the word */
	uint64_t clock; /* its time in clock units */
	uint64_t rate;	/* clock units for a unit of the word, with RATE_BITS */
};

#define RATE_BITS 32

/* The newest of the last ANCHORS is anchors[anchor_count % ANCHORS].  A reader that was
 * interrupted for long reads again. */
#define ANCHORS 8
static struct anchor anchors[ANCHORS];
static uint32_t anchor_count;
static bool is_scaled; /* false: the word has clock units */
static bool is_renewing;
static uint64_t anchor_life; /* in units of the word */

/* In a traced program, a tick may come between any two system calls. */
#define TRIES		20
#define TRIES_WITH_TICK 5

static struct anchor newest_anchor(void)
{
	struct anchor found = { 0, 0, 0 };

	for (int i = 0; i < TRIES; i++) {
		uint32_t count = __atomic_load_n(&anchor_count,
						 __ATOMIC_ACQUIRE);

		found = anchors[count % ANCHORS];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&anchor_count, __ATOMIC_RELAXED) - count <
		    ANCHORS - 1)
			break;
	}
	return found;
}

static void add_anchor(const struct anchor *anchor)
{
	uint32_t next = anchor_count + 1;

	anchors[next % ANCHORS] = *anchor;
	__atomic_store_n(&anchor_count, next, __ATOMIC_RELEASE);
}

static uint64_t multiply(uint64_t length, uint64_t rate)
{
	return (uint64_t)((unsigned __int128)length * rate >> RATE_BITS);
}

/* A reading that takes longer was interrupted. */
#define LONGEST_PER_SECOND 20000

/* Reads a value of the word and its time; false if it failed or was interrupted. */
static bool measure_anchor(struct anchor *anchor, int tries)
{
	uint64_t coarse_ns, again_ns;
	struct clock_reading now;

	anchor->value = *word;
	if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &coarse_ns) < 0 ||
	    clock_read_both(&now, tries) > hz / LONGEST_PER_SECOND ||
	    sys_time_ns(CLOCK_MONOTONIC_COARSE, &again_ns) < 0 ||
	    coarse_ns != again_ns || *word != anchor->value ||
	    now.mono_ns < coarse_ns)
		return false;
	anchor->clock = now.clock - (uint64_t)((unsigned __int128)(now.mono_ns -
								   coarse_ns) *
					       hz / NS_PER_SECOND);
	return true;
}

static uint64_t rate_between(const struct anchor *from, const struct anchor *to)
{
	return (uint64_t)(((unsigned __int128)(to->clock - from->clock)
			   << RATE_BITS) /
			  (to->value - from->value));
}

/* Where system calls are slow, it fails, and the next try is later.  (Not inlined: hooks
 * convert a value at each tick, on small stacks.) */
static __attribute__((noinline, cold)) void
renew_anchor(const struct anchor *last)
{
	struct anchor next;
	bool renewing = false;

	if (sys_is_forbidden() || shim_clock_is_closed() ||
	    !__atomic_compare_exchange_n(&is_renewing, &renewing, true, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (measure_anchor(&next, 2) && next.value > last->value &&
	    next.clock > last->clock) {
		next.rate = rate_between(last, &next);
		add_anchor(&next);
	} else if (anchor_life < UINT64_MAX / 4) {
		anchor_life += anchor_life / 4;
	}
	__atomic_store_n(&is_renewing, false, __ATOMIC_RELEASE);
}

static uint64_t convert(const struct anchor *anchor, uint64_t value)
{
	uint64_t before;

	if (value >= anchor->value)
		return anchor->clock +
		       multiply(value - anchor->value, anchor->rate);
	before = multiply(anchor->value - value, anchor->rate);
	return before < anchor->clock ? anchor->clock - before : 0;
}

uint64_t shim_clock_of_coarse(uint64_t value)
{
	struct anchor anchor;
	uint64_t clock, now;

	if (!is_scaled || value == 0)
		return value;
	anchor = newest_anchor();
	if (value > anchor.value && value - anchor.value > anchor_life) {
		renew_anchor(&anchor);
		anchor = newest_anchor();
	}
	clock = convert(&anchor, value);
	if (shim_clock_is_closed())
		return clock;
	/* A tick is in the past, whatever the kernel does to its clock. */
	now = shim_clock_read();
	return clock < now ? clock : now;
}

/* --- the search --- */

static bool find_vvar(const struct map *map, void *argument)
{
	(void)argument;
	if (!text_equal(map->path, "[vvar]"))
		return true;
	vvar = map->start;
	return false;
}

/* Whether @value is the counter's value of @age_ns ago. */
static bool matches(uint64_t value, uint64_t now, uint64_t age_ns)
{
	uint64_t age, expected;

	if (value > now || now - value > hz / 10)
		return false;
	age = now - value;
	expected = (uint64_t)((unsigned __int128)age_ns * hz / NS_PER_SECOND);
	return age + hz / 100000 > expected &&
	       age < expected + expected / 100 + hz / 100000;
}

static const volatile uint64_t *find_counter(const volatile uint64_t *words,
					     uint64_t now, uint64_t age_ns)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		if (matches(words[i], now, age_ns))
			return &words[i];
	return NULL;
}

/*
 * What the kernel's struct vdso_clock (vdso_data before 6.13) has before its table of
 * times, from the table backwards.  Since 6.10 a limit is between the word and the mask.
 */
enum {
	BACK_TO_FACTOR = 1, /* mult: 32 bits, shift: 32 bits */
	BACK_TO_MASK = 2,   /* the bits of the clock source */
	BACK_TO_WORD = 3,   /* and 4 with a limit; before it is the header */
	BACK_AT_LEAST = 4,
};

/* The state of the clock source, and before it the number of changes. */
static bool is_header(uint64_t header)
{
	uint64_t source = header >> 32;

	return source >= 1 && source <= 3;
}

/* One of the two changes with the next tick. */
static const volatile uint64_t *wait_for_change(const volatile uint64_t *a,
						const volatile uint64_t *b)
{
	uint64_t first_a = *a, first_b = *b, begin_ns, now_ns;

	if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &begin_ns) < 0)
		return NULL;
	do {
		if (*a != first_a)
			return a;
		if (*b != first_b)
			return b;
		if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &now_ns) < 0)
			break;
	} while (now_ns - begin_ns < NS_PER_SECOND / 20);
	return NULL;
}

static const volatile uint64_t *word_before(const volatile uint64_t *words,
					    size_t table)
{
	const volatile uint64_t *late = &words[table - BACK_TO_WORD];
	uint64_t mask = words[table - BACK_TO_MASK];
	bool is_late = is_header(late[-1]);
	bool is_early = table > BACK_AT_LEAST && is_header(late[-2]);

	if (mask == 0 || (mask & (mask + 1)) != 0)
		return NULL;
	if (is_late && is_early)
		return wait_for_change(late, late - 1);
	return is_late ? late : is_early ? late - 1 : NULL;
}

/* Stores the nanoseconds of a unit of the word, with RATE_BITS, in *@unit. */
static const volatile uint64_t *find_other(const volatile uint64_t *words,
					   uint64_t coarse_ns, uint64_t *unit)
{
	const size_t index = 2 * CLOCK_MONOTONIC_COARSE; /* in the table */
	uint64_t seconds = coarse_ns / NS_PER_SECOND;
	uint64_t rest_ns = coarse_ns % NS_PER_SECOND;

	for (size_t table = BACK_AT_LEAST; table + index + 1 < PAGE_WORDS;
	     table++) {
		const volatile uint64_t *found;
		uint64_t factor, shift;

		if (words[table + index] != seconds ||
		    words[table + index + 1] != rest_ns)
			continue;
		factor = words[table - BACK_TO_FACTOR] & UINT32_MAX;
		shift = words[table - BACK_TO_FACTOR] >> 32;
		found = shift <= RATE_BITS ? word_before(words, table) : NULL;
		*unit = found ? factor << (RATE_BITS - shift) : 0;
		if (*unit)
			return found;
	}
	return NULL;
}

/*
 * Returns the word, or NULL if the page has none.  Returns NULL and sets *@has_ticked if a
 * tick came between the two readings.  Reads only the first page: other pages of [vvar]
 * may belong to a hypervisor and fault.
 */
static const volatile uint64_t *find_word(uint64_t *unit, bool *has_ticked)
{
	const volatile uint64_t *words = (const volatile uint64_t *)vvar,
				*found;
	uint64_t coarse_ns, again_ns;
	struct clock_reading now;

	if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &coarse_ns) < 0)
		return NULL;
	clock_read_both(&now, 50);
	if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &again_ns) < 0)
		return NULL;
	*has_ticked = coarse_ns != again_ns;
	if (*has_ticked)
		return NULL;
	found = find_counter(words, now.clock, now.mono_ns - coarse_ns);
	return found ? found : find_other(words, coarse_ns, unit);
}

/* @unit: nanoseconds with RATE_BITS */
static bool start_scale(uint64_t unit, uint64_t resolution_ns)
{
	struct anchor first = { 0, 0, 0 };
	bool is_measured = false;

	word_length = (uint64_t)(((unsigned __int128)resolution_ns
				  << RATE_BITS) /
				 unit);
	anchor_life = (uint64_t)(((unsigned __int128)NS_PER_SECOND
				  << RATE_BITS) /
				 unit);
	first.rate = (uint64_t)((unsigned __int128)unit * hz / NS_PER_SECOND);
	for (int i = 0; i < TRIES && !is_measured; i++)
		is_measured = measure_anchor(&first, 5);
	add_anchor(&first);
	is_scaled = true;
	return is_measured && word_length > 0;
}

bool coarse_clock_start(uint64_t clock_hz)
{
	uint64_t resolution_ns, unit = 0;
	int ticked = 0;

	hz = clock_hz;
	/* valgrind hides the vdso from the program: it would report each call that reads the
	 * page. */
	if (!getauxval(AT_SYSINFO_EHDR))
		return false;
	if (maps_read(find_vvar, NULL) < 0 || !vvar ||
	    sys_clock_resolution(CLOCK_MONOTONIC_COARSE, &resolution_ns) < 0)
		return false;
	tick_length = word_length =
		(uint64_t)((unsigned __int128)resolution_ns * hz /
			   NS_PER_SECOND);
	/* An interruption between two readings spoils an attempt. */
	for (int i = 0; i < TRIES && !word && ticked < TRIES_WITH_TICK; i++) {
		bool has_ticked = false;

		word = find_word(&unit, &has_ticked);
		ticked += has_ticked;
	}
	if (word && unit && !start_scale(unit, resolution_ns))
		word = NULL;
	return word != NULL;
}

/* --- reading --- */

const volatile uint64_t *shim_clock_coarse(uint64_t *length)
{
	if (length)
		*length = word_length;
	return word;
}

uint64_t coarse_clock_length(void)
{
	return word ? tick_length : 0;
}

uint64_t coarse_clock_read(void)
{
	return word ? shim_clock_of_coarse(*word) : 0;
}

struct clock_reading coarse_clock_read_both(void)
{
	struct clock_reading now = { 0, 0 };
	uint64_t value;

	for (int i = 0; i < TRIES; i++) {
		value = word ? *word : 0;
		now.clock = shim_clock_of_coarse(value);
		if (sys_time_ns(CLOCK_MONOTONIC_COARSE, &now.mono_ns) < 0 ||
		    !word || *word == value)
			break;
	}
	return now;
}
