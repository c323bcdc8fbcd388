#!/usr/bin/env python3
"""monitor.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

monitor(3), PROFDIR and PROFFLAGS, and whether the real gprof reads the files.
tests/programs/monitored.c follows its arguments and counts samples of its own; the
sampler runs at a rate of one in a second to keep its samples away, so that sums are
exact.
"""
import glob
import os
import random
import re
import shutil
import struct
import subprocess
import sys

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory,
                      run, test)

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')
EPERM, ENOENT, EAGAIN, ENOMEM, EACCES, EINVAL, EFBIG = 1, 2, 11, 12, 13, 22, 27
PIE, NO_PIE = (), ('-no-pie', '-fno-pie')


def program(flags=PIE, optimize='-O1', name=None):
    return compile('monitored.c', 'gcc', optimize,
                   ['-I', INCLUDE, '-rdynamic', *flags],
                   name=name or 'monitored' + ''.join(flags),
                   instrument=False)


class Run:
    """A run of monitored.c in a directory of its own."""

    def __init__(self, *words, flags='', directory=None, profile='pchist:hz=1',
                 status=7, binary=None, **more):
        self.directory = directory or new_directory('cwd')
        self.binary = binary or program()
        if flags is not None:
            more['PROFFLAGS'] = flags
        self.recording = new_directory('recording')
        self.done = run([self.binary, *words], self.recording, profile,
                        directory=self.directory, **more)
        expect_equal((self.done.status, self.done.stderr), (status, ''),
                     'the program: ' + self.done.stdout)
        self.results = [(word, int(r), int(e)) for word, r, e in re.findall(
            r'^(\w+) (-?\d+) (\d+)$', self.done.stdout, re.M)]

    def of(self, word):
        return [(r, e) for w, r, e in self.results if w == word]

    def files(self):
        return sorted(os.path.relpath(os.path.join(top, name), self.directory)
                      for top, _, names in os.walk(self.directory)
                      for name in names)

    def path(self, name='gmon.out'):
        return os.path.join(self.directory, name)

    def log(self):
        text = b''
        for meta in glob.glob(os.path.join(self.recording, '*', 'meta')):
            text += open(meta, 'rb').read()
        return text.decode(errors='replace')


class Gmon:
    """A gmon.out file; api.md 5.6 describes the format."""

    def __init__(self, path):
        data = open(path, 'rb').read()
        magic, version, zeros = struct.unpack_from('<4si12s', data)
        expect_equal((magic, version, zeros), (b'gmon', 1, bytes(12)), path)
        at, self.histograms, self.arcs = 20, [], []
        while at < len(data):
            tag, at = data[at], at + 1
            if tag == 0:
                low, high, bins, rate, unit, letter = struct.unpack_from(
                    '<QQii15sc', data, at)
                at += 40
                expect_equal((unit.rstrip(b'\0'), letter), (b'seconds', b's'),
                             'the unit')
                self.histograms.append((low, high, rate, struct.unpack_from(
                    '<%dH' % bins, data, at)))
                at += 2 * bins
            elif tag == 1:
                self.arcs.append(struct.unpack_from('<QQi', data, at))
                at += 20
            else:
                raise shimtest.Failed('tag %d at %d' % (tag, at - 1))

    def sum(self):
        return sum(sum(h[3]) for h in self.histograms)

    def bins(self):
        """{address: count}"""
        counts = {}
        for low, high, _, bins in self.histograms:
            for i, count in enumerate(bins):
                at = low + i * (high - low) // len(bins)
                if count:
                    counts[at] = counts.get(at, 0) + count
        return counts


def mon(path):
    """A mon.out file, as in <shim/compat/mon.h>: (header, [range])."""
    data = open(path, 'rb').read()
    names = ('magic', 'version', 'size', 'rate', 'count', 'pid', 'thread',
             'outside')
    header = dict(zip(names, struct.unpack_from('<8sIIIIIIQ', data)))
    expect_equal((header['magic'], header['version']), (b'shim mon', 1), path)
    at, ranges = header['size'], []
    for _ in range(header['count']):
        low, high, bins, saturated, size, _ = struct.unpack_from(
            '<QQQQII', data, at)
        at += 40
        name = data[at:at + size].rstrip(b'\0').decode()
        counts = struct.unpack_from('<%dI' % bins, data, at + size)
        at += size + 4 * bins
        ranges.append((name, low, high, saturated, counts))
    expect_equal(at, len(data), 'the size of ' + path)
    return header, ranges


