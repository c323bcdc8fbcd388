#!/usr/bin/env python3
"""callgrind.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

`export callgrind` has the same numbers as the report.  A reader of our own checks it,
and callgrind_annotate where it is installed.
"""
import json
import os
import re
import subprocess

import craft
import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record,
                      shim_report, test)


class Callgrind:
    """Functions are (file, name)."""

    def __init__(self, text):
        self.names = {'ob': {}, 'fl': {}, 'fn': {}}
        self.own, self.calls, self.header = {}, {}, {}
        self.lines = {}         # {(function, file, line): own cost}
        self.inclusive = {}
        place, calls = {}, None
        for line in text.splitlines():
            pair = re.fullmatch(r'c?(ob|fl|fi|fe|fn)=(.*)', line)
            if pair:
                # (Without c, these are the file of lines, not of the function.)
                is_file = pair[1] in ('fi', 'fe')
                name = self.name('fl' if is_file else pair[1], pair[2])
                if line[0] == 'c' or not is_file:
                    place[line[0] == 'c', 'fl' if is_file else pair[1]] = name
                if line[0] != 'c' and pair[1] in ('fl', 'fi', 'fe'):
                    file = name
            elif line.startswith('calls='):
                calls = int(re.fullmatch(r'calls=(\d+) \d+', line)[1])
            elif re.fullmatch(r'\d+ \d+', line):
                cost = int(line.split()[1])
                caller = place[False, 'fl'], place[False, 'fn']
                if calls is None:
                    self.own[caller] = self.own.get(caller, 0) + cost
                    key = caller, file, int(line.split()[0])
                    expect(key not in self.lines, '%s again' % (key,))
                    self.lines[key] = cost
                    continue
                callee = place[True, 'fl'], place[True, 'fn']
                self.calls.setdefault((caller, callee), 0)
                self.calls[caller, callee] += calls
                self.inclusive.setdefault(callee, 0)
                self.inclusive[callee] += cost
                calls = None
            elif line and line[0] != '#':
                key, value = line.split(':', 1)
                self.header[key] = value.strip()

    def name(self, key, text):
        number, name = re.fullmatch(r'\((\d+)\)(?: (.+))?', text).groups()
        if name:
            expect(number not in self.names[key], 'defined again: ' + text)
            self.names[key][number] = name
        return self.names[key][number]


def recording_of(source, profile='calltree'):
    result = record([compile(source, 'gcc', '-O0', [])], profile)
    expect_equal(result.status, 0, source)
    return result.output


def functions_of(output, *arguments):
    """{(file, name): the report's row}, for functions whose name is unique."""
    about = json.loads(shim_report('report', '--format', 'json', output,
                                   *arguments))
    found = {}
    for function in about['functions']:
        found.setdefault((function['file'] or '???', function['name']),
                         []).append(function)
    return about, {key: of_name[0] for key, of_name in found.items()
                   if len(of_name) == 1}


# With exact, raw times, no time is below 0, so no function is left out.
PROGRAMS = [('unwind.cc', 'calltree:exact'), ('threads.c', 'calltree:exact'),
            ('exceptions.cc', 'calltree:exact'), ('longjmp.c', 'calltree:exact'),
            ('computes.c', 'calltree:exact'), ('statics.cc', 'calltree:exact')]


# The report shows no self time above the total, although a coarse clock may measure
# one.
def expect_self(function, own, total, name):
    expect(abs(min(own, total) - function['self_ns']) <= 100,
           'self of %s: %s, not %s' % (name, own, function['self_ns']))


@test
def costs_are_self_and_total_of_the_report():
    recursive = 0
    for source, kind in PROGRAMS:
        output = recording_of(source, kind)
        for more in [], ['--raw']:
            text = shim_report('export', 'callgrind', output, *more)
            profile = Callgrind(text)
            about, functions = functions_of(output, *more)
            expect(len(functions) > 3, source)
            for key, function in functions.items():
                total = function['total_ns']
                expect_self(function, profile.own[key], total, key)
                inclusive = profile.inclusive[key]
                expect(inclusive >= total - 100 and
                       (not more or inclusive <= total + 100),
                       '%s: total of %s: %s, not %s' % (
                           source, key, inclusive, total))
                recursive += (key, key) in profile.calls
            expect(abs(int(profile.header['summary']) - about['time_ns']) <= 1,
                   profile.header)
    expect(recursive > 0, 'nothing called itself')


@test
def calls_are_those_of_the_report():
    for source, kind in PROGRAMS:
        output = recording_of(source, kind)
        profile = Callgrind(shim_report('export', 'callgrind', output))
        counts = Callgrind(shim_report('export', 'callgrind', output,
                                       '--value', 'calls'))
        expect_equal(counts.header['events'], 'n', 'events')
        about, functions = functions_of(output)
        expect_equal(sum(counts.own.values()), about['calls'], 'all calls')
        for key, function in functions.items():
            expect_equal(counts.own[key], function['calls'], key)
            called = sum(n for (_, callee), n in profile.calls.items()
                         if callee == key)
            expect_equal(called, function['calls'], key)


