#!/usr/bin/env python3
"""exceptions.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The exceptions profiler: its throws and catches of tests/programs/thrown.cc, by type,
path and place, must equal those that the program prints.
"""
import csv
import io
import json
import os
import re
import signal
import subprocess

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, record, run, \
    shim_report, test

FUNCTIONS = ('thrower', 'rethrower', 'catcher', 'outer', 'nested', 'handed',
             'taker', 'ends')


def thrown(case, profile='exceptions', family='gcc', optimize='-O1', status=0,
           instrument=True, **more):
    """The recording, and the program's own counts: {line without number: number}"""
    program = compile('thrown.cc', family, optimize, ['-std=c++14'],
                      name=None if instrument else 'thrown_unhooked',
                      instrument=instrument)
    done = run([program, case], new_directory('recording'), profile, **more)
    expect_equal((done.status, done.stderr), (status, ''), 'the program')
    truth = {}
    for what, number in re.findall(r'^((?:thrown|caught) .*) (\d+)$',
                                   done.stdout, re.M):
        truth[what] = truth.get(what, 0) + int(number)
    return done.output, truth


def report(output, *options):
    return json.loads(shim_report('report', output, '--format', 'json',
                                  *options))


def innermost(path):
    """The last function of @path that the program counts; '?': unknown."""
    if path is None:
        return '?'
    names = [re.sub(r'\(.*', '', name) for name in path]
    return [name for name in names if name in FUNCTIONS][-1]


def told(output, *options):
    """The lines that the program prints, computed from the report."""
    lines = {}

    def add(line, number):
        if number:
            lines[line] = lines.get(line, 0) + number
    for kind in report(output, *options)['exceptions']:
        name = kind['type'] or '?'
        for thrower in kind['throwers']:
            path = innermost(thrower['path'])
            add('thrown %s %s' % (name, path), thrower['throws'])
            for one in thrower['catchers']:
                add('caught %s %s %s' % (name, path, innermost(one['path'])),
                    one['catches'])
    return lines


def as_told(case, **more):
    output, truth = thrown(case, **more)
    expect(truth, 'the program said nothing')
    expect_equal(told(output), truth, 'exceptions')
    expect_equal(report(output)['warnings'], [], 'warnings')
    return output


@test
def each_type_by_where_it_is_thrown_and_caught():
    for family, optimize in ('gcc', '-O2'), ('clang', '-O0'):
        as_told('kinds', family=family, optimize=optimize)


@test
def beside_other_profiles():
    for profile in ('exceptions;memory;locks', 'calltree;exceptions',
                    'exceptions;calltree:exact'):
        output = as_told('kinds', profile=profile)
        expect('app::Box<long>' in shim_report('report', output,
                                               '--exceptions'), profile)


@test
def paths_are_unwound_where_nothing_is_instrumented():
    for family, optimize in ('gcc', '-O1'), ('clang', '-O0'):
        for case in 'kinds', 'threads', 'nested':
            as_told(case, profile='exceptions:unwind', family=family,
                    optimize=optimize, instrument=False)


@test
def of_all_threads():
    output = as_told('threads')
    expect_equal((report(output)['throws'], report(output)['catches']),
                 (14000, 14000), 'all')


@test
def exceptions_of_destructors_do_not_hide_the_outer_one():
    as_told('nested')


@test
def exceptions_of_another_thread_have_no_throwing_path():
    as_told('handed')


@test
def a_child_has_its_own():
    output = as_told('forked')
    pids = [p['pid'] for p in report(output)['processes']]
    parts = [report(output, '--process', str(pid))['throws'] for pid in pids]
    expect_equal(sorted(parts), [3, 5], 'each')


@test
def uncaught_exceptions_are_counted_as_thrown():
    as_told('uncaught', status=3)


@test
def exceptions_survive_sigkill():
    as_told('killed', status=-signal.SIGKILL)


@test
def the_end_of_a_thread_is_no_exception_of_cxx():
    as_told('ending')


@test
def libraries_that_come_where_others_were_have_their_own_types():
    environment = {}
    for name in 'FIRST', 'SECOND':
        source = os.path.join(new_directory('library'), 'source.cc')
        with open(source, 'w') as file:
            file.write('struct Of_%s_ { int value; };\n'
                       'extern "C" void throws() { throw Of_%s_{ 1 }; }\n'
                       % (name[:5].lower(), name[:5].lower()))
        environment[name] = compile(source, 'gcc', '-O1', ['-shared', '-fPIC'],
                                    name='libthrows%s.so' % name)
    output, _ = thrown('libraries', **environment)
    found = {kind['type']: (kind['throws'], kind['catches'])
             for kind in report(output)['exceptions']}
    expect_equal(found, {'Of_first_': (1, 1), 'Of_secon_': (1, 1)}, 'types')


@test
def the_same_in_all_formats():
    output, truth = thrown('kinds')
    lines = {}
    for row in csv.DictReader(io.StringIO(shim_report(
            'report', output, '--format', 'csv', '--exceptions'), newline='')):
        path = innermost(row['path'].split(';'))
        line = 'thrown %s %s' % (row['type'], path) if row['throws'] else \
            'caught %s %s %s' % (row['type'], path,
                                 innermost(row['catcher'].split(';')))
        lines[line] = lines.get(line, 0) + int(row['throws'] or row['catches'])
    expect_equal(lines, truth, 'csv')
    text = shim_report('report', output)
    expect('164 exceptions were thrown, 164 caught' in text, text)
    expect(re.search(r'^ +40 +40  app::Box<long>$', text, re.M), text)
    expect(re.search(r'^ +7 +caught in outer < kinds\(\) < main$', text,
                     re.M), text)


@test
def an_empty_table_is_reported():
    program = compile('nesting.c')
    done = run([program], new_directory('recording'), 'exceptions')
    text = shim_report('report', done.output)
    expect('0 exceptions were thrown' in text, text)
    done = run([program], new_directory('recording'), 'calltree')
    failed = subprocess.run([shimtest.report, 'report', done.output,
                             '--exceptions'], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    expect(failed.returncode == 1 and b'no exceptions were recorded' in
           failed.stdout, failed.stdout)


@test
def beside_the_calls_of_a_trace_nothing_is_reported_as_zero():
    output = record([compile('exceptions.cc')], 'trace;locks;memory;exceptions').output
    counted = shim_report('report', output)
    for words in (' allocated in ', ' waited for locks', ' were thrown'):
        expect(words in counted, (words, counted))
    traced = shim_report('report', output, '--trace')
    for words in ('allocated', 'waited for locks', 'thrown'):
        expect(words not in traced, (words, traced))
    expect('function  (by self time)' in traced, traced)
    found = report(output, '--trace')
    expect('locks' not in found and 'exceptions' not in found, found)
    for words in '--memory', '--locks', '--exceptions':
        failed = subprocess.run([shimtest.report, 'report', output, '--trace', words],
                                capture_output=True, text=True)
        expect(failed.returncode == 1 and
               'are shown beside the calls of a trace' in failed.stderr, failed)


@test
def everything_recorded_is_shown_or_reported():
    program = compile('exceptions.cc')
    alone = shim_report('report', record(
        [program], 'locks;memory;exceptions').output)
    for words in (' allocated in ', ' waited for locks', ' were thrown'):
        expect(words in alone, (words, alone))
    beside = shim_report('report', record(
        [program], 'calltree;locks;memory;exceptions').output)
    expect(' allocated in ' not in beside, beside)
    expect('see profrun report --memory --locks --exceptions' in beside, beside)


if __name__ == '__main__':
    shimtest.main()
