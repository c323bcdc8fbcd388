/* Exports exceptions as part of the JSON report. */
#ifndef REPORT_EXPORT_JSON_EXCEPTIONS_H
#define REPORT_EXPORT_JSON_EXCEPTIONS_H

struct json;
struct model;
struct options;

/* Writes keys of the object that is open. */
void exceptions_json(struct json *json, const struct model *model,
		     const struct options *options);

#endif
