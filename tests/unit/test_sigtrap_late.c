/*
 * SIGTRAP in a program that runs already.  The test is its threads and its handlers.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "../../shim/coverage/sigtrap_late.c"

#define TASKS 3

static bool is_on, cannot_start;
static uint64_t blocked[TASKS];
static bool has_ended[TASKS];
static unsigned sleeps, unblocked_after;
static int tasks_error;

/* Handlers: of the program, of shim, and none. */
static struct sys_action actions[SIGNALS + 1];
static uint64_t hidden[SIGNALS + 1];

bool sigtrap_is_on(void)
{
	return is_on;
}

bool sigtrap_start(void)
{
	is_on = !cannot_start;
	return is_on;
}

bool sigtrap_stop(void)
{
	is_on = false;
	return true;
}

bool sigtrap_install_again(void)
{
	return sigtrap_start();
}

void sys_sleep_ms(unsigned ms)
{
	(void)ms;
	if (++sleeps == unblocked_after)
		blocked[1] = 0;
}

int tasks_blocked(uint32_t tid, uint64_t *signals)
{
	*signals = blocked[tid - 1];
	return has_ended[tid - 1] ? -ESRCH : 0;
}

int tasks_each(bool (*each)(uint32_t tid, void *argument), void *argument)
{
	for (uint32_t tid = 1; tid <= TASKS && tasks_error == 0; tid++)
		if (!each(tid, argument))
			return 1;
	return tasks_error;
}

bool thread_is_own(uint32_t tid)
{
	return tid == TASKS;
}

bool image_is_ours(uintptr_t address)
{
	return address == 0x2000;
}

int sys_signal_action(int signal, const struct sys_action *action,
		      struct sys_action *before)
{
	if (before)
		*before = actions[signal];
	if (action)
		actions[signal] = *action;
	return 0;
}

uint64_t hidden_masks_handler(int signal)
{
	return hidden[signal];
}

uint64_t hidden_mask_handler(int signal, uint64_t of_handler)
{
	uint64_t before = hidden[signal];

	hidden[signal] = of_handler;
	return before;
}

static unsigned lines, errors;

void log_line(const char *format, ...)
{
	(void)format;
	lines++;
}

void log_error(const char *format, const char *what, int error)
{
	(void)format, (void)what, (void)error;
	errors++;
}

void text_init(struct text *text, char *memory, size_t size)
{
	(void)text, (void)memory, (void)size;
}

void text_add_number(struct text *text, uint64_t number)
{
	(void)text, (void)number;
}

/* --- the tests --- */

Test(sigtrap_late, it_starts_if_no_thread_blocks_it)
{
	blocked[2] = TRAP_BIT; /* shim's own thread */
	cr_expect(sigtrap_start_late());
	cr_expect(is_on);
	cr_expect(sigtrap_start_late());
	cr_expect(zero(u32, sleeps));
}

Test(sigtrap_late, it_waits_for_a_thread_that_blocks_it_for_a_moment)
{
	blocked[1] = TRAP_BIT;
	unblocked_after = TRIES - 1;
	cr_expect(sigtrap_start_late());
	cr_expect(is_on);
	cr_expect(zero(u32, lines));
}

Test(sigtrap_late, a_thread_that_blocks_it_keeps_it_off)
{
	blocked[1] = ~0ull;
	cr_expect(not(sigtrap_start_late()));
	cr_expect(not(is_on));
	cr_expect(eq(u32, lines, 1));
	has_ended[1] = true;
	cr_expect(sigtrap_start_late());
}

Test(sigtrap_late, without_its_handler_or_the_threads_it_is_off)
{
	cannot_start = true;
	cr_expect(not(sigtrap_start_late()));
	cr_expect(not(sigtrap_start_again()));
	cannot_start = false;
	tasks_error = -EACCES;
	cr_expect(not(sigtrap_start_late()));
	cr_expect(not(is_on));
	cr_expect(eq(u32, errors, 1));
}

Test(sigtrap_late, handlers_of_the_program_do_not_block_it)
{
	actions[SIGINT].handler = actions[SIGUSR1].handler = (void *)0x1000;
	actions[SIGINT].mask = TRAP_BIT | 2;
	actions[SIGUSR1].mask = 2;
	actions[SIGPROF].handler = (void *)0x2000;
	actions[SIGPROF].mask = TRAP_BIT;
	actions[SIGHUP].handler = (void *)SIG_IGN;
	actions[SIGHUP].mask = TRAP_BIT;
	cr_expect(sigtrap_start_late());
	cr_expect(eq(u64, actions[SIGINT].mask, 2));
	/* The program still sees it in the mask. */
	cr_expect(eq(u64, hidden[SIGINT], TRAP_BIT));
	cr_expect(eq(u64, actions[SIGUSR1].mask, 2));
	cr_expect(zero(u64, hidden[SIGUSR1]));
	cr_expect(eq(u64, actions[SIGPROF].mask, TRAP_BIT));
	cr_expect(eq(u64, actions[SIGHUP].mask, TRAP_BIT));
}
