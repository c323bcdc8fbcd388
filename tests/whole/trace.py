#!/usr/bin/env python3
"""trace.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Traces contain every call, whatever the program does and whatever happens to it.  Where
calls are also counted in the same run, both must agree on each path.
"""
import csv
import glob
import io
import json
import os
import random
import re
import subprocess

import kill
import loss
import shimtest
from shimtest import (BUILDS, add_test, calls_of, compile, expect, expect_equal,
                      new_directory, record, run, test)

# The tests of the imported modules do not run here.
shimtest.tests.clear()

KILLS_BUILDS = 50 if shimtest.ALL else 20     # for each of the four builds
STORMS = ['signals', 'signals_jumps', 'altstack', 'altstack_thread']
HARD = ['coroutines', 'coroutines_travel', 'coroutines_many', 'clone_raw',
        'exceptions', 'forks', 'longjmp', 'spawns', 'thread_ends']


def folded(recording, *options):
    done = run([shimtest.report, 'export', 'folded', '--value', 'calls',
                *options, recording])
    expect_equal(done.status, 0, done.stderr)
    return sorted(done.stdout.splitlines())


def check_same(name, family, optimize, profile):
    source = name + ('.c' if os.path.exists(os.path.join(
        shimtest.PROGRAMS, name + '.c')) else '.cc')
    made = record([compile(source, family, optimize)], profile)
    counted, traced = folded(made.output), folded(made.output, '--trace')
    first = next((pair for pair in zip(counted, traced)
                  if pair[0] != pair[1]), None)
    expect(counted == traced, '%d paths counted, %d traced; the first that '
           'differs: %s' % (len(counted), len(traced), first))


for number, name in enumerate(STORMS + HARD):
    source = os.path.join(shimtest.PROGRAMS, name)
    if not os.path.exists(source + '.c') and not os.path.exists(source + '.cc'):
        continue
    family, optimize = BUILDS[number % len(BUILDS)]
    profile = ['calltree;trace', 'trace;calltree:counts'][number % 2]
    add_test('%s: a trace has what the tree counts, path by path (%s, %s %s)' %
             (name, profile, family, optimize),
             lambda name=name, family=family, optimize=optimize,
             profile=profile: check_same(name, family, optimize, profile))


# All calls take that long, so all of them wait and are recorded late.
for number, name in enumerate(['coroutines', 'coroutines_travel', 'exceptions',
                               'longjmp', 'forks', 'thread_ends']):
    family, optimize = BUILDS[number % len(BUILDS)]
    add_test('%s: with a minimum of 1 ns every call is there (%s %s)' %
             (name, family, optimize),
             lambda name=name, family=family, optimize=optimize:
             check_same(name, family, optimize, 'calltree;trace:min=1ns'))


@test
def handlers_that_interrupt_hooks_are_inside_the_interrupted_calls():
    """On a small stack, hooks that read arguments run on a stack of shim, and handlers
    there, too."""
    made = record([compile('traced_small_stacks.c', 'gcc', '-O2')],
                  'calltree;trace:args=all')
    shimtest.expect_truth(made, calls_of(shimtest.json_of(made.output)))
    counted, traced = folded(made.output), folded(made.output, '--trace')
    expect_equal(traced, counted, 'paths')
    expect_equal({line.split(';')[0].split()[0] for line in counted},
                 {'main', 'worker'}, 'outermost calls')
    expect(any(';on_tick' in line for line in counted), 'no handler came')
    done = run([shimtest.report, 'report', made.output])
    expect('never began' not in done.stderr and
           'without a leave' not in done.stdout, done)


def check_kills(family, optimize):
    program = compile('killed.c', family, optimize)
    for i in range(KILLS_BUILDS):
        kill.kill_once(program, 'trace',
                       random.uniform(0, 0.004 if i % 2 else 0.03))


for family, optimize in BUILDS:
    add_test('sigkill loses the call in flight at most (%s %s)' %
             (family, optimize),
             lambda family=family, optimize=optimize:
             check_kills(family, optimize))


@test
def nothing_is_lost_when_nothing_is_taken():
    about = loss.lose(['none'], [], profiles=['trace'])
    expect_equal(about['lost'], 0, 'lost')


@test
def on_a_full_disk_lost_events_are_counted():
    loss.lose(['none'], ['space'], lambda: loss.small_disk(400 << 10),
              profiles=['trace'])


