/* Exports waits for locks as part of the JSON report. */
#ifndef REPORT_EXPORT_JSON_LOCKS_H
#define REPORT_EXPORT_JSON_LOCKS_H

struct json;
struct model;
struct options;

/* Writes keys of the object that is open. */
void locks_json(struct json *json, const struct model *model,
		const struct options *options);

#endif
