/*
 * Chooses the calls to record: reads the options after "trace:", and switches recording
 * on and off.
 *
 * Decisions about a path are made once, when its node is made.  Nodes whose calls are
 * left out carry a flag that makes them miss the fast path, so all other nodes cost
 * nothing.
 */
#include "trace/trace.h"
#include "path/names.h"

#include <shim/info.h>
#include <shim/values.h>
#include <shim/signals.h>

#include <shim/banned.h>

#define NAMES	  64 /* 16 for each option */
#define NAME_SIZE 256
#define COUNTED	  64

struct trace_options trace_options;
bool trace_is_off;

/* trigger=FUNCTION, every=FUNCTION/N, args=FUNCTION, results=FUNCTION; the last two
 * also take "all". */
struct named {
	char function[OPTION_TEXT_SIZE];
	enum trace_use use;
	uint64_t every;
	uint64_t calls;
};

static struct named names[NAMES];
static unsigned name_count;
static bool has_names[4]; /* by use */

/* The functions of every=, in the order in which they are found. */
static struct {
	uint64_t function;
	struct named *named;
} counted[COUNTED];
static unsigned counted_count;

/* --- options --- */

/* Converts @ns to clock units. */
static uint64_t clock_of(uint64_t ns)
{
	uint64_t hz = shim_record_meta()->clock_hz;

	return hz >= 1000000 ? ns * (hz / 1000000) / 1000 : ns;
}

static void add_name(const struct option_value *value, enum trace_use use)
{
	struct named *named = &names[name_count++];

	for (size_t i = 0; i < value->size; i++)
		named->function[i] = value->text[i];
	named->use = use;
	named->every = value->number;
	has_names[use] = true;
}

void trace_take_option(enum option_name name, const struct option_value *value)
{
	switch (name) {
	case OPTION_trace_RING: trace_options.ring_size = value->number; break;
	case OPTION_trace_MIN:
		trace_options.min_clock = clock_of(value->number);
		break;
	case OPTION_trace_DEPTH:
		trace_options.depth = (uint32_t)value->number;
		break;
	case OPTION_trace_EVERY: add_name(value, TRACE_EVERY); break;
	case OPTION_trace_TRIGGER: add_name(value, TRACE_TRIGGER); break;
	case OPTION_trace_ARGS: add_name(value, TRACE_ARGUMENTS); break;
	case OPTION_trace_RESULTS: add_name(value, TRACE_RESULTS); break;
	case OPTION_trace_SIGNAL:
		trace_options.signal = (int)value->number;
		break;
	default: trace_is_off = true;
	}
}

void trace_prepare(struct shim_profiler_handle *handle)
{
	if (name_count)
		shim_profiler_enable_symbols(handle);
	if (has_names[TRACE_ARGUMENTS] || has_names[TRACE_RESULTS])
		shim_profiler_enable_values(handle);
}

bool trace_is_wanted(enum trace_use use)
{
	return has_names[use];
}

/* --- paths --- */

static bool is_all(const struct named *named)
{
	const char *name = named->function;

	return named->use >= TRACE_ARGUMENTS && name[0] == 'a' &&
	       name[1] == 'l' && name[2] == 'l' && name[3] == '\0';
}

/* The option about @function for @use, or NULL. */
static struct named *find_named(uint64_t function, enum trace_use use)
{
	char name[NAME_SIZE];

	if (shim_function_name(function & SHIM_NODE_ADDRESS, sizeof(name), NULL,
			       name) != SHIM_OK)
		return NULL;
	for (unsigned i = 0; i < name_count; i++)
		if (names[i].use == use &&
		    (is_all(&names[i]) ||
		     path_is_named(name, names[i].function)))
			return &names[i];
	return NULL;
}

bool trace_names(uint64_t function, enum trace_use use)
{
	return has_names[use] && find_named(function, use) != NULL;
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
	if (has_names[TRACE_TRIGGER] &&
	    (is_root(parent) || parent->hits == TRACE_LEFT_OUT) &&
	    !find_named(function, TRACE_TRIGGER))
		return true;
	return trace_options.depth && is_too_deep(parent);
}

/* --- every N-th call --- */

/* (The count may exceed COUNTED if several threads add functions at once.) */
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

	if (!has_names[TRACE_EVERY])
		return false;
	if (find_counted(function))
		return true;
	named = find_named(function, TRACE_EVERY);
	i = __atomic_load_n(&counted_count, __ATOMIC_RELAXED);
	if (!named || i >= COUNTED)
		return false;
	/* If two threads add the function at once, the list has it twice. */
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
					named->every !=
				0;
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

/* The fast paths of other threads cannot write from their next call on. */
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

/* If two threads toggle at once, both toggle. */
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