@test
def without_disk_or_memory_lost_events_are_counted():
    loss.lose(['none'], ['space'], lambda: loss.small_disk(450 << 10),
              profiles=['trace'])
    loss.lose(['fsize'], ['file_size'], profiles=['trace'])
    loss.lose(['fsize0'], ['file_size'], profiles=['trace'])
    loss.lose(['as'], ['memory'], profiles=['trace'])
    loss.lose(['seccomp-prctl', '15'], ['forbidden'], profiles=['trace'])


# --- omitted calls ---

MARKS = ['-I', os.path.join(os.path.dirname(shimtest.PROGRAMS), '..',
                            'include')]


def calls_with(options, program, *arguments):
    made = record([compile(program, flags=MARKS), *arguments],
                  'trace:' + options)
    return made, dict((lambda p: (p[0], int(p[1])))(line.rsplit(' ', 1))
                      for line in folded(made.output))


def check_depth(name, family, optimize, depth):
    source = name + ('.c' if os.path.exists(os.path.join(
        shimtest.PROGRAMS, name + '.c')) else '.cc')
    made = record([compile(source, family, optimize)],
                  'calltree;trace:depth=%d' % depth)
    counted = folded(made.output)
    wanted = [line for line in counted
              if line.rsplit(' ', 1)[0].count(';') < depth]
    expect(len(wanted) < len(counted), 'nothing is deeper')
    got = folded(made.output, '--trace')
    expect(got == wanted, 'counted %d, traced %d; differ: %s' % (
        len(wanted), len(got), sorted(set(wanted) ^ set(got))[:4]))


for number, name in enumerate(['signals', 'signals_jumps', 'exceptions',
                               'coroutines']):
    family, optimize = BUILDS[number % len(BUILDS)]
    add_test('%s: calls that are left out begin and end where they do '
             '(%s %s)' % (name, family, optimize),
             lambda name=name, family=family, optimize=optimize:
             check_depth(name, family, optimize, 2))


@test
def deeper_calls_are_left_out():
    made, calls = calls_with('depth=2', 'nesting.c')
    expect('main;a' in calls and 'main' in calls, calls)
    expect_equal([p for p in calls if p.count(';') > 1], [], 'deeper')
    done = run([shimtest.report, 'report', made.output])
    expect('calls were not to be traced' in done.stderr, done.stderr)


@test
def a_trace_without_calls_is_explained_by_its_options():
    made = record([compile('nesting.c', 'gcc', '-O0')], 'trace:min=1000s')
    done = run([shimtest.report, 'report', made.output])
    expect('calls were too short to be traced' in done.stderr, done.stderr)
    expect('The options of the trace have left out all calls.' in done.stdout and
           'finstrument' not in done.stdout, done.stdout)


@test
def a_trigger_traces_its_calls_and_their_callees():
    _, calls = calls_with('trigger=nest', 'longjmp.c')
    expect_equal(calls.get('nest'), 1, 'nest')
    expect(any(p.startswith('nest;') for p in calls), calls)
    expect_equal([p for p in calls if not p.startswith('nest')], [], 'others')


@test
def every_nth_call_of_a_function_and_all_of_others():
    _, calls = calls_with('every=two/1000', 'longjmp.c')
    expect_equal({path: count for path, count in calls.items() if count > 4},
                 {'main;again': 5000, 'main;again;one': 5000,
                  'main;again;after': 5000, 'main;again;one;two': 5,
                  'main;again;one;two;three': 5}, 'calls')


def check_left_out(recording, why, counted):
    """There must be no damage, and missing calls must be counted."""
    done = run([shimtest.report, 'report', '--trace', recording])
    expect('not a record' not in done.stderr and
           'never began' not in done.stderr, done.stderr)
    left_out = re.search(r'([\d,]+) calls were %s' % why, done.stderr)
    traced = sum(int(line.rsplit(' ', 1)[1])
                 for line in folded(recording, '--trace'))
    expect(traced < counted, '%d of %d' % (traced, counted))
    expect_equal(int(left_out.group(1).replace(',', '')) + traced, counted,
                 'what was left out and what was not')


@test
def handlers_come_into_calls_that_every_leaves_out():
    for function in 'middle', 'on_tick':
        made = record([compile('signals.c', 'gcc', '-O2')],
                      'calltree;trace:every=%s/3' % function)
        check_left_out(made.output, 'not to be traced',
                       sum(int(line.rsplit(' ', 1)[1])
                           for line in folded(made.output)))


