/*
 * Coverage when system calls fail: the n-th system call of enabling coverage
 * and of inspecting loaded objects fails, for all n, once and from then on.  In
 * every case the code runs on, with traps or without, and lines that are not
 * inspected are reported as missing.
 */
#define _GNU_SOURCE
#include "coverage/coverage.h"
#include "coverage/sigtrap.h"
#include "fake_sys.h"
#include "image/image.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <shim/coverage.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX 3000

enum {
	FOUND_ENABLED = 1,
	FOUND_OBJECTS = 2,
	FOUND_FAILED = 4,
	FOUND_WRONG = 8,
	FOUND_SILENT = 16, /* lines are missing without a report */
};

static unsigned objects;

static void object(struct shim_profiler *profiler,
		   struct shim_coverage_object *given)
{
	(void)profiler;
	objects += given->line_count > 0;
}

/* Runs code of another object with lines, because coverage leaves out shim's
 * own. */
static bool computes(void)
{
	static int (*plugin_function)(int);
	void *library;

	if (!plugin_function) {
		library = dlopen(PLUGIN, RTLD_NOW);
		cr_assert(ne(ptr, library, NULL));
		*(void **)&plugin_function = dlsym(library, "plugin_function");
	}
	return plugin_function(1) == plugin_function(1);
}

static int run(unsigned n, bool for_good)
{
	struct shim_profiler_handle *handle;
	uint32_t said;
	sigset_t none;
	int found = 0;

	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	handle = shim_profiler_create(NULL);
	shim_profiler_on_coverage_object(handle, object);
	thread_get();
	computes();
	alarm(20);
	said = log_end();
	if (n > 0)
		fake_fail(n, EAGAIN, for_good);
	if (shim_profiler_enable_coverage(handle) == SHIM_OK)
		found |= FOUND_ENABLED;
	image_look_again();
	coverage_scan_new();
	if (fake_failed())
		found |= FOUND_FAILED;
	if ((found & FOUND_ENABLED) && objects == 0 && log_end() == said)
		found |= FOUND_SILENT;
	/* A trap that cannot be removed would be hit forever. */
	if (for_good)
		fake_fail(0, 0, false);
	/* If a trap cannot be removed, all signals stay blocked. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!computes())
		found |= FOUND_WRONG;
	coverage_give_up("the test ends");
	fake_fail(0, 0, false);
	if (!computes())
		found |= FOUND_WRONG;
	return found | (objects ? FOUND_OBJECTS : 0);
}

static int run_apart(unsigned n, bool for_good)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0)
		_exit(run(n, for_good));
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

Test(coverage, any_system_call_may_fail, .timeout = 120)
{
	int found = FOUND_FAILED;
	unsigned n = 1;

#ifdef __SANITIZE_ADDRESS__
	/* libshim.so calls nothing of libc while SIGTRAP is blocked. */
	cr_skip("what the sanitizer puts in comes to libc's lines there");
#endif
	cr_assert(eq(int, run_apart(0, false), FOUND_ENABLED | FOUND_OBJECTS));
	for (; n < CALLS_MAX && (found & FOUND_FAILED); n += n < 60 ? 1 : 13) {
		for (int for_good = 0; for_good < 2; for_good++) {
			found = run_apart(n, for_good);
			cr_expect(lt(int, found, FOUND_WRONG), "call %u: %d", n,
				  found);
		}
	}
	cr_expect(lt(u32, n, CALLS_MAX));
	cr_expect(gt(u32, n, 60));
}

Test(coverage, traps_start_only_if_their_signal_can_be_unblocked)
{
	setenv("SHIM_DISABLE", "1", 1);
	state_start();
	thread_get();
	fake_fail(1, EPERM, false);
	cr_expect(not(sigtrap_start()));
	cr_expect(eq(str, (char *)fake_failed(), "unblock_signals"));
	cr_expect(not(sigtrap_is_on()));
	fake_fail(0, 0, false);
	cr_expect(sigtrap_start());
	cr_expect(sigtrap_is_on());
}
