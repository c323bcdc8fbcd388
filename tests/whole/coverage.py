#!/usr/bin/env python3
"""coverage.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Coverage: the lines of tests/programs/reached.c state in which case they are reached;
apart from that, the program must behave as without shim.
"""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import xml.etree.ElementTree

import shimtest
from shimtest import PROGRAMS, Skipped, compile, expect, expect_equal, \
    new_directory, record, run, run_both, shim_report, test


def wanted(case, source='reached.c'):
    """{line: whether it must be reached}"""
    lines = {}
    with open(os.path.join(PROGRAMS, source)) as file:
        for number, text in enumerate(file, 1):
            marked = re.search(r'^[^"]*\t//@ (.*)', text)
            if marked:
                cases = marked.group(1).split()
                lines[number] = case in cases or '*' in cases
    return lines


def lines_of(text):
    """{file: {line: count}} of an lcov tracefile."""
    files, lines = {}, {}
    for line in text.splitlines():
        if line.startswith('SF:'):
            lines = files.setdefault(line[3:], {})
        elif line.startswith('DA:'):
            number, count = map(int, line[3:].split(','))
            lines[number] = lines.get(number, 0) + count
    return files


def functions_of(text):
    return {name: int(count) for count, name in
            re.findall(r'^FNDA:(\d+),(.*)$', text, re.M)}


def expect_lines(output, case, source='reached.c'):
    got = lines_of(shim_report('export', 'lcov', output)).get(
        os.path.join(PROGRAMS, source), {})
    for number, is_reached in wanted(case, source).items():
        expect(number in got, '%s:%d is not known' % (source, number))
        expect_equal(got[number] > 0, is_reached,
                     '%s: %s:%d reached' % (case, source, number))


# Lazy binding takes more stack than the case `small` has.
FLAGS = ['-rdynamic', '-Wl,-z,now']


def reached(case, family='gcc', optimize='-O0', instrument=False, **more):
    program = compile('reached.c', family, optimize, FLAGS,
                      'reached' + ('_hooked' if instrument else ''),
                      instrument, ['-ldl'])
    return run_both([program, case], 'coverage', **more)


def log_of(output):
    return shim_report('info', output)


def x86_only():
    shimtest.x86_64_only('lines are looked at on x86-64')


@test
def lines_of_a_program_that_was_compiled_with_g():
    x86_only()
    for family in 'gcc', 'clang':
        for instrument in False, True:
            done = reached('plain', family, instrument=instrument)
            expect_lines(done.output, 'plain')
            functions = functions_of(shim_report('export', 'lcov', done.output))
            expect_equal({f: functions[f] for f in
                          ('main', 'plain', 'choose', 'never')},
                         {'main': 1, 'plain': 1, 'choose': 1, 'never': 0},
                         'functions')


@test
def threads_come_to_the_same_lines_at_the_same_time():
    x86_only()
    for _ in range(20):
        expect_lines(reached('threads').output, 'threads')


CASES = ['handler', 'blocked', 'waiting', 'jumped', 'forked', 'vforked',
         'executed', 'crashed', 'generated', 'small']


@test
def programs_keep_their_signals_and_processes():
    x86_only()
    for case in CASES:
        for optimize in '-O0', '-O2':
            done = reached(case, optimize=optimize)
            if optimize == '-O0':
                expect_lines(done.output, case)


@test
def beside_calls_samples_and_memory():
    x86_only()
    program = compile('reached.c', flags=FLAGS, libraries=['-ldl'])
    for case in CASES:
        done = run_both([program, case],
                        'coverage;calltree;sampling:hz=1000;memory')
        expect_lines(done.output, case)
    text = shim_report('report', '--coverage', done.output)
    expect(text.startswith('reached: '), text)
    expect('reached: ' not in shim_report('report', done.output), 'of calls')


# Code is decoded for exceptions, arguments and tail calls, while traps are in it.
@test
def traps_are_not_decoded():
    x86_only()
    for family in 'gcc', 'clang':
        for optimize in '-O1', '-O2':
            program = compile('trapped.cc', family, optimize, name='trapped')
            for profile in ('coverage;exceptions', 'coverage;calltree',
                            'coverage;trace:args', 'coverage;sampling'):
                run_both([program], profile)


PLUG = r"""
__attribute__((noinline)) int leaf(int n) {
        return n + 1;
}
__attribute__((noinline)) static int test_first(int n) { if (n > 2)
                return n * 3;
        return n * n + 1;
}
int plug(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += leaf(i) + test_first(i);
        return sum;
}
"""

