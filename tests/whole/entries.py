#!/usr/bin/env python3
"""entries.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Marks that are only at entries (-fpatchable-function-entry, -mrecord-mcount): calls, ends
and results (tests/programs/entries.cc).
"""
import os
import shutil
import subprocess

import shimtest
from shimtest import (add_test, compile, expect, expect_equal, need, new_directory, record, run,
                      test, tree_of)


def build(family, optimize, flags=()):
    name = 'entries' + ''.join(flags).replace('=', '')
    return compile('entries.cc', family, optimize, ['-rdynamic', *flags],
                   name=name, instrument=False)


def patchable(family, optimize, length=5):
    return build(family, optimize,
                 ['-fpatchable-function-entry=%s' % length])


def expect_same(program, plain, profile, **more):
    wanted, got = run([plain]), record([program], profile, **more)
    expect_equal((got.status, got.stdout, got.stderr),
                 (wanted.status, wanted.stdout, wanted.stderr), profile)
    return got


def calls(result):
    return tree_of(result.output, 64)


def add_trees(family):
    def trees_equal_those_of_hooks():
        marked = expect_same(patchable(family, '-O0'), build(family, '-O0'),
                             'calltree:counts')
        hooked = record([compile('entries.cc', family, '-O0', ['-rdynamic'])])
        wanted = calls(hooked)
        expect('main;catcher(int);thrower(int)' in wanted or len(wanted) > 50,
               'no tree')
        expect_equal(shimtest.difference(calls(marked), wanted), '', family)

    add_test('trees_equal_those_of_hooks_' + family, trees_equal_those_of_hooks)


def add_same(family, length):
    def the_program_prints_the_same():
        for profile in ['calltree', 'trace', 'calltree:exact']:
            expect_same(patchable(family, '-O2', length),
                        build(family, '-O2'), profile)

    add_test('the_program_prints_the_same_%s_%s' % (family, length),
             the_program_prints_the_same)


for family in ['gcc', 'clang']:
    add_trees(family)
    for length in [5, 16]:
        add_same(family, length)
# No-ops in front of the function are not executed.
add_same('gcc', '9,4')


@test
def several_profilers_share_the_marks():
    result = expect_same(patchable('gcc', '-O2'), build('gcc', '-O2'),
                         'calltree:counts;exceptions:unwind')
    expect(len(calls(result)) > 30, 'no tree')


@test
def a_filter_leaves_functions_out():
    program = patchable('gcc', '-O0')
    every = calls(record([program]))
    some = calls(record([program], SHIM_FILTER='all,-M:f_int'))
    expect(any('f_int' in path for path in every), 'f_int is not recorded')
    expect(len(some) > 20, 'nothing is recorded')


@test
def no_ops_that_are_too_short_are_refused_with_the_reason():
    result = record([patchable('gcc', '-O0', 3)], SHIM_VERBOSE='1')
    expect_equal(result.status, 0, 'status')
    expect('-fpatchable-function-entry=5' in result.stderr, result.stderr)


@test
def nothing_recorded_leaves_the_no_ops():
    program = patchable('gcc', '-O2')
    expect_same(program, build('gcc', '-O2'), 'none')


@test
def no_ops_of_all_lengths_are_marks():
    """clang writes as few instructions as it can, with different prefixes."""
    for first, family in enumerate(('gcc', 'clang')):
        for length in shimtest.some([*range(5, 18), 40], 2, first):
            program = compile('nesting.c', family, '-O0', [
                '-fpatchable-function-entry=%d' % length], name='nesting-%d' % length,
                instrument=False)
            result = record([program])
            found = shimtest.calls_of(shimtest.json_of(result.output))
            expect_equal({name: found.get(name) for name in result.truth()}, result.truth(),
                         (family, length))
            # The other marks are switched off.
            result = expect_same(program, program, 'calltree:counts', SHIM_FILTER='M:a,M:fact')
            expect_equal(sorted({path.split(';')[-1] for path in calls(result)}),
                         ['a', 'fact'], (family, length))
            expect_same(program, program, 'coverage')


