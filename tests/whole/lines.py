#!/usr/bin/env python3
"""lines.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

What samples find in inlined code, and on which line (tests/programs/lined.c).
"""
import os
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, run,
                      shim_report, test)

ROUNDS = '1500000'


def program(family='gcc', optimize='-O2', flags=(), instrument=False):
    return compile('lined.c', family, optimize, list(flags),
                   name='lined' + '-hooks' * instrument + ''.join(flags),
                   instrument=instrument)


def sampled(path, profile='sampling', rounds=ROUNDS):
    """A recording of the program at @path."""
    directory = new_directory('recording')
    done = run([path, rounds], directory, profile)
    expect_equal((done.status, done.stderr), (0, ''), 'the program')
    return directory


def folded(directory, *arguments):
    """{(function, ...): count}"""
    paths = {}
    for line in shim_report('export', 'folded', directory,
                            *arguments).splitlines():
        path, count = line.rsplit(' ', 1)
        paths[tuple(path.split(';'))] = int(count)
    return paths


def from_main(paths):
    """The paths below main, with their share."""
    whole = sum(paths.values())
    found = {}
    for path, count in paths.items():
        if 'main' in path:
            below = path[path.index('main'):]
            found[below] = found.get(below, 0) + count / whole
    return found


@test
def samples_have_the_functions_that_are_inlined():
    for family in 'gcc', 'clang':
        paths = from_main(folded(sampled(program(family)), '--value', 'samples'))
        inlined = paths.get(('main', 'inlining', 'twice', 'mix'), 0)
        recursive = paths.get(('main', *4 * ['recurse'], 'mix'), 0)
        # clang makes a loop of the recursion, and so does gcc where it can.
        recursive += paths.get(('main', 'recurse', 'mix'), 0)
        expect(0.5 < inlined < 0.8 and 0.2 < recursive < 0.5,
               '%s: %s' % (family, paths))


@test
def a_call_of_a_function_and_a_sample_in_its_inlined_code_have_one_path():
    for family in 'gcc', 'clang':
        path = program(family, instrument=True)
        calls = set(folded(sampled(path, 'calltree', '1000'), '--value',
                           'calls'))
        samples = folded(sampled(path, rounds='300000'), '--value', 'samples')
        counted = {tuple(f for f in below if not f.startswith('__cyg_profile'))
                   for below, share in from_main(samples).items()
                   if share > 0.02}
        expect(('main', 'inlining', 'twice', 'mix') in counted, samples)
        # (Hooks have functions of their own.)
        functions = {f for call in calls for f in call}
        counted = {tuple(f for f in below if f in functions)
                   for below in counted}
        expect(counted <= calls, '%s: %s are no calls of %s' % (
            family, counted - calls, calls))


if __name__ == '__main__':
    shimtest.main()
