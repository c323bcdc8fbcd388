#!/usr/bin/env python3
"""results.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Results in slow hooks where they are hard to find: computed after the hook
(tests/programs/results.c), in all kinds of builds, or not returned at all
(tests/programs/results_left.cc). arguments.py tests the prototypes.
"""
import os
import re

import arguments
import shimtest
from shimtest import (BUILDS, Skipped, add_test, compile, expect, expect_equal,
                      record)

shimtest.tests.clear()          # the tests of arguments.py do not run here

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')

# Rounds of each of the 88 functions.
ROUNDS = {'values': 20, 'elt2': 2, 'threads': 300, 'fork': 50, 'signals': 300,
          'stack': 1}

HARDENED = ['-fstack-protector-strong', '-fcf-protection']
NEWER = ['-march=x86-64-v3']
FLAGS = [('-O2', HARDENED), ('-O2', ['-fstack-protector-all', '-fno-plt']),
         ('-O0', ['-fstack-protector-all']), ('-Os', []), ('-O1', []),
         ('-O2', ['-fomit-frame-pointer']), ('-O2', ['-mavx']), ('-O3', NEWER)]


def skip_if_old(flags):
    with open('/proc/cpuinfo') as file:
        found = set(file.read().split())
    wanted = {'avx'} if '-mavx' in flags else set()
    if flags == NEWER:
        wanted = {'avx', 'avx2', 'bmi1', 'bmi2', 'fma', 'movbe', 'f16c'}
    if wanted - found:
        raise Skipped('this processor has no %s' % sorted(wanted - found))


def name_of(optimize, flags):
    return '_'.join([optimize] + [flag.lstrip('-') for flag in flags])


def results(what, family, optimize, flags=()):
    skip_if_old(list(flags))
    path = compile('results.c', family, optimize,
                   ['-w', '-I', INCLUDE, *flags, '-pthread', '-lm'],
                   name='results_' + name_of(optimize, flags))
    result = record([path, what, str(ROUNDS[what])], 'none')
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    lines = result.stdout.splitlines()
    print('# %s' % lines[-1])
    for line in lines:
        found = re.fullmatch(r'right (\d+), missing (\d+), wrong 0', line)
        expect(found, '\n'.join(lines[:20]))
        right, missing = int(found.group(1)), int(found.group(2))
        expect(right > 0 and 100 * missing <= right + missing, line)


for what in ROUNDS:
    for family, optimize in BUILDS:
        add_test('%s_%s%s' % (what, family, optimize),
                 lambda w=what, f=family, o=optimize: results(w, f, o))
for optimize, flags in FLAGS:
    for family in ('gcc', 'clang'):
        add_test('values_%s%s' % (family, name_of(optimize, flags)),
                 lambda f=family, o=optimize, s=flags:
                 results('values', f, o, s))


def prototypes(family, optimize, flags, cxx):
    skip_if_old(flags)
    arguments.compare_results(family, optimize, cxx, ['-g', *flags])


for optimize, flags in [('-O2', HARDENED), ('-Os', []), ('-O3', NEWER)]:
    for family in ('gcc', 'clang'):
        for cxx in (False, True):
            # Each of the two languages has each of the flags, and each of the compilers.
            if not shimtest.ALL and cxx != (family == 'clang') ^ (optimize == '-O3'):
                continue
            add_test('no_result_is_wrong_%s_%s%s' % (
                'c++' if cxx else 'c', family, name_of(optimize, flags)),
                lambda f=family, o=optimize, s=flags, c=cxx:
                prototypes(f, o, s, c))


LEFT = '-4-not-returned'


def left(family, optimize, *how):
    """The results of all calls, in order; None: no result."""
    recursions = []

    def recursive(n):
        value = 1 if n < 2 else (n * recursive(n - 1) +
                                 recursive(n - 2) % 3)
        recursions.append(value)
        return value

    recursive(7)
    path = compile('results_left.cc', family, optimize, ['-I', INCLUDE])
    result = record([path, *how], 'none')
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    got = {}
    for line in result.stdout.splitlines():
        name, value = line.split()
        got.setdefault(name, []).append(value)
    tails = family == 'clang'
    # During unwinding, gcc's functions call the leave hook, clang's do not.
    nothing = [LEFT] * 2 if how and family == 'gcc' else []
    expect_equal(got.pop('raises'), ['101', '102'] + nothing, 'raises')
    expect_equal(got.pop('passes'), ['1101', '1102'] + nothing, 'passes')
    expect_equal(got.pop('around')[0][0] != '-', True, 'around')
    expect_equal(got.pop('around_nothing'), ['-0-none'] * 4, 'around_nothing')
    expect_equal(got.pop('target')[0], '4002', 'target')
    expect_equal(got.pop('tail'), [LEFT] * 4 if tails else
                 ['4002', '4003', '4004', '4005'], 'tail')
    expect_equal(got.pop('either'), [LEFT if tails else '6', '7', '8', '9'],
                 'either')
    expect_equal(set(got.pop('inlined')), {'-4-inlined'}, 'inlined')
    told = got.pop('recursive')
    expect_equal(len(told), len(recursions), 'recursive')
    right = [a for a, b in zip(told, recursions) if a == str(b)]
    expect(len(right) + told.count('-4-inlined') == len(told), str(told))
    expect(len(right) > 0, str(told))
    expect_equal(got, {}, 'others')


for family, optimize in BUILDS + [('gcc', '-O3'), ('clang', '-O3')]:
    add_test('what_does_not_return_has_no_result_%s%s' % (family, optimize),
             lambda f=family, o=optimize: left(f, o))
    add_test('what_raw_leave_hooks_are_told_has_no_result_%s%s' % (
                 family, optimize),
             lambda f=family, o=optimize: left(f, o, 'raw'))

if __name__ == '__main__':
    shimtest.main()
