/* Decides whether a function of libc may be called on a thread where it is stopped. */
#ifndef PROCESS_SAFE_H
#define PROCESS_SAFE_H

#include <stdbool.h>
#include <stdint.h>

#include "process/remote.h"
#include "process/space.h"
#include "process/unwind.h"

struct safe {
	struct space *space;
	struct unwinder *unwinder;
	uint64_t *frames;      /* UNWIND_DEPTH_MAX */
	uint64_t libc;	       /* where it is mapped */
	bool has_other_malloc; /* the program has an allocator of its own */
};

/*
 * safe_reason - why the stopped thread is not at a safe place
 *
 * A thread is safe if it holds no lock that dlopen or the start of shim needs: those of
 * the allocator, of the dynamic linker, and of exit handlers.  Returns NULL, or a reason
 * that completes "a thread is ...".
 */
const char *safe_reason(struct safe *safe, const struct remote *remote);

#endif
