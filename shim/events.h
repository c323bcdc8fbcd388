/*
 * The profilers there are, and how an event reaches them.
 */
#ifndef SHIM_EVENTS_H
#define SHIM_EVENTS_H

#include <shim/hooks.h>

#define EVENTS_HANDLES 8

struct shim_handle {
	struct shim_profiler *profiler;
	shim_function_hook enter, leave;
#define EVENT(name, contract, parameters) shim_##name##_callback name;
#include <shim/events.def>
#undef EVENT
};

extern struct shim_handle events_handles[EVENTS_HANDLES];
extern unsigned events_count;

/* Calls everybody's callback, newest profiler first. */
#define RAISE(name, ...)                                                       \
	do {                                                                   \
		unsigned i_ = __atomic_load_n(&events_count,                   \
					      __ATOMIC_ACQUIRE);               \
		while (i_-- > 0) {                                             \
			struct shim_handle *handle_ = &events_handles[i_];     \
			shim_##name##_callback callback_ = __atomic_load_n(    \
				&handle_->name, __ATOMIC_ACQUIRE);             \
			if (callback_)                                         \
				callback_(handle_->profiler, ##__VA_ARGS__);   \
		}                                                              \
	} while (0)

#endif