PLUGGED = r"""
#include <dlfcn.h>
#include <stdio.h>

__attribute__((noinline)) static int twice(int n) {
        return 2 * n;
}
int main(int count, char **arguments) {
        void *library = dlopen(arguments[count - 1], RTLD_NOW);
        int (*call)(int) = (int (*)(int))dlsym(library, "plug");
        printf("%d\n", twice(call(4)));
        return 3;
}
"""

MARKS = {'hooks': (['-finstrument-functions'], {}),
         'no_ops': (['-fpatchable-function-entry=5'], {}),
         'mcount': (['-pg'], {}), 'fentry': (['-pg', '-mfentry'], {}),
         'nothing': ([], {'SHIM_PATCH': '*'}),
         'xray': (['-fxray-instrument', '-fxray-instruction-threshold=1'], {})}


# The first instruction of a function has a line, and is that of a mark.
def lines_and_calls_with_marks(marks, optimize):
    x86_only()
    flags, variables = MARKS[marks]
    family = 'clang' if marks == 'xray' else 'gcc'
    directory = new_directory('marked')
    paths = []
    for name, text, more in (('plug.c', PLUG, ['-shared', '-fPIC']),
                             ('plugged.c', PLUGGED, [])):
        with open('%s/%s' % (directory, name), 'w') as file:
            file.write(text)
        path = '%s/%s.%s' % (directory, name, marks)
        if marks == 'xray' and more:    # LLVM's runtime is in the program alone
            more = more + ['-fnoxray-link-deps']
        subprocess.run([shimtest.compiler_of(name, family), optimize, '-g', *flags, *more,
                        '%s/%s' % (directory, name), '-o', path, '-ldl'], check=True)
        paths.insert(0, path)
    lines, calls = {}, {}
    for profile in 'coverage', 'coverage;calltree:counts', 'calltree:counts':
        done = run_both(paths, profile, PROFDIR='', **variables)
        lines[profile] = lines_of(shim_report('export', 'lcov', done.output)
                                  if 'coverage' in profile else '')
        if 'calltree' in profile:
            about = json.loads(shim_report('report', '--format', 'json', done.output))
            calls[profile] = {f['name']: f['calls'] for f in about['functions']}
    both = 'coverage;calltree:counts'
    expect_equal(calls[both], calls['calltree:counts'], 'calls')
    # The leaf may be smaller than a jump.
    expect(calls[both].get('test_first') == 4 and calls[both].get('plug') == 1,
           calls[both])
    got = lines[both]
    for file in lines['coverage']:
        expect_equal({line: count > 0 for line, count in got[file].items()},
                     {line: count > 0 for line, count in lines['coverage'][file].items()
                      if marks not in ('xray', 'nothing') or line in got[file]}, file)


for marks in MARKS:
    for optimize in '-O0', '-O2':
        shimtest.add_test('lines_and_calls_with_%s%s' % (marks, optimize),
                          lambda m=marks, o=optimize: lines_and_calls_with_marks(m, o))


BRANCH = r"""
int value;
__attribute__((noinline)) int other(int n)
{
        return value * n;
}
__attribute__((noinline)) int early(int n)
{
        if (n < 0)
                return 7;
        value += other(n);
        return value + n;
}
int main(int count, char **arguments)
{
        (void)arguments;
        return early(-count);
}
"""


# A jump at the entry replaces a branch and the call behind it, whose line has no other place.
@test
def a_line_that_is_replaced_behind_a_branch_is_not_known():
    x86_only()
    source = new_directory('branch') + '/branch.c'
    with open(source, 'w') as file:
        file.write(BRANCH)
    path = compile(source, 'gcc', '-O2', name='branch', instrument=False)
    known = {}
    for patch in '', '*':
        done = run_both([path], 'coverage;calltree:counts', SHIM_PATCH=patch)
        known[patch] = lines_of(shim_report('export', 'lcov', done.output))[source]
        text = shim_report('report', '--coverage', done.output)
        expect_equal('1 places of lines' in text, patch == '*', text)
    expect_equal(known[''].pop(11), 0, 'the call')
    expect_equal(known['*'], known[''], 'the others')


# Each trap has fired once and is not hit again.
@test
def hooks_are_off_when_every_function_was_reached():
    x86_only()
    program = compile('reached.c', 'gcc', '-O2', FLAGS, 'reached_hooked', True,
                      ['-ldl'])

    def sites(profile, **more):
        found = re.search(r'call sites +(\d+) in 1 objects, (\d+) of them off',
                          log_of(record([program, 'plain'], profile,
                                        **more).output))
        expect(found, 'no call sites')
        return found.groups()
    expect_equal(sites('coverage'),
                 sites('calltree:counts', SHIM_FILTER='M:nothing'),
                 'call sites, and those that are off')


