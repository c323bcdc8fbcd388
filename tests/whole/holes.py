#!/usr/bin/env python3
"""holes.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Files of a recording that are made shorter while the program writes them: its
output and status stay what they were, and the log says which file it was.  The
SIGBUS that this would be is ours; a program's own is as it was.
"""
import os
import re
import signal

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, run,
                      run_both, test)

PROFILES = ['calltree:counts', 'calltree', 'calltree:exact', 'trace', 'memory',
            'sampling:hz=500', 'coverage', 'pchist', 'locks', 'exceptions',
            'calltree;memory;locks;sampling;coverage']
OWN = ['default', 'ignored', 'sent', 'thread', 'masked', 'filled', 'jump',
       'stack', 'nodefer', 'once', 'blocked', 'waiting', 'waiting thread',
       'children']


def shorten(how, profile, family='gcc', optimize='-O1'):
    program = compile('shortened.c', family, optimize)
    alone = run([program, '/nonexistent', 'none'])
    directory = new_directory('shortened')
    done = run([program, directory, how], directory, profile)
    what = '%s, %s' % (profile, how)
    expect_equal((done.status, done.stdout),
                 (5, alone.stdout), what + ': ' + done.stderr)
    expect(re.fullmatch('(shim: .*\n)*', done.stderr), what + done.stderr)
    return done


def logged(directory):
    return run([shimtest.report, 'info', directory]).stdout


@test
def a_program_survives_the_truncation_of_its_recording():
    for profile in PROFILES:
        shorten('0', profile)


@test
def a_program_survives_the_loss_of_half_of_each_file():
    for profile in PROFILES:
        shorten('half', profile)


@test
def a_program_survives_the_loss_of_part_of_a_page():
    for profile in PROFILES:
        for size in ('100', '4200', '70000'):
            shorten(size, profile)


@test
def nor_that_all_that_was_written_becomes_zero():
    for profile in PROFILES:
        shorten('zeros', profile)


@test
def a_program_survives_repeated_truncation():
    for profile in PROFILES:
        for family, optimize in (('gcc', '-O0'), ('clang', '-O2')):
            shorten('beside', profile, family, optimize)


@test
def the_log_names_each_file_that_was_made_shorter_once():
    """But those of meta, where the log is: in the recording's own log."""
    program = compile('shortened.c', 'gcc', '-O1')
    directory = new_directory('named')
    done = run([program, directory, '0', 'calltree'], directory)
    expect_equal(done.status, 5, done.stderr)
    names = re.findall(r'(\d\S+) was truncated', logged(directory))
    expect(names and all(n.endswith('.calltree') for n in names), names)
    for process in os.listdir(directory):
        info = run([shimtest.report, 'info',
                    os.path.join(directory, process)]).stdout
        names = re.findall(r'(\d\S+) was truncated', info)
        expect_equal(sorted(names), sorted(set(names)), process)


@test
def a_truncated_meta_is_reported_where_profrun_looks():
    program = compile('shortened.c', 'gcc', '-O1')
    directory = new_directory('meta')
    done = run([program, directory, '0', 'meta'], directory)
    expect_equal((done.status, done.stderr), (5, ''), 'the program')
    said = open(os.path.join(directory, 'log')).read()
    expect('meta was truncated' in said, said)


@test
def a_sigbus_of_the_programs_own_is_as_it_was():
    for family, optimize in (('gcc', '-O0'), ('clang', '-O2')):
        program = compile('own_bus.c', family, optimize)
        for what in OWN:
            for profile in shimtest.some(PROFILES, 3, len(what)):
                done = run_both([program, what], profile)
                if what in ('default', 'ignored', 'sent', 'masked', 'once'):
                    expect_equal(done.status, -signal.SIGBUS, what)
                else:
                    expect_equal(done.status, 3 if what != 'thread' else
                                 -signal.SIGBUS, what)


if __name__ == '__main__':
    shimtest.main()
