#!/usr/bin/env python3
"""estimates.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Recordings with a budget, as the report reads them: samples that are joined to paths,
inlined functions, calls that are estimates, times that are too short to be told from 0.
The recordings are made byte by byte (craft.py), so that what is right is known.
"""
import json
import os
import re
import subprocess

import craft
import shimtest
from craft import BASE, MEMORY, counters, node, sampled, throttled
from inlined import Program, at, with_estimates
from shimtest import expect, expect_equal, new_directory, test

FAMILIES = 'gcc', 'clang'
MS = 1000000


def report(recording, *words):
    done = subprocess.run([shimtest.report, *words, recording], text=True,
                          capture_output=True, timeout=60)
    expect_equal(done.returncode, 0, done.stderr)
    return done.stdout


def paths(recording, value='self'):
    lines = report(recording, 'export', 'folded', '--value', value)
    return {path: int(count) for path, count in
            (line.rsplit(' ', 1) for line in lines.splitlines())}


def functions(recording, *words):
    about = json.loads(report(recording, 'report', '--format', 'json', *words))
    return {f['name']: f for f in about['functions']}, about


# --- functions that are counted without their callers ---

@test
def a_function_that_is_counted_has_an_exact_sum_and_estimates_in_its_paths():
    program = Program()
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['off'], at(0), calls=31, time=30),
        node(program['outer'], at(0)),
        node(program['off'], at(2), calls=12, time=10),
        throttled(program['off'], state=3, counter=5),
        counters(_4=7, _5=1001, _6=77), budget=craft.budget(throttled=1))
    some, about = functions(recording)
    expect_equal(some['off']['calls'], 31 + 12 + 1001, 'calls')
    expect(not some['off'].get('calls_estimated'), str(some['off']))
    expect_equal(about['budget']['functions_off'], 0, 'functions off')
    expect_equal(about['budget']['functions_counted'], 1, 'functions counted')
    # One of three calls after the switch was on the first path.
    got = paths(recording, 'calls')
    expect_equal((got['main;off'], got['main;outer;off']), (31 + 334, 12 + 667), 'paths')
    head = report(recording, 'report')
    expect('1 function was counted without paths for 1,001 of its calls' in head, head)
    expect('~' in report(recording, 'report', '--tree'), 'paths are not marked')


@test
def counters_that_do_not_exist_count_nothing():
    program = Program()
    for counter in 2040, 2**63:
        recording = program.record(
            node(program['main'], MEMORY, frame=1),
            node(program['off'], at(0), calls=30, time=30),
            throttled(program['off'], state=3, counter=counter),
            counters(_1=5), budget=craft.budget(throttled=1))
        some, _ = functions(recording)
        expect_equal(some['off']['calls'], 30, 'calls')


# --- samples ---

def a_sample_is_below_the_recorded_call_with_what_is_inlined(family):
    program = Program(family)
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['outer'], at(0)),
        sampled(at(0), program['mark_main'], 4),
        sampled(at(1), program['mark_outer'], 100),
        sampled(at(1), program['mark_middle'], 20),
        sampled(at(1), program['mark_deep'], 3),
        # A call from main to what is off, and from there to what has no hooks.
        sampled(at(0), program['mark_main_again']),
        sampled(at(6), program['mark_off'], 7),
        sampled(at(6), program['mark_off_again']),
        sampled(at(8), program['mark_below'], 30))
    expect_equal(paths(recording), {
        'main': 4 * MS, 'main;outer': 100 * MS, 'main;outer;middle': 20 * MS,
        'main;outer;middle;deep': 3 * MS, 'main;off': 7 * MS,
        'main;off;below': 30 * MS}, 'self times')
    some, about = functions(recording)
    expect_equal(about['time_ns'], 164 * MS, 'time')
    expect_equal(some['off']['total_ns'], 37 * MS, 'total of off')
    expect_equal(some['main']['total_ns'], 164 * MS, 'total of main')
    # Its place in the source is known as well.
    expect(some['deep']['file'].endswith('inlined.c') and
           some['deep']['line'] > 0, str(some['deep']))


