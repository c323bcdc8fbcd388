/*
 * Which calls are recorded: the options behind "trace:", and on and off.
 *
 * What holds for a path is decided once, when its node is made: nodes whose calls are
 * left out carry the flag that keeps the fast path away, so the others pay
 * nothing.
 */
#include "calltree.h"
#include "words.h"

#include <shim/info.h>
#include <shim/values.h>
#include <shim/signals.h>

#include <shim/banned.h>

#define NAMES	  16
#define TEXT_SIZE 128
#define NAME_SIZE 256
#define COUNTED	  64

struct trace_options trace_options;
bool trace_is_off;

/* trigger=FUNCTION, every=FUNCTION/N, args=FUNCTION, results=FUNCTION; the last two
 * also "all". */
struct named {
	char function[TEXT_SIZE];
	enum trace_use use;
	uint64_t every;
	uint64_t calls;
};

static struct named names[NAMES];
static unsigned name_count;
static bool has[4];			/* by use */

/* Functions that every= is about, as they are found. */
static struct {
	uint64_t function;
	struct named *named;
} counted[COUNTED];
static unsigned counted_count;

/* --- options --- */

/* Digits, and how many they were; more than 10 are no number. */
static size_t read_number(const char *text, size_t size, uint64_t *number)
{
	size_t i = 0;

	*number = 0;
	for (; i < size && i < 11 && text[i] >= '0' && text[i] <= '9'; i++)
		*number = *number * 10 + (uint64_t)(text[i] - '0');
	return i == 11 ? 0 : i;
}

/* 64M, 1G: of a file. */
static bool read_ring(const char *text, size_t size)
{
	uint64_t number;
	size_t digits = read_number(text, size, &number);
	unsigned shift;

	text += digits;
	size -= digits;
	if (is_word(text, size, "K"))
		shift = 10;
	else if (is_word(text, size, "M"))
		shift = 20;
	else if (is_word(text, size, "G"))
		shift = 30;
	else
		return false;
	if (digits == 0 || number > 1u << 20)
		return false;
	number <<= shift;
	/* The blocks that stay mapped, and as much again. */
	if (number < 1u << 20 || number > 1ull << 40)
		return false;
	trace_options.ring_size = number;
	return true;
}

/* 500ns, 10us, 3ms, 1s: in clock units. */
static bool read_duration(const char *text, size_t size)
{
	const struct shim_meta *meta = shim_record_meta();
	uint64_t number, ns = 0;
	size_t digits = read_number(text, size, &number);

	text += digits;
	size -= digits;
	if (is_word(text, size, "ns"))
		ns = 1;
	else if (is_word(text, size, "us"))
		ns = 1000;
	else if (is_word(text, size, "ms"))
		ns = 1000000;
	else if (is_word(text, size, "s"))
		ns = 1000000000;
	if (digits == 0 || digits > 6 || ns == 0 || number == 0)
		return false;
	number *= ns;
	trace_options.min_clock = meta->clock_hz >= 1000000 ?
		number * (meta->clock_hz / 1000000) / 1000 : number;
	return true;
}

static bool add_name(const char *text, size_t size, enum trace_use use,
		     uint64_t every)
{
	struct named *named = &names[name_count];

	if (size == 0 || size >= TEXT_SIZE || name_count == NAMES)
		return false;
	for (size_t i = 0; i < size; i++)
		named->function[i] = text[i];
	named->function[size] = '\0';
	named->use = use;
	named->every = every;
	name_count++;
	has[use] = true;
	return true;
}

static bool read_every(const char *text, size_t size)
{
	size_t name = size;
	uint64_t every;

	while (name > 0 && text[name - 1] != '/')
		name--;
	return name > 1 && size > name &&
	       read_number(text + name, size - name, &every) == size - name &&
	       every > 0 && add_name(text, name - 1, TRACE_EVERY, every);
}

static bool read_depth(const char *text, size_t size)
{
	uint64_t depth;

	if (size == 0 || read_number(text, size, &depth) != size ||
	    depth == 0 || depth > UINT32_MAX)
		return false;
	trace_options.depth = (uint32_t)depth;
	return true;
}

static bool read_trigger(const char *text, size_t size)
{
	return add_name(text, size, TRACE_TRIGGER, 0);
}

static bool read_arguments(const char *text, size_t size)
{
	return add_name(text, size, TRACE_ARGUMENTS, 0);
}

static bool read_results(const char *text, size_t size)
{
	return add_name(text, size, TRACE_RESULTS, 0);
}

static bool read_signal(const char *text, size_t size)
{
	trace_options.signal = shim_signal_named(text, size);
	return trace_options.signal != 0;
}

