#!/usr/bin/env python3
"""heap.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Heap snapshots while the program runs: tests/programs/heap_asked.c prints its own live
blocks.
"""
import json
import os
import re
import signal
import subprocess

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, \
    shim_report, test

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')


def program(family='gcc', optimize='-O1'):
    return compile('heap_asked.c', family, optimize,
                   ['-fno-builtin', '-I', INCLUDE])


def heap_asked(case, profile='memory', family='gcc', optimize='-O1', status=0):
    done = run([program(family, optimize), case], new_directory('recording'),
               profile)
    expect_equal((done.status, done.stdout, done.stderr), (status, '', ''),
                 'the program')
    return done.output


def read(output):
    return json.loads(shim_report('export', 'json', output))


def snapshots_of(about):
    """[{function: (bytes, blocks, lost, lost below)}], without libc's own blocks."""
    paths = {path['id']: path for path in about['paths']}
    found = []
    for snapshot in about['memory_snapshots']:
        expect_equal((snapshot['complete'], snapshot['missing_blocks']),
                     (True, 0), 'snapshot %d' % snapshot['number'])
        functions = {}
        for path in snapshot['paths']:
            number = path['path'] and paths[path['path']]['function']
            if number is not None and path['bytes']:
                functions[about['functions'][number]['name']] = (
                    path['bytes'], path['blocks'], path.get('lost_bytes'),
                    path.get('lost_below_bytes'))
        for key in 'bytes', 'blocks':
            expect_equal(sum(path[key] for path in snapshot['paths']),
                         snapshot[key], key)
        found.append(functions)
    return found


ITSELF = [
    {'by_variable': (100, 1, 0, 0)},
    {'by_variable': (100, 1, 0, 0), 'lost_at_once': (608, 1, 608, 0),
     'lost_head': (48, 1, 48, 0), 'below_head': (64, 1, 0, 64)},
    {'by_list': (512, 1, 0, 0), 'lost_at_once': (608, 1, 608, 0),
     'lost_head': (48, 1, 48, 0), 'below_head': (64, 1, 0, 64)},
]


@test
def a_snapshot_requested_by_the_program_has_the_live_blocks():
    for family, optimize in shimtest.BUILDS:
        output = heap_asked('itself', family=family, optimize=optimize)
        about = read(output)
        expect_equal(snapshots_of(about), ITSELF, family + optimize)
        expect_equal([s['number'] for s in about['memory_snapshots']],
                     [1, 2, 3], 'numbers')
        times = [s['ns'] for s in about['memory_snapshots']]
        expect(times == sorted(times), 'times: %r' % times)
    text = shim_report('report', output)
    expect(re.search(r'^snapshot 2, \S+ \S+ after the start: \S+ \S+ lived in '
                     r'\d+ blocks, of which 656 B in 2 were lost, and 64 B in 1 '
                     r'that nothing else points to \(found out in ', text, re.M),
           text)
    expect(re.search(r'^ *608 B +1 +608 B  main > itself > lose > lost_at_once$',
                     text, re.M), text)


def rows_of_tables(text):
    """[(printed rows, omitted rows)] of the tables of a report."""
    tables = []
    for line in text.splitlines():
        if re.search(r'  (function|path)(  |$)', line):
            tables.append([0, 0])
        elif tables and line.startswith('... '):
            tables[-1][1] = int(re.fullmatch(
                r'\.\.\. (\d+) more \(--limit 0 shows all\)', line).group(1))
        elif tables and re.match(r' *[\d.]+ [KMG]?i?B ', line):
            tables[-1][0] += 1
    return [tuple(table) for table in tables]


@test
def a_limit_holds_for_each_table_and_the_rest_is_counted():
    output = heap_asked('itself')
    whole = rows_of_tables(shim_report('report', '--limit', '0', output))
    expect_equal([left for _, left in whole], [0] * 5, 'left out of all')
    expect_equal([rows for rows, _ in whole[1:]], [3, 1, 4, 4], 'rows')
    for limit in 1, 3, 4, 100:
        expect_equal(rows_of_tables(shim_report('report', '--limit', str(limit),
                                                output)),
                     [(min(rows, limit), max(rows - limit, 0))
                      for rows, _ in whole], 'limit %d' % limit)


@test
def beside_calls_and_without_looking_for_leaks():
    about = read(heap_asked('itself', 'calltree;memory'))
    expect_equal(snapshots_of(about), ITSELF, 'calltree')
    about = read(heap_asked('itself', 'memory:leaks=0'))
    expect_equal(snapshots_of(about), [
        {name: (numbers[0], numbers[1], None, None)
         for name, numbers in snapshot.items()} for snapshot in ITSELF],
        'leaks=0')


@test
def sampled_snapshots_report_no_leaks():
    output = heap_asked('itself', 'memory:period=16,seed=1')
    for snapshot in read(output)['memory_snapshots']:
        expect('lost_bytes' not in snapshot, str(snapshot))
    expect('; what of it was lost is not known' in shim_report('report', output),
           'the report')