# Stacks, jumps, exceptions, threads and processes.
@test
def coverage_leaves_real_programs_unchanged():
    x86_only()
    for source in ('coroutines.c', 'exceptions.cc', 'longjmp.c', 'spawns.c',
                   'threads.c', 'unwind.cc'):
        for instrument in False, True:
            program = compile(source, 'gcc', '-O1', ['-rdynamic'],
                              source.split('.')[0] + '_reached%d' % instrument,
                              instrument, ['-ldl'])
            run_both([program], 'coverage', without_counts=True)


@test
def coverage_survives_sigkill():
    x86_only()
    program = compile('reached.c', flags=FLAGS, libraries=['-ldl'])
    done = record([program, 'killed'], 'coverage')
    expect_equal(done.status, -signal.SIGKILL, 'status')
    expect_lines(done.output, 'killed')


@test
def a_trap_of_the_programs_own_ends_it():
    x86_only()
    done = reached('dies_of_it')
    expect_equal(done.status, -signal.SIGTRAP, 'status')
    expect_lines(done.output, 'dies_of_it')


@test
def lines_end_where_traps_cannot_be():
    x86_only()
    for case, reason in (
            ('confined', 'the program restricts its system calls'),
            ('traced', 'the program called PTRACE_TRACEME'),
            ('waits_for_it', 'the program waits for SIGTRAP')):
        done = reached(case)
        expect_lines(done.output, case)
        expect(reason + ': no more lines are recorded' in log_of(done.output),
               '%s: the log: %s' % (case, log_of(done.output)))


# From here on the system lets nothing write code, and no earlier call has failed:
# copies of the code run.
@test
def lines_are_recorded_where_traps_stay():
    x86_only()
    for family in 'gcc', 'clang':
        for optimize in '-O0', '-O2':
            for instrument in False, True:
                done = reached('sealed', family, optimize, instrument)
                if optimize == '-O0':
                    expect_lines(done.output, 'sealed')
                expect('lines not reached before run as copies' in
                       log_of(done.output), log_of(done.output))


@test
def objects_that_come_and_go():
    x86_only()
    library = compile('reached_library.c', flags=['-shared', '-fPIC'],
                      name='libreached.so', instrument=False)
    done = reached('loaded', REACHED_LIBRARY=library)
    expect_lines(done.output, 'loaded')
    expect_lines(done.output, 'loaded', 'reached_library.c')


@test
def constructors_of_what_an_opened_library_needs_are_recorded():
    x86_only()
    needed = compile('reached_library.c', flags=['-shared', '-fPIC'],
                     name='libreached.so', instrument=False)
    library = compile('source_library.c', name='libneeds.so', instrument=False,
                      flags=['-shared', '-fPIC', '-Wl,--no-as-needed'],
                      libraries=[needed])
    done = reached('loaded', REACHED_LIBRARY=library)
    expect_lines(done.output, 'loaded', 'reached_library.c')


@test
def without_a_line_table_functions_are_recorded_with_a_message():
    x86_only()
    program = compile('reached.c', flags=['-g0', '-rdynamic'],
                      name='reached_without', libraries=['-ldl'])
    done = run_both([program, 'plain'], 'coverage')
    text = shim_report('report', done.output)
    expect('%s: no line table (compile with -g; do not strip); 3 functions of it were reached' % program
           in text, text)
    plain = compile('reached.c', flags=['-g0', '-rdynamic'],
                    name='reached_plain', instrument=False, libraries=['-ldl'])
    done = run_both([plain, 'plain'], 'coverage')
    text = shim_report('report', done.output)
    expect('%s: no line table (compile with -g; do not strip)\n' % plain in text, text)


@test
def a_filter_leaves_lines_out():
    x86_only()
    program = compile('reached.c', flags=FLAGS, libraries=['-ldl'],
                      instrument=False, name='reached')
    done = record([program, 'plain'], 'coverage', SHIM_FILTER='all,-M:choose')
    text = shim_report('export', 'lcov', done.output)
    functions = functions_of(text)
    expect('choose' not in functions and functions['plain'] == 1,
           'functions: %r' % functions)


# --- code that is hard to restore, and blocked signals ---

def resisting(case, profile='coverage', family='gcc'):
    program = compile('resisting.c', family, instrument=False)
    return run_both([program, case, new_directory('root')], profile)


