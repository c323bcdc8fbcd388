#!/usr/bin/env python3
"""authors.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The promises of the headers to authors of profilers, tested as an author would: with
modules that are compiled against an installation, one for each row.
"""
import os
import re
import shutil

import shimtest
from installed import (Target, content, expect_alike, expect_log, fixture,
                       installed, load, log_of, new_file, profrun)
from shimtest import (calls_of, compile, expect, expect_equal, json_of, run,
                      test, until)

SEQUENCE, INIT = '80131363', '80131356'

HEAD = r'''
#include <shim/contexts.h>
#include <shim/coverage.h>
#include <shim/allocations.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <shim/locks.h>
#include <shim/sampling.h>
#include <shim/stack.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[4096];

/* Writes a line to the file that the description names. */
__attribute__((format(printf, 1, 2), unused)) static void say(const char *format,
							     ...)
{
	char line[4096];
	int length, fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	va_list arguments;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	line[length] = '\n';
	if (write(fd, line, (size_t)length + 1) != length + 1)
		abort();
	close(fd);
}
'''


def module(name, text, suffix='.c'):
    return installed().compile_text(
        HEAD + text.replace('READ_PATH', 'strcpy(path, strchr(description, '
                            "':') + 1)"), name, suffix=suffix)


def told(name, text, program=None, suffix='.c', also='', log=(), **more):
    """Runs the program and returns the lines that the module wrote; the program must
    behave as usual."""
    path = new_file()
    result = load('%s%s:%s' % (also, name, path), program,
                  path=module(name, text, suffix), **more)
    expect_alike(result, program)
    if log is not None:
        expect_log(result, *log)
    lines = (content(path) or '').splitlines()
    expect(lines, 'it said nothing; the log: %s' % log_of(result.output))
    return lines


# --- M-11: functions that are not async are refused in sample_hit ---

REFUSED = r'''
static struct shim_profiler_handle *handle, *other;
static unsigned long hits;

static void nothing(void *unused)
{
	(void)unused;
}

static void no_data(struct shim_profiler *profiler,
		    const struct shim_coverage_data *data)
{
	(void)profiler;
	(void)data;
}

#define CALLS(f)                                                               \
	f(shim_profiler_load("nowhere", NULL, 0))                              \
	f(shim_profiler_destroy(other))                                        \
	f(shim_profiler_quiesce(other))                                        \
	f(shim_profiler_detach(other, 1))                                      \
	f(shim_profiler_get_coverage_data(handle, (shim_function)nothing, no_data))\
	f(shim_thread_create(nothing, NULL))                                   \
	f(shim_image_enumerate(&list))                                         \
	f(shim_function_enumerate(0, &list))                                   \
	f(shim_thread_enumerate(&list))                                        \
	f(shim_function_lines((shim_function)nothing, 0, &total, NULL))        \
	f(shim_process_info(NULL, 0, &total, NULL))                            \
	f(shim_runtime_info(NULL, NULL, NULL, 0, &total, NULL))                \
	f(shim_profiler_create(NULL) ? SHIM_OK : SHIM_E_CALL_ONLY_FROM_INIT)   \
	f(shim_profiler_enable_sampling(handle))

#define NAME(call) #call,
static const char *const names[] = { CALLS(NAME) };
#define COUNT (sizeof(names) / sizeof(*names))
static unsigned answers[COUNT], wrong[COUNT];

static void note(unsigned i, unsigned answer)
{
	unsigned before = 0;

	if (!__atomic_compare_exchange_n(&answers[i], &before, answer, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	    before != answer)
		__atomic_add_fetch(&wrong[i], 1, __ATOMIC_RELAXED);
}

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	struct shim_enum *list;
	uint32_t total;
	unsigned i = 0;

	(void)profiler, (void)ip, (void)context, (void)weight;
	(void)total;
	__atomic_add_fetch(&hits, 1, __ATOMIC_RELAXED);
#define CALL(call) note(i++, (unsigned)(call));
	CALLS(CALL)
}

static volatile int sink;

static void spin(int times)
{
	for (int i = 0; i < times; i++)
		sink += i;
}

/* Samples also arrive in callbacks and in slow hooks. */
static void enter(union shim_function_or_client function, shim_elt_info info)
{
	(void)function, (void)info;
	spin(20);
}

static void started(struct shim_profiler *profiler, shim_thread thread)
{
	(void)profiler, (void)thread;
	spin(30000000);
}

static void ended(struct shim_profiler *profiler)
{
	(void)profiler;
	say("hits %d", hits > 100);
	for (unsigned i = 0; i < COUNT; i++)
		say("%.40s|%08x|%u", names[i], answers[i], wrong[i]);
}

SHIM_PROFILER_MODULE(refused)
{
	READ_PATH;
	other = shim_profiler_create(NULL);
	handle = shim_profiler_create(NULL);
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_on_thread_started(other, started);
	shim_profiler_on_runtime_shutdown_end(handle, ended);
	shim_profiler_set_event_mask(other, SHIM_MONITOR_ENTERLEAVE |
			    SHIM_MONITOR_THREADS | SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(other, enter, NULL, NULL);
	shim_profiler_enable_sampling(handle);
	shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_THREAD, 1000);
	/* ... and here. */
	spin(30000000);
	return SHIM_OK;
}
'''


@test
def sample_hit_refuses_functions_that_are_not_async():
    lines = told('refused', REFUSED, [compile('allocates.c', optimize='-O1')])
    expect_equal(lines[0], 'hits 1', 'samples')
    wrong = []
    for line in lines[1:]:
        name, answer, changes = line.split('|')
        wanted = INIT if re.search('create\\(NULL|enable_sampling',
                                   name) else SEQUENCE
        if answer != wanted or changes != '0':
            wrong.append(line)
    expect(not wrong, '\n'.join(wrong))


# --- P-66, P-30: a thread that has exited is no longer listed ---

