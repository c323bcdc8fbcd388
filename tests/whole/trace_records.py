#!/usr/bin/env python3
"""trace_records.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Traces that the test writes record by record as <shim/format.h> describes, and the
reader's output for each.
"""
import glob
import json
import os
import re
import shutil
import struct

import shimtest
from gaps import ns_of
from shimtest import (compile, expect, expect_equal, new_directory, record, run,
                      test)

# The tests of the imported module do not run here.
shimtest.tests.clear()

BLOCK, FIRST, HEAD = 65536, 8192, 48    # struct shim_trace_block has 48 bytes
# enum shim_trace_kind
(TIME, ENTER_LONG, UNWOUND, TRACK, TRACK_NEW, THREAD, NAME, ENDED, STACK, PAUSE, LOST,
 ARGUMENTS, RESULT, MARK) = range(1, 15)
COUNTER, WAIT_BEGIN, WAIT = 17, 20, 21
MAIN, AGAIN, ONE, TWO, THREE = range(1, 6)      # numbered by their first calls
NOBODY = 30000                          # the number of no function
recorded = {}


def head(kind, size):
    return struct.pack('<H', kind << 2 | (size // 2) << 8)


def long(kind, word):
    return head(kind, 8) + word.to_bytes(6, 'little')


def text(kind, string):
    size = 2 + (len(string) + 1) // 2 * 2
    return head(kind, size) + string.encode().ljust(size - 2, b'\0')


def thread(kind, tid, name):
    return head(kind, 24) + struct.pack('<HI16s', 0, tid, name.encode())


def wait(kind, holder, waited, failed=0):
    return head(kind, 24) + struct.pack('<BBIQQ', 0, failed, holder, 0x1234, waited)


def stack(*functions, more=0):
    return head(STACK, 0) + struct.pack('<HI%dI' % len(functions),
                                        4 + 2 * len(functions), more, *functions)


class Clock:
    """Builds records, each @step later than the one before."""

    def __init__(self, now, step=1000):
        self.now, self.step = now, step

    def tick(self):
        self.now += self.step
        return self.now

    def enter(self, function):
        return struct.pack('<I', 2 | (self.tick() & 32767) << 2 | function << 17)

    def enter_long(self, function):
        return long(ENTER_LONG, function | (self.tick() & 32767) << 32)

    def leave(self):
        return struct.pack('<H', 1 | (self.tick() & 32767) << 1)

    def time(self, later=0):
        self.now += later
        return long(TIME, self.now & (1 << 48) - 1)


def base():
    if not recorded:
        output = record([compile('longjmp.c')], 'trace').output
        path, = glob.glob(output + '/*/*.trace')
        data = open(path, 'rb').read()
        recorded['output'] = output
        recorded['head'] = data[:FIRST]
        recorded['block'] = data[FIRST:FIRST + HEAD]
        recorded['time'], recorded['tid'] = struct.unpack_from('<QI', data,
                                                               FIRST + 8)
    return recorded['output']


def clock(step=1000):
    base()
    return Clock(recorded['time'], step)


def write(*blocks):
    """Writes a trace.  Each block: bytes, or (track, thread, bytes)."""
    copy = os.path.join(new_directory('records'), 'recording')
    shutil.copytree(base(), copy)
    path, = glob.glob(copy + '/*/*.trace')
    data = bytearray(recorded['head'])
    struct.pack_into('<Q', data, 4096 + 16, len(blocks))    # begun
    for number, block in enumerate(blocks, 1):
        track, ordinal, records = block if isinstance(block, tuple) else (
            0, 1, block)
        begin = bytearray(recorded['block'])
        struct.pack_into('<Q', begin, 0, number)
        struct.pack_into('<II', begin, 20, track, ordinal)
        data += begin + records
        data += bytes(-len(data) % BLOCK)
    with open(path, 'wb') as file:
        file.write(data)
    return copy


LINE = re.compile(r' *([\d.]+) (.{10}) *(\d+)(?:/\d+)?  ( *)(.*)')


def replay(*blocks, words=(), said='', **variables):
    """[(depth, text)], [us], [duration as text] from the output of replay."""
    done = run([shimtest.report, 'replay', '--color', 'never', *words,
                write(*blocks)], **variables)
    expect_equal(done.status, 0, done.stderr)
    expect(said in done.stderr if said else not done.stderr, done.stderr)
    found = [LINE.fullmatch(line) for line in done.stdout.splitlines()[1:]]
    return ([(len(f.group(4)) // 2, f.group(5)) for f in found],
            [float(f.group(1)) for f in found],
            [f.group(2).strip() for f in found])


def shown(*blocks, **more):
    """The same without the begin of the thread."""
    return [what for what in replay(*blocks, **more)[0]
            if not what[1].startswith('-- thread')]


@test
def unwinding_ends_exactly_one_call():
    c = clock()
    expect_equal(shown(c.enter(MAIN) + c.enter(ONE) + c.enter(TWO) +
                       head(UNWOUND, 2) + c.leave() + c.leave() + c.leave()),
                 [(0, 'main {'), (1, 'one {'), (2, 'two  (unwound);'),
                  (1, '} one'), (0, '} main')], 'calls')


@test
def numbers_above_32767_are_whole():
    c = clock()
    expect_equal(shown(c.enter(MAIN) + c.enter_long(TWO) + c.leave() +
                       c.leave()), [(0, 'main {'), (1, 'two;'), (0, '} main')],
                 'calls')
    c = clock()
    _, times, _ = replay(c.enter(MAIN) + c.enter_long(TWO) + c.leave() +
                         text(MARK, 'end') + c.leave())
    expect(times[2] - times[1] > 0.01 and times == sorted(times), times)
    c = clock()
    whats = shown(c.enter(MAIN) + c.enter_long(1 << 17 | TWO) +
                  c.enter(NOBODY) + c.leave() + c.leave() + c.leave())
    expect(all('two' not in what for _, what in whats) and len(whats) == 5,
           whats)


@test
def a_text_is_as_long_as_there_is_room_for():
    c = clock()
    # (The size follows the head and thus becomes the begin of the text: "-\x01".)
    large = struct.pack('<HH', MARK << 2, 301) + b'y' * 598
    expect_equal(shown(c.enter(MAIN) + text(MARK, 'x' * 240) + large + c.leave()),
                 [(0, 'main {'), (1, '-- mark ' + 'x' * 240),
                  (1, '-- mark -\\x01' + 'y' * 509), (0, '} main')], 'texts')


@test
def times_of_15_bits_add_up():
    c = clock(20000)
    records = c.enter(MAIN)
    for _ in range(5000):
        records += c.enter(ONE) + c.leave()
    _, times, _ = replay(records + text(MARK, 'added') + c.time() +
                         text(MARK, 'said') + c.leave())
    expect(abs(times[-2] - times[-3]) < 0.01, times[-3:])


@test
def results_come_with_the_end_of_their_call():
    c = clock()
    expect_equal(shown(c.enter(MAIN) + c.enter(ONE) + text(RESULT, '7') +
                       c.enter(TWO) + text(RESULT, '8') + c.leave() +
                       c.leave() + text(RESULT, '9')),
                 [(0, 'main {'), (1, 'one {'), (2, 'two = 8;'), (1, '} one = 7'),
                  (0, '} main = 9  (open)')], 'calls')
    c = clock()
    expect_equal(shown(c.enter(ONE) + text(RESULT, '7') + text(RESULT, '8') +
                       c.leave()), [(0, 'one = 8;')], 'the last')


@test
def arguments_are_of_the_call_that_they_stand_behind():
    late = 'that a signal handler interrupted: '
    for what, records, wanted in (
            ('behind a leave', lambda c: c.enter(MAIN) + c.enter(ONE) +
             c.leave() + text(ARGUMENTS, 'x = 1') + c.leave(),
             [(0, 'main {'), (1, 'one;'), (0, '} main')]),
            ('behind a mark', lambda c: c.enter(MAIN) + text(MARK, 'm') +
             text(ARGUMENTS, 'x = 1') + c.leave(),
             [(0, 'main {'), (1, '-- mark m'), (0, '} main')]),
            ('behind another track', lambda c: c.enter(MAIN) +
             long(TRACK, 5) + long(TRACK, 0) + text(ARGUMENTS, 'x = 1') +
             c.leave(), [(0, 'main;')]),
            ('on another track', lambda c: c.enter(MAIN) + long(TRACK, 3) +
             c.enter(ONE) + long(TRACK, 0) + c.enter(TWO) + long(TRACK, 3) +
             text(ARGUMENTS, 'x = 1'),
             [(0, 'main {'), (0, 'one {'), (1, 'two {'), (0, '} one  (open)'),
              (1, '} two  (open)'), (0, '} main  (open)')]),
            ('behind what it is not of', lambda c: c.enter(MAIN) + c.leave() +
             text(ARGUMENTS, 'x = 1'), [(0, 'main;')]),
            ('with nothing open', lambda c: text(ARGUMENTS, 'x = 1'), []),
            ('a result with nothing open', lambda c: text(RESULT, '1'), [])):
        expect_equal(shown(records(clock()), said=late), wanted, what)
    c = clock()
    expect_equal(shown(c.enter(MAIN) + long(TRACK, 0) + bytes(4) +
                       text(ARGUMENTS, 'x = 1') + c.leave()),
                 [(0, 'main(x = 1);')], 'behind the same track')


def merged(first, second):
    """The lines of replay for the records of two threads; and [(kind, tid)]."""
    recording = write(first)
    path, = glob.glob(recording + '/*/*.trace')
    data = bytearray(recorded['head'])
    struct.pack_into('<Q', data, 4096 + 16, 1)      # begun
    struct.pack_into('<I', data, 36, 1)             # the number of the file
    block = bytearray(recorded['block'])
    struct.pack_into('<I', block, 16, recorded['tid'] + 1)
    data += block + second
    with open(os.path.join(os.path.dirname(path), '1.trace'), 'wb') as file:
        file.write(data + bytes(-len(data) % BLOCK))
    done = run([shimtest.report, 'replay', '--color', 'never', recording])
    events = run([shimtest.report, 'replay', '--json', recording])
    expect_equal((done.status, events.status), (0, 0), done.stderr + events.stderr)
    lines = [LINE.fullmatch(line).group(5) for line in done.stdout.splitlines()[1:]]
    return ([line for line in lines if not line.startswith('-- thread')],
            [(e['kind'], e['tid']) for e in json.loads(events.stdout)['events']])


@test
def values_stay_with_their_calls_when_threads_are_merged():
    # The first thread writes its arguments after calls of the second.
    a, b = clock(), clock()
    lines, events = merged(
        a.enter(MAIN) + a.time(9000) + text(ARGUMENTS, 'x = 1') + text(RESULT, '7') +
        a.leave(), b.time(2000) + b.enter(ONE) + text(ARGUMENTS, 'y = 2') + b.enter(TWO) +
        b.leave() + text(RESULT, '8') + b.leave())
    expect_equal(lines, ['main(x = 1) {', 'one(y = 2) {', 'two;', '} one = 8', '} main = 7'],
                 'one after the other')
    # Both do the same at the same times.
    lines, events = merged(*(
        c.enter(MAIN) + text(ARGUMENTS, name) + c.enter(function) +
        text(ARGUMENTS, name) + text(RESULT, name) + c.leave() + text(RESULT, name) +
        c.leave() for c, function, name in ((clock(), ONE, 'one'), (clock(), TWO, 'two'))))
    expect_equal(sorted(lines),
                 ['main(one) {', 'main(two) {', 'one(one) {', 'two(two) {', '} main = one',
                  '} main = two', '} one = one', '} two = two'], 'at the same time')
    for before, after in zip(events, events[1:]):
        expect(after[0] != 'arguments' or before == ('enter', after[1]), events)
        expect(before[0] != 'result' or after == ('leave', before[1]), events)


@test
def a_stack_record_ends_and_begins_unseen_calls():
    def between(records, wanted, what, said=''):
        c = clock()
        expect_equal(shown(c.enter(MAIN) + c.enter(ONE) + c.enter(TWO) +
                           records + c.leave(), said=said), wanted, what)
    opened = [(0, 'main {'), (1, 'one {')]
    between(stack(MAIN, ONE), opened + [
        (2, 'two  (ended unseen);'), (1, '} one'), (0, '} main  (open)')], 'one less')
    between(stack(MAIN, AGAIN), [
        (0, 'main {'), (1, 'one {'), (2, 'two  (ended unseen);'),
        (1, '} one  (ended unseen)'), (1, 'again  (began unseen);'),
        (0, '} main  (open)')], 'another')
    between(stack(), opened + [
        (2, 'two  (ended unseen);'), (1, '} one  (ended unseen)'),
        (0, '} main  (ended unseen)')], 'none', 'a call ends that never began')
    between(stack(ONE, TWO, more=1), opened + [
        (2, 'two;'), (1, '} one  (open)'), (0, '} main  (open)')], 'the innermost')
    between(stack(ONE, THREE, more=1), opened + [
        (2, 'two  (ended unseen);'), (1, '} one  (ended unseen)'),
        (0, '} main  (ended unseen)'), (0, 'one {  (began unseen)'),
        (1, 'three  (began unseen);'), (0, '} one  (open)')], 'others')
    c = clock()
    expect_equal(shown(stack(*[ONE] * 1000) + c.leave())[-1],
                 (0, '} one  (open)'), 'a thousand')
    expect_equal(shown(stack(*[ONE] * 1001), said='not a record'), [],
                 'more than there may be')


@test
def unrecorded_time_lies_between_a_pause_and_a_stack():
    c = clock()
    expect_equal(shown(c.enter(MAIN) + head(PAUSE, 2) + c.time(5000) +
                       stack(MAIN) + c.enter(ONE) + c.leave() + stack(MAIN) +
                       c.leave()),
                 [(0, 'main {'), (1, '-- off'),
                  (1, '-- on'), (1, 'one;'), (0, '} main')],
                 'calls')


@test
def losses_are_shown_with_their_cause():
    c = clock()
    for cause, words in ((0, 'space'), (6, 'other'), (7, 'other'), (200, 'other')):
        c = clock()
        expect_equal(shown(c.enter(MAIN) + head(LOST, 8) +
                           struct.pack('<HI', cause, 7) + c.leave()),
                     [(0, 'main {'), (1, '-- lost 7 calls: ' + words),
                      (0, '} main')], cause)


@test
def waits_are_shown_when_they_end():
    c = clock()
    waits, _, durations = replay(
        c.enter(MAIN) + wait(WAIT_BEGIN, 7, 0) + c.time(5000) + wait(WAIT, 7, 1000000) +
        c.enter(ONE) + c.time() + wait(WAIT, 0, 2000000, failed=1) + c.leave() +
        c.leave())
    expect_equal(waits[1:], [
        (0, 'main {'), (1, '-- waited for mutex 0x1234, held by 7'), (1, 'one {'),
        (2, '-- waited in vain for mutex 0x1234'), (1, '} one'), (0, '} main')],
        'waits')
    first, second = (ns_of(durations[at]) for at in (2, 4))
    expect(1.9 < second / first < 2.1, durations)
    # A thread that did nothing more waits until its end; another one jumped away.
    c = clock()
    expect_equal(shown(c.enter(MAIN) + c.time() + wait(WAIT_BEGIN, 7, 0))[1:],
                 [(1, '-- waits for mutex 0x1234, held by 7'),
                  (0, '} main  (open)')], 'the last record')
    expect_equal(shown(c.enter(MAIN) + c.time() + wait(WAIT_BEGIN, 7, 0) +
                       c.leave()), [(0, 'main;')], 'a jump')


@test
def tracks_have_calls_of_their_own():
    c = clock()
    expect_equal(shown(c.enter(MAIN) + long(TRACK, 3) + c.enter(ONE) +
                       long(TRACK, 0) + c.enter(TWO) + c.leave() +
                       long(TRACK, 3) + c.leave() + c.enter(THREE) +
                       long(TRACK_NEW, 3) + c.enter(TWO) + c.leave() +
                       long(TRACK, 0) + c.leave()),
                 [(0, 'main {'), (0, 'one {'), (1, 'two;'), (0, '} one'),
                  (0, 'three  (open);'), (0, 'two;'), (0, '} main')], 'calls')


@test
def each_block_continues_the_previous_one():
    c = clock()
    first = c.enter(MAIN) + c.enter(ONE)
    second = stack(MAIN, ONE) + c.leave() + long(TRACK, 3) + c.enter(TWO)
    third = stack(TWO) + c.leave() + long(TRACK, 0) + c.leave()
    expect_equal(shown(first, second, (3, 1, third)),
                 [(0, 'main {'), (1, 'one;'), (0, 'two;'), (0, '} main')], 'calls')


@test
def a_change_of_thread_ends_open_calls():
    c = clock()
    first = c.enter(MAIN) + c.enter(ONE) + c.leave()
    second = c.time(50000) + c.enter(TWO) + c.leave()
    for name, blocks in (
            ('second', (first + c.time() + thread(THREAD, 7, 'second') + second,)),
            ('longjmp', (first, (0, 2, second)))):
        whats, _, durations = replay(*blocks)
        expect_equal(whats, [
            (0, '-- thread longjmp'), (0, 'main {'), (1, 'one;'),
            (0, '} main  (open)'), (0, '-- thread ' + name), (0, 'two;')], name)
        # The thread's last known time is the end of its last call.
        expect(ns_of(durations[3].strip('>')) < 3 * ns_of(durations[2]), durations)


@test
def a_thread_whose_record_begins_a_block_begins_once():
    """The header of the block has begun it; one with another tid is another thread."""
    c = clock()
    calls = [[c.enter(function), c.leave()] for function in (MAIN, ONE, TWO, THREE)]
    same = c.time() + thread(THREAD, recorded['tid'], 'longjmp')
    main, one, two, three = (b''.join(call) for call in calls)
    begin, end = (0, '-- thread longjmp'), (0, '-- end of thread longjmp')
    expect_equal(replay(main + head(ENDED, 2),
                        (0, 2, stack() + bytes(2) + same + one + calls[2][0]),
                        (0, 2, stack(TWO) + calls[2][1] + head(ENDED, 2)),
                        (0, 3, stack() + three))[0],
                 [begin, (0, 'main;'), end, begin, (0, 'one;'), (0, 'two;'), end,
                  begin, (0, 'three;')], 'threads')
    expect_equal(replay((0, 2, stack() + same + one), (0, 2, stack() + two))[0],
                 [begin, (0, 'one;'), (0, 'two;')], 'the first block of a ring')
    other = c.time() + thread(THREAD, recorded['tid'] + 1, 'longjmp')
    for next in other, head(ENDED, 2) + same, same + one + same:
        whats = replay(main, (0, 2, stack() + next + two))[0]
        expect_equal(whats.count(begin), 3, whats)


@test
def a_thread_has_the_name_that_it_gave_itself():
    c = clock()
    expect_equal(shown(c.enter(MAIN) + thread(NAME, 7, 'painter') + c.leave() +
                       head(ENDED, 2))[:3],
                 [(0, 'main {'), (1, '-- this thread is now painter'),
                  (0, '} main')], 'calls')


@test
def an_invalid_record_ends_its_block():
    for what, record_ in (('kind 0', struct.pack('<H', 1 << 8) + bytes(6)),
                          ('a size of 0', head(MARK, 0) + bytes(6)),
                          ('a short time', head(TIME, 4) + bytes(2)),
                          ('a short name', head(NAME, 22) + b'\xff' * 20),
                          ('a short wait', head(WAIT, 22) + b'\xff' * 20),
                          ('a short counter', head(COUNTER, 14) + b'\xff' * 12),
                          ('short values', head(18, 2)),
                          ('a short result', head(19, 2)),
                          ('larger than its block', head(STACK, 0) +
                           b'\xff' * 6)):
        c = clock()
        lines = shown(c.enter(MAIN) + record_ + c.enter(ONE) + c.leave() + c.leave(),
                      stack(MAIN) + c.leave(), said='not a record; ')
        expect_equal(lines, [(0, 'main;')], what)
    c = clock()
    expect_equal(shown(c.enter(MAIN) + head(40, 6) + b'\xff' * 4 + c.leave()),
                 [(0, 'main;')], 'a kind that is not known')
    expect_equal(shown(c.leave(), said='a call ends that never began'),
                 [], 'an end alone')


def damage_of(recording):
    """The damage that json, the report and info show."""
    json_, text_, info = (
        run([shimtest.report, *words, recording]).stdout
        for words in (['export', 'json'], ['report'], ['info']))
    figures = json.loads(json_)['trace_damage']
    told = re.search(r'parts of the trace LOST \((\d+) blocks missing, (\d+) damaged: '
                     r'(.*) unread\)', text_)
    expect_equal('nothing lost' in text_, not told, text_)
    expect_equal('are not read' in info, bool(told), info)
    return tuple(figures.values()), told and told.groups()


@test
def unreadable_parts_of_a_trace_are_counted():
    c = clock()
    good = c.enter(MAIN) + c.enter(ONE) + c.leave()
    expect_equal(damage_of(write(good + c.leave())), ((0, 0, 0), None), 'sound')
    bad = good + head(NAME, 22) + b'\xff' * 1022 + bytes(6)
    expect_equal(damage_of(write(bad, stack(MAIN) + c.leave())),
                 ((0, 1, 1024), ('0', '1', '1.0 KiB')), 'damaged')
    recording = write(good, stack(MAIN), stack(MAIN), stack(MAIN) + c.leave())
    path, = glob.glob(recording + '/*/*.trace')
    with open(path, 'r+b') as file:
        file.seek(4096 + 16)
        file.write(struct.pack('<Q', 5))        # begun
        file.seek(FIRST + BLOCK)
        file.write(bytes(BLOCK))                # the second
    expect_equal(damage_of(recording), ((2, 0, 0), ('2', '0', '0 B')),
                 'missing')


@test
def zeros_are_holes_of_any_size():
    for size in (2, 4, 6, 8, 10, 12, 16, 18, 30, 20000):
        c = clock()
        expect_equal(shown(c.enter(MAIN) + bytes(size) + c.enter(ONE) +
                           bytes(size) + c.leave() + c.leave()),
                     [(0, 'main {'), (1, 'one;'), (0, '} main')], size)


# Seen to fail when a window is read only once.
@test
def records_that_a_program_writes_while_they_are_read_are_there():
    library = compile('late_records.c', flags=['-shared', '-fPIC'],
                      name='late-records.so', libraries=['-ldl'], instrument=False)
    options = os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'
    for skipped, size in (0, 4), (4, 4), (4, 6), (8, 2), (10, 4):
        c = clock()
        records = c.enter(MAIN) + c.enter(ONE) + c.leave() + c.enter(TWO) + c.leave() * 2
        expect_equal(shown(records, LD_PRELOAD=library, LATE_SIZE=str(size),
                           LATE_AT=str(FIRST + HEAD + skipped), ASAN_OPTIONS=options),
                     [(0, 'main {'), (1, 'one;'), (1, 'two;'), (0, '} main')],
                     (skipped, size))


@test
def records_lie_across_whatever_is_read_at_once():
    for at in range(16384 - 56, 16384 - 40, 2):
        c = clock(1)
        filled = c.enter(MAIN)
        while len(filled) < at - 12:
            filled += c.enter(ONE) + c.leave()
        filled += bytes(at - len(filled))
        lines = shown(filled + text(MARK, 'a mark that is longer than it was') +
                      c.enter(TWO) + c.leave() + c.leave())
        expect_equal(lines[-3:], [
            (1, '-- mark a mark that is longer than it was'), (1, 'two;'),
            (0, '} main')], at)


if __name__ == '__main__':
    shimtest.main()
