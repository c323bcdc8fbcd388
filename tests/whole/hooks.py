#!/usr/bin/env python3
"""hooks.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Enter, leave, filters and mappers, as a program with profilers of its own sees
them (tests/programs/hooked.c): every generation of hooks, alone, together, and
beside the call tree.
"""
import os
import re

import shimtest
from shimtest import (BUILDS, add_test, compile, expect_equal, record, run,
                      test, tree_of)

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')

ALL = ('Eouter Einner Elast Llast Linner Einner Elast Llast Linner '
       'Louter').split()
ONCE = 'Eouter Einner Elast Llast Linner Louter'.split()


def hooked(case, family, optimize, profile='none', status=0):
    # -fno-optimize-sibling-calls: the golden sequence has no tail calls.
    program = compile('hooked.c', family, optimize,
                      ['-I', INCLUDE, '-fno-optimize-sibling-calls'])
    result = record([program, case], profile)
    expect_equal((result.status, result.stderr), (status, ''), case)
    return dict(line.split(' ', 1)
                for line in result.stdout.splitlines()), result


OTHER = {'E': 'e', 'L': 'l'}


def other(events):
    return [OTHER[e[0]] + e[1:] for e in events]


def both(events):
    """Two profilers: the newer one's hook comes first."""
    mixed = []
    for e in events:
        mixed += [e, OTHER[e[0]] + e[1:]]
    return mixed


def without(events, name):
    return [e for e in events if e[1:] != name]


# case: the events, and how often a mapper or filter was asked.
CASES = {
    'fast': (ALL, 0),
    'slow': (ALL, 0),
    'slow-asks': (ALL, 0),
    # What a slow hook calls is not told (row E-36).
    'slow-calls': (ALL, 0),
    'elt2': (ALL, 0),
    'elt1': (ALL, 0),
    'two': (both(ALL), 0),
    'fast-and-slow': (both(ALL), 0),
    # All ids are last's; inner is excluded.
    'mapper': (['Elast', 'Elast', 'Llast', 'Elast', 'Llast', 'Llast'], 3),
    'mapper-zero': (without(ALL, 'inner'), 3),
    'mapper2': (ALL, 3),
    'filter': (without(ALL, 'inner'), 3),
    'filter-enter': ([e for e in without(ALL, 'inner') if e[0] == 'E'], 3),
    'filter-context': ([], 3),
    'filter-hooks': ([e for e in without(ALL, 'inner') if e[0] == 'E'], 3),
    # Each gets what its own filter says (decision 4 of Appendix E).
    'filter-two': ([e for event in ALL for e in
                    (([event] if event[0] == 'E' and event[1:] != 'inner'
                      else []) + other([event]))], 3),
    'filter-live': (without(ALL, 'inner') + without(ONCE, 'inner') +
                    ['|', '|', 'Llast', 'Louter', '|', 'Einner'], 9),
    'no-filter': ([], 0),
    # The main thread, and one with 16 KiB.
    'small-stack': (['started', 'started'], 0),
    'toggle': (ALL + ['|', '|'] + ONCE, 0),
    'destroy': (ALL, 0),
}


def one(case, family, optimize, profile):
    def run_it():
        facts, result = hooked(case, family, optimize, profile)
        events, asked = CASES[case]
        expect_equal(facts.get('log', '').split(), events, 'events')
        expect_equal(int(facts['asked']), asked, 'asked')
        if case == 'fast' and profile == 'none':
            expect_equal(facts['direct'], '1', 'called by the program itself')
        if case == 'destroy':
            expect_equal(facts['destroy'], '0 0', 'destroyed once')
        if profile != 'none' and case != 'small-stack':
            expect_tree(case, result)
    return run_it


def expect_tree(case, result):
    """The call tree beside it has every call, whoever else looks."""
    tree = {}
    for path, calls in tree_of(result.output).items():
        name = path.split(';')[-1]
        tree[name] = tree.get(name, 0) + calls
    outer = {'toggle': 3, 'destroy': 2, 'filter-live': 5}.get(case, 1)
    inner = outer + 1
    last = inner + (5 if case == 'slow-calls' else 0)
    expect_equal({n: tree.get(n) for n in ('outer', 'inner', 'last')},
                 {'outer': outer, 'inner': inner, 'last': last}, 'calls')


# Only clang makes tail calls of instrumented functions, and only where it must.
TAIL = 'Ehop Thop Eland Lland'.split()
NO_TAIL = 'Ehop Eland Lland Lhop'.split()
# It tells the leave before, and then makes an ordinary call of it.
EARLY = 'Ehop Lhop Eland Lland'.split()
TAILS = {('clang', '-O2'): TAIL, ('clang', '-O0'): EARLY}
TAIL_CASES = ['tail-fast', 'tail-slow', 'tail-elt2', 'tail-elt1']


def one_tail(case, family, optimize):
    def run_it():
        facts, _ = hooked(case, family, optimize)
        expect_equal(facts['log'].split(),
                     TAILS.get((family, optimize), NO_TAIL), 'events')
    return run_it


for family, optimize in BUILDS:
    for case in TAIL_CASES:
        add_test('%s (%s %s)' % (case, family, optimize),
                 one_tail(case, family, optimize))
for family, optimize in BUILDS:
    for case in sorted(CASES):
        add_test('%s (%s %s)' % (case, family, optimize),
                 one(case, family, optimize, 'none'))
for case in sorted(CASES):
    for profile in ('calltree', 'calltree:exact'):
        add_test('%s beside %s' % (case, profile),
                 one(case, 'gcc', '-O2', profile))


@test
def threads_that_call_a_function_for_the_first_time_at_once_get_one_id():
    for _ in range(20):
        facts, _ = hooked('mapper-threads', 'gcc', '-O2')
        # Enters and leaves of 16 threads.
        expect_equal(facts['log'], '32 events', 'log')


@test
def without_shim_nothing_happens():
    program = compile('hooked.c', 'gcc', '-O2',
                      ['-I', INCLUDE, '-fno-optimize-sibling-calls'])
    for case in CASES:
        result = run([program, case])
        expect_equal(re.sub(r'direct \d\n', '', result.stdout),
                     'log \nasked 0\n', case)


if __name__ == '__main__':
    shimtest.main()
