/*
 * The code near images that marks call, and the words that it jumps through.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "../../shim/sources/route.c"

/* --- memory near images: the first page of each is another image's address --- */

#define PLACES (PARTS_MAX + 2)

static unsigned char memory[PLACES][SIZE] __attribute__((aligned(4096)));
static unsigned mapped, unmapped, made_code;
static enum { NONE, MAP, FAR, OVER, CODE } failing;

static struct source_image image_at(unsigned place)
{
	uintptr_t start = (uintptr_t)memory[place];

	return (struct source_image){ .start = start, .end = start + 1 };
}

uintptr_t near_map(uintptr_t start, size_t size)
{
	cr_assert(eq(sz, size, sizeof(memory[0])));
	if (failing == MAP)
		return 0;
	mapped++;
	return start;
}

bool near_reaches(uintptr_t part, size_t size, uintptr_t start, uintptr_t end)
{
	cr_assert(eq(sz, size, sizeof(memory[0])));
	cr_assert(eq(u64, end, start + 1));
	return part == start && failing != FAR;
}

int sys_map_over(void *at, size_t size)
{
	(void)at, (void)size;
	return failing == OVER ? -ENOMEM : 0;
}

int sys_make_code(void *at, size_t size)
{
	(void)at;
	cr_assert(eq(sz, size, VENEERS_SIZE));
	made_code++;
	return failing == CODE ? -EACCES : 0;
}

int sys_unmap(void *at, size_t size)
{
	(void)at;
	cr_assert(eq(sz, size, sizeof(memory[0])));
	unmapped++;
	return 0;
}

void veneers_put(unsigned char *code, const void *slots)
{
	*(const void **)(void *)code = slots;
}

uint32_t mark_vector_size(void)
{
	return 64;
}

static void entry(void)
{
}

void (*returns_entry_kept(const struct plan_route *route))(void)
{
	return route->is_on ? entry : sources_nothing;
}

void returns_route(const struct plan_route *route)
{
	(void)route;
}

#define STUB(name) \
	void name(void); \
	void name(void) \
	{ \
	}

STUB(sources_nothing)
STUB(shim_sled_entry0)
STUB(shim_sled_entry4)
STUB(sources_sled_tailcall)
STUB(sources_sled_condition)
STUB(sources_direct_condition)
STUB(sources_direct_enter)
STUB(shim_sled_leave)
STUB(sources_direct_tailcall)
STUB(sources_plan_enter)
STUB(sources_plan_leave)
STUB(sources_plan_tailcall)
STUB(sources_choose_enter)
STUB(sources_choose_leave)
STUB(sources_choose_tailcall)
STUB(hook_entered)
STUB(hook_entered_late)
STUB(hook_left)

/* --- the tests --- */

/* The slots of @part, and what sleds at entries reach in two steps, or @marks. */
static void check_part(uintptr_t part, const struct shim_mark_hooks *marks,
		       stub enter, stub leave, stub tailcall, stub other)
{
	const stub wanted[VENEER_SLOTS] = {
		enter,
		leave,
		tailcall,
		marks ? marks->sled_entry[0] : shim_sled_entry0,
		marks ? marks->sled_entry[1] : shim_sled_entry4,
		sources_sled_tailcall,
		sources_sled_condition,
	};
	stub *const *slots = (void *)part;

	cr_assert(ne(u64, part, 0));
	for (unsigned i = 0; i < VENEER_SLOTS; i++)
		cr_expect(eq(int, (*slots)[i] == wanted[i], 1), "slot %u", i);
	cr_expect(eq(int, sources_enter == enter, 1));
	cr_expect(eq(int, sources_tailcall == tailcall, 1));
	cr_expect(eq(int,
		     sources_condition == (tailcall == sources_direct_tailcall ?
						   sources_direct_condition :
						   tailcall),
		     1));
	cr_expect(eq(u64, route_entry(), (uintptr_t)other));
}

