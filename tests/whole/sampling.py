#!/usr/bin/env python3
"""sampling.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The sampler: who owns it, what its hits weigh, and that the program does not
notice (tests/programs/sampled.c is the program and says what it noticed).
"""
import os
import re
import time

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, test

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')
NONE, PROCESS, REAL, THREAD = '0', '1', '2', '3'


class Sampled:
    """A run of sampled.c."""

    def __init__(self, *arguments, timeout=60, **more):
        program = compile('sampled.c', 'gcc', '-O1', ['-I', INCLUDE],
                          instrument=False)
        done = run([program, *arguments], new_directory('recording'), 'none',
                   timeout=timeout, **more)
        self.text = done.stdout
        wrong = re.findall('^wrong: .*', done.stdout, re.M)
        expect(not wrong, '\n'.join(wrong[:10]))
        expect_equal((done.status, done.stderr), (0, ''), 'the program')
        self.hits, self.weight, self.processor = [float(n) for n in re.search(
            r'^hits (\d+) weight (\d+) processor (\S+)$', done.stdout,
            re.M).groups()]
        self.counts = {k: int(v) for k, v in re.findall(
            r'(\w+) (\d+)', re.search('^sent.*', done.stdout, re.M).group())}

    def of_threads(self):
        return [(int(w), float(t or 0)) for w, t in re.findall(
            r'^thread \d+ weight (\d+)(?: time (\S+))?$', self.text, re.M)]


def near(got, wanted, part, what):
    expect(abs(got - wanted) <= wanted * part, '%s: %g, not %g within %g %%' % (
        what, got, wanted, 100 * part))


# Rows M-33 to M-37, M-39, M-40.
@test
def the_first_who_enables_owns_and_the_next_inherits():
    Sampled('owner')


# Rows M-32, M-38.
@test
def all_threads_that_compute_are_hit_by_their_own_time():
    for mode in PROCESS, THREAD:
        for rate in 100, 1000:
            threads = Sampled('spin', mode, str(rate)).of_threads()
            expect_equal(len(threads), 4, 'threads')
            for weight, _ in threads:
                # What it did since the last tick that found it running is
                # not yet told.
                near(weight, rate * 0.5, 0.12,
                     'half a second at %d Hz' % rate)


@test
def who_sleeps_has_no_processor_time():
    run_ = Sampled('sleep', PROCESS, '1000', '1')
    expect(run_.weight <= 1000 * run_.processor + 5,
           '%d hits of a program that sleeps' % run_.weight)


@test
def real_time_goes_on_in_threads_that_sleep():
    run_ = Sampled('sleep', REAL, '100', '5')
    threads = run_.of_threads()
    total = sum(t for _, t in threads)
    near(sum(w for w, _ in threads), 100 * total, 0.05, 'four threads')
    for weight, seconds in threads:
        near(weight, 100 * seconds, 0.05, 'a thread')
    # One long sleep is one sample, not five hundred.
    expect(run_.hits < 1500, '%d signals' % run_.hits)


# What is not begun again by the system itself.
@test
def no_call_fails_or_lasts_longer_for_being_sampled():
    for mode, rate in ((REAL, '100'), (REAL, '1000'), (PROCESS, '1000')):
        run_ = Sampled('wait', mode, rate)
        late = len(re.findall('^late', run_.text, re.M))
        expect(late < 12, '%d of 240 waits were late: %s' % (
            late, re.findall('^late.*', run_.text, re.M)[:12]))
        if mode == REAL:
            expect(run_.counts['resumed'] > 100, 'nothing was interrupted')


@test
def a_call_fails_when_a_handler_of_the_program_has_run():
    for mode, rate in ((PROCESS, '1000'), (REAL, '100'), (REAL, '20000')):
        run_ = Sampled('interrupted', mode, rate)
        expect('handled' in run_.text, run_.text)


