#!/usr/bin/env python3
"""budget.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

calltree:budget=N: functions that stayed on or are counted at their calls have exact counts, those that were switched
off no more than they were called, and samples are the processor time.  The tests read
the recording's files themselves: the report estimates.
"""
import collections
import glob
import os
import random
import re
import signal
import struct
import subprocess
import time

import shimtest
from shimtest import BUILDS, add_test, compile, expect, expect_equal, record, run

THREAD, SAMPLED, THROTTLED, COUNTERS = 0xffff, 0xfff3, 0xfff2, 0xfff1
COUNTED = 3     # the state of a struct shim_throttled_node
META, META_AT = struct.Struct('<IIIIQQQQ'), 18848    # from budget on, in struct shim_meta

BURST_COUNTERS = 1020       # as in hooks/budget/controller.h


class Process:
    """What is in one process's part of a recording."""

    def __init__(self, directory):
        self.pid = int(os.path.basename(directory).split('.')[0])
        meta = open(directory + '/meta', 'rb').read()
        (self.budget, self.throttled, self.failed, _, self.period, self.weight,
         self.own_ns, self.bursts) = META.unpack_from(meta, META_AT)
        self.orphans = struct.unpack_from('<Q', meta, 120)[0]
        self.read_images(directory)
        self.calls, self.before, self.off = {}, {}, {}
        self.counted, counters = {}, {}     # by name; by number
        self.samples = self.own = self.lost = 0
        for file in glob.glob(directory + '/*.calltree'):
            self.read_file(open(file, 'rb').read(), counters)
        self.in_bursts = sum(n for i, n in counters.items() if i >= BURST_COUNTERS)
        for name, word in self.off.items():
            self.counted[name] = counters.get(word[12], 0) if word[12] else 0

    def read_images(self, directory):
        data = open(directory + '/images', 'rb').read()
        at = struct.unpack_from('<I', data, 12)[0]
        self.images = []
        while at + 8 <= len(data):
            size, _ = struct.unpack_from('<II', data, at)
            if size == 0:
                break
            start, end, bias = struct.unpack_from('<QQQ', data, at + 8)
            build_id, path = struct.unpack_from('<II', data, at + 64)
            path = data[at + 72 + build_id:at + 72 + build_id + path]
            self.images.append((start, end, bias, path.rstrip(b'\0').decode()))
            at += size

    def name_of(self, address):
        address &= (1 << 48) - 1
        for start, end, bias, path in self.images:
            if start <= address < end:
                return symbols_of(path).get(address - bias, hex(address))
        return hex(address)

    def read_file(self, data, counters):
        chunks = struct.unpack_from('<I', data, 44)[0]
        for i in range(chunks):
            at, size, _ = struct.unpack_from('<QQQ', data, 48 + 24 * i)
            end = min(at + size, len(data))
            while at + 64 <= end:
                at += self.read_node(data, at, counters)

    def read_node(self, data, at, counters):
        word = struct.unpack_from('<8Q', data, at)
        kind = word[0] >> 48
        if kind == SAMPLED:
            self.samples += word[3] + word[5]
            self.own += word[5]
        elif kind == THREAD:
            self.lost += sum(struct.unpack_from('<7Q', data, at + 64))
            return 128
        elif kind == THROTTLED:
            if word[3]:
                self.off[self.name_of(word[1])] = struct.unpack_from('<16Q', data, at)
            return 128
        elif kind == COUNTERS:
            for i, n in enumerate(struct.unpack_from('<2040Q', data, at + 64)):
                counters[i] = counters.get(i, 0) + n
            return 16384
        elif word[0] and kind < 0xff00:
            name = self.name_of(word[0])
            self.calls[name] = self.calls.get(name, 0) + word[2]
            self.before[name] = self.before.get(name, 0) + word[3]
        return 64


SYMBOLS = {}


def symbols_of(path):
    if path not in SYMBOLS:
        out = subprocess.run(['nm', path], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL).stdout.decode()
        SYMBOLS[path] = {int(a, 16): name for a, kind, name in
                         (line.split() for line in out.splitlines()
                          if len(line.split()) == 3)
                         if kind in 'tTwW'}
    return SYMBOLS[path]


def processes_of(result):
    found = [Process(os.path.dirname(meta))
             for meta in sorted(glob.glob(result.output + '/*/meta'))]
    expect(found, 'no recording')
    return found


def truths_of(result):
    truths = {}
    for pid, name, calls in re.findall(r'^process (\d+) calls (\S+) (\d+)$',
                                       result.stdout, re.M):
        truths.setdefault(int(pid), {})[name] = int(calls)
    return truths


