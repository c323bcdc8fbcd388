#!/usr/bin/env python3
"""locks.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

What tests/programs/locked.c is told of its locks: it knows who waits, and says what
it was told otherwise.
"""
import os
import re

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, test

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')


def locked(case, *flags, family='gcc', optimize='-O1'):
    program = compile('locked.c', family, optimize, ['-I', INCLUDE, *flags],
                      name='locked' + ''.join(flags))
    done = run([program, case], new_directory('recording'), 'none')
    wrong = re.findall('^wrong: .*', done.stdout, re.M)
    expect(not wrong, '\n'.join(wrong[:10]))
    expect_equal((done.status, done.stdout, done.stderr), (0, 'done\n', ''),
                 'the program')


# Rows 54 and 56 of section 2.1.
@test
def a_wait_for_any_kind_is_told_before_and_after():
    for family in 'gcc', 'clang':
        locked('every_kind', family=family)


@test
def a_wait_for_a_condition_is_told_with_its_mutex():
    locked('conditions')


# Row 55 of section 2.1.
@test
def calls_that_fail_are_told_with_the_reason():
    locked('failing')


@test
def mutexes_of_all_types_do_what_they_did():
    locked('types')


@test
def signals_in_the_middle_of_a_wait():
    locked('signals')


@test
def waits_are_cancelled_as_they_were():
    locked('cancelled')


@test
def a_child_is_told_of_its_own():
    locked('forks')


@test
def locks_of_callbacks_are_not_told():
    locked('inside')


# Row M-45.
@test
def nobody_is_told_who_has_not_asked():
    locked('unheard')


if __name__ == '__main__':
    shimtest.main()