# Row M-42.
@test
def the_program_has_all_its_signals_and_does_not_see_ours():
    for mode, rate in ((PROCESS, 250), (REAL, 1000)):
        run_ = Sampled('hidden', mode, str(rate))
        for what, seconds in (('blocked', 0.3), ('after', 0.2)):
            weight = int(re.search('%s weight (\\d+)' % what,
                                   run_.text).group(1))
            if mode == PROCESS:
                near(weight, seconds * rate, 0.15, what)
            else:
                expect(weight > seconds * rate * 0.9, '%s: %d' % (
                    what, weight))


@test
def what_was_sent_is_received_and_counted():
    for mode in PROCESS, REAL:
        counts = Sampled('spin', mode, '1000').counts
        expect_equal(counts['sent'], counts['accepted'] + counts['lost'],
                     'sent')
        expect_equal(counts['lost'], 0, 'lost')
        expect_equal(counts['failed'], 0, 'threads without a timer')


@test
def children_have_their_own_and_new_programs_none():
    for mode, rate in ((PROCESS, '100'), (PROCESS, '1000'), (REAL, '20000')):
        Sampled('processes', mode, rate)


@test
def threads_come_and_go():
    for mode, rate in ((PROCESS, '1000'), (REAL, '20000')):
        run_ = Sampled('churn', mode, rate)
        expect_equal(run_.counts['failed'], 0, 'threads without a timer')


# Row M-43.
@test
def an_idle_program_ends_at_once():
    for mode in PROCESS, REAL:
        begin = time.monotonic()
        Sampled('idle', mode, '100')
        # It waits 300 ms.
        expect(time.monotonic() - begin < 3, 'it did not end')


# --- stacks ---

def walked(case, family='gcc', optimize='-O2', flags=(), **more):
    """(walks, frames, unfinished, text) of stacks.c."""
    program = compile('stacks.c', family, optimize, ['-I', INCLUDE, *flags],
                      instrument=False,
                      name='stacks' + ''.join(flags).replace('-', '_'))
    done = run([program, case], new_directory('recording'), 'none', **more)
    expect_equal((done.status, done.stderr), (0, ''), 'the program')
    walks, frames, unfinished, wrong = map(int, re.search(
        r'walks (\d+) frames (\d+) unfinished (\d+) wrong (\d+)',
        done.stdout).groups())
    expect(wrong == 0 and 'wrong: ' not in done.stdout, done.stdout)
    return walks, frames, unfinished, done.stdout


# Rows M-41, P-41, P-42.
@test
def stacks_are_those_of_the_library_for_exceptions():
    for family, optimize in shimtest.BUILDS:
        for case in 'code', 'threads', 'handlers', 'coroutines':
            walks, frames, unfinished, _ = walked(case, family, optimize)
            expect(walks > 50 and frames > 10 * walks, '%s: %d walks, %d '
                   'frames' % (case, walks, frames))
            # Where a coroutine began the tables do not say that it did.
            if case != 'coroutines':
                expect(unfinished <= walks / 20, '%s: %d of %d unfinished' % (
                    case, unfinished, walks))


@test
def stacks_need_no_symbols():
    walks, frames, unfinished, _ = walked('code', flags=['-s', '-fno-plt'])
    expect(walks > 50 and frames > 10 * walks and unfinished <= walks / 20,
           '%d walks, %d frames, %d unfinished' % (walks, frames, unfinished))


@test
def a_walk_of_thirty_frames_takes_less_than_five_microseconds():
    _, _, _, text = walked('cost')
    costs = {int(f): float(us) for f, us in
             re.findall(r'frames (\d+) walk (\S+) us', text)}
    frames = min(f for f in costs if f >= 30)
    expect(costs[frames] < 5, 'frames: us: %s' % costs)
    print('# frames: us: %s' % costs)


# Row P-45, section 3.7.
@test
def snapshots_have_their_results():
    walked('snapshots')


if __name__ == '__main__':
    shimtest.main()