@test
def code_is_restored_whatever_the_program_does_to_itself():
    x86_only()
    for family in 'gcc', 'clang':
        for case in ('chroot', 'nofile', 'descriptors', 'dumpable', 'landlock',
                     'left', 'frozen'):
            done = resisting(case, family=family)
            expect_equal(done.status, 3, case)
            expect_lines(done.output, case, 'resisting.c')


@test
def traps_of_the_program_itself_go_to_its_handler():
    """Steps, for example.  The instruction before the address is not a trap of shim's."""
    x86_only()
    for family in 'gcc', 'clang':
        done = resisting('stepped', family=family)
        expect_equal(done.status, 3, 'status')
        expect_lines(done.output, 'stepped', 'resisting.c')


@test
def code_is_put_back_by_the_page_if_it_cannot_be_written():
    """Other lines of the same page are then missed."""
    x86_only()
    for case in 'frozen_nofile', 'frozen_locked':
        expect_equal(resisting(case).status, 3, case)


@test
def lines_are_recorded_where_all_signals_are_blocked():
    x86_only()
    for family in 'gcc', 'clang':
        for case in ('timer', 'raw', 'context', 'attribute', 'inherited',
                     'masked'):
            done = resisting(case, family=family)
            expect_equal(done.status, 3, case)
            expect_lines(done.output, case, 'resisting.c')
            resisting(case, 'coverage;sampling:hz=1000')


@test
def a_failing_mask_of_signals_ends_nothing():
    x86_only()
    if not shutil.which('strace'):
        raise Skipped('strace is not installed')
    program = compile('resisting.c', instrument=False)
    alone = run([program, 'dumpable'])
    for when in [str(n) for n in range(3, 25)] + ['3+', '9+', '30+']:
        # The program starts with all signals blocked.
        done = run(['strace', '-f', '-o', '/dev/null', '-e',
                    'inject=rt_sigprocmask:error=EPERM:when=' + when,
                    'env', '--block-signal', 'LD_PRELOAD=' + shimtest.library,
                    program, 'dumpable'],
                   SHIM_DIR=new_directory('recording'),
                   SHIM_PROFILE='coverage')
        expect_equal((done.status, done.stdout), (3, alone.stdout),
                     'when=%s' % when)


@test
def a_fork_makes_few_system_calls():
    """A child inspects only what its parent had not inspected."""
    x86_only()
    if not shutil.which('strace'):
        raise Skipped('strace is not installed')
    program = compile('forks.c', instrument=False)
    trace = os.path.join(new_directory('trace'), 'trace')
    done = run(['strace', '-f', '-o', trace, '-E',
                'LD_PRELOAD=' + shimtest.library, program],
               SHIM_DIR=new_directory('recording'), SHIM_PROFILE='coverage')
    expect_equal(done.status, run([program]).status, 'status')
    calls = {}
    with open(trace) as file:
        for line in file:
            pid, call = line.split(None, 1)
            # The clocks are read until that is fast, and under strace it never is.
            if not call.startswith('clock_gettime'):
                calls[pid] = calls.get(pid, 0) + 1
    first, *children = calls.values()
    expect(children and max(children) < 600, str(calls))


# --- forks at a bad moment ---

# This hook comes after ours and makes the fork so slow that another thread does not
# wait for it.
SLOW_FORK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

/* After 150 ms another thread borrows the lock of shim, for as long as it loads a library. */
pid_t _Fork(void)
{
        static unsigned number;
        struct timespec pause = { 0, 150000000 + number++ % 12 * 500000 };
        pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "_Fork");

        nanosleep(&pause, NULL);
        return real();
}
"""

FORKS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t _Fork(void);

static const char *library;

static void *load(void *unused)
{
        for (;;)
                dlclose(dlopen(library, RTLD_NOW));
        return unused;
}

static int in_child(int n)
{
        return n * n + 1;
}

int main(int count, char **arguments)
{
        pthread_t thread;
        int status, good = 0;

        library = arguments[count - 1];
        pthread_create(&thread, NULL, load, NULL);
        for (int i = 0; i < 24; i++) {
                pid_t child = _Fork();

                if (child == 0)
                        _exit(in_child(3));
                alarm(20);
                if (waitpid(child, &status, 0) == child &&
                    WIFEXITED(status) && WEXITSTATUS(status) == 10)
                        good++;
                else
                        printf("status %#x ", (unsigned)status);
        }
        printf("%d\n", good);
        fflush(stdout);
        _exit(3);
}
"""