def expect_exact(process, truth):
    """Exact for functions that stayed on; the others have no calls too many."""
    for name, calls in truth.items():
        got = process.calls.get(name, 0) + process.counted.get(name, 0)
        if name not in process.off or process.off[name][3] == COUNTED:
            expect_equal(got, calls, '%s stayed on or was counted' % name)
            continue
        expect(process.before.get(name, 0) <= got <= calls,
               '%s: %d before, %d recorded, %d in truth' % (
                   name, process.before.get(name, 0), got, calls))
    expect_equal(process.orphans, 0, 'orphans')
    expect_equal(process.lost, 0, 'lost')
    expect_equal(process.samples, process.weight, 'samples in nodes')


def functions_that_stay_have_exact_counts(family, optimize):
    path = compile('throttled.cc', family, optimize)
    result = record([path, '200', '2'], 'calltree:budget=10')
    expect_equal(result.status, 0, 'status')
    truths = truths_of(result)
    expect_equal(len(truths), 2, 'processes')
    for process in processes_of(result):
        expect_exact(process, truths[process.pid])
        expect('leaf' in process.off, 'leaf stayed on: %s' % process.off)
        expect('main' not in process.off and 'work' not in process.off,
               'the outermost call was switched off')
        expect_equal(process.budget, 1000, 'budget')


for family, optimize in BUILDS:
    add_test('functions_that_stay_have_exact_counts %s %s' % (family, optimize),
             lambda family=family, optimize=optimize:
             functions_that_stay_have_exact_counts(family, optimize))


@shimtest.test
def a_kill_loses_nothing():
    path = compile('throttled.cc', 'gcc', '-O2')
    result = record([path, '200', '2', 'kill'], 'calltree:budget=10')
    expect_equal(result.status, -signal.SIGKILL, 'status')
    truths = truths_of(result)
    for process in processes_of(result):
        expect_exact(process, truths[process.pid])


@shimtest.test
def a_budget_takes_most_hooks_away():
    path = compile('throttled.cc', 'gcc', '-O2')
    all_calls = record([path, '300', '0'], 'calltree:budget=99')
    few = record([path, '300', '0'], 'calltree:budget=5')

    def share(result):
        truths = truths_of(result)
        recorded = total = 0
        for process in processes_of(result):
            recorded += process.calls.get('leaf', 0)
            total += truths[process.pid]['leaf']
        return recorded / total
    # Nearly all of this program's time is own cost, in some windows of ticks more than 99 %.
    shares = share(all_calls), share(few)
    expect(shares[0] > 0.2 and shares[1] < 0.1,
           'shares of calls with budgets of 99 and 5: %g, %g' % shares)


@shimtest.test
def most_bursts_count_at_the_call_sites():
    """What they count is in no function's calls, and rates say no more than was seen."""
    path = compile('throttled.cc', 'gcc', '-O2')
    result = record([path, '1500', '0'], 'calltree:budget=5')
    truths, all_bursts, all_counted = truths_of(result), 0, 0
    for process in processes_of(result):
        truth = truths[process.pid]
        expect_exact(process, truth)
        off = [name for name, word in process.off.items() if word[3] == 1]
        in_hooks = sum(process.calls.get(name, 0) - process.before.get(name, 0)
                       for name in off)
        calls = sum(truth[name] for name in off if name in truth)
        all_bursts += sum(process.off[name][4] for name in off)
        all_counted += process.in_bursts
        seen = sum(process.off[name][5] for name in off)
        expect(seen <= process.in_bursts + in_hooks,
               'rates of %d calls: %d were counted, %d recorded' %
               (seen, process.in_bursts, in_hooks))
        expect(process.in_bursts + in_hooks <= calls,
               '%d calls: %d were counted, %d recorded' %
               (calls, process.in_bursts, in_hooks))
    expect(all_bursts > 4 and all_counted > 0,
           '%d bursts counted %d calls' % (all_bursts, all_counted))


@shimtest.test
def functions_that_jump_to_their_leave_hook_are_counted_in_bursts_too():
    """What counts is the call of the enter hook. One of so many bursts is of hooks."""
    path = compile('leaves_by_jump.c', 'gcc', '-O2')
    result = record([path, '2000'], 'calltree:budget=10')
    truths = truths_of(result)
    process, = processes_of(result)
    expect_exact(process, truths[process.pid])
    names = [name for name in ('first', 'second') if name in process.off]
    in_hooks = sum(process.calls[name] - process.before[name] for name in names)
    expect(names and process.in_bursts > in_hooks,
           'of %s, bursts counted %d calls, and %d were recorded' %
           (names, process.in_bursts, in_hooks))


