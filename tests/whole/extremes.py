#!/usr/bin/env python3
"""extremes.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Traces of more threads than a process may have files open, of names that fill a
page, of clocks that jump, threads that change processors, hosts that have the same
process numbers, and programs that are not there any more.
"""
import collections
import glob
import gzip
import json
import os
import re
import resource
import shutil
import struct
import subprocess

import shimtest
from shimtest import (Skipped, compile, expect, expect_equal, new_directory,
                      record, run, shim_report, test)

MEMORY = 300 << 20      # limit for a report, in bytes
BLOCK, FIRST = 65536, 8192
TIMES = re.compile(r' *([\d.]+) (.{10}) ')


def read(*words, files=None):
    """What shim-report prints, with at most MEMORY and @files open."""
    output = new_directory('read')
    out, log = os.path.join(output, 'out'), os.path.join(output, 'log')
    with open(out, 'wb') as stdout, open(log, 'wb') as stderr:
        child = subprocess.Popen(
            [shimtest.report, *words], stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=stderr, preexec_fn=lambda: files and resource.setrlimit(
                resource.RLIMIT_NOFILE, (files, files)))
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    said = open(log, errors='replace').read()
    expect_equal(child.returncode, 0, 'status of %s: %s' % (words, said))
    expect(used.ru_maxrss * 1024 <= MEMORY,
           '%s: %d MiB' % (words, used.ru_maxrss >> 10))
    return open(out, 'rb').read().decode(), said


def calls_of(*words):
    out, _ = read('report', '--format', 'json', '--limit', '0', *words)
    calls = collections.Counter()
    for function in json.loads(out)['functions']:
        calls[function['name']] += function['calls']
    return calls


def lines_of(*words, files=None):
    out, _ = read('replay', '--color', 'never', *words, files=files)
    return out.splitlines()[1:]


def check_times(lines):
    """They do not go back, and nothing takes less than no time."""
    last = 0
    for line in lines:
        found = TIMES.match(line)
        time, duration = float(found.group(1)), found.group(2).strip()
        expect(time >= 0 and '-' not in duration, line)
        # A call of one line stands where it began.
        if not duration or '} ' in line:
            expect(time >= last, '%s after %s' % (line, last))
            last = time


# --- threads ---

def check_threads(threads, at_once, files):
    program = compile('many_threads.c', 'gcc', '-O2')
    words = [program, str(threads), str(at_once)]
    if run(words, timeout=120).status == 3:
        raise Skipped('this machine has no %d threads' % at_once)
    made = record(words, 'trace', timeout=120)
    expect_equal((made.status, made.stderr), (0, ''), 'status')
    traces = glob.glob(made.output + '/*/*.trace')
    expect(at_once < len(traces) < at_once * 1.5 + 100,
           '%d files' % len(traces))
    wanted = {'main': 1, 'run': threads, 'wait_for_others': threads,
              'work': 2 * threads, 'leaf': 20 * threads}
    expect_equal(calls_of(made.output), wanted, 'calls')
    lines = lines_of(made.output)
    check_times(lines)
    expect_equal(sum('-- thread ' in line for line in lines), threads + 1,
                 'threads of replay')
    expect(not any('(open)' in line for line in lines), 'open calls')
    expect_equal(lines_of(made.output, files=files), lines,
                 'with %d files open' % files)
    about = json.loads(shim_report('report', '--format', 'json', '--threads',
                                   made.output))
    expect_equal(len(about['threads']), threads + 1, 'threads of the report')
    page, _ = read('html', '-o', '-', made.output)
    expect('</html>' in page, 'no page')
    for format in ('chrome', 'perfetto'):
        read('export', format, '-o', new_directory('e') + '/out', made.output)


MANY = 10000 if shimtest.ALL else 3000


@test
def thousands_of_threads_one_group_after_the_other():
    check_threads(MANY, 50, 70)


@test
def thousands_of_threads_that_share_four_files():
    """A thread's record is often the first that does not fit in a block."""
    check_threads(MANY, 4, 70)


@test
def thousands_of_threads_at_once():
    check_threads(MANY, MANY, 70)


# --- names ---

@test
def names_of_64_kib_are_whole_everywhere():
    name = 'n' + 'abcdefgh' * 8191 + 'z'
    source = os.path.join(new_directory('names'), 'names.c')
    with open(source, 'w') as file:
        file.write('void %s(void) {} int main(void) { %s(); return 0; }\n' %
                   (name, name))
    made = record([compile(source)], 'trace')
    for words in (['report', '--format', 'json'], ['report', '--format', 'csv'],
                  ['replay'], ['export', 'folded'], ['export', 'speedscope'],
                  ['export', 'chrome'], ['export', 'callgrind'],
                  ['export', 'perfetto', '-o', '-'], ['html', '-o', '-']):
        output = os.path.join(new_directory('out'), 'out')
        done = subprocess.run([shimtest.report, *words, made.output],
                              stdout=open(output, 'wb'),
                              stderr=subprocess.PIPE)
        expect_equal((done.returncode, done.stderr), (0, b''), words)
        with (gzip.open if 'perfetto' in words else open)(output, 'rb') as file:
            text = file.read()
        expect(name.encode() in text,
               '%s: the name is cut' % words)
    read('report', made.output)