EXITED = r'''
static unsigned long exits, answers[3], listed, enumerations;
static volatile int stop, stopped;

/* The threads that exited last, by id. */
static shim_thread gone[1u << 16];

static int is_listed(shim_thread wanted)
{
	struct shim_enum *list;
	shim_thread thread;
	int found = 0;

	if (shim_thread_enumerate(&list) != SHIM_OK)
		abort();
	while (shim_enum_next(list, 1, &thread, NULL) == SHIM_OK)
		found |= thread == wanted;
	shim_enum_destroy(list);
	return found;
}

static void exited(struct shim_profiler *profiler, shim_thread thread)
{
	shim_thread current = 0;
	uint32_t tid;

	(void)profiler;
	__atomic_store_n(&gone[thread % 65521], thread, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&exits, 1, __ATOMIC_RELAXED);
	if (is_listed(thread))
		__atomic_add_fetch(&answers[0], 1, __ATOMIC_RELAXED);
	if (shim_thread_info(thread, &tid, NULL, 0, NULL, NULL) !=
	    SHIM_E_DATAINCOMPLETE)
		__atomic_add_fetch(&answers[1], 1, __ATOMIC_RELAXED);
	if (shim_thread_current(&current) != SHIM_E_NOT_MANAGED_THREAD)
		__atomic_add_fetch(&answers[2], 1, __ATOMIC_RELAXED);
}

/* Threads that exit meanwhile may be listed.  Only threads that had exited before the
 * enumeration began count. */
static void enumerate(void *unused)
{
	static shim_thread before[1u << 16];
	shim_thread thread;
	struct shim_enum *list;

	(void)unused;
	while (!stop) {
		memcpy(before, gone, sizeof(before));
		if (shim_thread_enumerate(&list) != SHIM_OK)
			continue;
		enumerations++;
		while (shim_enum_next(list, 1, &thread, NULL) == SHIM_OK)
			listed += before[thread % 65521] == thread;
		shim_enum_destroy(list);
	}
	stopped = 1;
}

static void initialized(struct shim_profiler *profiler)
{
	(void)profiler;
	if (shim_thread_create(enumerate, NULL) != SHIM_OK)
		abort();
}

static void ended(struct shim_profiler *profiler)
{
	(void)profiler;
	stop = 1;
	while (!stopped)
		usleep(1000);
	say("exits %lu", exits);
	say("enumerations %d", enumerations > 10);
	say("in thread_exited: listed %lu, info %lu, current %lu", answers[0],
	    answers[1], answers[2]);
	say("later: listed %lu", listed);
}

SHIM_PROFILER_MODULE(exited)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	READ_PATH;
	shim_profiler_on_runtime_initialized(handle, initialized);
	shim_profiler_on_runtime_shutdown_end(handle, ended);
	shim_profiler_on_thread_exited(handle, exited);
	return SHIM_OK;
}
'''


@test
def a_thread_that_has_exited_is_neither_listed_nor_known():
    program = [compile('short_threads.c', optimize='-O2'), '2000']
    lines = told('exited', EXITED, program)
    expect_equal(lines, [
        'exits 2000', 'enumerations 1',
        'in thread_exited: listed 0, info 0, current 0',
        'later: listed 0'], 'what it saw')


# The module creates threads of its own meanwhile.
OWN = r'''
static volatile int made;

static void nothing(void *unused)
{
	(void)unused;
}

static void make(void *unused)
{
	(void)unused;
	for (int i = 0; i < 3000; i++)
		shim_thread_create(nothing, NULL);
	made = 1;
}

static void initialized(struct shim_profiler *profiler)
{
	unsigned long others = 0, enumerations = 0;
	struct shim_enum *list;
	uint32_t count;

	(void)profiler;
	shim_thread_create(make, NULL);
	while (!made) {
		if (shim_thread_enumerate(&list) != SHIM_OK)
			continue;
		enumerations++;
		shim_enum_count(list, &count);
		others += count - 1;
		shim_enum_destroy(list);
	}
	say("enumerations %d, others %lu", enumerations > 100, others);
}

SHIM_PROFILER_MODULE(own)
{
	READ_PATH;
	shim_profiler_on_runtime_initialized(shim_profiler_create(NULL),
					     initialized);
	return SHIM_OK;
}
'''


@test
def threads_of_a_module_are_never_listed():
    expect_equal(told('own', OWN), ['enumerations 1, others 0'], 'threads')


# --- P-21: whatever exception a profiler throws, the program goes on ---

THROWS = r'''
#include <shim/reach.h>
#include <stdexcept>

static shim_result frame(shim_function, uintptr_t, uintptr_t, uint32_t,
			 const void *, void *)
{
	throw std::runtime_error("out of a walk");
}

static shim_result block(const shim_block *, void *)
{
	throw std::runtime_error("out of a walk");
}

static shim_result reached(const shim_block *, shim_reach, void *throws)
{
	if (throws)
		throw std::runtime_error("out of a walk");
	return SHIM_S_FALSE;
}

static void walks(shim_profiler *)
{
	static char yes;

	say("snapshot %08x", (unsigned)shim_stack_snapshot(
				     0, frame, SHIM_SNAPSHOT_DEFAULT, nullptr,
				     nullptr, 0));
	say("blocks %08x", (unsigned)shim_block_walk(block, nullptr));
	say("reach %08x", (unsigned)shim_heap_find_leaks(reached, &yes, ~0ull));
	/* The call can be repeated: the first one left no half-done state. */
	say("again %d", shim_heap_find_leaks(reached, nullptr, ~0ull) !=
			SHIM_E_FAIL);
}

static void throws(shim_profiler *)
{
	throw std::runtime_error("out of a callback");
}

/* This callback is not called: its profiler was switched off. */
static void shutdown_begin(shim_profiler *profiler)
{
	say("shutdown begin %s", (const char *)profiler);
}

static void cleanup(shim_profiler *profiler)
{
	say("cleanup %s", (const char *)profiler);
	throw std::runtime_error("out of a cleanup");
}

static shim_profiler_handle *make(const char *name)
{
	shim_profiler_handle *handle = shim_profiler_create((shim_profiler *)name);

	shim_profiler_set_event_mask(handle, (SHIM_MONITOR_ALL &
				     ~SHIM_MONITOR_IMMUTABLE) |
				    SHIM_ENABLE_STACK_SNAPSHOT);
	shim_profiler_on_runtime_shutdown_begin(handle, shutdown_begin);
	shim_profiler_set_cleanup_callback(handle, cleanup);
	return handle;
}

SHIM_PROFILER_MODULE(throws)
{
	READ_PATH;
	make("good");
	shim_profiler_on_runtime_initialized(make("throws"), throws);
	shim_profiler_handle *handle = make("walks");
	shim_profiler_on_runtime_shutdown_begin(handle, walks);
	return shim_profiler_enable_allocations(handle);
}
'''


@test
def the_program_continues_when_a_callback_throws():
    lines = told('throws', THROWS, suffix='.cc', log=[
        'runtime_initialized threw an exception',
        'shim_stack_snapshot threw', 'shim_block_walk threw',
        'shim_heap_find_leaks threw', 'cleanup threw', 'cleanup threw', 'cleanup threw'])
    expect_equal(lines, [
        'snapshot 8000ffff', 'blocks 8000ffff', 'reach 8000ffff', 'again 1',
        'shutdown begin good', 'cleanup walks', 'cleanup throws',
        'cleanup good'], 'what came')


THREADS = r'''
#include <pthread.h>
#include <stdexcept>

static void throws(void *unused)
{
	say("thread");
	if (unused) {
		while (access(path, F_OK) == 0)
			usleep(1000);
		pthread_exit(nullptr);
	}
	throw std::runtime_error("out of a thread");
}

static void attached(shim_profiler *profiler)
{
	shim_thread_create(throws, profiler);
}

static void cleanup(shim_profiler *)
{
	say("cleanup");
}

SHIM_PROFILER_MODULE(threads)
{
	READ_PATH;
	shim_profiler_handle *handle = shim_profiler_create(
		(shim_profiler *)strstr(path, "exits"));

	shim_profiler_on_attach_complete(handle, attached);
	shim_profiler_set_cleanup_callback(handle, cleanup);
	return SHIM_OK;
}
'''


