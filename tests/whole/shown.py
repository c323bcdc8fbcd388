#!/usr/bin/env python3
"""shown.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Rows of the specification that can only be observed from outside, with a module or
program made for them (tests/rows.md).
"""
import os
import re
import signal
import subprocess
import sys

import shimtest
from installed import Target, content, installed, load, log_of, new_file
from shimtest import (calls_of, compile, environment, expect, expect_equal,
                      json_of, new_directory, record, run, test, until)

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')


# --- E-35: the program may hold any lock during a hook ---

SLOW = r'''
#include <fcntl.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <string.h>
#include <unistd.h>

static char path[4096];
static unsigned long calls;

static void enter(union shim_function_or_client function, shim_elt_info info)
{
	char name[64];

	(void)info;
	calls++;
	/* Calls that are allowed in a hook. */
	shim_function_name(function.function, sizeof(name), NULL, name);
}

static void end(struct shim_profiler *profiler)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	(void)profiler;
	if (write(fd, &calls, sizeof(calls)) != sizeof(calls))
		_exit(99);
}

SHIM_PROFILER_MODULE(slow)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	strcpy(path, strchr(description, ':') + 1);
	shim_profiler_on_runtime_shutdown_begin(handle, end);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
				    SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, enter, NULL, NULL);
	return SHIM_OK;
}
'''
HELD = {'in_allocator': 1, 'in_stream': 1, 'in_headers': 1, 'in_fork': 2,
        'in_once': 1, 'in_key': 1, 'in_exit': 1}


@test
def a_hook_is_called_whatever_lock_the_program_holds():
    modules = installed().compile_text(SLOW, 'slow')
    for family in ('gcc', 'clang'):
        library = compile('held_library.c', family, '-O1',
                          ['-shared', '-fPIC'], name='held_library.so')
        program = compile('held.c', family, '-O1')
        alone = run([program, library])
        expect_equal((alone.status, alone.truth()), (0, HELD), 'alone')
        for profile in ('calltree', 'calltree:exact', 'trace', 'memory', 'locks',
                        'exceptions', 'sampling', 'slow', 'calltree;slow'):
            path = new_file()
            done = record([program, library],
                          profile.replace('slow', 'slow:' + path), timeout=120,
                          SHIM_MODULE_PATH=modules)
            expect_equal((done.status, done.stdout, done.stderr),
                         (0, alone.stdout, ''), profile)
            if 'slow' in profile:
                # Each signal, whatever arrives when the program has ended.
                told = int.from_bytes(content_of(path), sys.byteorder)
                expect(told >= sum(HELD.values()) - HELD['in_exit'],
                       '%s: %d' % (profile, told))
            if not re.match('calltree|trace|memory|locks|exceptions', profile):
                continue
            calls = calls_of(json_of(done.output))
            expect_equal({name: calls.get(name) for name in HELD}, HELD, profile)
            expect_equal(calls.get('in_loader'), 2, profile)


def content_of(path):
    with open(path, 'rb') as file:
        return file.read()


# --- E-34: hooks find an aligned stack, and must not throw ---

ALIGNED = r'''
#include <shim/hooks.h>
#include <emmintrin.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[4096];
static unsigned long calls;
static volatile double sink;

/* Without optimization, the compiler stores the whole vector as if the stack were
 * aligned: a misaligned stack gives a fault. */
static void store(void)
{
	volatile __m128d vector = _mm_set1_pd(sink);

	sink = vector[0];
	calls++;
}

static void enter(union shim_function_or_client function)
{
	(void)function;
	store();
}

static void enter_slowly(union shim_function_or_client function,
			 shim_elt_info info)
{
	(void)function, (void)info;
	store();
}

static void end(struct shim_profiler *profiler)
{
	char line[64];
	int fd = open(path, O_WRONLY | O_CREAT, 0600);
	int n = snprintf(line, sizeof(line), "%lu\n", calls);

	(void)profiler;
	if (write(fd, line, (size_t)n) != n)
		_exit(99);
}

SHIM_PROFILER_MODULE(aligned)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	strcpy(path, strrchr(description, ':') + 1);
	shim_profiler_on_runtime_shutdown_begin(handle, end);
	if (strstr(description, "slow")) {
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FRAME_INFO);
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, enter_slowly, enter_slowly, NULL);
	} else {
		shim_profiler_set_enter_leave_function_hooks3(handle, enter, enter, NULL);
	}
	return SHIM_OK;
}
'''


