/* Extended regular expressions, without regard to case. */
#include <regex.h>
#include <stdbool.h>
#include <string.h>

#include "screen/filter.h"
#include "screen/terminal.h"
#include "screen/view.h"

void filter_end(struct filter *filter)
{
	if (filter->is_set)
		regfree(&filter->expression);
	filter->is_set = false;
}

bool filter_ask(struct filter *filter, struct screen *screen)
{
	char text[sizeof(filter->text)], why[100];
	regex_t expression;
	int error;

	memcpy(text, filter->text, sizeof(text));
	if (!terminal_ask(" only functions that match: ", text, sizeof(text)))
		return false;
	error = regcomp(&expression, text,
			REG_EXTENDED | REG_ICASE | REG_NOSUB);
	if (error) {
		regerror(error, &expression, why, sizeof(why));
		screen_say(screen, "%s: %s", text, why);
		return false;
	}
	filter_end(filter);
	memcpy(filter->text, text, sizeof(text));
	filter->is_set = text[0] != '\0';
	if (filter->is_set)
		filter->expression = expression;
	else
		regfree(&expression);
	return true;
}

bool filter_has(const struct filter *filter, const char *text)
{
	return !filter->is_set ||
	       regexec(&filter->expression, text, 0, NULL, 0) == 0;
}
