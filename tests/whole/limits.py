#!/usr/bin/env python3
"""limits.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Recordings and objects made to do harm: the reader must show what can be known or print
a message, with time and memory that depend on the size of its input (shim-recording(5),
LIMITS).
"""
import glob
import json
import os
import re
import resource
import struct
import subprocess

import craft
import shimtest
from craft import BASE, HEADER, MEMORY, node, thread
from shimtest import compile, expect, expect_equal, new_directory, record, test

SECONDS = 10            # of processor time: a runaway reader takes minutes
MIB = 1024


def run(program, recording, words, directory, seconds):
    """Status, beginning of the output, messages, and resources used."""
    with open(os.path.join(new_directory('output'), 'out'), 'w+b') as out:
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB << 20, -1))
        child = subprocess.Popen(
            [program, *words, recording], stdout=out, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, preexec_fn=limit, cwd=directory)
        said = child.stderr.read().decode(errors='replace')
        _, code, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(code)
        child.stderr.close()
        out.seek(0)
        return (child.returncode, out.read(1 << 22).decode(errors='replace'),
                said, used.ru_maxrss >> 10)


def read(recording, *words, status=0, directory=None, is_large=False):
    """The output and messages of shim-report, which may not use more than any report
    may.  Small recordings are also read with sanitizers."""
    checked = os.environ.get('CHECKED_REPORT', '')
    if not is_large and os.path.exists(checked):
        code, _, said, _ = run(checked, recording, words,
                               new_directory('checked'), 60)
        expect_equal(code, status, 'with sanitizers, %s: %s' % (
            ' '.join(words), said[:3000]))
    code, printed, said, mib = run(shimtest.report, recording, words,
                                   directory or new_directory('cwd'), SECONDS)
    expect_equal(code, status, '%s: %s' % (' '.join(words), said[-1000:]))
    expect(mib <= MIB, '%s: needs %d MiB' % (' '.join(words), mib))
    return printed, said


def process(files, **about):
    return craft.write(new_directory('recording'), {
        'meta': craft.meta(**about), 'images': craft.images(), **files})


def tree_of(*nodes, **about):
    return process({'0.calltree': craft.tree(thread(), *nodes)}, **about)


# --- former crashes ---

@test
def ranks_of_nothing_are_none():
    recording = process({})
    out, _ = read(recording, 'report', '--ranks')
    expect('0 ranks' in out, out)
    out, _ = read(recording, 'report', '--ranks', '--tree')
    out, _ = read(recording, 'report', '--ranks', '--format', 'json')
    expect_equal((json.loads(out)['ranks'], json.loads(out)['functions']),
                 ([], []), 'json')


@test
def the_most_waits_there_can_be_are_no_division_by_zero():
    for waits in 2**64 - 1, 2**64 - 2, 0:
        recording = tree_of(
            node(BASE, MEMORY),
            craft.lock(MEMORY + 128, BASE + 4096, waits=waits), profile='locks')
        for words in ((), ('--format', 'json'), ('--format', 'csv')):
            read(recording, 'report', '--locks', *words)


@test
def a_type_at_the_end_of_its_file_is_not_read_beyond_it():
    # One page more would only give wrong numbers.
    body = thread() + node(BASE, MEMORY)
    for at in range(1, 8):
        throw = craft.throw(MEMORY + 128, MEMORY + 4096 - at)
        data = craft.tree((body + throw).ljust(4096, b'\0'))
        recording = process({'0.calltree': data}, profile='exceptions')
        read(recording, 'report', '--exceptions')


@test
def a_count_of_calls_that_cannot_be_does_not_fill_the_disk():
    # The most that is believed where the end of the run is not known, and more.
    for most, status in ((2**58, 0), (2**64 - 1, 1)):
        recording = tree_of(*[node(BASE + 16 * i, MEMORY, calls=most - i)
                              for i in range(64)], ended=False)
        directory = new_directory('gmon')
        _, said = read(recording, 'export', 'gmon', directory=directory, status=status)
        expect('cannot be' in said, said)
        size = sum(file.stat().st_size for file in os.scandir(directory))
        expect(size < 64 << 20, '%d bytes' % size)


