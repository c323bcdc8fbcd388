/* profrun diff for continuous integration. */
#ifndef REPORT_TEXT_DIFF_CI_H
#define REPORT_TEXT_DIFF_CI_H

#include <stdbool.h>
#include <stdio.h>

struct diff;
struct options;

/* Whether the format names source lines. */
bool ci_wants_lines(const struct options *options);
/* Workflow commands of GitHub: annotations of the source. */
void ci_print_github(FILE *out, const struct diff *diff);
/* The XML of JUnit's results: a test case for each function. */
void ci_print_junit(FILE *out, const struct diff *diff);
/* Tells on stderr what crossed --fail-above; false: nothing did. */
bool ci_tell_crossed(const struct diff *diff);

#endif
