/*
 * A built-in profiler that was started is never unloaded: its code is part of shim, and what
 * it has recorded stays valid.  It stops its events instead (struct shim_builtin), and
 * goes on.
 */
#include "module/late.h"

#include "coverage/coverage.h"
#include "dispatch/plan.h"
#include "module/builtin.h"
#include "module/module.h"
#include "module/start.h"
#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"
#include "sampling/sample.h"
#include "unwind/second.h"

#include <shim/banned.h>

#define ITEM_SIZE 1024

/* Gives profilers that were started after main, those after @last, what they would have got
 * at the start. */
static void finish_start(uint32_t last)
{
	bool covers = coverage_begin();

	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h))
		if (h->builtin && h->serial > last)
			events_catch_up(h);
	plan_start_code();
	if (covers)
		coverage_begin_late();
	NOTIFY(module_attached);
	second_start();
	sample_adopt_threads();
}

static enum shim_result start(const char *description, struct text *text)
{
	const struct shim_profiler_handle *first = events_first();
	uint32_t last = first ? first->serial : 0, since = log_end();
	bool is_late = state_main_started();
	struct thread *self = thread_get();
	uint32_t state;
	int r;

	if (!self)
		return SHIM_E_OUTOFMEMORY;
	state = self->state;
	if (is_late)
		self->state = (state | THREAD_INIT) &
			      ~(uint32_t)THREAD_CALLBACK;
	r = start_builtin(description);
	self->state = state;
	if (r == 0 && is_late)
		finish_start(last);
	if (r < 0)
		log_copy(since, text);
	return r >= 0 ? SHIM_OK : r == -2 ? SHIM_E_INVALIDARG : SHIM_E_FAIL;
}

#define REAL_TIME 0

/* The recording has a gap, in which calls are not counted, and may not end. */
static void log_gap(const char *description, bool is_on)
{
	const struct shim_meta *meta = record_meta();
	char line[128];
	struct text text;
	uint64_t now_ns;

	if (!meta || sys_time_ns(REAL_TIME, &now_ns) < 0)
		return;
	text_init(&text, line, sizeof(line));
	for (const char *at = description; *at && *at != ':'; at++)
		text_add_part(&text, at, 1);
	text_add(&text, is_on ? ": records again, " : ": records nothing, ");
	text_add_number(&text, (now_ns - meta->start_real_ns) / 1000000);
	text_add(&text, " ms after the start (profrun ctl)");
	log_line("%s", line);
}

static enum shim_result record(const char *description, bool is_on,
			       struct text *text)
{
	uint32_t since = log_end();
	const char *why;
	bool is_done = builtin_record(description, is_on, &why);

	if (is_done && log_end() == since)
		why = is_on ? "it records again" :
			      "it records nothing now; what it has recorded "
			      "stays";
	if (why)
		text_add(text, why);
	else
		log_copy(since, text);
	if (is_done)
		log_gap(description, is_on);
	return is_done ? SHIM_OK : SHIM_E_INCONSISTENT_WITH_FLAGS;
}

static bool has_other_options(const char *description)
{
	const char *at = description;

	while (*at && *at != ':')
		at++;
	return *at && !builtin_has_options_of(description);
}

bool late_load(const char *description, struct text *text,
	       enum shim_result *result)
{
	switch (builtin_find(description)) {
	case BUILTIN_STOPPED: *result = start(description, text); break;
	case BUILTIN_STARTED:
		*result = has_other_options(description) ?
				  SHIM_E_INCONSISTENT_WITH_FLAGS :
				  SHIM_OK;
		if (*result != SHIM_OK)
			text_add(text, "it runs, with other options");
		break;
	case BUILTIN_OFF: *result = record(description, true, text); break;
	case BUILTIN_TOO_LATE:
		text_add(text, "it is part of shim, and starts only with the "
			       "program (set SHIM_PROFILE)");
		*result = SHIM_E_UNSUPPORTED_FOR_ATTACHING_PROFILER;
		break;
	case BUILTIN_UNKNOWN: return false;
	}
	return true;
}

enum shim_result late_unload(const char *name, struct text *text)
{
	switch (builtin_find(name)) {
	case BUILTIN_STARTED: return record(name, false, text);
	case BUILTIN_OFF: text_add(text, "it records nothing"); break;
	case BUILTIN_STOPPED:
	case BUILTIN_TOO_LATE: text_add(text, "it was not started"); break;
	case BUILTIN_UNKNOWN: text_add(text, "no such module is loaded"); break;
	}
	return SHIM_E_INVALIDARG;
}

/* --- a list of profilers --- */

/* Copies the next item of the list, without its backslashes; returns what follows it. */
static const char *next_item(const char *list, char item[ITEM_SIZE])
{
	struct text text;

	text_init(&text, item, ITEM_SIZE);
	while (*list && *list != ';') {
		if (*list == '\\' && list[1])
			list++;
		text_add_part(&text, list++, 1);
	}
	return *list ? list + 1 : list;
}

static bool has_name(const char *item, const char *name)
{
	const char *rest = text_after(item, name);

	return rest && (*rest == '\0' || *rest == ':');
}

struct choice {
	const char *list;
	typeof(module_load) *load_module;
	bool is_done; /* or only looked at */
	bool is_possible;
};

static void refuse(struct choice *choice, const char *name, const char *why)
{
	choice->is_possible = false;
	log_setting("profiler '%s': %s", name, why);
}

/* Stops a profiler that is not in the list. */
static void stop_others(const char *name, bool records, void *argument)
{
	struct choice *choice = argument;
	const char *at = choice->list, *why;
	char item[ITEM_SIZE];

	while (*at) {
		at = next_item(at, item);
		if (has_name(item, name))
			return;
	}
	if (!records)
		return;
	why = builtin_stays(name);
	if (why)
		refuse(choice, name, why);
	else if (choice->is_done)
		builtin_record(name, false, &why);
}

static void start_item(struct choice *choice, const char *item)
{
	const char *why = builtin_is_too_late(item);
	enum shim_result result = SHIM_OK;
	char memory[512];
	struct text text;

	if (why) {
		refuse(choice, item, why);
		return;
	}
	if (!builtin_has_options_of(item)) {
		refuse(choice, item,
		       "it keeps the options of its start in this process");
		return;
	}
	if (!choice->is_done)
		return;
	text_init(&text, memory, sizeof(memory));
	if (!late_load(item, &text, &result))
		result = choice->load_module(item, NULL, 0, &text);
	if (result != SHIM_OK)
		refuse(choice, item, memory);
}

static void start_all(struct choice *choice)
{
	const char *at = choice->list;
	char item[ITEM_SIZE];

	while (*at) {
		at = next_item(at, item);
		if (item[0])
			start_item(choice, item);
	}
}

bool late_can_choose(const char *list, struct text *why)
{
	struct choice choice = { .list = list, .is_possible = true };
	uint32_t since = log_end();

	start_all(&choice);
	builtin_each(stop_others, &choice);
	if (!choice.is_possible)
		log_copy(since, why);
	return choice.is_possible;
}

void late_stop_others(const char *list)
{
	builtin_each(stop_others,
		     &(struct choice){ .list = list, .is_done = true });
}

void late_start_all(const char *list, typeof(module_load) *load_module)
{
	start_all(&(struct choice){
		.list = list, .load_module = load_module, .is_done = true });
}
