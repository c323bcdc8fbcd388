/*
 * Keeps shim's signals out of the kernel's signal masks, and stores for each thread
 * which of them the program has blocked.  So the program sees the masks that it has
 * set.
 */
#include "runtime/hidden_signals.h"

#include "os/sys.h"
#include "runtime/kept_signals.h"

#include <setjmp.h>

#include <shim/banned.h>

#define SIGNALS 64

static uint64_t ours;
static __thread uint64_t blocked, pending;

/* For each signal, the hidden signals that its handler blocks. */
static uint64_t masks[SIGNALS];

uint64_t hidden_signals(void)
{
	return __atomic_load_n(&ours, __ATOMIC_ACQUIRE) | kept_signals();
}

void hidden_take(int signal)
{
	__atomic_fetch_or(&ours, hidden_bit(signal), __ATOMIC_RELEASE);
}

uint64_t hidden_blocked(void)
{
	return blocked;
}

uint64_t hidden_pending(void)
{
	return pending;
}

void hidden_block(uint64_t signals)
{
	uint64_t come = pending & ~signals;

	blocked = signals;
	pending &= signals;
	/* A blocked SIGBUS is pending in the kernel (runtime/kept_signals.c). */
	if (come & hidden_bit(SIGBUS))
		sys_block_signal(SIGBUS, false);
	come &= ~hidden_bit(SIGBUS);
	for (; come != 0; come &= come - 1)
		sys_signal_thread(__builtin_ctzll(come) + 1);
}

void hidden_pend(int signal)
{
	pending |= hidden_bit(signal);
}

int hidden_thread_begins(uint64_t blocked_)
{
	uint64_t signals = hidden_signals(), before;
	int r;

	if (signals == 0)
		return 0;
	r = sys_unblock_signals(signals, &before);
	if (r < 0)
		return r;
	blocked |= (hidden_is_quiet(before) ? blocked_ : blocked_ | before) &
		   signals;
	return 0;
}

bool hidden_is_quiet(uint64_t mask)
{
	const uint64_t never = hidden_bit(SIGTRAP) | hidden_bit(SIGBUS) |
			       hidden_bit(SIGKILL) | hidden_bit(SIGSTOP);

	return (mask | never) == ~0ull;
}

uint64_t hidden_masks_handler(int signal)
{
	return signal >= 1 && signal <= SIGNALS ?
		       __atomic_load_n(&masks[signal - 1], __ATOMIC_RELAXED) :
		       0;
}

uint64_t hidden_mask_handler(int signal, uint64_t signals)
{
	return signal >= 1 && signal <= SIGNALS ?
		       __atomic_exchange_n(&masks[signal - 1], signals,
					   __ATOMIC_RELAXED) :
		       0;
}

/* Blocks SIGBUS alone.  The thread may wait for the child and run handlers meanwhile, so it
 * leaves the other hidden signals unblocked. */
void hidden_spawn_begins(void)
{
	kept_exec_begins();
	if (blocked & hidden_signals() & hidden_bit(SIGBUS))
		sys_block_signal(SIGBUS, true);
}

void hidden_spawn_ends(void)
{
	kept_exec_failed();
	if (blocked & hidden_signals() & ~pending & hidden_bit(SIGBUS))
		sys_block_signal(SIGBUS, false);
}

void hidden_exec_begins(void)
{
	for (uint64_t left = blocked & hidden_signals(); left; left &= left - 1)
		sys_block_signal(__builtin_ctzll(left) + 1, true);
}

void hidden_exec_failed(void)
{
	uint64_t before;

	if (blocked & hidden_signals())
		sys_unblock_signals(blocked & hidden_signals(), &before);
}

/*
 * libc's masks have room for 1,024 signals, of which the kernel uses the first 64.  shim
 * stores the hidden signals that the program has blocked in the last word of the buffer's
 * mask, and a mark in the word before.
 */
#define JUMP_MARK  0x736967736a6d7073ull
#define JUMP_WORDS (sizeof(((struct __jmp_buf_tag *)0)->__saved_mask) / 8)

static uint64_t *jump_word(struct __jmp_buf_tag *buffer, unsigned from_end)
{
	return (uint64_t *)&buffer->__saved_mask + JUMP_WORDS - from_end;
}

void hidden_jump_saved(void *buffer)
{
	if (hidden_signals() == 0)
		return;
	*jump_word(buffer, 1) = blocked;
	*jump_word(buffer, 2) = JUMP_MARK;
}

void hidden_jump_taken(const void *buffer)
{
	struct __jmp_buf_tag *tag = (struct __jmp_buf_tag *)buffer;

	if (tag->__mask_was_saved && *jump_word(tag, 2) == JUMP_MARK &&
	    hidden_signals() != 0)
		hidden_block(*jump_word(tag, 1) & hidden_signals());
}