@shimtest.test
def without_a_budget_nothing_is_sampled():
    path = compile('throttled.cc', 'gcc', '-O2')
    result = record([path, '20', '0'], 'calltree')
    for process in processes_of(result):
        expect_equal((process.budget, process.weight, process.off), (0, 0, {}),
                     'of a budget')


@shimtest.test
def a_program_without_marks_is_sampled_whatever_its_budget():
    path = compile('throttled.cc', 'gcc', '-O2', instrument=False)
    profrun = os.path.normpath(os.path.join(os.path.dirname(shimtest.report), '..', '..',
                                            'profrun'))
    for options, variables in [['--budget=10'], {}], [[], {'SHIM_BUDGET': '10'}]:
        output = os.path.join(shimtest.new_directory('sampled'), 'recording')
        done = run([profrun, '--no-report', *options, '-o', output, '--', path, '20', '0'],
                   **variables)
        expect(done.status == 0 and 'it is sampled instead' in done.stderr and
               'budget' not in done.stderr and glob.glob(output + '/*/*.sampling'),
               done.stderr)


@shimtest.test
def a_filter_goes_before_the_budget():
    path = compile('throttled.cc', 'gcc', '-O2')
    result = record([path, '100', '0'], 'calltree:budget=10',
                    SHIM_FILTER='all,-M:leaf')
    truths = truths_of(result)
    for process in processes_of(result):
        truth = dict(truths[process.pid], leaf=0)
        expect_exact(process, truth)
        expect('leaf' not in process.off, 'leaf is off twice')


def module_of(name):
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return compile(os.path.join(tests, 'modules', name + '.c'), 'gcc', '-O1',
                   name=name + '.so', instrument=False,
                   flags=('-shared', '-fPIC', '-I',
                          os.path.join(os.path.dirname(tests), 'include')))


@shimtest.test
def calls_that_another_profiler_wants_stay_on():
    path = compile('throttled.cc', 'gcc', '-O2')
    counted = os.path.join(shimtest.new_directory('counted'), 'counted')
    result = record([path, '100', '0'], 'calltree:budget=10;%s:%s' % (
        module_of('elt3_fast'), counted))
    truths = truths_of(result)
    for process in processes_of(result):
        for name, calls in truths[process.pid].items():
            expect_equal(process.calls.get(name, 0), calls, name)
        expect(process.failed > 0, 'functions that could not be switched are not told')


@shimtest.test
def a_wrong_setting_is_told():
    path = compile('throttled.cc', 'gcc', '-O2')
    result = record([path, '5', '0'], 'calltree', SHIM_BUDGET='ten',
                    SHIM_VERBOSE='1')
    expect('SHIM_BUDGET' in result.stderr, result.stderr)
    for process in processes_of(result):
        expect_equal(process.budget, 0, 'budget')


# --- hard cases ---
# Counting takes some 8 % of the time of budgeted.c, of 20 % that it may take then; hooks
# would take 30 %.
BUDGET = 'calltree:budget=45'


# How functions are marked.  (An empty PROFDIR: no gmon.out.)
Marks = collections.namedtuple('Marks', 'name flags variables')
HOOKS = Marks('', ('-finstrument-functions',), {})
NO_OPS = Marks('no_ops', ('-fpatchable-function-entry=5',), {})
MARKS = [NO_OPS, Marks('mcount', ('-pg',), {'PROFDIR': ''}),
         Marks('fentry', ('-pg', '-mfentry'), {'PROFDIR': ''}),
         Marks('nothing', (), {'SHIM_PATCH': '*'})]


def compile_marked(source, marks, *flags, **more):
    return compile(source, 'gcc', '-O2', (*marks.flags, *flags), instrument=False, **more)


def budgeted(*words, marks=HOOKS, **more):
    """The run of budgeted.c, and the processes with what their functions were called."""
    path = compile_marked('budgeted.c', marks)
    result = record([path, *words], BUDGET, **more, **marks.variables)
    if result.status == 77:
        raise shimtest.Skipped('no seccomp here')
    expect_equal(result.status, 0, 'status: %s' % result.stderr)
    truths = truths_of(result)
    processes = processes_of(result)
    expect_equal({process.pid for process in processes}, set(truths), 'processes')
    for truth in truths.values():
        if marks != HOOKS:      # it has no entry
            del truth['inlined']
    return result, [(process, truths[process.pid]) for process in processes]


