/* Chooses the functions whose lines are shown. */
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "model/annotation.h"
#include "model/coverage.h"
#include "model/find_functions.h"
#include "model/model.h"
#include "model/totals.h"
#include "names/symbols.h"
#include "read/process.h"
#include "read/recording.h"

/* "parse" also means parse(int) and, of short names, ns::parse(). */
static bool is_called(const struct function *function, const char *name)
{
	size_t length = strlen(name);

	return !strcmp(function->name, name) ||
	       !strcmp(function->mangled, name) ||
	       !strcmp(function->short_name, name) ||
	       (!strncmp(function->name, name, length) &&
		function->name[length] == '(') ||
	       (!strncmp(function->short_name, name, length) &&
		!strcmp(function->short_name + length, "()"));
}

static bool is_there(const struct function *function)
{
	return sums_are_there(&function->sums);
}

static uint32_t mark_called(const struct model *model, const char *name,
			    bool *wanted)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++) {
		wanted[i] = is_there(&model->functions[i]) &&
			    is_called(&model->functions[i], name);
		count += wanted[i];
	}
	return count;
}

static uint32_t mark_matching(const struct model *model, const char *name,
			      bool *wanted)
{
	uint32_t i, count = 0;
	char why[128];
	regex_t regex;
	int error = regcomp(&regex, name, REG_EXTENDED | REG_NOSUB);

	if (error) {
		regerror(error, &regex, why, sizeof(why));
		die_usage("annotate: '%s' is no function and no regular "
			  "expression: %s",
			  name, why);
	}
	for (i = 0; i < model->function_count; i++) {
		wanted[i] = is_there(&model->functions[i]) &&
			    !regexec(&regex, model->functions[i].name, 0, NULL,
				     0);
		count += wanted[i];
	}
	regfree(&regex);
	return count;
}

static uint32_t mark_hottest(const struct model *model, bool *wanted)
{
	uint32_t i, best = NONE;

	for (i = 0; i < model->function_count; i++)
		if (is_there(&model->functions[i]) &&
		    (best == NONE || model->functions[i].sums.self >
					     model->functions[best].sums.self))
			best = i;
	if (best == NONE)
		die("%s: no samples were recorded", model->recording->path);
	wanted[best] = true;
	return 1;
}

static int compare_functions(const void *left, const void *right)
{
	const struct sums *a =
		&((const struct annotated *)left)->function->sums;
	const struct sums *b =
		&((const struct annotated *)right)->function->sums;

	bool first = ((const struct annotated *)left)->goes_first;

	if (first != ((const struct annotated *)right)->goes_first)
		return first ? -1 : 1;
	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	return a->total < b->total ? 1 : a->total > b->total ? -1 : 0;
}

/* Whether it is a function of a program, and not of a library. */
static bool is_of_program(const struct model *model,
			  const struct function *function)
{
	const struct recording *recording = model->recording;
	const char *program;
	uint32_t i;

	for (i = 0; i < recording->process_count; i++) {
		program = process_string(&recording->processes[i], "program");
		if (program && function->object &&
		    !strcmp(function->object->path, program))
			return true;
	}
	return false;
}

/* Of several functions with the name that the user gave, the program's go first. */
static void take_wanted(struct annotation *annotation, const bool *wanted,
			uint32_t count, uint32_t most, bool is_name)
{
	struct model *model = annotation->model;
	uint32_t i;

	annotation->functions = allocate(count, sizeof(*annotation->functions));
	for (i = 0; i < model->function_count; i++)
		if (wanted[i] && annotation->count < count)
			annotation->functions[annotation->count++] =
				(struct annotated){
					.function = &model->functions[i],
					.number = i,
					.goes_first =
						is_name &&
						is_of_program(
							model,
							&model->functions[i]),
				};
	qsort(annotation->functions, annotation->count,
	      sizeof(*annotation->functions), compare_functions);
	if (annotation->count > most) {
		annotation->left_out = annotation->count - most;
		annotation->count = most;
	}
	for (i = 0; i < annotation->count; i++) {
		hits_find(&annotation->functions[i].hits, model,
			  annotation->functions[i].number);
		progress("finding lines", i + 1, annotation->count);
	}
}

void annotation_choose(struct annotation *annotation, const char *name)
{
	struct model *model = annotation->model;
	bool *wanted = allocate(model->function_count, sizeof(*wanted));
	bool is_name;
	uint32_t count;

	count = !name ? mark_hottest(model, wanted) :
			mark_called(model, name, wanted);
	is_name = name && count;
	if (!count)
		count = mark_matching(model, name, wanted);
	/* Dies, with the names that are close. */
	if (!count)
		free(find_functions(model, name));
	take_wanted(annotation, wanted, count, ANNOTATED_MAX, is_name);
	free(wanted);
}

void annotation_choose_hottest(struct annotation *annotation, uint32_t most)
{
	const struct model *model = annotation->model;
	bool *wanted = allocate(model->function_count, sizeof(*wanted));
	uint32_t i, count = 0;

	for (i = 0; i < model->function_count; i++) {
		wanted[i] = is_there(&model->functions[i]);
		count += wanted[i];
	}
	take_wanted(annotation, wanted, count, most, false);
	free(wanted);
}

bool annotation_count(const struct annotation *annotation, const char *file,
		      int line, uint64_t *count)
{
	const struct coverage *coverage = annotation->coverage;
	uint32_t number = coverage && file ?
				  names_find(&coverage->files, file) :
				  NONE;
	bool found = false;
	size_t i;

	*count = 0;
	for (i = 0; number != NONE && i < coverage->line_count; i++)
		if (coverage->lines[i].file == number &&
		    coverage->lines[i].line == (uint32_t)line) {
			*count = coverage_add_counts(*count,
						     coverage->lines[i].count);
			found = true;
		}
	return found;
}
