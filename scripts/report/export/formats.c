/*
 * The list of all export formats, which the linker makes of EXPORT_FORMAT() in
 * the files of the formats.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "common/nearest.h"
#include "export/formats.h"

/* The linker defines them if there is a format at all. */
extern const struct export_format *const __start_export_formats[]
	__attribute__((weak));
extern const struct export_format *const __stop_export_formats[]
	__attribute__((weak));

#define FORMATS_MAX 64

static const struct export_format *formats[FORMATS_MAX];
static size_t format_count;

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct export_format *const *)a)->name,
		      (*(const struct export_format *const *)b)->name);
}

/* The linker's order is that of the files. */
static void list_formats(void)
{
	const struct export_format *const *at;

	if (format_count)
		return;
	for (at = __start_export_formats;
	     at != __stop_export_formats && format_count < FORMATS_MAX; at++)
		formats[format_count++] = *at;
	qsort(formats, format_count, sizeof(*formats), by_name);
}

static const char *name_all(unsigned int values)
{
	const char *list = "";
	size_t i;

	list_formats();
	for (i = 0; i < format_count; i++)
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

static const char *did_you_mean(const char *name)
{
	struct nearest nearest;
	size_t i;

	nearest_begin(&nearest, name, strlen(name));
	for (i = 0; i < format_count; i++)
		nearest_add(&nearest, formats[i]->name,
			    strlen(formats[i]->name));
	return nearest.best ? keep_format("did you mean %s?  ", nearest.best) :
			      "";
}

const struct export_format *export_format_find(const char *name)
{
	size_t i;

	list_formats();
	for (i = 0; i < format_count; i++)
		if (!strcmp(name, formats[i]->name))
			return formats[i];
	die_usage("export: unknown format '%s'; %sthere are %s", name,
		  did_you_mean(name), export_format_names());
}

void export_format_help(void)
{
	size_t i;

	list_formats();
	for (i = 0; i < format_count; i++)
		printf("    %-13s%s\n", formats[i]->name,
		       formats[i]->description);
}