@test
def a_file_size_limit_is_reported_and_leaves_no_file():
    recording = tree_of(*functions(1000))
    directory = new_directory('cwd')

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, -1))
    for words in (['export', 'json', '-o', 'file'], ['html', '-o', 'file'],
                  ['merge', '-o', 'new']):
        done = subprocess.run([shimtest.report, *words, recording],
                              cwd=directory, preexec_fn=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        expect_equal(done.returncode, 1, words)
        expect(b'File too large' in done.stderr, done.stderr)
        expect_equal(os.listdir(directory), [], words)


# --- former runaways ---

def functions(count):
    return [node(BASE + 16 * i, MEMORY) for i in range(count)]


def chain(count, **more):
    """A chain of functions; each calls the next."""
    return [node(BASE + 16 * (i % 1000), MEMORY + (64 * (i + 1) if i else 0),
                 **more) for i in range(count)]


@test
def samples_at_the_end_of_a_long_path_cost_no_more_than_others():
    recording = process({'0.sampling': craft.tree(
        craft.sample_root(), *chain(100000), kind='sampling')})
    out, _ = read(recording, 'report', '--limit', '1', is_large=True)
    expect('100,000 samples' in out, out)


@test
def a_format_that_writes_each_path_whole_has_a_lower_limit():
    recording = tree_of(*chain(20000))
    for options, depth in (('--max-depth', '3'), 3), ((), 1024):
        out, said = read(recording, 'export', 'perf-script', '--value', 'calls', *options)
        expect('%d paths deeper than %d frames' % (20000 - depth, depth) in said, said)
        if options:
            # The calls below are in an event of their own, after the path's.
            expect_equal(re.findall(r': +(\d+) calls:$', out, re.M),
                         ['1', '1', '1', str(20000 - depth)], 'events')


@test
def samples_have_an_event_each_as_long_as_they_are_not_too_many():
    one_each, many = 1 << 20, 1 << 31
    recording = process({'0.sampling': craft.tree(
        craft.sample_root(), node(BASE, MEMORY, calls=one_each - 2),
        node(BASE + 16, MEMORY, calls=many), kind='sampling')})
    _, said = read(recording, 'export', 'perf-script', is_large=True)
    expect('%d samples' % (many - 2) in said, said)
    out = shimtest.shim_report('export', 'perf-script', recording)
    expect_equal(out.count(' cpu-clock:\n'), one_each + 1, 'events')
    expect_equal(re.findall(r': +(\d+) cpu-clock:$', out[-1000:], re.M)[-1],
                 str((many - 2) * 1000000), 'the last period')


@test
def words_of_functions_are_read_once_and_holes_are_not():
    words = [BASE + 16 * i for i in range(1 << 17)]
    data = bytearray(craft.functions([0] + words))
    recording = process({'1.functions': data, '0.trace': craft.trace([])})
    path = os.path.join(recording, '1000.0', '1.functions')
    for offset, size in ((craft.HEADER, len(data) - craft.HEADER),
                         (craft.HEADER, 1 << 42)):
        struct.pack_into('<I', data, 44, 40)
        for i in range(40):
            struct.pack_into('<3Q', data, 48 + 24 * i, offset, size, 0)
        with open(path, 'wb') as file:
            file.write(data)
        os.truncate(path, offset + size)
        read(recording, 'replay', is_large=True)


@test
def a_part_behind_the_end_of_its_file_has_nothing():
    data = craft.file_header('functions', [(HEADER, 64, BASE), (2**64 - 2**50, 512, BASE)])
    recording = process({'1.functions': data + bytes(64),
                         '0.trace': craft.trace([craft.enter(1), craft.leave()])})
    for words in ('replay',), ('report', '--trace'):
        _, said = read(recording, *words)
        expect('chunk 1 should reach' in said, said)


@test
def a_trace_that_is_one_hole_is_read_at_once():
    recording = process({'0.trace': craft.trace([craft.enter(1)])})
    os.truncate(os.path.join(recording, '1000.0', '0.trace'), 1 << 42)
    out, _ = read(recording, 'replay', is_large=True)
    expect(out.count('\n') > 1, out)


@test
def coroutines_that_take_turns_are_found_at_once():
    words = craft.functions([0, BASE, BASE + 16])
    count = 200000
    turns = [craft.track(i % (count // 2)) + craft.enter(1 + i % 2)
             for i in range(count)]
    recording = process({'1.functions': words, '0.trace': craft.trace(turns)})
    read(recording, 'replay', '--limit', '10', is_large=True)
    out, _ = read(recording, 'report', '--trace', is_large=True)
    expect('200,000 calls' in out, out)


@test
def short_calls_that_begin_long_before_they_end_are_left_out_at_once():
    """All coroutines begin a call, then all of them end it."""
    count = 100000
    records = [craft.track(i) + craft.enter(1) for i in range(count)]
    records += [craft.track(i) + craft.leave() for i in range(count)]
    recording = process({'1.functions': craft.functions([0, BASE]),
                         '0.trace': craft.trace(records)})
    out, _ = read(recording, 'replay', '--min-duration', '1us', is_large=True)
    expect_equal(out.count('0x'), 0, 'calls')


@test
def threads_look_for_their_gaps_among_counters_at_once():
    name = struct.pack('<HHI16s', craft.head(6, 24), 0, 1000, b'main')
    recording = process({'1.functions': craft.functions([0, BASE]),
                         '0.trace': craft.trace([name] * 100000)})
    with open(os.path.join(recording, 'counters'), 'w') as file:
        for i in range(200000):
            file.write('%d 1000 %d x\n' % (craft.CLOCK - 200000 + i, i))
    read(recording, 'replay', is_large=True)


@test
def many_locks_are_distinguished_quickly():
    """The locks are in the data of an object; nodes of other files refer to them as
    holders."""
    count = 120000
    locks = [craft.lock(MEMORY + 128, BASE + 64 * i, holder=MEMORY + 128,
                        kind=i % 5) for i in range(count)]
    recording = process({'0.calltree': craft.tree(thread(), *functions(1),
                                                  *locks),
                         'images': craft.images(craft.image(
                             BASE, BASE + 64 * count, '/nowhere'))},
                        profile='locks')
    for i in range(1, 300):
        with open(os.path.join(recording, '1000.0', '%d.calltree' % i),
                  'wb') as file:
            file.write(craft.tree(thread(1000 + i)))
    read(recording, 'report', '--locks', is_large=True)
    # Files in a row, none of which is in an image.
    recording = process({'0.calltree': craft.tree(thread(), *functions(1),
                                                  *locks),
                         'images': craft.images(*[craft.image(
                             BASE - 64 * i, BASE - 64 * i + 32, '/nowhere',
                             generation=i) for i in range(1, 20000)])},
                        profile='locks')
    read(recording, 'report', '--locks', is_large=True)


@test
def throws_are_placed_once_however_many_files_there_are():
    throws = [craft.throw(MEMORY + 128, 0) for _ in range(800000)]
    recording = process({'0.calltree': craft.tree(thread(), *functions(1),
                                                  *throws)},
                        profile='exceptions')
    for i in range(1, 8000):
        with open(os.path.join(recording, '1000.0', '%d.calltree' % i),
                  'wb') as file:
            file.write(craft.tree(thread(1000 + i)))
    read(recording, 'report', '--exceptions', is_large=True)


@test
def functions_that_a_thread_did_not_call_cost_nothing():
    """As many threads as functions; each thread calls one function."""
    count, nodes = 30000, []
    for i in range(count):
        nodes += [thread(1000 + i), node(BASE + 16 * i, MEMORY + 192 * i)]
    recording = process({'0.calltree': craft.tree(*nodes)})
    for words in (('--threads',), ('--threads', '--format', 'csv'),
                  ('--threads', '--format', 'json')):
        read(recording, 'report', *words, is_large=True)
    read(recording, 'export', 'speedscope', '--threads', is_large=True)
    read(recording, 'html', '-o', '-', is_large=True)


@test
def functions_that_a_rank_did_not_call_cost_nothing():
    recording, ranks = new_directory('recording'), 2000 if shimtest.ALL else 1000
    for i in range(ranks):
        craft.write(recording, {
            'meta': craft.meta(), 'images': craft.images(),
            '0.calltree': craft.tree(thread(), *[
                node(BASE + 16 * (20 * i + n), MEMORY) for n in range(20)]),
        }, '%d.0' % (1000 + i))
    out, _ = read(recording, 'report', '--ranks', is_large=True)
    expect('%d ranks' % ranks in out, out)
    read(recording, 'report', '--ranks', '--tree', is_large=True)
    read(recording, 'info', is_large=True)
    read(recording, 'diff', recording, is_large=True)


@test
def lines_are_found_by_their_object_at_once():
    """Many objects, many blocks, and functions in none of them."""
    count = 60000
    blocks, records = [], []
    for i in range(count):
        path = b'/nowhere/%d\0' % i
        head = struct.pack('<QQQQIIIIII', 1, 0, BASE + 4096 * i,
                           BASE + 4096 * i + 4096, i % 2, 0, 0, 0, len(path), 0)
        block = (head + path).ljust(-(-(len(head) + len(path)) // 8) * 8, b'\0')
        blocks.append(block[:8] + struct.pack('<Q', len(block)) + block[16:])
        records.append(craft.image(BASE + 4096 * i, BASE + 4096 * i + 4096,
                                   path[:-1]))
    words = [BASE + 4096 * i + 1 for i in range(count)]
    blocks.append(struct.pack('<4Q%dQ' % count, 2, 32 + 8 * count, count, count,
                              *words))
    recording = process({'0.coverage': craft.chunked('coverage',
                                                     b''.join(blocks)),
                         'images': craft.images(*records)}, profile='coverage')
    read(recording, 'report', is_large=True)
    read(recording, 'export', 'lcov', status=1, is_large=True)


ALIASES = """
int once(int value) { return value + 1; }
int another(int value) __attribute__((alias("once")));
int main(void) { return once(-1); }
"""


def images_of(recording):
    """The path of the file, and its records."""
    path, = glob.glob(recording + '/**/images', recursive=True)
    data, at, records = open(path, 'rb').read(), 24, []
    while size := struct.unpack_from('<I', data, at)[0]:
        records.append(data[at:at + size])
        at += size
    return path, records


def processor_time(recording):
    """Of the report and the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out, _ = read(recording, 'report', is_large=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    expect('main' in out, out)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


@test
def a_program_that_seems_loaded_thousands_of_times_is_read_once():
    """The program's calls are searched for the better one of two names."""
    source = shimtest.new_source('aliases.c', ALIASES)
    program = compile(source)
    recording = record([program]).output
    once = processor_time(recording)
    path, records = images_of(recording)
    loaded, = [r for r in records if program.encode() in r]
    start, end, bias = struct.unpack_from('<3Q', loaded, 8)
    for i in range(1, 4000):
        moved = struct.pack('<3Q', *[word - (i << 24) for word in (start, end, bias)])
        records.append(loaded[:8] + moved + loaded[32:])
    with open(path, 'wb') as file:
        file.write(craft.images(*records))
    times = processor_time(recording)
    expect(times < 10 * max(once, 0.02), '%.2f s, with one image %.2f s' % (times, once))


if __name__ == '__main__':
    shimtest.main()
