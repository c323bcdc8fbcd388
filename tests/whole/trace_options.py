#!/usr/bin/env python3
"""trace_options.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The options of trace: - allowed numbers, number of functions, combinations - and their
effect.  (The test uses the library without profrun, which would refuse bad options
first.)
"""
import glob
import os
import struct

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record,
                      run, shim_report, test)
from trace import calls_with, folded

# The tests of the imported module do not run here.
shimtest.tests.clear()

INFO, CLOCK_HZ = 4096, 72               # struct shim_trace_info; in struct shim_meta


def traced(options):
    return record([compile('longjmp.c')], 'trace:' + options)


def info_of(made):
    """The ring's size in bytes, the duration of the shortest call in clock units, and
    the clock's units in a second."""
    path, = glob.glob(made.output + '/*/*.trace')
    with open(path, 'rb') as file:
        file.seek(INFO)
        _, _, ring, _, shortest = struct.unpack('<IIQQQ', file.read(32))
    with open(os.path.dirname(path) + '/meta', 'rb') as file:
        hz, = struct.unpack_from('<Q', file.read(), CLOCK_HZ)
    return ring, shortest, hz


@test
def unknown_options_are_refused():
    names = ['args=f%d' % i for i in range(17)]
    for options in ('ring=', 'ring=1', 'ring=1T', 'ring=1MM', 'ring=K',
                    'ring=1023K', 'ring=1025G', 'ring=1048577M',
                    # A reader that ignored overflow would take these for other numbers.
                    'ring=18446744073709551617M', 'min=18446744073709551617us',
                    'every=two/18446744073709551617', 'every=two/99999999999',
                    'depth=18446744073709551617', 'min=', 'min=1', 'min=us',
                    'min=0us', 'min=1m', 'min=1uss', 'min=1000000s', 'min=-1us',
                    'every=two', 'every=two/', 'every=/2', 'every=two/0',
                    'every=two/2x', 'every=two/-1', 'depth=', 'depth=0',
                    'depth=1x', 'depth=4294967296', 'args=', 'results=',
                    'trigger=', 'args=' + 'x' * 128, 'off=1', 'of', 'offf', 'arg',
                    ','.join(names)):
        made = traced(options)
        expect_equal(made.status, 0, options)
        about = shim_report('info', made.output)
        expect("'trace:%s" % options[:40] in about, options[:60] + ': ' + about)
        expect_equal(glob.glob(made.output + '/*/*.trace'), [], options)


@test
def options_up_to_the_last_number_are_taken():
    names = ['args=f%d' % i for i in range(16)]
    for options in ('ring=1024K', 'ring=1048576K', 'ring=1024G', 'min=999999s', 'min=1ns',
                    'ring=1048577K', 'min=1000000us',
                    'every=two/9999999999', 'depth=4294967295',
                    'args=' + 'x' * 127, 'off', ','.join(names)):
        expect(glob.glob(traced(options).output + '/*/*.trace') or
               options == 'off', options)


@test
def units_of_times_are_right():
    for text, wanted in (('1024K', 1 << 20), ('3M', 3 << 20), ('2G', 2 << 30)):
        expect_equal(info_of(traced('ring=' + text))[0], wanted, text)
    for text, ns in (('500ns', 500), ('10us', 10 ** 4), ('3ms', 3 * 10 ** 6),
                     ('7s', 7 * 10 ** 9)):
        _, shortest, hz = info_of(traced('min=' + text))
        expect(abs(shortest - ns * hz / 1e9) <= 1 + ns * hz / 1e9 / 1e3,
               '%s: %d, %d in a second' % (text, shortest, hz))


@test
def depth_counts_from_the_trigger_on():
    _, calls = calls_with('trigger=nest,depth=2', 'longjmp.c')
    expect_equal(calls, {'nest': 1, 'nest;outer': 1, 'nest;leaf': 1}, 'calls')


@test
def a_function_called_all_can_be_chosen():
    done = run([shimtest.report, 'export', 'folded',
                traced('trigger=all').output])
    expect('no call was recorded' in done.stderr, done.stdout[:500])
    _, calls = calls_with('every=all/2', 'longjmp.c')
    expect_equal(calls['main;again;one'], 5000, 'every=all/2')
    made = record([compile('traced_values.c')], 'trace:args=all_of_them')
    expect('add(' not in shim_report('replay', made.output), 'args=all_of_them')


@test
def of_more_functions_of_a_name_than_are_counted_all_calls_are_there():
    source = os.path.join(new_directory('overloads'), 'overloads.cc')
    with open(source, 'w') as file:
        for i in range(70):
            file.write('struct s%d {};\nvoid step(s%d) {}\n' % (i, i))
        file.write('int main() { for (int i = 0; i < 100; i++) {%s} }\n' %
                   ' '.join('step(s%d());' % i for i in range(70)))
    made = record([compile(source)], 'trace:every=step/2')
    calls = dict(line.rsplit(' ', 1) for line in folded(made.output))
    counts = [int(calls.get('main;step(s%d)' % i, 0)) for i in range(70)]
    expect_equal(sum(counts[:64]), 64 * 50, 'of those that are counted')
    expect_equal(counts[64:], [100] * 6, 'of the others')


if __name__ == '__main__':
    shimtest.main()