def expect_counted(process, *names):
    for name in names:
        expect(name in process.off and process.counted.get(name, 0) > 0,
               '%s was not counted at its calls: %s' % (name, process.counted))


def for_all_marks(test):
    """Adds the test for calls of hooks, and for some of the marks that can count; all tests
    together have each of them."""
    add_test(test.__name__, lambda: test(HOOKS))
    for marks in shimtest.some(MARKS, 2, len(test.__name__)):
        add_test('%s at %s' % (test.__name__, marks.name), lambda marks=marks: test(marks))


@shimtest.test
def code_that_may_not_be_written():
    result, processes = budgeted('forbidden')
    for process, truth in processes:
        for name, calls in truth.items():
            expect_equal(process.calls.get(name, 0), calls, name)
        expect(process.failed >= 2, '%d functions could not be switched' % process.failed)
    about = shimtest.json_of(result.output)
    expect_equal(about['budget']['functions_off'], 0, 'functions off')
    expect(re.search('not to be switched off: [2-9]', shimtest.shim_report('info', result.output)),
           'the report does not tell that functions stayed on')


@shimtest.test
def marks_that_are_on_count_though_code_may_not_be_written():
    for mode in 'forbidden', 'full':
        _, processes = budgeted(mode, marks=NO_OPS)
        for process, truth in processes:
            expect_exact(process, truth)
        process, _ = processes[0]
        expect_counted(process, 'leaf')


@shimtest.test
def code_that_could_not_be_written_for_a_while():
    """A later write may not switch off what was given up: the child's first change
    writes all sites."""
    _, processes = budgeted('full')
    for process, truth in processes:
        expect_exact(process, truth)
        expect('leaf' not in process.off or process.off['leaf'][3] == COUNTED or
               process.calls['leaf'] > 0, 'leaf has no calls')
    expect(any(process.failed for process, _ in processes),
           'all functions could be switched')


@for_all_marks
def a_thread_begins_while_functions_are_counted(marks):
    for _ in range(3):
        _, processes = budgeted('thread', marks=marks)
        for process, truth in processes:
            expect_counted(process, 'leaf')
            expect_exact(process, truth)


@shimtest.test
def threads_that_are_shorter_than_a_rare_sample_have_their_time():
    """The first thousand samples are dense; then each stands for four on average."""
    result = record([compile('samples_later.c', 'gcc', '-O2'), 'threads'],
                    'calltree:budget=10')
    before, after = (int(ms) for ms in result.stdout.split())
    weight = sum(process.weight for process in processes_of(result))
    # Three of four threads have a sample: the sum of all has a standard deviation of 32 ms.
    expect(before + after * 0.75 < weight < before + after * 1.25,
           '%d samples, %d + %d ms' % (weight, before, after))


@shimtest.test
def rare_samples_do_not_take_phases_without_hooks_for_phases_with_them():
    result = record([compile('samples_later.c', 'gcc', '-O2', ('-pg',), instrument=False),
                     'phases'], 'calltree:budget=10', PROFDIR='')
    true = [int(ms) for ms in result.stdout.split()]
    functions = {f['name']: f for f in shimtest.json_of(result.output)['functions']}
    seen = [functions[name]['total_raw_ns'] / 1e6 for name in ('with_hooks', 'without_hooks')]
    share, truth = seen[0] / sum(seen), true[0] / sum(true)
    expect(abs(share - truth) < 0.055, '%.3f of the samples, %.3f of the time' % (share, truth))


@shimtest.test
def a_storm_of_the_samplers_own_signal():
    """Signals that the program's processes send are no samples."""
    path = compile('budgeted.c', 'gcc', '-O2')
    result = record([path, 'own_signal'], BUDGET)
    expect_equal(result.status, 0, 'status: %s' % result.stderr)
    (pid, truth), = truths_of(result).items()
    process, = [process for process in processes_of(result) if process.pid == pid]
    expect_exact(process, truth)
    expect_counted(process, 'leaf')
    expect(process.weight < 3000, '%d samples in half a second' % process.weight)


@shimtest.test
def exceptions_and_jumps_leave_functions_that_are_off():
    """With hardly any budget nearly all of them are."""
    for family, optimize in BUILDS:
        path = compile('throttled.cc', family, optimize)
        result = record([path, '200', '1'], 'calltree:budget=1')
        expect_equal(result.status, 0, 'status')
        truths = truths_of(result)
        for process in processes_of(result):
            expect_exact(process, truths[process.pid])
            for name in 'thrower', 'catcher', 'jumper', 'lander':
                expect(name in process.off, '%s stayed on: %s' % (name, process.off))


