/* The command line. */
#ifndef REPORT_OPTIONS_H
#define REPORT_OPTIONS_H

#include <getopt.h>

#include "report.h"

/* Of each verb. */
extern const struct option report_options[], export_options[], replay_options[],
	merge_options[], diff_options[], html_options[], info_options[];

/* Takes the options from the words after the verb; returns how many words are
 * left, in argv[optind] and on. */
int take_options(struct options *options, int argc, char **argv,
		 const struct option *known, const char *letters);
_Noreturn void print_help(void);

#endif
