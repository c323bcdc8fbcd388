#!/usr/bin/env python3
"""gaps.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

profrun --gaps: times when threads of a traced program had no processor, in every output
that shows a trace. profrun --counters: the system's counters of the program.
"""
import collections
import glob
import gzip
import json
import os
import re
import shutil
import struct
import subprocess

import browser
import shimtest
import timelines
from shimtest import (Skipped, compile, expect, expect_equal, new_directory,
                      run, shim_report, test)

# The tests of the imported module do not run here.
shimtest.tests.clear()

HEAD = struct.Struct('<8sIIQ')
SWITCH = struct.Struct('<QIIII')
ON, WAITS, PREEMPTED = 1, 2, 3          # enum shim_switch_kind
FIRST_MONO_NS = 48                      # in struct shim_meta


def profrun(*words, **more):
    path = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    return run([os.path.normpath(path), *words], **more)


def record(*words, options=('--gaps',), profile='trace'):
    output = os.path.join(new_directory('gaps'), 'recording')
    done = profrun(*options, '-q', '--no-report', '-p', profile, '-o', output,
                   '--', compile('sleeps.c', 'gcc', '-O1'), *words)
    if 'the kernel does not tell' in done.stderr:
        raise Skipped(done.stderr.strip())
    expect_equal((done.status, done.stderr), (0, ''), 'status')
    done.output = output
    return done


recorded = {}


def recording():
    if not recorded:
        recorded['it'] = record().output
    return recorded['it']


LINE = re.compile(r' *([\d.]+) (.{10}) *(\d+)(?:/\d+)?  ( *)(.*)')