# All snapshots are on disk when the program is killed.
@test
def snapshots_survive_sigkill():
    about = read(heap_asked('killed', status=-signal.SIGKILL))
    expect_equal(snapshots_of(about), ITSELF, 'killed')


@test
def a_child_has_numbers_of_its_own():
    about = read(heap_asked('forked'))
    pids = [process['pid'] for process in about['processes']]
    found = {(pids.index(s['pid']), s['number']): f for s, f in
             zip(about['memory_snapshots'], snapshots_of(about))}
    expect_equal(found, {
        (0, 1): {'by_variable': (100, 1, 0, 0)},
        (0, 2): {'by_variable': (100, 1, 0, 0)},
        (1, 1): {'by_list': (512, 1, 0, 0)}}, 'snapshots')


@test
def blocks_held_only_by_a_register_are_not_leaks():
    for family, optimize in shimtest.BUILDS:
        about = read(heap_asked('register', family=family, optimize=optimize))
        expect_equal(snapshots_of(about), [{'by_register': (300, 1, 0, 0)}],
                     family + optimize)


@test
def others_may_be_at_it():
    about = read(heap_asked('threads'))
    found = snapshots_of(about)
    expect_equal(len(found), 20, 'snapshots')
    for snapshot in found:
        expect_equal(snapshot['by_variable'], (100, 1, 0, 0), 'by_variable')
        expect(snapshot.get('allocate', (0, 0))[1] <= 4 * 51, str(snapshot))
    expect(any('allocate' in snapshot for snapshot in found), str(found))
    found = snapshots_of(read(heap_asked('signals')))
    expect(len(found) >= 1, 'no snapshots in handlers')


# --- by profrun ctl ---

def profrun(*words):
    path = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    done = run([os.path.normpath(path), *words])
    return done.status, done.stdout + done.stderr


