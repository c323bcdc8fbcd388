/* report --messages for programs. */
#ifndef REPORT_EXPORT_JSON_MESSAGES_H
#define REPORT_EXPORT_JSON_MESSAGES_H

#include <stdio.h>

#include "model/late_ranks.h"

void messages_json(FILE *out, const struct late_ranks *ranks);

#endif