def gprof(*arguments, directory=None, fails=False):
    shimtest.need('gprof')
    done = subprocess.run(['gprof', *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, cwd=directory, timeout=60)
    expect(fails or (done.returncode == 0 and not done.stderr),
           'gprof %s: %d %s' % (' '.join(arguments), done.returncode,
                                done.stderr.decode()))
    return done.stdout.decode()


def flat(*arguments):
    """{function: (self seconds, calls or None)} from gprof's flat profile."""
    table = {}
    for line in gprof('-b', '-p', *arguments).splitlines():
        cells = line.split()
        if len(cells) >= 4 and re.match(r'^\d+\.\d+$', cells[0]):
            calls = int(cells[3]) if len(cells) >= 7 else None
            table[cells[-1]] = float(cells[2]), calls
    return table


def seconds(*arguments):
    return {name: cells[0] for name, cells in flat(*arguments).items()
            if cells[0]}


def symbol(binary, name):
    text = subprocess.run(['nm', binary], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    return int(re.search(r'^(\w+) [tT] %s$' % name, text, re.M).group(1), 16)


HITS = 'hit=first:3', 'hit=second:5', 'hit=last:1'
WANTED = {'first': 3.0, 'second': 5.0, 'last': 1.0}


# --- default profiling; rows T-2, T-5, T-6, T-52 to T-55 ---

@test
def gprof_reads_the_counts_of_all_kinds_of_programs():
    for flags in PIE, NO_PIE:
        binary = program(flags)
        ran = Run(*HITS, binary=binary)
        expect_equal(ran.files(), ['gmon.out'], 'files')
        expect_equal(seconds(binary, ran.path()), WANTED, str(flags))


@test
def files_are_named_by_the_table():
    cases = [
        # PROFDIR, PROFFLAGS, file names with PID and PROGRAM
        (None, '', ['gmon.out']),
        (None, '-pids', ['PID.PROGRAM']),
        (None, '-threads', ['PID.1.PROGRAM']),
        (None, '-threads -nopids', ['1.PROGRAM']),
        ('d', None, ['d/PID.PROGRAM']),
        ('d', '-threads', ['d/PID.1.PROGRAM']),
        ('d', '-nopids', ['d/PROGRAM']),
        ('', None, []),
        ('', '-pids', []),
        (None, '-dirname d', ['d/gmon.out']),
        (None, '-dirname d -pids', ['d/PID.PROGRAM']),
        ('e', '-dirname d', ['d/PID.PROGRAM']),
        (None, '-dirname "d d"', ['d d/gmon.out']),
        (None, "-dirname 'd d'", ['d d/gmon.out']),
    ]
    for profdir, flags, wanted in cases:
        directory = new_directory('cwd')
        for name in 'd', 'e', 'd d':
            os.mkdir(os.path.join(directory, name))
        more = {} if profdir is None else {'PROFDIR': profdir}
        ran = Run('hit=first:1', flags=flags, directory=directory, **more)
        names = [re.sub(r'\d{2,}', 'PID', name).replace(
            os.path.basename(ran.binary), 'PROGRAM') for name in ran.files()]
        expect_equal(names, wanted, 'PROFDIR=%s PROFFLAGS=%s' % (
            profdir, flags))


@test
def files_have_the_name_that_the_program_was_started_with():
    link = os.path.join(new_directory('link'), 'renamed')
    os.symlink(program(), link)
    ran = Run('hit=first:1', flags=None, binary=link, PROFDIR='.')
    expect(re.match(r'^\d+\.renamed$', *ran.files()), ran.files())


@test
def two_runs_make_two_files():
    directory = new_directory('cwd')
    for _ in range(2):
        ran = Run('hit=first:1', flags=None, directory=directory, PROFDIR='.')
    expect_equal(len(ran.files()), 2, 'files')
    expect_equal(seconds(ran.binary, *[ran.path(name) for name in ran.files()]),
                 {'first': 2.0}, 'their sum')


@test
def an_empty_profdir_leaves_it_to_the_program():
    ran = Run('start=0:0', 'hit=first:4', flags=None, PROFDIR='')
    expect_equal(ran.files(), ['gmon.out'], 'files')
    directory = new_directory('cwd')
    os.mkdir(os.path.join(directory, 'later'))
    ran = Run('setenv=PROFDIR:later', 'start=0:0', 'hit=first:4', flags=None,
              directory=directory, PROFDIR='')
    expect(re.match(r'^later/\d+\.monitored$', ran.files()[0]), ran.files()[0])
    expect_equal(seconds(ran.binary, ran.path(ran.files()[0])), {'first': 4.0},
                 'gprof')
    # A killed program's file name is known from its start.
    ran = Run('setenv=PROFDIR:later', 'start=0:0', 'hit=first:4', 'kill',
              flags=None, directory=directory, status=-9, PROFDIR='')
    expect(re.match(r'^\d+\.monitored$', *finished(ran)), 'its name')


@test
def the_file_is_where_the_program_is_when_it_is_written():
    directory = new_directory('cwd')
    os.mkdir(os.path.join(directory, 'there'))
    ran = Run('hit=first:1', 'chdir=there', directory=directory)
    expect_equal(ran.files(), ['there/gmon.out'], 'files')


@test
def the_sampler_finds_where_the_time_goes():
    for profile in 'pchist', 'pchist:hz=1000':
        ran = Run('burn=1000', profile=profile)
        got = seconds(ran.binary, ran.path())
        expect(0.8 < got.get('first', 0) + got.get('burn', 0) < 1.3,
               '%s: %s' % (profile, got))


@test
def a_program_that_is_not_instrumented_needs_only_the_variable():
    ran = Run('burn=300', flags=None, profile='none', PROFDIR='.')
    expect(Gmon(ran.path(ran.files()[0])).sum() > 30, 'samples')


@test
def without_profdir_and_profflags_nothing_is_written():
    ran = Run('hit=first:1', flags=None, profile='none')
    expect_equal(ran.files(), [], 'files')


@test
def monitor_refuses_wrong_arguments():
    for arguments in 'hz=0', 'hz=1000000000', 'hz=', 'hz=12x', 'x':
        ran = Run('burn=1', flags=None, profile='none;pchist:' + arguments)
        expect_equal(ran.files(), [], arguments)
        expect("'%s': pchist takes hz=1...20000" % arguments in ran.log(),
               ran.log())


# --- PROFFLAGS; rows T-59 to T-77 ---

@test
def strides_are_bytes_to_a_counter():
    for stride, step in (1, 4), (2, 8), (4, 16), (8, 32), ('', 8), (3, 8):
        ran = Run(*HITS, flags='-stride %s' % stride if stride else '')
        low, high, rate, bins = Gmon(ran.path()).histograms[0]
        expect_equal((high - low) / len(bins), step, 'stride %s' % stride)
        expect_equal(rate, 1, 'rate')
        expect_equal(seconds(ran.binary, ran.path()), WANTED, str(stride))
        expect_equal('-stride is 0, 1, 2, 4 or 8' in ran.log(), stride == 3,
                     'the log')
    ran = Run(*HITS, flags='-stride 0')
    got = Gmon(ran.path())
    expect_equal([h[3] for h in got.histograms], [(9,)], 'one counter')
    gprof('-b', '-p', ran.binary, ran.path())


@test
def each_error_in_profflags_is_one_line():
    ran = Run('hit=first:1', flags='-nosuch -stride 7 -sigdump FOO '
              '-sigdump SIGKILL -incobj')
    expect_equal(Gmon(ran.path()).sum(), 1, 'samples')
    for line in ("'-nosuch' is not a switch", "not '7'", "no signal 'FOO'",
                 "no signal 'SIGKILL'", '-incobj needs a value'):
        expect_equal(ran.log().count(line), 1, line)


@test
def switches_may_be_combined():
    directory = new_directory('cwd')
    os.mkdir(os.path.join(directory, 'd'))
    ran = Run(*HITS, flags='  -all\t-stride 4 -dirname d -pids ',
              directory=directory)
    names = [name for name in ran.files() if name.endswith('monitored')]
    expect_equal(len(names), 1, 'files')
    expect_equal(seconds(ran.binary, ran.path(names[0])), WANTED, 'gprof')


@test
def libraries_have_files_of_their_own_that_gprof_reads():
    ran = Run('hit=first:2', 'hit=qsort:7', flags='-all')
    files = ran.files()
    expect('gmon.out' in files and 'gmon.out.libc.so.6' in files, str(files))
    expect(not [name for name in files if 'shim' in name], str(files))
    expect_equal(seconds(ran.binary, ran.path()), {'first': 2.0}, 'program')
    expect_equal(Gmon(ran.path('gmon.out.libc.so.6')).sum(), 7, 'libc')


@test
def objects_are_chosen_by_name():
    cases = [
        ('-incobj libc.so.6', {'gmon.out': 7}),
        ('-incobj libc.so.6 -incobj monitored',
         {'gmon.out': 2, 'gmon.out.libc.so.6': 7}),
        ('-incobj monitored', {'gmon.out': 2}),
        ('-incobj "%s"' % program(), {'gmon.out': 2}),
        ('-excobj monitored', {}),
        ('-incobj libc.so.6 -excobj libc.so.6', {}),
        ('-incobj nosuch', {}),
    ]
    for flags, wanted in cases:
        ran = Run('hit=first:2', 'hit=qsort:7', flags=flags)
        expect_equal({name: Gmon(ran.path(name)).sum()
                      for name in ran.files()}, wanted, flags)
        expect_equal('no such object' in ran.log(), 'nosuch' in flags, 'log')


@test
def objects_are_chosen_by_their_soname():
    directory = new_directory('named')
    source, library = (os.path.join(directory, name)
                       for name in ('n.c', 'libnamed.so.1.2.3'))
    open(source, 'w').write('void named(void) { }\n')
    subprocess.run(['gcc', '-shared', '-fPIC', '-Wl,-soname,libnamed.so.1',
                    source, '-o', library], check=True)
    for flags, wanted in (('-incobj libnamed.so.1', {'gmon.out': 7}),
                          ('-incobj libnamed.so.1.2.3', {'gmon.out': 7}),
                          ('-all -excobj libnamed.so.1 -excobj monitored', 0)):
        ran = Run('hit=first:2', 'hit=named:7', flags=flags,
                  LD_PRELOAD=shimtest.library + ':' + library)
        sums = {name: Gmon(ran.path(name)).sum() for name in ran.files()}
        expect_equal(sums if wanted else sum(sums.values()), wanted, flags)


def expect_hits(paths, wanted, about):
    """The hits of a long run.  Each second of processor time, which a busy machine makes longer,
    adds a sample."""
    found = sum(Gmon(path).sum() for path in paths)
    expect(wanted <= found <= wanted + 4, '%s: %s, not %s' % (about, found, wanted))


@test
def sums_of_threads_are_exact():
    for flags in '', '-threads':
        ran = Run('threads=8:100000', flags=flags)
        total = sum(Gmon(ran.path(name)).sum() for name in ran.files())
        expect_equal(len(ran.files()), 9 if flags else 1, 'files')
        expect_equal(total, 800000, 'sum')
        expect_equal(seconds(ran.binary,
                             *[ran.path(name) for name in ran.files()]),
                     {'first': 400000.0, 'second': 400000.0}, 'gprof')
    # Long enough for the threads to run at the same time.
    ran = Run('threads=4:3000000')
    expect_hits([ran.path()], 12000000, 'at once')


@test
def threads_have_their_numbers_in_the_order_they_came():
    ran = Run('threads=3:10', flags='-threads')
    numbers = sorted(int(name.split('.')[1]) for name in ran.files())
    expect_equal(numbers, [1, 2, 3, 4], 'numbers')
    # The files are not in the order in which the threads began to count.
    ran = Run('in_turn=3', flags='-threads -disable_default')
    expect_equal({int(name.split('.')[1]): Gmon(ran.path(name)).sum()
                  for name in ran.files()}, {2: 1, 3: 2, 4: 3}, 'each')


@test
def dumps_and_the_file_at_exit_add_up():
    for name in 'SIGUSR1', 'USR1':
        words = []
        for i in range(3):
            words += ['hit=first:%d' % (100000 + i), 'raise',
                      'rename=gmon.out:dump%d' % i]
        ran = Run(*words, 'hit=second:9', flags='-sigdump ' + name)
        expect_equal([Gmon(ran.path(name)).sum() for name in ran.files()],
                     [100000, 100001, 100002, 9], 'each')
        expect_equal(seconds(ran.binary,
                             *[ran.path(name) for name in ran.files()]),
                     {'first': 300003.0, 'second': 9.0}, 'gprof')


# Row T-69: a hit during the writing of a file is in the next file.
@test
def counts_during_dumps_are_in_exactly_one_file():
    meanwhile = 0
    for _ in range(4):      # each thread sees every second loss
        ran = Run('threads=4:400000@', flags='-sigdump USR1')
        sums = [Gmon(ran.path(name)).sum() for name in ran.files()]
        expect_equal(sum(sums), 1600000, 'sum')
        meanwhile += len([count for count in sums if count]) - 1
    expect(meanwhile > 3, 'no dump while threads count')


@test
def real_time_signals_have_names_too():
    ran = Run('hit=first:1', flags='-sigdump RTMIN+2')
    expect('no signal' not in ran.log(), ran.log())
    ran = Run('hit=first:1', flags='-sigdump SIGRTMAX-90')
    expect("no signal 'SIGRTMAX-90'" in ran.log(), ran.log())


@test
def the_signal_interrupts_no_call():
    ran = Run('hit=first:1', 'read', 'rename=gmon.out:dump',
              flags='-sigdump USR1')
    expect_equal(ran.of('read') + ran.of('rename'), [(1, 0), (0, 0)], 'read')


@test
def threads_are_ignored_with_sigdump():
    ran = Run('threads=2:10', flags='-threads -sigdump USR1')
    expect_equal(ran.files(), ['gmon.out'], 'files')
    expect('-threads is ignored' in ran.log(), 'log')


@test
def the_program_may_take_the_signal_back():
    ran = Run('ignore', 'hit=first:3', 'raise', 'rename=gmon.out:dump',
              flags='-sigdump USR1')
    expect_equal(ran.of('rename'), [(-1, ENOENT)], 'no dump')
    expect_equal(Gmon(ran.path()).sum(), 3, 'at exit')


def plugin():
    """A library that is opened at run time, with a function of its own."""
    directory = new_directory('plugin')
    source = os.path.join(directory, 'opened.c')
    with open(source, 'w') as file:
        file.write('volatile int x;\n__attribute__((aligned(64))) '
                   'void opened(void) { x++; }\n'
                   '__attribute__((aligned(64))) void after(void) { x--; }\n')
    library = os.path.join(directory, 'libopened.so')
    subprocess.run(['gcc', '-shared', '-fPIC', source, '-o', library],
                   check=True)
    return library


# Rows T-7, T-31.
@test
def libraries_that_are_opened_count_only_when_they_are_named():
    library = plugin()
    ran = Run('open=' + library, 'start=opened:after', 'start=0:0',
              'hit=opened:3', 'hit=first:1',
              flags='-disable_default -all')
    expect('gmon.out.libopened.so' not in ran.files(), str(ran.files()))
    ran = Run('open=' + library, 'start=opened:after', 'hit=opened:3',
              'hit=first:1', flags='-disable_default')
    expect_equal(seconds(library, ran.path()), {'opened': 3.0}, 'gprof')


@test
def samples_at_reused_addresses_do_not_count_for_the_old_library():
    library = plugin()
    ran = Run('open=' + library, 'start=opened:after', 'hit=opened:3',
              'close', 'hit=before:5', flags='-disable_default')
    expect_equal(ran.of('close'), [(0, 0)], 'close')
    expect_equal(seconds(library, ran.path()), {'opened': 3.0}, 'gprof')


# --- monitor_signal; rows T-45 to T-51 ---

@test
def sigdump_writes_the_file_and_counting_continues():
    ran = Run('handler', 'hit=first:2', 'raise', 'rename=gmon.out:one',
              'hit=first:3', 'raise', 'rename=gmon.out:two', 'hit=second:1')
    expect_equal([Gmon(ran.path(name)).bins() for name in ('one', 'two')],
                 [{symbol(ran.binary, 'first'): n} for n in (2, 5)], 'files')
    expect_equal(Gmon(ran.path()).sum(), 6, 'at exit')


@test
def a_thousand_signals_to_eight_threads_leave_a_whole_file():
    ran = Run('handler', 'threads=8:300000!')
    expect_equal(ran.files(), ['gmon.out'], 'files')
    expect_hits([ran.path()], 2400000, 'sum')
    ran = Run('handler', 'threads=8:300000!', flags='-threads')
    expect_hits(map(ran.path, ran.files()), 2400000, 'sum with -threads')


@test
def many_samples_and_signals_at_once_lose_nothing():
    ran = Run('handler', 'threads=8:300000!', profile='pchist:hz=20000')
    expect(Gmon(ran.path()).sum() >= 2400000, 'sum')
    expect_equal(Gmon(ran.path()).histograms[0][2], 20000, 'rate')


# Row T-83.
@test
def the_handler_keeps_errno():
    ran = Run('handler', 'hit=first:1', 'raise', 'write', flags=None,
              PROFDIR='missing')
    expect_equal(ran.of('raise') + ran.of('write'), [(0, 0)] * 2, 'errno')


# --- monstartup, moncontrol; rows T-28 to T-44 ---

@test
def a_range_is_half_open_and_alone():
    ran = Run('start=first:third', *HITS, 'hit=third:50',
              flags='-disable_default')
    expect_equal(ran.of('start'), [(0, 0)], 'start')
    expect_equal(seconds(ran.binary, ran.path()), {'first': 3.0,
                                                   'second': 5.0}, 'gprof')
    low, high, _, _ = Gmon(ran.path()).histograms[0]
    expect_equal((low, high), (symbol(ran.binary, 'first'),
                               symbol(ran.binary, 'third')), 'the range')


@test
def both_spellings_leave_everything_to_the_program():
    for flags in '-disable_default', '-disable_defaults':
        ran = Run('hit=first:1', flags=flags)
        expect_equal(ran.files(), [], flags)


@test
def monitor_calls_are_ignored_during_default_profiling():
    ran = Run('start=first:second', *HITS)
    expect_equal(ran.of('start'), [(0, 0)], 'start')
    expect_equal(seconds(ran.binary, ran.path()), WANTED, 'gprof')


@test
def later_calls_only_switch_on_again():
    ran = Run('start=first:second', 'control=0', 'start=second:third',
              'hit=first:3', 'hit=second:5', flags=None, PROFDIR='')
    expect_equal(seconds(ran.binary, ran.path()), {'first': 3.0}, 'gprof')
    ran = Run('start=first:second', 'hit=first:1', 'start=second:third',
              'hit=first:3', 'hit=second:5', flags='-disable_default')
    expect_equal(seconds(ran.binary, ran.path()), {'second': 5.0}, 'replaced')


@test
def all_threads_give_the_same_arguments():
    ran = Run('start=first:second', 'start_beside=first:second',
              'start_beside=second:third', 'hit=first:3', 'hit=second:5',
              flags='-disable_default')
    expect_equal(ran.of('start_beside'), [(0, 0), (-1, EINVAL)], 'beside')
    expect_equal(seconds(ran.binary, ran.path()), {'first': 3.0}, 'gprof')
    # After it was stopped, another user may start it.
    ran = Run('start=first:second', 'hit=first:3', 'stop',
              'start_beside=second:third', 'hit=second:5',
              flags='-disable_default')
    expect_equal(ran.of('start_beside'), [(0, 0)], 'after it was stopped')
    expect_equal(seconds(ran.binary, ran.path()), {'second': 5.0}, 'gprof')
    ran = Run('start=first:second', 'start_beside=second:third',
              flags='-disable_default -threads')
    expect_equal(ran.of('start_beside'), [(0, 0)], '-threads')


@test
def starting_twice_does_not_count_twice():
    ran = Run('start=0:0', 'start=0:0', 'burn=500', flags='-disable_default',
              profile='none')
    expect(Gmon(ran.path()).sum() <= 150, str(Gmon(ran.path()).sum()))


@test
def wrong_ranges_are_refused_and_nothing_starts():
    cases = ['second:first', 'first:first', 'heap:heap+', '0:first',
             'first:heap', 'data:data+', 'first:0']
    ran = Run(*['start=' + case for case in cases],
              *['traditional=%s:64' % case for case in cases[:2]],
              'control=1', flags='-disable_default', SHIM_PROF_FORMAT='mon')
    expect_equal(set(ran.results), {(word, -1, EINVAL) for word in (
        'start', 'traditional', 'control')}, 'results')
    expect_equal(ran.files(), [], 'files')


@test
def no_memory_is_an_error():
    ran = Run('memory', 'start=0:0', flags='-disable_default -stride 1')
    expect_equal(ran.of('start'), [(-1, ENOMEM)], 'start')
    expect_equal(ran.files(), [], 'files')


@test
def control_answers_with_the_mode_before():
    ran = Run('control=0', 'hit=first:1', 'control=0', 'control=1',
              'hit=first:2', 'control=7', 'hit=first:4', 'control=0')
    expect_equal([r for r, _ in ran.of('control')], [1, 0, 0, 1, 1], 'modes')
    expect_equal({e for _, e in ran.of('control')}, {0}, 'errno')
    expect_equal(seconds(ran.binary, ran.path()), {'first': 6.0}, 'gprof')


@test
def a_file_is_made_whatever_the_mode():
    ran = Run('control=0', 'hit=first:1')
    expect_equal(Gmon(ran.path()).sum(), 0, 'samples')
    expect_equal(len(Gmon(ran.path()).histograms), 1, 'one histogram')
    expect('no time accumulated' in gprof('-b', '-p', ran.binary, ran.path()),
           'gprof')


@test
def control_is_the_threads_with_threads():
    ran = Run('control=0', 'hit=first:9', 'threads=2:10', flags='-threads')
    expect_equal(sorted(Gmon(ran.path(name)).sum() for name in ran.files()),
                 [0, 10, 10], 'sums')


@test
def only_the_thread_that_started_counts_with_threads():
    ran = Run('start=first:last', 'threads=2:10', 'hit=first:3',
              flags='-threads -disable_default')
    expect_equal([Gmon(ran.path(name)).sum() for name in ran.files()], [3],
                 'sums')


# --- monitor; rows T-8 to T-27 ---

MON = {'flags': '-disable_default', 'SHIM_PROF_FORMAT': 'mon'}


@test
def stopping_writes_at_once_and_may_be_taken_back():
    ran = Run('hit=first:3', 'stop', 'rename=gmon.out:stopped', 'hit=first:9',
              'start=0:0', 'hit=first:4')
    expect_equal(ran.of('stop') + ran.of('rename'), [(0, 0)] * 2, 'results')
    expect_equal(Gmon(ran.path('stopped')).sum(), 3, 'then')
    expect_equal(Gmon(ran.path()).sum(), 7, 'at exit')
    ran = Run('stop', flags='-disable_default')
    expect_equal((ran.of('stop'), ran.files()), ([(0, 0)], []), 'no start')
    ran = Run('hit=first:3', 'stop', 'rename=gmon.out:stopped', 'stop')
    expect_equal((ran.of('stop'), ran.files()), ([(0, 0)] * 2, ['stopped']),
                 'stopped twice')


@test
def sixteen_bits_stay_where_they_are_full():
    ran = Run('traditional=first:second:32', 'hit=first:70000', 'shorts',
              **MON)
    expect('shorts 65535 65535' in ran.done.stdout, ran.done.stdout)
    (_, ranges) = mon(ran.path('mon.out'))
    expect_equal((ranges[0][3], sum(ranges[0][4])), (4465, 65535), 'mon.out')
    expect('4465 samples were not counted, because their counter was full' in ran.log(), 'log')


@test
def nothing_is_written_beyond_the_buffer():
    for size in 2, 6, 30, 32, 34, 100:
        ran = Run('traditional=first:last:%d' % size, 'hit=first:1',
                  'hit=second:2', 'hit=third:3', 'shorts', **MON)
        expect_equal(ran.of('traditional'), [(0, 0)], 'monitor')
        expect('shorts 6 ' in ran.done.stdout, ran.done.stdout)


@test
def buffers_that_cannot_be_are_refused():
    ran = Run(*['traditional=first:last:%s' % size
                for size in ('0', '1', '0xffffffffffffffff')],
              **MON)
    expect_equal(ran.of('traditional'), [(-1, EINVAL)] * 3, 'results')
    expect_equal(ran.files(), [], 'files')


@test
def several_ranges_are_sorted_and_counted_apart():
    ran = Run('extended=', 'hit=first:70000', 'hit=second:2', 'hit=third:3',
              'hit=last:1', 'ranges', **MON)
    expect_equal(re.findall(r'range (\w+) (\d+)', ran.done.stdout),
                 [('third', '3'), ('second', '2'), ('first', '70000')],
                 'ranges')
    header, ranges = mon(ran.path('mon.out'))
    expect_equal([sum(r[4]) for r in ranges], [3, 2, 70000], 'mon.out')
    expect_equal(header['outside'], 1, 'outside')
    expect_equal({r[0] for r in ranges}, {ran.binary}, 'the object')
    expect_equal([r[1] for r in ranges], [symbol(ran.binary, name) for name in (
        'third', 'second', 'first')], 'addresses')


@test
def wrong_ranges_of_several_are_refused():
    cases = 'overlap', 'heap', 'high', 'flags', 'none', 'null', 'nowhere'
    ran = Run(*['extended=' + case for case in cases], **MON)
    expect_equal(ran.of('extended'), [(-1, EINVAL)] * len(cases), 'results')
    expect_equal(ran.files(), [], 'files')


@test
def files_for_gprof_have_no_memory_of_the_program():
    words = 'traditional=first:last:64', 'extended='
    ran = Run(*words, flags='-disable_default')
    expect_equal(ran.of('traditional') + ran.of('extended'),
                 [(-1, EINVAL)] * 2, 'results')
    ran = Run('traditional=first:third:64', *HITS, flags='-disable_default',
              SHIM_MONITOR_GMON='1')
    expect_equal(ran.of('traditional'), [(0, 0)], 'monitor')
    expect_equal(seconds(ran.binary, ran.path()), {'first': 3.0, 'second': 5.0},
                 'gprof')


@test
def prof_has_the_libraries_in_the_same_file():
    ran = Run('start=0:0', 'hit=first:2', 'hit=qsort:7', **MON)
    header, ranges = mon(ran.path('mon.out'))
    sums = {os.path.basename(r[0]): sum(r[4]) for r in ranges}
    expect_equal((sums['monitored'], sums['libc.so.6']), (2, 7), 'sums')
    expect_equal(header['rate'], 1, 'rate')
    ran = Run('hit=first:2', 'hit=qsort:7', SHIM_PROF_FORMAT='mon')
    expect_equal(len(mon(ran.path('mon.out'))[1]), 1, 'by default')


# --- processes; rows T-56, T-57, T-89 to T-91 ---

def by_pid(ran):
    return sorted(Gmon(ran.path(name)).sum() for name in ran.files())


@test
def a_child_counts_for_itself():
    for flags in None, '-threads':
        ran = Run('hit=first:3', 'fork=4', flags=flags, PROFDIR='.')
        expect_equal(by_pid(ran), [3, 4], 'sums')
        pids = {name.split('.')[0] for name in ran.files()}
        expect_equal(len(pids), 2, 'pids')
    ran = Run('threads=2:10', 'hit=first:3', 'fork=4', flags='-threads',
              PROFDIR='.')
    expect_equal(by_pid(ran), [3, 4, 10, 10], 'other threads are not its own')


@test
def a_child_counts_from_0_in_buffers_of_the_program():
    for words, wanted in (
            (('extended=', 'hit=first:3', 'hit=third:2'), [[0, 4, 0], [2, 0, 3]]),
            (('traditional=first:last:64', 'hit=first:3'), [[3], [4]])):
        ran = Run(*words, 'fork=4', PROFDIR='.', **MON)
        expect_equal(sorted([sum(r[4]) for r in mon(ran.path(name))[1]]
                            for name in ran.files()), wanted, words)


@test
def a_child_has_a_file_of_its_own_without_profdir():
    for word in 'fork=4', 'raw_fork':
        ran = Run('hit=first:3', word)
        names = ran.files()
        expect_equal(len(names), 2, 'files')
        expect_equal(Gmon(ran.path()).sum(), 3, 'the parent')
        names.remove('gmon.out')
        expect(re.match(r'\d+\.', names[0]) and names[0].endswith(
            os.path.basename(ran.binary)), names[0])
        expect_equal(Gmon(ran.path(names[0])).sum(), 4 if '=' in word else 0,
                     'the child')
    # Parent and child want the same file name.
    ran = Run('hit=first:3', 'fork=4', flags='-nopids')
    expect_equal(ran.files(), ['gmon.out'], '-nopids')


@test
def a_child_that_is_another_program_has_a_file_of_its_own():
    ran = Run('-c', "'%s' hit=first:3; exit 7" % program(), binary='/bin/sh')
    child, parent = ran.files()
    expect_equal(parent, 'gmon.out', 'the shell')
    expect(re.fullmatch(r'\d+\.' + re.escape(os.path.basename(program())), child),
           child)
    expect_equal(Gmon(ran.path(child)).sum(), 3, 'the child')
    # A program that replaces another one by exec is no child.
    ran = Run('-c', "exec '%s' hit=first:3" % program(), binary='/bin/sh')
    expect_equal([Gmon(ran.path('gmon.out')).sum(), ran.files()[0]],
                 [3, 'gmon.out'], 'exec')


@test
def a_handler_may_fork():
    ran = Run('hit=first:3', 'fork_in_handler', flags=None, PROFDIR='.')
    expect_equal(by_pid(ran), [3, 5], 'sums')


@test
def counts_before_exec_are_written():
    ran = Run('hit=first:3', 'exec=hit=second:4', flags=None, PROFDIR='.')
    files = ran.files()
    expect_equal(by_pid(ran), [3, 4], 'sums')
    expect_equal(files[1], files[0] + '.1', 'names')
    ran = Run('hit=first:3', 'no_exec', 'hit=second:4', flags=None, PROFDIR='.')
    expect_equal(ran.of('no_exec'), [(-1, ENOENT)], 'exec')
    expect_equal(by_pid(ran), [3, 4], 'once each, if there is no new program')


@test
def a_vfork_child_writes_nothing():
    ran = Run('hit=first:3', 'vfork', flags=None, PROFDIR='.')
    expect_equal(by_pid(ran)[-1], 3, 'sum')
    expect_equal(len([name for name in ran.files()
                      if name.endswith('monitored')]), 1, 'files')
    ran = Run('hit=first:3', 'vfork=exit', 'hit=first:4', flags=None,
              PROFDIR='.')
    expect_equal(by_pid(ran), [7], 'one that ends by itself')


@test
def a_child_of_a_raw_call_has_its_own_from_0():
    ran = Run('hit=first:3', 'raw_fork', 'hit=first:4', flags=None, PROFDIR='.')
    expect_equal(by_pid(ran), [0, 7], 'sums')


@test
def a_program_that_aborts_leaves_its_file():
    ran = Run('hit=first:3', 'abort', status=-6)
    expect_equal(Gmon(ran.path()).sum(), 3, 'sum')


def finished(ran):
    """Runs `profrun finish` in a directory of its own; returns the files."""
    directory = new_directory('finished')
    done = subprocess.run([shimtest.report, 'finish', ran.recording],
                          cwd=directory, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    expect_equal(done.returncode, 0, done.stderr.decode())
    return {name: os.path.join(directory, name)
            for name in sorted(os.listdir(directory))}


# Row T-89.
@test
def counts_of_a_killed_program_are_in_the_recording():
    for how, status in ('kill', -9), ('crash', -11):
        for flags in '', '-all':
            ran = Run('hit=first:3', 'hit=second:70000', how, flags=flags,
                      status=status)
            expect_equal(ran.files(), [], 'files')
            files = finished(ran)
            bins = Gmon(files['gmon.out']).bins()
            expect_equal(sum(bins.values()), 70003, 'sum')
            expect_equal(len([b for b in bins.values() if b]), 2, 'bins')
            expect_equal('gmon.out.libc.so.6' in files, flags == '-all',
                         'libraries')
            expect('second' in gprof_of(ran, files['gmon.out']), 'gprof')
    ran = Run('hit=first:3', 'kill', status=-9, SHIM_PROF_FORMAT='mon')
    expect_equal(list(finished(ran)), ['mon.out'], 'mon.out')


def gprof_of(ran, path):
    shimtest.need('gprof')
    done = subprocess.run(['gprof', '-b', '-p', ran.binary, path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    expect_equal((done.returncode, done.stderr), (0, b''), 'gprof')
    return done.stdout.decode()


@test
def finish_writes_no_file_twice():
    for words, status in ((['hit=first:3'], 7),
                          (['hit=first:3', 'stop', 'kill'], -9)):
        ran = Run(*words, status=status)
        done = subprocess.run([shimtest.report, 'finish', ran.recording],
                              cwd=new_directory('finished'),
                              stderr=subprocess.PIPE)
        expect_equal(done.returncode, 1, words)
        expect(b'no histogram was left unwritten' in done.stderr, done.stderr)


@test
def children_and_threads_that_are_killed_are_finished_apart():
    ran = Run('hit=first:3', 'fork=4', 'kill', flags=None, PROFDIR='.',
              status=-9)
    expect_equal(by_pid(ran), [4], 'the child wrote its own')
    files = finished(ran)
    expect_equal([Gmon(p).sum() for p in files.values()], [3], 'the parent')
    ran = Run('hit=first:2', 'threads=3:5', 'kill', flags='-threads',
              status=-9)
    sums = sorted(Gmon(p).sum() for p in finished(ran).values())
    expect_equal(sums, [2, 5, 5, 5], 'threads')


@test
def before_the_program_forbids_system_calls_the_file_is_written():
    ran = Run('hit=first:3', 'seccomp', 'hit=first:4', 'start=0:0', 'stop')
    expect_equal(ran.of('seccomp'), [(0, 0)], 'seccomp')
    expect_equal(Gmon(ran.path()).sum(), 3, 'sum')
    expect_equal(ran.of('start') + ran.of('stop'), [(-1, EPERM)] * 2, 'later')


# --- files that cannot be written; rows T-58, 5.4 ---

@test
def an_unwritable_file_is_one_line_and_the_program_is_unchanged():
    directory = new_directory('cwd')
    os.mkdir(os.path.join(directory, 'no'))
    os.chmod(os.path.join(directory, 'no'), 0o555)
    for profdir in 'missing', 'missing/deeper', '/proc', '/dev/null':
        ran = Run('hit=first:1', 'stop', 'control=1', flags=None,
                  PROFDIR=profdir)
        expect_equal(ran.of('stop')[0][0], -1, profdir)
        expect(ran.of('stop')[0][1] > 0, profdir)
        expect_equal(ran.log().count('cannot write the profile'), 1, profdir)
        expect_equal(ran.files(), [], profdir)


@test
def a_limit_of_files_is_no_signal():
    ran = Run('hit=first:1', 'files=100', 'stop')
    expect_equal(ran.of('stop'), [(-1, EFBIG)], 'stop')
    expect_equal(ran.files(), [], 'files')


@test
def links_are_replaced_and_not_followed():
    directory = new_directory('cwd')
    victim = os.path.join(directory, 'victim')
    open(victim, 'w').write('mine')
    os.symlink(victim, os.path.join(directory, 'gmon.out'))
    ran = Run('hit=first:1', directory=directory)
    expect_equal(open(victim).read(), 'mine', 'the victim')
    expect(not os.path.islink(ran.path()), 'still a link')
    expect_equal(Gmon(ran.path()).sum(), 1, 'sum')
    ran = Run('hit=first:2', 'plant=victim', directory=directory)
    expect_equal(open(victim).read(), 'mine', 'the victim')
    expect_equal(Gmon(ran.path()).sum(), 2, 'sum')


@test
def an_old_file_is_replaced_and_modes_are_the_umasks():
    directory = new_directory('cwd')
    open(os.path.join(directory, 'gmon.out'), 'w').write('old')
    before = os.umask(0o027)
    try:
        ran = Run('hit=first:1', directory=directory)
    finally:
        os.umask(before)
    expect_equal(os.stat(ran.path()).st_mode & 0o777, 0o640, 'mode')


# --- gmon.out and gprof; 5.7 ---

@test
def counts_beyond_sixteen_bits_are_split():
    ran = Run('hit=first:200000', 'hit=second:65535', 'hit=third:65536')
    expect_equal(len(Gmon(ran.path()).histograms), 4, 'records')
    expect_equal(seconds(ran.binary, ran.path()),
                 {'first': 200000.0, 'second': 65535.0, 'third': 65536.0},
                 'gprof')


@test
def samples_of_our_own_code_are_left_out():
    ran = Run('hit=monitor_hits:5', 'hit=first:1', flags='-all')
    expect_equal(sum(Gmon(ran.path(name)).sum() for name in ran.files()), 1,
                 'sum')


@test
def when_shim_is_off_nothing_is_different():
    ran = Run('control=1', 'start=0:0', SHIM_DISABLE='1')
    expect_equal(ran.files(), [], 'files')


PG = '''
static volatile unsigned long work;
__attribute__((noinline)) void leaf(void) { work++; }
__attribute__((noinline)) void middle(int n)
{ for (int i = 0; i < n; i++) leaf(); }
__attribute__((noinline)) long recursive(long n)
{ work++; return n ? 1 + recursive(n - 1) : 0; }
__attribute__((noinline)) double many(int a, int b, int c, int d, int e, int f,
    double g, double h) { work++; return a + b + c + d + e + f + g + h; }
extern int moncontrol(int) __attribute__((weak));
int main(int argc, char **argv)
{
    (void)argv;
    middle(5);
    middle(7);
    recursive(10);
    if (argc > 1) moncontrol(0);
    middle(100);
    if (argc > 1) moncontrol(1);
    for (int i = 0; i < 100000; i++) work += i & 1 ? 0 : (middle(1), 1);
    return many(1, 2, 3, 4, 5, 6, 7, 8) == 36 ? 7 : 1;
}
'''


def compile_pg(*flags):
    directory = new_directory('pg')
    source = os.path.join(directory, 'pg.c')
    open(source, 'w').write(PG)
    binary = os.path.join(directory, 'pg')
    subprocess.run(['gcc', '-g', '-pg', source, '-o', binary, *flags],
                   check=True)
    return binary


PG_CALLS = {'main': 1, 'leaf': 112 + 50000, 'middle': 50003, 'recursive': 1, 'many': 1}


# __gmon_start__ is called when a library is initialized before ours.
WITH_LIBRARY = ['-O0', '-Wl,--no-as-needed', '-lm']


@test
def a_program_compiled_for_gprof_has_one_file_and_exact_calls():
    for flags in (['-O0'], ['-O2', '-fno-inline', '-fno-ipa-cp'],
                  ['-O1', *NO_PIE], ['-O0', '-mfentry'], WITH_LIBRARY,
                  [*WITH_LIBRARY, *NO_PIE]):
        binary = compile_pg(*flags)
        ran = Run(binary=binary, flags=None, profile='none')
        expect_equal(ran.files(), ['gmon.out'], 'files')
        got = {name: calls for name, (_, calls) in flat(
            binary, ran.path()).items() if name in PG_CALLS}
        expect_equal(got, PG_CALLS, str(flags))
        alone = run([binary], directory=new_directory('cwd'))
        expect_equal(alone.status, 7, 'status')


def profrun():
    path = os.path.join(os.path.dirname(os.path.dirname(shimtest.library)),
                        'profrun')
    expect(os.path.exists(path), 'no profrun beside the library')
    return path


@test
def finish_writes_files_of_killed_programs():
    directory, output = new_directory('cwd'), new_directory('recording')
    done = subprocess.run(
        [profrun(), '-p', 'pchist:hz=1', '-o', output + '/r', program(),
         'hit=first:3', 'kill'], cwd=directory, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=shimtest.environment())
    expect_equal(done.returncode, -9, 'status')
    expect(b'gmon.out: 3 samples' in done.stderr, done.stderr)
    expect_equal(Gmon(os.path.join(directory, 'gmon.out')).sum(), 3, 'sum')


@test
def finish_writes_into_the_directory_of_its_option():
    for variables, wanted in (({}, '.'), ({'PROFDIR': 'd'}, 'd'),
                              ({'PROFDIR': 'd', 'PROFFLAGS': '-dirname "e f"'},
                               'e f')):
        directory, output = new_directory('cwd'), new_directory('recording')
        for name in 'd', 'e f':
            os.mkdir(os.path.join(directory, name))
        done = subprocess.run(
            [profrun(), '-p', 'pchist:hz=1', '-o', output + '/r', program(),
             'hit=first:3', 'kill'], cwd=directory, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=shimtest.environment(**variables))
        expect_equal(done.returncode, -9, 'status')
        file, = [os.path.join(top, name) for top, _, names in
                 os.walk(directory) for name in names]
        expect_equal(os.path.relpath(os.path.dirname(file), directory), wanted,
                     'where')
        expect_equal(Gmon(file).sum(), 3, 'sum')


# The offset of the file name in a killed program's recording, after the numbers of
# struct shim_histogram.
FILE_AT = 32


def name_file(ran, name):
    """Changes the file name in the recording to @name."""
    for path in glob.glob(os.path.join(ran.recording, '*', '*.pchist')):
        data = bytearray(open(path, 'rb').read())
        chunks, = struct.unpack_from('<I', data, 44)
        offset, = struct.unpack_from('<Q', data, 48 + 24 * (chunks - 1))
        at = offset + FILE_AT
        expect(data[at:at + 2048].split(b'\0')[0].endswith(b'gmon.out'),
               'the name is elsewhere')
        data[at:at + 2048] = name.ljust(2048, b'\0')
        open(path, 'wb').write(data)


@test
def a_recording_does_not_say_where_files_are_written():
    victims = new_directory('victims')
    victim = os.path.join(victims, 'victim')
    for name in victim, os.path.join(victims, 'gmon.out'):
        open(name, 'w').write('mine')
    cases = [
        (victim.encode(), 'gmon.out.victim'),
        (victim.encode() + b'/..', 'gmon.out...'),
        (os.path.join(victims, 'gmon.out').encode(), 'gmon.out'),
        (b'.bash_profile', 'gmon.out..bash_profile'),
        (b'-rf', 'gmon.out.-rf'),
        (b'gmon.out\x1b[31m\n\xc2\x9b\xe2\x80\xae', 'gmon.out?[31m??????'),
        (b'gmon.out' + b'x' * 1000, 'gmon.out' + 'x' * 192),
        (b'123.program', '123.program'),
    ]
    for name, wanted in cases:
        ran = Run('hit=first:3', 'kill', status=-9)
        name_file(ran, name)
        expect_equal(list(finished(ran)), [wanted], name)
        expect_equal(sorted(os.listdir(victims)), ['gmon.out', 'victim'], name)
        expect_equal(open(victim).read(), 'mine', name)


HOSTILE = r"""
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Overwrites the file name in the recording, which is the program's memory. */
int main(int argc, char **argv)
{
    char line[4200], *begin, *end, *at;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), maps)) {
        if (!strstr(line, ".pchist") || argc < 2)
            continue;
        sscanf(line, "%p-%p", (void **)&begin, (void **)&end);
        for (at = begin; at + 4096 < end; at++)
            if (!strcmp(at, "gmon.out")) {
                while (at[-1])
                    at--;
                printf("renamed %s\n", strcpy(at, argv[1]));
            }
    }
    fflush(stdout);
    raise(SIGKILL);
}
"""


@test
def a_recording_cannot_choose_where_finish_writes():
    directory, output = new_directory('cwd'), new_directory('recording')
    source, binary, victim = (os.path.join(directory, name)
                              for name in ('h.c', 'h', 'victim'))
    open(source, 'w').write(HOSTILE)
    subprocess.run(['gcc', source, '-o', binary], check=True)
    open(victim, 'w').write('mine')
    done = subprocess.run(
        [profrun(), '-p', 'pchist:hz=1', '-o', output + '/r', binary, victim],
        cwd=new_directory('elsewhere'), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=shimtest.environment())
    expect(b'renamed' in done.stdout, 'no name was found: %s' % done.stderr)
    expect_equal(open(victim).read(), 'mine', 'the victim')
    expect(b'wrote gmon.out.victim' in done.stderr, done.stderr)


@test
def finish_writes_only_below_the_requested_directory():
    ran = Run('hit=first:3', 'kill', status=-9)
    cwd, there = new_directory('cwd'), new_directory('there')
    done = subprocess.run([shimtest.report, 'finish', ran.recording, '-o',
                           there], cwd=cwd, stderr=subprocess.PIPE)
    expect_equal((done.returncode, os.listdir(cwd), os.listdir(there)),
                 (0, [], ['gmon.out']), 'where')
    done = subprocess.run([shimtest.report, 'finish', ran.recording, '-o',
                           there + '/no'], cwd=cwd, stderr=subprocess.PIPE)
    expect_equal(done.returncode, 1, 'no such directory')
    expect(b'there/no' in done.stderr.replace(there.encode(), b'there'),
           done.stderr)


@test
def finish_writes_over_nothing_and_follows_no_link():
    ran = Run('hit=first:3', 'kill', status=-9)
    directory = new_directory('finished')
    victim = os.path.join(directory, 'victim')
    for name in 'gmon.out', 'victim':
        open(os.path.join(directory, name), 'w').write('mine')
    os.symlink(victim, os.path.join(directory, 'gmon.out.1'))
    os.symlink('nowhere', os.path.join(directory, 'gmon.out.2'))
    done = subprocess.run([shimtest.report, 'finish', ran.recording],
                          cwd=directory, stderr=subprocess.PIPE)
    expect_equal(done.returncode, 0, done.stderr)
    expect(b'gmon.out.3: 3 samples (there is a gmon.out' in done.stderr,
           done.stderr)
    expect_equal(sorted(os.listdir(directory)), ['gmon.out', 'gmon.out.1',
                 'gmon.out.2', 'gmon.out.3', 'victim'], 'files')
    expect_equal([open(os.path.join(directory, n)).read()
                  for n in ('gmon.out', 'victim')], ['mine'] * 2, 'others')
    expect_equal(Gmon(os.path.join(directory, 'gmon.out.3')).sum(), 3, 'sum')


@test
def a_count_that_cannot_be_does_not_fill_the_disk():
    ran = Run('hit=first:3', 'kill', status=-9)
    process, = glob.glob(os.path.join(ran.recording, '*.0'))
    path, = glob.glob(os.path.join(process, '*.pchist'))
    data = bytearray(open(path, 'rb').read())
    chunks, = struct.unpack_from('<I', data, 44)
    offset, _, address = struct.unpack_from('<3Q', data, 48 + 24 * (chunks - 1))
    at = offset + FILE_AT + 2048
    low, _, _, _, _, _, bins, counters = struct.unpack_from('<8Q', data, at)
    at = offset + counters - address
    data[at:at + 4 * bins] = b'\xff' * (4 * bins)
    open(path, 'wb').write(data)
    header = data[:48] + struct.pack('<3Q', 4096, 64 * 1024, 1 << 20)
    header = bytearray(header.ljust(4096, b'\0'))
    struct.pack_into('<I', header, 44, 1)
    header[16:32] = b'arcs'.ljust(16, b'\0')
    with open(os.path.join(process, '77.arcs'), 'wb') as file:
        file.write(header)
        file.write(struct.pack('<4Q', low + 8, low + 8, 2**64 - 1, 0) * 2048)
    directory = new_directory('finished')
    done = subprocess.run([shimtest.report, 'finish', ran.recording],
                          cwd=directory, stderr=subprocess.PIPE, timeout=60)
    expect_equal(done.returncode, 0, done.stderr)
    expect(b'cannot be' in done.stderr, done.stderr)
    size = os.path.getsize(os.path.join(directory, 'gmon.out'))
    expect(size < 300 << 20, 'a file of %d bytes' % size)


# Row T-88.
@test
def a_static_program_is_said_to_be_one():
    directory = new_directory('linked')
    source, binary = (os.path.join(directory, name) for name in ('s.c', 's'))
    open(source, 'w').write('int main(void) { return 7; }\n')
    subprocess.run(['gcc', '-static', source, '-o', binary], check=True)
    done = subprocess.run(
        [profrun(), '-p', 'pchist', '-o', directory + '/r', binary],
        cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=shimtest.environment())
    expect_equal(done.returncode, 7, 'status')
    expect(b'statically linked' in done.stderr, done.stderr)


@test
def a_damaged_histogram_is_refused_or_written():
    chance = random.Random(5)
    ran = Run('hit=first:3', 'kill', status=-9)
    path, = glob.glob(os.path.join(ran.recording, '*', '*.pchist'))
    whole = open(path, 'rb').read()
    directory = new_directory('finished')
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 8)):
            # Mostly changes the headers of the file and of the histogram.
            at = chance.choice([chance.randrange(200), 4096 + chance.randrange(
                4000), chance.randrange(len(data))])
            data[at:at + 8] = chance.randbytes(chance.choice([1, 4, 8]))
        cut = chance.randrange(len(data)) if chance.random() < 0.2 else None
        open(path, 'wb').write(data[:cut])
        done = subprocess.run([shimtest.report, 'finish', ran.recording],
                              cwd=directory, stderr=subprocess.PIPE,
                              timeout=120)
        expect(done.returncode in (0, 1), done)
        expect(all('/' not in name for name in os.listdir(directory)), 'names')


@test
def calls_survive_the_program_as_well():
    directory = new_directory('pg')
    source, binary = (os.path.join(directory, name) for name in ('k.c', 'k'))
    open(source, 'w').write('#include <signal.h>\n' + PG.replace(
        'return many', 'raise(SIGKILL); return many'))
    subprocess.run(['gcc', '-g', '-pg', '-O0', source, '-o', binary],
                   check=True)
    ran = Run(binary=binary, flags=None, profile='none', status=-9)
    got = {name: calls for name, (_, calls) in flat(
        binary, finished(ran)['gmon.out']).items() if name in PG_CALLS}
    expect_equal(dict(got, many=1), PG_CALLS, 'calls')


LAST = """
#include <stdlib.h>
__attribute__((noinline, noreturn)) void leave(int status) { exit(status); }
__attribute__((noinline, noreturn)) void caller(int status) { leave(status); }
__attribute__((noinline)) void behind(void) { __asm__ volatile(""); }
int main(void) { behind(); caller(7); }
"""


# Pitfall 8: the call is the last instruction, so its return address is in the next
# function.
@test
def a_function_that_does_not_return_has_its_caller():
    directory = new_directory('last')
    source, binary = (os.path.join(directory, name)
                      for name in ('last.c', 'last'))
    open(source, 'w').write(LAST)
    subprocess.run(['gcc', '-O2', '-fno-optimize-sibling-calls',
                    '-fno-toplevel-reorder', '-falign-functions=1', '-pg',
                    source, '-o', binary], check=True)
    ran = Run(binary=binary, flags=None, profile='none')
    text = gprof('-b', '-q', '-k', 'main/nothing', binary, ran.path())
    block = [part for part in text.split('-' * 20) if re.search(
        r'^\[\d+\].* leave \[', part, re.M)]
    expect(re.search(r'1/1 +caller \[', block[0]), text)


@test
def calls_are_frozen_like_samples():
    binary = compile_pg('-O0')
    ran = Run('x', binary=binary, flags=None, profile='none')
    expect_equal(flat(binary, ran.path())['middle'][1], 50002, 'calls')


@test
def libc_writes_the_file_when_shim_is_off():
    binary = compile_pg('-O0')
    ran = Run(binary=binary, flags=None, SHIM_DISABLE='1')
    expect_equal(ran.files(), ['gmon.out'], 'files')
    expect_equal(flat(binary, ran.path())['middle'][1], 50003, 'calls')


@test
def libcs_functions_succeed_when_shim_is_off():
    ran = Run('start=first:third', 'control=0', 'control=1', 'control=0', SHIM_DISABLE='1')
    expect_equal(ran.results, [('start', 0, 0)] + [('control', 0, 0)] * 3, 'results')


@test
def a_program_may_have_a_monitor_of_its_own():
    directory = new_directory('other')
    library, main = (os.path.join(directory, name)
                     for name in ('lib.c', 'main.c'))
    open(library, 'w').write(
        'double monitor(double a, int b) { return a + b; }\n'
        'double call(void) { return monitor(1.5, 2); }\n')
    open(main, 'w').write(
        'double call(void); int main(void) { return call() == 3.5 ? 7 : 1; }\n')
    subprocess.run(['gcc', '-shared', '-fPIC', library, '-o',
                    os.path.join(directory, 'libother.so')], check=True)
    binary = os.path.join(directory, 'main')
    subprocess.run(['gcc', main, '-o', binary, '-L', directory, '-lother',
                    '-Wl,-rpath,' + directory], check=True)
    Run(binary=binary)


BOTH_FORMS = """
#include <shim/compat/mon.h>
static unsigned int counters[8];
int main(void)
{
    struct monitor_args ranges[1] = { { (caddr_t)main, (caddr_t)main + 32,
                                        counters, sizeof(counters) } };
    char buffer[64];

    monitor((caddr_t)main, (caddr_t)main + 32, buffer, sizeof(buffer), 0);
    monitor(-1, 0, ranges, 1, 0);
    monitor(0, 0, 0, 0, 0);
    return monstartup(0, 0) + moncontrol(0) + monitor_hits(buffer, 1);
}
"""


@test
def the_header_has_both_forms_for_c_and_cxx():
    directory = new_directory('header')
    for compiler, name in ('gcc', 'a.c'), ('g++', 'a.cc'), ('clang', 'a.c'):
        if not shutil.which(compiler):
            continue
        source = os.path.join(directory, name)
        open(source, 'w').write(BOTH_FORMS)
        done = subprocess.run([compiler, '-Wall', '-Wextra', '-Werror', '-c',
                               source, '-I', INCLUDE, '-o', source + '.o'],
                              stderr=subprocess.PIPE)
        expect_equal(done.returncode, 0, done.stderr.decode())


if __name__ == '__main__':
    sys.exit(shimtest.main())