def while_it_waits(profile, ask):
    output = new_directory('recording')
    child = subprocess.Popen(
        [program(), 'asked'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=shimtest.environment(output, profile, SHIM_CONTROL='1'))
    try:
        for _ in range(2):
            child.stdin.write(b'x')
            child.stdin.flush()
            expect_equal(child.stdout.read(1), b'x', 'an answer')
            ask(child.pid)
        child.stdin.write(b'x')
        child.stdin.close()
        expect_equal(child.wait(30), 0, 'status')
    finally:
        child.kill()
        child.wait()
    return output


# The program is about to write its next byte, or waits for it: its heap is the same.
@test
def profrun_ctl_heap_requests_a_snapshot():
    answers = []
    output = while_it_waits('memory', lambda pid: answers.append(
        profrun('ctl', str(pid), 'heap')))
    expect_equal(answers, [(0, 'heap snapshot 1\n'), (0, 'heap snapshot 2\n')],
                 'answers')
    found = snapshots_of(read(output))
    expect_equal(found[1], ITSELF[1], 'the second')


@test
def profrun_has_paths_unwound_where_nothing_is_instrumented():
    plain = compile('leaking.c', name='leaking_unhooked', instrument=False)
    script = shimtest.new_source('script', '#!/bin/sh\nexec "$@"\n')
    os.chmod(script, 0o700)
    for command in [plain, 'plain'], [script, plain, 'plain']:
        output = os.path.join(new_directory('profrun'), 'recording')
        status, text = profrun('record', '-o', output, '-p', 'locks', '-p',
                               'memory:leaks=0', '-p', 'exceptions:unwind',
                               *command)
        expect_equal(status, 0, text)
        expect(re.search(r'^ *profile +locks:unwind;memory:leaks=0,unwind;'
                         r'exceptions:unwind$',
                         shim_report('info', output), re.M),
               shim_report('info', output))


@test
def ctl_heap_fails_without_the_profile_memory():
    def ask(pid):
        status, text = profrun('ctl', '-v', str(pid), 'heap')
        expect_equal(status, 1, text)
        expect('the program\'s memory is not' in text and
               '(SHIM_E_INCONSISTENT_WITH_FLAGS)' in text, text)
    while_it_waits('calltree', ask)


# --- periodic snapshots ---

@test
def live_bytes_are_recorded_over_time():
    output = heap_asked('stairs')
    about = read(output)
    points = about['memory_points']
    # At first one point for each tick; later points are thinned out for lack of room.
    expect(20 <= len(points) <= 100, '%d points' % len(points))
    times, heights = zip(*points)
    expect(list(times) == sorted(times), 'times: %r' % (times,))
    top = heights.index(max(heights))
    expect(list(heights[:top]) == sorted(heights[:top]), 'up: %r' % (heights,))
    expect(max(heights) <= about['memory_peak_bytes'], 'the peak')
    expect(max(heights) >= 0.95 * about['memory_peak_bytes'], 'the peak')
    # All steps have the same size.
    steps = {(high - low) % 10000 for low, high in zip(heights[1:top],
                                                       heights[2:top + 1])}
    expect_equal(steps, {0}, 'steps')
    first, last = times[0], times[top]
    middle = heights[[t > (first + last) / 2 for t in times].index(True)]
    expect(0.3 < middle / max(heights) < 0.7, 'half way: %d' % middle)


# The clock requests the snapshot, and the next thread that allocates makes it.
@test
def snapshots_come_at_the_requested_period():
    period = 100
    about = read(heap_asked('stairs', 'memory:snapshots=%d' % period))
    taken = about['memory_snapshots']
    expect(len(taken) >= 4, '%d snapshots' % len(taken))
    for one, after in zip(taken, taken[1:]):
        periods = (after['ns'] - one['ns']) / (period * 1e6)
        # (The clock's frequency is measured.)
        expect(periods > 0.999, '%.5f periods between two snapshots' % periods)
    blocks = [s['step'][1] for s in snapshots_of(about) if 'step' in s]
    top = blocks.index(max(blocks))
    expect(blocks[0] < max(blocks) and
           blocks[:top] == sorted(blocks[:top]), 'blocks: %r' % blocks)
    about = read(heap_asked('small', 'memory:snapshots=1'))
    expect(len(about['memory_snapshots']) >= 10, 'on a small stack')
    done = run([program(), 'itself'], new_directory('recording'),
               'memory:snapshots=0')
    expect("'memory:snapshots=0'" in shim_report('info', done.output), 'none')
    for value in '0', '86400001', '1s', '':
        status, text = profrun('-p', 'memory:snapshots=' + value, program())
        expect_equal(status, 2, text)


def moments_of(output):
    path = os.path.join(new_directory('massif'), 'massif.out')
    shim_report('export', 'massif', output, '-o', path)
    with open(path) as file:
        text = file.read()
    return path, [(int(n), int(ms), int(size), tree) for n, ms, size, tree in
                  re.findall(r'^snapshot=(\d+)\n#-----------\ntime=(\d+)\n'
                             r'mem_heap_B=(\d+)\nmem_heap_extra_B=0\n'
                             r'mem_stacks_B=0\nheap_tree=(\w+)$', text, re.M)]


@test
def massif_draws_how_it_went():
    output = heap_asked('stairs')
    path, moments = moments_of(output)
    expect_equal([m[0] for m in moments], list(range(len(moments))), 'numbers')
    times = [m[1] for m in moments]
    expect(len(moments) > 20 and times == sorted(times), 'times: %r' % times)
    expect_equal([m[3] for m in moments if m[3] != 'empty'],
                 ['peak', 'detailed'], 'trees')
    shimtest.need('ms_print')
    text = subprocess.run(['ms_print', path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True).stdout.decode()
    graph = text[text.index('MB^'):] if 'MB^' in text else text
    rows = [line for line in graph.splitlines() if '|' in line][:18]
    # A slope: every row begins further to the left than the row above it.
    begins = [min((line.find(c, 5) for c in ':@#' if line.find(c, 5) > 0),
                  default=99) for line in rows]
    expect(begins == sorted(begins, reverse=True) and
           len(set(begins)) > 10, 'the graph:\n' + text)
    expect(re.search(r'Detailed snapshots: \[\d+ \(peak\), %d\]' %
                     (len(moments) - 1), text), text)


@test
def massif_has_the_requested_snapshots():
    output = heap_asked('itself')
    path, moments = moments_of(output)
    wanted = [s['bytes'] for s in read(output)['memory_snapshots']]
    expect_equal([m[2] for m in moments if m[3] == 'detailed'][:3], wanted,
                 'detailed ones')
    shimtest.need('ms_print')
    text = subprocess.run(['ms_print', '--threshold=0', path],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    expect(len(re.findall(r'^->\S+% \(608B\) 0x\w+: lost_at_once ', text,
                          re.M)) >= 2, text)


@test
def damaged_recordings_are_read_as_far_as_they_go():
    import random
    output = heap_asked('itself')
    chance = random.Random(1)
    files = [os.path.join(d, n) for d, _, names in os.walk(output)
             for n in names if n.endswith('.calltree')]
    whole = {path: open(path, 'rb').read() for path in files}
    for _ in range(60):
        for path, data in whole.items():
            damaged = bytearray(data)
            used = max(4096, len(data.rstrip(b'\0')))
            for _ in range(chance.choice([1, 10, 200])):
                damaged[chance.randrange(used)] = chance.randrange(256)
            with open(path, 'wb') as file:
                file.write(damaged)
        for arguments in (['report', '--memory', output],
                          ['export', 'json', output],
                          ['export', 'massif', output]):
            done = subprocess.run([shimtest.report, *arguments],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=120)
            expect(done.returncode in (0, 1), '%s: %d: %s' % (
                arguments, done.returncode, done.stderr.decode()))


if __name__ == '__main__':
    shimtest.main()
