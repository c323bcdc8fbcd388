/* An export to OTF2 in progress: what its parts share. */
#ifndef REPORT_EXPORT_OTF2_H
#define REPORT_EXPORT_OTF2_H

#include <stdint.h>
#include <otf2/otf2.h>

#include "base/map.h"
#include "base/names.h"
#include "export/lanes.h"
#include "export/otf2_archive.h"
#include "export/otf2_messages.h"
#include "trace/trace.h"

enum attribute { ARGUMENTS, RESULT };
enum parameter { PARAMETER_MARK, PARAMETER_BEGIN, PARAMETER_END, PARAMETERS };
enum marker { MARKER_MARK, MARKER_RANGE, MARKER_LOST, MARKERS };

struct open_range {
	uint32_t text; /* number in otf2->texts */
	uint64_t since_ns;
};

struct location {
	OTF2_EvtWriter *writer; /* NULL: closed */
	uint32_t lane;
	const char *name;
	uint64_t first_ns, last_ns, events;
	OTF2_CallpathRef *open; /* call paths of the open calls */
	uint32_t depth, room;
	struct open_range *ranges;
	uint32_t range_count, range_room;
};

struct otf2 {
	struct otf2_archive archive;
	struct otf2_messages messages;
	struct lanes *lanes;
	struct location *locations;
	uint32_t location_count, location_room;
	/* by lane: its latest location; a lane of a damaged file may go on after
	 * its location was closed, and gets another one */
	uint32_t *of_lane;
	uint32_t lane_room;
	uint32_t thread;	     /* whose locations are open, or NONE */
	uint32_t first_open;	     /* the first location of this thread */
	OTF2_RegionRef *of_function; /* by function: its region, or NONE */
	struct map of_text;	     /* by number in @texts: its region */
	uint32_t region_count;
	struct map callpaths; /* parent << 32 | region */
	uint32_t callpath_count;
	struct names texts, counters;
	OTF2_AttributeList *attributes;
	struct kept_text result; /* result of the call that is left next */
};

static inline void check(const struct otf2 *otf2, OTF2_ErrorCode code)
{
	otf2_check(&otf2->archive, code);
}

static inline OTF2_StringRef text_of(struct otf2 *otf2, const char *text)
{
	return otf2_text(&otf2->archive, text ? text : "");
}

/* otf2_definitions.c: what events refer to.  Definitions are written when they are met
 * first. */
void otf2_define_constants(struct otf2 *otf2);
OTF2_RegionRef otf2_region_of_function(struct otf2 *otf2,
				       const struct trace_event *event);
/* Of a time that the thread spends in no function of its own. */
OTF2_RegionRef otf2_region_of_text(struct otf2 *otf2, const char *text);
OTF2_CallpathRef otf2_callpath_of(struct otf2 *otf2, OTF2_CallpathRef parent,
				  OTF2_RegionRef region);
OTF2_MetricRef otf2_metric_of(struct otf2 *otf2, const char *name);

/* otf2_tree.c: the hosts, processes and locations, and the clock, which are known at the
 * end.  @unseen is the location of ranks that have told nothing, or NONE. */
void otf2_define_tree(struct otf2 *otf2, uint32_t unseen);

#endif
