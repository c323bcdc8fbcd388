/*
 * Topics: a room notifies the rooms above it of an event, without naming these rooms.
 *
 * A header declares the topic and its arguments:
 *
 *     TOPIC(thread_came, struct thread *thread);
 *
 * A source file of a room above subscribes a function, at file scope:
 *
 *     SUBSCRIBE(thread_came, start_timer);
 *
 * NOTIFY(thread_came, thread) calls all subscribers, those of lower rooms first.  The
 * linker makes the list, so every subscription exists before the first event.
 */
#ifndef SHIM_SUBSCRIBE_H
#define SHIM_SUBSCRIBE_H

#define TOPIC(topic, ...) \
	typedef void topic##_subscriber(__VA_ARGS__); \
	extern topic##_subscriber *const __start_shim_##topic[] \
		__attribute__((weak, visibility("hidden"))); \
	extern topic##_subscriber *const __stop_shim_##topic[] \
		__attribute__((weak, visibility("hidden")))

#define SUBSCRIBE(topic, function) \
	static topic##_subscriber *const topic##_##function \
		__attribute__((section("shim_" #topic), used)) = function

/* Sanitizers leave gaps of zeros between the entries, and would report a read of a gap. */
__attribute__((no_sanitize_address, unused)) static inline const void *
subscriber_at(const void *place)
{
	return *(const void *const *)place;
}

#define NOTIFY(topic, ...) \
	do { \
		for (topic##_subscriber *const *at_ = __start_shim_##topic; \
		     at_ < __stop_shim_##topic; at_++) { \
			topic##_subscriber *to_ = (topic##_subscriber *) \
				subscriber_at(at_); \
			if (to_) \
				to_(__VA_ARGS__); \
		} \
	} while (0)

#endif