@test
def an_unrecorded_child_has_the_original_code():
    x86_only()
    directory = new_directory('forks')
    large = ''.join('int large_%d(int n) { return n + %d; }\n' % (i, i)
                    for i in range(10000 if shimtest.ALL else 5000))
    for name, text in (('slow_fork.c', SLOW_FORK), ('forks.c', FORKS),
                       ('large.c', large)):
        with open('%s/%s' % (directory, name), 'w') as file:
            file.write(text)
    behind = compile(directory + '/slow_fork.c', 'gcc', '-O1',
                     ['-shared', '-fPIC'], name='libslow_fork.so',
                     instrument=False)
    library = compile(directory + '/large.c', flags=['-shared', '-fPIC'],
                      name='liblarge.so')
    program = compile(directory + '/forks.c', name='forks', instrument=False,
                      libraries=['-ldl'])
    done = run([program, library], new_directory('recording'), 'coverage',
               LD_PRELOAD='%s:%s' % (shimtest.library, behind))
    expect_equal((done.status, done.stdout, done.stderr), (3, '24\n', ''),
                 'the program')
    text = log_of(done.output)
    if "another thread was changing shim's data" not in text:
        raise Skipped('no fork came at such a moment')


# --- no trap lies inside an instruction ---

def instructions_of(program):
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', program],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    return {int(m.group(1), 16)
            for m in re.finditer(r'^ *([0-9a-f]+):\t', text, re.M)}


def offsets_of(output):
    """The offsets of lines in the recording: see <shim/format.h>."""
    offsets = set()
    for directory, _, names in os.walk(output):
        for name in names:
            if name.endswith('.coverage'):
                with open(os.path.join(directory, name), 'rb') as file:
                    offsets |= set(read_offsets(file.read()))
    return offsets


def read_offsets(data):
    def word(at, size):
        return int.from_bytes(data[at:at + size], 'little')
    for chunk in range(word(44, 4)):
        at = word(48 + 24 * chunk, 8)
        end = at + word(56 + 24 * chunk, 8)
        while at < end and word(at, 8):
            if word(at, 8) == 1:
                for line in range(word(at + 36, 4)):
                    yield word(at + 56 + 16 * line, 4)
            at += word(at + 8, 8)


@test
def every_trap_is_where_an_instruction_begins():
    x86_only()
    shimtest.need('objdump')
    for family in 'gcc', 'clang':
        for source in 'reached.c', 'exceptions.cc':
            program = compile(source, family, '-O2',
                              ['-rdynamic', '-ffunction-sections',
                               '-Wl,--gc-sections'], source[:-2] + '_sections',
                              libraries=['-ldl'])
            offsets = offsets_of(record([program], 'coverage').output)
            expect(len(offsets) > 50, '%d places' % len(offsets))
            expect_equal(offsets - instructions_of(program), set(), source)


# --- the recording matches the program's execution ---

def noted_by_place(output):
    """{offset: whether it was reached}, for the program."""
    places = {}
    for directory, _, names in os.walk(output):
        for name in names:
            if name.endswith('.coverage'):
                with open(os.path.join(directory, name), 'rb') as file:
                    data = file.read()
                places.update(read_reached(data))
    return places


def read_reached(data):
    def word(at, size):
        return int.from_bytes(data[at:at + size], 'little')
    at = word(48, 8)
    while word(at, 8):
        lines, first = word(at + 36, 4), at + 56
        names = data[first + 17 * lines + word(at + 44, 4):]
        if word(at, 8) == 1 and names.split(b'\0')[0].endswith(b'_checked'):
            for i in range(lines):
                if word(first + 16 * i + 4, 4):
                    yield (word(first + 16 * i, 4),
                           data[first + 16 * lines + i] != 0)
        at += word(at + 8, 8)


