/*
 * Coverage of one or more recordings: rows of lines and functions, which are
 * sorted and added up. coverage_read.c makes them from the files of a process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/names.h"
#include "model/coverage.h"
#include "read/process.h"
#include "read/recording.h"

/* --- collecting --- */

static int compare_covered(const void *left, const void *right)
{
	const struct covered *a = left, *b = right;

	if (a->test != b->test)
		return a->test < b->test ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->function > b->function) - (a->function < b->function);
}

uint64_t coverage_add_counts(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* @adds: the counts come from different processes and are added; otherwise they
 * describe the same calls. */
size_t coverage_sum_up(struct covered *all, size_t count, bool adds)
{
	size_t kept = 0;

	if (count == 0)
		return 0;
	qsort(all, count, sizeof(*all), compare_covered);
	for (size_t i = 1; i < count; i++) {
		if (compare_covered(&all[kept], &all[i]) != 0)
			all[++kept] = all[i];
		else if (adds)
			all[kept].count = coverage_add_counts(all[kept].count,
							      all[i].count);
		else if (all[kept].count < all[i].count)
			all[kept].count = all[i].count;
	}
	return kept + 1;
}

/* Called now and then, so that a thousand processes need the memory of one. */
void coverage_keep_small(struct coverage *coverage)
{
	if (coverage->line_count >= 2 * coverage->line_sorted + (1 << 20))
		coverage->line_sorted = coverage->line_count = coverage_sum_up(
			coverage->lines, coverage->line_count, true);
	if (coverage->function_count >=
	    2 * coverage->function_sorted + (1 << 20))
		coverage->function_sorted = coverage->function_count =
			coverage_sum_up(coverage->functions,
					coverage->function_count, true);
}

/* --- finishing --- */

bool coverage_is_there(const struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		if (recording->processes[i].coverage_count)
			return true;
	return false;
}

/* A program for gprof has a histogram without -p pchist, and so has one that calls
 * monitor(3). */
static bool is_asked_for(const struct process *process, uint32_t file)
{
	return !process->files[file].is_flat ||
	       process_has_profile(process, "pchist");
}

bool coverage_is_all(const struct recording *recording)
{
	uint32_t i, n;

	for (i = 0; i < recording->process_count; i++)
		for (n = 0; n < recording->processes[i].file_count; n++)
			if (is_asked_for(&recording->processes[i], n))
				return false;
	return coverage_is_there(recording);
}

/* Sorts names of files alphabetically; all rows are then sorted by file. */
static struct names *sorted_names;

static int compare_names(const void *left, const void *right)
{
	return strcmp(sorted_names->text[*(const uint32_t *)left],
		      sorted_names->text[*(const uint32_t *)right]);
}

static void renumber(struct covered *all, size_t count, const uint32_t *numbers)
{
	for (size_t i = 0; i < count; i++)
		all[i].file = numbers[all[i].file];
}

static void sort_files(struct coverage *coverage)
{
	uint32_t count = coverage->files.count, i;
	uint32_t *order = allocate(count + 1ull, sizeof(*order));
	uint32_t *numbers = allocate(count + 1ull, sizeof(*numbers));
	struct names sorted = { 0 };

	for (i = 0; i < count; i++)
		order[i] = i;
	sorted_names = &coverage->files;
	if (count)
		qsort(order, count, sizeof(*order), compare_names);
	for (i = 0; i < count; i++)
		numbers[order[i]] = names_add(&sorted,
					      coverage->files.text[order[i]]);
	renumber(coverage->lines, coverage->line_count, numbers);
	renumber(coverage->functions, coverage->function_count, numbers);
	names_free(&coverage->files);
	coverage->files = sorted;
	free(order);
	free(numbers);
}

static void sum_up_all(struct coverage *coverage)
{
	coverage->line_count = coverage_sum_up(coverage->lines,
					       coverage->line_count, true);
	coverage->function_count = coverage_sum_up(
		coverage->functions, coverage->function_count, true);
}

void coverage_finish(struct coverage *coverage)
{
	sort_files(coverage);
	sum_up_all(coverage);
}

void coverage_merge_tests(struct coverage *coverage)
{
	for (size_t i = 0; i < coverage->line_count; i++)
		coverage->lines[i].test = 0;
	for (size_t i = 0; i < coverage->function_count; i++)
		coverage->functions[i].test = 0;
	sum_up_all(coverage);
}

size_t coverage_file_end(const struct covered *all, size_t count, size_t from)
{
	size_t end = from;

	while (end < count && all[end].test == all[from].test &&
	       all[end].file == all[from].file)
		end++;
	return end;
}

bool coverage_is_system(const char *file)
{
	return !strncmp(file, "/usr/include/", 13) ||
	       !strncmp(file, "/usr/lib/", 9);
}
