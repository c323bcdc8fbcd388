/* speedscope's format, of call paths; and what both of its exports write. */
#ifndef REPORT_EXPORT_SPEEDSCOPE_H
#define REPORT_EXPORT_SPEEDSCOPE_H

#include <stdint.h>

#include "export/format.h"

struct function;
struct json;
struct recording;

/* Writes the head of the file, up to "shared" and "profiles". */
void speedscope_begin(struct json *json, const struct recording *recording);
void speedscope_frame(struct json *json, struct function *function,
		      const struct options *options);
/* @type: "O" opens a call, "C" closes it. */
void speedscope_event(struct json *json, const char *type, uint32_t frame,
		      uint64_t at);

#endif
