/*
 * A program that is its own profiler, with call contexts: it prints the arguments of
 * its functions and the values of their variables when they return, and the values that
 * shim reports. tests/whole/call_contexts.py generates the functions and compares.
 */
#ifndef INTROSPECTED_H
#define INTROSPECTED_H

#include <shim/contexts.h>
#include <shim/info.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_method_enter
#pragma weak shim_profiler_on_method_leave
#pragma weak shim_profiler_set_call_instrumentation_filter_callback
#pragma weak shim_profiler_enable_call_context_introspection
#pragma weak shim_function_name
#pragma weak shim_profiler_enable_symbols
#pragma weak shim_call_context_get_this
#pragma weak shim_call_context_get_argument
#pragma weak shim_call_context_get_local
#pragma weak shim_call_context_get_result
#pragma weak shim_call_context_free_buffer
#pragma weak shim_call_context_get_size
#pragma weak shim_call_context_get_count
#pragma weak shim_call_context_get_info
#pragma weak shim_call_context_get_local_info

#define QUIETLY __attribute__((no_instrument_function))
#ifdef __clang__
#define CALLED __attribute__((noinline))
#else
#define CALLED __attribute__((noinline, noclone))
#endif
/* Inlined into each case, they would take most of the time of the compiler. */
#define APART __attribute__((noinline))

/* The case whose function is being called. */
static int current;
static volatile unsigned char sink[64];
/* The final values of a function's variables; the compiler must assume that other code
 * reads them. */
unsigned char uses[24][256];

QUIETLY APART static void print_bytes(const void *bytes, size_t size)
{
	const unsigned char *at = (const unsigned char *)bytes;

	putchar(' ');
	if (size == 0)
		putchar('0');
	for (size_t i = 0; i < size; i++)
		printf("%02x", at[i]);
}

/* Makes the value of a case: any bytes, except for types with few valid values. */
QUIETLY static void make(void *value, size_t size, unsigned seed, int is_bool)
{
	unsigned char *at = (unsigned char *)value;

	for (size_t i = 0; i < size; i++) {
		seed = seed * 1103515245u + 12345u;
		at[i] = (unsigned char)(is_bool ? seed >> 16 & 1 : seed >> 16);
	}
}

/* The same, where the compiler does not know the value. */
QUIETLY APART static void make_apart(void *value, size_t size, unsigned seed,
				     int is_bool)
{
	make(value, size, seed, is_bool);
}

/* Prints two buffers: they must have the same bytes, different addresses and the
 * reported size. */
QUIETLY static void print_value(void *value, void *again, uint32_t size,
				int reason)
{
	if (!value) {
		printf(" -%d", reason);
		if (again || reason == 0)
			printf(" and-not");
	} else if (!again || again == value || reason != 0 ||
		   shim_call_context_get_size(value) != size ||
		   shim_call_context_get_size(again) != size ||
		   memcmp(value, again, size) != 0) {
		printf(" not-twice");
	} else {
		print_bytes(value, size);
	}
	shim_call_context_free_buffer(value);
	shim_call_context_free_buffer(again);
}

QUIETLY static void tell(const char *when, int n, struct shim_call_context *context)
{
	uint32_t count = 0, size, number;
	enum shim_unavailable reason;
	char name[64];
	enum shim_result r;

	r = shim_call_context_get_count(context, SHIM_CALL_ARGUMENT, &count);
	if (r != SHIM_OK)
		printf("%s %d arguments %#x\n", when, n, r);
	r = shim_call_context_get_count(context, SHIM_CALL_THIS, &number);
	if (r == SHIM_OK && number) {
		shim_call_context_get_info(context, SHIM_CALL_THIS, 0, &size,
					   &reason);
		printf("%s %d this", when, n);
		print_value(shim_call_context_get_this(context),
			    shim_call_context_get_this(context), size, reason);
		putchar('\n');
	}
	for (uint32_t i = 0; i < count; i++) {
		shim_call_context_get_info(context, SHIM_CALL_ARGUMENT, i,
					   &size, &reason);
		printf("%s %d argument %u", when, n, i);
		print_value(shim_call_context_get_argument(context, i),
			    shim_call_context_get_argument(context, i), size,
			    reason);
		putchar('\n');
	}
	if (shim_call_context_get_argument(context, count))
		printf("%s %d an argument too many\n", when, n);
	count = 0;
	r = shim_call_context_get_count(context, SHIM_CALL_LOCAL, &count);
	if (r != SHIM_OK)
		printf("%s %d locals %#x\n", when, n, r);
	for (uint32_t i = 0; i < count; i++) {
		r = shim_call_context_get_local_info(context, i, &size, &reason,
						     sizeof(name), NULL, name);
		printf("%s %d local %s", when, n,
		       r == SHIM_OK ? name : "?");
		print_value(shim_call_context_get_local(context, i),
			    shim_call_context_get_local(context, i), size,
			    reason);
		putchar('\n');
	}
	if (shim_call_context_get_local(context, count))
		printf("%s %d a local too many\n", when, n);
	shim_call_context_get_info(context, SHIM_CALL_RESULT, 0, &size,
				   &reason);
	printf("%s %d result", when, n);
	print_value(shim_call_context_get_result(context),
		    shim_call_context_get_result(context), size, reason);
	putchar('\n');
}

QUIETLY static void entered(struct shim_profiler *profiler,
			    shim_function function,
			    struct shim_call_context *context)
{
	int was = current;

	(void)profiler;
	(void)function;
	current = 0;	/* calls in here do not count */
	if (was)
		tell("enter", was, context);
	current = was;
}

QUIETLY static void left(struct shim_profiler *profiler, shim_function function,
			 struct shim_call_context *context)
{
	int was = current;

	(void)profiler;
	(void)function;
	current = 0;
	if (was)
		tell("leave", was, context);
	current = was;
}

QUIETLY static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	char name[64] = "";
	const char *at = name;

	(void)profiler;
	shim_function_name(function, sizeof(name), NULL, name);
	/* Finds f and a number, but no constructor of an argument. */
	while (at && (at = strchr(at, 'f')) && (at[1] < '0' || at[1] > '9'))
		at++;
	if (!at)
		return SHIM_CALL_INSTRUMENTATION_NONE;
	return (enum shim_call_instrumentation_flags)(
		SHIM_CALL_INSTRUMENTATION_ENTER |
		SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT |
		SHIM_CALL_INSTRUMENTATION_LEAVE |
		SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT);
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	shim_profiler_enable_symbols(handle);
	shim_profiler_on_method_enter(handle, entered);
	shim_profiler_on_method_leave(handle, left);
	shim_profiler_set_call_instrumentation_filter_callback(handle, choose);
	if (shim_profiler_enable_call_context_introspection(handle) != SHIM_OK)
		printf("not enabled\n");
}

#endif
