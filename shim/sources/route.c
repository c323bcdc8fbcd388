/*
 * The stubs that marks call.  The code near an image is a page that is never written again,
 * with a jump for each event; the words that they jump through are in the page behind it.
 */
#include "sources/route.h"

#include "dispatch/near.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/returns.h"

#include <shim/builtin.h>
#include <shim/banned.h>

#define PAGE	  4096u
#define SIZE	  ((size_t)2 * PAGE)
#define PARTS_MAX 64

#define HIDDEN __attribute__((visibility("hidden")))

/* arch/.../sources.S */
void sources_nothing(void);
void shim_sled_enter(void);
void shim_sled_leave(void);
void sources_direct_tailcall(void);
void sources_plan_enter(void);
void sources_plan_leave(void);
void sources_plan_tailcall(void);

/* For sources.S: the hooks of the only profiler; the vector registers to keep. */
HIDDEN shim_frame_hook sources_hooks[MARK_EVENTS];
HIDDEN uint32_t sources_vector_size;

typedef void (*stub)(void);

static const stub nothing[MARK_EVENTS] = { sources_nothing, sources_nothing,
					   sources_nothing };
static const stub direct[MARK_EVENTS] = { shim_sled_enter, shim_sled_leave,
					  sources_direct_tailcall };
static const stub planned[MARK_EVENTS] = { sources_plan_enter,
					   sources_plan_leave,
					   sources_plan_tailcall };

/* What the code near images jumps to for each event. */
static stub current[MARK_EVENTS] = { sources_nothing, sources_nothing,
				     sources_nothing };
/* What thunks jump to. */
static stub current_entry;
static uintptr_t parts[PARTS_MAX];
static unsigned part_count;

static stub *slots_of(uintptr_t part)
{
	return (stub *)(part + PAGE);
}

/* The leave hook comes first, as in hook_table_point. */
static void fill_slots(uintptr_t part)
{
	for (unsigned slot = MARK_EVENTS; slot-- > 0;)
		__atomic_store_n(&slots_of(part)[slot], current[slot],
				 __ATOMIC_RELEASE);
}

static void set_hooks(const struct plan_route *route)
{
	const shim_frame_hook hooks[MARK_EVENTS] = { route->enter, route->leave,
						     route->leave };

	for (unsigned event = MARK_EVENTS; event-- > 0;)
		__atomic_store_n(&sources_hooks[event], hooks[event],
				 __ATOMIC_RELEASE);
}

static void choose_stubs(const struct plan_route *route)
{
	const stub *stubs = !route->is_on ? nothing :
			    route->enter  ? direct :
					    planned;

	for (unsigned event = 0; event < MARK_EVENTS; event++)
		current[event] = stubs[event];
	current_entry = returns_entry(route);
	if (route->is_on && route->marks) {
		current[PLAN_ENTER] = route->marks->sled_enter;
		current[PLAN_LEAVE] = route->marks->sled_leave;
	}
}

void route_set(const struct plan_route *route)
{
	ASSERT_LOCKED();
	if (sources_vector_size == 0)
		sources_vector_size = mark_vector_size();
	/* Hooks stay set: a thread may be in a stub that calls them next. */
	if (route->enter)
		set_hooks(route);
	choose_stubs(route);
	returns_route(route);
	for (unsigned i = 0; i < part_count; i++)
		fill_slots(parts[i]);
}

static uintptr_t make_part(const struct source_image *image)
{
	uintptr_t at = part_count < PARTS_MAX ? near_map(image->start, SIZE) :
						0;

	if (!at)
		return 0;
	/* Private: a fork child has other plans. */
	if (!near_reaches(at, SIZE, image->start, image->end) ||
	    sys_map_over((void *)at, SIZE) < 0) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	for (unsigned event = 0; event < MARK_EVENTS; event++)
		veneer_put((unsigned char *)at + event * VENEER_SIZE,
			   &slots_of(at)[event]);
	fill_slots(at);
	if (sys_make_code((void *)at, PAGE) < 0) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	parts[part_count++] = at;
	return at;
}

uintptr_t route_entry(void)
{
	return (uintptr_t)current_entry;
}

uintptr_t route_near(const struct source_image *image)
{
	ASSERT_LOCKED();
	for (unsigned i = 0; i < part_count; i++)
		if (near_reaches(parts[i], SIZE, image->start, image->end))
			return parts[i];
	return make_part(image);
}
