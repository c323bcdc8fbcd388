#!/usr/bin/env python3
"""values.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Printed values and names of types.  Programs that are their own profilers print the
actual and the expected text (tests/programs/values.h), with both compilers and both
versions of DWARF.  Python parses the JSON.
"""
import json
import os
import re

import shimtest
from shimtest import add_test, compile, expect, expect_equal, record

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')
LONG_ADDRESS = re.compile(r'0x[0-9a-f]{8,}')


def refuse_constant(text):
    raise ValueError('%s is no JSON' % text)


def read_json(text):
    return json.loads(text, parse_constant=refuse_constant)


def problem_of(what, got, wanted):
    """The error in a line, or None."""
    got = LONG_ADDRESS.sub('0xADDRESS', got)
    if what.endswith(' json'):
        try:
            value = read_json(got)
        except ValueError as error:
            return '%s: %s: %s' % (what, got, error)
        if wanted and value != read_json(wanted):
            return '%s: %s, not %s' % (what, got, wanted)
    elif what.startswith('double '):
        value = float.fromhex(what[7:].replace('nan', '0x0p+0'))
        if 'nan' not in what and got.replace('.0', '') != \
                re.sub(r'\.0$', '', repr(value)).replace('.0', ''):
            return '%s: %s, not %r' % (what, got, value)
    elif wanted and got != wanted:
        return '%s: %s, not %s' % (what, got, wanted)
    return None


def lines_of(source, family, optimize, flags, **more):
    name = '%s-%s' % (os.path.splitext(source)[0],
                      ''.join(flags).replace('-', '').replace('=', ''))
    path = compile(source, family, optimize, ['-I', INCLUDE, '-w', *flags],
                   name=name, instrument=False)
    result = record([path], 'none', **more)
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    return [line.split('\t') for line in result.stdout.split('\n') if line]


def compare(source, family, optimize, flags, at_least):
    lines = lines_of(source, family, optimize, flags)
    problems = [problem_of(*line) if len(line) == 3 else 'odd: %r' % line
                for line in lines]
    problems = [problem for problem in problems if problem]
    expect(not problems, '\n'.join(problems[:40]))
    texts = {line[0] for line in lines if line[0].endswith(' text')}
    expect(len(texts) >= at_least, '%d values' % len(texts))
    expect_equal(lines[-1][0], 'failures', 'the last line')


def types_stay_when_their_library_is_closed():
    plugin = compile('info_plugin.c', name='values-plugin.so',
                     flags=['-shared', '-fPIC'], instrument=False)
    lines = lines_of('values_closed.c', 'gcc', '-O0', ['-ldl'], PLUGIN=plugin)
    problems = [problem_of(*line) for line in lines]
    expect(not any(problems), '\n'.join(filter(None, problems)))
    expect_equal(len(lines), 4, 'lines')


add_test('types_stay_when_their_library_is_closed',
         types_stay_when_their_library_is_closed)

# Without this flag, clang omits the layout of classes of the library.
CXX = {'gcc': ['-std=c++17'], 'clang': ['-std=c++17', '-fstandalone-debug']}
OLD_ABI = '-D_GLIBCXX_USE_CXX11_ABI=0'

for family in ('gcc', 'clang'):
    for dwarf in ('-gdwarf-4', '-gdwarf-5'):
        for optimize in ('-O0', '-O2'):
            add_test('values_of_c_%s_%s_%s' % (family, dwarf, optimize),
                     lambda f=family, d=dwarf, o=optimize: compare(
                         'values.c', f, o, [d], 60))
            add_test('values_of_cxx_%s_%s_%s' % (family, dwarf, optimize),
                     lambda f=family, d=dwarf, o=optimize: compare(
                         'values_cxx.cc', f, o, [d, *CXX[f]], 30))
    add_test('values_of_the_older_library_%s' % family,
             lambda f=family: compare('values_cxx.cc', f, '-O0',
                                      [OLD_ABI, *CXX[f]], 30))
    for optimize in ('-O0', '-O2'):
        add_test('strings_that_may_be_in_their_object_%s_%s' % (family, optimize),
                 lambda f=family, o=optimize: compare('values_short.cc', f, o,
                                                      CXX[f], 7))

if __name__ == '__main__':
    shimtest.main()