# --- clocks and processors ---

def damaged_clock(steps):
    """A recording of several blocks; block N's time is moved by steps[N], but to
    no less than half of what has passed since the machine was started."""
    made = record([compile('migrates.c')], 'trace')
    path, = [p for p in glob.glob(made.output + '/*/*.trace')]
    data = bytearray(open(path, 'rb').read())
    begins = [FIRST] + list(range(BLOCK, len(data), BLOCK))
    by_sequence = sorted((struct.unpack_from('<Q', data, at)[0], at)
                         for at in begins)
    blocks = [at for sequence, at in by_sequence if sequence]
    expect(len(blocks) > max(steps, default=0), '%d blocks' % len(blocks))
    for number, step in steps.items():
        at = blocks[number] + 8
        time, = struct.unpack_from('<Q', data, at)
        step = max(step, -(time // 2))
        struct.pack_into('<Q', data, at, time + step)
        # A STACK is behind the head of 48 bytes, and then a TIME.
        at += 40 + 2 * struct.unpack_from('<H', data, blocks[number] + 50)[0]
        word, = struct.unpack_from('<Q', data, at)
        expect_equal(word & 0xffff, 1 << 2 | 4 << 8, 'a TIME')
        struct.pack_into('<Q', data, at,
                         word & 0xffff | (time + step) % 2 ** 48 << 16)
    with open(path, 'wb') as file:
        file.write(data)
    return made.output


@test
def a_clock_that_jumps_loses_no_call():
    whole = calls_of(damaged_clock({}))
    for steps in ({1: -10 ** 6}, {1: -2 ** 40}, {1: 10 ** 6, 2: -10 ** 6}):
        output = damaged_clock(steps)
        expect_equal(calls_of(output), whole, steps)
        check_times(lines_of(output))
        # That is by time; this thread by thread, as the file has it.
        out, _ = read('export', 'chrome', output)
        times = [e['ts'] for e in json.loads(out)['traceEvents'] if 'ts' in e]
        expect(times == sorted(times), 'times of chrome go back')
        about = json.loads(shim_report('report', '--format', 'json', output))
        for function in about['functions']:
            expect(0 <= function['self_ns'] <= function['total_ns'] < 1e11,
                   (steps, function))


@test
def impossible_times_are_reported_and_ignored():
    whole = calls_of(damaged_clock({}))
    output = damaged_clock({1: 2 ** 50})
    expect_equal(calls_of(output), whole, 'calls')
    _, said = read('report', output)
    expect('not a record' in said, said)


@test
def threads_that_change_processors_have_one_time():
    made = record([compile('migrates.c')], 'trace')
    if made.stdout.startswith('1 '):
        raise Skipped('one processor')
    expect_equal(calls_of(made.output), {'main': 1, 'hop': 2000, 'leaf': 20000},
                 'calls')
    check_times(lines_of(made.output))
    about = json.loads(shim_report('report', '--raw', '--format', 'json',
                                   made.output))
    total = {f['name']: f['total_ns'] for f in about['functions']}
    expect(0 < total['leaf'] < total['hop'] < total['main'], total)


# --- hosts ---

def move_to_host(output, name):
    """What the processes of a recording say of their host."""
    for path in glob.glob(output + '/*/meta'):
        data = open(path, 'rb').read()
        found = re.search(rb'\0host=([^\0]+)\0', data)
        expect(found, 'no host in ' + path)
        size = len(found.group(1))
        with open(path, 'wb') as file:
            file.write(data.replace(found.group(0), b'\0host=' + name.encode()
                                    .ljust(size, b'x')[:size] + b'\0'))


def move_to_boot(output):
    """The host has started again before the recording."""
    for path in glob.glob(output + '/*/meta'):
        data = open(path, 'rb').read()
        with open(path, 'wb') as file:
            file.write(re.sub(rb'(?<=\0monotonic=)[^\0]', b'x', data))


@test
def reports_distinguish_hosts_with_equal_pids():
    one = record([compile('longjmp.c')], 'trace').output
    two = os.path.join(new_directory('hosts'), 'two')
    shutil.copytree(one, two)
    move_to_host(one, 'one')
    move_to_host(two, 'two')
    merged = os.path.join(new_directory('hosts'), 'merged')
    done = run([shimtest.report, 'merge', '-o', merged, one, two])
    expect_equal(done.status, 0, done.stderr)
    single = calls_of(one)
    expect_equal(calls_of(merged),
                 collections.Counter({n: 2 * c for n, c in single.items()}),
                 'calls')
    begins = sum('-- thread ' in line for line in lines_of(merged))
    expect_equal(begins, 2, 'threads')
    out, _ = read('export', 'chrome', merged)
    lanes = collections.Counter((e['pid'], e['tid']) for e in
                                json.loads(out)['traceEvents']
                                if e['ph'] == 'B')
    expect_equal(sorted(lanes.values()), [sum(single.values())] * 2, lanes)


def shift_clock(output, mono_ns, real_ns):
    """What a host says that was booted @mono_ns earlier, and whose time of day is
    @real_ns later."""
    for path in glob.glob(output + '/*/meta'):
        with open(path, 'rb') as file:
            data = bytearray(file.read())
        for offset, shift in ((48, mono_ns), (64, mono_ns), (80, real_ns)):
            value, = struct.unpack_from('<Q', data, offset)
            struct.pack_into('<Q', data, offset, value + shift)
        with open(path, 'wb') as file:
            file.write(data)


def mains_of(*hosts):
    """When each main of the merged recordings begins, in ns, and the warnings."""
    merged = os.path.join(new_directory('hosts'), 'merged')
    done = run([shimtest.report, 'merge', '-o', merged, *hosts])
    expect_equal(done.status, 0, done.stderr)
    done = run([shimtest.report, 'export', 'chrome', merged])
    return sorted(round(e['ts'] * 1e3) for e in json.loads(done.stdout)['traceEvents']
                  if e['ph'] == 'B' and e['name'] == 'main'), done.stderr


@test
def clocks_of_hosts_are_aligned_by_the_time_of_day():
    one = record([compile('longjmp.c')], 'trace').output
    day = 86400 * 10**9
    for name, mono_ns, real_ns, between, told in (
            ('one', 0, 0, 0, False),                    # one clock
            ('one', 3 * 10**9, 10**9, 3 * 10**9, False),  # a corrected time of day
            ('two', day, 0, 0, True),                  # another host
            ('two', 1000 * 10**9, 5 * 10**9, 5 * 10**9, True),
            ('one', 1000 * 10**9, day, day, True)):      # another boot
        two = os.path.join(new_directory('hosts'), 'two')
        shutil.copytree(one, two)
        move_to_host(one, 'one')
        move_to_host(two, name)
        shift_clock(two, mono_ns, real_ns)
        if name == 'one' and told:
            move_to_boot(two)
        begins, said = mains_of(one, two)
        # Each of the two is rounded.
        expect(abs(begins[1] - begins[0] - between) <= 1,
               (begins, between, name, mono_ns, real_ns))
        expect_equal('their clocks are aligned' in said, told, said)


# --- binaries ---

def recorded_copy():
    """A recording of a program of its own, which can be damaged."""
    program = os.path.join(new_directory('program'), 'program')
    shutil.copy(compile('longjmp.c'), program)
    return program, record([program], 'trace').output


@test
def a_trace_without_its_program_shows_addresses_and_a_message():
    program, output = recorded_copy()
    whole = calls_of(output)
    os.remove(program)
    out, said = read('report', '--format', 'json', '--limit', '0', output)
    expect(program in said, 'nothing is said: ' + said)
    functions = json.loads(out)['functions']
    expect_equal(sorted(f['calls'] for f in functions), sorted(whole.values()),
                 'calls')
    expect(not {f['name'] for f in functions} & set(whole), 'names')
    check_times(lines_of(output))


@test
def another_program_in_its_place_gives_no_names():
    for what in ('another', 'garbage', 'pipe', 'directory', 'empty'):
        program, output = recorded_copy()
        whole = calls_of(output)
        os.remove(program)
        if what == 'another':
            shutil.copy(compile('longjmp.c', 'gcc', '-O2'), program)
        elif what == 'garbage':
            with open(program, 'wb') as file:
                file.write(b'\x7fELF' + os.urandom(10000))
        elif what == 'pipe':
            os.mkfifo(program)
        elif what == 'directory':
            os.mkdir(program)
        else:
            open(program, 'w').close()
        out, said = read('report', '--format', 'json', '--limit', '0', output)
        expect(program in said, '%s: nothing is said: %s' % (what, said))
        functions = json.loads(out)['functions']
        expect(not {f['name'] for f in functions} & (set(whole) - {'main'}),
               '%s: wrong names: %s' % (what, [f['name'] for f in functions]))
        expect_equal(sum(f['calls'] for f in functions), sum(whole.values()),
                     what)
        lines_of(output)


if __name__ == '__main__':
    shimtest.main()