for family in FAMILIES:
    shimtest.add_test('a sample is below the recorded call with what is inlined: ' +
                      family,
                      lambda family=family:
                      a_sample_is_below_the_recorded_call_with_what_is_inlined(
                          family))


@test
def a_recorded_call_that_is_inlined_is_where_the_chain_is_cut():
    program = Program()
    # As where gcc marks the inlined copy of middle().
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['outer'], at(0)),
        node(program['outer'] + 1, at(1)),      # no name of any in the chain
        sampled(at(2), program['mark_deep'], 5))
    got = paths(recording)
    # The code is outer's, which is a caller: middle and deep are below the call.
    path, = got
    expect(path.startswith('main;outer;') and path.endswith('middle;deep'), path)


@test
def without_debug_information_symbols_tell_the_function():
    program = Program(flags=('-g0',))
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['outer'], at(0)),
        sampled(at(1), program['mark_deep'], 5),
        sampled(at(0), program['mark_main_again']),
        sampled(at(3), program['mark_off'], 7))
    expect_equal(paths(recording),
                 {'main;outer': 5 * MS, 'main;off': 7 * MS}, 'self times')


@test
def without_symbols_tables_for_exceptions_tell_functions_apart():
    program = Program(flags=('-g0', '-s'))
    whole = Program(flags=('-g0',))
    recording = program.record(
        *[node(BASE + 0x10, MEMORY, frame=1)],
        sampled(at(0), whole['mark_off'], 7),
        sampled(at(0), whole['mark_off_again'], 2),
        sampled(at(0), whole['mark_outer'], 1))
    got = sorted(paths(recording).values())
    expect_equal(got, [1 * MS, 9 * MS], 'off and outer')


@test
def a_sample_of_an_unknown_place_is_unknown_code():
    program = Program()
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        sampled(at(0), 0, 5),
        sampled(at(0), 0x7fff00001234, 6),
        sampled(MEMORY, 0x7fff00005678, 2))
    expect_equal(paths(recording), {'main;[unknown code]': 11 * MS,
                                    '[unknown code]': 2 * MS}, 'self times')


@test
def samples_that_found_hooks_are_our_own_cost():
    program = Program()
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        sampled(at(0), program['mark_main'], 80, own=20),
        budget=craft.budget(own_ns=5 * MS))
    some, about = functions(recording)
    expect_equal((about['time_ns'], about['time_raw_ns']), (80 * MS, 100 * MS),
                 'time')
    text = report(recording, 'report')
    expect('it cost 25.0 ms of 100 ms (25.0 %): 20.0 ms in hooks, 5.00 ms for '
           'samples and switching' in text, text)
    expect('  this is over the budget, which spares calls, but not jumps' in text, text)
    raw = report(recording, 'report', '--raw', '--format', 'json')
    expect_equal(json.loads(raw)['functions'][0]['self_ns'], 100 * MS, 'raw')
    little = program.record(
        node(program['main'], MEMORY, frame=1),
        sampled(at(0), program['mark_main'], 90, own=10),
        budget=craft.budget(own_ns=4 * MS))
    expect('this is over the budget' not in report(little, 'report'), 'far over')


