/* Exceptions in the report for programs. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"
#include "export/json_exceptions.h"
#include "export/paths.h"
#include "model/exceptions.h"
#include "model/model.h"
#include "model/options.h"

static void put_counts(FILE *out, const struct thrown *thrown)
{
	fprintf(out, "\"throws\":%" PRIu64 ",\"catches\":%" PRIu64,
		thrown->throws, thrown->catches);
}

static void put_thrower(FILE *out, const struct model *model,
			const struct options *options,
			const struct thrown *thrower)
{
	const struct throw_part *part =
		&model->exceptions->parts[thrower->first];
	const char *comma = "";
	uint32_t i;

	fputc('{', out);
	put_counts(out, thrower);
	fputs(",\"path\":", out);
	path_json(out, model, options, thrower->path);
	fputs(",\"catchers\":[", out);
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		fprintf(out, "%s{\"catches\":%" PRIu64 ",\"path\":", comma,
			part->count);
		path_json(out, model, options, part->catcher);
		fputc('}', out);
		comma = ",";
	}
	fputs("]}", out);
}

void exceptions_json(FILE *out, const struct model *model,
		     const struct options *options)
{
	const struct exceptions *exceptions = model->exceptions;
	uint32_t i, n;

	fprintf(out,
		",\n\"throws\":%" PRIu64 ",\"catches\":%" PRIu64
		",\n\"exceptions\":[",
		exceptions->throws, exceptions->catches);
	for (i = 0; i < exceptions->type_count; i++) {
		const struct thrown *type = &exceptions->of_types[i];

		fputs(i ? ",\n{\"type\":" : "\n{\"type\":", out);
		put_json(out,
			 exceptions_type_name(exceptions, type->type, options));
		fputc(',', out);
		put_counts(out, type);
		fputs(",\"throwers\":[", out);
		for (n = 0; n < type->count; n++) {
			fputs(n ? ",\n " : "\n ", out);
			put_thrower(out, model, options,
				    &exceptions->throwers[type->first + n]);
		}
		fputs("]}", out);
	}
	fputc(']', out);
}
