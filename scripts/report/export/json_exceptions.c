/* Exports exceptions as part of the JSON report. */
#include <stdint.h>

#include "base/json.h"
#include "export/json_exceptions.h"
#include "export/paths.h"
#include "model/exceptions.h"
#include "model/model.h"
#include "model/options.h"

static void put_counts(struct json *json, const struct thrown *thrown)
{
	json_key_count(json, "throws", thrown->throws);
	json_key_count(json, "catches", thrown->catches);
}

static void put_thrower(struct json *json, const struct model *model,
			const struct options *options,
			const struct thrown *thrower)
{
	const struct throw_part *part =
		&model->exceptions->parts[thrower->first];
	uint32_t i;

	json_object(json);
	put_counts(json, thrower);
	json_key(json, "path");
	path_json(json, model, options, thrower->path);
	json_key_array(json, "catchers");
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		json_object(json);
		json_key_count(json, "catches", part->count);
		json_key(json, "path");
		path_json(json, model, options, part->catcher);
		json_close_object(json);
	}
	json_close_array(json);
	json_close_object(json);
}

static void put_type(struct json *json, const struct model *model,
		     const struct options *options, const struct thrown *type)
{
	const struct exceptions *exceptions = model->exceptions;
	uint32_t i;

	json_object(json);
	json_key_text(json, "type",
		      exceptions_type_name(exceptions, type->type, options));
	put_counts(json, type);
	json_key_array(json, "throwers");
	for (i = 0; i < type->count; i++) {
		json_line(json, 1);
		put_thrower(json, model, options,
			    &exceptions->throwers[type->first + i]);
	}
	json_close_array(json);
	json_close_object(json);
}

void exceptions_json(struct json *json, const struct model *model,
		     const struct options *options)
{
	const struct exceptions *exceptions = model->exceptions;
	uint32_t i;

	json_line(json, 0);
	json_key_count(json, "throws", exceptions->throws);
	json_key_count(json, "catches", exceptions->catches);
	json_line(json, 0);
	json_key_array(json, "exceptions");
	for (i = 0; i < exceptions->type_count; i++) {
		json_line(json, 0);
		put_type(json, model, options, &exceptions->of_types[i]);
	}
	json_close_array(json);
}
