/*
 * The start: reads the settings, creates the recording, finds the images, starts the
 * built-in profilers, and then points the hook table at their hooks.  Modules start
 * later, without the lock (module.c).
 */
#include "module/start.h"

#include "dispatch/callspec.h"
#include "dispatch/hook_table.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "inspect/code_cache.h"
#include "module/builtin.h"
#include "module/builtin_list.h"
#include "os/clock.h"
#include "os/opener.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <errno.h>
#include <sys/auxv.h>

#include <shim/banned.h>

/* Whether the program has privileges that its user lacks.  Such a user must not see
 * into the program. */
static bool is_privileged(void)
{
	bool differs = true;
	int r = sys_identity(&differs);

	if (r < 0) {
		log_error("nothing is recorded: cannot find out %s",
			  "which privileges the program has", r);
		log_give_up();
	}
	return differs || getauxval(AT_SECURE) != 0;
}

static void read_settings(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	log_start();
	if (!is_privileged())
		config_read();
	else
		config.disable[0] = '1';
}

bool start_wants_modules(void)
{
	read_settings();
	return config.disable[0] != '1' && builtin_list_has_modules();
}

struct late_start {
	const char *profile;
	int result;
};

static int start_late(void *argument)
{
	struct late_start *late = argument;
	size_t size = text_length(late->profile) + 1;
	char *copy = code_cache_allocate(
		size); /* never freed: profilers keep pointers to it */

	late->result = -3;
	if (!copy)
		return -ENOMEM;
	__builtin_memcpy(copy, late->profile, size);
	events_start_builtins(true);
	late->result = builtin_start(copy);
	builtin_begin();
	events_start_builtins(false);
	if (late->result == 0) {
		record_note_profiler(late->profile);
		callspec_start();
		plan_update();
	}
	return 0;
}

int start_builtin(const char *profile)
{
	struct late_start late = { .profile = profile, .result = -3 };

	state_call_locked(start_late, &late);
	return late.result;
}

/* The page of the coarse clock, too, is found in the memory map. */
static void find_images(bool has_clock)
{
	int r = image_scan();

	if (r < 0)
		log_error("cannot read %s, so functions have no names, and "
			  "timing a call costs more",
			  "/proc/self/maps", r);
	else if (!has_clock)
		log_line(
			"%s",
			"this machine has no coarse clock: timing a call costs more");
}

/* True if a profiler records. */
static bool start_recording(void)
{
	bool any, has_clock;

	opener_use(config.opener);
	callspec_configure();
	has_clock = clock_start();
	if (record_start() != 0)
		return false;
	find_images(has_clock);
	events_start_builtins(true);
	any = builtin_list_start() == 0;
	events_start_builtins(false);
	callspec_start();
	return any;
}

static void start_rooms(bool *runs)
{
	read_settings();
	*runs = config.disable[0] != '1' && start_recording();
	hook_table_start();
	if (*runs)
		plan_update();
}

SUBSCRIBE(starting, start_rooms);
SUBSCRIBE(start_failed, hook_table_start);
