#!/usr/bin/env python3
"""random_calls.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Many calls of random functions with random arguments, from a callback and from
another thread, while the program calls hooked functions.  There may be no crash and no
hang, and the program's output must stay the same.  Generated from the headers, like
contexts.py.  RANDOM_CALLS is the number of calls in each of the two places (150,000),
RANDOM_SEED the first seed.
"""
import os
import re
import subprocess

import contexts
import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, test

shimtest.tests.clear()          # the tests of contexts.py do not run here

# These end the test, replace its foundations, or run code that they are given.
LEFT_OUT = {
    'shim_profiler_load': 'loads what a random string names',
    'shim_thread_create': 'thousands of threads',
    'shim_profiler_quiesce': 'waits for the other thread, which may wait, too',
    'shim_profiler_destroy': 'the same',
    'shim_profiler_detach': 'ends the test',
    'shim_enum_next': 'takes what shim_enum_clone made; see below',
    'shim_record_open': 'a file each time',
    'shim_record_grow': 'up to 64 MiB each time',
    'shim_memory_discard': 'takes what shim_memory_map made; contexts.py calls it',
    'shim_signals_restore': 'blocks what the random number says',
}


def argument(function, parameter):
    """C text of a random value for the parameter."""
    pointer = '*' in parameter
    if 'struct shim_profiler_handle' in parameter:
        return 'random_handle()'
    if 'struct shim_enum **' in parameter:
        return 'maybe(&an_enum)'
    if 'struct shim_enum' in parameter:
        return 'random_enum()'
    if 'struct shim_record' in parameter:
        return 'maybe(a_record)'
    if 'struct shim_lock' in parameter:
        return 'maybe(&a_lock)'
    if '(*' in parameter or re.search(
            r'shim_(block_callback|function_hook|frame_hook|site_hook|'
            r'function_hook_with_info|function_hook1|\w+_hook2|cleanup_callback|'
            r'snapshot_callback|function_id_mapper2?|'
            r'call_instrumentation_filter_callback)\b', parameter):
        return 'NULL'
    if parameter.startswith('const void *') and '**' not in parameter:
        return '(const void *)random_address()'
    if pointer or '[' in parameter:
        # Every output buffer is at least as long as any count.
        return '(void *)random_buffer()'
    if parameter.startswith('shim_function '):
        return 'random_address()'
    if parameter.startswith(('shim_elt_info', 'uintptr_t')):
        return 'random_address()'
    if parameter.startswith(('shim_image', 'shim_thread')):
        return 'random_id()'
    if re.search(r'\b(count|size)$', parameter):
        return 'random_count()'
    return '(uint32_t)random_number()'