bool trace_read_option(const char *item, size_t size)
{
	static const struct {
		const char *key;
		bool (*read)(const char *text, size_t size);
	} options[] = {
		{ "ring=", read_ring },	      { "min=", read_duration },
		{ "depth=", read_depth },     { "every=", read_every },
		{ "trigger=", read_trigger }, { "args=", read_arguments },
		{ "results=", read_results }, { "signal=", read_signal },
	};
	const char *value;

	if (is_word(item, size, "off")) {
		trace_is_off = true;
		return true;
	}
	for (unsigned i = 0; i < sizeof(options) / sizeof(*options); i++) {
		value = value_of(item, size, options[i].key);
		if (value)
			return options[i].read(value,
					       size - (size_t)(value - item));
	}
	return false;
}

void trace_prepare(void)
{
	if (name_count)
		shim_symbols_enable();
	if (has[TRACE_ARGUMENTS] || has[TRACE_RESULTS])
		shim_values_enable();
	trace_values_prepare(has[TRACE_ARGUMENTS], has[TRACE_RESULTS]);
}

/* --- paths --- */

static bool is_all(const struct named *named)
{
	return named->use >= TRACE_ARGUMENTS &&
	       is_word(named->function, 3, "all") && !named->function[3];
}

/* What was asked for about @function. */
static struct named *find_named(uint64_t function, enum trace_use use)
{
	char name[NAME_SIZE];

	if (shim_function_name(function & SHIM_NODE_ADDRESS, sizeof(name), NULL,
			       name) != SHIM_OK)
		return NULL;
	for (unsigned i = 0; i < name_count; i++)
		if (names[i].use == use &&
		    (is_all(&names[i]) ||
		     by_is_named(name, names[i].function)))
			return &names[i];
	return NULL;
}

bool trace_names(uint64_t function, enum trace_use use)
{
	return has[use] && find_named(function, use) != NULL;
}

static bool is_too_deep(const struct shim_node *parent)
{
	uint32_t depth = 0;

	for (; !is_root(parent) && depth < trace_options.depth;
	     parent = parent_of(parent))
		if (parent->hits != TRACE_LEFT_OUT)
			depth++;
	return depth == trace_options.depth;
}

bool trace_leaves_out(const struct shim_node *parent, uint64_t function)
{
	if (has[TRACE_TRIGGER] && (is_root(parent) || parent->hits == TRACE_LEFT_OUT) &&
	    !find_named(function, TRACE_TRIGGER))
		return true;
	return trace_options.depth && is_too_deep(parent);
}

/* --- every N-th call --- */

/* (Threads that find one at once may have counted too many.) */
static struct named *find_counted(uint64_t function)
{
	for (unsigned i = 0; i < counted_count && i < COUNTED; i++)
		if (__atomic_load_n(&counted[i].function, __ATOMIC_ACQUIRE) ==
		    function)
			return counted[i].named;
	return NULL;
}

bool trace_is_counted(uint64_t function)
{
	struct named *named;
	unsigned i;

	if (!has[TRACE_EVERY])
		return false;
	if (find_counted(function))
		return true;
	named = find_named(function, TRACE_EVERY);
	i = __atomic_load_n(&counted_count, __ATOMIC_RELAXED);
	if (!named || i >= COUNTED)
		return false;
	/* Two threads may find it at once: then it is there twice. */
	i = __atomic_fetch_add(&counted_count, 1, __ATOMIC_RELAXED);
	if (i >= COUNTED)
		return false;
	counted[i].named = named;
	__atomic_store_n(&counted[i].function, function, __ATOMIC_RELEASE);
	return true;
}

bool trace_skips(uint64_t function)
{
	struct named *named = find_counted(function);

	return named && __atomic_fetch_add(&named->calls, 1, __ATOMIC_RELAXED) %
					named->every != 0;
}

bool trace_skips_surely(uint64_t function)
{
	struct named *named = find_counted(function);
	uint64_t calls;

	if (!named)
		return false;
	calls = __atomic_load_n(&named->calls, __ATOMIC_RELAXED);
	return calls % named->every != 0 &&
	       __atomic_compare_exchange_n(&named->calls, &calls, calls + 1,
					   false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* --- off and on --- */

/* Other threads see it with their next call: the fast path has no room then. */
static void stop_fast_paths(void)
{
	for (struct tree *tree = __atomic_load_n(&trees, __ATOMIC_ACQUIRE);
	     tree; tree = tree->next)
		if (tree->trace)
			__atomic_store_n(&tree->trace->limit, 0,
					 __ATOMIC_SEQ_CST);
}

void trace_switch(bool is_off)
{
	__atomic_store_n(&trace_is_off, is_off, __ATOMIC_SEQ_CST);
	if (is_off)
		stop_fast_paths();
}

/* Two threads that do it at once have done it twice. */
void trace_toggle(void)
{
	bool is_off = __atomic_load_n(&trace_is_off, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&trace_is_off, &is_off, !is_off,
					    false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	if (!is_off)
		stop_fast_paths();
}
