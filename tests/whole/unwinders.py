#!/usr/bin/env python3
"""unwinders.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

shim's unwinder beside libunwind, which libshim.so loads when a profiler asks for it.
tests/bench/unwinders compares a million walks.
"""
import os
import re
import shutil

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record, run,
                      shim_report, test)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INCLUDE = os.path.join(TOP, 'include')
LIBRARY = 'libshim-unwind.so'


def odd_tables():
    if not os.path.exists(os.path.join(os.path.dirname(shimtest.library), LIBRARY)):
        raise shimtest.Skipped('libunwind is not installed')
    return compile('odd_tables.c', 'gcc', '-O1', ['-I', INCLUDE],
                   instrument=False)


@test
def libunwind_has_the_second_opinion():
    program = odd_tables()
    for profile, result in (('sampling', 'cut'), ('sampling:unwinder=own', 'cut'),
                            ('sampling:unwinder=libunwind', 'whole'),
                            ('sampling:unwinder=both', 'whole')):
        done = record([program], profile)
        expect_equal((done.status, done.stderr, done.stdout),
                     (0, '', 'walk %s\nlibrary %s\n' % (
                         result, 'loaded' if result == 'whole' else 'absent')),
                     profile)


@test
def threads_take_turns_in_libunwind_and_forked_children_go_on():
    program = odd_tables()
    for unwinder in 'libunwind', 'both':
        done = record([program, 'threads'], 'sampling:hz=5000,unwinder=' + unwinder)
        expect_equal((done.status, done.stderr, done.stdout),
                     (0, '', 'failed 0\n'), unwinder)
        text = shim_report('export', 'folded', '--value', 'samples', done.output)
        stacks = [line.rsplit(' ', 1) for line in text.splitlines()]
        for pattern in ('start_thread;in_thread;by_expression;compute$',
                        ';main;.*in_thread;by_expression;compute$'):
            expect(sum(int(n) for stack, n in stacks
                       if re.search(pattern, stack)) > 20, stacks)
        cut = sum(int(n) for stack, n in stacks if stack.startswith('[callers'))
        expect(cut <= 0.05 * sum(int(n) for _, n in stacks), stacks)


@test
def a_missing_library_is_logged_and_shim_unwinds_alone():
    program = odd_tables()
    directory = new_directory('alone')
    library = os.path.join(directory, os.path.basename(shimtest.library))
    shutil.copy(shimtest.library, library)
    done = record([program], 'sampling:unwinder=both', LD_PRELOAD=library)
    expect_equal((done.status, done.stdout), (0, 'walk cut\nlibrary absent\n'), 'alone')
    expect('libshim-unwind.so cannot be used' in shim_report('info', done.output),
           shim_report('info', done.output))


@test
def both_unwinders_find_the_same_frames():
    odd_tables()
    directory = new_directory('module')
    module = compile('unwinders.c', 'gcc', '-O1',
                     ['-I', INCLUDE, '-shared', '-fPIC'], instrument=False,
                     name='libshim-profiler-unwinders.so')
    for source, words in (('no_tables.c', ['spin']), ('sampled.c', ['spin', '0', '0']),
                          ('thrown.cc', []), ('unwind.cc', [])):
        program = compile(source, 'gcc', '-O2', ['-I', INCLUDE], instrument=False)
        path = os.path.join(directory, source)
        run([program, *words], new_directory('recording'), 'unwinders:' + path,
            SHIM_MODULE_PATH=os.path.dirname(module))
        text = open(path).read()
        walks, frames, same, differ = map(int, re.match(
            r'walks (\d+) frames (\d+) same (\d+) differ (\d+)', text).groups())
        print('# %s: %d walks, %d frames' % (source, walks, frames))
        expect(differ == 0 and same == walks, text)
        expect(walks > 10 or source != 'no_tables.c', text)


if __name__ == '__main__':
    shimtest.main()
