/*
 * The JSON writer.  The writer knows for each open object and array whether it
 * has a value already, so callers do not count commas.  The writer dies on
 * calls that do not nest: programs read these outputs, and half a document is
 * worse than none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/messages.h"
#include "base/text.h"
#include "os/characters.h"

static void expect(bool is_true, const char *mistake)
{
	if (!is_true)
		die("mistake in shim: JSON with %s", mistake);
}

/* Only one thread writes.  With stdio's locks and printf, export chrome took
 * twice as long. */
static void write_bytes(struct json *json, const char *bytes, size_t size)
{
	fwrite_unlocked(bytes, 1, size, json->out);
}

static void put_string(struct json *json, const char *text)
{
	write_bytes(json, text, strlen(text));
}

static void put_character(struct json *json, char c)
{
	putc_unlocked(c, json->out);
}

static void put_decimal(struct json *json, uint64_t number)
{
	char digits[20], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	write_bytes(json, at, (size_t)(digits + sizeof(digits) - at));
}

static void put_line(struct json *json)
{
	unsigned int i;

	if (!json->begins_line)
		return;
	put_character(json, '\n');
	for (i = 0; i < json->indent; i++)
		put_character(json, ' ');
	json->begins_line = false;
}

/* Goes before a key of an object, and before a value of an array or of the top
 * level. */
static void separate(struct json *json)
{
	if (json->levels[json->depth].has_values)
		put_character(json, ',');
	json->levels[json->depth].has_values = true;
	put_line(json);
}

static void begin_value(struct json *json)
{
	char close = json->levels[json->depth].close;

	if (close == '}') {
		expect(json->has_key, "a value that has no key");
		json->has_key = false;
		return;
	}
	expect(close || !json->levels[0].has_values, "two values at the top");
	separate(json);
}

struct json json_begin(FILE *out)
{
	return (struct json){ .out = out };
}

void json_end(struct json *json)
{
	expect(json->depth == 0, "an object or array that is never closed");
	expect(json->levels[0].has_values, "no value");
	put_character(json, '\n');
}

static void open_level(struct json *json, char open, char close)
{
	begin_value(json);
	expect(json->depth < JSON_DEPTH_MAX, "too many levels");
	put_character(json, open);
	json->depth++;
	json->levels[json->depth].close = close;
	json->levels[json->depth].has_values = false;
}

static void close_level(struct json *json, char close)
{
	expect(json->levels[json->depth].close == close,
	       close == '}' ? "a '}' where no object is open" :
			      "a ']' where no array is open");
	expect(!json->has_key, "a key that has no value");
	put_line(json);
	put_character(json, close);
	json->depth--;
}

void json_object(struct json *json)
{
	open_level(json, '{', '}');
}

void json_close_object(struct json *json)
{
	close_level(json, '}');
}

void json_array(struct json *json)
{
	open_level(json, '[', ']');
}

void json_close_array(struct json *json)
{
	close_level(json, ']');
}

void json_line(struct json *json, unsigned int indent)
{
	expect(!json->has_key, "a line between a key and its value");
	json->begins_line = true;
	json->indent = indent;
}

void json_key(struct json *json, const char *key)
{
	expect(json->levels[json->depth].close == '}',
	       "a key where no object is open");
	expect(!json->has_key, "a key that has no value");
	separate(json);
	put_character(json, '"');
	put_string(json, key);
	put_string(json, "\":");
	json->has_key = true;
}

void json_text(struct json *json, const char *text)
{
	size_t length;
	uint32_t c;

	begin_value(json);
	if (!text) {
		put_string(json, "null");
		return;
	}
	put_character(json, '"');
	length = text_plain_bytes(text);
	write_bytes(json, text, length);
	for (text += length; *text; text += length ? length : 1) {
		length = character_at(text, SIZE_MAX, &c);
		if (!length) {
			put_string(json, "\\ufffd");
		} else if (c == '"' || c == '\\') {
			put_character(json, '\\');
			put_character(json, (char)c);
		} else if (!character_is_harmless(c)) {
			fprintf(json->out, "\\u%04x", (unsigned int)c);
		} else {
			write_bytes(json, text, length);
		}
	}
	put_character(json, '"');
}

void json_count(struct json *json, uint64_t count)
{
	begin_value(json);
	put_decimal(json, count);
}

void json_integer(struct json *json, int64_t value)
{
	begin_value(json);
	fprintf(json->out, "%" PRId64, value);
}

void json_number(struct json *json, double value, int digits)
{
	begin_value(json);
	if (isfinite(value))
		fprintf(json->out, "%.*g", digits, value);
	else
		put_string(json, "null");
}

void json_thousandths(struct json *json, uint64_t count)
{
	begin_value(json);
	put_decimal(json, count / 1000);
	put_character(json, '.');
	put_character(json, (char)('0' + count / 100 % 10));
	put_character(json, (char)('0' + count / 10 % 10));
	put_character(json, (char)('0' + count % 10));
}

void json_flag(struct json *json, bool value)
{
	begin_value(json);
	put_string(json, value ? "true" : "false");
}

void json_null(struct json *json)
{
	begin_value(json);
	put_string(json, "null");
}

void json_key_object(struct json *json, const char *key)
{
	json_key(json, key);
	json_object(json);
}

void json_key_array(struct json *json, const char *key)
{
	json_key(json, key);
	json_array(json);
}

void json_key_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

void json_key_count(struct json *json, const char *key, uint64_t count)
{
	json_key(json, key);
	json_count(json, count);
}

void json_key_integer(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	json_integer(json, value);
}

void json_key_number(struct json *json, const char *key, double value,
		     int digits)
{
	json_key(json, key);
	json_number(json, value, digits);
}

void json_key_flag(struct json *json, const char *key, bool value)
{
	json_key(json, key);
	json_flag(json, value);
}

void json_key_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}