def events_of(recording, *options):
    """Lines of replay: time in us, duration as text, depth, text."""
    done = run([shimtest.report, 'replay', '--color', 'never', *options,
                recording])
    expect_equal(done.status, 0, done.stderr)
    events = []
    for line in done.stdout.splitlines()[1:]:
        found = re.match(r' *([\d.]+) (.{10}) *(\d+)(?:/\d+)? +(.*)', line)
        expect(found, 'a line of replay: %r' % line)
        indent = len(line) - len(line[35:].lstrip()) - 35
        events.append((float(found.group(1)), found.group(2).strip(),
                       indent // 2, found.group(4)))
    return events


def ns_of(duration):
    number, unit = duration.strip('>').split()
    return float(number) * {'ns': 1, 'us': 1e3, 'ms': 1e6, 's': 1e9}[unit]


@test
def shorter_calls_are_left_out_and_parents_of_longer_ones_are_not():
    made, _ = calls_with('min=5us', 'longjmp.c')
    durations = [ns_of(d) for _, d, _, _ in events_of(made.output) if d]
    expect(len(durations) > 0, 'nothing')
    expect(min(durations) > 4900, 'the shortest took %f ns' % min(durations))


@test
def delayed_calls_keep_their_order():
    made = record([compile('traced_min.c', flags=MARKS), 'mixed'],
                  'trace:min=10ms')
    # A busy machine may make a short call long.
    expect_equal([what for _, duration, _, what in events_of(made.output)
                  if what != 'tiny;' or ns_of(duration) < 10e6][1:],
                 ['main {', *5 * ['outer {', 'middle {', 'late;', '} middle',
                                  '} outer'], '} main'], 'the calls')
    starts = [start for start, _, _, _ in events_of(made.output)]
    expect_equal(starts, sorted(starts), 'times')
    made = record([compile('traced_min.c', flags=MARKS), 'marked'],
                  'trace:min=10s')
    expect_equal([what for _, _, _, what in events_of(made.output)][1:],
                 ['main {', 'marked {', '-- mark here', '} marked', '} main'],
                 'what has a mark in it')


@test
def a_hundred_thousand_delayed_calls_are_written_at_once():
    made, calls = calls_with('min=15ms', 'traced_min.c', 'deep', '100000')
    expect_equal(sum(calls.values()), 100002, 'calls')
    # Each call has its own begin time, also if a block begins with it.
    events = events_of(made.output)
    expect(events[0][0] > 0, events[0])
    durations = [ns_of(duration) for _, duration, _, _ in events if duration]
    expect(len(durations) == 100002 and min(durations) > 19e6,
           '%d calls, one of %d ns' % (len(durations), min(durations)))


@test
def delayed_calls_are_written_before_another_stack_continues():
    made = record([compile('coroutines.c')], 'trace:min=1s')
    every = record([compile('coroutines.c')], 'trace')
    entered = [[what for _, _, _, what in events_of(m.output)
                if what.startswith('yield')] for m in (made, every)]
    expect(len(entered[1]) > 100, entered[1])
    expect_equal(len(entered[0]), len(entered[1]), 'calls that were left for '
                 'another coroutine')


@test
def delayed_calls_survive_the_end_of_the_program():
    made = record([compile('traced_min.c', flags=MARKS), 'killed'],
                  'trace:min=10s')
    expect_equal(made.status, -9, 'status')
    events = events_of(made.output)[1:]
    expect_equal([what for _, _, _, what in events[:3]],
                 ['main {', 'before_last {', 'last  (open);'], 'open calls')
    expect(all(d.startswith('>') for _, d, _, _ in events if d), events)


def check_min(name, family, optimize):
    """Every missing call was too short, and no call was added."""
    source = name + ('.c' if os.path.exists(os.path.join(
        shimtest.PROGRAMS, name + '.c')) else '.cc')
    made = record([compile(source, family, optimize)],
                  'calltree:exact;trace:min=3us')
    counted, traced = (dict((lambda p: (p[0], int(p[1])))(line.rsplit(' ', 1))
                            for line in folded(made.output, *options))
                       for options in ([], ['--trace']))
    expect(0 < sum(traced.values()) < sum(counted.values()), 'nothing is short')
    more = [p for p in traced if traced[p] > counted.get(p, 0)]
    expect_equal(more, [], 'more than there were')
    check_left_out(made.output, 'too short', sum(counted.values()))
    if name != 'exceptions':
        return  # short calls may be recorded because of handlers in hooks, and on other stacks
    ended = [ns_of(duration) for _, duration, _, what in events_of(made.output)
             if what.endswith(';') and not duration.startswith('>')]
    expect_equal([d for d in ended if d < 2900], [], 'short ones')


for number, name in enumerate(['signals', 'signals_jumps', 'exceptions',
                               'coroutines', 'altstack_thread']):
    family, optimize = BUILDS[number % len(BUILDS)]
    add_test('%s: of short calls those that call longer ones are there '
             '(%s %s)' % (name, family, optimize),
             lambda name=name, family=family, optimize=optimize:
             check_min(name, family, optimize))


@test
def a_ring_keeps_the_last_calls_of_each_thread():
    def shown(profile):
        made = record([compile('traced_ring.c', 'gcc', '-O1')], profile)
        sizes = [os.path.getsize(path) for path in
                 glob.glob(made.output + '/*/*.trace')]
        done = run([shimtest.report, 'replay', '--color', 'never', made.output])
        expect_equal(done.status, 0, done.stderr)
        lines = {}
        for line in done.stdout.splitlines()[1:]:
            lines.setdefault(line[27:34], []).append(line[35:])
        expect_equal(len(lines), 2, 'threads')
        return sizes, [lines[thread] for thread in sorted(lines)], done.stderr

    def calls(threads):
        return sum(line.lstrip().endswith((';', '{')) for lines in threads
                   for line in lines)
    sizes, ours, said = shown('trace:ring=1M')
    expect_equal(sizes, [1 << 20] * 2, 'sizes')
    expect('only the last calls are there' in said, said)
    overwritten = int(re.search(r'([\d,]+) before them', said).group(1).replace(
        ',', ''))
    sizes, whole, said = shown('trace')
    expect(min(sizes) > 5 << 18, 'a ring has all of %s' % sizes)
    for ring, lines in zip(ours, whole):
        expect(len(ring) > 100000, '%d lines' % len(ring))
        expect_equal(ring[-100000:], lines[-100000:], 'the last 100000 lines')
    # Some of the calls that are open at the beginning have a line of their own.
    expect(0 <= calls(ours) + overwritten - calls(whole) <= 8,
           '%d calls and %d before them, of %d' % (calls(ours), overwritten,
                                                   calls(whole)))


@test
def more_functions_than_a_short_record_can_name():
    """Functions of an object that is loaded again get other numbers each time."""
    folder, count, times = new_directory('functions'), 400, 84
    with open(folder + '/many.c', 'w') as file:
        file.write(''.join('static void f%d(void) {}\n' % i
                           for i in range(count)))
        file.write('void all(void) {%s}\n' % ' '.join(
            'f%d();' % i for i in range(count)))
    with open(folder + '/loader.c', 'w') as file:
        file.write('#include <dlfcn.h>\n'
                   'int main(int words, char **word) {\n'
                   '    for (int i = words - 2; i < %d; i++) {\n'
                   '        void *all = dlopen(word[1], RTLD_NOW);\n'
                   '        ((void (*)(void))dlsym(all, "all"))();\n'
                   '        dlclose(all);\n'
                   '    }\n'
                   '    return 0;\n'
                   '}\n' % times)
    plugin = compile(folder + '/many.c', name='many-functions.so',
                     flags=['-shared', '-fPIC'])
    made = record([compile(folder + '/loader.c', libraries=['-ldl']), plugin],
                  'trace')
    got = [what for _, _, _, what in events_of(made.output)][1:]
    once = ['all {', *('f%d;' % i for i in range(count)), '} all']
    expect_equal(len(got), times * len(once) + 2, 'lines')
    wanted = ['main {', *times * once, '} main']
    expect_equal([pair for pair in zip(got, wanted) if pair[0] != pair[1]][:3], [],
                 'calls')


# --- marks of the program ---

@test
def marks_ranges_and_counters_are_in_their_place():
    program = compile('marks.c', flags=MARKS)
    made = record([program], 'trace')
    expect_equal(made.stdout, run([program]).stdout, 'stdout')
    notes = [what for _, _, _, what in events_of(made.output)]
    first = notes.index('-- mark a mark; with <odd> \\x1b characters')
    expect_equal(notes[first:first + 9], [
        notes[first], '-- range begins: load', 'part {', 'leaf;', 'leaf;',
        '} part', '-- counter files = 1.5', '-- range ends: load',
        '-- counter files = -2'], 'the notes')
    named = notes.index('-- this thread is now painter')
    expect_equal(notes[named - 2:named], ['named {', 'leaf;'], 'before')


@test
def without_us_marks_are_nothing():
    expect_equal(run([compile('marks.c', flags=MARKS), 'parts']).status, 0,
                 'status')


@test
def untraced_calls_are_absent_and_the_rest_nests():
    program = compile('marks.c', flags=MARKS)
    made = record([program, 'parts'], 'trace')
    expect_equal(dict(line.rsplit(' ', 1) for line in folded(made.output)),
                 {'main': '1', 'main;part': '2', 'main;part;leaf': '4',
                  'main;stop_in': '1', 'main;stop_in;leaf': '1',
                  'main;start_in;leaf': '1'}, 'calls')
    made = record([program, 'parts'], 'trace:off')
    expect_equal(dict(line.rsplit(' ', 1) for line in folded(made.output)),
                 {'main;part': '1', 'main;part;leaf': '3',
                  'main;start_in;leaf': '1'}, 'calls')
    for options in 'trace', 'trace:min=1ns':
        made = record([program, 'parts'], options)
        expect_equal([what for _, _, _, what in events_of(made.output)][1:], [
            'main {', 'part {', 'leaf;', '} part', 'stop_in {', 'leaf;',
            '-- off', '} stop_in  (ended unseen)', 'start_in {  (began unseen)',
            '-- on', 'leaf;', '} start_in', 'part {', 'leaf;', 'leaf;', 'leaf;',
            '} part', '} main'], options)
    made = record([program, 'parts'], 'trace:trigger=leaf')
    expect_equal(dict(line.rsplit(' ', 1) for line in folded(made.output)),
                 {'leaf': '6'}, 'what is left out stays so when tracing goes on')
    done = run([shimtest.report, 'report', made.output])
    expect('never began' not in done.stderr, done.stderr)


# --- switched off and on from outside ---

def profrun(*words):
    path = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    return run([os.path.normpath(path), *words])


def calls_by_function(recording):
    calls = {}
    for line in folded(recording):
        path, number = line.rsplit(' ', 1)
        name = path.split(';')[-1]
        calls[name] = calls.get(name, 0) + int(number)
    return {name: calls.get(name, 0)
            for name in ('first', 'second', 'third', 'fourth')}


def switched(what, options, first=0, second=0, third=0, fourth=0):
    made = record([compile('trace_switched.c'), what], 'trace:' + options)
    expect_equal(made.status, 0, 'status: ' + made.stderr)
    expect_equal(calls_by_function(made.output),
                 {'first': first, 'second': second, 'third': third,
                  'fourth': fourth}, '%s, %s' % (what, options))
    return made


@test
def a_signal_switches():
    for name in ('USR1', 'SIGUSR1', '10'):
        switched('', 'signal=' + name, first=1, third=1)
        switched('', 'off,signal=' + name, second=1)


@test
def the_programs_handlers_work_and_shims_are_hidden():
    made = switched('handlers', 'signal=USR1', first=1, third=1)
    expect_equal(made.stdout, '4 3\n', 'what it saw, and how often it was called')
    old = switched('old', 'signal=USR1', first=1, third=1)
    expect_equal(old.stdout, '1 1 1 1 1 1 1 3\n', 'in the old ways')
    for what, ours in (('handlers', made), ('old', old)):
        alone = run([compile('trace_switched.c'), what])
        expect_equal(alone.stdout, ours.stdout, what + ' without us')


@test
def a_signal_to_one_thread_switches_all():
    switched('threads', 'signal=USR1', first=2, third=2)
    switched('threads', 'off,signal=USR1', second=2)


@test
def a_forked_child_is_switched_by_itself():
    switched('fork', 'signal=USR1', first=1, third=1, fourth=1)
    switched('fork', 'off,signal=USR1', second=1)


@test
def invalid_or_reserved_signals_are_refused():
    program = compile('trace_switched.c')
    for name in ('', 'KILL', 'SIGSTOP', 'SEGV', '11', 'TRAP', '64', 'RTMIN+30',
                 '0', '65', 'USR', 'USR12', 'SIG10', 'usr1', '-1', '10x'):
        done = profrun('-p', 'trace:signal=' + name, program)
        expect_equal(done.status, 2, name)
        expect('trace:signal=' + name in done.stderr, done.stderr)
        made = record([program, 'asked'], 'trace:signal=' + name)
        about = shimtest.shim_report('info', made.output)
        expect("'trace:signal=%s'" % name in about, about)
    for name in ('RTMIN', 'SIGRTMIN+3', '59', 'WINCH'):
        made = record([program, 'asked'], 'trace:signal=' + name)
        expect_equal((made.status, made.stderr), (0, ''), name)


@test
def profrun_ctl_switches():
    output = new_directory('recording')
    program = subprocess.Popen(
        [compile('trace_switched.c'), 'asked'], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=shimtest.environment(output, 'trace', SHIM_CONTROL='1'))

    def go_on():
        program.stdin.write(b'x')
        program.stdin.flush()
        expect_equal(program.stdout.read(1), b'x', 'an answer')

    def ctl(verb):
        done = profrun('ctl', str(program.pid), verb)
        expect_equal(done.status, 0, verb + ': ' + done.stderr)
    try:
        go_on()
        ctl('trace-stop')
        go_on()
        ctl('trace-stop')
        go_on()
        ctl('trace-start')
        go_on()
        program.stdin.close()
        expect_equal(program.wait(30), 0, 'status')
    finally:
        program.kill()
        program.wait()
    expect_equal(calls_by_function(output), {'first': 1, 'second': 0,
                                             'third': 0, 'fourth': 1}, 'calls')


# --- arguments and results ---

@test
def arguments_and_results_are_with_their_calls():
    for family, optimize in BUILDS:
        program = compile('traced_values.c', family, optimize)
        made = record([program], 'trace:args=all,results=all')
        lines = [what for _, _, _, what in events_of(made.output)][1:]
        expect_equal([re.sub(r'0x[0-9a-f]+ ', '', line) for line in lines], [
            'main {', 'add(a = 0, b = 10) = 10;', 'add(a = 1, b = 10) = 11;',
            'add(a = 2, b = 10) = 12;', 'half(x = 5) = 2.5;',
            'greet(name = "bob \\x1b", at = {x = 1, y = 2}) = "hello";',
            'nothing {', 'add(a = 7, b = 8) = 15;', '} nothing',
            'fact(n = 4) {', 'fact(n = 3) {', 'fact(n = 2) {',
            'fact(n = 1) = 1;', '} fact = 2', '} fact = 6', '} fact = 24',
            '} main = 0'], '%s %s' % (family, optimize))


@test
def arguments_of_some_functions_and_every_call_of_all():
    program = compile('traced_values.c', 'gcc', '-O2')
    made = record([program], 'calltree;trace:args=fact,results=add')
    lines = [what for _, _, _, what in events_of(made.output)]
    expect('add = 15;' in lines and 'fact(n = 1);' in lines and
           'nothing {' in lines, lines)
    expect_equal(folded(made.output), folded(made.output, '--trace'), 'calls')


@test
def calls_that_are_left_out_have_no_arguments():
    program = compile('traced_values.c', 'gcc', '-O2')
    made = record([program], 'trace:args=add,every=add/2')
    lines = [what for _, _, _, what in events_of(made.output)]
    expect_equal([what for what in lines if what.startswith('add')],
                 ['add(a = 0, b = 10);', 'add(a = 2, b = 10);'], 'every')
    made = record([program], 'trace:args=all,depth=1')
    lines = [what for _, _, _, what in events_of(made.output)]
    expect_equal(lines[1:], ['main;'], 'depth')


@test
def handlers_come_between_a_call_and_its_arguments():
    for name in ('signals', 'coroutines_travel'):
        check_same(name, 'gcc', '-O2', 'calltree;trace:args=all')


@test
def reading_arguments_does_not_reach_malloc_in_threads():
    program = compile('malloc_in_hooks.c', 'gcc', '-O0', ['-pthread'])
    result = record([program], 'trace:args=all')
    expect_equal((result.status, result.stdout), (0, '0\n'), 'malloc')


@test
def an_alternate_stack_that_shim_has_not_seen_is_safe():
    for family, optimize in BUILDS:
        program = compile('altstack_unseen.c', family, optimize, ['-pthread'])
        for profile in 'trace:args=all', 'calltree:by=inner/a':
            result = record([program], profile)
            expect_equal((result.status, result.stdout), (11, '1\n'),
                         (family, optimize, profile))


# --- replay ---

@test
def replay_shows_a_time_a_function_a_depth():
    made = record([compile('longjmp.c')], 'trace')
    everything = events_of(made.output)
    middle = everything[len(everything) // 2][0]
    some = events_of(made.output, '--from', '%.3fus' % middle, '--to',
                     '%.3fus' % (middle + 100))
    expect(some and all(middle - 0.01 <= t <= middle + 100.01
                        for t, _, _, _ in some), some[:3])
    begins = {w for t, _, _, w in everything if middle < t < middle + 100}
    expect(begins <= {w for _, _, _, w in some}, 'something is missing')
    two = [w for _, _, _, w in events_of(made.output, '--function', 'two')]
    expect_equal({w for w in two},
                 {'two {', 'three  (unwound);', '} two  (unwound)'}, 'two')
    flat = events_of(made.output, '--depth', '1')
    expect_equal({d for _, _, d, _ in flat}, {0}, 'depths')
    for what in 'thread', 'function':
        done = run([shimtest.report, 'replay', '--' + what, 'nobody',
                    made.output])
        expect(done.status == 1 and
               done.stderr.endswith('no %s nobody was recorded\n' % what), done)
    two = events_of(made.output, '--function', 'two', '--depth', '1')
    expect_equal({w for _, _, _, w in two}, {'two  (unwound);'},
                 'depth of what two calls')


@test
def a_thread_has_its_own_shortest_and_longest_call():
    for profile in 'calltree:exact', 'trace':
        made = record([compile('threads.c')], profile)
        rows = [row for row in csv.DictReader(io.StringIO(
            shimtest.shim_report('report', '--threads', '--format', 'csv',
                                 made.output))) if row['name'] == 'brief']
        expect_equal(len(rows), 200, 'threads')
        for row in rows:
            expect_equal([row['calls'], row['min_ns'], row['max_ns']],
                         ['1', row['total_ns'], row['total_ns']], profile)


@test
def a_report_of_a_trace_says_what_one_of_calls_says():
    """At the first call of a thread and in each full block, the tree and the trace read the
    clock at different moments.  A thread that is preempted in between has that time in
    one of the two only.  So each function must agree in times in one of five runs, of a
    program with one thread; the calls must agree in each."""
    def numbers(made, *options):
        about = json.loads(shimtest.shim_report(
            'report', '--format', 'json', *options, made.output))
        return {f['name']: (f['calls'], f['total_ns']) for f in
                about['functions']}

    def compared(source):
        """{function: what is wrong with its time, or None}"""
        made = record([compile(source)], 'calltree;trace')
        counted, traced = numbers(made), numbers(made, '--trace')
        expect_equal(set(counted), set(traced), 'functions')
        for name, (calls, _) in counted.items():
            expect_equal(traced[name][0], calls, name)
        return {name: abs(traced[name][1] - total) > 200 * calls + 1000 and
                '%s: %s, %s' % (name, traced[name], (calls, total))
                for name, (calls, total) in counted.items()}

    compared('threads.c')
    runs = [compared('nesting.c')]
    while len(runs) < 5 and any(all(run[name] for run in runs) for name in runs[0]):
        runs.append(compared('nesting.c'))
    wrong = [runs[-1][name] for name in runs[0] if all(run[name] for run in runs)]
    expect(not wrong, '\n'.join(wrong))


@test
def merged_with_counted_calls_those_of_a_trace_are_added():
    """They were left out, and nothing was said to be lost."""
    program = compile('nesting.c')
    counted, traced, both = [record([program], profile) for profile in (
        'calltree', 'trace', 'calltree;trace')]
    calls = json.loads(shimtest.shim_report('export', 'json', counted.output))['calls']
    for parts, times in ([counted, traced], 2), ([traced, both, counted], 3):
        merged = os.path.join(shimtest.new_directory('merged'), 'all')
        shimtest.shim_report('merge', '-o', merged, *[part.output for part in parts])
        about = json.loads(shimtest.shim_report('export', 'json', merged))
        expect_equal((about['calls'], about['lost']), (times * calls, 0), times)


if __name__ == '__main__':
    shimtest.main()
