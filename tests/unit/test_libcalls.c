/*
 * The calls of libraries that are recorded, in handmade images.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "not_called.h"
#include "../../shim/sources/libcalls.c"

NOT_CALLED(config);
NOT_CALLED(image_find);
NOT_CALLED(image_is_closing);
NOT_CALLED(image_is_ours);
NOT_CALLED(image_pin);
NOT_CALLED(image_unpin);
NOT_CALLED(libcall_is_known);
NOT_CALLED(libcall_put);
NOT_CALLED(libcall_slots_drop);
NOT_CALLED(libcall_slots_find);
NOT_CALLED(libcall_slots_read);
NOT_CALLED(log_error);
NOT_CALLED(log_line);
NOT_CALLED(returns_entry);
NOT_CALLED(sys_make_code);
NOT_CALLED(sys_map);
NOT_CALLED(sys_poke);
NOT_CALLED(sys_protect);
NOT_CALLED(sys_unmap);

static struct libcall calls[5] = {
	{ .is_on = true },  { .is_on = false }, { .is_on = true },
	{ .is_on = false }, { .is_on = false },
};

Test(libcalls, images_with_calls_and_their_calls_are_counted)
{
	struct call_sites_state state = { .sites = 10, .off = 1, .images = 1 };

	images[0].calls = calls;
	images[0].count = 3;
	images[1].is_unwritable = true; /* without a call that is recorded */
	images[2].calls = calls + 3;
	images[2].count = 2;
	images[2].is_unwritable = true;
	image_count = 3;
	count(&state);
	cr_expect(eq(u32, state.sites, 15));
	cr_expect(eq(u32, state.off, 4));
	cr_expect(eq(u32, state.images, 3));
	cr_expect(eq(u32, state.images_unwritable, 1));
}