@test
def a_thread_of_a_module_may_throw_or_leave_by_pthread_exit():
    directory = module('threads', THREADS, '.cc')
    for how in ('throws', 'exits'):
        path = new_file(how)
        with Target(1) as target:
            target.ctl('load', '%s/libshim-profiler-threads.so:%s' % (
                directory, path))
            until(lambda: 'thread' in (content(path) or ''), 'the thread')
            answer = target.ctl('unload', 'threads')
            expect_equal(content(path), 'thread\ncleanup\n', how)
            if how == 'throws':
                expect_equal(answer, 'unloaded\n', how)
            else:
                expect('a thread of its own still runs' in answer, answer)
                os.unlink(path)
            until(lambda: target.maps('threads.so') == 0, 'it is unmapped')
            target.finish()
        log = log_of(target.output)
        expect(('of a thread threw an exception' in log) == (how == 'throws'),
               log)


# --- P-29: filters, mappers and slow hooks have a large stack ---

LARGE = r'''
static unsigned long calls[8], asked;
static const char *const names[] = { "filter", "mapper", "enter", "leave",
				     "method_enter", "method_leave", "enter2",
				     "enter1" };

/* Uses 256 KiB of the stack. */
__attribute__((noinline)) static void use_stack(int which)
{
	volatile char large[256 << 10];

	for (size_t i = 0; i < sizeof(large); i += 512)
		large[i] = (char)which;
	__atomic_add_fetch(&calls[which], 1, __ATOMIC_RELAXED);
}

static enum shim_call_instrumentation_flags filter(struct shim_profiler *profiler,
						   shim_function function)
{
	(void)profiler, (void)function;
	use_stack(0);
	return SHIM_CALL_INSTRUMENTATION_ENTER | SHIM_CALL_INSTRUMENTATION_LEAVE;
}

static uintptr_t map(shim_function function, int *hook)
{
	(void)hook;
	use_stack(1);
	return function;
}

static void enter(union shim_function_or_client function, shim_elt_info info)
{
	enum shim_result r;
	uint32_t size = 0;

	(void)function;
	use_stack(2);
	/* The call is allowed as usual; not where two tasks share one thread (row
	 * P-27). */
	r = shim_get_function_enter3_info((shim_function)enter, info, NULL,
					  &size, NULL);
	if (r != SHIM_E_INSUFFICIENT_BUFFER &&
	    r != SHIM_E_UNSUPPORTED_CALL_SEQUENCE)
		abort();
	__atomic_add_fetch(&asked, r == SHIM_E_INSUFFICIENT_BUFFER,
			   __ATOMIC_RELAXED);
}

static void leave(union shim_function_or_client function, shim_elt_info info)
{
	(void)function, (void)info;
	use_stack(3);
}

static void method_enter(struct shim_profiler *profiler, shim_function function,
			 struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	use_stack(4);
}

static void method_leave(struct shim_profiler *profiler, shim_function function,
			 struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	use_stack(5);
}

static void enter2(shim_function function, uintptr_t client,
		   shim_frame_info frame, struct shim_argument_info *arguments)
{
	(void)function, (void)client, (void)frame, (void)arguments;
	use_stack(6);
}

static void enter1(shim_function function)
{
	(void)function;
	use_stack(7);
}

static void ended(struct shim_profiler *profiler)
{
	(void)profiler;
	for (int i = 0; i < 8; i++)
		if (calls[i] > 0)
			say("%s %lu", names[i], calls[i]);
	if (calls[2] > 0)
		say("asked %d", asked > 18);
}

SHIM_PROFILER_MODULE(large)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	const char *what = strchr(description, '#');

	READ_PATH;
	*strchr(path, '#') = '\0';
	shim_profiler_on_runtime_shutdown_end(handle, ended);
	if (!strcmp(what, "#slow") || !strcmp(what, "#mapped")) {
		shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
				    SHIM_ENABLE_FUNCTION_ARGS);
		shim_profiler_set_enter_leave_function_hooks3_with_info(handle, enter,
							       leave, NULL);
	}
	if (!strcmp(what, "#mapped"))
		shim_profiler_set_function_id_mapper(handle, map);
	if (!strcmp(what, "#filter")) {
		shim_profiler_on_method_enter(handle, method_enter);
		shim_profiler_on_method_leave(handle, method_leave);
		shim_profiler_set_call_instrumentation_filter_callback(handle,
								       filter);
	}
	if (!strcmp(what, "#elt2"))
		shim_profiler_set_enter_leave_function_hooks2(handle, enter2, NULL, NULL);
	if (!strcmp(what, "#elt1"))
		shim_profiler_set_enter_leave_function_hooks(handle, enter1, NULL, NULL);
	return SHIM_OK;
}
'''


@test
def filters_mappers_and_slow_hooks_have_enough_stack():
    program = [compile('little_stack.c', optimize='-O1', flags=['-fno-inline'])]
    directory = module('large', LARGE)
    # main, five calls of work and 25 of add
    for how, wanted in {
            'slow': ['enter 31', 'leave 31', 'asked 1'],
            'mapped': ['mapper 3', 'enter 31', 'leave 31', 'asked 1'],
            'filter': ['filter 3', 'method_enter 31', 'method_leave 31'],
            'elt2': ['enter2 31'], 'elt1': ['enter1 31']}.items():
        path = new_file()
        result = load('large:%s#%s' % (path, how), program, path=directory)
        expect_alike(result, program)
        expect('overrun' not in result.stdout, result.stdout)
        expect_equal((content(path) or '').splitlines(), wanted, how)


# --- P-65: features that an attached module enables work from then on ---

LATE = r'''
#include <dlfcn.h>

static struct shim_profiler_handle *handle;
static unsigned long enters, leaves, reached, lines;
static shim_function leaf;

static enum shim_call_instrumentation_flags all(struct shim_profiler *profiler,
						shim_function function)
{
	(void)profiler, (void)function;
	return SHIM_CALL_INSTRUMENTATION_ENTER | SHIM_CALL_INSTRUMENTATION_LEAVE;
}

static void enter(struct shim_profiler *profiler, shim_function function,
		  struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	__atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED);
}

static void leave(struct shim_profiler *profiler, shim_function function,
		  struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	__atomic_add_fetch(&leaves, 1, __ATOMIC_RELAXED);
}

static void is_reached(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	__atomic_add_fetch(&reached, function == leaf, __ATOMIC_RELAXED);
}

static void count_line(struct shim_profiler *profiler,
		       const struct shim_coverage_data *data)
{
	(void)profiler;
	lines += data->line > 0 && data->counter > 0 && data->file_name;
}

static void watch(void *unused)
{
	(void)unused;
	for (int i = 0; i < 200 && lines < 2; i++) {
		lines = 0;
		usleep(10000);
		shim_profiler_get_coverage_data(handle, leaf, count_line);
	}
	for (int i = 0; i < 1000 && (enters < 1000 || leaves < 1000); i++)
		usleep(10000);
	say("enters %d, leaves %d, reached %lu, lines %d", enters >= 1000,
	    leaves >= 1000, reached, lines >= 2);
}

static void attached(struct shim_profiler *profiler)
{
	(void)profiler;
	shim_thread_create(watch, NULL);
}

SHIM_PROFILER_MODULE(late)
{
	handle = shim_profiler_create(NULL);
	READ_PATH;
	leaf = (shim_function)dlsym(RTLD_DEFAULT, "leaf");
	shim_profiler_on_method_enter(handle, enter);
	shim_profiler_on_method_leave(handle, leave);
	shim_profiler_set_call_instrumentation_filter_callback(handle, all);
	shim_profiler_on_function_reached(handle, is_reached);
	shim_profiler_on_attach_complete(handle, attached);
	return shim_profiler_enable_coverage(handle);
}
'''


