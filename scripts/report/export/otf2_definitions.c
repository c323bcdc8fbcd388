/*
 * What the events of an OTF2 archive refer to: regions, call paths, metrics, attributes,
 * parameters and kinds of markers.
 */
#include <stdbool.h>
#include <stdint.h>
#include <otf2/otf2.h>

#include "base/map.h"
#include "base/names.h"
#include "export/lanes.h"
#include "export/otf2.h"
#include "export/otf2_archive.h"
#include "model/functions.h"
#include "model/model.h"
#include "trace/trace.h"

static OTF2_RegionRef define_region(struct otf2 *otf2, const char *name,
				    const struct function *function,
				    OTF2_RegionRole role,
				    OTF2_Paradigm paradigm)
{
	OTF2_StringRef shown = text_of(otf2, name);
	bool has_line = function && function->file;

	check(otf2,
	      OTF2_GlobalDefWriter_WriteRegion(
		      otf2->archive.definitions, otf2->region_count, shown,
		      function ? text_of(otf2, function->mangled) : shown,
		      text_of(otf2, function ? object_name(function) : ""),
		      role, paradigm, OTF2_REGION_FLAG_NONE,
		      text_of(otf2, has_line ? function->file : ""),
		      has_line ? (uint32_t)function->line : 0, 0));
	return otf2->region_count++;
}

OTF2_RegionRef otf2_region_of_function(struct otf2 *otf2,
				       const struct trace_event *event)
{
	struct lanes *lanes = otf2->lanes;
	uint32_t number = lanes->recording->sites[event->site].function;
	struct function *function = &lanes->model->functions[number];

	if (otf2->of_function[number] == NONE) {
		function_line(function);
		otf2->of_function[number] = define_region(
			otf2, lanes_function_name(lanes, event), function,
			OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_COMPILER);
	}
	return otf2->of_function[number];
}

OTF2_RegionRef otf2_region_of_text(struct otf2 *otf2, const char *text)
{
	uint32_t number = names_keep(&otf2->texts, text);
	OTF2_RegionRef region = map_get(&otf2->of_text, number);

	if (region == NONE) {
		region = define_region(otf2, text, NULL,
				       OTF2_REGION_ROLE_ARTIFICIAL,
				       OTF2_PARADIGM_MEASUREMENT_SYSTEM);
		map_add(&otf2->of_text, number, region);
	}
	return region;
}

OTF2_CallpathRef otf2_callpath_of(struct otf2 *otf2, OTF2_CallpathRef parent,
				  OTF2_RegionRef region)
{
	uint32_t number = map_add(&otf2->callpaths,
				  (uint64_t)parent << 32 | region,
				  otf2->callpath_count);

	if (number < otf2->callpath_count)
		return number;
	check(otf2, OTF2_GlobalDefWriter_WriteCallpath(
			    otf2->archive.definitions, number, parent, region));
	return otf2->callpath_count++;
}

OTF2_MetricRef otf2_metric_of(struct otf2 *otf2, const char *name)
{
	OTF2_GlobalDefWriter *definitions = otf2->archive.definitions;
	uint32_t count = otf2->counters.count;
	OTF2_MetricMemberRef number = names_keep(&otf2->counters, name);

	if (number < count)
		return number;
	check(otf2, OTF2_GlobalDefWriter_WriteMetricMember(
			    definitions, number, text_of(otf2, name),
			    text_of(otf2, ""), OTF2_METRIC_TYPE_USER,
			    OTF2_METRIC_ABSOLUTE_NEXT, OTF2_TYPE_DOUBLE,
			    OTF2_BASE_DECIMAL, 0, text_of(otf2, "#")));
	check(otf2, OTF2_GlobalDefWriter_WriteMetricClass(
			    definitions, number, 1, &number,
			    OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_CPU));
	return number;
}

static void define_attributes(struct otf2 *otf2)
{
	static const char *const names[] = {
		[ARGUMENTS] = "arguments", [RESULT] = "result"
	};
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		check(otf2, OTF2_GlobalDefWriter_WriteAttribute(
				    otf2->archive.definitions, i,
				    text_of(otf2, names[i]), text_of(otf2, ""),
				    OTF2_TYPE_STRING));
}

static void define_parameters(struct otf2 *otf2)
{
	static const char *const names[PARAMETERS] = {
		[PARAMETER_MARK] = "mark",
		[PARAMETER_BEGIN] = "range begins",
		[PARAMETER_END] = "range ends",
	};
	uint32_t i;

	for (i = 0; i < PARAMETERS; i++)
		check(otf2, OTF2_GlobalDefWriter_WriteParameter(
				    otf2->archive.definitions, i,
				    text_of(otf2, names[i]),
				    OTF2_PARAMETER_TYPE_STRING));
}

static void define_markers(struct otf2 *otf2)
{
	static const struct {
		const char *name;
		OTF2_MarkerSeverity severity;
	} markers[MARKERS] = {
		[MARKER_MARK] = { "mark", OTF2_SEVERITY_LOW },
		[MARKER_RANGE] = { "range", OTF2_SEVERITY_LOW },
		[MARKER_LOST] = { "lost calls", OTF2_SEVERITY_HIGH },
	};
	uint32_t i;

	for (i = 0; i < MARKERS; i++)
		check(otf2, OTF2_MarkerWriter_WriteDefMarker(
				    otf2->archive.markers, i, "shim",
				    markers[i].name, markers[i].severity));
}

void otf2_define_constants(struct otf2 *otf2)
{
	define_attributes(otf2);
	define_parameters(otf2);
	define_markers(otf2);
}
