/*
 * The screen of profrun top for the program that profrun runs.
 *
 * The terminal belongs to the screen: what the program prints there goes to a file
 * without a name, and is printed when the screen is left; its standard input becomes
 * /dev/null.  Streams that are no terminal stay as they are.
 */
#ifndef RUN_LIVE_H
#define RUN_LIVE_H

#include <stdbool.h>

/*
 * live_prepare - before the program is started
 *
 * Returns false, after a message, if there is no terminal or no room for a file.
 */
bool live_prepare(void);

/* live_redirect - in the child that becomes the program: move its streams away from the
 * terminal */
void live_redirect(void);

/*
 * live_begin - show process @pid, by @report (shim-report), until the user leaves
 *
 * The screen appears when shim records the process.  @profrun (NULL: unknown) serves the
 * keys that change what is recorded.  After the screen, the program's output goes to the
 * terminal until the program ends.  Ctrl-C is the program's.
 */
void live_begin(int pid, const char *report, const char *profrun);

/* live_end - wait until the user has left; after the program was waited for */
void live_end(void);

#endif
