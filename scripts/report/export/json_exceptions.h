/* Exceptions in the report for programs. */
#ifndef REPORT_EXPORT_JSON_EXCEPTIONS_H
#define REPORT_EXPORT_JSON_EXCEPTIONS_H

struct json;
struct model;
struct options;

/* As keys of the object that is open. */
void exceptions_json(struct json *json, const struct model *model,
		     const struct options *options);

#endif
