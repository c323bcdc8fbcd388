#!/usr/bin/env python3
"""gprof.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The output of the real gprof for a recording (shim-report gprof, export gmon): its calls
must be exactly those of the call tree, in every object and language.
"""
import os
import re
import signal
import struct
import subprocess
import sys
import time

import shimtest
from shimtest import (compile, expect, expect_equal,
                      json_of, linker_name, new_directory, record, run,
                      state_of, test, until)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')

# gprof -q: "[3]  89.1  0.00  0.00  1000+2000  name <cycle 1> [3]"
PRIMARY = re.compile(r'^\[\d+\]\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+'
                     r'(\d+)(?:\+(\d+))?\s+(\S+)(?: <cycle \d+>)? \[\d+\]$',
                     re.M)


def shim_report(*arguments, directory=None, status=0):
    shimtest.need('gprof')
    done = subprocess.run([shimtest.report, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=directory, timeout=60)
    expect_equal(done.returncode, status, ' '.join(arguments) + ': ' +
                 done.stderr.decode())
    return done.stdout.decode(), done.stderr.decode()


def calls_by_gprof(output):
    text, _ = shim_report('gprof', '-b', '-q', '--no-demangle', output)
    calls = {}
    for once, again, name in PRIMARY.findall(text):
        name = linker_name(name)
        calls[name] = calls.get(name, 0) + int(once) + int(again or 0)
    return calls


def expect_equal_calls(output):
    wanted = {}
    for function in json_of(output)['functions']:
        name = linker_name(function['mangled'])
        wanted[name] = wanted.get(name, 0) + function['calls']
    got = calls_by_gprof(output)
    expect(wanted and wanted == got, shimtest.difference(got, wanted))
    return wanted


@test
def calls_are_those_of_the_tree_to_the_last():
    for source in ('nesting.c', 'deep.c', 'signals.c', 'longjmp.c',
                   'threads.c', 'exceptions.cc', 'statics.cc', 'names.c',
                   'computes_shares.c'):
        for profile in 'calltree', 'calltree:counts':
            ran = record([compile(source)], profile)
            expect_equal_calls(ran.output)


@test
def calls_that_were_open_at_the_end_count_once():
    for command in ['exec_open.c', '3'], ['forks.c'], ['ends.c', '_exit']:
        ran = record([compile(command[0])] + command[1:], 'calltree')
        expect(json_of(ran.output)['open'] > 0, 'no call was open')
        expect_equal_calls(ran.output)


@test
def libraries_that_were_opened_are_there():
    plugin = compile('plugin.c', flags=['-shared', '-fPIC'], name='plugin.so')
    ran = record([compile('plugin_host.c', libraries=['-ldl']), '3', plugin],
                 'calltree')
    calls = expect_equal_calls(ran.output)
    expect(calls.get('work', 0) >= 3, str(calls))


def flat(*arguments):
    text, _ = shim_report('gprof', '-b', '-p', *arguments)
    return {line.split()[-1]: float(line.split()[2])
            for line in text.splitlines()
            if re.match(r'^\s*\d+\.\d+\s', line)}


@test
def where_calls_are_counted_only_times_are_those_of_the_histogram():
    ran = record([compile('computes_shares.c'), '300'],
                 'calltree:counts;pchist:hz=1000',
                 PROFDIR=new_directory('profdir'))
    times = flat(ran.output)
    expect(sum(times.values()) > 0.05, times)
    expect_equal_calls(ran.output)


@test
def times_are_those_of_the_report():
    ran = record([compile('computes_shares.c'), '300'], 'calltree:exact')
    wanted = {f['name']: f['self_ns'] / 1e9
              for f in json_of(ran.output)['functions']}
    got = flat(ran.output)
    for name, seconds in wanted.items():
        expect(seconds < 0.01 or abs(got.get(name, 0) - seconds) < 0.0051,
               '%s: %s, not %s' % (name, got.get(name), seconds))


@test
def samples_are_enough():
    program = compile('monitored.c', 'gcc', '-O1', [
        '-I', os.path.join(os.path.dirname(shimtest.PROGRAMS), '..',
                           'include'), '-rdynamic'],
        instrument=False)
    ran = run([program, 'burn=500'], new_directory('recording'), 'sampling')
    got = flat(ran.output)
    expect(0.3 < got.get('first', 0) + got.get('burn', 0) < 0.8, str(got))


@test
def calls_have_the_times_of_samples_if_they_have_none():
    ran = record([compile('computes_shares.c'), '400'], 'calltree:counts;sampling')
    expect(sum(flat(ran.output).values()) > 0.1, 'no time')
    expect_equal_calls(ran.output)


@test
def two_files_are_written_whole_or_not():
    ran = record([compile('nesting.c')], 'calltree')
    directory = new_directory('cwd')
    shim_report('export', 'gmon', ran.output, directory=directory)
    expect_equal(sorted(os.listdir(directory)), ['gmon.out', 'gmon.out.syms'],
                 'files')
    _, said = shim_report('export', 'gmon', ran.output, '-o', 'a',
                          directory=directory)
    # gprof is called as it says.
    words = re.search(r'^    (gprof --external-symbol-table=\S+) PROGRAM (\S+)$',
                      said, re.M)
    expect(words, said)
    done = subprocess.run(
        [*words.group(1).split(), '-b', '-p', compile('nesting.c'), words.group(2)],
        cwd=directory, capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    expect(' main\n' in done.stdout, done.stdout)
    expect_equal(open(os.path.join(directory, 'a'), 'rb').read(),
                 open(os.path.join(directory, 'gmon.out'), 'rb').read(),
                 'the same twice')
    _, error = shim_report('export', 'gmon', ran.output, '-o', 'no/a',
                           directory=directory, status=1)
    expect('no/a' in error, error)
    for arguments in (['-o', '-'], ['--threads'], ['--value', 'calls']):
        shim_report('export', 'gmon', ran.output, *arguments,
                    directory=directory, status=2)


def write_gmon(path, counts, arcs=(), rate=100, low=0x1000, step=16):
    with open(path, 'wb') as file:
        file.write(struct.pack('<4si12s', b'gmon', 1, bytes(12)))
        file.write(b'\0' + struct.pack(
            '<QQii15sc', low, low + step * len(counts), len(counts), rate,
            b'seconds', b's'))
        file.write(struct.pack('<%dH' % len(counts), *counts))
        for arc in arcs:
            file.write(b'\1' + struct.pack('<QQI', *arc))


def read_gmon(path):
    """({address: count}, {(from, to): calls})"""
    data, at, counts, arcs = open(path, 'rb').read(), 20, {}, {}
    while at < len(data):
        if data[at] == 0:
            low, high, bins = struct.unpack_from('<QQi', data, at + 1)
            for i, count in enumerate(struct.unpack_from(
                    '<%dH' % bins, data, at + 41)):
                address = low + i * (high - low) // bins
                counts[address] = counts.get(address, 0) + count
            at += 41 + 2 * bins
        else:
            arc = struct.unpack_from('<QQI', data, at + 1)
            arcs[arc[:2]] = arcs.get(arc[:2], 0) + arc[2]
            at += 21
    return counts, arcs


# Pitfall 5: gprof -s makes 54464 of 60000 + 60000.
@test
def merged_files_are_the_sum():
    place = new_directory('merge')
    a, b, c = (os.path.join(place, name) for name in 'abc')
    write_gmon(a, [60000, 1, 0], [(1, 2, 0x7fffffff), (3, 4, 5)])
    write_gmon(b, [60000, 65535, 7], [(1, 2, 0x7fffffff), (5, 6, 7)])
    shim_report('merge', '-o', c, a, b, a)
    counts, arcs = read_gmon(c)
    expect_equal(counts, {0x1000: 180000, 0x1010: 65537, 0x1020: 7}, 'counts')
    expect_equal(arcs, {(1, 2): 3 * 0x7fffffff, (3, 4): 10, (5, 6): 7}, 'arcs')
    for what, arguments in [
            ('rate', dict(rate=99)), ('overlaps', dict(low=0x1008))]:
        write_gmon(b, [1, 2, 3], **arguments)
        _, error = shim_report('merge', '-o', c + 'no', a, b, status=1)
        expect(what in error, error)
    data = open(a, 'rb').read()
    for size in range(len(data) - 1):
        open(b, 'wb').write(data[:size])
        _, error = shim_report('merge', '-o', c + 'no', b,
                               status=0 if size in (20, 67, 88) else 1)
    open(b, 'wb').write(data + b'\7')
    _, error = shim_report('merge', '-o', c + 'no', b, status=1)
    expect('a record of kind 7' in error, error)
    shim_report('merge', a, status=2)
    shim_report('merge', '-o', c, status=2)


@test
def nothing_is_left_behind():
    ran = record([compile('nesting.c')], 'calltree')
    place = new_directory('tmp')
    before = os.environ.get('TMPDIR')
    os.environ['TMPDIR'] = place
    try:
        shim_report('gprof', '-b', '-p', ran.output)
        shim_report('gprof', '--no-such-option', ran.output, status=1)
    finally:
        os.environ.pop('TMPDIR')
        if before:
            os.environ['TMPDIR'] = before
    expect_equal(os.listdir(place), [], 'files')


class SlowGprof:
    """`profrun gprof` with a gprof that never ends, as the real one hardly does with very
    many functions."""

    def __init__(self, *before):
        shimtest.need('gprof')
        output = record([compile('nesting.c')], 'calltree').output
        tools, self.place = new_directory('tools'), new_directory('tmp')
        path = os.path.join(tools, 'gprof')
        with open(path, 'w') as file:
            file.write('#!/bin/sh\necho $$\nexec sleep 1000\n')
        os.chmod(path, 0o755)
        self.process = subprocess.Popen(
            [*before, PROFRUN, 'gprof', output], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, TMPDIR=self.place,
                     PATH=tools + ':' + os.environ['PATH']))
        self.gprof = int(self.process.stdout.readline())

    def has_ended(self):
        try:
            return state_of(self.gprof) == 'Z'
        except OSError:
            return True

    def end(self, number):
        expect_equal(len(os.listdir(self.place)), 1, 'directories')
        self.process.send_signal(number)
        expect_equal(self.process.wait(60), -number, 'status')
        expect_equal(os.listdir(self.place), [], 'files')
        until(self.has_ended, 'the end of gprof')
        self.process.stdout.close()


@test
def a_signal_leaves_nothing_behind_and_ends_gprof():
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        SlowGprof().end(number)


@test
def an_ignored_signal_stays_ignored():
    slow = SlowGprof('nohup')
    slow.process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    expect_equal(slow.process.poll(), None, 'status')
    slow.end(signal.SIGTERM)


@test
def the_newest_recording_is_found_also_where_temporary_files_are():
    place = new_directory('cwd')
    os.rename(record([compile('nesting.c')], 'calltree').output,
              os.path.join(place, 'profrun.nesting.1'))
    before = os.environ.get('TMPDIR')
    os.environ['TMPDIR'] = place
    try:
        text, _ = shim_report('gprof', '-b', '-q', directory=place)
    finally:
        os.environ.pop('TMPDIR')
        if before:
            os.environ['TMPDIR'] = before
    expect(PRIMARY.search(text), text)


if __name__ == '__main__':
    sys.exit(shimtest.main())
