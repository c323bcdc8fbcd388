/* The command line of shim-report. */
#ifndef REPORT_COMMAND_COMMAND_LINE_H
#define REPORT_COMMAND_COMMAND_LINE_H

#include <unistd.h>

struct options;

/* Dies if the word is no verb. */
void check_verb(const char *name);
/* Parses the options after the verb.  Returns the number of remaining words,
 * which begin at argv[optind]. */
int take_options(struct options *options, const char *verb, int argc,
		 char **argv);
_Noreturn void print_help(const char *verb);

#endif