def code_of(program, name):
    """[(address, instruction)] of a function, as objdump has them."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', program.path], check=True,
                          text=True, capture_output=True).stdout
    code = text.split('<%s>:\n' % name)[1].split('\n\n')[0]
    return [(int(address, 16), ' '.join(rest.split()))
            for address, rest in re.findall(r'^ +([0-9a-f]+):\t(.*)', code, re.M)]


# The functions of this program do nothing but call hooks and each other.  So all these
# are for hooks: their calls, their arguments, the functions' addresses, and loads from
# the stack, where the return addresses are.
FOR_HOOKS = re.compile(r'(call|jmp) .*__cyg_profile_func|(mov|lea) .*,%[re][ds]i$|'
                       r'lea .*<(outer|middle|deep|below|off|main)>$|'
                       r'mov 0x[0-9a-f]+\(%r[bs]p\),')


def call_sites_are_no_time_of_the_program(family, optimize, flags):
    program = Program(family, flags, optimize, instrument=True)
    for name in 'outer', 'below', 'main':
        code = code_of(program, name)
        # (The first two are where the processor waits after the call.)
        own = [i for i, (_, text) in enumerate(code) if i > 1 and FOR_HOOKS.match(text)]
        expect(len(own) >= 5, (name, code))
        # One sample at each instruction, and two at those for hooks.
        recording = program.record(
            node(program['main'], MEMORY, frame=1), *([] if name == 'main' else
                                                      [node(program[name], at(0))]),
            *[sampled(at(name != 'main'), BASE + address, 1 + (i in own))
              for i, (address, _) in enumerate(code)])
        some, about = functions(recording)
        expect_equal(about['budget']['call_sites_ns'], 2 * len(own) * MS, (name, code))
        expect_equal(some['main']['total_ns'], (len(code) - len(own)) * MS, name)
        expect_equal(about['time_raw_ns'], (len(code) + len(own)) * MS, name)
        raw, _ = functions(recording, '--raw')
        expect_equal(raw['main']['total_ns'], (len(code) + len(own)) * MS, 'raw')
        text = report(recording, 'report')
        expect('call sites of hooks took about %d.0 ms more' % (2 * len(own)) in text, text)
        # annotate shows the same instructions.
        text = report(recording, 'annotate', '^%s$' % name, '--asm', '--context', '99')
        marked = re.findall(r'([0-9a-f]+)  \S.* ; for a hook$', text, re.M)
        expect_equal([int(address, 16) for address in marked][:len(own)],
                     [code[i][0] for i in own], text)


for family in FAMILIES:
    for optimize, *flags in ('-O2',), ('-O0',), ('-O2', '-fno-plt'), ('-O2', '-g0'):
        shimtest.add_test(
            'call sites are no time of the program: %s %s' %
            (family, ' '.join([optimize, *flags])),
            lambda family=family, optimize=optimize, flags=tuple(flags):
            call_sites_are_no_time_of_the_program(family, optimize, flags))


@test
def code_that_calls_no_hooks_is_all_the_program_s():
    program = Program()
    code = code_of(program, 'outer')
    recording = program.record(
        node(program['main'], MEMORY, frame=1), node(program['outer'], at(0)),
        *[sampled(at(1), BASE + address, 1) for address, _ in code])
    some, about = functions(recording)
    expect_equal((about['budget']['call_sites_ns'], some['main']['total_ns']),
                 (0, len(code) * MS), 'times')


@test
def functions_without_hooks_are_not_between_those_with():
    program = Program()
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['below'], at(0), calls=9),
        sampled(at(0), program['mark_main_again']),
        sampled(at(2), program['mark_off'], 2),
        sampled(at(3), program['mark_off_again']),      # calls itself
        sampled(at(4), program['mark_off_again'], 4),
        sampled(at(4), program['mark_below'], 50), cost=0)
    expect_equal(paths(recording), {'main;off': 6 * MS, 'main;below': 50 * MS},
                 'self times')
    # As recorded calls of it would be.
    expect_equal(paths(recording, 'calls'), {'main': 1, 'main;below': 9}, 'calls')
    text = report(recording, 'report', '--tree')
    expect(re.search(r' 6\.00 ms +- +off', text), text)


# --- times ---

@test
def no_sample_is_no_zero():
    program = Program()
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['outer'], at(0), calls=1000),
        sampled(at(0), program['mark_main'], 200))
    for words in ((), ('--tree',), ('--callers', 'outer'), ('--callees', 'main')):
        text = report(recording, 'report', *words)
        expect(' 0 ns' not in text, text)
        expect('< 3.00 ms' in text, text)


@test
def nothing_is_shown_longer_than_its_caller():
    program = Program()
    recording = program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['outer'], at(0), calls=1000),
        sampled(at(0), program['mark_main'], 2))
    text = report(recording, 'report', '--tree', '--min-percent', '0')
    expect('< 2.00 ms < 2.00 ms' in text, text)


@test
def a_bound_is_no_longer_than_any_caller():
    program = Program()
    # A call that no tick found is in one that took at most 500 ns.
    recording = program.record_timed(
        node(program['main'], MEMORY, calls=1, time=900 * MS, coarse=1),
        node(program['outer'], at(0), calls=1, time=500, coarse=0),
        node(program['main'], at(1), calls=1, time=400, coarse=0),
        node(program['mark_main'], at(2), calls=10, time=0, coarse=1))
    paths = {p['id']: p for p in json.loads(
        report(recording, 'export', 'json'))['paths']}
    longest = {n: p['total_below_ns'] or p['total_ns'] for n, p in paths.items()
               if p['function'] is not None}
    for number, most in longest.items():
        caller = paths[number]['parent']
        expect(caller not in longest or most <= longest[caller], (number, longest))


@test
def what_is_left_of_a_caller_bounds_what_it_called():
    program = Program()
    # Of the caller, the cost of a thousand calls leaves less than of the called: 59.98 of 100
    # us, and 70 of 90. It is known to take time elsewhere, so that the cost is believed.
    recording = program.record_timed(
        node(program['main'], MEMORY, calls=1, time=400 * MS, coarse=0),
        node(program['outer'], at(0), calls=1, time=10 * MS, coarse=0),
        node(program['off'], at(0), calls=1, time=50 * MS, coarse=0),
        node(program['outer'], at(2), calls=1, time=100000, coarse=0),
        node(program['below'], at(3), calls=1000, time=90000, coarse=0),
        cost=20000)
    document = json.loads(report(recording, 'export', 'json'))
    paths = {p['id']: p for p in document['paths']}
    names = [f['name'] for f in document['functions']]
    below, = [p for p in paths.values() if p['function'] is not None and
              names[p['function']] == 'below']
    caller = paths[below['parent']]
    expect_equal((round(caller['total_ns']), round(below['total_ns']),
                  round(below['self_ns'])), (59980, 59980, 59980), 'times')
    text = report(recording, 'report', '--tree', '--min-percent', '0')
    expect_equal(re.findall(r' (60\.0 us) .* (outer|below)', text),
                 [('60.0 us', 'outer'), ('60.0 us', 'below')], text)
    # Of all its calls, the function has what is left of them.
    some, _ = functions(recording)
    expect_equal(round(some['below']['total_ns']), 70000, 'of the function')


@test
def times_below_the_cost_are_shown_as_bounds():
    program = Program()
    # Timed exactly: 50 us in all, of which hooks are thought to take 100.
    recording = program.record_timed(
        node(program['main'], MEMORY, calls=1, time=400 * MS, coarse=0),
        node(program['outer'], at(0), calls=100000, time=50000, coarse=0))
    text = report(recording, 'report')
    expect(re.search(r'< 50\.0 us .* outer', text), text)
    expect(' 0 ns' not in text, text)
    # 100 us are taken from main's self time, and 50 from outer's, not 100.
    _, about = functions(recording)
    expect(abs(about['time_ns'] - (400 * MS - 150000)) < 1000, str(about['time_ns']))


# --- what the report advises ---

def costly(time, calls, cost=20000, hooks=None):
    """A run of @time ns with @calls timed exactly, of which each cost 20 ns and 20.
    @hooks: of the samples, one a millisecond, those in hooks."""
    program = Program()
    samples, budget = [], None
    if hooks is not None:
        each = (time // MS - hooks) // 2, hooks // 2
        samples = [craft.sampled(at(n), 0, *each) for n in (0, 1)]
        budget = craft.budget(percent=0, weight=time // MS)
    return report(program.record_timed(
        node(program['main'], MEMORY, calls=1, time=time, coarse=0),
        node(program['outer'], at(0), calls=calls, time=time // 2, coarse=0),
        *samples, cost=cost, budget=budget), 'report')


@test
def a_costly_run_is_told_what_a_budget_makes_of_it():
    # 400 of 900 ms, of which 300 are believed; 10 million call sites take 10 ms, and the
    # budget a ninth of the rest.
    expect('400 ms of 900 ms were our own cost: profrun --budget 10 takes at most 678 ms'
           '\n' in costly(900 * MS, 10000000), 'much time')
    # What samples found to be hooks is subtracted whole.
    expect('500 ms of 900 ms were our own cost: profrun --budget 10 takes at most 456 ms'
           '\n' in costly(900 * MS, 10000000, hooks=500), 'calibrated')
    # 200 of 900 ms.
    expect('--budget' not in costly(900 * MS, 5000000), 'enough time')


@test
def a_short_run_is_told_to_time_every_call():
    program = Program()
    for samples, advised in (40, True), (60, False):
        text = report(program.record(
            node(program['main'], MEMORY, frame=1),
            sampled(at(0), program['mark_main'], samples)), 'report')
        expect_equal('too short for samples to say much: profrun -p calltree:exact '
                     'times every call' in text, advised, text)


# --- exact times, corrected by samples ---

def exact(program, tiny, main, budget, cost=5000):
    """main calls outer() ten million times: 400 ms, of which @tiny samples are its own;
    and it has 500 ms itself, and @main samples."""
    return program.record_timed(
        node(program['main'], MEMORY, calls=1, time=900 * MS, coarse=0),
        node(program['outer'], at(0), calls=10000000, time=400 * MS, coarse=0),
        sampled(at(0), 0, *main), sampled(at(1), 0, *tiny), budget=budget, cost=cost)


@test
def samples_tell_what_of_exact_times_is_ours():
    program = Program()
    # Hooks are thought to take 5 ns inside a call and 5 outside: 100 ms in all.  They
    # were found in three of four samples in outer, and in three of five in main.
    recording = exact(program, (90, 270), (200, 300),
                      craft.budget(percent=0, weight=860))
    some, about = functions(recording)
    expect(abs(some['outer']['self_ns'] - 90 * MS) < 2 * MS, str(some['outer']))
    expect(abs(some['main']['self_ns'] - 200 * MS) < 2 * MS, str(some['main']))
    expect(abs(about['time_ns'] - 290 * MS) < 4 * MS, str(about['time_ns']))
    expect(some['outer']['self_error_ns'] >= 9 * MS, str(some['outer']))
    # 40 ms without a sample: may be chance.
    expect_equal(some['outer']['waited_ns'], 0, 'waited')
    expect(some['outer']['waited_below_ns'] > 40 * MS, str(some['outer']))
    expect('every call timed exactly; samples, one for 1.00 ms of processor time, '
           'tell our own cost' in report(recording, 'report'), 'the clock')
    # They are no functions, and no paths.
    expect_equal(sorted(some), ['main', 'outer'], 'functions')
    expect_equal(paths(recording, 'calls'),
                 {'main': 1, 'main;outer': 10000000}, 'calls')


@test
def samples_without_a_period_say_nothing():
    program = Program()
    recording = exact(program, (100, 300), (200, 300),
                      craft.budget(percent=0, period_ns=0, weight=900))
    some, _ = functions(recording)
    expect_equal(some['outer']['self_ns'], 350 * MS, 'by the cost of the start')
    expect_equal(sorted(some), ['main', 'outer'], 'functions')


@test
def time_without_samples_was_spent_waiting():
    program = Program()
    # (A hundred samples in 400 ms.)
    recording = exact(program, (30, 70), (200, 300),
                      craft.budget(percent=0, weight=600))
    some, _ = functions(recording)
    expect(abs(some['outer']['self_ns'] - 30 * MS) < 2 * MS, str(some['outer']))
    expect(abs(some['outer']['waited_ns'] - 300 * MS) < 2 * MS, str(some['outer']))
    expect(abs(some['outer']['self_raw_ns'] - 100 * MS) < 2 * MS, str(some['outer']))
    expect('threads waited for another 300 ms' in report(recording, 'report'), 'head')


@test
def what_hooks_hardly_touch_keeps_its_exact_time():
    program = Program()
    recording = program.record_timed(
        node(program['main'], MEMORY, calls=1, time=900 * MS, coarse=0),
        node(program['outer'], at(0), calls=1000, time=400 * MS, coarse=0),
        sampled(at(0), 0, 500), sampled(at(1), 0, 411),
        budget=craft.budget(percent=0, weight=900))
    some, _ = functions(recording)
    # 1,000 times 1 ns of cost, more or less.
    expect(399.9 * MS < some['outer']['self_ns'] <= 400 * MS, str(some['outer']))


# --- calls ---

@test
def calls_of_functions_switched_off_are_estimates_with_an_error():
    recording = with_estimates(Program())
    some, about = functions(recording)
    off = some['off']
    # 5,500 before, 900,000 since (rates are cut to whole numbers).
    expect(abs(off['calls'] - 905500) < 1000, str(off))
    expect_equal(off['calls_exact'], 9500, 'exact')
    expect_equal(off['calls_estimated'], off['calls'], 'estimated')
    # 1.962 x sqrt(100^2 / 12 / 1000) = 1.79 calls a millisecond.
    expect(1550 < off['calls_error'] < 1680, str(off))
    outer = some['outer']
    expect_equal((outer['calls'], outer['calls_exact'], outer['calls_estimated'],
                  outer['calls_error']), (1234, 1234, None, None), 'outer')
    calls = paths(recording, 'calls')
    # Three of four that were counted meanwhile were in main.
    expect(abs(calls['main;off'] - 680000) < 1000, str(calls))
    expect(abs(calls['main;outer;off'] - 225500) < 1000, str(calls))
    expect_equal(sum(calls.values()), about['calls'], 'sum')
    text = report(recording, 'report')
    row, = re.findall(r'^.* off \[.*$', text, re.M)
    expect(re.search(r'~90[56]\.[0-9] k ± 1\.[67] k', row), row)
    row, = re.findall(r'^.* outer \[.*$', text, re.M)
    expect(re.search(r' 1,234 ', row), row)
    expect('1 of 3 functions was switched off' in text, text)
    expect(re.search(r'~89[56]\.[0-9] k ± 1\.[67] k of its calls were not counted',
                     text), text)


@test
def estimates_and_exact_counts_stand_below_each_other():
    text = report(with_estimates(Program()), 'report')
    rows = re.findall(r'^.* (?:main|off|outer) .inlined.*$', text, re.M)
    ends = {re.search(r' (?:main|off|outer) .inl', row).start() for row in rows}
    expect_equal((len(rows), len(ends)), (3, 1), text)


@test
def exports_of_calls_say_which_are_estimates():
    recording = with_estimates(Program())
    for words in (('folded', '--value', 'calls'), ('speedscope', '--value', 'calls'),
                  ('pprof',), ('callgrind',), ('gmon',)):
        out = os.path.join(new_directory('out'), 'out')
        done = subprocess.run([shimtest.report, 'export', *words, '-o', out,
                               recording], text=True, capture_output=True)
        expect_equal(done.returncode, 0, done.stderr)
        expect('the calls of 1 function are estimates: off' in done.stderr,
               '%s: %s' % (words, done.stderr))


@test
def too_few_bursts_say_at_least():
    recording = with_estimates(Program(), rates=[1000])
    some, _ = functions(recording)
    off = some['off']
    expect_equal((off['calls'], off['calls_exact'], off['calls_estimated'],
                  off['calls_error']), (9500, 9500, None, None), 'off')
    expect('> 9,500' in report(recording, 'report'), 'no bound')


@test
def functions_that_could_not_be_switched_off_are_reported():
    text = report(with_estimates(Program(), state=2), 'report')
    expect('1 function could not be switched off' in text, text)
    expect('> 9,500' in text, text)


@test
def bursts_without_a_call_are_a_bound():
    recording = with_estimates(Program(), rates=[0] * 900)
    some, _ = functions(recording)
    # 3 in the 900 ms of bursts at most: 3 in 900 ms.
    expect_equal((some['off']['calls'], some['off']['calls_error']), (9500, 3),
                 'off')


# --- all outputs, and damage ---

OUTPUTS = [('report', '--tree'), ('report', '--callers', 'off'),
           ('report', '--callees', 'main'), ('report', '--threads'),
           ('report', '--format', 'json'), ('report', '--format', 'csv'),
           ('report', '--ranks'), ('info',), ('export', 'folded'),
           ('export', 'folded', '--value', 'calls'), ('export', 'speedscope'),
           ('export', 'pprof', '-o', 'OUT'), ('export', 'callgrind'),
           ('export', 'json'), ('export', 'csv'), ('html', '-o', 'OUT')]


@test
def all_outputs_show_estimates():
    recording = with_estimates(Program())
    for words in OUTPUTS:
        out = os.path.join(new_directory('out'), 'out')
        text = report(recording, *[out if word == 'OUT' else word
                                   for word in words])
        expect(text or os.path.getsize(out), 'nothing from %s' % (words,))


@test
def a_diff_of_an_exact_and_an_estimated_run_shows_both():
    program = Program()
    exact = program.record(node(program['main'], MEMORY, frame=1),
                           node(program['off'], at(0), calls=900000),
                           sampled(at(0), program['mark_main'], 900))
    out = subprocess.run([shimtest.report, 'diff', '--value', 'calls', exact,
                          with_estimates(program)], text=True,
                         capture_output=True)
    expect_equal(out.returncode, 0, out.stderr)
    expect(re.search(r'900,000 +~?905,', out.stdout), out.stdout)
    expect(re.search(r'^B +1 run +~906,', out.stdout, re.M), out.stdout)
    # Calls that nothing counts are no number.
    sampled_too = program.record(node(program['main'], MEMORY, frame=1),
                                 sampled(at(0), program['mark_main'], 900),
                                 sampled(at(0), program['mark_deep'], 99))
    for value, wanted in (('calls', False), ('self', True)):
        out = subprocess.run([shimtest.report, 'diff', '--value', value, exact,
                              sampled_too], text=True, capture_output=True)
        expect_equal(bool(re.search(r' - +deep', out.stdout)), wanted, out.stdout)


@test
def a_diff_does_not_take_a_bound_for_the_calls():
    """The bound is 9,500 of off's calls."""
    program = Program()
    bound = with_estimates(program, rates=[1000])
    some, _ = functions(bound)
    expect_equal((some['off']['calls'], some['off']['calls_complete']), (9500, False), 'bound')

    def compared(first, second):
        words = [shimtest.report, 'diff', '--value', 'calls', '--fail-above', '4']
        done = [subprocess.run([*words, *more, first, second], text=True,
                               capture_output=True) for more in ([], ['--json'])]
        off, = (f for f in json.loads(done[1].stdout)['functions'] if f['name'] == 'off')
        return off, done[0]

    for calls, verdict in (900000, 'not shown to differ'), (9000, 'more?'):
        exact = program.record(node(program['main'], MEMORY, frame=1),
                               node(program['outer'], at(0), calls=1234),
                               node(program['off'], at(0), calls=calls),
                               sampled(at(0), program['mark_main'], 900))
        off, done = compared(exact, bound)
        expect_equal((off['verdict'], off['a_calls_complete'], off['b_calls_complete']),
                     (verdict, True, False), done.stdout)
        expect(re.search(r'^B +1 run +> 10,', done.stdout, re.M) and
               re.search(r' > 9,500 +off', done.stdout), done.stdout)
        off, done = compared(bound, exact)
        expect_equal((off['verdict'], done.returncode),
                     (verdict.replace('more', 'less'), 0), done.stdout + done.stderr)
    expect_equal(compared(exact, bound)[1].returncode, 3, 'more than at most')


