/*
 * Numbers for people: times, counts and sizes.  The unit is chosen so that
 * three or four digits remain.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"

const char *human_ns(char text[SHORT_TEXT], double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t unit = 0;

	if (!(ns > 0))
		return "0 ns";
	for (; unit < 3 && ns >= 999.5; unit++)
		ns /= 1000;
	if (unit == 3 && ns >= 1e7)
		snprintf(text, SHORT_TEXT, "%.1e s", ns);
	else
		snprintf(text, SHORT_TEXT, "%.*f %s",
			 ns >= 99.95 ? 0 :
			 ns >= 9.995 ? 1 :
				       2,
			 ns, units[unit]);
	return text;
}

const char *human_count(char text[SHORT_TEXT], uint64_t count)
{
	char *at = text + SHORT_TEXT - 1;
	int digits = 0;

	*at = '\0';
	do {
		if (digits && digits % 3 == 0)
			*--at = ',';
		*--at = (char)('0' + count % 10);
		digits++;
	} while (count /= 10);
	return at;
}

const char *human_bytes(char text[SHORT_TEXT], uint64_t bytes)
{
	static const char *const units[] = { "B",   "KiB", "MiB",
					     "GiB", "TiB", "PiB" };
	double value = (double)bytes;
	unsigned unit = 0;

	for (; value >= 1023.95 && unit < 5; unit++)
		value /= 1024;
	snprintf(text, SHORT_TEXT, unit ? "%.1f %s" : "%.0f %s", value,
		 units[unit]);
	return text;
}

const char *time_text(char text[SHORT_TEXT], double ns, bool is_known)
{
	return is_known ? human_ns(text, ns) : "-";
}

bool read_time(const char *text, double *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double value = strtod(text, &end);
	size_t i;

	if (end != text && value == 0 && *end == '\0') {
		*ns = 0;
		return true;
	}
	if (end != text && value >= 0 && value < 1e12)
		for (i = 0; i < sizeof(units) / sizeof(*units); i++)
			if (!strcmp(end, units[i].name)) {
				*ns = value * units[i].ns;
				return true;
			}
	return false;
}
