/* report --callers, --callees and --histogram. */
#ifndef REPORT_TEXT_CALLERS_H
#define REPORT_TEXT_CALLERS_H

struct page;

/* Dies if --callers and the like name no function, before all output. */
void callers_check(const struct page *page);
void callers_print(const struct page *page);

#endif
