/*
 * The action of a signal, in the kernel's layout.
 */
#ifndef SHIM_SYS_ACTION_H
#define SHIM_SYS_ACTION_H

#include <stdint.h>

struct sys_action {
	void *handler;
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

#endif
