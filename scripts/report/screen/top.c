/* Takes snapshots and waits for keys. */
#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/seconds.h"
#include "model/known_functions.h"
#include "model/options.h"
#include "screen/snapshot.h"
#include "screen/terminal.h"
#include "screen/top.h"
#include "screen/view.h"

/* --- snapshots --- */

static void take(struct top *top, const struct snapshot *snapshot)
{
	double seconds = top->now.head.seconds, spent = top_spent(top);

	top->generation++;
	top->costs[1] = top->costs[0];
	top->costs[0] = spent - top->spent;
	top->spent = spent;
	if (top->takes_again) {
		/* The interval stays that of the last look. */
		free(top->now.memory);
		top->now = *snapshot;
		top->now.head.seconds = seconds;
		return;
	}
	free(top->before.memory);
	top->before = top->now;
	top->now = *snapshot;
}

/* Looks warn of the same again and again. */
static void warn_once(struct screen *screen, struct top *top,
		      const char *warning)
{
	if (!warning[0] || !strcmp(warning, top->warning))
		return;
	snprintf(top->warning, sizeof(top->warning), "%s", warning);
	screen_say(screen, "%s", warning);
}

/* Whether there is something new to draw. */
static bool read_shot(struct screen *screen, struct top *top)
{
	struct snapshot snapshot = { .memory = NULL };
	char why[sizeof(top->warning)];

	switch (shot_read(&top->shot, &snapshot, why, sizeof(why))) {
	case SHOT_DONE:
		take(top, &snapshot);
		warn_once(screen, top, why);
		break;
	case SHOT_FAILED:
		/* (Before the first call there may be nothing to read.) */
		if (top->now.memory || top->has_ended)
			screen_say(screen, "%s", why);
		break;
	default: return false;
	}
	return true;
}

static bool is_running(const struct top *top)
{
	return kill((pid_t)top->pid, 0) == 0 || errno != ESRCH;
}

/* Takes a snapshot if one is due: not while one is taken or there is a pause.  There is a
 * last one when the process has ended, and then one for each function that is opened
 * (@is_wanted).  False: none was due. */
static bool begin_shot(struct screen *screen, struct top *top, bool is_wanted)
{
	bool is_last = !top->has_ended && !is_running(top);
	bool rests = top->has_ended || top->is_paused;

	if (top->shot.fd >= 0 || (rests && !is_last && !is_wanted))
		return false;
	top->takes_again = rests && !is_last && top->now.memory;
	top->has_ended |= is_last;
	if (!shot_begin(&top->shot, top->path, top->options, top->chosen))
		screen_say(screen, "no process or descriptor is left: %s",
			   strerror(errno));
	return true;
}

static int wait_for(double until)
{
	double left = until - seconds_of(CLOCK_MONOTONIC);

	return left <= 0 ? 0 : (int)(left * 1000) + 1;
}

static void run(struct screen *screen, struct top *top)
{
	bool is_wanted = false, is_new = true;
	double last = -DELAY_MOST; /* when a snapshot was begun */
	uint64_t chosen;
	int key;

	while (!screen->is_over) {
		if (wait_for(last + top_delay(top)) == 0) {
			if (begin_shot(screen, top, is_wanted))
				is_wanted = false;
			/* (The message says why none was begun.) */
			is_new |= top->shot.fd < 0;
			last = seconds_of(CLOCK_MONOTONIC);
		}
		if (is_new)
			screen_draw(screen);
		key = terminal_key(wait_for(last + top_delay(top)),
				   top->shot.fd);
		chosen = top->chosen;
		screen_do(screen, key);
		is_new = key != ERR;
		if (top->shot.fd >= 0)
			is_new |= read_shot(screen, top);
		/* A function that was opened is looked at now. */
		if (top->chosen && top->chosen != chosen) {
			is_wanted = true;
			last = -DELAY_MOST;
		}
	}
}

static const struct top_views views = {
	.functions = live_functions_view,
	.threads = live_threads_view,
	.function = live_function_view,
};

void top_run(struct top *top)
{
	struct screen screen = { .name = keep_format("process %u: %s", top->pid,
						     top->path) };

	known_functions_begin();
	top->views = &views;
	top->shot.fd = -1;
	terminal_begin("top", strcmp(top->options->color, "never") != 0);
	screen_push(&screen, top->views->functions(top));
	run(&screen, top);
	screen_clear(&screen);
	shot_end(&top->shot);
	free(top->now.memory);
	free(top->before.memory);
	terminal_end();
}
