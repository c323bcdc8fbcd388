/* What the views of profrun top have in common: rates, and what the process is asked for. */
#include <curses.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/numbers.h"
#include "base/seconds.h"
#include "screen/snapshot.h"
#include "screen/terminal.h"
#include "screen/top.h"
#include "screen/view.h"

#define DELAY_LEAST 0.1

/* What top takes of a processor, at most, and for which it looks less often. */
#define SHARE_MOST    0.004
#define DELAY_LONGEST 10

double top_spent(const struct top *top)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID) + top->shot.cpu;
}

double top_delay(const struct top *top)
{
	/* A look is dear once when it finds new functions, whose names it reads. */
	double cost = fmin(top->costs[0], top->costs[1]);

	return top->delay > 0 ? top->delay :
				fmin(fmax(1, cost / SHARE_MOST), DELAY_LONGEST);
}

bool top_has_rates(const struct top *top)
{
	return top->since_start || top->before.memory;
}

double top_seconds(const struct top *top)
{
	return fmax(top->now.head.seconds - top->before.head.seconds, 1e-3);
}

double top_rate(const struct top *top, double now, double before)
{
	return top->since_start ? now :
				  fmax(now - before, 0) / top_seconds(top);
}

/* The processor time that the screen takes, as a share of one processor. */
static double own_share(const struct top *top)
{
	static double begin;
	double now = seconds_of(CLOCK_MONOTONIC);

	if (begin == 0)
		begin = now;
	return now - begin < 1 ? 0 : top_spent(top) / (now - begin);
}

void top_draw_title(const struct top *top, const char *name, struct row *row)
{
	const struct snapshot_head *now = &top->now.head;
	const struct snapshot_head *before = &top->before.head;
	char text[160], calls[SHORT_TEXT], lost[SHORT_TEXT];

	row_text_as(row, name, LOOK_STRONG);
	if (!top->now.memory) {
		row_text(row, ": reading the recording");
		return;
	}
	if (top_has_rates(top))
		snprintf(text, sizeof(text), ": %s %s%s",
			 human_count(calls,
				     whole(top_rate(top, (double)now->calls,
						    (double)before->calls))),
			 now->is_sampled ? "samples" : "calls",
			 top->since_start ? " since the start" : "/s");
	else
		snprintf(text, sizeof(text), ": measuring");
	row_text(row, text);
	if (now->lost) {
		snprintf(text, sizeof(text), ", lost %s",
			 human_count(lost, now->lost));
		row_text_as(row, text, LOOK_STRONG);
	}
	snprintf(text, sizeof(text), "; every %.2g s%s; top takes %.1f %%",
		 top_delay(top),
		 top->has_ended ? ", ended" :
		 top->is_paused ? ", paused" :
				  "",
		 100 * own_share(top));
	row_text(row, text);
}

/* --- what is asked of the process --- */

/* Runs `profrun ctl PID WORDS`, whose first line becomes the message. */
static bool control(struct screen *screen, const struct top *top,
		    const char *verb, const char *argument)
{
	char pid[16], line[200] = "", start[40];
	const char *answer = line;
	int ends[2], status = 0;
	ssize_t size;
	pid_t child;

	snprintf(pid, sizeof(pid), "%u", top->pid);
	if (!top->profrun || pipe(ends) != 0) {
		screen_say(screen, "profrun ctl cannot be run");
		return false;
	}
	child = fork();
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl(top->profrun, "profrun", "ctl", pid, verb, argument,
		      (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	size = child > 0 ? read(ends[0], line, sizeof(line) - 1) : 0;
	line[size > 0 ? size : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	/* The last line of the screen is short. */
	snprintf(start, sizeof(start), "profrun: ctl %s: ", pid);
	if (!strncmp(line, start, strlen(start)))
		answer += strlen(start);
	screen_say(screen, "%s%s%s: %s", verb, argument ? " " : "",
		   argument ? argument : "",
		   line[0]		    ? answer :
		   child > 0 && status == 0 ? "done" :
					      "it failed");
	return child > 0 && status == 0;
}

static void ask(struct screen *screen, const struct top *top,
		const char *question, const char *verb)
{
	char text[200] = "";

	if (terminal_ask(question, text, sizeof(text)) && text[0])
		control(screen, top, verb, text);
}

static void change_delay(struct top *top, double factor)
{
	top->delay = fmin(fmax(top_delay(top) * factor, DELAY_LEAST),
			  DELAY_MOST);
}

static void show(struct screen *screen, struct view *view)
{
	screen_clear(screen);
	screen_push(screen, view);
}

bool top_key(struct screen *screen, struct top *top, int key)
{
	switch (key) {
	case '1': show(screen, top->views->functions(top)); break;
	case '2': show(screen, top->views->threads(top)); break;
	case 'p': top->is_paused = !top->is_paused; break;
	case 'i':
		top->since_start = !top->since_start;
		top->generation++;
		break;
	case '+': change_delay(top, 2); break;
	case '-': change_delay(top, 0.5); break;
	case 'B': ask(screen, top, " budget, in per cent: ", "budget"); break;
	case 'F':
		ask(screen, top, " record (all, -M:f, ...): ", "filter");
		break;
	case 'r':
		if (control(screen, top, top->is_stopped ? "start" : "stop",
			    NULL))
			top->is_stopped = !top->is_stopped;
		break;
	case 'T':
		if (control(screen, top,
			    top->is_tracing ? "trace-stop" : "trace-start",
			    NULL))
			top->is_tracing = !top->is_tracing;
		break;
	case 'H': control(screen, top, "heap", NULL); break;
	default: return false;
	}
	return true;
}
