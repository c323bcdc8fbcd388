#!/usr/bin/env python3
"""selftimes.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Self times of the coarse clock: tests/programs/selftimes.c knows its own times.
"""
import collections
import glob
import os
import struct

import shimtest
from shimtest import compile, expect, json_of, linker_name, \
    new_directory, run, test


# A struct shim_thread_node: the offset of the first one, and words in it.
ROOT, START, LAST = 0x1000, 4, 15


def self_ms(output):
    """{function: self time}, without and with the hooks'."""
    ms, raw = collections.Counter(), collections.Counter()
    for function in json_of(output)['functions']:
        name = linker_name(function['name'])
        ms[name] += function['self_ns'] / 1e6
        raw[name] += function['self_raw_ns'] / 1e6
    return ms, raw


def recorded(case, profile='calltree', family='gcc'):
    output = new_directory('recording')
    done = run([compile('selftimes.c', family, '-O2'), case], output, profile)
    expect(done.status == 0, 'status %d' % done.status)
    return self_ms(output)


# The calibration measures a call with warm caches, which costs a fraction of a call
# here.  (With the calibrated cost subtracted, walk_left and walk_right keep more than
# half of the time; without hooks they have 5 ms of 400.)
@test
def the_time_of_hooks_belongs_to_no_function():
    for family in 'gcc', 'clang':
        ms, raw = recorded('paths', family=family)
        walked = ms['walk_left'] + ms['walk_right']
        expect(raw['walk_left'] + raw['walk_right'] > 100,
               'the hooks were not slow: %s' % raw)
        expect(walked < 0.2 * ms['spin'], 'walks %.0f ms, spin %.0f' % (
            walked, ms['spin']))
        expect(ms['spin'] > 350, 'spin %.0f ms' % ms['spin'])


@test
def calls_ended_by_a_jump_have_their_time():
    ms, _ = recorded('jumps')
    expect(ms['thrower'] > 250, 'thrower %.0f ms' % ms['thrower'])
    expect(ms['catcher'] < 0.2 * ms['thrower'], 'catcher %.0f ms, thrower %.0f' % (
        ms['catcher'], ms['thrower']))


# Both features need the same extra word of a path there.
@test
def memory_beside_it_changes_no_time():
    ms, raw = recorded('allocates', 'calltree;memory')
    expect(raw['allocator'] > 700, 'all of it: %s' % raw)
    expect(ms['allocator'] > 0.9 * raw['allocator'],
           'allocator %.0f of %.0f ms' % (ms['allocator'], raw['allocator']))


# No hook follows this work.
@test
def the_call_that_is_open_in_the_end_has_its_time():
    ms, _ = recorded('ends')
    expect(ms['last_one'] > 500, 'last_one %.0f ms' % ms['last_one'])
    expect(sum(ms.values()) < 1.5 * ms['last_one'], str(ms))


# The coarse clock lags behind the exact one by a tick or more.
@test
def a_last_tick_before_the_start_takes_no_time_away():
    output = new_directory('recording')
    run([compile('selftimes.c', 'gcc', '-O2'), 'ends'], output, 'calltree')
    name, = glob.glob(os.path.join(output, '*', '0.calltree'))
    with open(name, 'r+b') as file:
        file.seek(ROOT)
        root = list(struct.unpack('<16Q', file.read(128)))
        expect(root[0] >> 48 == 0xffff, 'no thread at %#x' % ROOT)
        root[LAST] = root[START] - 10 ** 7
        file.seek(ROOT)
        file.write(struct.pack('<16Q', *root))
    ms, _ = self_ms(output)
    expect(ms['last_one'] > 500, 'last_one %.0f ms' % ms['last_one'])


if __name__ == '__main__':
    shimtest.main()