@test
def coverage_that_is_enabled_late_has_calls_and_lines():
    directory = module('late', LATE)
    for round_ in range(15):
        log = late(directory, 'busy', 'enters 1, leaves 1, reached 1, lines 1',
                   'none' if round_ % 2 else 'calltree:counts')
        expect_equal(log, '', 'the log')


def late(directory, how, wanted, profile='none'):
    path = new_file()
    with Target(4, how, profile) as target:
        target.ctl('load', '%s/libshim-profiler-late.so:%s' % (directory, path))
        until(lambda: content(path), 'it has seen', 30)
        expect_equal(content(path), wanted + '\n', how)
        target.finish()
    return log_of(target.output)


# While this module's init function still runs, the filters of other modules are called.
LATER = LATE.replace('MODULE(late)', 'MODULE(later)').replace(
    '\treturn', '\tusleep(50000);\n\treturn')


@test
def a_late_filter_decides_about_functions_already_seen():
    first, second = new_file(), new_file()
    with Target(4, profile='none') as target:
        for name, text, path, reached in (('late', LATE, first, 1),
                                          ('later', LATER, second, 0)):
            target.ctl('load', '%s/libshim-profiler-%s.so:%s' % (
                module(name, text), name, path))
            until(lambda: content(path), name, 30)
            expect_equal(content(path), 'enters 1, leaves 1, reached %d, '
                         'lines 1\n' % reached, name)
        target.finish()


@test
def traps_that_are_set_late_end_no_program_that_blocks_signals():
    directory = module('late', LATE)
    log = late(directory, 'handles', 'enters 1, leaves 1, reached 1, lines 1')
    expect_equal(log, '', 'the log')
    # The program's signal mask must stay unchanged.
    log = late(directory, 'blocks', 'enters 1, leaves 1, reached 1, lines 0')
    expect(re.match(r'the thread \d+ blocks SIGTRAP: no line is recorded\n$',
                    log), log)


# Its callbacks and its thread have lines, and so has a library that the thread opens.
AMONG_LINES = r"""
#include <dlfcn.h>
#include <pthread.h>

static int samples, objects;
static volatile int is_attached;

static void complete(struct shim_profiler *profiler)
{
	(void)profiler;
	is_attached = 1;
}

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	(void)profiler, (void)ip, (void)context;
	samples += weight > 0;
	if (samples == 1)
		say("sampled");
}

static void object(struct shim_profiler *profiler,
		   struct shim_coverage_object *object)
{
	(void)profiler, (void)object;
	objects++;
}

static void open_library(void *unused)
{
	int (*work)(int);
	void *library;

	(void)unused;
	/* Before the attachment there is no callback. */
	while (!is_attached)
		usleep(1000);
	library = dlopen("@LIBRARY@", RTLD_NOW);
	work = library ? (int (*)(int))dlsym(library, "work") : NULL;
	say("work %d", work ? work(3) : -1);
	dlclose(library);
	say("closed, objects %d", objects > 0);
}

SHIM_PROFILER_MODULE(among)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	READ_PATH;
	shim_profiler_enable_sampling(handle);
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_on_coverage_object(handle, object);
	shim_profiler_on_attach_complete(handle, complete);
	shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_REAL, 100);
	return shim_thread_create(open_library, NULL);
}
"""


def among(name, library):
    return installed().compile_text(
        HEAD + AMONG_LINES.replace('READ_PATH', "strcpy(path, strchr("
                                   "description, ':') + 1)").replace(
            '@LIBRARY@', library), name, flags=['-g'])


@test
def modules_that_come_while_lines_are_looked_at_end_no_program():
    """Rows P-36 and P-63."""
    for profile in 'coverage', 'coverage;sampling;calltree':
        library = compile('plugin.c', flags=['-shared', '-fPIC',
                                             '-DPLUGIN=alpha'],
                          name='libalpha.so')
        directory, path = among('among', library), new_file()
        with Target(4, 'busy', profile) as target:
            target.ctl('load', '%s/libshim-profiler-among.so:%s' % (directory,
                                                                    path))
            until(lambda: 'closed' in (content(path) or '') and
                  'sampled' in content(path), 'it has opened', 30)
            target.finish()
        expect('work 14\nclosed, objects 1\n' in
               content(path).replace('sampled\n', ''), content(path))


SHARED = r'''
static unsigned long got, given, changed, unknown, waits, acquired, wrong;

/* The few live blocks: each deallocated block must have been allocated. */
static uint64_t known[64];

static int replace(uint64_t before, uint64_t after)
{
	for (int i = 0; i < 64; i++) {
		uint64_t expected = before;

		if (__atomic_compare_exchange_n(&known[i], &expected, after, 0,
						__ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			return 1;
	}
	return 0;
}

static void allocated(struct shim_profiler *profiler,
		      const struct shim_block *block)
{
	(void)profiler;
	if (block->size < 64 || block->size > 1100)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	if (!replace(0, block->serial))
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
}

static void released(struct shim_profiler *profiler,
		     const struct shim_block *block)
{
	(void)profiler;
	if (!replace(block->serial, 0))
		__atomic_add_fetch(&unknown, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&given, 1, __ATOMIC_RELAXED);
}

static void reallocated(struct shim_profiler *profiler,
			const struct shim_block *before,
			const struct shim_block *after)
{
	(void)profiler;
	if (before->serial != after->serial)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&changed, 1, __ATOMIC_RELAXED);
}

static void contended(struct shim_profiler *profiler, struct shim_lock *lock)
{
	(void)profiler;
	if (lock->kind != SHIM_LOCK_MUTEX)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
}

static void was_acquired(struct shim_profiler *profiler, struct shim_lock *lock)
{
	(void)profiler;
	if (lock->began == 0 || lock->ended < lock->began)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&acquired, 1, __ATOMIC_RELAXED);
}

static void watch(void *unused)
{
	(void)unused;
	for (int i = 0; i < 1000 && (got < 100 || given < 100 ||
				     changed < 100 || waits < 10 ||
				     acquired < 10); i++)
		usleep(10000);
	say("got %d, given %d, changed %d, waits %d, acquired %d, wrong %lu, "
	    "unknown %lu", got >= 100, given >= 100, changed >= 100, waits >= 10,
	    acquired >= 10, wrong, unknown);
}

static void attached(struct shim_profiler *profiler)
{
	(void)profiler;
	shim_thread_create(watch, NULL);
}

SHIM_PROFILER_MODULE(shared)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	enum shim_result result;

	READ_PATH;
	shim_profiler_on_allocation(handle, allocated);
	shim_profiler_on_deallocation(handle, released);
	shim_profiler_on_reallocation(handle, reallocated);
	shim_profiler_on_lock_contention(handle, contended);
	shim_profiler_on_lock_acquired(handle, was_acquired);
	shim_profiler_on_attach_complete(handle, attached);
	result = shim_profiler_enable_allocations(handle);
	if (result != SHIM_OK)
		return result;
	return shim_profiler_enable_locks(handle);
}
'''


