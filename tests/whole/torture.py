#!/usr/bin/env python3
"""torture.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

tests/programs/turmoil.cc with everything on at once: output and status must be the same
as without shim, and all exact counts must be right.  TORTURE_SECONDS=60 runs longer, as
does tests/fuzz/torture.
"""
import json
import os
import platform

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, \
    shim_report, test

SECONDS = os.environ.get('TORTURE_SECONDS', '1')
PROFILE = 'calltree;memory;locks;exceptions;coverage;sampling:hz=2000'


def plugin():
    source = os.path.join(new_directory('plugin'), 'plugin.c')
    with open(source, 'w') as file:
        file.write('static int add(int n) { return n + 1; }\n'
                   'int plugin_call(int n) { return add(n); }\n')
    return compile(source, 'gcc', '-O0', ['-shared', '-fPIC'], name='turmoil.so')


def turmoil(profile, optimize='-O1'):
    program = compile('turmoil.cc', 'gcc', optimize, ['-std=c++17'])
    truth = os.path.join(new_directory('truth'), 'truth')
    done = run([program, SECONDS, plugin()],
               new_directory('recording') if profile else None, profile,
               timeout=int(SECONDS) * 3 + 60, TRUTH=truth)
    expect_equal((done.status, done.stdout, done.stderr), (42, 'done\n', ''),
                 'the program')
    with open(truth) as file:
        lines = [line.split() for line in file]
    return done, {name: int(number) for name, number in lines
                  if name != 'thing'}


def by_process(output, *options):
    """The report's rows of the parent, the first process."""
    about = json.loads(shim_report('report', output, '--format', 'json',
                                   *options))
    pid = str(about['processes'][0]['pid'])
    return about, json.loads(shim_report('report', output, '--format', 'json',
                                         '--process', pid, *options))


@test
def without_us():
    turmoil(None)


@test
def with_everything():
    done, truth = turmoil(PROFILE)
    everybody, parent = by_process(done.output)
    expect_equal(parent['lost'], 0, shim_report('info', done.output))
    expect_equal((parent['throws'], parent['catches']),
                 (truth['thrown'], truth['caught']), 'exceptions')
    calls = {}
    for function in parent['functions']:
        name = function['name'].split('(')[0]
        calls[name] = calls.get(name, 0) + function['calls']
    expect_equal((calls['throw_down'], calls['Step::Step'],
                  calls['on_signal']),
                 (truth['steps'], truth['steps'], truth['handled']), 'calls')
    expect(everybody['waiting']['waits'] > 0, 'nobody waited')
    expect(everybody['memory']['allocations'] > 1000, 'nothing allocated')
    for lock in parent['locks']:
        expect(lock['kind'] == 'condition' or lock['open'] == 0,
               'open: %r' % lock)
    shim_report('report', done.output, '--locks')
    snapshots = json.loads(shim_report('export', 'json',
                                       done.output))['memory_snapshots']
    expect(any(s['complete'] and s['blocks'] > 0 for s in snapshots),
           'no snapshots of the heap')
    samples = json.loads(shim_report('report', done.output, '--format', 'json',
                                     '--samples'))
    expect(samples['calls'] > 0, 'no samples')
    check_lines(done.output)


def check_lines(output):
    """Checks the lines of children, and of libraries that are loaded and unloaded all
    the time."""
    if platform.machine() != 'x86_64':
        return
    got = {}
    for line in shim_report('export', 'lcov', output).splitlines():
        if line.startswith('SF:'):
            name = os.path.basename(line[3:])
        elif line.startswith('DA:'):
            number, count = map(int, line[3:].split(','))
            got[name, number] = count > 0
    with open(os.path.join(shimtest.PROGRAMS, 'turmoil.cc')) as file:
        wanted = {('turmoil.cc', number): '//@ always' in text
                  for number, text in enumerate(file, 1) if '\t//@ ' in text}
    wanted.update({('plugin.c', 1): True, ('plugin.c', 2): True})
    expect_equal({line: got.get(line) for line in wanted}, wanted, 'lines')


if __name__ == '__main__':
    shimtest.main()
