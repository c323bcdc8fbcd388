#!/usr/bin/env python3
"""cpu_time.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

calltree:clock=cpu: times without the time that threads wait.
"""
import csv
import io
import json
import os
import resource
import subprocess

import shimtest
from shimtest import (compile, environment, expect, expect_equal, json_of,
                      linker_name, new_directory, profrun, record, run, test)


def text_of(output, verb='report'):
    return run([shimtest.report, verb, output]).stdout


def program():
    return compile('cpu_time.c', 'gcc', '-O1', libraries=['-lpthread'])


def recorded(*words, profile='calltree:clock=cpu', command=None, **how):
    """The recording, and the processor time of the program and its children in ms."""
    output = os.path.join(new_directory('cpu'), 'recording')
    os.mkdir(output, 0o700)
    command = [command or program(), *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL,
        env=environment(LD_PRELOAD=shimtest.library, SHIM_DIR=output,
                        SHIM_PROFILE=profile), **how)
    expect_equal(process.wait(300), 0, 'status')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if any(p['tick_ns'] is None for p in json_of(output)['processes']):
        raise shimtest.Skipped('the kernel has no coarse clock here')
    return output, 1e3 * (after.ru_utime + after.ru_stime -
                          before.ru_utime - before.ru_stime)


def ms_of(output, what='self_ns'):
    return {linker_name(function['name']): function[what] / 1e6
            for function in json_of(output)['functions']}


def check(output, ms, threads):
    """The parts of the program, as shares of its processor time @ms.  Alone, the
    kernel's ticks are some ms apart: wide limits.  By the wall clock, sleeps() takes
    300 ms a thread."""
    own, total = ms_of(output), ms_of(output, 'total_ns')
    print('# processor time %.0f ms; all %.0f, sleeps %.0f, computes %.0f' % (
        ms, total['all'], total['sleeps'], total['computes']))
    expect(total['sleeps'] < 0.2 * 300 * threads, 'sleeps: %s' % total)
    expect(0.4 * ms < total['all'] < 1.2 * ms, 'all: %s of %s' % (total, ms))
    expect(abs(total['computes'] + total['sleeps'] + total['twice'] -
               total['all']) < 0.25 * total['all'] + 30, total)
    expect(own['step'] + own['computes'] > 0.25 * ms, own)
    for process in json_of(output)['processes']:
        expect_equal(process['times'], 'cpu', 'times')


def check_waiting(output):
    """sleeps() waits 300 ms, and what others wait for a processor is not its."""
    functions = {linker_name(f['name']): f for f in json_of(output)['functions']}
    expect(270 < functions['sleeps']['waited_ns'] / 1e6 < 600, functions['sleeps'])
    for name in 'computes', 'step', 'twice', 'all':
        expect(functions[name]['waited_ns'] is not None, name)
        expect(functions[name]['self_ns'] + functions[name]['waited_ns'] <
               1.1 * json_of(output)['duration_ns'], name)
    table = run([shimtest.report, 'report', output]).stdout.splitlines()
    title = [line for line in table if 'waiting' in line and 'self%' in line]
    expect_equal(len(title), 1, table)
    row = [line for line in table if ' sleeps ' in line][0]
    end = title[0].index('waiting') + len('waiting')
    expect(any(' %d' % digit in row[end - 9:end] for digit in (2, 3, 4, 5)), row)
    rows = list(csv.DictReader(io.StringIO(run([
        shimtest.report, 'report', '--format', 'csv', output]).stdout)))
    waited = {row['name']: row['waited_ns'] for row in rows}
    expect_equal(int(waited['sleeps']), functions['sleeps']['waited_ns'], 'csv')


# Samples tell what was computed, exact times the rest.
@test
def calibrate_tells_waiting_from_computing():
    one = {min(os.sched_getaffinity(0))}
    for threads, how in (('1', {}),
                         ('4', {'preexec_fn': lambda: os.sched_setaffinity(0, one)})):
        output, ms = recorded(threads, profile='calltree:calibrate', **how)
        if not json_of(output)['processes'][0]['times'] == 'cpu':
            raise shimtest.Skipped('no samples here')
        check(output, ms, int(threads))
        if threads == '1':
            check_waiting(output)
        about = json_of(output)
        # Ticks of a busy machine come late: the raw time is no more than a rough bound.
        expect(about['time_raw_ns'] / 1e6 < 1.6 * ms, about['time_raw_ns'])
        expect('times are processor time; threads waited' in text_of(output), 'head')


@test
def by_the_wall_clock_waiting_is_no_column():
    for profile in 'calltree', 'calltree:exact':
        output, ms = recorded('1', profile=profile)
        about = json_of(output)
        for function in about['functions']:
            expect_equal(function['waited_ns'], None, function['name'])
        text = text_of(output)
        expect('waiting' not in text[text.index('self%'):], profile)
        # What the program itself wrote at its end, and what the kernel told its parent.
        cpu = about['processes'][0]['cpu_ns'] / 1e6
        expect(0.7 * ms < cpu <= ms + 1, 'of %.1f ms: %.1f' % (ms, cpu))
        waited = about['time_raw_ns'] / 1e6 - cpu
        print('# waited %.0f ms, computed %.0f' % (waited, cpu))
        expect(waited > 200, waited)
        if waited > 1.1 * about['time_raw_ns'] / 3e6:
            expect('threads waited for ' in text and 'clock=cpu' in text, text)


@test
def who_was_killed_wrote_no_processor_time():
    done = record([compile('grouped.c', 'gcc', '-O2', ['-Wno-clobbered']),
                   'killed'], 'calltree')
    expect(done.status != 0, done.status)
    expect_equal(json_of(done.output)['processes'][0]['cpu_ns'], None, 'cpu_ns')