@test
def processes_that_differ_add_up_to_an_estimate():
    program = Program()
    exact = program.record(node(program['main'], MEMORY, frame=1),
                           node(program['off'], at(0), calls=900000),
                           sampled(at(0), program['mark_main'], 900),
                           sampled(at(0), program['mark_deep'], 9))
    both = os.path.join(new_directory('merged'), 'both')
    done = subprocess.run([shimtest.report, 'merge', '-o', both, exact,
                           with_estimates(program)], text=True,
                          capture_output=True)
    expect_equal(done.returncode, 0, done.stderr)
    some, _ = functions(both)
    expect_equal((some['off']['calls_exact'], some['deep']['calls']),
                 (909500, None), 'exact calls')
    expect(abs(some['off']['calls'] - 1805500) < 1000, str(some['off']))
    for words, wanted in (
            (('report',), r'~1\.80\d M ± 0\.002 M .* off '),
            (('report', '--threads'), r' ~90\d\.\d k ± 1\.\d k +900 ms .* main'),
            (('report', '--threads'), r' 900,001 +909 ms .* main'),
            (('report', '--ranks'), r' ~1,80\d,\d+  off '),
            (('report', '--ranks'), r' 9\.00 ms .* -  deep '),
            (('report', '--ranks'), r'< 3\.00 ms .* 1,234  outer '),
            (('info',), r'calls +~1\.80\d M ± 0\.002 M in'),
            (('info',), r'main: ~90\d\.\d k ± 1\.\d k calls, 1 open'),
            (('info',), r'main: 900,001 calls, 1 open'),
            (('info', '--sums'), r'recorded +~1\.80\d M ± 0\.002 M calls in 6 '),
            (('info', '--sums'), r'own cost +< 3\.00 ms of 1\.81 s of processor'),
            (('info',), r'budget +10 %; functions switched off or counted: 1, ')):
        text = report(both, *words)
        expect(re.search(wanted, text), '%s: %s' % (wanted, text))
        expect(not re.search(r'(?<![\d.])0 ns', text), text)


