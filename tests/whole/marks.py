#!/usr/bin/env python3
"""marks.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

What is the same at all marks other than the compiler's hooks.  Arguments and results: no
value is wrong, and hardly any is missing (the programs of arguments.py).  Small stacks.
"""
import os
import subprocess

import arguments
import shimtest
from shimtest import BUILDS, add_test, compile, expect, expect_equal, record

shimtest.tests.clear()          # the tests of arguments.py do not run here

FAMILIES = {'patchable': ['gcc', 'clang'], 'fentry': ['gcc'], 'xray': ['clang'],
            'patch': ['gcc', 'clang']}



def arguments_at(mark, family, optimize, cxx):
    right, missing = arguments.compare(family, optimize, cxx, mark=mark,
                                       name='_apart')
    expect(100 * missing <= 2 * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


def together_at(mark, family, optimize, cxx):
    """clang's callers omit what the function does not read."""
    right, missing = arguments.compare(family, optimize, cxx, mark=mark,
                                       apart=False, name='_together')
    limit = arguments.LIMITS_TOGETHER[family, optimize] + 2
    expect(100 * missing <= limit * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


for mark, families in FAMILIES.items():
    for family, optimize in BUILDS:
        for cxx in (False, True):
            if family not in families:
                continue
            name = '%s_%s_%s%s' % (mark, 'c++' if cxx else 'c', family, optimize)
            how = (mark, family, optimize, cxx)
            add_test('no_argument_is_wrong_' + name,
                     lambda how=how: arguments_at(*how))
            add_test('no_argument_is_wrong_together_' + name,
                     lambda how=how: together_at(*how))
            add_test('no_result_is_wrong_' + name,
                     lambda how=how: arguments.compare_results(
                         *how[1:], mark=how[0]))


LOCAL = '''
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline))
static int written;
static APART int used(int a, double b) { written += a; return a * 3 + (int)b; }
static APART int ignored(int a, int unused) { written += a; return a * 5; }
APART double shown(const char *text, double x) { written++; return x / 2 + text[0]; }
APART void nothing(long *at) { *at += 1; }
int main(int argc, char **argv)
{
	long at = 7;
	double real = shown("A text", 3);
	int sum = used(argc, 2.5) + used(4, 3.5);
	ignored(6, argc);
	ignored(8, 3);
	nothing(&at);
	printf("%d %g %d %ld\\n", sum, real, written, at);
	return argv[0] == NULL;
}
'''


def functions_that_the_compiler_knows(mark, family):
    """Functions all of whose callers are known: what no caller passes, and what none uses,
    is unknown, never wrong."""
    path = arguments.write_text(
        os.path.join(shimtest.fixtures, 'marks_local.c'), [LOCAL])
    flags, variables = arguments.MARKS[mark]
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'program'}
    program = compile(path, family, '-O2', flags, 'marks_local_' + mark,
                      instrument=False)
    result = record([program], 'trace:args=all,results=all', **variables)
    expect(result.stdout == '20 66.5 20 8\n', result.stdout)
    shown = subprocess.run([shimtest.report, 'replay', result.output],
                           capture_output=True, text=True).stdout
    for call in ['used(a = 1, b = 2.5)', 'used(a = 4, b = 3.5)',
                 'shown(text = "A text", x = 3)', ') = 66.5;', ') = 5;', ') = 15;',
                 '(a = 6, unused = <optimized out>) = <optimized out>;',
                 '(a = 8, unused = <optimized out>) = <optimized out>;']:
        expect(call in shown, '%s: %s' % (call, shown))
    expect('the code is not understood' not in shown, shown)


for mark, families in FAMILIES.items():
    for family in families:
        add_test('functions_that_the_compiler_knows_%s_%s' % (mark, family),
                 lambda m=mark, f=family: functions_that_the_compiler_knows(m, f))


def stacks_of_4_kib_suffice(mark, family):
    flags, variables = arguments.MARKS[mark]
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'work,add'}
    program = compile('little_stack.c', family, '-O1',
                      ['-DLITTLE=4096', '-fno-inline', *flags],
                      'little_stack_' + mark, instrument=False)
    for profile in ['calltree', 'calltree:exact', 'trace',
                    'calltree;exceptions:unwind', 'trace:args=all,results=all']:
        result = record([program], profile, **variables)
        expect_equal((result.status, result.stdout), (5, 'coroutine: fine\n'),
                     profile)
        calls = shimtest.calls_of(shimtest.json_of(result.output))
        expect_equal((calls.get('work'), calls.get('add')), (1, 5), profile)


for mark, families in FAMILIES.items():
    for family in families:
        add_test('stacks_of_4_kib_suffice_%s_%s' % (mark, family),
                 lambda m=mark, f=family: stacks_of_4_kib_suffice(m, f))


if __name__ == '__main__':
    shimtest.main()