@test
def hooks_find_a_stack_on_which_vectors_can_be_stored():
    modules = installed().compile_text(ALIGNED, 'aligned', flags=['-O0'])
    for family, optimize in shimtest.BUILDS:
        program = compile('everything.cc', family, optimize)
        for how in ('fast', 'slow'):
            path = new_file()
            done = load('aligned:%s:%s' % (how, path), [program], path=modules)
            expect_equal((done.status, done.stdout), (3, 'caught\n'),
                         (family, optimize, how, log_of(done.output)))
            expect(int(content(path)) > 100, content(path))


THROWS = r'''
#include <shim/hooks.h>
#include <cstring>
#include <stdexcept>

static int calls;
static bool catches;

static void throws()
{
	throw std::runtime_error("out of a hook");
}

static void on_call(shim_function_or_client)
{
	if (++calls != 3)
		return;
	if (!catches)
		throws();
	try {
		throws();
	} catch (const std::runtime_error &) {
	}
}

static void on_slow_call(shim_function_or_client function, shim_elt_info)
{
	on_call(function);
}

SHIM_PROFILER_MODULE(throws)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	bool leaves = strstr(description, "leave");

	catches = strstr(description, "inside");
	if (strstr(description, "slow")) {
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FRAME_INFO);
		shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, leaves ? NULL : on_slow_call,
			leaves ? on_slow_call : NULL, NULL);
	} else {
		shim_profiler_set_enter_leave_function_hooks3(
			handle, leaves ? NULL : on_call,
			leaves ? on_call : NULL, NULL);
	}
	return SHIM_OK;
}
'''

CATCHES = r'''
#include <cstdio>

static __attribute__((noinline)) int leaf(volatile int *n)
{
	return ++*n;
}

static __attribute__((noinline)) int calls_leaf(volatile int *n)
{
	return leaf(n) + leaf(n) + 1;
}

static __attribute__((noinline)) int throws(volatile int *n)
{
	if (*n)
		throw 1;
	return leaf(n);
}

int main()
{
	volatile int n = 0;

	try {
		calls_leaf(&n);
	} catch (...) {
		puts("caught");
	}
	try {
		throws(&n);
	} catch (int) {
		puts("its own");
	}
	printf("%d\n", n);
}
'''


@test
def an_exception_out_of_a_hook_ends_the_program():
    modules = installed().compile_text(THROWS, 'throws', suffix='.cc')
    source = shimtest.new_source('catches.cc', CATCHES)
    builds = [(family, optimize, []) for family, optimize in shimtest.BUILDS]
    builds.append(('clang', '-O2', shimtest.XRAY))
    builds.append(('gcc', '-O2', ['-fpatchable-function-entry=5']))
    for family, optimize, marks in builds:
        program = compile(source, family, optimize, marks,
                          name='catches' + ''.join(marks[:1]), instrument=not marks)
        for how in ('fast:enter', 'slow:enter', 'fast:leave', 'slow:leave'):
            what = (family, optimize, marks, how)
            done = load('throws:' + how, [program], path=modules)
            expect_equal((done.status, done.stdout), (-signal.SIGABRT, ''), what)
            expect('what():  out of a hook' in done.stderr, (what, done.stderr))
            expect("a profiler's hook threw" in log_of(done.output), what)
            done = load('throws:inside:' + how, [program], path=modules)
            expect_equal((done.status, done.stdout), (0, 'its own\n2\n'), what)


# --- M-29: without debug information there is no file, line or column ---

PLACES = r'''
#include <shim/coverage.h>
#include <shim/info.h>
#include <stdio.h>

static struct shim_profiler_handle *handle;

static void tell(struct shim_profiler *profiler,
		 const struct shim_coverage_data *data)
{
	char name[64];

	(void)profiler;
	if (shim_function_name(data->function, sizeof(name), NULL, name))
		return;
	fprintf(stderr, "%s %s %u %u %d\n", name,
		data->file_name ? data->file_name : "NULL", data->line,
		data->column, data->counter > 0);
}

static void end(struct shim_profiler *profiler)
{
	struct shim_enum *list;
	shim_function function;
	shim_image image;

	(void)profiler;
	if (shim_image_enumerate(&list) ||
	    shim_enum_next(list, 1, &image, NULL) ||
	    shim_function_enumerate(image, &list))
		return;
	while (shim_enum_next(list, 1, &function, NULL) == SHIM_OK)
		shim_profiler_get_coverage_data(handle, function, tell);
}

SHIM_PROFILER_MODULE(places)
{
	(void)description;
	handle = shim_profiler_create(NULL);
	shim_profiler_enable_symbols(handle);
	shim_profiler_enable_coverage(handle);
	shim_profiler_on_runtime_shutdown_begin(handle, end);
	return SHIM_OK;
}
'''