@test
def allocations_and_locks_may_be_enabled_late():
    module_ = module('shared', SHARED) + '/libshim-profiler-shared.so:'
    for profile in ('none', 'calltree:counts', 'memory', 'locks'):
        with Target(4, 'shares', profile) as target:
            for time_ in range(3):
                path = new_file()
                target.ctl('load', module_ + path)
                until(lambda: content(path), 'it has seen', 30)
                seen, unknown = content(path).split(', unknown ')
                expect_equal(seen, 'got 1, given 1, changed 1, waits 1, '
                             'acquired 1, wrong 0', profile)
                # Blocks from before the attachment are freed as well.
                most = 0 if time_ == 0 and profile in ('none', 'locks') else 5
                expect(int(unknown) <= most, '%s: %s unknown' % (profile,
                                                                unknown))
                until(lambda: target.ctl('unload', 'shared', status=None) ==
                      'unloaded\n', 'it is gone')
            target.finish()


# --- functions in parts: M-28, M-30, M-75 ---

PARTS = r'''
#include <dlfcn.h>

static struct shim_profiler_handle *handle;
static const char *const names[] = { "cut", "catches", "never" };
static shim_function functions[3], beyond;

static struct shim_line table[256];
static uint32_t table_size, hot_size, size;
static unsigned entries, wrong, cold, reached;

static shim_function find(const char *name)
{
	return (shim_function)dlsym(RTLD_DEFAULT, name);
}

/* If an address has several lines, the last one in the table counts. */
static int has_line(uint64_t offset, uint32_t line)
{
	for (uint32_t i = 0; i < table_size; i++)
		if (offset == table[i].start ||
		    (offset > table[i].start && offset < table[i].end &&
		     table[i].line == line))
			return 1;
	return 0;
}

static void check(struct shim_profiler *profiler,
		  const struct shim_coverage_data *data)
{
	(void)profiler;
	entries++;
	wrong += data->code_offset >= size;
	wrong += table_size > 0 && !has_line(data->code_offset, data->line);
	wrong += (data->file_name == NULL) != (data->line == 0);
	cold += data->code_offset >= hot_size;
	reached += data->counter > 0;
}

static void cover(const char *name, shim_function function)
{
	struct shim_code_range ranges[8];
	enum shim_result r;
	uint32_t count = 0;

	entries = wrong = cold = reached = hot_size = size = table_size = 0;
	shim_function_ranges(function, 8, &count, ranges);
	for (uint32_t i = 0; i < count; i++)
		size += (uint32_t)ranges[i].size;
	if (count > 0)
		hot_size = (uint32_t)ranges[0].size;
	if (shim_function_lines(function, 256, &table_size, table) != SHIM_OK)
		table_size = 0;
	r = shim_profiler_get_coverage_data(handle, function, check);
	say("%s: %s, some %d, cold %d, reached %d, wrong %u", name,
	    shim_result_name(r), entries > 0, cold > 0, reached > 0, wrong);
}

static void ended(struct shim_profiler *profiler)
{
	(void)profiler;
	for (int i = 0; i < 3; i++)
		cover(names[i], functions[i]);
	cover("qsort", beyond);
}

/* --- exceptions --- */

static void clause(struct shim_profiler *profiler, shim_function function,
		   uint32_t index, uint32_t type, const void *exception)
{
	char name[64] = "?";

	(void)profiler, (void)exception;
	shim_function_name(function, sizeof(name), NULL, name);
	say("clause %s %u %s", name, index,
	    type == SHIM_CLAUSE_CATCH ? "catch" : "finally");
}

static enum shim_result frame(shim_function function, uintptr_t ip,
			      uintptr_t sp, uint32_t context_size,
			      const void *context, void *found)
{
	(void)ip, (void)sp, (void)context_size, (void)context;
	*(int *)found += function == functions[1];
	return SHIM_OK;
}

static void thrown(struct shim_profiler *profiler, const void *exception,
		   const void *type)
{
	shim_function stack[64];
	uint32_t count = 0;
	int listed = 0, told = 0;

	(void)profiler, (void)exception, (void)type;
	shim_stack_functions(NULL, 64, &count, stack);
	for (uint32_t i = 0; i < count; i++)
		listed += stack[i] == functions[1];
	shim_stack_snapshot(0, frame, 0, &told, NULL, 0);
	say("thrown: listed %d, told %d", listed, told);
}

static void initialized(struct shim_profiler *profiler)
{
	(void)profiler;
	for (int i = 0; i < 3; i++)
		functions[i] = find(names[i]);
	beyond = find("qsort");
}

SHIM_PROFILER_MODULE(parts)
{
	handle = shim_profiler_create(NULL);
	READ_PATH;
	shim_profiler_set_event_mask(handle, (SHIM_MONITOR_ALL &
				     ~SHIM_MONITOR_IMMUTABLE) |
				    SHIM_ENABLE_STACK_SNAPSHOT);
	shim_profiler_on_runtime_initialized(handle, initialized);
	shim_profiler_on_runtime_shutdown_begin(handle, ended);
	shim_profiler_on_exception_clause(handle, clause);
	shim_profiler_on_exception_throw(handle, thrown);
	if (shim_profiler_enable_clauses(NULL) != SHIM_E_INVALIDARG)
		return SHIM_E_FAIL;
	shim_profiler_enable_clauses(handle);
	return shim_profiler_enable_coverage(handle);
}
'''


def parts(flags, name):
    return [compile('parted.cc', optimize='-O2', name=name,
                    flags=['-rdynamic', *flags])]


@test
def offsets_count_through_the_parts_of_a_function():
    lines = told('parts', PARTS, parts([], 'parted'))
    data = [line for line in lines if re.match(r'\w+: SHIM', line)]
    expect_equal(data, [
        'cut: SHIM_OK, some 1, cold 1, reached 1, wrong 0',
        'catches: SHIM_OK, some 1, cold 1, reached 1, wrong 0',
        # Functions that were never called have lines, too; a function without lines
        # gives an error.
        'never: SHIM_OK, some 1, cold 1, reached 0, wrong 0',
        'qsort: SHIM_E_FAIL, some 0, cold 0, reached 0, wrong 0'], 'data')


@test
def without_lines_a_function_with_hooks_has_a_count_called_or_not():
    # -g0 comes last and overrides -g
    lines = told('parts', PARTS, parts(['-g0'], 'parted_plain'),
                 log=['no debug information, built without -g'])
    data = [line for line in lines if re.match(r'\w+: SHIM', line)]
    expect_equal(data, [
        'cut: SHIM_OK, some 1, cold 0, reached 1, wrong 0',
        'catches: SHIM_OK, some 1, cold 0, reached 1, wrong 0',
        'never: SHIM_OK, some 1, cold 0, reached 0, wrong 0',
        'qsort: SHIM_E_FAIL, some 0, cold 0, reached 0, wrong 0'], 'data')


