/* Calls of functions on the stopped thread: libc's, and those of <shim/attach.h>. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <shim/attach.h>

#include "base/messages.h"
#include "process/remote_symbols.h"
#include "process/steps.h"

_Noreturn void attach_call_failed(struct attach *attach,
				  enum remote_result result)
{
	int pid = (int)attach->target.pid;

	attach_release(attach);
	if (result == REMOTE_NO_ROOM && attach_is_same_program(attach))
		die("process %d (%s): the thread's stack has no room for the "
		    "call (try again)",
		    pid, attach->target.name);
	if (result == REMOTE_SLOW)
		die("process %d (%s): a thread waits for a lock that the "
		    "program holds, more than %.0f s.  It goes on alone; "
		    "then %s (--wait TIME for more)",
		    pid, attach->target.name, (double)attach->wait_ns * 1e-9,
		    attach->then);
	if (result == REMOTE_LATE)
		die("process %d (%s): profrun got no processor for a second, so "
		    "the thread went on (try again)",
		    pid, attach->target.name);
	die("process %d (%s) ended, or executed another program, while shim was "
	    "attached",
	    pid, attach->target.name);
}

static uint64_t make_call(struct attach *attach,
			  const struct remote_function *function)
{
	uint64_t result = 0;
	enum remote_result done = REMOTE_GONE;

	attach_share(attach);
	attach->remote.limit_ns = attach->then ? attach->wait_ns : 0;
	if (function->address)
		done = remote_call(&attach->remote, function, &result);
	if (done != REMOTE_DONE)
		attach_call_failed(attach, done);
	attach->then = NULL;
	return result;
}

static uint64_t call(struct attach *attach, const char *name, uint64_t first,
		     uint64_t second, uint64_t third, uint64_t fourth,
		     uint64_t fifth)
{
	const struct remote_function function = {
		.address = remote_symbol(&attach->remote, attach->libc.start,
					 name),
		.arguments = { first, second, third, fourth, fifth },
		.stack = attach->stack ? attach->stack + ATTACH_STACK_SIZE : 0,
	};

	return make_call(attach, &function);
}

void attach_finish(struct attach *attach)
{
	uint64_t stack = attach->stack;

	attach->stack = 0;
	if (stack)
		call(attach, "munmap", stack, attach->stack_size, 0, 0, 0);
	remote_write(&attach->remote, attach->errno_at, &attach->thread_errno,
		     sizeof(attach->thread_errno));
	attach_release(attach);
}

void attach_map_stack(struct attach *attach, size_t settings_size)
{
	uint64_t result;

	attach->errno_at = call(attach, "__errno_location", 0, 0, 0, 0, 0);
	remote_read(&attach->remote, attach->errno_at, &attach->thread_errno,
		    sizeof(attach->thread_errno));
	attach->stack_size = ATTACH_STACK_SIZE +
			     ((settings_size + 4095) & ~4095ull);
	result = call(attach, "mmap", 0, attach->stack_size,
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      (uint64_t)-1);
	if (result > (uint64_t)-4096) {
		int error = 0;

		remote_read(&attach->remote, attach->errno_at, &error,
			    sizeof(error));
		attach_finish(attach);
		die("process %d (%s): its mmap fails: %s",
		    (int)attach->target.pid, attach->target.name,
		    strerror(error));
	}
	attach->stack = result;
}

uint64_t attach_find_shim(struct attach *attach)
{
	const struct module *shim;

	attach_read_mappings(attach);
	shim = attach_find_module(attach, "libshim.so");
	if (!shim)
		shim = attach_find_module(attach, SHIM_ATTACH_NAME);
	return shim ? shim->start : 0;
}

uint32_t attach_read_state(struct attach *attach, uint64_t shim)
{
	uint32_t state = SHIM_ATTACH_NEVER;
	uint64_t at = remote_symbol(&attach->remote, shim,
				    "profrun_attach_state");

	if (!at || !remote_read(&attach->remote, at, &state, sizeof(state)))
		return SHIM_ATTACH_NEVER;
	return state;
}

void attach_send_call(struct attach *attach, uint64_t shim)
{
	const struct user_regs_struct *now = &attach->remote.registers;
	struct shim_attach_call call = {
		.arguments = { now->rdi, now->rsi, now->rdx, now->r10, now->r8,
			       now->r9 },
		.stack_pointer = now->rsp,
	};
	uint64_t at = remote_symbol(&attach->remote, shim,
				    "profrun_attach_call");

	if (remote_open_call(&attach->remote, &call.number, &call.next))
		call.tid = (uint64_t)attach->remote.tid;
	if (at)
		remote_write(&attach->remote, at, &call, sizeof(call));
}

int32_t attach_call_shim(struct attach *attach, uint64_t shim, const char *name,
			 uint64_t argument, const char *then)
{
	const struct remote_function function = {
		.address = remote_symbol(&attach->remote, shim, name),
		.arguments = { argument },
		.stack = attach->stack + ATTACH_STACK_SIZE,
	};

	attach->then = then;
	return (int32_t)make_call(attach, &function);
}

/* Reads the text that dlerror returns in the process. */
static void read_dlerror(struct attach *attach, char text[256])
{
	uint64_t at = call(attach, "dlerror", 0, 0, 0, 0, 0);
	size_t i = 0;

	while (at && i < 255 &&
	       remote_read(&attach->remote, at + i, text + i, 1) && text[i])
		i++;
	text[i] = '\0';
}

void attach_load(struct attach *attach)
{
	const char *path = attach_library(attach);
	char reason[256];

	if (remote_write(&attach->remote, attach->stack + ATTACH_STACK_SIZE,
			 path, strlen(path) + 1))
		attach->then =
			"shim is loaded, and records nothing: attach again";
	if (!attach->then ||
	    call(attach, "dlopen", attach->stack + ATTACH_STACK_SIZE,
		 RTLD_NOW | RTLD_LOCAL, 0, 0, 0) != 0)
		return;
	read_dlerror(attach, reason);
	attach_finish(attach);
	die("process %d (%s): its dlopen refuses shim: %s",
	    (int)attach->target.pid, attach->target.name, reason);
}
