/*
 * The start of shim: in its constructor, or earlier, at the first hooked call
 * (edge/early.c), or when it is attached to a running program (edge/attach.c).  Modules may
 * call all of libc, so they start only after libc is ready.  Also the start and return of
 * main, and regular exits.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "coverage/coverage.h"
#include "dispatch/callspec.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "inspect/debuginfo_prefetch.h"
#include "module/control.h"
#include "module/module.h"
#include "os/clock.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/hidden_signals.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"
#include "sampling/sample.h"
#include "sources/sources.h"
#include "unwind/second.h"

#include <shim/attach.h>
#include <shim/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <shim/banned.h>

/* --- main: stubs in arch/.../edge.S call these functions --- */

#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void *edge_start_main(void *program);
HIDDEN void *edge_main_begins(void);
HIDDEN int edge_main_returned(int status);

/* If set, the stub calls main, and so has a frame below it.  Otherwise it jumps to main. */
HIDDEN bool edge_main_is_awaited;

static void *program_main;

/* Stores the program's main.  Returns libc's __libc_start_main, whose versions are all
 * the same function. */
void *edge_start_main(void *program)
{
	void *start = lookup_real("__libc_start_main");

	program_main = program;
	if (!start) {
		log_line("%s", "libc's __libc_start_main was not found");
		log_end_program();
	}
	return start;
}

void edge_finish_start(void)
{
	plan_start_code();
	second_start();
	edge_thread_main();
	edge_allocations_decide(true);
	edge_locks_decide(true);
	/* A constructor may have enabled coverage. */
	coverage_scan_new();
	coverage_watch_loader();
	prefetch_new_images();
	RAISE(runtime_initialized);
	state_begin_main();
}

void *edge_main_begins(void)
{
	edge_finish_start();
	edge_main_is_awaited = events_counts.runtime_shutdown_begin > 0;
	return program_main;
}

int edge_main_returned(int status)
{
	edge_shutdown_begins();
	return status;
}

/* --- the end --- */

/* Runs after the program's exit handlers, because it was registered before them. */
static void write_exit(int status, void *unused)
{
	(void)unused;
	edge_shutdown_ends();
	edge_write_end(SHIM_END_EXIT, status);
}

/* --- constructor and destructor --- */

/* Functions of glibc.  Without them, shim sees an exit only by _exit. */
extern int on_exit(void (*call)(int, void *), void *argument)
	__attribute__((weak));
extern int __cxa_at_quick_exit(void (*call)(void *), void *object)
	__attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void raise_shutdown_end(void *unused)
{
	(void)unused;
	edge_shutdown_ends();
}

/* Tells profrun whether a module can be loaded; the answer goes to stdout. */
static void try_module(void)
{
	char memory[512];
	struct text text;
	bool is_found;

	text_init(&text, memory, sizeof(memory));
	is_found = module_try(config.try, &text);
	sys_write(1, memory, text.length);
	_exit(is_found ? 0 : 1);
}

static void start_all(void)
{
	bool started_early = state_get() != STATE_LOADED;

	edge_allocations_resolve();
	edge_mappings_resolve();
	edge_jump_resolve();
	edge_locks_resolve();
	edge_monitor_resolve();
	edge_process_resolve();
	edge_signals_resolve();
	edge_waits_resolve();
	edge_thread_resolve();
	edge_images_resolve();
	edge_exec_resolve();
	state_start();
	if (config.try[0] && config.disable[0] == '1')
		try_module();
	if (state_get() != STATE_RUNNING) {
		edge_allocations_decide(true);
		edge_locks_decide(true);
		/* Finds the slots that are to bypass the wrappers. */
		image_look_again();
		edge_monitor_load();
		if (config.disable[0] != '1')
			log_speak();
		return;
	}
	/* Finds objects that were loaded after the early start, or were not ready
	 * then. */
	if (started_early)
		image_look_again();
	sources_begin_plain();
	/* For `profrun doctor`, which has given a file for the list. */
	if (config.list_patch[0] == '1' && config.dir[0])
		_exit(0);
	if (on_exit)
		on_exit(write_exit, NULL);
	if (__cxa_at_quick_exit)
		__cxa_at_quick_exit(raise_shutdown_end, __dso_handle);
	callspec_prepare();
	edge_thread_main();
	module_start();
	log_speak();
	edge_allocations_decide(false);
	edge_locks_decide(false);
	coverage_begin_at_start();
	prefetch_new_images();
	image_raise_pending();
	edge_caught_load();
	edge_monitor_load();
	hidden_thread_begins(0);
	/* Starts the timer now, so that samples include the program's constructors. */
	if (sample_is_wanted())
		thread_get();
	control_start();
}

void edge_start(void)
{
	static bool begun;

	if (__atomic_exchange_n(&begun, true, __ATOMIC_ACQ_REL)) {
		/* Another thread is starting shim; or this thread is, and has called
		 * a hook in the code of a profiler that it starts. */
		state_start();
		return;
	}
	start_all();
	edge_early_again();
}

/* `profrun attach` opens the library under another name, and starts it afterwards. */
__attribute__((constructor)) static void load(void)
{
	if (lookup_is_opened_as(SHIM_ATTACH_NAME)) {
		profrun_attach_state = SHIM_ATTACH_OPENED;
		log_be_silent();
	} else {
		edge_start();
	}
}

__attribute__((destructor)) static void unload(void)
{
	struct shim_meta *meta = record_meta();

	if (meta && meta->end == SHIM_END_EXIT && !sys_is_forbidden()) {
		meta->end_clock = clock_read();
		record_note_clocks();
	}
}