@test
def cold_parts_count_as_their_functions():
    lines = told('parts', PARTS, parts([], 'parted'))
    clauses = [line for line in lines if line.startswith('clause')]
    expect_equal(len(clauses), 2, 'clauses: %s' % clauses)
    expect_equal([re.sub(r' \d+ ', ' N ', c) for c in clauses],
                 ['clause _ZL6refusei N finally', 'clause catches N catch'],
                 'clauses')
    expect_equal([line for line in lines if line.startswith('thrown')],
                 ['thrown: listed 1, told 1'], 'stacks')


# --- for authors: the function of any address, in any context ---

FINDS = r'''
#include <dlfcn.h>

static unsigned long calls, wrong, hits, known;

/* All of these functions are larger than that. */
static enum shim_call_instrumentation_flags filter(struct shim_profiler *profiler,
						   shim_function function)
{
	shim_function found = 0;

	(void)profiler;
	calls++;
	if (shim_function_find((const char *)function + 4, &found) != SHIM_OK ||
	    found != function)
		wrong++;
	return SHIM_CALL_INSTRUMENTATION_NONE;
}

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	shim_function found = 0;

	(void)profiler, (void)context, (void)weight;
	__atomic_add_fetch(&hits, 1, __ATOMIC_RELAXED);
	if (shim_function_find((const void *)ip, &found) == SHIM_OK &&
	    found <= ip)
		__atomic_add_fetch(&known, 1, __ATOMIC_RELAXED);
}

/* An enter hook makes shim call the filter, which accepts no function. */
static void enter(struct shim_profiler *profiler, shim_function function,
		  struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
}

static void ended(struct shim_profiler *profiler)
{
	shim_function found;
	int local;

	(void)profiler;
	say("calls %d, wrong %lu, samples %d, most known %d", calls >= 4, wrong,
	    hits > 10, known > hits / 10 * 9);
	say("libc %d, stack %08x, null %08x %08x",
	    shim_function_find((const char *)qsort + 4, &found) == SHIM_OK &&
		    found == (shim_function)dlsym(RTLD_DEFAULT, "qsort"),
	    (unsigned)shim_function_find(&local, &found),
	    (unsigned)shim_function_find(NULL, &found),
	    (unsigned)shim_function_find(&local, NULL));
}

SHIM_PROFILER_MODULE(finds)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	READ_PATH;
	shim_profiler_on_method_enter(handle, enter);
	shim_profiler_set_call_instrumentation_filter_callback(handle, filter);
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_on_runtime_shutdown_end(handle, ended);
	shim_profiler_enable_sampling(handle);
	return shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_THREAD, 500);
}
'''


@test
def addresses_map_to_functions_in_stripped_programs_too():
    for family in ('gcc', 'clang'):
        for flags, name in (([], 'allocates'), (['-s'], 'allocates_stripped')):
            program = [compile('allocates.c', family, '-O1', flags, name),
                       '200']
            expect_equal(told('finds', FINDS, program), [
                'calls 1, wrong 0, samples 1, most known 1',
                'libc 1, stack 80004005, null 80070057 80070057'],
                '%s %s' % (family, name))


# --- M-66, M-71: objects from before the attachment are reported, and reported first
# ---

BEGINS = r'''
static shim_image loaded[512];
static unsigned count, calls_before, calls, starts, missing, twice;
static int is_started;

static void on_loaded(struct shim_profiler *profiler, shim_image image)
{
	(void)profiler;
	for (unsigned i = 0; i < count; i++)
		twice += loaded[i] == image;
	if (count < 512)
		loaded[count++] = image;
}

static void on_started(struct shim_profiler *profiler, shim_thread thread)
{
	shim_thread current = 0;

	(void)profiler;
	is_started = shim_thread_current(&current) == SHIM_OK &&
		     current == thread;
	starts++;
}

static enum shim_call_instrumentation_flags all(struct shim_profiler *profiler,
						shim_function function)
{
	(void)profiler, (void)function;
	return SHIM_CALL_INSTRUMENTATION_ENTER;
}

static void enter(struct shim_profiler *profiler, shim_function function,
		  struct shim_call_context *context)
{
	(void)profiler, (void)function, (void)context;
	calls++;
	calls_before += !is_started;
}

static void initialized(struct shim_profiler *profiler)
{
	struct shim_enum *list;
	shim_image image;
	unsigned n = 0;

	(void)profiler;
	if (shim_image_enumerate(&list) != SHIM_OK)
		abort();
	while (shim_enum_next(list, 1, &image, NULL) == SHIM_OK) {
		unsigned i = 0;

		while (i < count && loaded[i] != image)
			i++;
		missing += i == count;
		n++;
	}
	shim_enum_destroy(list);
	say("some %d, missing %u, twice %u, starts %u", n > 3, missing, twice,
	    starts);
	say("calls %u, before the thread started %u", calls, calls_before);
}

SHIM_PROFILER_MODULE(begins)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	READ_PATH;
	shim_profiler_on_image_loaded(handle, on_loaded);
	shim_profiler_on_thread_started(handle, on_started);
	shim_profiler_on_method_enter(handle, enter);
	shim_profiler_set_call_instrumentation_filter_callback(handle, all);
	shim_profiler_on_runtime_initialized(handle, initialized);
	return SHIM_OK;
}
'''


def with_headers():
    return ['-I' + os.path.dirname(os.path.dirname(installed().find(
        'profiler.h')))]


def begins():
    return [compile('begins_early.c', flags=with_headers())]


@test
def objects_loaded_at_the_start_raise_events_before_calls():
    program = begins()
    for also in ('', 'calltree:counts;'):
        lines = told('begins', BEGINS, program, also=also)
        # construct and three calls
        expect_equal(lines, ['some 1, missing 0, twice 0, starts 1',
                             'calls 4, before the thread started 0'], also)


@test
def a_profiler_in_the_program_gets_events_of_loaded_objects():
    result = load('none', begins(), EMBEDS='1')
    expect_equal(result.stdout, 'own: started 1, loaded 1\n', 'what it saw')
    expect_equal(run(begins(), EMBEDS='1').stdout, '', 'without shim')


# --- M-4: a module gets its whole description, whatever it contains ---

WHOLE = r'''
SHIM_PROFILER_MODULE(whole)
{
	const char *rest = strchr(description, '|');

	READ_PATH;
	*strchr(path, '|') = '\0';
	say("%.6s%s", description, rest);
	return SHIM_OK;
}
'''


@test
def a_description_may_have_semicolons_and_backslashes():
    directory = module('whole', WHOLE)
    for given, wanted in ((r'a\;b=c', 'a;b=c'), (r'a\\;', 'a\\'),
                          (r'\d\\\;', r'\d\;'), (r'\;\;x', ';;x')):
        paths = [new_file(), new_file()]
        descriptions = ['whole:%s|%s' % (path, given) for path in paths]
        result = load('none;' + descriptions[0] + ';calltree:counts',
                      path=directory)
        expect_log(result)
        expect_equal(calls_of(json_of(result.output)),
                     {'main': 1, 'leaf': 1000}, 'calltree')
        done = profrun('-p', 'calltree:counts', '-p', descriptions[1],
                       fixture(), SHIM_MODULE_PATH=directory)
        expect_equal(done.returncode, 3, done.stderr)
        for path in paths:
            expect_equal(content(path), 'whole:|%s\n' % wanted, given)


