/* The command line. */
#ifndef REPORT_COMMAND_COMMAND_LINE_H
#define REPORT_COMMAND_COMMAND_LINE_H

#include <unistd.h>

struct options;

/* Dies if it is none. */
void check_verb(const char *name);
/* Takes the options from the words after the verb; returns how many words are
 * left, in argv[optind] and on. */
int take_options(struct options *options, const char *verb, int argc,
		 char **argv);
_Noreturn void print_help(const char *verb);

#endif
