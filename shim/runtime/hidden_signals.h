/*
 * Signals of shim, and the program's view of them: the signals of
 * runtime/kept_signals.h and the sampler's signal (sample.h).  The kernel's mask of a
 * thread never has them.  If a thread blocks all signals, the kernel blocks all except
 * these, and shim shows the thread a mask with all signals.
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

/* @mask without SIGKILL and SIGSTOP, as the kernel stores it. */
static inline uint64_t hidden_as_kept(uint64_t mask)
{
	return mask & ~(hidden_bit(SIGKILL) | hidden_bit(SIGSTOP));
}

/* The set of hidden signals, as a mask.  If it is 0, there is nothing to hide. */
uint64_t hidden_signals(void);
/* Adds @signal to the set; runtime/kept_signals.h adds its own. */
void hidden_take(int signal);

/* The hidden signals that the calling thread has blocked in its own view. */
uint64_t hidden_blocked(void);
/* Sets the hidden signals that the thread has blocked in its own view.  A signal that was
 * sent while it was blocked may arrive as soon as it is unblocked. */
void hidden_block(uint64_t signals);

/* Whether shim has set @mask: only shim blocks the signals that libc reserves. */
bool hidden_is_quiet(uint64_t mask);

/* The calling thread got a hidden signal that it has blocked in its own view. */
void hidden_pend(int signal);
/* The set of these signals. */
uint64_t hidden_pending(void);

/* The calling thread begins with the mask @blocked of its creator, or shim sees it for the
 * first time.  Unblocks the hidden signals in the kernel's mask.  Returns 0, or -errno if
 * they are still blocked. */
int hidden_thread_begins(uint64_t blocked);

/* Sets the hidden signals that handlers of @signal block, and returns the old set. */
uint64_t hidden_mask_handler(int signal, uint64_t blocked);
uint64_t hidden_masks_handler(int signal);

/* Stores the hidden signals that the program has blocked in a jmp_buf with a mask.
 * libc stores the kernel's mask, which lacks them.  Called before setjmp. */
void hidden_jump_saved(void *buffer);
/* Blocks the hidden signals that @buffer contains.  Called before longjmp. */
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