# --- P-48: an inquiry that failed for lack of memory succeeds later ---

STARVES = r'''
#include <dlfcn.h>
#include <sys/resource.h>

static size_t in_use(void)
{
	size_t pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%zu", &pages) != 1)
		abort();
	fclose(file);
	return pages * 4096;
}

/* Asks for everything that requires debug information: SHIM_OK, or the first other
 * result. */
static enum shim_result ask(shim_function function)
{
	enum shim_result r;
	uint32_t total, count = 0;

	r = shim_function_lines(function, 0, &total, NULL);
	if (r == SHIM_OK)
		r = shim_get_parameter_count(function, &count);
	if (r == SHIM_OK)
		r = shim_function_file(function, 0, &total, NULL);
	if (r == SHIM_OK && (count != 1 || total == 0))
		return SHIM_E_FAIL;
	return r;
}

static void initialized(struct shim_profiler *profiler)
{
	struct rlimit before, limit;
	unsigned starved[2] = { 0 }, wrong = 0, lost = 0, asked = 0;

	(void)profiler;
	getrlimit(RLIMIT_AS, &before);
	limit = before;
	for (int i = 0; i < COUNT; i++) {
		char name[4200];
		shim_function function;
		enum shim_result r;
		void *library;

		snprintf(name, sizeof(name), "%s/copy%d.so", LIBRARIES, i);
		library = dlopen(name, RTLD_NOW);
		function = library ? (shim_function)dlsym(library, "half") : 0;
		if (!function)
			abort();
		/* At first there is not even memory to open the reader of debug
		 * information. */
		limit.rlim_cur = in_use() + (i == 0 ? 0 : (size_t)i << 18);
		setrlimit(RLIMIT_AS, &limit);
		r = ask(function);
		setrlimit(RLIMIT_AS, &before);
		asked++;
		starved[i > 0] += r == SHIM_E_OUTOFMEMORY;
		if (r != SHIM_OK && r != SHIM_E_OUTOFMEMORY &&
		    r != SHIM_E_NOT_YET_AVAILABLE)
			say("copy %d, starved: %08x", i, r), wrong++;
		r = ask(function);
		if (r != SHIM_OK)
			say("copy %d: %08x", i, r), lost++;
	}
	say("asked %u, starved %u %d, wrong %u, lost %u", asked, starved[0],
	    starved[1] > 2, wrong, lost);
}

SHIM_PROFILER_MODULE(starves)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	READ_PATH;
	shim_profiler_on_runtime_initialized(handle, initialized);
	return SHIM_OK;
}
'''


@test
def queries_succeed_after_memory_was_exhausted():
    count = 16
    library = compile('half.cc', optimize='-O1', flags=['-shared', '-fPIC'],
                      name='half.so')
    directory = shimtest.new_directory('copies')
    for i in range(count):
        shutil.copy(library, os.path.join(directory, 'copy%d.so' % i))
    text = STARVES.replace('COUNT', str(count)).replace(
        'LIBRARIES', '"%s"' % directory)
    expect_equal(told('starves', text), [
        'asked %d, starved 1 1, wrong 0, lost 0' % count], 'answers')


# --- for authors: a pointer for each thread and profiler ---

KEEPS = r'''
static struct shim_profiler_handle *handle, *other;
static unsigned long calls, summed, samples, wrong, begun, refused, late;

struct kept {
	unsigned long calls;
	shim_thread thread;
};

static struct kept *mine(void)
{
	void **data;

	if (shim_thread_data(handle, &data) != SHIM_OK)
		return NULL;
	return *data;
}

static void started(struct shim_profiler *profiler, shim_thread thread)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	void **data, **others;

	(void)profiler;
	if (shim_thread_data(handle, &data) != SHIM_OK || *data != NULL ||
	    shim_thread_data(other, &others) != SHIM_OK || *others != NULL ||
	    others == data)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	kept->thread = thread;
	*data = kept;
	*others = kept;
	__atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
}

static void enter(union shim_function_or_client function)
{
	struct kept *kept = mine();

	(void)function;
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	if (kept)
		kept->calls++;
	else
		/* libc's last round of destructors runs after thread_exited. */
		__atomic_add_fetch(&late, 1, __ATOMIC_RELAXED);
}

static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	struct kept *kept = mine();
	shim_thread current;

	(void)profiler, (void)ip, (void)context, (void)weight;
	__atomic_add_fetch(&samples, 1, __ATOMIC_RELAXED);
	/* The pointer is missing before thread_started and present afterwards. */
	if (kept && shim_thread_current(&current) == SHIM_OK &&
	    kept->thread != current)
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
}

static void exited(struct shim_profiler *profiler, shim_thread thread)
{
	struct kept *kept = mine();
	void **data;

	(void)profiler;
	if (!kept || kept->thread != thread ||
	    shim_thread_data(handle, &data) != SHIM_OK) {
		__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_add_fetch(&summed, kept->calls, __ATOMIC_RELAXED);
	*data = NULL;
	free(kept);
}

static void ended(struct shim_profiler *profiler)
{
	void **data;

	(void)profiler;
	summed += mine()->calls;
	refused += shim_thread_data(NULL, &data) == SHIM_E_INVALIDARG;
	refused += shim_thread_data(handle, NULL) == SHIM_E_INVALIDARG;
	say("threads %lu, calls %d, all %d, samples %d, wrong %lu, refused %lu",
	    begun, calls > 1000, calls == summed + late, samples > 0, wrong, refused);
}

SHIM_PROFILER_MODULE(keeps)
{
	READ_PATH;
	handle = shim_profiler_create(NULL);
	other = shim_profiler_create(NULL);
	shim_profiler_on_thread_started(handle, started);
	shim_profiler_on_thread_exited(handle, exited);
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_on_runtime_shutdown_end(handle, ended);
	shim_profiler_set_enter_leave_function_hooks3(handle, enter, NULL, NULL);
	shim_profiler_enable_sampling(handle);
	return shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_THREAD, 1000);
}
'''


@test
def each_thread_has_a_pointer_for_each_profiler():
    program = [compile('short_threads.c', optimize='-O1', name='short_slow'),
               '2000']
    expect_equal(told('keeps', KEEPS, program), [
        'threads 2001, calls 1, all 1, samples 1, wrong 0, refused 2'],
        'what it kept')


# --- P-47, for authors: the checked mode names the broken contract ---

BREAKS = r'''
static struct shim_profiler_handle *handle;

__attribute__((noinline)) static void list_too_early(void)
{
	struct shim_enum *list;

	say("list %08x", (unsigned)shim_image_enumerate(&list));
}

__attribute__((noinline)) static void make_too_late(void)
{
	say("create %d", shim_profiler_create(NULL) == NULL);
}

/* A fast hook: functions that are not async are refused here. */
static void enter(union shim_function_or_client function)
{
	static int times;

	(void)function;
	if (times++ < 3)
		list_too_early();
}

static void on_event(struct shim_profiler *profiler)
{
	(void)profiler;
}

static void initialized(struct shim_profiler *profiler)
{
	(void)profiler;
	make_too_late();
	shim_profiler_on_runtime_shutdown_end((struct shim_profiler_handle *)&handle,
					      on_event);
	say("info %08x", (unsigned)shim_get_function_enter3_info(
				 1, 1, NULL, NULL, NULL));
}

SHIM_PROFILER_MODULE(breaks)
{
	READ_PATH;
	handle = shim_profiler_create(NULL);
	shim_profiler_on_runtime_initialized(handle, initialized);
	return shim_profiler_set_enter_leave_function_hooks3(handle, enter, NULL, NULL);
}
'''