def lines_of(output, *words):
    """Lines of replay: time in us, duration as text, thread, depth, text."""
    text = shim_report('replay', '--color', 'never', *words, output)
    found = [LINE.fullmatch(line) for line in text.splitlines()[1:]]
    return [(float(f.group(1)), f.group(2).strip(), int(f.group(3)),
             len(f.group(4)) // 2, f.group(5)) for f in found]


def ns_of(duration):
    number, unit = duration.split()
    return float(number) * {'ns': 1, 'us': 1e3, 'ms': 1e6, 's': 1e9}[unit]


def gaps_of(output, *words):
    """[text, ns, the call around it]"""
    gaps, open_calls = [], collections.defaultdict(list)
    for _, duration, thread, depth, what in lines_of(output, *words):
        stack = open_calls[thread]
        del stack[depth:]
        if what.startswith('-- no processor: '):
            gaps.append((what[17:], ns_of(duration),
                         stack[-1] if stack else None))
        elif what.endswith('{'):
            stack.append(what.split()[0])
    return gaps


@test
def a_sleep_is_a_gap_within_the_call_that_sleeps():
    naps = [ns for what, ns, call in gaps_of(recording())
            if what == 'waits' and call == 'nap' and ns > 25e6]
    expect_equal(len(naps), 4, 'naps')
    expect(min(naps) >= 29.9e6, naps)
    long = [(what, call) for what, ns, call in gaps_of(recording())
            if what == 'waits' and ns > 25e6 and call != 'nap']
    expect(set(long) <= {('waits', 'main'), ('waits', 'take_turns')}, long)


@test
def threads_that_share_a_processor_are_preempted():
    calls = collections.Counter(call for what, _, call in gaps_of(recording())
                                if what == 'preempted')
    expect(calls['compute'] + calls['step'] >= 4, calls)


@test
def calls_are_those_of_a_trace_without_gaps():
    def calls(output):
        about = json.loads(shim_report('report', '--format', 'json',
                                       '--limit', '0', output))
        return {f['name']: f['calls'] for f in about['functions']}
    expect_equal(calls(recording()), calls(record(options=()).output), 'calls')
    shown = [line for line in lines_of(recording()) if '-- no p' not in line[4]]
    without = os.path.join(new_directory('without'), 'recording')
    shutil.copytree(recording(), without)
    os.remove(without + '/gaps')
    expect_equal(sum(' {' in line[4] or ';' in line[4] for line in shown),
                 sum(' {' in line[4] or ';' in line[4]
                     for line in lines_of(without)), 'calls of replay')


@test
def a_range_has_its_gaps_only():
    gaps = [line for line in lines_of(recording()) if '-- no p' in line[4]]
    middle = gaps[len(gaps) // 2][0]
    some = lines_of(recording(), '--from', '%.3fus' % (middle - 5000), '--to',
                    '%.3fus' % (middle + 5000))
    shown = [line for line in some if '-- no p' in line[4]]
    expect(shown, 'none')
    for line in shown:
        expect(middle - 5001 <= line[0] <= middle + 5001, line)


@test
def exports_have_the_same_gaps_and_they_nest():
    wanted = len(gaps_of(recording()))
    expect(wanted > 4, wanted)
    gaps, ends = 0, {}
    for event in timelines.chrome_events(recording()):
        lane = event['pid'], event['tid']
        if event['ph'] in 'BEX':
            expect(event['ts'] >= ends.get(lane, 0) - 0.001,
                   'something happens within a gap: %s' % event)
        if event['ph'] == 'X':
            gaps += 1
            ends[lane] = event['ts'] + event['dur']
    expect_equal(gaps, wanted, 'chrome')
    text = re.findall(r'^ *name: "no processor: (\w+)"', subprocess.run(
        ['protoc', '--proto_path=' + timelines.PROTO, '--decode=perfetto.Trace',
         'perfetto.proto'], input=gzip.open(timelines.export(
             'perfetto', recording())).read(), stdout=subprocess.PIPE,
        check=True).stdout.decode(), re.M) if shutil.which('protoc') else None
    if text is not None:
        expect_equal(len(text), 2 * wanted, 'perfetto')
    if shutil.which('babeltrace2'):
        events = timelines.babeltrace(timelines.export('ctf', recording()))
        expect_equal(sum(event[1] == 'gap' for event in events), wanted, 'ctf')


@test
def the_page_has_them_too():
    page = shim_report('html', '-o', '-', recording())
    about = json.loads(re.search(
        r'<script [^>]*id="text">(.*?)</script>', page, re.S)[1])['timeline']
    expect_equal(len(about['gaps']) + about['gaps_left_out'],
                 len(gaps_of(recording())), 'gaps')
    long = [gap for gap in about['gaps'] if gap[3] > 25e6 and gap[1]]
    expect(len(long) >= 4, long)


@test
def a_browser_shows_them():
    if browser.missing():
        raise Skipped(browser.missing())
    path = os.path.join(new_directory('html'), 'page.html')
    shim_report('html', '-o', path, recording())
    with browser.Browser() as window:
        window.open('file://' + path)
        window.wait('return document.documentElement.dataset.ready')
        expect_equal(window.messages(), [], 'what the browser said')
        text = window.run(
            'return document.querySelector("#merged").textContent')
        number = re.search(r'([\d,]+) times a thread had no processor', text)
        expect(number, text)
        expect_equal(int(number.group(1).replace(',', '')), len(gaps_of(recording())), 'gaps')


@test
def children_have_gaps_of_their_own():
    gaps = gaps_of(record('fork').output)
    naps = [ns for what, ns, call in gaps if call == 'nap' and ns > 25e6]
    expect_equal(len(naps), 1, gaps)


@test
def the_program_sees_nothing_of_it():
    expect_equal(record('fds', options=('--gaps', '--counters')).stdout,
                 record('fds', options=()).stdout, 'files')


@test
def the_program_runs_and_a_message_comes_where_the_kernel_refuses():
    output = os.path.join(new_directory('gaps'), 'recording')
    path = os.path.normpath(os.path.join(os.path.dirname(shimtest.report), '..',
                                         'run', 'shim-run'))
    # The limit leaves no descriptor for a processor's ring, and enough for the program.
    done = run(['sh', '-c', 'ulimit -n 5; exec "$@"', 'sh', path, 'run',
                shimtest.library, shimtest.report, '--gaps', '-p', 'trace',
                '--no-report', '-o', output, '/bin/echo', 'there'])
    expect_equal((done.status, done.stdout), (0, 'there\n'), 'the program')
    expect('--gaps: the kernel does not tell' in done.stderr, done.stderr)
    expect(not os.path.exists(output + '/gaps'), 'a file of gaps')
    done = profrun('record', '--gaps', '/bin/true')
    expect_equal(done.status, 2, 'record --gaps')


@test
def a_program_that_cannot_be_started_leaves_nothing():
    def start(begin):
        program = os.path.join(new_directory('program'), 'program')
        with open(program, 'wb') as file:
            file.write(begin)
        os.chmod(program, 0o755)
        output = os.path.join(new_directory('gaps'), 'recording')
        done = profrun('--gaps', '--counters=1', '-o', output, program)
        expect_equal(done.status, 126, done.stderr)
        expect('cannot be written' not in done.stderr, done.stderr)
        expect(not os.path.exists(output), 'a recording')
    start(b'\x7fELF\2\1\1' + bytes(100))
    start(b'#!/no/such/interpreter\n')
    # Errors that only the kernel finds, once the recording exists.
    for _ in range(5):
        start(open('/bin/true', 'rb').read(64))


@test
def damage_of_gaps_is_reported():
    good = open(recording() + '/gaps', 'rb').read()
    whole = gaps_of(recording())

    def read(data, said):
        copy = os.path.join(new_directory('damaged'), 'recording')
        shutil.copytree(recording(), copy)
        with open(copy + '/gaps', 'wb') as file:
            file.write(data)
        done = run([shimtest.report, 'replay', copy])
        expect(said in done.stderr if said else not done.stderr, done.stderr)
        return done.status, gaps_of(copy) if done.status == 0 else None
    expect_equal(read(good[:10], 'cut in its header'), (0, []), 'cut')
    expect_equal(read(b'x' + good[1:], 'not a shim_gaps'), (0, []), 'magic')
    status, gaps = read(good[:-5], '')
    expect(status == 0 and len(whole) - 1 <= len(gaps) <= len(whole), 'tail')
    lost = HEAD.pack(*HEAD.unpack_from(good)[:3], 7) + good[HEAD.size:]
    expect_equal(read(lost, 'has dropped 7 switches'), (0, whole), 'lost')
    newer = good[:8] + struct.pack('<I', 9) + good[12:]
    expect_equal(read(newer, 'format version 9')[0], 1, 'newer')


# --- counters ---

COUNTERS = {'resident bytes', 'proportional bytes', 'anonymous bytes',
            'swapped bytes', 'page faults', 'processors in use'}
# Counters that the kernel may allow; the first four need a processor that counts.
EVENTS = {'cycles', 'instructions', 'cache misses', 'branch misses',
          'context switches', 'changes of processor'}


def counters_of(output):
    """{name: [(time in us, value)]} from replay."""
    counters = collections.defaultdict(list)
    for time, _, thread, _, what in lines_of(output):
        found = re.fullmatch(r'-- counter (.*) = (\S+)', what)
        if found:
            counters[found.group(1)].append((time, float(found.group(2))))
    return counters


@test
def memory_and_time_of_the_processor_are_counters():
    output = record(options=('--counters=20',)).output
    counters = counters_of(output)
    if not os.path.exists('/proc/self/smaps_rollup'):
        raise Skipped('no smaps_rollup')
    expect_equal(set(counters) - EVENTS, COUNTERS, 'counters')
    for name, values in counters.items():
        expect(len(values) >= 4, '%s: %s' % (name, values))
        expect_equal([t for t, _ in values], sorted(t for t, _ in values), name)
    resident = [value for _, value in counters['resident bytes']]
    expect(1e5 < min(resident) <= max(resident) < 1e9, resident)
    used = [value for _, value in counters['processors in use']]
    expect(0 <= min(used) and 0.1 < max(used) < os.cpu_count() + 1, used)
    faults = [value for _, value in counters['page faults']]
    expect(faults == sorted(faults) and faults[-1] > 0, faults)
    exported = collections.Counter(
        event['name'] for event in timelines.chrome_events(output)
        if event['ph'] == 'C')
    expect_equal(exported, {n: len(v) for n, v in counters.items()}, 'chrome')


def counted_switches(output):
    """[(ns, switches)] of CLOCK_MONOTONIC."""
    with open(output + '/counters') as file:
        lines = [line.rstrip('\n').split(' ', 3) for line in file]
    return [(int(ns), float(value)) for ns, _, value, name in lines
            if name == 'context switches']


def stops_of(output):
    """The number of events that the kernel dropped, and [ns, thread] of stops."""
    with open(output + '/gaps', 'rb') as file:
        data = file.read()
    _, _, size, lost = HEAD.unpack_from(data)
    return lost, [(ns, thread) for ns, _, thread, _, kind in SWITCH.iter_unpack(
        data[size:len(data) - (len(data) - size) % SWITCH.size]) if kind != ON]


def start_of(output):
    """The time of CLOCK_MONOTONIC at which replay begins."""
    meta, = glob.glob(output + '/*.0/meta')
    with open(meta, 'rb') as file:
        return struct.unpack_from('<Q', file.read(), FIRST_MONO_NS)[0]


@test
def events_of_processors_are_counters():
    made = record(options=('--gaps', '--counters=20'))
    counters = counters_of(made.output)
    there = set(counters) & EVENTS
    if not there:
        raise Skipped('the kernel lets nobody count events')
    for name in there:
        values = [value for _, value in counters[name]]
        expect(len(values) >= 4 and values == sorted(values), name)
    # As many as the kernel reported one by one.
    seen = counted_switches(made.output)
    lost, stops = stops_of(made.output)

    def between(begin_ns, end_ns):
        return sum(begin_ns <= ns < end_ns for ns, _ in stops)
    # A counter is read after the time that is written with it, by a thread that waits for
    # its processor, too.
    (first, begun), (second, _), *_, (last, ended), (end, _) = seen
    expect(between(second, last) - 2 <= ended - begun <= between(first, end) + 2 + lost,
           '%d switches counted, %d to %d told' % (
               ended - begun, between(second, last), between(first, end)))
    # Replay has them from the first call of a thread to its last one.
    calls = collections.defaultdict(list)
    for us, _, thread, _, _ in lines_of(made.output):
        calls[thread].append(start_of(made.output) + round(1e3 * us))
    told = len(gaps_of(made.output))
    all_told = sum(calls[thread][0] <= ns < calls[thread][-1] for ns, thread in stops
                   if thread in calls)
    expect(abs(told - all_told) <= 2 + lost, '%d gaps, %d switches in calls' % (
        told, all_told))
    if 'cycles' in there:
        expect(counters['instructions'][-1][1] > 1e6, 'no instructions')


@test
def counters_go_with_gaps_and_change_neither():
    output = record(options=('--gaps', '--counters=5')).output
    with_counters = gaps_of(output)
    os.remove(output + '/counters')
    expect_equal(gaps_of(output), with_counters, 'gaps')


@test
def invalid_lines_of_counters_are_reported():
    output = record(options=('--counters=20',)).output
    path = output + '/counters'
    text = open(path).read()
    whole = counters_of(output)
    for bad in ('x\n', '1 2 3\n', '1 2 nan name\n', 'y' * 1000 + '\n'):
        with open(path, 'w') as file:
            file.write(text + bad)
        done = run([shimtest.report, 'replay', output])
        expect_equal(done.status, 0, done.stderr)
        expect('is not "MONO-NS PID VALUE NAME"' in done.stderr, done.stderr)
        expect_equal(counters_of(output), whole, 'the others')
    for period in '0', '-1', '1000000', 'x':
        done = profrun('--counters=' + period, '/bin/true')
        expect_equal(done.status, 2, period)
        expect('is no time in milliseconds' in done.stderr, done.stderr)


if __name__ == '__main__':
    shimtest.main()
