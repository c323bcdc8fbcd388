/* Writes what profrun annotate shows as JSON.  An unknown time is null. */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/numbers.h"
#include "export/json_annotation.h"
#include "model/annotation.h"
#include "model/functions.h"
#include "model/hits.h"
#include "model/model.h"
#include "model/options.h"
#include "names/source.h"

static void put_samples(struct json *json, const struct annotation *annotation,
			const char *samples, const char *ns, double count)
{
	json_key_count(json, samples, whole(count));
	if (annotation->period_ns > 0)
		json_key_count(json, ns, whole(count * annotation->period_ns));
	else
		json_key_null(json, ns);
}

static void put_line(struct json *json, const struct annotation *annotation,
		     const struct annotated *annotated,
		     const struct line_hit *hit)
{
	const struct source_file *source =
		hit->file ? source_find(hit->file, annotation->places,
					annotated->function->object) :
			    NULL;
	uint64_t count;

	json_line(json, 3);
	json_object(json);
	json_key_text(json, "file", hit->file);
	json_key_integer(json, "line", hit->line);
	put_samples(json, annotation, "self_samples", "self_ns", hit->self);
	put_samples(json, annotation, "total_samples", "total_ns", hit->total);
	if (annotation->coverage &&
	    annotation_count(annotation, hit->file, hit->line, &count))
		json_key_count(json, "count", count);
	json_key_text(json, "source",
		      source ? source_line(source, hit->line) : NULL);
	json_close_object(json);
}

static void put_function(struct json *json, const struct annotation *annotation,
			 const struct annotated *annotated,
			 const struct options *options)
{
	struct function *function = annotated->function;
	const struct hits *hits = &annotated->hits;
	uint32_t i;

	function_line(function);
	json_line(json, 1);
	json_object(json);
	json_key_text(json, "name", shown_name(function, options));
	json_key_text(json, "object",
		      function->object ? function->object->path : NULL);
	json_key_text(json, "file", function->file);
	json_key_integer(json, "line", function->file ? function->line : 0);
	put_samples(json, annotation, "self_samples", "self_ns", hits->self);
	put_samples(json, annotation, "total_samples", "total_ns", hits->total);
	json_line(json, 2);
	json_key_array(json, "lines");
	for (i = 0; i < hits->line_count; i++)
		put_line(json, annotation, annotated, &hits->lines[i]);
	json_close_array(json);
	json_line(json, 2);
	json_key_array(json, "instructions");
	for (i = 0; i < hits->instruction_count; i++) {
		json_line(json, 3);
		json_object(json);
		json_key_count(json, "address", hits->instructions[i].address);
		put_samples(json, annotation, "samples", "ns",
			    hits->instructions[i].self);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

void json_annotation_print(FILE *out, const struct annotation *annotation,
			   const struct options *options)
{
	struct json json = json_begin(out);
	uint32_t i;

	json_object(&json);
	json_key_count(&json, "samples", whole(annotation->all));
	if (annotation->period_ns > 0)
		json_key_count(&json, "period_ns",
			       whole(annotation->period_ns));
	else
		json_key_null(&json, "period_ns");
	json_key_count(&json, "left_out", annotation->left_out);
	json_key_array(&json, "functions");
	for (i = 0; i < annotation->count; i++)
		put_function(&json, annotation, &annotation->functions[i],
			     options);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}
