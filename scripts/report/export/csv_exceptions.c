/*
 * Exports exceptions as CSV: a row for each path that throws, and a row for
 * each place that catches its exceptions.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"
#include "export/csv_exceptions.h"
#include "export/paths.h"
#include "model/exceptions.h"
#include "model/model.h"
#include "model/options.h"

static void put_row(FILE *out, const struct model *model,
		    const struct options *options,
		    const struct throw_part *part)
{
	put_csv(out,
		exceptions_type_name(model->exceptions, part->type, options));
	fputc(',', out);
	path_csv(out, model, options, part->path);
	fputc(',', out);
	path_csv(out, model, options, part->catcher);
	fprintf(out, part->is_throw ? ",%" PRIu64 ",\r\n" : ",,%" PRIu64 "\r\n",
		part->count);
}

/* Prints a row for a path that throws, and a row for each place that catches
 * its exceptions. */
void exceptions_csv(FILE *out, const struct model *model,
		    const struct options *options)
{
	const struct exceptions *exceptions = model->exceptions;
	uint32_t i, n, k;

	fputs("type,path,catcher,throws,catches\r\n", out);
	for (i = 0; i < exceptions->type_count; i++)
		for (n = 0; n < exceptions->of_types[i].count; n++) {
			const struct thrown *thrower =
				&exceptions->throwers
					 [exceptions->of_types[i].first + n];

			for (k = 0; k < thrower->count; k++)
				put_row(out, model, options,
					&exceptions->parts[thrower->first + k]);
		}
}