@test
def time_asleep_is_in_no_function():
    output, ms = recorded('1')
    check(output, ms, 1)
    waited = sum(p['waited_ns'] for p in json_of(output)['processes']) / 1e6
    expect(waited > 250, 'waited: %s ms' % waited)
    expect('times are processor time; threads waited' in text_of(output), 'head')
    expect('threads waited' in text_of(output, verb='info'), 'info')
    check_waiting(output)


@test
def by_the_wall_clock_it_is():
    output, _ = recorded('1', profile='calltree:clock=wall')
    expect(ms_of(output, 'total_ns')['sleeps'] > 290, 'sleeps')
    expect_equal(json_of(output)['processes'][0]['times'], 'wall', 'times')


@test
def each_thread_has_its_own_processor_time():
    output, ms = recorded('4')
    check(output, ms, 4)


# All threads want one processor: by the wall clock each has four times the time.
@test
def time_without_a_processor_is_in_no_function():
    one = {min(os.sched_getaffinity(0))}
    output, ms = recorded('4', preexec_fn=lambda: os.sched_setaffinity(0, one))
    check(output, ms, 4)


# Much of its time passes in hooks: there, too, it loses its processor.
@test
def waiting_in_hooks_is_in_no_function():
    one = {min(os.sched_getaffinity(0))}

    def pin():
        os.sched_setaffinity(0, one)
    others = [subprocess.Popen(['sh', '-c', 'while :; do :; done'], preexec_fn=pin)
              for _ in range(3)]
    try:
        output, ms = recorded('45000000', '10', preexec_fn=pin,
                              command=compile('trivial.c', 'gcc', '-O1'))
    finally:
        for other in others:
            other.kill()
            other.wait()
    raw = json.loads(run([shimtest.report, 'report', '--raw', '--format', 'json',
                          output]).stdout)
    main = [f['total_ns'] / 1e6 for f in raw['functions'] if f['name'] == 'main'][0]
    own = sum(ms_of(output).values())
    print('# processor time %.0f ms; main, raw: %.0f, all self: %.0f' % (ms, main, own))
    expect(0.8 * ms < main < 1.1 * ms, 'main: %s of %s' % (main, ms))
    expect(0.05 * ms < own < ms, 'self: %s of %s' % (own, ms))


@test
def forked_children_begin_at_zero():
    output, ms = recorded('1', 'fork')
    check(output, ms, 2)
    times = [p['cpu_ns'] / 1e6 for p in json_of(output)['processes']]
    expect(0.7 * ms < sum(times) <= ms + 1, 'of %.1f ms: %s' % (ms, times))


@test
def programs_that_are_executed_have_it_too():
    output, ms = recorded('2', 'exec')
    check(output, ms, 2)


@test
def calls_are_exact():
    output, _ = recorded('3')
    calls = {linker_name(f['name']): f['calls']
             for f in json_of(output)['functions']}
    expect_equal((calls['step'], calls['computes'], calls['sleeps']),
                 (1800000, 3, 3), 'calls')


@test
def coroutines_get_no_time_while_another_one_runs():
    command = compile('coroutines_turns.c', 'gcc', '-O1')
    output, ms = recorded('2000', command=command)
    own, total = ms_of(output), ms_of(output, 'total_ns')
    report = json_of(output)
    raw, time = report['time_raw_ns'] / 1e6, report['time_ns'] / 1e6
    expect(raw < 1.3 * ms, 'raw: %s of %s' % (raw, ms))
    # Other processes make calls of hooks dearer, which raw times contain.
    expect(own['leaf'] > 0.6 * time and total['yield'] < 0.3 * time, (raw, time, total))
    expect(abs(total['body'] - total['compute'] - total['yield']) < 0.2 * time, total)
    # By the wall clock, 19 of 20 are suspended.
    output, ms = recorded('2000', command=command, profile='calltree')
    own, report = ms_of(output), json_of(output)
    raw = report['time_raw_ns']
    expect(raw - report['time_ns'] < 0.3 * raw, 'own cost: %s' % report)
    expect(own['yield'] * 1e6 > 0.7 * raw, own)


@test
def what_does_not_go_with_it_is_refused():
    for words, why in (
            (['-p', 'calltree:exact,clock=cpu'], 'exact times every call'),
            (['-p', 'calltree:calibrate,clock=cpu'], 'calibrate times every'),
            (['-p', 'calltree:clock=cpu,counts'], 'counts times no call'),
            (['-p', 'calltree:clock=cpu', '-p', 'trace'], 'trace times every call'),
            (['-p', 'calltree:clock=cpu', '--budget', '10'], 'samples of processor'),
            (['-p', 'calltree:clock=cpu,budget=10'], 'samples of processor'),
            (['-p', 'calltree:clock=sun'], 'clock')):
        done = run([profrun(), 'run', *words, '/bin/true'])
        expect_equal(done.status, 2, words)
        expect(why in done.stderr, '%s: %s' % (words, done.stderr))
    # Without profrun the log says it.
    for profile, why in (('calltree:exact,clock=cpu', 'no clock=cpu with exact'),
                         ('calltree:counts,clock=cpu', 'no clock=cpu with counts'),
                         ('calltree:clock=cpu,budget=10', 'no clock=cpu with a budget'),
                         ('calltree:clock=cpu;trace', 'no clock=cpu beside trace')):
        output, _ = recorded('1', profile=profile)
        expect_equal(json_of(output)['processes'][0]['times'], 'wall', profile)
        expect(why in text_of(output, verb='info'), profile)


if __name__ == '__main__':
    shimtest.main()
