/*
 * A program that is its own profiler, with slow hooks: it prints the arguments and
 * results of its functions, and the values that shim reports. tests/whole/arguments.py
 * generates the functions and compares.
 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <shim/hooks.h>
#include <shim/values.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info
#pragma weak shim_get_value_reason

/* Functions that no profiler sees. */
#if defined(MARKED_ENTRIES)
#define QUIETLY \
	__attribute__((no_instrument_function, patchable_function_entry(0)))
#elif defined(MARKED_XRAY)
#define QUIETLY \
	__attribute__((no_instrument_function, xray_never_instrument))
#else
#define QUIETLY __attribute__((no_instrument_function))
#endif
#ifdef __clang__
#define CALLED __attribute__((noinline))
#else
#define CALLED __attribute__((noinline, noclone))
#endif
/* Inlined into each case, they would take most of the time of the compiler. */
#define APART __attribute__((noinline))

#ifndef LINKAGE
#define LINKAGE
#endif

/* Clobbers all registers; but wide vectors need a frame, and the frame needs rbp. */
#if defined(__x86_64__) && defined(__OPTIMIZE__) && defined(__AVX__)
#define SPILL __asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15")
#elif defined(__x86_64__) && defined(__OPTIMIZE__)
#define SPILL \
	__asm__ volatile("" : : : "rbx", "rbp", "r12", "r13", "r14", "r15")
#else
#define SPILL (void)0
#endif

/* The case whose function is being called. */
extern int current;
static volatile unsigned char sink[64];
/* The functions store their arguments here; the linker must assume that other code
 * reads them. */
extern unsigned char uses[16][64];

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

#ifndef ARGUMENTS_CALLS	/* the part with the calls is compiled separately */
int current;
__attribute__((used)) unsigned char uses[16][64];

/* Prints the size of the value, and the reason why it is not available. */
QUIETLY static void print_range(shim_elt_info info, uint32_t position,
				const struct shim_argument_range *range)
{
	union {
		enum shim_unavailable reason;
		int number; /* as large as the library's, with -fshort-enums or without */
	} why;

	if (range->start) {
		print_bytes((const void *)range->start, range->length);
		return;
	}
	why.number = 0;
	shim_get_value_reason(info, position, &why.reason);
	printf(" -%u:%d", range->length, why.number);
}

QUIETLY static void on_enter(union shim_function_or_client function,
			     shim_elt_info info)
{
	static struct shim_argument_info *arguments;
	shim_frame_info frame;
	uint32_t size = 0, room;
	enum shim_result r;

	if (current == 0)
		return;
	r = shim_get_function_enter3_info(function.function, info, &frame,
					  &size, NULL);
	if (r == SHIM_E_INSUFFICIENT_BUFFER) {
		room = size;
		arguments = (struct shim_argument_info *)realloc(arguments,
								 size);
		memset(arguments, 0xaa, size);
		r = shim_get_function_enter3_info(function.function, info,
						  &frame, &size,
						  arguments);
		if (size != room || arguments->ranges_count * 16 + 24 != size)
			printf("wrong size %u\n", size);
	}
	printf("got %d %#x", current, r);
	if (r == SHIM_OK) {
		uint32_t total = 0;

		for (uint32_t i = 0; i < arguments->ranges_count; i++) {
			print_range(info, i, &arguments->ranges[i]);
			total += arguments->ranges[i].length;
		}
		if (total != arguments->total_size)
			printf(" wrong-total");
	}
	printf("\n");
}

QUIETLY static void on_leave(union shim_function_or_client function,
			     shim_elt_info info)
{
	struct shim_argument_range range = { 1, 1 };
	shim_frame_info frame;
	enum shim_result r;

	if (current == 0)
		return;
	r = shim_get_function_leave3_info(function.function, info, &frame,
					  &range);
	printf("gave %d %#x", current, r);
	if (r == SHIM_OK)
		print_range(info, SHIM_RESULT, &range);
	printf("\n");
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FUNCTION_ARGS |
					    SHIM_ENABLE_FUNCTION_RETVAL |
					    SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, on_enter,
						       on_leave, NULL);
}

#endif
#endif