@test
def without_debug_information_a_place_has_no_file_line_or_column():
    modules = installed().compile_text(PLACES, 'places')
    found = {}
    for name, flags in (('with', ['-g']), ('without', ['-g0'])):
        program = compile('trivial.c', flags=flags, name='trivial-' + name)
        done = load('places', [program, '3', '3'], path=modules)
        expect_equal(done.status, 0, done.stderr)
        found[name] = [line.split() for line in done.stderr.splitlines()
                       if re.match('(spin|main) ', line)]
    expect_equal(sorted(found['without']), [['main', 'NULL', '0', '0', '1'],
                                            ['spin', 'NULL', '0', '0', '1']],
                 'without')
    expect(len(found['with']) > 4 and
           all(file.endswith('/trivial.c') and int(line) > 0
               for _, file, line, _, _ in found['with']), found['with'])


# --- T-58: what cannot be written ---

@test
def a_histogram_that_cannot_be_written_is_one_line_and_no_directory():
    program = compile('computes.c', instrument=False)
    directory = new_directory('cwd')
    alone = run([program])
    with open(os.path.join(directory, 'file'), 'w'):
        pass
    for place in ('missing', 'missing/deeper', 'file', '/proc'):
        done = subprocess.run(
            [installed().profrun, '-p', 'pchist', '-o', directory + '/r.%p',
             program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            cwd=directory, env=environment(PROFDIR=place))
        expect_equal((done.returncode, done.stdout),
                     (alone.status, alone.stdout), place)
        lines = [l for l in done.stderr.splitlines()
                 if 'cannot write the profile' in l]
        expect_equal(len(lines), 1, '%s: %s' % (place, done.stderr))
        expect(not os.path.exists(directory + '/missing'), 'it was made')


# --- lines that no other test reaches (tests/coverage) ---

@test
def functions_of_libc_that_few_call_do_what_they_do_without_us():
    for family in ('gcc', 'clang'):
        program = compile('rarely.c', family, '-O1', ['-w'])
        for profile in ('calltree', 'trace', 'memory', 'locks', 'sampling',
                        'coverage', 'pchist', 'calltree;sampling;coverage'):
            done = shimtest.run_both([program], profile)
            expect_equal((done.status, done.stdout.count('\n')), (6, 13),
                         done.stdout)


# --- P-64: errors of attaching ---

@test
def a_program_that_ends_before_it_answers_is_an_error_of_the_connection():
    with Target(1) as target:
        os.kill(target.pid, signal.SIGSTOP)
        # A thread without a processor stops when it gets one.
        until(lambda: are_stopped(target.pid), 'the stop', 30)
        with subprocess.Popen(
                [installed().profrun, 'ctl', '-v', str(target.pid), 'status'],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=environment()) as client:
            # The client is connected when it waits for the answer.
            until(lambda: 'socket:' in ' '.join(links_of(client.pid)),
                  'a connection', 30)
            os.kill(target.pid, signal.SIGKILL)
            out, said = client.communicate(timeout=60)
        expect_equal((client.returncode, out), (1, ''), said)
        expect('SHIM_E_IPC_FAILED' in said or
               'SHIM_E_PROFILEE_PROCESS_NOT_FOUND' in said, said)


def are_stopped(pid):
    return all(shimtest.state_of('%d/task/%s' % (pid, task)) == 'T'
               for task in os.listdir('/proc/%d/task' % pid))


def links_of(pid):
    links = []
    try:
        for fd in os.listdir('/proc/%d/fd' % pid):
            links.append(os.readlink('/proc/%d/fd/%s' % (pid, fd)))
    except OSError:     # the descriptor was opened or closed meanwhile
        pass
    return links


if __name__ == '__main__':
    shimtest.main()