Test(route, images_have_the_page_that_is_near)
{
	const struct source_image one = image_at(0), other = image_at(1);
	const struct plan_route off = { .is_on = false };
	uintptr_t part;

	route_set(&off);
	part = route_near(&one);
	check_part(part, NULL, sources_nothing, sources_nothing,
		   sources_nothing, sources_nothing);
	cr_expect(eq(u64, route_near(&one), part));
	cr_expect(eq(u32, mapped, 1));
	cr_expect(ne(u64, route_near(&other), part));
	cr_expect(eq(u32, mapped, 2));
	cr_expect(eq(u64, route_near(&one), part));
	cr_expect(eq(u32, made_code, 2));
	cr_expect(zero(u32, unmapped));
}

Test(route, there_are_at_most_64_pages)
{
	struct source_image image;

	for (unsigned i = 0; i < PARTS_MAX; i++) {
		image = image_at(i);
		cr_assert(ne(u64, route_near(&image), 0), "page %u", i);
	}
	for (unsigned i = PARTS_MAX; i < PLACES; i++) {
		image = image_at(i);
		cr_expect(zero(u64, route_near(&image)), "page %u", i);
	}
	cr_expect(eq(u32, mapped - unmapped, PARTS_MAX));
	for (unsigned i = 0; i < PARTS_MAX; i++) {
		image = image_at(i);
		cr_assert(ne(u64, route_near(&image), 0), "page %u", i);
	}
	cr_expect(eq(u32, mapped - unmapped, PARTS_MAX));
}

Test(route, a_page_that_fails_leaves_nothing_mapped)
{
	const struct source_image image = image_at(0);

	for (failing = MAP; failing <= CODE; failing++) {
		cr_expect(zero(u64, route_near(&image)), "%d", (int)failing);
		cr_expect(eq(u32, mapped, unmapped), "%d", (int)failing);
	}
	failing = NONE;
	cr_expect(ne(u64, route_near(&image), 0));
	cr_expect(eq(u32, mapped, unmapped + 1));
}

static void hook(shim_function function, const void *site, uintptr_t sp)
{
	(void)function, (void)site, (void)sp;
}

static bool choice(shim_function function, const void *site, uintptr_t sp)
{
	(void)function, (void)site, (void)sp;
	return true;
}

Test(route, pages_lead_to_the_stubs_of_the_last_route)
{
	const struct shim_mark_hooks marks = {
		.sled_entry = { hook_entered, hook_entered_late },
		.sled_leave = hook_left
	};
	const struct source_image image = image_at(0);
	uintptr_t part = route_near(&image);
	struct plan_route route = { .is_on = true };

	route_set(&route);
	check_part(part, NULL, sources_plan_enter, sources_plan_leave,
		   sources_plan_tailcall, entry);
	cr_expect(eq(u32, sources_vector_size, 64));
	route.chooses_enter = route.chooses_leave = choice;
	route_set(&route);
	check_part(part, NULL, sources_choose_enter, sources_choose_leave,
		   sources_choose_tailcall, entry);
	for (unsigned event = 0; event < MARK_EVENTS; event++)
		cr_expect(eq(int, sources_choices[event] == choice, 1));
	route.chooses_enter = route.chooses_leave = NULL;
	route.enter = route.leave = hook;
	route_set(&route);
	check_part(part, NULL, sources_direct_enter, shim_sled_leave,
		   sources_direct_tailcall, entry);
	for (unsigned event = 0; event < MARK_EVENTS; event++)
		cr_expect(eq(int, sources_hooks[event] == hook, 1));
	route.marks = &marks;
	route_set(&route);
	check_part(part, &marks, sources_direct_enter, hook_left,
		   sources_direct_tailcall, entry);
	/* A thread may be in a stub that calls the hooks next. */
	route = (struct plan_route){ .is_on = false };
	route_set(&route);
	check_part(part, NULL, sources_nothing, sources_nothing,
		   sources_nothing, sources_nothing);
	for (unsigned event = 0; event < MARK_EVENTS; event++)
		cr_expect(eq(int, sources_hooks[event] == hook, 1));
}
