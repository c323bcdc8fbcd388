#!/usr/bin/env python3
"""by.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Calls of one function grouped by an argument (calltree:by=), and what makes it
possible: fast hooks that ask about single calls.
"""
import os

import shimtest
from shimtest import BUILDS, add_test, compile, expect, expect_equal, record

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')


def fast_hooks_ask_about_single_calls(family, optimize):
    path = compile('asking.c', family, optimize, ['-I', INCLUDE])
    alone = record([path, '1'], 'none')
    # In the handler: handler, chosen, other.
    expect_equal(alone.stdout, 'enters 204 leaves 204 asked 102 right 101 '
                 'nothing 1 others 0\n', 'alone')
    beside = record([path, '2'], 'none')
    expect_equal(beside.stdout, 'enters 204 leaves 204 asked 102 right 101 '
                 'nothing 1 others 103\n', 'beside another profiler')


for family, optimize in BUILDS:
    add_test('fast_hooks_ask_about_single_calls_%s_%s' % (family, optimize),
             lambda f=family, o=optimize: fast_hooks_ask_about_single_calls(
                 f, o))

if __name__ == '__main__':
    shimtest.main()
