/* Prints report --callers, --callees and --histogram. */
#ifndef REPORT_TEXT_CALLERS_H
#define REPORT_TEXT_CALLERS_H

struct layout;

/* Dies if --callers and similar options name no function; call it before any
 * output. */
void callers_check(const struct layout *layout);
void callers_print(const struct layout *layout);

#endif
