/*
 * What a signal does, as the kernel has it.
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
