/*
 * profrun html: chooses what the page shows, and writes it, or a frame with the
 * page inside: a frame can be part of any other page, whose styles and scripts
 * then have nothing to do with those of ours.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "base/text.h"
#include "command/finish.h"
#include "command/html.h"
#include "export/format.h"
#include "model/annotation.h"
#include "model/choose.h"
#include "model/coverage.h"
#include "model/coverage_read.h"
#include "model/hits.h"
#include "model/model.h"
#include "model/options.h"
#include "model/shown.h"
#include "page/coverage.h"
#include "page/html.h"
#include "page/listings.h"
#include "page/timeline.h"
#include "read/recording.h"
#include "trace/trace.h"

/* Whether more than one thread recorded calls. */
static bool has_threads(const struct model *model)
{
	uint32_t i, count = 0;

	for (i = 0; i < model->thread_count; i++)
		count += model->threads[i].calls || model->threads[i].open ||
			 model->threads[i].older;
	return count > 1;
}

/* --- a page, or a frame with it --- */

struct page {
	FILE *out;
	FILE *inside; /* of a frame: the page, in memory; or NULL */
	char *text;
	size_t size;
};

static FILE *begin_page(struct page *page, const struct options *options)
{
	*page = (struct page){ .out = output_open(options->output) };
	if (!options->embed)
		return page->out;
	page->inside = open_memstream(&page->text, &page->size);
	if (!page->inside)
		die("out of memory");
	return page->inside;
}

/* An attribute's value in double quotes. */
static void put_attribute(FILE *out, const char *text, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		if (text[i] == '&')
			fputs("&amp;", out);
		else if (text[i] == '"')
			fputs("&quot;", out);
		else
			fputc(text[i], out);
}

/* The page may run its scripts and let the user download pictures; it has no
 * access to the page around it. */
static void end_page(struct page *page)
{
	if (!page->inside)
		return;
	if (fclose(page->inside) != 0)
		die("out of memory");
	fputs("<iframe title=\"profile\" sandbox=\"allow-scripts "
	      "allow-downloads\" style=\"width:100%;height:90vh;border:0\" "
	      "srcdoc=\"",
	      page->out);
	put_attribute(page->out, page->text, page->size);
	fputs("\"></iframe>\n", page->out);
	free(page->text);
}

/* --- what it shows --- */

/* The page is named after the recording, whatever its directory is. */
static const char *page_name(const char *recording)
{
	char *whole = realpath(recording, NULL);
	const char *name = keep_format("%s.html",
				       base_name(whole ? whole : recording));

	free(whole);
	return name;
}

static void say_where(const char *path)
{
	if (!isatty(STDERR_FILENO) || !strcmp(path, "-"))
		return;
	fputs("profrun: the page is ", stderr);
	put_text(stderr, path);
	fputc('\n', stderr);
}

/* There are no calls to draw. */
static int html_coverage(struct options *options,
			 const struct recording *recording)
{
	struct coverage coverage = { .line_count = 0 };
	struct page page;
	FILE *out;

	if (options->source)
		die_usage("--source: is of samples; this is a recording of "
			  "coverage (profrun export lcov, and genhtml)");
	if (options->against || selection_is_given(&options->selection))
		die_usage("--against, --hide, --only, --focus and "
			  "--merge-recursion are of call paths; this is a "
			  "recording of coverage");
	coverage_add(&coverage, recording);
	coverage_finish(&coverage);
	coverage_merge_tests(&coverage);
	if (!options->output)
		options->output = page_name(recording->path);
	out = begin_page(&page, options);
	coverage_page_print(out, base_name(recording->path), &coverage,
			    options);
	end_page(&page);
	output_close();
	say_where(options->output);
	return 0;
}

static void check_samples(const struct recording *recording)
{
	if (!hits_are_there(recording))
		die("%s: --source: no samples with lines were recorded "
		    "(profrun -p sampling, or --budget)",
		    recording->path);
}

/* Finds the lines of the samples, before other models number the samples' places anew. */
static void find_lines(struct annotation *annotation, struct model *model,
		       const struct options *options)
{
	*annotation = (struct annotation){ .model = model,
					   .places = &options->places };
	annotation->all = hits_all(model);
	annotation->period_ns = hits_period_ns(model);
	annotation_choose_hottest(annotation, PAGE_LISTINGS_MAX);
	progress_end();
}

/* The page compares calls with calls, and samples with samples.  @models: the recording,
 * and its samples, if there are both. */
static void check_against(const struct model *against,
			  const struct model models[2])
{
	if (!against->recording)
		return;
	if (!against->calls && !against->open && !against->has_memory)
		warn("%s: no %s was recorded", against->recording->path,
		     against->is_sampled ? "sample" : "call");
	if (against->is_sampled == models[0].is_sampled ||
	    (models[1].recording &&
	     against->is_sampled == models[1].is_sampled))
		return;
	die("--against: %s has %s, and %s has %s: they cannot be compared",
	    against->recording->path, counted_name(against),
	    models[0].recording->path, counted_name(&models[0]));
}

/* Shows everything: functions that samples found as well, each thread
 * separately, and times. */
int html_page(struct options *options, const char *path)
{
	struct recording recording, before;
	struct model models[4] = { { .recording = NULL } };
	struct model against = { .recording = NULL };
	struct html_contents contents = { .model_count = 0 };
	struct annotation annotation;
	struct timeline timeline;
	struct page page;
	FILE *out;
	int status;
	size_t i;

	if (options->places.count && !options->source)
		die_usage("--source-dir: the page has no source without "
			  "--source");
	if (options->against) {
		choose_read(&against, NULL, &before, options, options->against);
		contents.against = &against;
	}
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	if (coverage_is_all(&recording))
		return html_coverage(options, &recording);
	if (options->source)
		check_samples(&recording);
	recording.is_read_again = true;
	choose_build(&models[0], &models[1], &recording, options);
	check_against(&against, models);
	if (options->source) {
		find_lines(&annotation, &models[models[1].recording ? 1 : 0],
			   options);
		contents.annotation = &annotation;
	}
	recording.is_read_again = false;
	choose_memory(&models[0], options);
	choose_locks(&models[0], options);
	choose_exceptions(&models[0], options);
	if (has_threads(&models[0])) {
		model_build(&models[2], &recording, options, true,
			    models[0].is_sampled);
		if (models[1].recording)
			model_build(&models[3], &recording, options, true,
				    true);
	}
	for (i = 0; i < 4; i++)
		if (models[i].recording)
			contents.models[contents.model_count++] = &models[i];
	if (trace_is_there(&recording) &&
	    timeline_read(&timeline, recording.path, options))
		contents.timeline = &timeline;
	if (!options->output)
		options->output = page_name(recording.path);
	out = begin_page(&page, options);
	html_print(out, &contents, options);
	end_page(&page);
	status = finish(&models[0]);
	say_where(options->output);
	return status;
}

static int html_run(struct options *options, const char *path)
{
	if (options->value_given || options->threads || options->has_window)
		die_usage("export html: has no --value, --threads, --from, "
			  "--to, --thread, --min-duration, --depth, "
			  "--function: the page chooses");
	if (!options->output)
		options->output = "-";
	return html_page(options, path);
}

EXPORT_FORMAT(html) = {
	.name = "html",
	.extension = "html",
	.description = "the page of profrun html",
	.run = html_run,
};