@test
def damage_is_reported_and_crashes_no_reader():
    program = Program()
    loop = program.record(
        node(program['main'], MEMORY, frame=1),
        sampled(at(2), program['mark_main'], 5),
        sampled(at(1), program['mark_off'], 5),
        sampled(at(3), program['mark_off'], 5),         # its own parent
        sampled(at(77), program['mark_off'], 5),        # none is there
        node(program['off'], at(1), calls=5))           # below a sampled one
    done = subprocess.run([shimtest.report, 'export', 'folded', loop], text=True,
                          capture_output=True)
    expect_equal(done.returncode, 0, done.stderr)
    expect('its own ancestor' in done.stderr and
           "parent is not in the file" in done.stderr, done.stderr)
    absurd = program.record(
        node(program['main'], MEMORY, frame=1),
        sampled(at(0), program['mark_main'], 2**64 - 1, own=2**64 - 1),
        sampled(at(0), 2**64 - 1, 5),
        throttled(program['main'], [2**40] * 100),
        throttled(program['main'] | 5 << 48, [5] * 5, weight=2**63),
        throttled(2**64 - 1, [5] * 5, state=77),
        budget=craft.budget(percent=42949672, weight=2**64 - 1, own_ns=2**64 - 1))
    for words in OUTPUTS[:11]:
        done = subprocess.run([shimtest.report, *words, absurd], text=True,
                              capture_output=True, timeout=60)
        expect('a time that cannot be' in done.stderr, done.stderr)
    for period in 0, 2**64 - 1:
        recording = program.record(
            node(program['main'], MEMORY, frame=1),
            sampled(at(0), program['mark_main'], 50),
            budget=craft.budget(period_ns=period))
        report(recording, 'report', '--tree')


shimtest.main()