@for_all_marks
def forks_while_functions_are_counted(marks):
    _, processes = budgeted('fork', marks=marks)
    expect_equal(len(processes), 4, 'processes')
    for process, truth in processes:
        expect_exact(process, truth)
        expect(process.calls['leaf'] > 0, 'no path of leaf')
    expect(sum('leaf' in process.counted for process, _ in processes) >= 2,
           'children counted nothing at its calls')


@for_all_marks
def estimates_of_a_child_are_of_its_own_time(marks):
    """The parent was off for four times as long."""
    path = compile_marked('calls_short.c', marks, '-pthread')
    result = record([path, '4000000', '4'], 'calltree:budget=5', **marks.variables)
    expect_equal(result.status, 0, result.stderr)
    functions = {f['name']: f for f in shimtest.json_of(result.output)['functions']}
    longer = functions['longer']
    expect(abs(longer['calls'] - 20e6) <= 3 * (longer['calls_error'] or 0), longer)


def library_of(name, marks, *flags):
    return compile_marked('budgeted_library.c', marks, '-shared', '-fPIC', '-O1', *flags,
                          name=name)


@for_all_marks
def libraries_are_unloaded_while_functions_are_counted(marks):
    one = library_of('budgeted1.so', marks)
    two = library_of('budgeted2.so', marks, '-DSHIFTED')
    result, processes = budgeted('library', one, two, marks=marks)
    places = re.findall(r'^library at (\S+)$', result.stdout, re.M)
    expect_equal(len(places), 4, 'loads')
    for process, truth in processes:
        expect_counted(process, 'leaf')
        about = shimtest.json_of(result.output)
        expect_equal(process.orphans, 0, 'orphans')
        expect_equal(process.lost, 0, 'lost')
        got = sum(process.calls.get(name, 0) for name in ('leaf', 'inlined', 'outer'))
        counted = sum(process.counted.get(name, 0) for name in ('leaf', 'inlined'))
        expect_equal(got + counted, sum(truth.get(name, 0) for name in (
            'leaf', 'inlined', 'outer')), 'calls of the program')
        lines = [line for line in about['functions'] if line['name'] == 'library_leaf']
        expect(lines, 'the libraries have no calls')
        if not any(line['calls'] is None or is_estimate(line) for line in lines):
            expect_equal(sum(line['calls'] for line in lines), truth['library_leaf'],
                         'calls of libraries')


def is_estimate(line):
    return any(key.startswith('calls_') and line[key] for key in line)


def calls_in(file, count):
    with open(file, 'rb') as counts:
        return struct.unpack('<%dQ' % count, counts.read(8 * count))


@for_all_marks
def kills_at_random_moments_in_a_storm_of_signals(marks):
    path = compile_marked('budgeted.c', marks)
    names = re.search(r'define NAMES.X. (.*)', open(os.path.join(
        shimtest.PROGRAMS, 'budgeted.c')).read()).group(1)
    names = re.findall(r'X.(\w+).', names)
    rng = random.Random(16)
    counted = 0
    for _ in range(12):
        directory = shimtest.new_directory('killed')
        file = os.path.join(directory, 'counts')
        with open(file, 'wb') as out:
            out.truncate(4096)
        environment = shimtest.environment(shimtest.new_directory('recording'),
                                           BUDGET, **marks.variables)
        with subprocess.Popen([path, 'forever', file], env=environment) as child:
            wanted = rng.randint(1, 8000000)
            while child.poll() is None and calls_in(file, 1)[0] < wanted:
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
        data = calls_in(file, len(names))
        for meta in glob.glob(environment['SHIM_DIR'] + '/*/meta'):
            process = Process(os.path.dirname(meta))
            for name, calls in zip(names, data):
                if marks != HOOKS and name == 'inlined':
                    continue
                if name in process.off and process.off[name][3] != COUNTED:
                    continue
                got = process.calls.get(name, 0) + process.counted.get(name, 0)
                # A call or two of the moment: its handler's, and the one it interrupted.
                expect(calls <= got <= calls + 2, '%s: %d recorded, %d in truth' % (
                    name, got, calls))
            counted += process.counted.get('leaf', 0) > 0
    expect(counted > 2, 'only %d of 12 runs counted before they were killed' % counted)


shimtest.main()
