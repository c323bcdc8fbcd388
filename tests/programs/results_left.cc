/*
 * results_left [raw] - functions that are left, or seem to be, and return nothing
 * there: by an exception, by a tail call, and inlined into others or themselves.  For
 * each leave hook one line: the function, shim's answer, and the returned value.
 *
 * raw: leave hooks are called as the compiler calls them.
 */
#include <shim/hooks.h>
#include <shim/values.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_raw_leave_hooks
#pragma weak shim_get_function_leave3_info
#pragma weak shim_get_value_reason

#define QUIETLY __attribute__((no_instrument_function))
#define CALLED	__attribute__((noinline))

static volatile int sink;
static bool is_on;

struct Guard {
	int *at;
	QUIETLY ~Guard() { *at = sink; }
};

CALLED int raises(int n)
{
	int local = n;
	Guard guard = { &local };

	if (n > 2)
		throw n;
	return n + 100;
}

CALLED int passes(int n)
{
	int local = n;
	Guard guard = { &local };

	return raises(n) + 1000;
}

static inline __attribute__((always_inline)) int inlined(int n)
{
	return sink + n * 3;
}

CALLED int around(int n)
{
	return inlined(n) + 7;
}

/* Returns its own result in place of another function's. */
CALLED void around_nothing(int n)
{
	sink = inlined(n);
}

CALLED int recursive(int n)
{
	if (n < 2)
		return 1 + sink;
	return n * recursive(n - 1) + recursive(n - 2) % 3;
}

CALLED int target(int n)
{
	return n + 4000;
}

CALLED int tail(int n)
{
#ifdef __clang__
	[[clang::musttail]]
#endif
	return target(n + 1);
}

CALLED int either(int n)
{
#ifdef __clang__
	if (n == 1)
		[[clang::musttail]] return target(n);
#endif
	return n + 5;
}

static const struct {
	const char *name;
	uintptr_t function;
} functions[] = {
	{ "raises", (uintptr_t)raises }, { "passes", (uintptr_t)passes },
	{ "inlined", (uintptr_t)inlined }, { "around", (uintptr_t)around },
	{ "around_nothing", (uintptr_t)around_nothing },
	{ "recursive", (uintptr_t)recursive }, { "target", (uintptr_t)target },
	{ "tail", (uintptr_t)tail }, { "either", (uintptr_t)either },
};

QUIETLY static const char *why(shim_elt_info info)
{
	enum shim_unavailable reason = SHIM_AVAILABLE;

	shim_get_value_reason(info, SHIM_RESULT, &reason);
	switch (reason) {
	case SHIM_UNAVAILABLE_NONE: return "none";
	case SHIM_UNAVAILABLE_NOT_RETURNED: return "not-returned";
	case SHIM_UNAVAILABLE_INLINED: return "inlined";
	default: return "another";
	}
}

QUIETLY static void on_leave(union shim_function_or_client function,
			     shim_elt_info info)
{
	struct shim_argument_range range = { 1, 1 };
	shim_frame_info frame;
	int r;

	if (!is_on)
		return;
	r = shim_get_function_leave3_info(function.function, info, &frame,
					  &range);
	for (const auto &known : functions)
		if (known.function == function.function)
			printf("%s ", known.name);
	if (r != SHIM_OK)
		printf("%#x\n", r);
	else if (range.start)
		printf("%d\n", *(int *)range.start);
	else
		printf("-%u-%s\n", range.length, why(info));
}

QUIETLY static void on_enter(union shim_function_or_client, shim_elt_info)
{
}

QUIETLY __attribute__((constructor)) static void start(int count, char **, char **)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create)
		abort();
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FUNCTION_RETVAL |
					    SHIM_ENABLE_FRAME_INFO);
	if (count > 1)
		shim_profiler_set_raw_leave_hooks(handle);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, on_enter,
						       on_leave, NULL);
}

QUIETLY int main(void)
{
	is_on = true;
	for (int n = 1; n < 5; n++) {
		try {
			passes(n);
		} catch (int) {
		}
		around(n);
		around_nothing(n);
		tail(n);
		either(n);
	}
	sink = 0;
	recursive(7);
	is_on = false;
	return 0;
}
