/*
 * Writes JSON.  The writer puts the commas, quotes and escapes; its caller
 * opens and closes objects and arrays, and puts keys and values in between:
 *
 *	struct json json = json_begin(out);
 *
 *	json_object(&json);
 *	json_key_text(&json, "name", name);
 *	json_key_array(&json, "times");
 *	json_count(&json, 1);
 *	json_close_array(&json);
 *	json_close_object(&json);
 *	json_end(&json);
 *
 * A call that would give invalid JSON (a value without a key in an object, a
 * wrong bracket, a second value at the top level, an early end) is a bug of the
 * caller: the program ends with a message.
 */
#ifndef REPORT_BASE_JSON_H
#define REPORT_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 16

struct json {
	FILE *out;
	unsigned int depth;
	bool has_key;	     /* the key waits for its value */
	bool begins_line;    /* the next item begins a new line */
	unsigned int indent; /* indentation of that line */
	struct {
		/* '}' or ']'; 0: the top level, which has one value */
		char close;
		bool has_values;
	} levels[JSON_DEPTH_MAX + 1];
};

struct json json_begin(FILE *out);
/* Ends the line.  Every object and array must be closed. */
void json_end(struct json *json);

void json_object(struct json *json);
void json_close_object(struct json *json);
void json_array(struct json *json);
void json_close_array(struct json *json);
/* The next key, value in an array or closing bracket begins a line. */
void json_line(struct json *json, unsigned int indent);

/* @key is printed without escapes: it must not need any. */
void json_key(struct json *json, const char *key);
void json_text(struct json *json, const char *text); /* NULL: null */
void json_count(struct json *json, uint64_t count);
void json_integer(struct json *json, int64_t value);
/* Writes @digits significant digits; 17 digits distinguish all doubles.  A
 * value that is not finite becomes null. */
void json_number(struct json *json, double value, int digits);
/* Writes @count / 1000 with three digits after the decimal point. */
void json_thousandths(struct json *json, uint64_t count);
void json_flag(struct json *json, bool value);
void json_null(struct json *json);

/* These functions write a key and its value. */
void json_key_object(struct json *json, const char *key);
void json_key_array(struct json *json, const char *key);
void json_key_text(struct json *json, const char *key, const char *text);
void json_key_count(struct json *json, const char *key, uint64_t count);
void json_key_integer(struct json *json, const char *key, int64_t value);
void json_key_number(struct json *json, const char *key, double value,
		     int digits);
void json_key_flag(struct json *json, const char *key, bool value);
void json_key_null(struct json *json, const char *key);

#endif
