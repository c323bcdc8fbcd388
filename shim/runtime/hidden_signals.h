/*
 * Signals that are ours, and what the program believes of them: the trap's (coverage/sigtrap.h),
 * that of holes (hole.h) and the sampler's (sample.h).  No thread may have them blocked.  A thread that blocks
 * all signals has all others blocked, and is told that these are, too.
 */
#ifndef SHIM_HIDDEN_SIGNALS_H
#define SHIM_HIDDEN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

static inline uint64_t hidden_bit(int signal)
{
	return 1ull << (signal - 1);
}

/* A mask as the kernel keeps it. */
static inline uint64_t hidden_as_kept(uint64_t mask)
{
	return mask & ~(hidden_bit(SIGKILL) | hidden_bit(SIGSTOP));
}

/* As a mask, like all sets here; 0: none, and nothing below need be called. */
uint64_t hidden_signals(void);
/* @signal is one of ours from now on; as those of runtime/kept_signals.h are. */
void hidden_take(int signal);

/* Those of them that the calling thread has blocked, as far as it knows.  One that is
 * unblocked and was sent meanwhile may come at once. */
uint64_t hidden_blocked(void);
void hidden_block(uint64_t signals);

/* Whether @mask is ours: libc lets no program block the signals that are its own. */
bool hidden_is_quiet(uint64_t mask);

/* The calling thread has got one that it has blocked. */
void hidden_pend(int signal);
uint64_t hidden_pending(void);

/* The calling thread begins, whose creator had @blocked; or takes part from now on.
 * What the kernel has blocked for it is unblocked.  0 or -errno: it is still. */
int hidden_thread_begins(uint64_t blocked);

/* Handlers of @signal are to run with these blocked; those from before. */
uint64_t hidden_mask_handler(int signal, uint64_t blocked);
uint64_t hidden_masks_handler(int signal);

/* A jmp_buf is filled in, with the mask; it is jumped to, which libc does with the
 * kernel's mask, where ours are not. */
void hidden_jump_saved(void *buffer);
void hidden_jump_taken(const void *buffer);

/* The calling thread makes a child that becomes another program, which is to find
 * them as the program has left them; and it has. */
void hidden_spawn_begins(void);
void hidden_spawn_ends(void);

/* The calling thread becomes another program, which finds them blocked as it should;
 * it could not. */
void hidden_exec_begins(void);
void hidden_exec_failed(void);

#endif
