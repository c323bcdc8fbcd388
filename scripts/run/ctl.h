/* `profrun ctl`: commands for shim in a running program. */
#ifndef RUN_CTL_H
#define RUN_CTL_H

/* ctl - run the command in @word: PID, verb, arguments; @report is shim-report */
int ctl(const char *report, int words, char **word);

#endif