@test
def a_program_may_have_no_room_below_it():
    """lld links programs without PIE to 2 MiB."""
    need('ld.lld')
    program = compile('nesting.c', 'gcc', '-O0', [
        '-fpatchable-function-entry=5', '-fuse-ld=lld', '-fno-pie', '-no-pie'],
        name='nesting-lld', instrument=False)
    result = expect_same(program, program, 'calltree')
    found = shimtest.calls_of(shimtest.json_of(result.output))
    expect_equal({name: found.get(name) for name in result.truth()}, result.truth(), 'calls')


OPENED = '''
__attribute__((noinline)) int helper(int n) { __asm__ volatile(""); return n + 1; }
int opened(int n) { return helper(n) + helper(n + 1); }
'''
OPENS = '''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_barrier_t barrier;
static char **libraries;
static void *open_all(void *unused)
{
	for (char **at = libraries; *at; at++) {
		pthread_barrier_wait(&barrier);
		int (*opened)(int) = dlsym(dlopen(*at, RTLD_NOW), "opened");
		opened(1);
	}
	return unused;
}
int main(int count, char **arguments)
{
	pthread_t threads[4];
	libraries = arguments + 1;
	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, open_all, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return count > 1 ? 3 : 4;
}
'''


# Seen to lose up to a quarter of the calls when only the thread that opened a library looked at it.
@test
def threads_may_open_the_same_library_at_once():
    directory = new_directory('opened')

    def build_in(name, text, *flags):
        source, made = (os.path.join(directory, name + end) for end in ('.c', '.out'))
        with open(source, 'w') as file:
            file.write(text)
        subprocess.run(['gcc', '-O1', '-pthread', source, '-o', made, *flags], check=True)
        return made
    library = build_in('opened', OPENED, '-shared', '-fPIC', '-fpatchable-function-entry=5')
    libraries = [shutil.copy(library, os.path.join(directory, '%d.so' % i)) for i in range(60)]
    program = build_in('opens', OPENS, '-finstrument-functions')
    for profile in 'calltree', 'trace':
        result = record([program, *libraries], profile)
        expect_equal(result.status, 3, 'status')
        rows = shimtest.json_of(result.output)['functions']
        found = {name: sum(row['calls'] for row in rows if row['name'] == name)
                 for name in ('opened', 'helper')}
        expect_equal(found, {'opened': 240, 'helper': 480}, profile)


@test
def functions_are_found_without_unwind_tables():
    """The first no-op may be in front of the function, whose beginning only its symbol tells."""
    for family in 'gcc', 'clang':
        for length, more in ('16,2', []), ('9,4', ['-fcf-protection']), ('5', []):
            program = compile('nesting.c', family, '-O1', [
                '-fno-asynchronous-unwind-tables', '-fpatchable-function-entry=' + length,
                *more], name='nesting-%s' % length, instrument=False)
            result = expect_same(program, program, 'calltree')
            expect_equal(calls(result).get('main'), 1, (family, length))
            stripped = program + '-stripped'
            subprocess.run(['strip', '-o', stripped, program], check=True)
            expect_same(stripped, program, 'calltree')


@test
def personality_routines_of_any_language_find_the_frame():
    """LuaJIT's takes _Unwind_GetCFA for the stack pointer at the call."""
    for family in 'gcc', 'clang':
        plain = compile('personality.c', family, '-O1', instrument=False)
        marked = compile('personality.c', family, '-O1', ['-fpatchable-function-entry=5'],
                         name='personality-entries', instrument=False)
        for program, more in (marked, {}), (plain, {'SHIM_PATCH': '*,-guarded'}):
            for profile in 'calltree', 'trace':
                result = expect_same(program, plain, profile, **more)
                tree = calls(result)
                expect_equal({path: tree[path] for path in tree if 'print' not in path},
                             {'main': 1, 'main;thrower': 1000, 'main;thrower;deeper': 1000,
                              'main;thrower;deeper;personality': 2000, 'main;leaf': 1000},
                             (family, profile))


