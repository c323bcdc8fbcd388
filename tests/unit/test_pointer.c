/*
 * Thread pointers that the program moves, by a system that the test is.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../shim/edge/pointer.c"

static bool is_expected;
static uintptr_t pointer = 0x1000, refused;
static int paused;

long sys_pass_on(long number, long a, long b, long c, long d, long e, long f)
{
	(void)c, (void)d, (void)e, (void)f;
	cr_assert(eq(long, number, SYS_arch_prctl));
	if (a == ARCH_GET_FS) {
		*(uintptr_t *)b = pointer;
		return 0;
	}
	cr_assert(eq(long, a, ARCH_SET_FS));
	if ((uintptr_t)b == refused)
		return -EPERM;
	pointer = (uintptr_t)b;
	return 0;
}

void sys_expect_moved_pointer(void)
{
	is_expected = true;
}

void hooks_switch_pause(bool is_on)
{
	paused += is_on ? 1 : -1;
}

static unsigned logged;

void log_line(const char *format, ...)
{
	(void)format;
	logged++;
}

static void check_move(uintptr_t to, int wanted)
{
	cr_assert(zero(int, arch_prctl(ARCH_SET_FS, to)));
	cr_assert(eq(u64, pointer, to));
	cr_assert(eq(int, paused, wanted), "to %lx", to);
}

static void check_refused(uintptr_t to, int wanted)
{
	uintptr_t before = pointer;

	refused = to;
	errno = 0;
	cr_assert(eq(int, arch_prctl(ARCH_SET_FS, to), -1));
	cr_assert(eq(int, errno, EPERM));
	cr_assert(eq(u64, pointer, before));
	cr_assert(eq(int, paused, wanted));
}

Test(pointer, hooks_pause_until_the_pointer_is_back)
{
	check_move(0x1000, 0);
	cr_expect(not(is_expected), "nothing is moved");
	check_move(0x2000, 1);
	cr_expect(is_expected, "handlers look at the pointer from now on");
	check_move(0x2000, 1);
	check_move(0x3000, 1);
	check_move(0x1000, 0);
	check_move(0x3000, 1);
	check_move(0x1000, 0);
	cr_expect(eq(u32, logged, 1));
}

Test(pointer, a_move_that_the_system_refuses_pauses_nothing)
{
	for (unsigned i = 0; i < 2 * MOVED_MAX; i++)
		check_refused(0xf000, 0);
	check_move(0x2000, 1);
	check_refused(0x1000, 1);
	check_refused(0x3000, 1);
	refused = 0;
	check_move(0x1000, 0);
	check_move(0xf000, 1);
	check_move(0x1000, 0);
}

/* Each thread has its own pointer. */
Test(pointer, the_pointers_of_32_threads_may_be_moved_at_a_time)
{
	for (uintptr_t i = 0; i < MOVED_MAX; i++) {
		pointer = 0x100000 + i;
		check_move(0x200000 + i, (int)i + 1);
	}
	for (uintptr_t i = MOVED_MAX; i-- > 0;) {
		pointer = 0x200000 + i;
		check_move(0x100000 + i, (int)i);
	}
}

/* shim does not see the move back. */
Test(pointer, hooks_pause_for_good_if_there_are_more)
{
	for (uintptr_t i = 0; i <= MOVED_MAX; i++) {
		pointer = 0x100000 + i;
		check_move(0x200000 + i, (int)i + 1);
	}
	refused = 0x100000;
	cr_expect(eq(int, arch_prctl(ARCH_SET_FS, refused), -1));
	cr_expect(eq(int, paused, MOVED_MAX + 1));
	arch_prctl(ARCH_SET_FS, 0x100000 + MOVED_MAX);
	cr_expect(gt(int, paused, MOVED_MAX));
}

Test(pointer, other_requests_pass)
{
	uintptr_t now = 0;

	cr_expect(zero(int, arch_prctl(ARCH_GET_FS, (unsigned long)&now)));
	cr_expect(eq(u64, now, pointer));
	cr_expect(zero(u32, logged));
}
