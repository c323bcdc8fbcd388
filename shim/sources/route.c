/*
 * The stubs that marks call.  The code near an image is never written again; the words that
 * it jumps through are in the page behind it.
 */
#include "sources/route.h"

#include "dispatch/near.h"
#include "os/sys.h"
#include "runtime/state.h"
#include "sources/returns.h"

#include <shim/builtin.h>
#include <shim/banned.h>

#define PAGE	  4096u
#define SIZE	  ((size_t)VENEERS_SIZE + PAGE)
#define PARTS_MAX 64

#define HIDDEN __attribute__((visibility("hidden")))

/* arch/.../sources.S */
void sources_nothing(void);
void shim_sled_entry0(void);
void shim_sled_entry4(void);
void sources_sled_tailcall(void);
void sources_sled_condition(void);
void sources_direct_enter(void);
void shim_sled_leave(void);
void sources_direct_tailcall(void);
void sources_direct_condition(void);
void sources_plan_enter(void);
void sources_plan_leave(void);
void sources_plan_tailcall(void);
void sources_choose_enter(void);
void sources_choose_leave(void);
void sources_choose_tailcall(void);

/* For sources.S: the hooks of the only profiler; what chooses them; the vector registers to
 * keep. */
HIDDEN shim_frame_hook sources_hooks[MARK_EVENTS];
HIDDEN plan_choice *sources_choices[MARK_EVENTS];
HIDDEN uint32_t sources_vector_size;

typedef void (*stub)(void);

/* For sources.S: current[PLAN_ENTER] and current[PLAN_TAILCALL], and one of the latter's kind
 * that keeps the flags. */
HIDDEN stub sources_enter = sources_nothing;
/* current[VENEER_ENTRY], for each depth. */
HIDDEN stub sources_entries[SLED_DEPTHS] = { shim_sled_entry0,
					     shim_sled_entry4 };
HIDDEN stub sources_tailcall = sources_nothing;
HIDDEN stub sources_condition = sources_nothing;

static const stub nothing[MARK_EVENTS] = { sources_nothing, sources_nothing,
					   sources_nothing };
static const stub direct[MARK_EVENTS] = { sources_direct_enter, shim_sled_leave,
					  sources_direct_tailcall };
static const stub planned[MARK_EVENTS] = { sources_plan_enter,
					   sources_plan_leave,
					   sources_plan_tailcall };
static const stub choosing[MARK_EVENTS] = { sources_choose_enter,
					    sources_choose_leave,
					    sources_choose_tailcall };

/* What the code near images jumps to for each event, and for other sleds. */
static stub current[VENEER_SLOTS] = {
	[PLAN_ENTER] = sources_nothing,
	[PLAN_LEAVE] = sources_nothing,
	[PLAN_TAILCALL] = sources_nothing,
	[VENEER_ENTRY] = shim_sled_entry0,
	[VENEER_ENTRY + 1] = shim_sled_entry4,
	[VENEER_TAILCALL] = sources_sled_tailcall,
	[VENEER_CONDITION] = sources_sled_condition,
};
/* What thunks jump to. */
static stub current_entry;
static uintptr_t parts[PARTS_MAX];
static unsigned part_count;

static stub *slots_of(uintptr_t part)
{
	return (stub *)(part + VENEERS_SIZE);
}

/* The leave hook comes first, as in hook_table_point. */
static void fill_slots(uintptr_t part)
{
	static const uint8_t order[VENEER_SLOTS] = {
		PLAN_TAILCALL,	 PLAN_LEAVE,	   PLAN_ENTER,
		VENEER_ENTRY,	 VENEER_ENTRY + 1, VENEER_TAILCALL,
		VENEER_CONDITION
	};

	for (unsigned i = 0; i < VENEER_SLOTS; i++)
		__atomic_store_n(&slots_of(part)[order[i]], current[order[i]],
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

static void set_choices(const struct plan_route *route)
{
	plan_choice *const choices[MARK_EVENTS] = { route->chooses_enter,
						    route->chooses_leave,
						    route->chooses_leave };

	for (unsigned event = MARK_EVENTS; event-- > 0;)
		__atomic_store_n(&sources_choices[event], choices[event],
				 __ATOMIC_RELEASE);
}

static void choose_stubs(const struct plan_route *route)
{
	const stub *stubs = !route->is_on	 ? nothing :
			    route->enter	 ? direct :
			    route->chooses_enter ? choosing :
						   planned;

	for (unsigned event = 0; event < MARK_EVENTS; event++)
		current[event] = stubs[event];
	current[VENEER_ENTRY] = shim_sled_entry0;
	current[VENEER_ENTRY + 1] = shim_sled_entry4;
	current_entry = returns_entry_kept(route);
	if (!route->is_on || !route->marks)
		return;
	current[PLAN_LEAVE] = route->marks->sled_leave;
	for (unsigned i = 0; i < SLED_DEPTHS; i++)
		current[VENEER_ENTRY + i] = route->marks->sled_entry[i];
}

void route_set(const struct plan_route *route)
{
	ASSERT_LOCKED();
	if (sources_vector_size == 0)
		sources_vector_size = mark_vector_size();
	/* Hooks stay set: a thread may be in a stub that calls them next. */
	if (route->enter)
		set_hooks(route);
	if (route->chooses_enter)
		set_choices(route);
	choose_stubs(route);
	returns_route(route);
	for (unsigned i = 0; i < SLED_DEPTHS; i++)
		__atomic_store_n(&sources_entries[i], current[VENEER_ENTRY + i],
				 __ATOMIC_RELEASE);
	__atomic_store_n(&sources_tailcall, current[PLAN_TAILCALL],
			 __ATOMIC_RELEASE);
	__atomic_store_n(&sources_condition,
			 current[PLAN_TAILCALL] == sources_direct_tailcall ?
				 sources_direct_condition :
				 current[PLAN_TAILCALL],
			 __ATOMIC_RELEASE);
	__atomic_store_n(&sources_enter, current[PLAN_ENTER], __ATOMIC_RELEASE);
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
	veneers_put((unsigned char *)at, slots_of(at));
	fill_slots(at);
	if (sys_make_code((void *)at, VENEERS_SIZE) < 0) {
		sys_unmap((void *)at, SIZE);
		return 0;
	}
	parts[part_count] = at;
	__atomic_store_n(&part_count, part_count + 1, __ATOMIC_RELEASE);
	return at;
}

uintptr_t route_part(uintptr_t address)
{
	unsigned count = __atomic_load_n(&part_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count; i++)
		if (address - parts[i] < VENEERS_SIZE)
			return parts[i];
	return 0;
}

bool route_is_used(void)
{
	return __atomic_load_n(&part_count, __ATOMIC_ACQUIRE) > 0;
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
