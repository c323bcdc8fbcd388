/* The notes are short: they stand behind names. */
#include "model/guesses.h"

#include <stdio.h>

#include "base/numbers.h"

const char *guess_note(char note[GUESS_NOTE], const char *what,
		       uint64_t guessed, uint64_t samples, bool is_most)
{
	char count[SHORT_TEXT];

	note[0] = '\0';
	if (guessed && guessed < samples)
		snprintf(note, GUESS_NOTE, " (%sguessed in %s%s)", what,
			 is_most ? "up to " : "", human_count(count, guessed));
	else if (guessed)
		snprintf(note, GUESS_NOTE, " (%sguessed)", what);
	return note;
}