def executed_by(program, case):
    """The addresses of executed instructions, according to callgrind."""
    out = os.path.join(new_directory('callgrind'), 'out')
    subprocess.run(['valgrind', '--tool=callgrind', '--dump-instr=yes',
                    '--compress-pos=no', '--compress-strings=no',
                    '--callgrind-out-file=' + out, program, case],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    executed, is_it = set(), False
    with open(out) as file:
        for text in file:
            if text.startswith('ob='):
                is_it = text.rstrip('\n').endswith('_checked')
            elif is_it and text.startswith('0x'):
                executed.add(int(text.split(' ', 1)[0], 16))
    return executed


# tests/bench/coverage repeats this with lua and sqlite.
@test
def a_place_is_noted_if_the_program_comes_there_and_only_then():
    x86_only()
    shimtest.need('valgrind')
    for family in 'gcc', 'clang':
        for optimize in '-O0', '-O2':
            program = compile('reached.c', family, optimize,
                              [*FLAGS, '-gdwarf-4'], 'reached_checked',
                              libraries=['-ldl'], instrument=False)
            noted = noted_by_place(record([program, 'plain'],
                                          'coverage').output)
            executed = executed_by(program, 'plain')
            expect(len(noted) > 100 and True in noted.values() and
                   False in noted.values(), 'places: %r' % noted)
            expect_equal({offset: offset in executed for offset in noted},
                         noted, family + optimize)


# --- inquiries of profilers ---

ANSWERS = """\
enable: SHIM_OK
late: SHIM_E_CALL_ONLY_FROM_INIT
  one covers.c:36+0 1
  one covers.c:37+1 1
  one covers.c:38+1 0
  one covers.c:39+1 1
  one covers.c:40+1 1
first: SHIM_OK
  one covers.c:43+0 0
  one covers.c:44+1 0
  one covers.c:45+1 0
second: SHIM_OK
third: SHIM_E_FAIL
nothing: SHIM_E_INVALIDARG
no callback: SHIM_E_INVALIDARG
told 1
asked 1 1 of first, 1 1 of second
third: SHIM_E_FAIL
"""

NOT_ENABLED = """\
late: SHIM_E_CALL_ONLY_FROM_INIT
first: SHIM_E_INVALIDARG
second: SHIM_E_INVALIDARG
third: SHIM_E_INVALIDARG
nothing: SHIM_E_INVALIDARG
no callback: SHIM_E_INVALIDARG
told 0
asked 0 0 of first, 0 0 of second
third: SHIM_E_INVALIDARG
objects 0, lines 0
"""


# shim calls the filters of both profilers and combines their results.  A filter that is
# set later applies from then on.
@test
def a_profiler_can_query_lines_and_counts():
    x86_only()
    flags = ['-rdynamic', '-I' + os.path.join(PROGRAMS, '../../include')]
    program = compile('covers.c', flags=flags, libraries=['-ldl'])
    library = compile('reached_library.c', flags=['-shared', '-fPIC'],
                      name='libreached.so', instrument=False)
    done = record([program], 'none', COVERS_LIBRARY=library)
    expect(done.stdout.startswith(ANSWERS), done.stdout)
    expect('  one reached_library.c:13+1 1\n' in done.stdout and
           'library: SHIM_OK\nobjects 2, lines 1\n' in done.stdout, done.stdout)
    done = record([program], 'none', COVERS_NOT='1')
    expect_equal(done.stdout, NOT_ENABLED, 'without asking')
    expect_equal(run([program]).stdout, '', 'without us')


# --- programs that count their own coverage ---

COUNTING = {'gcc': ['-fsanitize-coverage=trace-pc'],
            'clang': ['-fsanitize-coverage=trace-pc-guard,pc-table,no-prune',
                      '-fno-sanitize-link-runtime']}


@test
def counts_of_programs_that_count_are_exact():
    x86_only()
    for family, flags in COUNTING.items():
        # This stub satisfies the linker; nothing calls it under shim.
        stub = compile('counted_stub.c', family, flags=['-shared', '-fPIC'],
                       name='libcounted.so', instrument=False)
        program = compile('counted.c', family, flags=flags, name='counted',
                          libraries=[stub], instrument=False)
        for case in 'once', 'threads', 'forks':
            done = run_both([program, case], 'coverage')
            lines = lines_of(shim_report('export', 'lcov', done.output))[
                os.path.join(PROGRAMS, 'counted.c')]
            with open(os.path.join(PROGRAMS, 'counted.c')) as file:
                for number, text in enumerate(file, 1):
                    marked = re.search(r'\t//# (\d+)', text)
                    if marked:
                        expect_equal(
                            lines[number], int(marked.group(1)) *
                            {'once': 1, 'threads': 4, 'forks': 3}[case],
                            '%s %s: counted.c:%d' % (family, case, number))


# --- outputs ---

@test
def runs_add_up_and_tests_have_names():
    x86_only()
    outputs = [reached('plain').output]
    program = compile('reached.c', flags=FLAGS, libraries=['-ldl'],
                      instrument=False, name='reached')
    for label, case in (('one', 'plain'), ('two', 'threads'), ('one', 'plain')):
        outputs.append(record([program, case], 'coverage:label=' + label).output)
    text = shim_report('export', 'lcov', *outputs)
    tests = re.findall(r'^TN:(.*)\nSF:%s$' % re.escape(
        os.path.join(PROGRAMS, 'reached.c')), text, re.M)
    expect_equal(tests, ['', 'one', 'two'], 'tests')
    lines = lines_of(text)[os.path.join(PROGRAMS, 'reached.c')]
    plain, threads = wanted('plain'), wanted('threads')
    for number in plain:
        expect_equal(lines[number], 4 if plain[number] and threads[number] else
                     3 if plain[number] else int(threads[number]),
                     'runs that reach line %d' % number)
    bad = run([program, 'plain'], new_directory('bad'), 'coverage:label=a b')
    expect_equal(bad.status, 0, 'status with a label that is none')


@test
def the_page_lists_what_was_not_reached():
    output = reached('plain').output
    page = shim_report('html', output, '-o', '-')
    text = shim_report('report', output, '--limit', '0')
    files = lines_of(shim_report('export', 'lcov', output))
    expect(files, 'no files')
    for name, lines in files.items():
        part, = re.findall(r'<details><summary>(?:(?!</details>).)*: %s</summary>'
                           r'.*?</details>' % re.escape(name), page, re.S)
        expect('%d of %d lines' % (sum(n > 0 for n in lines.values()),
                                   len(lines)) in part, part)
        ranges = re.search(r'lines not reached: (.*?)</p>', part)
        got = set()
        for each in ranges.group(1).split(', ') if ranges else ():
            first, _, last = each.partition('\u2013')
            got |= set(range(int(first), int(last or first) + 1)) & set(lines)
        expect_equal(got, {line for line, count in lines.items() if not count},
                     name)
    expect('reached: ' in text and '<script' not in page, 'scripts')
    done = subprocess.run([shimtest.report, 'html', output, '-o', '-', '--hide',
                           'main'], capture_output=True, text=True)
    expect_equal(done.returncode, 2, done.stderr)


@test
def genhtml_makes_pages_of_it():
    x86_only()
    shimtest.need('genhtml')
    output = reached('plain').output
    made = new_directory('html')
    file = os.path.join(made, 'trace.info')
    shim_report('export', 'lcov', output, '-o', file)
    done = subprocess.run(['genhtml', '-q', '-o', made, file],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect_equal(done.returncode, 0, done.stdout.decode())
    pages = [os.path.join(d, n) for d, _, names in os.walk(made)
             for n in names if n == 'reached.c.gcov.html']
    expect_equal(len(pages), 1, 'pages')
    expect('class="lineNoCov"' in open(pages[0]).read(), 'a line not reached')


@test
def cobertura_output_follows_its_dtd():
    x86_only()
    output = reached('plain').output
    root = xml.etree.ElementTree.fromstring(
        shim_report('export', 'cobertura', output))
    expect_equal(root.tag, 'coverage', 'root')
    for name in ('line-rate', 'branch-rate', 'lines-covered', 'lines-valid',
                 'branches-covered', 'branches-valid', 'complexity', 'version',
                 'timestamp'):
        expect(name in root.attrib, name)
    path = os.path.join(PROGRAMS, 'reached.c')
    found = [c for c in root.findall('packages/package/classes/class')
             if '/' + c.get('filename') == path]
    expect_equal(len(found), 1, 'classes')
    lines = {int(l.get('number')): int(l.get('hits'))
             for l in found[0].findall('lines/line')}
    expect_equal(lines, lines_of(shim_report('export', 'lcov', output))[path],
                 'lines')
    expect('never' in [m.get('name') for m in
                       found[0].findall('methods/method')], 'methods')


@test
def the_table_adds_up():
    x86_only()
    output = reached('plain').output
    lines = lines_of(shim_report('export', 'lcov', output))
    hits = sum(c > 0 for f in lines.values() for c in f.values())
    text = shim_report('report', '--limit', '0', output)
    expect(text.startswith('reached: %d of %d lines' % (
        hits, sum(map(len, lines.values())))), text)
    found = json.loads(shim_report('report', '--json', output))
    expect_equal([found['lines_reached'], found['lines']],
                 [hits, sum(map(len, lines.values()))], 'JSON')
    expect_equal({row['file']: (row['lines_reached'], row['lines'])
                  for row in found['files']},
                 {name: (sum(c > 0 for c in file.values()), len(file))
                  for name, file in lines.items()}, 'files of JSON')


@test
def files_of_the_system_are_in_no_sum():
    x86_only()
    folder = new_directory('system')
    source = os.path.join(folder, 'system.cc')
    with open(source, 'w') as file:
        file.write('#include <string>\nint main(int argc, char **argv)\n{\n'
                   '\treturn std::string(argv[0]).size() == 1;\n}\n')
    program = os.path.join(folder, 'system')
    subprocess.run(['g++', '-O0', '-g', '-o', program, source], check=True)
    output = new_directory('recording')
    expect_equal(run([program], output, 'coverage').status, 0, 'status')
    found = json.loads(shim_report('report', '--json', output))
    own = [row for row in found['files'] if not row['system']]
    expect(len(own) < len(found['files']), found['files'])
    for key in ('lines', 'lines_reached', 'functions', 'functions_reached'):
        expect_equal(found[key], sum(row[key] for row in own), key)
    page = os.path.join(folder, 'page.html')
    shim_report('html', output, '-o', page)
    with open(page) as file:
        text = file.read()
    expect('reached: %d of %d lines' % (found['lines_reached'], found['lines'])
           in text, text[:2000])
    expect('/usr/include/c++' not in text, text)


@test
def damaged_recordings_are_read_as_far_as_they_go():
    x86_only()
    output = reached('plain').output
    [path] = [os.path.join(d, n) for d, _, names in os.walk(output)
              for n in names if n.endswith('.coverage')]
    data = open(path, 'rb').read()
    chance = random.Random(1)
    for turn in range(60):
        damaged = bytearray(data)
        for _ in range(chance.choice([1, 4, 100])):
            damaged[chance.randrange(4096 + 400)] = chance.randrange(256)
        if turn % 5 == 0:
            del damaged[chance.randrange(len(damaged)):]
        with open(path, 'wb') as file:
            file.write(damaged)
        for arguments in (['report', output], ['export', 'lcov', output],
                          ['export', 'cobertura', output]):
            done = subprocess.run([shimtest.report, *arguments],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=120)
            expect(done.returncode in (0, 1), '%s: %d: %s' % (
                arguments, done.returncode, done.stderr.decode()))


FAULTS_AND_THROWS = r'''
#include <csignal>
#include <cstdio>

static volatile int *nowhere;

static void handler(int signal)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	sigprocmask(SIG_UNBLOCK, &set, nullptr);
	throw signal;
}

__attribute__((noinline)) int reads(volatile int *from, int depth)
{
	int value = *from;

	return depth > 0 ? value + reads(from, depth - 1) : value;
}

int main()
{
	struct sigaction action = {};
	int caught = 0;

	action.sa_handler = handler;
	sigaction(SIGSEGV, &action, nullptr);
	for (int i = 0; i < 100; i++) {
		try {
			reads(nowhere, 1);
		} catch (int) {
			caught++;
		}
	}
	printf("%d\n", caught);
}
'''


@test
def an_exception_of_a_signal_behind_a_hooks_call_is_caught():
    """At -O2 the load follows the call of the hook, so that its address is the one that the
    hook would return to."""
    x86_only()
    source = shimtest.new_source('faults_and_throws.cc', FAULTS_AND_THROWS)
    for optimize in ('-O0', '-O2'):
        program = compile(source, 'gcc', optimize, ['-fnon-call-exceptions'])
        for profile in ('coverage', 'calltree', 'exceptions'):
            done = run_both([program], profile)
            expect_equal((done.status, done.stdout), (0, '100\n'), (optimize, profile))


@test
def coverage_of_a_program_for_gprof_is_reported():
    """Its own histogram, for gmon.out, was taken for what the user had asked for."""
    x86_only()
    program = compile('reached.c', 'gcc', '-O0', ['-pg'], instrument=False)
    folder = new_directory('gmon')
    done = record([program, 'plain'], 'coverage', directory=folder)
    text = shim_report('report', done.output)
    expect(text.startswith('reached: '), text)
    expect(re.search('samples? in', shim_report('report', '--samples', done.output)), 'samples')


# What cgo makes: the note of Go's linker, and a runtime that handles SIGTRAP by system calls
# of its own.
GO = r'''
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

__asm__(".section .note.go.buildid, \"a\", @note\n"
	".balign 4\n.long 4, 8, 4\n.asciz \"Go\"\n.byte 0\n.asciz \"id/1234\"\n"
	".previous");

int main(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		unsigned long mask;
	} action;
	long r;

	memset(&action, 0, sizeof(action));
	__asm__ volatile("movq $8, %%r10\n\tsyscall"
			 : "=a"(r)
			 : "a"(13L), "D"(5L), "S"(&action), "d"(0L)
			 : "rcx", "r10", "r11", "memory");
	puts(r ? "refused" : "set");
	return 0;
}
'''


@test
def go_keeps_its_signal():
    x86_only()
    program = compile(shimtest.new_source('go.c', GO), 'gcc', '-O0', instrument=False)
    done = run_both([program], 'coverage')
    expect_equal((done.status, done.stdout), (0, 'set\n'), 'the program')
    text = shim_report('report', done.output)
    expect('/go: its code cannot be changed' in text, text)


shimtest.main()
