/*
 * The inquiries of slow hooks about arguments and results, and their results:
 * arguments_asked MASK WHAT, where MASK has letters of a (arguments), r (results) and f
 * (frames), and WHAT is table, values or nothing.  Each wrong result is one line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <shim/hooks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#pragma weak shim_get_function_leave3_info
#pragma weak shim_get_value_reason
#pragma weak shim_profiler_set_enter_leave_function_hooks2

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline))

static uint32_t mask;
static char what[16];
static int asked, right, missing;
static volatile int sink;

CALLED static int two(int a, int b)
{
	return sink = a + b;
}

CALLED static void none(void)
{
	sink++;
}

static inline __attribute__((always_inline)) int inlined(int a, int b)
{
	return sink = a * b;
}

/* Compilers turn this recursion into a loop. */
CALLED static void again(int n, int b, int c, int d, int e, int f, int g)
{
	sink += b + c + d + e + f + g;
	if (n > 0)
		again(n - 1, b + 1, c, d, e, f, g + 1);
}

/* --- the table --- */

static union {
	struct shim_argument_info info;
	unsigned char bytes[256];
} buffer;

#define UNTOUCHED 0x5a5a5a5au

/* Checks one inquiry: the result code, and the bytes written. */
QUIETLY static void expect(int line, enum shim_result got,
			   enum shim_result wanted)
{
	asked++;
	if (got != wanted)
		printf("line %d: %#x, not %#x\n", line, got, wanted);
}

QUIETLY static void expect_number(int line, uint64_t got, uint64_t wanted)
{
	if (got != wanted)
		printf("line %d: %#lx, not %#lx\n", line, (long)got,
		       (long)wanted);
}

#define EXPECT(got, wanted) expect(__LINE__, got, wanted)
#define NUMBER(got, wanted) expect_number(__LINE__, got, wanted)

QUIETLY static int is_untouched(void)
{
	for (size_t i = 0; i < sizeof(buffer); i++)
		if (buffer.bytes[i] != 0x5a)
			return 0;
	return 1;
}

QUIETLY static void ask_sizes(uintptr_t function, shim_elt_info info,
			      uint32_t needed)
{
	uint32_t sizes[] = { 1, needed - 1, 0 }, size;
	shim_frame_info frame = UNTOUCHED;

	for (int i = 0; i < 3; i++) {
		size = sizes[i];
		EXPECT(shim_get_function_enter3_info(function, info, &frame,
						     &size, &buffer.info),
		       SHIM_E_INSUFFICIENT_BUFFER);
		NUMBER(size, needed);
	}
	NUMBER(frame, UNTOUCHED);
	NUMBER(is_untouched(), 1);
	size = 100;
	EXPECT(shim_get_function_enter3_info(function, info, &frame, &size,
					     &buffer.info),
	       SHIM_OK);
	NUMBER(size, 100);
	NUMBER(buffer.info.ranges_count, (needed - 24) / 16);
	NUMBER(buffer.info.total_size, (needed - 24) / 16 * 4);
	NUMBER(frame != UNTOUCHED, (mask & SHIM_ENABLE_FRAME_INFO) != 0);
	size = needed;
	EXPECT(shim_get_function_enter3_info(function, info, &frame, &size,
					     &buffer.info),
	       SHIM_OK);
	NUMBER(size, needed);
}

QUIETLY static void ask_reasons(uintptr_t function, shim_elt_info info)
{
	uint32_t count = function == (uintptr_t)two ? 2 : 0;
	enum shim_unavailable reason = SHIM_UNAVAILABLE_INLINED;

	EXPECT(shim_get_value_reason(info, SHIM_RESULT, &reason),
	       mask & SHIM_ENABLE_FUNCTION_RETVAL ?
		       SHIM_E_INVALIDARG :
		       SHIM_E_INCONSISTENT_WITH_FLAGS);
	if (!(mask & SHIM_ENABLE_FUNCTION_ARGS)) {
		EXPECT(shim_get_value_reason(info, 0, &reason),
		       SHIM_E_INCONSISTENT_WITH_FLAGS);
		return;
	}
	EXPECT(shim_get_value_reason(0, 0, &reason), SHIM_E_INVALIDARG);
	EXPECT(shim_get_value_reason(info, 0, NULL), SHIM_E_INVALIDARG);
	NUMBER(reason, SHIM_UNAVAILABLE_INLINED);
	for (uint32_t i = 0; i <= count; i++) {
		EXPECT(shim_get_value_reason(info, i, &reason), SHIM_OK);
		NUMBER(reason, i < count ? SHIM_AVAILABLE :
					   SHIM_UNAVAILABLE_NONE);
	}
}

