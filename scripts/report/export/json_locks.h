/* Waits for locks in the report for programs. */
#ifndef REPORT_EXPORT_JSON_LOCKS_H
#define REPORT_EXPORT_JSON_LOCKS_H

struct json;
struct model;
struct options;

/* As keys of the object that is open. */
void locks_json(struct json *json, const struct model *model,
		const struct options *options);

#endif