@test
def the_checked_mode_names_the_caller_that_broke_a_contract():
    wanted = ['create 1', 'info 80131363'] + ['list 80131363'] * 3
    expect_equal(told('breaks', BREAKS), wanted, 'without')
    expect_equal(told('breaks', BREAKS, SHIM_CHECK='1', log=[
        r'^SHIM_CHECK: shim_profiler_create called by make_too_late\+\d+: '
        r'SHIM_E_CALL_ONLY_FROM_INIT \(.+\)$',
        r'^SHIM_CHECK: shim_profiler_on_runtime_shutdown_end called by '
        r'initialized\+\d+: SHIM_E_INVALIDARG \(.+\)$',
        r'^SHIM_CHECK: shim_get_function_enter3_info called by '
        r'initialized\+\d+: SHIM_E_UNSUPPORTED_CALL_SEQUENCE \(.+\)$',
        r'^SHIM_CHECK: shim_image_enumerate called by list_too_early\+\d+: '
        r'SHIM_E_UNSUPPORTED_CALL_SEQUENCE \(.+\)$']), wanted, 'with')


@test
def record_reports_a_module_that_does_not_start():
    directory = module('unwilling', r'''
SHIM_PROFILER_MODULE(unwilling)
{
	(void)say;
	return SHIM_E_FAIL;
}
''')
    for verb, who in (('run', 'profrun'), ('record', 'shim')):
        done = profrun(verb, '-p', 'unwilling', fixture(),
                       SHIM_MODULE_PATH=directory)
        expect_equal(done.returncode, 3, verb)
        expect(re.search("^%s: profiler 'unwilling' was not started: its init "
                         'function returned SHIM_E_FAIL$' % who, done.stderr,
                         re.M), '%s: %s' % (verb, done.stderr))


# --- an example: a shadow stack that signals may interrupt ---

@test
def a_shadow_stack_is_whole_whenever_a_signal_comes():
    for source, deepest in (('signals.c', 8000), ('signals_jumps.c', 2)):
        program = [compile(source, optimize='-O1')]
        result = load('shadow', program)
        expect_equal(result.status, 0, source)
        match = re.search(
            r'^shadow: (\d+) calls, deepest (\d+), lost 0, wrong 0; (\d+) '
            r'samples with (\d+) open calls, untidy 0$',
            log_of(result.output), re.M)
        expect(match, '%s: %s' % (source, log_of(result.output)))
        calls, depth, samples, open_calls = map(int, match.groups())
        expect(calls > 1000 and depth >= deepest, match.group(0))
        expect(samples > 2 and open_calls > samples, match.group(0))


# --- E-77: hooks run in every thread, also before main and after exit ---

COUNTS = r'''
static unsigned long enters;

static void entered(union shim_function_or_client function, shim_elt_info info)
{
	(void)function, (void)info;
	__atomic_fetch_add(&enters, 1, __ATOMIC_RELAXED);
}

static void entered_fast(union shim_function_or_client function)
{
	(void)function;
	__atomic_fetch_add(&enters, 1, __ATOMIC_RELAXED);
}

static void ends(struct shim_profiler *profiler)
{
	(void)profiler;
	say("%lu", enters);
}

SHIM_PROFILER_MODULE(NAME)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	READ_PATH;
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
		(SLOW ? SHIM_ENABLE_FRAME_INFO : 0));
	return SLOW ? shim_profiler_set_enter_leave_function_hooks3_with_info(
				handle, entered, NULL, NULL)
		    : shim_profiler_set_enter_leave_function_hooks3(
				handle, entered_fast, NULL, NULL);
}
'''


def truth_of(source, program):
    """The number of calls: the program prints it, or its opening comment lists them."""
    printed = re.findall(r'^calls \S+ (\d+)$', run([program]).stdout, re.M)
    with open(os.path.join(shimtest.PROGRAMS, source)) as file:
        tree = re.search(r' tree:\n(.*?)\n \*[/\n]', file.read(), re.S).group(1)
    return sum(map(int, printed or re.findall(r' (\d+)$', tree, re.M)))


@test
def hooks_run_in_every_thread_before_main_and_after_exit():
    for source in ('clone_raw.c', 'thread_ends.c', 'statics.cc'):
        program = compile(source)
        for name, slow in (('counts_fast', '0'), ('counts_slow', '1')):
            lines = told(name, COUNTS.replace('NAME', name).replace('SLOW', slow),
                         [program], log=None)
            expect_equal(lines, [str(truth_of(source, program))],
                         '%s, calls of %s' % (name, source))


# --- for authors: the built-in profilers, started by the program ---

def starts():
    return [compile('starts.c', flags=with_headers())]


def files_of(result):
    return sorted(name.split('.')[-1] for _, _, names in os.walk(result.output)
                  for name in names)


@test
def programs_start_the_profilers_of_shim_by_name():
    program = starts()
    for name in ('calltree', 'calltree:counts', 'calltree:exact', 'exceptions',
                 'locks', 'coverage', 'memory', 'none', 'sampling:hz=500',
                 'trace'):
        # The first sample creates the file of samples.
        more = {'COMPUTES': '1'} if name.startswith('sampling') else {}
        asked = load(name, program, **more)
        result = load('none', program, STARTS=name, **more)
        expect_log(result, *log_of(asked.output).splitlines())
        expect_equal(result.stdout, '%s 00000000\n' % name, 'answer')
        expect_equal(files_of(result), files_of(asked), name)
        if name.startswith('calltree'):
            # The first call was before the start.
            expect_equal(calls_of(json_of(result.output)),
                         {'main': 1, 'leaf': 1000}, name)
    result = load('none', program, STARTS='calltree:counts memory calltree',
                  SHIM_FILTER='M:main')
    expect_equal(result.stdout, 'calltree:counts 00000000\nmemory 00000000\n'
                 'calltree 00000000\n', 'several')
    expect_equal(calls_of(json_of(result.output)), {'main': 1}, 'filtered')


@test
def profilers_of_shim_that_cannot_start_say_so():
    program = starts()
    result = load('none', program, STARTS='calltree:nonsense pchist',
                  STARTS_LATE='trace')
    expect_equal(result.stdout, 'calltree:nonsense 80070057\n'
                 'pchist 8013136f\ntrace 00000000\n', 'answers')
    expect_log(result, "profiler 'calltree:nonsense'")
    result = load('none', program, STARTS='calltree:counts',
                  STARTS_LATE='trace pchist calltree:exact')
    expect_equal(result.stdout, 'calltree:counts 00000000\ntrace 80004005\n'
                 'pchist 8013136f\ncalltree:exact 80131374\n', 'answers late')


if __name__ == '__main__':
    shimtest.main()