@test
def callers_are_those_of_the_tree():
    output = recording_of('unwind.cc')
    profile = Callgrind(shim_report('export', 'callgrind', output,
                                    '--mangled'))
    wanted = {}
    about = json.loads(shim_report('export', 'json', output, '--mangled'))
    paths = {path['id']: path for path in about['paths']}
    for path in paths.values():
        if path['parent'] is not None:
            key = tuple(about['functions'][p['function']]['mangled']
                        for p in (paths[path['parent']], path))
            wanted[key] = wanted.get(key, 0) + path['calls']
    got = {(caller[1], callee[1]): n for (caller, callee), n in
           profile.calls.items() if caller[1] != '[no caller]'}
    expect_equal(got, wanted, 'arcs')


@test
def counts_have_no_times():
    output = recording_of('unwind.cc', 'calltree:counts')
    profile = Callgrind(shim_report('export', 'callgrind', output))
    expect_equal(profile.header['events'], 'n', 'events')
    expect(sum(profile.own.values()) > 0, 'nothing')


@test
def events_of_samples_are_named_samples():
    program = compile('computes.c', 'gcc', '-O0', name='computes_plain',
                      instrument=False)
    output = record([program], 'sampling:hz=500').output
    profile = Callgrind(shim_report('export', 'callgrind', output))
    counts = Callgrind(shim_report('export', 'callgrind', output, '--value',
                                   'samples'))
    expect('counts of samples' in profile.header['desc'], profile.header)
    _, functions = functions_of(output)
    # (Each function has a line of its own where nothing is inlined.)
    with open(os.path.join(shimtest.PROGRAMS, 'computes.c')) as file:
        text = file.read().splitlines()
    hot, _ = max(profile.lines.items(), key=lambda line: line[1])
    expect(hot[2] != functions[hot[0]]['line'] and hot[2] <= len(text), hot)
    for key, function in functions.items():
        expect_equal(profile.own[key], function['self_ns'], key)
        expect_equal(counts.own[key] * 2000000, function['self_ns'], key)
        expect_equal(counts.inclusive[key], function['calls'], key)
        expect_equal(profile.inclusive[key], function['total_ns'], key)


@test
def callgrind_annotate_shows_what_the_report_shows():
    shimtest.need('callgrind_annotate')
    for source, kind in PROGRAMS:
        output = recording_of(source, kind)
        path = os.path.join(new_directory('callgrind'), 'file')
        shim_report('export', 'callgrind', output, '--raw', '-o', path)
        for inclusive, column in ('no', 'self_ns'), ('yes', 'total_ns'):
            done = subprocess.run(
                ['callgrind_annotate', '--threshold=100', '--auto=no',
                 '--inclusive=' + inclusive, path], capture_output=True,
                cwd=os.path.dirname(path))
            expect_equal((done.returncode, done.stderr), (0, b''), 'annotate')
            rows = re.findall(r'^ *([\d,]+) \([\d. ]+%\)  (\S+?):(.*?)'
                              r'(?: \[[^][]*\])?$', done.stdout.decode(), re.M)
            shown = {(file, name): int(cost.replace(',', ''))
                     for cost, file, name in rows}
            _, functions = functions_of(output, '--raw')
            compared = 0
            for key, function in functions.items():
                if key not in shown:    # the list omits functions without cost
                    expect(function[column] <= 100, '%s: no %s' % (
                        source, key))
                    continue
                compared += 1
                if column == 'self_ns':
                    expect_self(function, shown[key], function['total_ns'],
                                key)
                else:
                    expect(abs(shown[key] - function[column]) <= 100,
                           '%s: %s: %d, not %d' % (source, key, shown[key],
                                                   function[column]))
            expect(compared > 3, done.stdout.decode())


@test
def a_thread_that_our_cost_outweighs_takes_no_time_from_others():
    """Its measured time is below 0.  A function then took more than all of the time."""
    code, second = 0x10000, craft.MEMORY + 128 + 64
    exact = code | 1 << 63
    output = craft.write(new_directory('outweighed'), {
        'meta': craft.meta(cost=1000),
        'images': craft.images(craft.image(code, code + 0x10000, '/bin/nothing')),
        '0.calltree': craft.tree(
            craft.thread(), craft.node(exact + 0x1000, craft.MEMORY, 1, 5000000, coarse=0),
            craft.thread(1001), craft.node(exact + 0x2000, second, 1, 1000000, coarse=0),
            craft.node(code + 0x3000, second + 128, 2000000, 500000, coarse=1))})
    about, functions = functions_of(output)
    expect_equal(about['calls'], 2000002, 'calls')
    first = max(function['self_ns'] for function in functions.values())
    expect(4999990 < first <= about['time_ns'] < 5000010, about)
    expect_equal([thread['self_ns'] > 4999990 for thread in about['threads']], [True, False],
                 about['threads'])
    expect(sum(thread['self_ns'] for thread in about['threads']) <= about['time_ns'] + 1,
           about['threads'])
    tree = shim_report('report', '--tree', output)
    expect(re.search(r'^100\.00 +5\.00 ms +5\.00 ms +1 +0x1000 ', tree, re.M), tree)
    profile = Callgrind(shim_report('export', 'callgrind', output))
    expect(abs(int(profile.header['summary']) - about['time_ns']) <= 1, profile.header)
    expect_equal(max(profile.own.values()), int(profile.header['summary']), 'the own time')


if __name__ == '__main__':
    shimtest.main()
