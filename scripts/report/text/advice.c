/* Prints advice in the head of a report: each cause once, with the remedy. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "base/text.h"
#include "model/advice.h"
#include "model/functions.h"
#include "model/model.h"
#include "read/process.h"
#include "text/advice.h"

#define PATHS_MAX 4
#define NAMES_MAX 3 /* limit of functions and headers named for gcc's options */
#define SEEN_MAX  20 /* functions whose headers are looked at */

static void print_lacking(FILE *out, const struct model *model, enum lack lack,
			  const char *text)
{
	const char *paths[PATHS_MAX];
	uint32_t count = advice_lacking(model, lack, paths, PATHS_MAX), i;

	if (!count)
		return;
	fputs("  ", out);
	for (i = 0; i < count && i < PATHS_MAX; i++) {
		fputs(i ? ", " : "", out);
		put_text(out, base_name(paths[i]));
	}
	if (count > PATHS_MAX)
		fprintf(out, " and %u more", count - PATHS_MAX);
	fprintf(out, " %s %s\n", count > 1 ? "are" : "is", text);
}

/* Of a copy that the compiler made (NAME.constprop.0, NAME.lto_priv.1), the option wants the
 * source's name. */
static const char *source_name(const struct function *function)
{
	size_t length = strcspn(function->name, ".");

	return length > 0 && function->name[length] ?
		       keep_text(function->name, length) :
		       function->name;
}

static bool is_told(const char *const *told, uint32_t count, const char *name)
{
	while (count > 0 && strcmp(told[count - 1], name) != 0)
		count--;
	return count > 0;
}

/* C headers have hardly any functions: gcc needs the names of functions to
 * leave out. */
static void print_c_cure(FILE *out, const struct model *model)
{
	const struct function *seen[SEEN_MAX];
	const char *told[NAMES_MAX], *name;
	uint32_t count = 0, told_count = 0;

	fputs("    gcc    -finstrument-functions "
	      "-finstrument-functions-exclude-function-list=",
	      out);
	while (count < SEEN_MAX && told_count < NAMES_MAX &&
	       (seen[count] = advice_most_trivial(model, seen, count))) {
		name = source_name(seen[count++]);
		if (is_told(told, told_count, name))
			continue;
		fputs(told_count ? "," : "", out);
		put_text(out, name);
		told[told_count++] = name;
	}
	fputs(told_count ? "\n" : "NAME,...\n", out);
}

static bool is_header(const char *file)
{
	const char *dot = strrchr(file, '.');

	return dot && (!strncmp(dot, ".h", 2) || !strcmp(dot, ".ipp") ||
		       !strcmp(dot, ".tcc"));
}

/* Besides the system's headers, the program's own ones with the most trivial calls. */
static void print_cxx_cure(FILE *out, const struct model *model)
{
	const struct function *seen[SEEN_MAX];
	const char *told[NAMES_MAX], *name;
	uint32_t count = 0, told_count = 0;
	struct function *function;

	fputs("    gcc    -finstrument-functions "
	      "-finstrument-functions-exclude-file-list=/usr/include",
	      out);
	while (count < SEEN_MAX && told_count < NAMES_MAX &&
	       (seen[count] = advice_most_trivial(model, seen, count))) {
		function = &model->functions[seen[count++] - model->functions];
		function_line(function);
		if (!function->file || !is_header(function->file) ||
		    !strncmp(function->file, "/usr/include/", 13))
			continue;
		name = base_name(function->file);
		if (is_told(told, told_count, name))
			continue;
		told[told_count++] = name;
		fputc(',', out);
		put_text(out, name);
	}
	fputc('\n', out);
}

/* Functions that no compiler has marked: the list leaves out the trivial ones. */
static void print_patch_cure(FILE *out, const struct model *model,
			     const char *patch)
{
	const struct function *reported[NAMES_MAX];
	uint32_t count = 0;

	fputs("    profrun --patch '", out);
	put_text(out, patch);
	while (count < NAMES_MAX && (reported[count] = advice_most_trivial(
					     model, reported, count))) {
		fputs(",-", out);
		put_text(out, reported[count]->mangled ?
				      reported[count]->mangled :
				      reported[count]->name);
		count++;
	}
	fputs(count ? "'\n" : ",-NAME,...'\n", out);
}

static void print_cure(FILE *out, const struct model *model)
{
	if (advice_has_cxx(model))
		print_cxx_cure(out, model);
	else
		print_c_cure(out, model);
	fputs("    clang  -finstrument-functions-after-inlining\n", out);
}

static void print_costly(FILE *out, const struct model *model)
{
	char cost[SHORT_TEXT], raw[SHORT_TEXT], most[SHORT_TEXT];
	double time = fmax(model->time, 0);

	fprintf(out,
		"  %s of %s were our own cost: profrun --budget 10 takes at most "
		"%s\n",
		human_ns(cost, model->time_raw - time),
		human_ns(raw, model->time_raw),
		human_ns(most, advice_budget_time(model)));
	if (advice_is_not_calibrated(model))
		fputs("  the cost of a call was measured at the start: profrun "
		      "-p calltree:calibrate measures it where it arises\n",
		      out);
}

static void print_waiting(FILE *out, const struct model *model)
{
	char text[SHORT_TEXT], all[SHORT_TEXT];
	double waited = advice_waiting(model);

	if (waited > 0)
		fprintf(out,
			"  threads waited for %s of %s, for a processor or "
			"asleep: profrun -p calltree:clock=cpu shows waiting "
			"in a column\n",
			human_ns(text, waited), human_ns(all, model->time_raw));
}

static void print_cheaper(FILE *out, const struct model *model)
{
	if (advice_is_costly(model))
		print_costly(out, model);
	print_waiting(out, model);
	if (advice_is_short(model))
		fprintf(out,
			"  the run was too short for %s to say much: "
			"profrun -p calltree:exact times every call\n",
			model->budget ? "samples" : "ticks");
}

void advice_print(FILE *out, const struct model *model)
{
	const char *patch = process_string(&model->recording->processes[0],
					   "patch");
	bool is_cost = advice_is_mostly_cost(model);

	print_cheaper(out, model);
	print_lacking(out, model, LACKS_SYMBOLS,
		      "stripped: functions without a name are shown by address "
		      "(keep the symbols: no -s, no strip)");
	print_lacking(
		out, model, LACKS_ZSTD,
		"with debug information that zstd has compressed, which this "
		"libdw cannot read (compile with -gz=zlib, or objcopy "
		"--decompress-debug-sections)");
	print_lacking(out, model, LACKS_DEBUG,
		      advice_wants_values(model) ?
			      "without debug information: source lines, "
			      "arguments and results are unknown (compile with "
			      "-g)" :
			      "without debug information: source lines are "
			      "unknown (compile with -g)");
	if (!is_cost && !advice_has_trivial_calls(model))
		return;
	fprintf(out, "  %s; %s:\n",
		is_cost ? "recording took longer than the program" :
			  "most calls take less than 20 ns, which is less than "
			  "recording them does",
		patch ? "leave trivial functions out" :
			"compile so that trivial functions are not recorded");
	if (patch)
		print_patch_cure(out, model, patch);
	else
		print_cure(out, model);
}