@test
def calls_of_fentry_are_replaced():
    flags = ['-pg', '-mfentry', '-mrecord-mcount', '-fno-pie', '-no-pie']
    for more in [[], ['-mnop-mcount']]:
        program = build('gcc', '-O0', flags + more)
        result = record([program], 'calltree:counts')
        expect(any('catcher' in path for path in calls(result)), str(more))


@test
def a_budget_switches_entries_off():
    """Calls that are open when their function goes off end without a mark."""
    no_ops = ['-pg', '-mfentry', '-mrecord-mcount', '-mnop-mcount', '-no-pie', '-fno-pie']
    for flags, more in (['-fpatchable-function-entry=5'], {}), (no_ops, {}), \
            ([], {'SHIM_PATCH': '*'}):
        program = shimtest.compile('entries_deep.c', 'gcc', '-O2', flags,
                                   'entries_deep-%d' % len(flags),
                                   instrument=False)
        result = shimtest.record([program], 'calltree', SHIM_BUDGET='10',
                                 **more)
        head = shimtest.shim_report('report', result.output)
        expect('could not be switched off' not in head and
               'counted without paths' in head, head)


@test
def entries_count_calls_for_a_budget():
    """What is counted and not switched off stays exact, in threads and in a child."""
    program = shimtest.compile('calls_short.c', 'gcc', '-O2',
                               ['-fpatchable-function-entry=5', '-pthread'],
                               'calls_short-entries', instrument=False)
    shimtest.expect_counted(program)


def preserved():
    include = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')
    return compile('preserved.c', 'clang', '-O2',
                   ['-fpatchable-function-entry=5', '-I', include],
                   name='preserved-entries', instrument=False)


@test
def hooks_may_use_all_vector_registers():
    result = record([preserved(), 'hooks'], 'none')
    expect_equal((result.status, result.stdout),
                 (0, 'kept\ncalls 12\nhooks 24\n'), 'kept')


@test
def registers_that_a_convention_preserves_are_kept():
    program = preserved()
    for profile in ['calltree', 'calltree:counts', 'calltree:exact', 'trace',
                    'calltree;exceptions:unwind']:
        result = record([program], profile)
        expect_equal((result.status, result.stdout), (0, 'kept\ncalls 12\n'),
                     profile)
        expect_equal(sum(shimtest.calls_of(shimtest.json_of(
            result.output)).values()), 12, profile)


@test
def callers_may_know_which_registers_a_function_leaves_alone():
    shimtest.expect_kept_registers('gcc', ['-fpatchable-function-entry=5'])
    shimtest.expect_kept_registers('gcc', ['-pg', '-mfentry', '-mnop-mcount', '-mrecord-mcount',
                                           '-fno-pie', '-no-pie'])
    shimtest.expect_kept_registers('clang', ['-fpatchable-function-entry=5',
                                             '-mllvm', '-enable-ipra'])


@test
def samples_in_a_constructor_leave_the_marks_alone():
    """A sample finds the library while its constructor runs, often between two no-ops: one run
    in four crashed when the jump was written then.  It is written after dlopen, so samples do
    not decide which calls are recorded."""
    runs = 10 if shimtest.ALL else 5
    plugin = ['-DLIBRARY', '-shared', '-fPIC', '-g0']
    program = compile('entries_opens.c', 'gcc', '-O1', instrument=False, libraries=['-ldl'])
    library = compile('entries_opens.c', 'gcc', '-O1',
                      [*plugin, '-fpatchable-function-entry=5'], 'entries_opens.so',
                      instrument=False)
    plain = compile('entries_opens.c', 'gcc', '-O1', [*plugin, '-DLONG'],
                    'entries_opens_plain.so', instrument=False)
    for library, more in [(library, {}), (plain, {'SHIM_PATCH': 'short_one,later'})]:
        profiles = ['calltree:counts'] + runs * ['calltree:counts;sampling:hz=4000']
        results = [record([program, library], profile, **more) for profile in profiles]
        expect_equal([(result.status, result.stdout) for result in results],
                     (1 + runs) * [(0, '4\n')], more)
        for result in results:
            expect_equal(calls(result), {'later': 1, 'later;short_one': 1}, more)


if __name__ == '__main__':
    shimtest.main()
