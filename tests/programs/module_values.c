/*
 * Makes calls for modules that print them: it reads a sum from a string.
 */
#include <stddef.h>
#include <string.h>

enum kind { NUMBER, SUM };

struct slice {
	const char *text;
	size_t length;
};

static int number(struct slice at)
{
	int value = 0;

	for (; at.length > 0 && *at.text >= '0' && *at.text <= '9';
	     at.text++, at.length--)
		value = value * 10 + *at.text - '0';
	return value;
}

static struct slice next(struct slice at)
{
	const char *plus = memchr(at.text, '+', at.length);

	if (!plus)
		return (struct slice){ NULL, 0 };
	return (struct slice){ plus + 1,
			       at.length - (size_t)(plus + 1 - at.text) };
}

static int parse(const char *text, enum kind kind)
{
	struct slice at = { text, strlen(text) };
	int sum = 0;

	while (at.text && kind == SUM) {
		struct slice rest = next(at);

		sum += number(at);
		at = rest;
	}
	return sum;
}

int main(void)
{
	return parse("12+3", SUM) == 15 ? 0 : 1;
}
