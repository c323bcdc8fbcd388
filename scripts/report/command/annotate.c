/*
 * profrun annotate: reads the samples, chooses the functions, and prints their lines.
 */
#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "base/output.h"
#include "command/annotate.h"
#include "command/finish.h"
#include "export/json_annotation.h"
#include "model/annotation.h"
#include "model/choose.h"
#include "model/coverage.h"
#include "model/coverage_read.h"
#include "model/hits.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"
#include "text/annotate.h"

static void check_samples(const struct recording *recording)
{
	if (!hits_are_there(recording))
		die("%s: no samples with lines were recorded (profrun -p "
		    "sampling, or --budget)",
		    recording->path);
}

/* A budget joins its samples to the calls; other recordings may have both apart. */
static void build(struct model *model, struct recording *recording,
		  const struct options *options)
{
	struct options chosen = *options;
	struct model samples = { .recording = NULL };

	recording->is_read_again = true;
	choose_build(model, &samples, recording, &chosen);
	if (samples.recording)
		*model = samples;
}

/* The words could be a function and a recording, or one of both. */
static bool is_recording(const char *path)
{
	glob_t found;
	bool is = glob(keep_format("%s/*/meta", path), GLOB_NOSORT, NULL,
		       &found) == 0 ||
		  glob(keep_format("%s/*/*/meta", path), GLOB_NOSORT, NULL,
		       &found) == 0;

	globfree(&found);
	return is;
}

int annotate(const struct options *options, char **words, int count)
{
	bool is_alone = count == 1 && is_recording(words[0]);
	const char *name = count > 0 && !is_alone ? words[0] : NULL;
	const char *path = is_alone ? words[0] : count > 1 ? words[1] : NULL;
	struct recording recording;
	struct coverage coverage = { .line_count = 0 };
	struct model model;
	struct annotation annotation = { .model = &model,
					 .places = &options->places,
					 .asks_code = options->code };
	FILE *out;

	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	check_samples(&recording);
	build(&model, &recording, options);
	annotation.all = hits_all(&model);
	annotation.period_ns = hits_period_ns(&model);
	if (coverage_is_there(&recording)) {
		coverage_add(&coverage, &recording);
		coverage_finish(&coverage);
		coverage_merge_tests(&coverage);
		annotation.coverage = &coverage;
	}
	annotation_choose(&annotation, name);
	progress_end();
	out = output_open(NULL);
	if (!strcmp(options->format, "json"))
		json_annotation_print(out, &annotation, options);
	else
		annotate_print(out, &annotation, options);
	return finish(&model);
}
