/*
 * Signals of shim, and the program's view of them: those of
 * runtime/kept_signals.h and that of the sampler (sample.h).  The kernel's mask
 * of a thread never has them.  If a thread blocks all signals, the kernel blocks all
 * others, and the thread sees these as blocked, too.
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

/* @mask as the kernel stores it. */
static inline uint64_t hidden_as_kept(uint64_t mask)
{
	return mask & ~(hidden_bit(SIGKILL) | hidden_bit(SIGSTOP));
}

/* The set of hidden signals, as a mask.  If it is 0, there is nothing to hide. */
uint64_t hidden_signals(void);
/* Adds @signal to the set; runtime/kept_signals.h adds its own. */
void hidden_take(int signal);

/* The hidden signals that the calling thread believes to be blocked.  A
 * signal that was sent while it was blocked may arrive as soon as it is
 * unblocked. */
uint64_t hidden_blocked(void);
void hidden_block(uint64_t signals);

/* Whether shim has set @mask: it has signals that libc lets no program block. */
bool hidden_is_quiet(uint64_t mask);

/* The calling thread got a hidden signal that it believes to be blocked. */
void hidden_pend(int signal);
uint64_t hidden_pending(void);

/* The calling thread begins, with the mask @blocked of its creator; or shim
 * sees it for the first time.  Unblocks the hidden signals in the kernel's
 * mask.  Returns 0, or -errno if they are still blocked. */
int hidden_thread_begins(uint64_t blocked);

/* Sets the hidden signals that handlers of @signal block; returns those before. */
uint64_t hidden_mask_handler(int signal, uint64_t blocked);
uint64_t hidden_masks_handler(int signal);

/* A jmp_buf with a mask was filled, or is jumped to.  libc stores the
 * kernel's mask, which lacks the hidden signals. */
void hidden_jump_saved(void *buffer);
void hidden_jump_taken(const void *buffer);

/* Around the creation of a child that executes another program: the child
 * inherits the hidden signals as the program has set them. */
void hidden_spawn_begins(void);
void hidden_spawn_ends(void);

/* Around execve: the new program inherits the hidden signals as the program
 * has blocked them; hidden_exec_failed undoes that. */
void hidden_exec_begins(void);
void hidden_exec_failed(void);

#endif
