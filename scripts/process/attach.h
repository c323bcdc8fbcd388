/* profrun attach, profrun detach: shim comes into a running process, and stops there. */
#ifndef PROCESS_ATTACH_H
#define PROCESS_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

struct attach_options {
	const char *library; /* libshim.so.0 */
	const char *output;  /* NULL: profrun.NAME.PID */
	const char *
		profile; /* items with semicolons between them; NULL: calltree */
	const char *filter;   /* NULL: none */
	const char *libcalls; /* NULL: none; after a detach: those before */
	bool has_control;
	bool is_forced; /* also with a system call filter */
	bool is_quiet;
	uint64_t wait_ns; /* the longest wait for locks of the process */
};

#define ATTACH_WAIT_NS 30000000000u

/* Both return the exit status, and die with a reason if they are refused.  attach_begin
 * stores the recording's directory in *@directory. */
int attach_begin(const struct attach_options *options, int pid,
		 const char **directory);
int attach_end(int pid, bool is_quiet, uint64_t wait_ns);

#endif
