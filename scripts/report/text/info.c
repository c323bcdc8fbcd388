/* Prints the description that a recording contains, for people. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <shim/format.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "common/marks.h"
#include "model/bounds.h"
#include "model/budget.h"
#include "model/estimates.h"
#include "model/model.h"
#include "model/totals.h"
#include "read/end_text.h"
#include "read/images.h"
#include "read/process.h"
#include "read/recording.h"
#include "text/info.h"
#include "text/numbers.h"
#include "text/table.h"

static void put_field_name(FILE *out, const char *name)
{
	fputs("  ", out);
	put_cell(out, name, -14);
	fputc(' ', out);
}

/* @value NULL: prints nothing. */
static void put_field(FILE *out, const char *name, const char *text)
{
	if (!text)
		return;
	put_field_name(out, name);
	put_text(out, text);
	fputc('\n', out);
}

/* For numbers and our own words: these need no escape. */
__attribute__((format(printf, 3, 4))) static void
put_formatted(FILE *out, const char *name, const char *format, ...)
{
	va_list arguments;

	put_field_name(out, name);
	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	fputc('\n', out);
}

/* Local time; nanoseconds are cut to milliseconds. */
static const char *date_text(uint64_t real_ns)
{
	time_t seconds = (time_t)(real_ns / 1000000000);
	char date[64], zone[16];
	struct tm tm;

	if (!real_ns || !localtime_r(&seconds, &tm) ||
	    !strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm) ||
	    !strftime(zone, sizeof(zone), "%z", &tm))
		return "unknown";
	return keep_format("%s.%03d %s", date, (int)(real_ns / 1000000 % 1000),
			   zone);
}

/* Whether a later string has the key of @string. */
static bool is_replaced(const struct process *process, const char *string,
			const char *equals)
{
	const char *key = keep_text(string, (size_t)(equals - string));
	const char *last = process_string(process, key);

	return last && last != equals + 1;
}

/* Prints program=..., command=..., profile=..., SHIM_*=... as they were
 * written. */
static void put_strings(FILE *out, const struct process *process)
{
	const char *at = process->meta.strings, *equals;
	uint32_t size = process->meta.strings_size;
	const char *end;

	if (size > sizeof(process->meta.strings) - 1)
		size = sizeof(process->meta.strings) - 1;
	end = at + size;
	for (; at < end; at += strlen(at) + 1) {
		equals = strchr(at, '=');
		if (equals && is_replaced(process, at, equals))
			continue;
		if (equals)
			put_field(out, keep_text(at, (size_t)(equals - at)),
				  equals + 1);
		else if (*at)
			put_field(out, "?", at);
	}
}

static const char *process_end_text(const struct process *process)
{
	static const char *const sources[] = {
		[END_UNKNOWN] = "time of the end unknown",
		[END_META] = "seen by the program itself",
		[END_STATUS] = "seen by profrun",
	};
	const char *how = "unknown: killed, crashed or still running";

	if (process->meta.end == SHIM_END_EXIT)
		how = keep_format("exit status %u", process->meta.exit_status);
	else if (process->meta.end == SHIM_END_EXEC)
		how = "exec";
	else if (process->meta.end == SHIM_END_ABORT)
		how = "abort";
	else if (process->meta.end == SHIM_END_DETACHED)
		how = "profrun detach";
	return keep_format("%s (%s)", how, sources[process->end_source]);
}

static void put_clock(FILE *out, const struct process *process)
{
	const struct shim_meta *meta = &process->meta;
	char tick[SHORT_TEXT];

	put_formatted(out, "clock",
		      "%s, unit %.6g ns (%s), claimed %" PRIu64 " Hz",
		      meta->clock == SHIM_CLOCK_TSC	     ? "tsc" :
		      meta->clock == SHIM_CLOCK_MONOTONIC_NS ? "monotonic" :
							       "unknown",
		      process->unit_ns,
		      process->unit_is_measured ? "measured" : "not measured",
		      meta->clock_hz);
	put_field(out, "tick",
		  process_tick(process) ?
			  human_ns(tick,
				   process_ns(process, process_tick(process))) :
			  "none: no coarse clock");
	if (process_has_cpu(process))
		put_field(out, "computed",
			  human_ns(tick, process_cpu_ns(process)));
	if (meta->is_cpu)
		put_formatted(
			out, "times",
			"processor time; threads waited for another %s",
			human_ns(tick, process_ns(process, meta->waited)));
	put_formatted(
		out, "our cost",
		"coarse: %.2f ns inside a call + %.2f outside; exact: %.2f "
		"+ %.2f",
		meta->cost_coarse.inside / 1000.0 * process->unit_ns,
		meta->cost_coarse.outside / 1000.0 * process->unit_ns,
		meta->cost_exact.inside / 1000.0 * process->unit_ns,
		meta->cost_exact.outside / 1000.0 * process->unit_ns);
}

