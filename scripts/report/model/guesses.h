/* Says which callers of samples are guesses (SHIM_STACK_GUESS). */
#ifndef REPORT_MODEL_GUESSES_H
#define REPORT_MODEL_GUESSES_H

#include <stdbool.h>
#include <stdint.h>

#define GUESS_NOTE 64

/*
 * guess_note - " (caller guessed)" or " (caller guessed in 12)" in @note; "" if none is
 *
 * @guessed of @samples samples have a guessed caller, or at most @guessed if @is_most.
 * @what is that caller in the note: "caller ", or "" where the note stands beside it.
 */
const char *guess_note(char note[GUESS_NOTE], const char *what,
		       uint64_t guessed, uint64_t samples, bool is_most);

#endif
