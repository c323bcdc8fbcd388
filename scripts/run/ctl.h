/* `profrun ctl`: commands for shim in a running program. */
#ifndef RUN_CTL_H
#define RUN_CTL_H

/* ctl - run the command in @word: PID, verb, arguments */
int ctl(int words, char **word);

#endif