static void put_samples(FILE *out, const struct process *process)
{
	const struct shim_meta *meta = &process->meta;
	char count[SHORT_TEXT], period[SHORT_TEXT], own[SHORT_TEXT];

	if (budget_has(process))
		put_formatted(
			out, "budget",
			"%.4g %%; functions switched off or counted: %u, not to be "
			"switched off: %u; bursts: %" PRIu64
			"; samples and switching took %s",
			meta->budget / 100.0, meta->throttled,
			meta->throttle_failed, meta->bursts,
			time_text(own, (double)meta->own_ns, meta->own_ns > 0));
	if (budget_has(process) || budget_is_calibrated(process))
		put_formatted(out, "samples",
			      "%s, one for %s of processor time",
			      human_count(count, meta->sample_weight),
			      human_ns(period, (double)meta->sample_period_ns));
}

/* Call sites are only searched when calls are switched: otherwise there is
 * nothing to print. */
static void put_sites(FILE *out, const struct shim_meta *meta)
{
	if (!meta->switched && !meta->sites)
		return;
	put_formatted(out, "call sites",
		      "%u in %u objects, %u of them off, switched %u times%s",
		      meta->sites, meta->site_images, meta->sites_off,
		      meta->switched, meta->switched % 2 ? ", stopped" : "");
	if (meta->site_images_unwritable || meta->sites_rejected)
		put_formatted(
			out, "",
			"%u objects whose code cannot be changed, %u sites "
			"outside of functions",
			meta->site_images_unwritable, meta->sites_rejected);
}

/* What the image's file shows, if it is still the file that ran. */
static void put_marks(FILE *out, const struct image *image)
{
	struct marks marks;
	char text[128];

	if (!marks_read_same(&marks, image->path, image->build_id,
			     image->build_id_size) ||
	    !marks_any(&marks))
		return;
	fprintf(out, " (%s)", marks_text(&marks, text, sizeof(text)));
}

static void put_images(FILE *out, const struct process *process)
{
	const struct image *image = process->images;
	uint32_t i, byte;

	fprintf(out, "  images (%u%s):\n", process->image_count,
		process->images_lost ? ", and some lost" : "");
	for (i = 0; i < process->image_count; i++, image++) {
		fprintf(out, "    %#" PRIx64 "-%#" PRIx64 " bias %#" PRIx64 " ",
			image->start, image->end, image->bias);
		for (byte = 0; byte < image->build_id_size; byte++)
			fprintf(out, "%02x", image->build_id[byte]);
		fputs(image->build_id_size ? " " : "no-build-id ", out);
		put_text(out, image->path);
		put_marks(out, image);
		if (image->generation)
			fprintf(out, " (unloaded, generation %u)",
				image->generation);
		fputc('\n', out);
	}
}

static void put_lost(FILE *out, const uint64_t lost[SHIM_LOST_CAUSES])
{
	char count[SHORT_TEXT];
	uint32_t i;

	fprintf(out, "lost %s", human_count(count, lost_sum(lost)));
	for (i = 0; i < SHIM_LOST_CAUSES; i++)
		if (lost[i])
			fprintf(out, ", %s %s", lost_names[i],
				human_count(count, lost[i]));
	fputc('\n', out);
}

/* Threads of a process are consecutive; returns the number of the next
 * process's first thread. */
static uint32_t put_threads(FILE *out, const struct model *model,
			    uint32_t process, uint32_t first)
{
	char calls[COUNT_TEXT], open[SHORT_TEXT];
	struct count count;
	uint32_t i, end = first;

	while (end < model->thread_count &&
	       model->threads[end].process == process)
		end++;
	fprintf(out, "  threads (%u):\n", end - first);
	for (i = first; i < end; i++) {
		const struct thread *thread = &model->threads[i];

		fprintf(out, "    %u ", thread->tid);
		put_text(out, thread->name[0] ? thread->name : "?");
		count = count_of_thread(thread);
		fprintf(out, ": %s calls, %s open, ", count_text(calls, &count),
			human_count(open, thread->open));
		put_lost(out, thread->lost);
	}
	return end;
}

/* Prints line by line, because each line is text from outside. */
static void put_lines(FILE *out, const char *at)
{
	const char *end;

	for (; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, '\n');
		fputs("    ", out);
		put_text(out, keep_text(at, (size_t)(end - at)));
		fputc('\n', out);
	}
}

static void put_log(FILE *out, const struct process *process)
{
	if (!*process->meta.log)
		return;
	fputs("  log:\n", out);
	put_lines(out, process->meta.log);
	if (process->meta.log_size > sizeof(process->meta.log))
		fprintf(out, "    (%zu bytes of the log were dropped)\n",
			process->meta.log_size - sizeof(process->meta.log));
}

