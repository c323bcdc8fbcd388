/*
 * The handler of SIGTRAP: the test is the coverage, the program's handler and the sampler.
 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "not_called.h"
#include "../../shim/coverage/sigtrap.c"

NOT_CALLED(hidden_blocked);
NOT_CALLED(hidden_is_quiet);
NOT_CALLED(hidden_pending);
NOT_CALLED(hidden_thread_begins);
NOT_CALLED(kept_start);
NOT_CALLED(kept_stop);
NOT_CALLED(lookup_was_attached);
NOT_CALLED(state_call_locked);
NOT_CALLED(sys_block_signal);
NOT_CALLED(sys_signal_action);
NOT_CALLED(sys_signal_thread);
NOT_CALLED(sys_unblock_signals);

static unsigned sampled, sent, raised;
static enum sigtrap_owner owner;
static uintptr_t asked;

void sample_stack_after(ucontext_t *context)
{
	(void)context;
	cr_expect(zero(u32, sent + raised));
	cr_expect(zero(u64, asked));
	sampled++;
}

void kept_take_sent(int signal, siginfo_t *info, ucontext_t *context)
{
	(void)signal, (void)info, (void)context;
	sent++;
}

void kept_take_raised(int signal, siginfo_t *info, ucontext_t *context,
		      bool again)
{
	(void)signal, (void)info, (void)context, (void)again;
	raised++;
}

static void take_trap(uintptr_t address, ucontext_t *context,
		      enum sigtrap_owner *whose)
{
	(void)context;
	asked = address;
	*whose = owner;
}

SUBSCRIBE(sigtrap_taken, take_trap);

#define AFTER (0x1000 + ARCH_TRAP_SIZE)

static ucontext_t context;

static void trap(int code)
{
	siginfo_t info = { .si_code = code };

	ARCH_CONTEXT_GO_TO(&context, AFTER);
	handle_sigtrap(SIGTRAP, &info, &context);
	cr_expect(eq(u32, sampled, 1));
}

static bool has_moved(void)
{
	return ARCH_CONTEXT_IP(&context) != AFTER;
}

/* After the handler the thread may go on on a stack that samples overflow. */
Test(sigtrap, a_trap_of_the_coverage_stays_there)
{
	owner = TRAP_OURS;
	trap(SI_KERNEL);
	cr_expect(eq(u64, asked, 0x1000));
	cr_expect(zero(u32, sent + raised));
	cr_expect(not(has_moved()));
}

Test(sigtrap, a_signal_that_was_sent_is_the_programs)
{
	owner = TRAP_OURS;
	trap(SI_TKILL);
	cr_expect(zero(u64, asked));
	cr_expect(eq(u32, sent, 1));
	cr_expect(zero(u32, raised));
}

Test(sigtrap, a_trap_of_the_program_is_the_programs)
{
	owner = TRAP_NOT_OURS;
	trap(SI_KERNEL);
	cr_expect(eq(u32, raised, 1));
	cr_expect(zero(u32, sent));
}

static void expect_programs(int code)
{
	owner = TRAP_OURS;
	trap(code);
	cr_expect(zero(u64, asked));
	cr_expect(eq(u32, raised, 1));
	cr_expect(not(has_moved()));
}

Test(sigtrap, a_step_of_the_program_is_no_trap)
{
	expect_programs(TRAP_TRACE);
}

Test(sigtrap, a_watchpoint_of_the_program_is_no_trap)
{
	expect_programs(TRAP_HWBKPT);
}

Test(sigtrap, a_trap_that_cannot_be_removed_comes_again_with_its_signal_blocked)
{
	owner = TRAP_STAYS;
	trap(SI_KERNEL);
	cr_expect(zero(u32, sent + raised));
	cr_expect(eq(u64, ARCH_CONTEXT_IP(&context), 0x1000));
	cr_expect(sigismember(&context.uc_sigmask, SIGTRAP));
}