MODULE = r'''
@INCLUDES@
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread uint64_t seed;
static struct shim_profiler_handle *handles[4];
static struct shim_record *a_record;
static pthread_rwlock_t memory_of_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct shim_lock a_lock = { .address = (uintptr_t)&memory_of_lock };
static __thread struct shim_enum *an_enum;
static unsigned long calls, done[2];
static __thread char buffers[3][1 << 16];
int some_data;

static uint64_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uintptr_t random_address(void)
{
	static const uintptr_t odd[] = { 0, 1, 8, (uintptr_t)-1, 4096 };
	uint64_t n = random_number();

	switch (n % 8) {
	case 0: return odd[n / 8 % 5];
	case 1: return random_number();
	case 2: return random_number() >> 17;
	case 3: return (uintptr_t)&n;
	case 4: return (uintptr_t)&some_data;
	case 5: return (uintptr_t)random_address + n / 8 % 512;
	case 6: return (uintptr_t)malloc + n / 8 % 65536;
	default: return (uintptr_t)random_address;
	}
}

static struct shim_profiler_handle *random_handle(void)
{
	uint64_t n = random_number();

	if (n % 4 == 0)
		return (struct shim_profiler_handle *)random_address();
	if (n % 16 == 1)
		return (struct shim_profiler_handle *)((char *)handles[0] +
					      n / 16 % 100000 * 8);
	return handles[n / 16 % 4];
}

static struct shim_enum *random_enum(void)
{
	return random_number() % 3 ? an_enum :
				     (struct shim_enum *)random_address();
}

static uint64_t random_id(void)
{
	uint64_t n = random_number(), id = 0;

	if (n % 4 == 0)
		return random_number();
	if (n % 4 == 1)
		return (n >> 20) % 20 << 16 | (n >> 40) % 20;
	if (n % 4 == 2)
		shim_thread_current(&id);
	else
		shim_image_from_address((void *)random_address, &id);
	return id;
}

static uint32_t random_count(void)
{
	return random_number() % 3 ? random_number() % 600 : 0;
}

static void *random_buffer(void)
{
	uint64_t n = random_number();

	return n % 5 ? buffers[n / 5 % 3] : NULL;
}

static void *maybe(void *place)
{
	return random_number() % 5 ? place : NULL;
}

static void call_one(void)
{
	a_lock.kind = (uint32_t)random_number() % 8;
	switch (random_number() % @COUNT@) {
@CASES@
	}
}

static void run_calls(int who)
{
	seed = (uint64_t)atol(getenv("RANDOM_SEED")) * 7919 + 88172645463325252u +
	       (uint64_t)who;
	for (unsigned long i = 0; i < calls; i++) {
		if (an_enum && random_number() % 8 == 0) {
			shim_enum_destroy(an_enum);
			an_enum = NULL;
		}
		call_one();
		done[who]++;
	}
}

static void *run_beside(void *unused)
{
	run_calls(1);
	return unused;
}

static void on_name(struct shim_profiler *p, shim_thread t, const char *n)
{
	static int runs;
	pthread_t thread;

	(void)p; (void)t; (void)n;
	if (runs++)
		return;
	pthread_create(&thread, NULL, run_beside, NULL);
	run_calls(0);
	pthread_join(thread, NULL);
	shim_hooks_enable();
	for (int i = 0; i < 4; i++)
		shim_profiler_set_event_mask(handles[i], SHIM_MONITOR_ALL &
						~SHIM_MONITOR_IMMUTABLE);
}

static unsigned long enters, leaves;

static void on_enter(union shim_function_or_client f)
{
	(void)f;
	__atomic_add_fetch(&enters, 1, __ATOMIC_RELAXED);
}

static void on_leave(union shim_function_or_client f)
{
	(void)f;
	__atomic_add_fetch(&leaves, 1, __ATOMIC_RELAXED);
}

static void on_end(struct shim_profiler *p)
{
	FILE *file = fopen((const char *)p, "w");

	fprintf(file, "%lu %lu %d\n", done[0], done[1], enters > 0);
	fclose(file);
}

SHIM_PROFILER_MODULE(random)
{
	static char path[4096];

	enum shim_lost cause;
	void *memory;
	size_t size;

	a_record = shim_record_open("random", &memory, &size, &cause);
	strcpy(path, strchr(description, ':') + 1);
	calls = (unsigned long)atol(getenv("RANDOM_CALLS"));
	for (int i = 0; i < 4; i++)
		handles[i] = shim_profiler_create((void *)path);
	shim_profiler_set_enter_leave_function_hooks3(handles[0], on_enter, on_leave,
					     NULL);
	shim_profiler_on_thread_name(handles[1], on_name);
	shim_profiler_on_runtime_shutdown_end(handles[1], on_end);
	return SHIM_OK;
}
'''


def module_source():
    cases = []
    for function in contexts.declarations():
        if function.name in LEFT_OUT:
            continue
        arguments = ', '.join(argument(function, p)
                              for p in function.parameters)
        call = '%s(%s)' % (function.name, arguments)
        if function.name == 'shim_signals_block':
            call = 'shim_signals_restore(%s)' % call
        cases.append('\tcase %d: (void)%s; break;' % (len(cases), call))
    return (MODULE.replace('@INCLUDES@', contexts.INCLUDES)
            .replace('@CASES@', '\n'.join(cases))
            .replace('@COUNT@', str(len(cases))))


@test
def random_calls_crash_nothing():
    calls = os.environ.get('RANDOM_CALLS', '150000')
    directory = new_directory('random')
    source = os.path.join(directory, 'random.c')
    out = os.path.join(directory, 'results')
    with open(source, 'w') as file:
        file.write(module_source())
    done = subprocess.run(
        ['cc', '-shared', '-fPIC', '-O1', '-g', '-w', '-I', contexts.INCLUDE,
         source, '-o', os.path.join(directory, 'libshim-profiler-random.so')],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, done.stdout.decode())
    host = compile('random_host.c', 'gcc', '-O1')
    done = run([host], new_directory('recording'), 'calltree;random:' + out,
               timeout=150, SHIM_MODULE_PATH=directory, RANDOM_CALLS=calls,
               RANDOM_SEED=os.environ.get('RANDOM_SEED', '1'))
    expect_equal((done.status, done.stderr, done.stdout), (0, '', 'done\n'),
                 'the program')
    expect_equal(open(out).read(), '%s %s 1\n' % (calls, calls), 'calls')


if __name__ == '__main__':
    shimtest.main()
