/*
 * The start of the engine.  Profilers state what they need of the tree.  After all have
 * been started, the tree begins with everything that they need.
 */
#include "path/path.h"
#include "path/calls.h"
#include "path/events.h"
#include "path/needs.h"
#include "path/times.h"
#include "path/throttled.h"

#include <shim/builtin.h>

#include <shim/banned.h>

/* A path is timed exactly while its calls take at least this long on average.  The
 * average is checked every 32 calls.  A path with the coarse clock changes to the exact
 * one at twice this length. */
#define LONG_NS 500

/* The client that makes groups comes first, because calls in groups have separate
 * nodes. */
void path_add_client(const struct path_client *client)
{
	unsigned i = 0;

	while (path_clients[i] && path_clients[i] != client)
		i++;
	if (i == PATH_CLIENTS)
		return;
	path_clients[i] = client;
	if (client->describe_group) {
		path_clients[i] = path_clients[0];
		path_clients[0] = client;
	}
}

unsigned path_add_slot(void)
{
	static unsigned slots = 1; /* path_unwind.c has the first */

	return slots < PATH_SLOTS ? slots++ : PATH_SLOTS - 1;
}

static struct shim_profiler_handle *handle;
static enum clock needed_clock = COUNTS;
static bool has_begun;
static bool looks_back;
static bool needs_cpu;

void tree_need_cpu(void)
{
	needs_cpu = true;
}

void tree_need_look_back(void)
{
	looks_back = true;
}

static unsigned users;
static unsigned path_users; /* those of them that need every path */
static bool has_budget;

unsigned tree_users(void)
{
	return users;
}

static void tell_clients(bool is_on)
{
	for (const struct path_client **at = path_clients; *at; at++)
		if ((*at)->recorded)
			(*at)->recorded(is_on);
}

void tree_leave(void)
{
	if (--users > 0)
		return;
	shim_profiler_record_calls(handle, false);
	tell_clients(false);
}

void tree_return(void)
{
	if (users++ > 0)
		return;
	tell_clients(true);
	shim_profiler_record_calls(handle, true);
}

/* The calls may be off, because all profilers that needed them have left. */
static void add_user(void)
{
	if (has_begun)
		tree_return();
	else
		users++;
}

/* Handles get events in the order in which they were created. */
static bool has_handle(void)
{
	if (!handle)
		tree_handle = handle = shim_profiler_create(NULL);
	return handle != NULL;
}

/* Logs "PROFILER: WHY". */
static void log_about(const char *profiler, const char *why)
{
	char text[160];
	size_t n = 0;

	while (*profiler && n < 40)
		text[n++] = *profiler++;
	text[n++] = ':';
	text[n++] = ' ';
	while (*why && n < sizeof(text) - 1)
		text[n++] = *why++;
	text[n] = '\0';
	shim_record_log(text);
}

void tree_need_clock(enum clock clock, const char *profiler)
{
	if (clock <= needed_clock)
		return;
	if (has_begun)
		log_about(
			profiler,
			"calls are counted and not timed, as a profiler that was "
			"started before needs them");
	else
		needed_clock = clock;
}

bool tree_need_calls(enum clock clock, const char *profiler)
{
	if (has_begun && !tree_has_file) {
		log_about(
			profiler,
			"it cannot be started after trace: name both when the "
			"program is started");
		return false;
	}
	if (!has_handle())
		return false;
	tree_has_file = true;
	tree_need_clock(clock, profiler);
	add_user();
	return true;
}

/* --- every path, or a budget --- */

const char *tree_paths_are_too_late(void)
{
	return has_budget ?
		       "it needs every call path, and a budget leaves calls "
		       "out: record it in a run of its own" :
		       NULL;
}

static bool has_paths(const char *profiler)
{
	if (has_budget)
		log_about(profiler, tree_paths_are_too_late());
	return !has_budget;
}

bool tree_need_paths(const char *profiler)
{
	if (!has_paths(profiler) || !tree_need_calls(COUNTS, profiler))
		return false;
	path_users++;
	return true;
}

void tree_leave_paths(void)
{
	path_users--;
	tree_leave();
}

bool tree_return_paths(const char *profiler)
{
	if (!has_paths(profiler))
		return false;
	path_users++;
	tree_return();
	return true;
}

const char *tree_refuses_budget(void)
{
	if (!has_begun)
		return NULL;
	if (tree_mode != COUNTS || tree_is_traced)
		return "calltree: no budget together with profilers that need "
		       "the time of each call";
	return path_users > 0 ?
		       "calltree: no budget together with profilers that need "
		       "every call path" :
		       NULL;
}

void tree_begin_budget(void)
{
	has_budget = true;
}

const char *tree_writer_is_too_late(void)
{
	return has_begun ?
		       "trace cannot be started after profilers that count calls: "
		       "name all of them when the program is started" :
		       NULL;
}

bool tree_need_writer(const struct path_writer *writer)
{
	const char *why = tree_writer_is_too_late();

	if (why) {
		shim_record_log(why);
		return false;
	}
	if (!has_handle())
		return false;
	users++;
	path_writer = writer;
	tree_is_traced = true;
	return true;
}

/* A writer reads the clock for each call anyway, so all calls are then timed
 * exactly. */
static enum clock choose_mode(void)
{
	enum clock mode = needed_clock;

	if (!tree_has_file)
		return TRACED;
	if (mode == COARSE && (tree_is_traced || !tree_tick))
		mode = EXACT;
	/* The clock was forbidden before this program was executed: calls are only
	 * counted. */
	return shim_clock_is_closed() ? COUNTS : mode;
}

static void set_hooks(void)
{
	const shim_site_hook *hooks = path_writer ?
					      path_writer->hooks[tree_mode] :
					      tree_hooks[tree_mode];
	const shim_site_hook *again = path_writer ?
					      path_writer->again[tree_mode] :
					      tree_hooks_again[tree_mode];
	const shim_frame_hook *at = tree_frame_hooks();

	if (looks_back)
		hooks = again;
	shim_profiler_set_enter_leave_function_hooks3(
		handle, SHIM_SITE_HOOK(hooks[0]), SHIM_SITE_HOOK(hooks[1]),
		NULL);
	shim_profiler_set_restart_hooks(handle, SHIM_SITE_HOOK(again[0]),
					SHIM_SITE_HOOK(again[1]));
	shim_profiler_set_chained_hooks(handle, at[0], at[1]);
	shim_profiler_set_mark_hooks(handle,
				     looks_back ? NULL : tree_mark_hooks());
	shim_profiler_set_raw_leave_hooks(handle);
	for (const struct path_client **client = path_clients; *client;
	     client++)
		if ((*client)->enter)
			shim_profiler_set_deferred_hook(handle,
							tree_enter_deferred);
}

void tree_begin(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (has_begun || !handle)
		return;
	has_begun = true;
	tree_tick = shim_clock_tick();
	tree_mode = choose_mode();
	tree_is_cpu = needs_cpu && tree_mode == COARSE;
	if (needs_cpu && !tree_is_cpu)
		shim_record_log(
			tree_is_traced ?
				"calltree: no clock=cpu beside trace: times are of "
				"the wall clock" :
				"calltree: no clock=cpu without a coarse "
				"clock; times are of the wall clock");
	tree_long_clock = meta->clock_hz ?
				  meta->clock_hz / (1000000000 / LONG_NS) :
				  1000;
	tree_describe_cost(meta);
	tree_listen(handle);
	set_hooks();
	CALL_CLIENTS(begin, handle);
}