QUIETLY static void ask_enter(uintptr_t function, shim_elt_info info)
{
	shim_frame_info frame = UNTOUCHED;
	struct shim_argument_range range;
	uint32_t size = 5;

	memset(&buffer, 0x5a, sizeof(buffer));
	if (!(mask & (SHIM_ENABLE_FUNCTION_ARGS | SHIM_ENABLE_FRAME_INFO))) {
		EXPECT(shim_get_function_enter3_info(0, 0, NULL, NULL, NULL),
		       SHIM_E_INCONSISTENT_WITH_FLAGS);
		return;
	}
	EXPECT(shim_get_function_enter3_info(0, info, &frame, &size,
					     &buffer.info),
	       SHIM_E_INVALIDARG);
	EXPECT(shim_get_function_enter3_info(function, 0, &frame, &size,
					     &buffer.info),
	       SHIM_E_INVALIDARG);
	if (mask & SHIM_ENABLE_FRAME_INFO)
		EXPECT(shim_get_function_enter3_info(function, info, NULL,
						     &size, &buffer.info),
		       SHIM_E_INVALIDARG);
	if (mask & (SHIM_ENABLE_FUNCTION_RETVAL | SHIM_ENABLE_FRAME_INFO))
		EXPECT(shim_get_function_leave3_info(function, info, &frame,
						     &range),
		       SHIM_E_INVALIDARG);
	if (!(mask & SHIM_ENABLE_FUNCTION_ARGS)) {
		EXPECT(shim_get_function_enter3_info(function, info, &frame,
						     &size, NULL),
		       SHIM_OK);
		NUMBER(size, 5);
		return;
	}
	EXPECT(shim_get_function_enter3_info(function, info, &frame, NULL,
					     &buffer.info),
	       SHIM_E_INVALIDARG);
	EXPECT(shim_get_function_enter3_info(function, info, &frame, &size,
					     NULL),
	       SHIM_E_INVALIDARG);
	NUMBER(size, 5);
	NUMBER(frame, UNTOUCHED);
	size = 0;
	EXPECT(shim_get_function_enter3_info(function, info, &frame, &size,
					     NULL),
	       SHIM_E_INSUFFICIENT_BUFFER);
	NUMBER(size, function == (uintptr_t)two ? 56 : 24);
	ask_sizes(function, info, size);
	ask_reasons(function, info);
}

QUIETLY static void ask_leave(uintptr_t function, shim_elt_info info)
{
	shim_frame_info frame = 0;
	struct shim_argument_range range;

	if (!(mask & (SHIM_ENABLE_FUNCTION_RETVAL | SHIM_ENABLE_FRAME_INFO))) {
		EXPECT(shim_get_function_leave3_info(function, info, &frame,
						     &range),
		       SHIM_E_INCONSISTENT_WITH_FLAGS);
		return;
	}
	EXPECT(shim_get_function_leave3_info(function, info, NULL, &range),
	       SHIM_E_INVALIDARG);
	EXPECT(shim_get_function_leave3_info(function, 0, &frame, &range),
	       SHIM_E_INVALIDARG);
	if (mask & SHIM_ENABLE_FUNCTION_RETVAL) {
		EXPECT(shim_get_function_leave3_info(function, info, &frame,
						     NULL),
		       SHIM_E_INVALIDARG);
		NUMBER(frame, 0);
		EXPECT(shim_get_function_leave3_info(function, info, &frame,
						     &range),
		       SHIM_OK);
		NUMBER(frame != 0, (mask & SHIM_ENABLE_FRAME_INFO) != 0);
		NUMBER(range.length, function == (uintptr_t)two ? 4 : 0);
		NUMBER(range.start != 0, function == (uintptr_t)two);
		if (range.start)
			NUMBER(*(int *)range.start, 3);
		/* The function argument is ignored (row E-53). */
		EXPECT(shim_get_function_leave3_info(0, info, &frame, &range),
		       SHIM_OK);
	} else {
		EXPECT(shim_get_function_leave3_info(function, info, &frame,
						     NULL),
		       SHIM_OK);
	}
}

