#!/usr/bin/env python3
"""trace.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Traces: every call is in them, whatever the program does and whatever is done to
it.  Where calls are counted beside the trace, in the same run, both must say the
same of each path.
"""
import os
import random

import kill
import loss
import shimtest
from shimtest import (BUILDS, add_test, calls_of, compile, expect, expect_equal,
                      json_of, record, run, test)

# What the modules above have for themselves.
shimtest.tests.clear()

KILLS_BUILDS = 50       # of each of the four builds
STORMS = ['signals', 'signals_jumps', 'altstack', 'altstack_thread']
HARD = ['coroutines', 'coroutines_travel', 'clone_raw', 'exceptions', 'forks',
        'longjmp', 'spawns', 'thread_ends']


def folded(recording, *options):
    done = run([shimtest.report, 'export', 'folded', '--value', 'calls',
                *options, recording])
    expect_equal(done.status, 0, done.stderr)
    return sorted(done.stdout.splitlines())


def check_same(name, family, optimize, profile):
    source = name + ('.c' if os.path.exists(os.path.join(
        shimtest.PROGRAMS, name + '.c')) else '.cc')
    made = record([compile(source, family, optimize)], profile)
    counted, traced = folded(made.output), folded(made.output, '--trace')
    first = next((pair for pair in zip(counted, traced)
                  if pair[0] != pair[1]), None)
    expect(counted == traced, '%d paths counted, %d traced; the first that '
           'differs: %s' % (len(counted), len(traced), first))


for number, name in enumerate(STORMS + HARD):
    source = os.path.join(shimtest.PROGRAMS, name)
    if not os.path.exists(source + '.c') and not os.path.exists(source + '.cc'):
        continue
    family, optimize = BUILDS[number % len(BUILDS)]
    profile = ['calltree;trace', 'trace;calltree:counts'][number % 2]
    add_test('%s: a trace has what the tree counts, path by path (%s, %s %s)' %
             (name, profile, family, optimize),
             lambda name=name, family=family, optimize=optimize,
             profile=profile: check_same(name, family, optimize, profile))


def check_kills(family, optimize):
    program = compile('killed.c', family, optimize)
    for i in range(KILLS_BUILDS):
        kill.kill_once(program, 'trace',
                       random.uniform(0, 0.004 if i % 2 else 0.03))


for family, optimize in BUILDS:
    add_test('sigkill loses the call in flight at most (%s %s)' %
             (family, optimize),
             lambda family=family, optimize=optimize:
             check_kills(family, optimize))


@test
def nothing_is_lost_when_nothing_is_taken():
    about = loss.lose(['none'], [], profiles=['trace'])
    expect_equal(about['lost'], 0, 'lost')


@test
def a_disk_that_gets_full_loses_what_is_counted_as_lost():
    loss.lose(['none'], ['space'], lambda: loss.small_disk(400 << 10),
              profiles=['trace'])


if __name__ == '__main__':
    shimtest.main()
