/* profrun stack: prints the stacks of all threads of a process or of a core file. */
#ifndef PROCESS_STACK_H
#define PROCESS_STACK_H

#include <stdbool.h>
#include <stdint.h>

struct stack_options {
	const char *output; /* NULL: stdout */
	double every_ns;    /* 0: once */
	uint64_t count; /* of rounds; 0: until the process ends, or Ctrl-C */
	bool is_folded;
	bool is_json;
	bool only_running; /* threads that have, or wait for, a processor */
};

/* Both return the exit status. */
int stack_process(const struct stack_options *options, int pid);
int stack_core(const struct stack_options *options, const char *path);

#endif
