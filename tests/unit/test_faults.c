/*
 * Every system call may fail: the n-th call of a run fails, for all n, once and
 * from then on.  In every case the hooks must return, and each call made after
 * the start must be recorded or counted as lost.
 *
 * Each run is a process of its own.  It starts shim, calls through new and
 * known paths until files and tables grow, does the same on a second thread,
 * and goes on as a forked child.
 */
#define _GNU_SOURCE
#include "fake_sys.h"
#include "image/image.h"
#include "recording.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern shim_site_hook table_current[2];

/* The result of a run, in memory shared with its process. */
struct outcome {
	/* calls made while shim was running; [1]: as a child */
	unsigned long calls[2];
	unsigned system_calls;
	char failed[32]; /* the function that failed */
	int errno_after;
	int is_done;
	char names[65536];
};

static struct outcome *outcome;
static char directory[64];
static bool is_child;

static __attribute__((noinline)) void call(uintptr_t function, int depth)
{
	table_current[0](function, NULL);
	if (state_get() == STATE_RUNNING)
		__atomic_fetch_add(&outcome->calls[is_child], 1,
				   __ATOMIC_RELAXED);
	if (depth > 0) {
		call(function + 16, depth - 1);
		call(function + 32, depth - 1);
	}
	table_current[1](function, NULL);
}

static void *call_all(void *depth)
{
	uintptr_t base = (uintptr_t)call;

	for (int i = 0; i < 2; i++) {
		call(base, (int)(long)depth);
		call(base + 16, 2);
	}
	return NULL;
}

static int begin_again(void *unused)
{
	(void)unused;
	if (record_fork() == 0)
		image_forked();
	return 0;
}

static void begin_as_child(void)
{
	state_forked();
	state_call_locked_in_handler(begin_again, NULL);
	RAISE(forked);
}

static void run(const char *profile)
{
	pthread_t thread;

	setenv("SHIM_DIR", directory, 1);
	setenv("SHIM_PROFILE", profile, 1);
	errno = 4711;
	state_start();
	call_all((void *)12);
	pthread_create(&thread, NULL, call_all, (void *)8);
	pthread_join(thread, NULL);
	if (state_get() == STATE_RUNNING) {
		begin_as_child();
		is_child = true;
		call_all((void *)6);
	}
	outcome->errno_after = errno;
}

/* Runs the test in a new process; returns its status. */
static int run_apart(unsigned n, int error, bool for_good, const char *profile)
{
	int status;
	pid_t pid;

	snprintf(directory, sizeof(directory), "/tmp/shim-unit.XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	*outcome = (struct outcome){ 0 };
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(20);
		if (n == 0)
			fake_note_names(outcome->names, sizeof(outcome->names));
		fake_fail(n, error, for_good);
		run(profile);
		if (fake_failed())
			strncpy(outcome->failed, fake_failed(),
				sizeof(outcome->failed) - 1);
		outcome->system_calls = fake_calls;
		outcome->is_done = 1;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void set_up(void)
{
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* A child that could not make its directory may have no place for its
 * counts. */
static bool is_right(const struct recording *recording)
{
	unsigned long got = recording->calls + recording->lost_all;

	if (got == outcome->calls[0] + outcome->calls[1])
		return true;
	return recording->processes < 2 && got == outcome->calls[0];
}

static void expect_nothing_missing(unsigned n, int error, bool for_good,
				   const char *profile)
{
	struct recording recording;
	int status = run_apart(n, error, for_good, profile);
	char what[128];

	snprintf(what, sizeof(what), "%s, call %u (%s)%s fails with %s",
		 profile, n, outcome->failed,
		 for_good ? " and all after it" : "", strerrorname_np(error));
	recording_read(directory, &recording);
	recording_remove(directory);
	cr_expect(status == 0 && outcome->is_done,
		  "%s: the process ends with %#x", what, status);
	cr_expect(is_right(&recording),
		  "%s: %lu recorded, %lu lost, of %lu and %lu", what,
		  recording.calls, recording.lost_all, outcome->calls[0],
		  outcome->calls[1]);
	cr_expect(recording.broken == 0, "%s: %u chunks are not there", what,
		  recording.broken);
	cr_expect(outcome->errno_after == 4711, "%s: errno is %d", what,
		  outcome->errno_after);
}

static const char *const profiles[] = { "calltree:counts", "calltree",
					"calltree:exact" };
/* The last error cannot be permanent: it means "try again". */
static const int errors[] = { ENOSPC, ENOMEM, EACCES, EMFILE, EPERM, EINTR };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

Test(faults, a_run_without_any_records_all, .init = set_up)
{
	struct recording recording;

	for (unsigned i = 0; i < COUNT(profiles); i++) {
		int status = run_apart(0, 0, false, profiles[i]);

		recording_read(directory, &recording);
		recording_remove(directory);
		cr_assert(eq(int, status, 0));
		cr_assert(eq(ulong, recording.lost_all, 0));
		cr_assert(eq(ulong, recording.calls,
			     outcome->calls[0] + outcome->calls[1]));
		cr_assert(gt(ulong, outcome->calls[1], 100));
		cr_assert(eq(uint, recording.processes, 2));
		cr_assert(eq(uint, recording.files, 3));
		cr_assert(gt(uint, outcome->system_calls, 100));
	}
}

/* scripts/check --nightly sets it. */
static bool is_nightly(void)
{
	return getenv("CHECK_ALL") != NULL;
}

/* Makes each call fail, with varying errors and profiles; @turn shifts them. */
static void fail_each(unsigned turn, bool for_good)
{
	static char names[sizeof(outcome->names)];
	unsigned calls, count[256] = { 0 }, stride;
	unsigned errors_count = COUNT(errors) - for_good;

	run_apart(0, 0, false, profiles[0]);
	recording_remove(directory);
	calls = outcome->system_calls;
	memcpy(names, outcome->names, sizeof(names));
	cr_assert(lt(uint, calls, sizeof(names)));
	for (unsigned n = 1; n <= calls; n++)
		count[(unsigned char)names[n]]++;
	for (unsigned n = 1; n <= calls; n++) {
		/* Many are similar. */
		stride = !is_nightly() ?
				 count[(unsigned char)names[n]] / 25 + 1 :
			 strchr("pt", names[n]) ?
				 count[(unsigned char)names[n]] / 50 + 1 :
				 1;
		if ((n + turn) % stride != 0)
			continue;
		expect_nothing_missing(n, errors[(n / 3 + turn) % errors_count],
				       for_good,
				       profiles[(n + turn) % COUNT(profiles)]);
	}
}

static struct criterion_test_params turns(void)
{
	static int all[] = { 0, 1 };

	return cr_make_param_array(int, all, is_nightly() ? 2 : 1);
}

ParameterizedTestParameters(faults, any_system_call_may_fail_once)
{
	return turns();
}

ParameterizedTest(int *turn, faults, any_system_call_may_fail_once,
		  .init = set_up, .timeout = 600)
{
	fail_each((unsigned)*turn, false);
}

ParameterizedTestParameters(faults, all_system_calls_may_fail_from_one_on)
{
	return turns();
}

ParameterizedTest(int *turn, faults, all_system_calls_may_fail_from_one_on,
		  .init = set_up, .timeout = 600)
{
	fail_each((unsigned)*turn, true);
}
