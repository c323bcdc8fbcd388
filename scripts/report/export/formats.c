/*
 * The list of all export formats.  A new format is a file that defines its
 * struct export_format, and a line in this list.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "export/callgrind.h"
#include "export/chrome.h"
#include "export/cobertura.h"
#include "export/csv.h"
#include "export/ctf.h"
#include "export/folded.h"
#include "export/formats.h"
#include "export/gmon.h"
#include "export/json_report.h"
#include "export/lcov.h"
#include "export/linker_order.h"
#include "export/massif.h"
#include "export/perfetto.h"
#include "export/pprof.h"
#include "export/speedscope.h"

/* The order is that of --help. */
static const struct export_format *const formats[] = {
	&export_folded,	   &export_speedscope, &export_json,   &export_csv,
	&export_pprof,	   &export_callgrind,  &export_massif, &export_gmon,
	&export_chrome,	   &export_perfetto,   &export_ctf,    &export_lcov,
	&export_cobertura, &export_order,
};
#define FORMATS (sizeof(formats) / sizeof(*formats))

static const char *name_all(unsigned int values)
{
	const char *list = "";
	size_t i;

	for (i = 0; i < FORMATS; i++)
		if (!values || (formats[i]->values & values))
			list = keep_format("%s%s%s", list, *list ? ", " : "",
					   formats[i]->name);
	return list;
}

const char *export_format_names(void)
{
	return name_all(0);
}

const char *export_format_names_with(enum value value)
{
	return name_all(VALUE_BIT(value));
}

const struct export_format *export_format_find(const char *name)
{
	size_t i;

	for (i = 0; i < FORMATS; i++)
		if (!strcmp(name, formats[i]->name))
			return formats[i];
	die_usage("export: unknown format '%s'; there are %s", name,
		  export_format_names());
}

void export_format_help(void)
{
	size_t i;

	for (i = 0; i < FORMATS; i++)
		printf("    %-13s%s\n", formats[i]->name,
		       formats[i]->description);
}