/* --- values where they are hard to find --- */

QUIETLY static void ask_values(uintptr_t function, shim_elt_info info)
{
	static int depth;
	int wanted[] = { 3 - depth, 2 + depth, 3, 4, 5, 6, 7 + depth };
	shim_frame_info frame;
	uint32_t size = sizeof(buffer);

	if (function != (uintptr_t)again) {	/* inlined(20, 30) */
		wanted[0] = 20;
		wanted[1] = 30;
	} else {
		depth++;
	}
	EXPECT(shim_get_function_enter3_info(function, info, &frame, &size,
					     &buffer.info),
	       SHIM_OK);
	if (function == (uintptr_t)inlined) {
		enum shim_unavailable reason = SHIM_AVAILABLE;

		shim_get_value_reason(info, 0, &reason);
		NUMBER(reason, SHIM_UNAVAILABLE_INLINED);
	}
	for (uint32_t i = 0; i < buffer.info.ranges_count; i++) {
		const struct shim_argument_range *range =
			(const void *)(buffer.bytes + 8 + 16 * i);

		if (range->start == 0)
			missing++;
		else if (memcmp((void *)range->start, &wanted[i], 4) == 0)
			right++;
		else
			printf("wrong: %u of depth %d: %d\n", i, depth,
			       *(int *)range->start);
	}
}

/* --- generation 2 gets values without asking --- */

QUIETLY static void on_enter2(shim_function function, uintptr_t client,
			      shim_frame_info frame,
			      struct shim_argument_info *arguments)
{
	(void)client;
	asked++;
	NUMBER(frame != 0, (mask & SHIM_ENABLE_FRAME_INFO) != 0);
	NUMBER(arguments != NULL, (mask & SHIM_ENABLE_FUNCTION_ARGS) != 0);
	if (!arguments)
		return;
	NUMBER(arguments->ranges_count, function == (uintptr_t)two ? 2 : 0);
	for (uint32_t i = 0; i < arguments->ranges_count; i++) {
		NUMBER(arguments->ranges[i].length, 4);
		NUMBER(*(int *)arguments->ranges[i].start, i + 1);
		right++;
	}
}

/* --- --- */

QUIETLY static void on_enter(union shim_function_or_client function,
			     shim_elt_info info)
{
	if (strcmp(what, "table") == 0)
		ask_enter(function.function, info);
	else if (strcmp(what, "values") == 0)
		ask_values(function.function, info);
	else
		asked++;
}

QUIETLY static void on_leave(union shim_function_or_client function,
			     shim_elt_info info)
{
	if (strcmp(what, "table") == 0)
		ask_leave(function.function, info);
}

QUIETLY __attribute__((constructor)) static void start(void)
{
	static char arguments[4096];
	int file = open("/proc/self/cmdline", O_RDONLY);
	const char *at = arguments;
	struct shim_profiler_handle *handle;

	if (read(file, arguments, sizeof(arguments) - 1) <= 0 ||
	    !shim_profiler_create)
		abort();
	close(file);
	at += strlen(at) + 1;
	mask = SHIM_MONITOR_ENTERLEAVE;
	mask |= strchr(at, 'a') ? SHIM_ENABLE_FUNCTION_ARGS : 0;
	mask |= strchr(at, 'r') ? SHIM_ENABLE_FUNCTION_RETVAL : 0;
	mask |= strchr(at, 'f') ? SHIM_ENABLE_FRAME_INFO : 0;
	strncpy(what, at + strlen(at) + 1, sizeof(what) - 1);
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, mask);
	if (strcmp(what, "elt2") == 0)
		shim_profiler_set_enter_leave_function_hooks2(handle, on_enter2, NULL,
						     NULL);
	else
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, on_enter, on_leave, NULL);
}

QUIETLY static int is_mapped(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	int found = 0;

	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, name) != NULL;
	fclose(maps);
	return found;
}

QUIETLY int main(void)
{
	if (strcmp(what, "values") == 0) {
		again(3, 2, 3, 4, 5, 6, 7);
		inlined(20, 30);
	} else {
		two(1, 2);
		none();
	}
	printf("asked %d, right %d, missing %d, read %d\n", asked, right,
	       missing, is_mapped("libshim-debuginfo"));
	return 0;
}
