/*
 * Parses NAME:key,key=value,... for all profilers, by a table of options and a function
 * for each kind of value.
 */
#include "options/options.h"

#include <shim/signals.h>

#include <shim/banned.h>

#define OPTION(profiler, name, key, kind, least, most, times, shown) \
	[OPTION_##profiler##_## \
		name] = { #profiler, key,   OPTION_##kind, least, \
			  most,	     times, shown },
#define NO_OPTION(name) [OPTION_##name##_NONE] = { .profiler = #name },

const struct profiler_option profiler_options[OPTIONS_COUNT] = {
#include "options/options.def"
};

/* --- text --- */

static size_t length_of(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static bool is_equal(const char *text, size_t size, const char *word)
{
	size_t i = 0;

	while (i < size && word[i] && text[i] == word[i])
		i++;
	return i == size && word[i] == '\0';
}

/* The number of characters before @end, or of all characters. */
static size_t size_before(const char *text, size_t size, char end)
{
	size_t i = 0;

	while (i < size && text[i] != end)
		i++;
	return i;
}

struct text {
	char *at, *end;
};

static void add_text(struct text *text, const char *from, size_t size)
{
	for (size_t i = 0; i < size && text->at < text->end; i++)
		*text->at++ = from[i];
	*text->at = '\0';
}

static void add_word(struct text *text, const char *word)
{
	add_text(text, word, length_of(word));
}

/* --- kinds of values --- */

/* Reads at most 10 digits.  Returns their number; 0 without digits, or with more than
 * 10. */
static size_t read_digits(const char *text, size_t size, uint64_t *number)
{
	size_t i = 0;

	*number = 0;
	for (; i < size && text[i] >= '0' && text[i] <= '9'; i++) {
		if (i == 10)
			return 0;
		*number = *number * 10 + (uint64_t)(text[i] - '0');
	}
	return i;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* Reads a number and one of @units.  (10 digits and the largest unit fit 64 bits.) */
static bool read_number(const char *text, size_t size, const struct unit *units,
			uint64_t *number)
{
	size_t digits = read_digits(text, size, number);

	if (digits == 0)
		return false;
	for (; units->name; units++)
		if (is_equal(text + digits, size - digits, units->name)) {
			*number *= units->factor;
			return true;
		}
	return false;
}

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };
static const struct unit sizes[] = {
	{ "", 1 },	     { "K", 1ull << 10 }, { "M", 1ull << 20 },
	{ "G", 1ull << 30 }, { NULL, 0 },
};
static const struct unit time_units[] = {
	{ "ns", 1 },	     { "us", 1000 }, { "ms", 1000000 },
	{ "s", 1000000000 }, { NULL, 0 },
};

static bool read_choice(const char *text, size_t size, const char *choices,
			uint64_t *number)
{
	for (*number = 0;; ++*number) {
		size_t length = size_before(choices, length_of(choices), '|');

		if (length == size && length > 0 &&
		    size_before(text, size, '|') == size) {
			size_t i = 0;

			while (i < size && text[i] == choices[i])
				i++;
			if (i == size)
				return true;
		}
		if (choices[length] == '\0')
			return false;
		choices += length + 1;
	}
}

static bool is_name(size_t size)
{
	return size > 0 && size < OPTION_TEXT_SIZE;
}

/* Splits at the last '/': names of operators may contain one. */
static bool split(struct option_value *value)
{
	size_t name = value->size;

	while (name > 0 && value->text[name - 1] != '/')
		name--;
	if (name == 0)
		return false;
	value->parameter = value->text + name;
	value->parameter_size = value->size - name;
	value->size = name - 1;
	return is_name(value->size) && is_name(value->parameter_size);
}

static bool read_parameter(struct option_value *value)
{
	size_t digits;

	if (!split(value))
		return false;
	digits = read_digits(value->parameter, value->parameter_size,
			     &value->number);
	if (digits != value->parameter_size)
		value->number = 0;
	return digits != value->parameter_size ||
	       (value->number > 0 && value->number <= UINT32_MAX);
}

static bool is_label(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!((text[i] >= 'a' && text[i] <= 'z') ||
		      (text[i] >= 'A' && text[i] <= 'Z') ||
		      (text[i] >= '0' && text[i] <= '9') || text[i] == '_'))
			return false;
	return true;
}

static bool is_within(const struct profiler_option *option, uint64_t number)
{
	return number >= option->least && number <= option->most;
}

static bool read_value(const struct profiler_option *option,
		       struct option_value *value)
{
	const char *text = value->text;
	size_t size = value->size;

	switch (option->kind) {
	case OPTION_WORD: return false;
	case OPTION_NUMBER:
		return read_number(text, size, no_units, &value->number) &&
		       is_within(option, value->number);
	case OPTION_SIZE:
		return read_number(text, size, sizes, &value->number) &&
		       is_within(option, value->number);
	case OPTION_TIME:
		return read_number(text, size, time_units, &value->number) &&
		       is_within(option, value->number);
	case OPTION_CHOICE:
		return read_choice(text, size, option->shown, &value->number);
	case OPTION_FUNCTION: return is_name(size);
	case OPTION_NTH:
		return split(value) &&
		       read_number(value->parameter, value->parameter_size,
				   no_units, &value->number) &&
		       is_within(option, value->number);
	case OPTION_PARAMETER: return read_parameter(value);
	case OPTION_LABEL:
		return is_within(option, size) && is_label(text, size);
	case OPTION_SIGNAL:
		value->number = (uint64_t)shim_signal_named(text, size);
		return value->number != 0;
	}
	return false;
}

