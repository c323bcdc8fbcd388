/*
 * Writes JSON.  The writer puts the commas, quotes and escapes; its caller opens and
 * closes objects and arrays, and puts keys and values in between:
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
 * A call that would not give JSON - a value without a key in an object, a wrong bracket,
 * a second value at the top, an end too early - is a mistake of the caller: it ends the
 * program with a message.
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
	bool has_key;	     /* and waits for its value */
	bool begins_line;    /* what comes next */
	unsigned int indent; /* of that line */
	struct {
		char close; /* '}' or ']'; 0: the top, which has one value */
		bool has_values;
	} levels[JSON_DEPTH_MAX + 1];
};

struct json json_begin(FILE *out);
/* Ends the line.  All that was opened is closed. */
void json_end(struct json *json);

void json_object(struct json *json);
void json_close_object(struct json *json);
void json_array(struct json *json);
void json_close_array(struct json *json);
/* The next key, value in an array or closing bracket begins a line. */
void json_line(struct json *json, unsigned int indent);

/* @key is printed as it is: it has nothing to escape. */
void json_key(struct json *json, const char *key);
void json_text(struct json *json, const char *text); /* NULL: null */
void json_count(struct json *json, uint64_t count);
void json_integer(struct json *json, int64_t value);
/* With so many significant digits; 17 tell all doubles apart.  Not finite: null. */
void json_number(struct json *json, double value, int digits);
/* As a number with three digits behind the point. */
void json_thousandths(struct json *json, uint64_t count);
void json_flag(struct json *json, bool value);
void json_null(struct json *json);

/* A key and its value. */
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