static uint32_t put_process(FILE *out, const struct model *model,
			    uint32_t number, uint32_t first_thread)
{
	const struct process *process = &model->recording->processes[number];
	const struct shim_meta *meta = &process->meta;
	char text[SHORT_TEXT];

	fprintf(out, "\nprocess %u, image %u: parent %u, %s\n", process->pid,
		process->number, meta->parent_pid,
		meta->forked ? "forked" : "began with exec");
	if (process->has_meta) {
		put_strings(out, process);
		put_field(out, "start", date_text(meta->start_real_ns));
		put_field(
			out, "duration",
			human_ns(text, process_ns(process,
						  process->end_clock -
							  meta->first_clock)));
		put_field(out, "end", process_end_text(process));
		put_clock(out, process);
		put_formatted(out, "repairs",
			      "%" PRIu64 " frames "
			      "ended without a leave, %" PRIu64
			      " leaves without "
			      "an enter",
			      meta->unwound, meta->orphans);
		put_samples(out, process);
		put_sites(out, meta);
		if (meta->lost_threads)
			put_formatted(out, "threads lost",
				      "%u could not get a file",
				      meta->lost_threads);
	}
	first_thread = put_threads(out, model, number, first_thread);
	put_images(out, process);
	put_log(out, process);
	return first_thread;
}

void info_print(FILE *out, struct model *model)
{
	const struct recording *recording = model->recording;
	char calls[COUNT_TEXT], open[SHORT_TEXT], text[SHORT_TEXT];
	struct count count = count_of_model(model);
	uint32_t i, thread = 0;

	put_text(out, recording->path);
	fprintf(out, ": format version %u\n", SHIM_FORMAT_VERSION);
	put_field(out, "duration",
		  time_text(text, model->duration, model->duration > 0));
	put_field(out, "ended", end_text(recording));
	put_field_name(out, "calls");
	fprintf(out, "%s in %u functions, %s open at the end, ",
		count_text(calls, &count), called_functions(model),
		human_count(open, model->open));
	put_lost(out, model->lost_causes);
	for (i = 0; i < SHIM_LOST_KINDS; i++)
		if (lost_sum(model->lost_others[i])) {
			put_field_name(out, lost_kinds[i]);
			put_lost(out, model->lost_others[i]);
		}
	if (model->damaged)
		put_formatted(out, "call trees",
			      "at least %" PRIu64 " records are damaged",
			      model->damaged);
	if (recording->trace_damage.missing || recording->trace_damage.damaged)
		put_formatted(out, "trace",
			      "%" PRIu64 " blocks are missing, %" PRIu64 " are "
			      "damaged, of which %" PRIu64
			      " bytes are not read",
			      recording->trace_damage.missing,
			      recording->trace_damage.damaged,
			      recording->trace_damage.bytes);
	for (i = 0; i < recording->part_count; i++)
		if (recording->parts[i].log) {
			fputs("  not recorded:\n", out);
			put_lines(out, recording->parts[i].log);
		}
	for (i = 0; i < recording->process_count; i++)
		thread = put_process(out, model, i, thread);
}

/* --- how much --- */

static void put_calls(FILE *out, const struct model *model)
{
	char calls[COUNT_TEXT], paths[SHORT_TEXT], functions[SHORT_TEXT],
		open[SHORT_TEXT];
	struct count count = count_of_model(model);
	uint32_t path_count = 0, i;

	for (i = 0; i < model->path_count; i++)
		path_count += model->paths[i].function != NONE;
	put_field_name(out, "recorded");
	fprintf(out, "%s %s in %s paths of %s functions, %s open, ",
		count_text(calls, &count),
		model->is_sampled ? "samples" : "calls",
		human_count(paths, path_count),
		human_count(functions, called_functions(model)),
		human_count(open, model->open));
	put_lost(out, model->lost_causes);
}

static void put_budget_cost(FILE *out, const struct budget *budget)
{
	double sum = budget->hooks_ns + budget->own_ns;
	double bound = bound_of(budget->hooks_ns, budget->hooks_ns,
				budget->period_ns, budget->time_ns);
	char cost[SHORT_TEXT], time[SHORT_TEXT];

	put_formatted(out, "own cost", "%s of %s of processor time",
		      bounded_text(cost, sum,
				   bound > 0 ? bound + budget->own_ns : 0,
				   true),
		      human_ns(time, budget->time_ns));
}

void info_print_sums(FILE *out, const struct model *model)
{
	char cost[SHORT_TEXT], time[SHORT_TEXT];

	put_calls(out, model);
	if (!model->calls)
		return;
	if (model->budget)
		put_budget_cost(out, model->budget);
	else if (model->is_sampled || !model->has_times || model->raw)
		put_field(out, "own cost", "unknown: calls were not timed");
	else
		put_formatted(out, "own cost", "%s of %s of recorded time",
			      human_ns(cost, fmax(model->time_raw -
							  fmax(model->time, 0),
						  0)),
			      human_ns(time, model->time_raw));
}