/* --- the list --- */

const struct profiler_option *options_find(const char *profile)
{
	size_t size = size_before(profile, length_of(profile), ':');

	for (unsigned i = 0; i < OPTIONS_COUNT; i++)
		if (is_equal(profile, size, profiler_options[i].profiler))
			return &profiler_options[i];
	return NULL;
}

const struct profiler_option *options_next(const struct profiler_option *option)
{
	const struct profiler_option *next = option + 1;

	if (next == profiler_options + OPTIONS_COUNT ||
	    !is_equal(next->profiler, length_of(next->profiler),
		      option->profiler))
		return NULL;
	return next;
}

/* Checks an item.  If it is wrong, returns false, and @error has the reason. */
static bool read_item(const char *profiler, struct option_value *value,
		      struct option_error *error)
{
	const char *item = error->item;
	size_t key = size_before(item, error->size, '=');

	for (const struct profiler_option *option = options_find(profiler);
	     option; option = options_next(option)) {
		if (!option->key || !is_equal(item, key, option->key))
			continue;
		error->option = option;
		*value = (struct option_value){ .text = item + key };
		if (key == error->size)
			return option->kind == OPTION_WORD;
		value->text++;
		value->size = error->size - key - 1;
		return read_value(option, value);
	}
	error->option = NULL;
	return false;
}

static bool read_all(const char *profiler, const char *text, option_taker *take,
		     struct option_error *error)
{
	unsigned char given[OPTIONS_COUNT] = { 0 };
	struct option_value value;

	for (;; text += error->size + 1) {
		*error = (struct option_error){ .item = text };
		error->size = size_before(text, length_of(text), ',');
		if (!read_item(profiler, &value, error))
			return false;
		if (error->option->times &&
		    given[error->option - profiler_options]++ ==
			    error->option->times) {
			error->is_too_often = true;
			return false;
		}
		if (take)
			take((enum option_name)(error->option -
						profiler_options),
			     &value);
		if (text[error->size] == '\0')
			return true;
	}
}

bool options_read(const char *profiler, const char *text, option_taker *take,
		  struct option_error *error)
{
	if (*text == '\0')
		return true;
	if (!read_all(profiler, text, NULL, error))
		return false;
	return !take || read_all(profiler, text, take, error);
}

/* --- messages --- */

/* The longest part of an item in a message: a line of the log has little more space. */
#define ITEM_MAX 80

static void add_option(struct text *text, const struct profiler_option *option)
{
	add_word(text, option->key);
	if (option->kind != OPTION_WORD)
		add_word(text, "=");
	add_word(text, option->shown);
}

void options_list(const char *profiler, char *text, size_t size)
{
	const struct profiler_option *option = options_find(profiler);
	struct text to = { text, text + size - 1 };

	*text = '\0';
	for (; option && option->key; option = options_next(option)) {
		if (to.at > text)
			add_word(&to, ", ");
		add_option(&to, option);
	}
}

/* Adds @times, which is less than 100. */
static void add_times(struct text *text, unsigned times)
{
	char digits[3] = { (char)('0' + times / 10), (char)('0' + times % 10) };

	add_word(text, " at most ");
	add_word(text, digits + (times < 10));
	add_word(text, " times");
}

static const char *limit_of(enum option_kind kind)
{
	switch (kind) {
	case OPTION_TIME: return ", from 1ns to 999999s: 500ns, 10us, 3ms, 1s";
	case OPTION_SIZE: return ", in bytes or with K, M or G, up to 1024G";
	case OPTION_FUNCTION:
	case OPTION_NTH:
	case OPTION_PARAMETER:
		return "; a name has at most 127 characters, numbers begin at 1";
	case OPTION_LABEL: return " of at most 200 letters, digits and '_'";
	case OPTION_SIGNAL:
		return ", a name or a number as of kill -l, but for KILL, STOP, "
		       "those that faults send, and what libc and shim use (TRAP, "
		       "32, 33, 60 to 64)";
	default: return "";
	}
}

void options_explain(const char *profiler, const struct option_error *error,
		     char *text, size_t size)
{
	size_t name = size_before(profiler, length_of(profiler), ':');
	const struct profiler_option *option = error->option;
	struct text to = { text, text + size - 1 };
	char list[400];

	add_word(&to, "'");
	add_text(&to, error->item,
		 error->size < ITEM_MAX ? error->size : ITEM_MAX);
	if (error->size > ITEM_MAX)
		add_word(&to, "...");
	if (option) {
		add_word(&to,
			 error->is_too_often ? "' is one too many: " : "': ");
		add_text(&to, profiler, name);
		add_word(&to, " takes ");
		add_option(&to, option);
		if (error->is_too_often)
			add_times(&to, option->times);
		else
			add_word(&to, limit_of(option->kind));
		return;
	}
	options_list(profiler, list, sizeof(list));
	add_word(&to, "': ");
	add_text(&to, profiler, name);
	if (*list) {
		add_word(&to, " takes ");
		add_word(&to, list);
	} else {
		add_word(&to, " takes no arguments");
	}
}
