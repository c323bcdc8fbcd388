/* `profrun ctl`: asking shim in a program that runs. */
#ifndef RUN_CTL_H
#define RUN_CTL_H

/* ctl - do what @word says: PID, verb, and what it needs */
int ctl(int words, char **word);

#endif
