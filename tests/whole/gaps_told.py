#!/usr/bin/env python3
"""gaps_told.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Gaps and counters at given moments of a trace: which of them the outputs show, where,
and for how long.  (gaps.py tests what profrun records.)
"""
import glob
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import time

import gaps
import shimtest
import trace
from gaps import (FIRST_MONO_NS, HEAD, ON, PREEMPTED, SWITCH, WAITS, lines_of, ns_of,
                  profrun)
from shimtest import (Skipped, compile, expect, expect_equal, new_directory,
                      record, run, test)

# The tests of the imported modules do not run here.
shimtest.tests.clear()

NEAR = 0.02                             # us: printed values are rounded
windows = {}


class Window:
    """A call of some ms that calls nothing meanwhile.  Moments are us from its begin."""

    def __init__(self, call, count, *words):
        self.output = record([compile('traced_min.c', flags=trace.MARKS),
                              *words], 'trace').output
        folder, = glob.glob(self.output + '/*.0')
        self.pid = int(os.path.basename(folder).split('.')[0])
        meta = open(folder + '/meta', 'rb').read()
        self.start_ns, = struct.unpack_from('<Q', meta, FIRST_MONO_NS)
        self.lines = lines_of(self.output)
        at = [i for i, line in enumerate(self.lines) if line[4] == call][count]
        self.begin, self.depth = self.lines[at][0], self.lines[at][3] + 1
        # The window ends at the next call, or at the end of this one.
        self.size = self.lines[at + 1][0] - self.begin
        if call.endswith(';'):
            self.size = ns_of(self.lines[at][1]) / 1e3

    def mono(self, us):
        return self.start_ns + round((self.begin + us) * 1e3)


def late():
    """The third of five calls of 12 ms that call another function at their end."""
    if 'late' not in windows:
        windows['late'] = Window('late {', 2, 'mixed')
    return windows['late']


def deep():
    """The innermost of several calls, of 20 ms."""
    if 'deep' not in windows:
        windows['deep'] = Window('deeper;', 0, 'deep', '3')
    return windows['deep']


def write(window, switches=(), counters='', head=None):
    """A copy of the window's recording with these switches: (us, kind, tid or None)."""
    copy = os.path.join(new_directory('told'), 'recording')
    shutil.copytree(window.output, copy)
    with open(copy + '/gaps', 'wb') as file:
        file.write(head or HEAD.pack(b'SHIMGAPS', 1, HEAD.size, 0))
        for us, kind, *tid in switches:
            file.write(SWITCH.pack(window.mono(us), window.pid,
                                   tid[0] if tid else window.pid, 0, kind))
    with open(copy + '/counters', 'w') as file:
        file.write(counters)
    return copy


def said_of(output, *words):
    done = run([shimtest.report, 'replay', '--color', 'never', *words, output])
    expect_equal(done.status, 0, done.stderr)
    return done.stderr


def told(window, switches=(), counters='', words=(), head=None, said=''):
    """[us, us it took or None, depth, text] of the lines that are not calls of the
    program."""
    output = write(window, switches, counters, head)
    message = said_of(output, *words)
    expect(said in message if said else not message, message)
    lines = lines_of(output, *words)
    if not words:
        rest = [line for line in lines if not line[4].startswith('-- ') or
                line[4].startswith('-- thread')]
        expect_equal([line[4].replace(' {', ';') for line in rest
                      if not line[4].startswith('}')],
                     [line[4].replace(' {', ';') for line in window.lines
                      if not line[4].startswith('}')], 'calls')
        starts = [line[0] for line in lines]
        expect_equal(starts, sorted(starts), 'times')
    return [(line[0] - window.begin, ns_of(line[1]) / 1e3 if line[1] else None,
             line[3], line[4][3:].replace('no processor: ', ''))
            for line in lines if line[4].startswith(('-- no p', '-- counter'))]


def check(got, wanted, depth, what=''):
    """@wanted: us, us it took or None, text."""
    expect_equal([g[3] for g in got], [w[-1] for w in wanted], what)
    for (begin, took, at, _), (wanted_begin, wanted_took, _) in zip(got, wanted):
        expect(abs(begin - wanted_begin) < NEAR, '%s: at %f, not %f' % (
            what, begin, wanted_begin))
        # Long durations are printed with three digits.
        expect(took == wanted_took or
               abs(took - wanted_took) <= wanted_took / 100 + NEAR,
               '%s: %s us, not %s' % (what, took, wanted_took))
        expect_equal(at, depth, what + ': depth')


# --- gaps ---

@test
def a_gap_is_shown_within_its_call():
    for window in late(), deep():
        check(told(window, [(1000, WAITS), (3000, ON), (4000, PREEMPTED),
                            (4500, ON), (5000, WAITS), (5250, ON)]),
              [(1000, 2000, 'waits'), (4000, 500, 'preempted'),
               (5000, 250, 'waits')], window.depth)


@test
def gaps_are_shown_in_order_of_time():
    check(told(late(), [(5250, ON), (4000, PREEMPTED), (1000, WAITS),
                        (5000, WAITS), (3000, ON), (4500, ON)]),
          [(1000, 2000, 'waits'), (4000, 500, 'preempted'),
           (5000, 250, 'waits')], late().depth)


@test
def a_gap_ends_at_the_next_known_switch():
    nobody = late().pid + 1
    for what, switches, wanted in (
            ('two begins', [(1000, WAITS), (2000, PREEMPTED), (4000, ON)],
             [(2000, 2000, 'preempted')]),
            ('two ends', [(1000, WAITS), (2000, ON), (4000, ON)],
             [(1000, 1000, 'waits')]),
            ('an end first', [(1000, ON), (2000, WAITS), (4000, ON)],
             [(2000, 2000, 'waits')]),
            ('no end', [(1000, WAITS), (2000, ON), (3000, WAITS)],
             [(1000, 1000, 'waits')]),
            ('a kind that is none', [(1000, 9), (2000, ON), (3000, 0),
                                     (4000, ON)], []),
            ('nothing', [(1000, WAITS), (1000, ON)], []),
            ('the end of another', [(1000, WAITS), (2000, ON, nobody)], []),
            ('one of another', [(1000, WAITS, nobody), (2000, ON, nobody)], []),
            ('between others', [(1000, WAITS, nobody), (1000, WAITS),
                                (1500, ON, late().pid - 1), (2000, ON),
                                (2500, ON, nobody),
                                (2000, WAITS, late().pid - 1)],
             [(1000, 1000, 'waits')])):
        check(told(late(), switches), wanted, late().depth, what)


@test
def a_gap_ends_with_what_the_thread_does_next():
    # The times come from the kernel's clock, which may differ slightly.
    for window in late(), deep():
        check(told(window, [(1000, WAITS), (window.size + 200, ON)]),
              [(1000, window.size - 1000, 'waits')], window.depth)


@test
def a_range_shows_the_rest_of_a_gap():
    window = late()
    switches = [(1000, WAITS), (1500, ON), (2000, WAITS), (6000, ON),
                (7000, PREEMPTED), (8000, ON)]
    counters = ''.join('%d %d %d files\n' % (window.mono(us), window.pid, us)
                       for us in (500, 2500, 3500, 5000, 6500))
    words = ('--from', '%.3fus' % (window.begin + 4000))
    check(told(window, switches, counters, words),
          [(4000, 2000, 'waits'), (5000, None, 'counter files = 5000'),
           (6500, None, 'counter files = 6500'), (7000, 1000, 'preempted')],
          window.depth)


@test
def heads_may_be_longer_but_not_of_any_size():
    switches = [(1000, WAITS), (3000, ON)]
    wanted = [(1000, 2000, 'waits')]
    check(told(late(), switches, head=HEAD.pack(b'SHIMGAPS', 1, 40, 0) +
               b'\xff' * 16), wanted, late().depth, '40 bytes')
    for size in (8, 23, 4104, 1 << 31):
        check(told(late(), switches, head=HEAD.pack(b'SHIMGAPS', 1, size, 0) +
                   bytes(max(0, min(size, 5000) - 24)),
                   said='at offset 0: not a shim_gaps'), [], 0, size)


@test
def too_many_switches_are_reported():
    output = write(late())
    os.truncate(output + '/gaps', HEAD.size + SWITCH.size * 2000001)
    said = said_of(output)
    expect('/gaps: at offset ' in said and 'there are too many' in said, said)
    os.truncate(output + '/gaps', HEAD.size + SWITCH.size * 2000000)
    expect_equal(said_of(output), '', 'as many as there may be')


@test
def merged_recordings_keep_their_gaps_apart():
    both = late(), deep()
    merged = os.path.join(new_directory('merged'), 'merged')
    done = profrun('merge', '-o', merged, *[
        write(window, [(1000, WAITS), (2000, ON)],
              line(3000, window.pid, window=window)) for window in both])
    expect_equal(done.status, 0, done.stderr)
    expect_equal(said_of(merged), '', 'messages')
    start_ns = min(window.start_ns for window in both)
    lines = lines_of(merged)
    for window in both:
        after = window.begin + (window.start_ns - start_ns) / 1e3
        check([(found[0] - after, ns_of(found[1]) / 1e3 if found[1] else None,
                found[3], found[4][3:].replace('no processor: ', ''))
               for found in lines if found[2] == window.pid and
               found[4].startswith(('-- no p', '-- counter'))],
              [(1000, 1000, 'waits'),
               (3000, None, 'counter files = %d' % window.pid)], window.depth)


# --- counters ---

def line(us, value=1, name='files', window=None, pid=None):
    window = window or late()
    return '%d %d %s %s\n' % (window.mono(us), pid or window.pid, value, name)


@test
def a_counter_has_the_time_of_its_reading():
    for window in late(), deep():
        check(told(window, [(1000, WAITS), (3000, ON)],
                   line(500, -2.5, window=window) +
                   line(2000, 7, 'a b', window) + line(5000, window=window) +
                   line(5000, 9, 'all', window) +
                   line(6000, pid=window.pid + 1)),
              [(500, None, 'counter files = -2.5'), (1000, 2000, 'waits'),
               (2000, None, 'counter a b = 7'), (5000, None, 'counter all = 9'),
               (5000, None, 'counter files = 1')], window.depth)


@test
def names_may_come_often_and_63_others_with_them():
    one = [(1000 + us, None, 'counter files = %d' % us) for us in range(100)]
    check(told(late(), (), ''.join(line(1000 + us, us) for us in range(100))),
          one, late().depth, 'one')
    names = ['n%02d' % i for i in range(65)]
    text = ''.join(line(1000 + i, i, name) for i, name in enumerate(names))
    got = told(late(), (), text + line(3000, 1, 'n00'),
               said='line 65 is not "MONO-NS PID VALUE NAME"')
    expect_equal([what.split()[1] for _, _, _, what in got],
                 names[:64] + ['n00'], 'names')


@test
def invalid_lines_are_reported_and_not_shown():
    good = line(1000)
    wanted = [(1000, None, 'counter files = 1')]
    for bad in ('x\n', '\n', line(2000, name='')[:-2] + '\n',
                line(2000, 'inf'), line(2000, '-nan'),
                # The rest of the long line would be a line of its own.
                'y' * 255 + line(2000), 'y' * 254 + '\n',
                'y' * 600 + line(2000)):
        check(told(late(), (), good + bad + 'x\n' + 'y\n',
                   said='counters: line 2 is not'), wanted, late().depth, bad)
    for unended in line(2000)[:-1], line(2000, name='f')[:-1], line(2000)[:8]:
        check(told(late(), (), good + unended), wanted, late().depth,
              'one that is not ended')
    check(told(late(), (), good + 'y' * 600, said='counters: line 2 is not'),
          wanted, late().depth, 'a long one that is not ended')
    check(told(late(), (), 'a\0b\n' + good, said='counters: line 1 is not'),
          wanted, late().depth, 'one with a NUL')
    check(told(late(), (), 'y' * 600 + '\n' + good + 'x\n',
               said='counters: line 1 is not'), wanted, late().depth, 'numbers')
    text = good + 'y' * 250 + '\n' + good
    expect('counters: line 2 is not' in said_of(write(late(), (), text)), 'number')


@test
def too_many_counters_are_reported():
    with_others = line(1000) + line(2000, pid=1) * 999999
    output = write(late(), (), with_others)
    said = said_of(output)
    expect('counters behind line 1000000 are not shown' in said, said)
    with open(output + '/counters', 'a') as file:
        file.write('x\n')
    expect_equal(said_of(output), said, 'what is behind')
    with open(output + '/counters', 'w') as file:
        file.write(with_others[:with_others.rindex('\n', 0, -1) + 1])
    expect_equal(said_of(output), '', 'one less')


# --- profrun's handling of the kernel's answers ---

def refusing(*options, from_call=0):
    library = compile('no_switches.c', flags=['-shared', '-fPIC'],
                      name='no-switches.so', libraries=['-ldl'],
                      instrument=False)
    output = os.path.join(new_directory('refused'), 'recording')
    path = os.path.normpath(os.path.join(os.path.dirname(shimtest.report),
                                         '..', '..', 'profrun'))
    done = run([path, *options, '-q', '--no-report', '-p', 'trace', '-o', output,
                '--', compile('sleeps.c', 'gcc', '-O1'), 'fork'],
               LD_PRELOAD=library, NO_SWITCHES=str(from_call))
    expect_equal(done.status, 0, done.stderr)
    return output, done.stderr


@test
def a_refusal_by_the_kernel_is_reported_and_leaves_no_file():
    for from_call in (0, 1):
        if from_call >= os.sysconf('SC_NPROCESSORS_CONF'):
            continue
        output, said = refusing('--gaps', from_call=from_call)
        expect('--gaps: the kernel does not tell' in said and
               'Permission denied' in said, said)
        expect(not os.path.exists(output + '/gaps'), 'a file of gaps')
        expect(lines_of(output), 'the trace')
    output, said = refusing('--counters=5')
    expect_equal(said, '', 'counters without events')
    names = set(gaps.counters_of(output))
    expect('page faults' in names and not names & gaps.EVENTS, names)


@test
def twenty_thousand_switches_are_all_there():
    output = os.path.join(new_directory('often'), 'recording')
    done = profrun('--gaps', '-q', '--no-report', '-p', 'trace', '-o', output,
                   '--', compile('ping_pong.c', 'gcc', '-O1'), '20000')
    if 'the kernel does not tell' in done.stderr:
        raise Skipped(done.stderr.strip())
    # While profrun waits for a processor, the kernel has to drop some.
    said = re.fullmatch('(?:profrun: --gaps: the kernel has dropped (\\d+) switches\n)?',
                        done.stderr)
    expect(done.status == 0 and said, (done.status, done.stderr))
    dropped = int(said.group(1) or 0)
    data = open(output + '/gaps', 'rb').read()
    noted = [SWITCH.unpack_from(data, at)
             for at in range(HEAD.size, len(data), SWITCH.size)]
    left = sum(kind != ON for _, _, _, _, kind in noted)
    # The counter starts with the program; some switches come before and after.
    used = int(done.stdout)
    expect(used >= 20000 and used - 5 - dropped <= left <= used + 50,
           '%d switches, %d are there, %d were dropped' % (used, left, dropped))
    expect_equal(HEAD.unpack_from(data), (b'SHIMGAPS', 1, HEAD.size, dropped),
                 'head')


@test
def only_the_owner_may_read_gaps():
    path = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    output = os.path.join(new_directory('modes'), 'recording')
    done = run(['sh', '-c', 'umask "$1"; shift; exec "$@"', 'sh', '0577',
                os.path.normpath(path), '--gaps', '--counters=5', '-q',
                '--no-report', '-p', 'trace', '-o', output, '--',
                compile('sleeps.c', 'gcc', '-O1'), 'fork'])
    expect_equal(done.status, 0, done.stderr)
    modes = {name: stat.S_IMODE(os.stat(path).st_mode)
             for name in ('gaps', 'counters')
             for path in [output + '/' + name] if os.path.exists(path)}
    expect(modes and set(modes.values()) == {0o600}, modes)


def switches_of(pid):
    """How often the threads of a process have lost the processor; None after its end."""
    found = 0
    try:
        for task in os.listdir('/proc/%d/task' % pid):
            with open('/proc/%d/task/%s/status' % (pid, task)) as file:
                found += sum(map(int, re.findall(r'_ctxt_switches:\s+(\d+)', file.read())))
    except OSError:
        return None
    return found


def wait_for_switches(output, many):
    """Waits until the recorded program has had @many more, or has ended: a zombie's do not
    change."""
    end = time.monotonic() + 60
    pid, = {int(name.split('.')[0]) for name in os.listdir(output) if '.' in name}
    begun = switches_of(pid)
    while time.monotonic() < end:
        before = switches_of(pid)
        time.sleep(0.5)
        now = switches_of(pid)
        if None in (begun, now) or now == before or now - begun > many:
            return


def stopped_for(switches, times):
    """Runs ping_pong and stops profrun --gaps until there were so many switches more, or
    the program has ended.  The recording, what profrun has said and the switches of the
    program."""
    output = os.path.join(new_directory('dropped'), 'recording')
    path = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    profrun_ = subprocess.Popen(
        [os.path.normpath(path), '--gaps', '-q', '--no-report', '-p', 'trace',
         '-o', output, '--', compile('ping_pong.c', 'gcc', '-O1'), str(times)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=shimtest.environment())
    try:
        # Records that exist have a complete head at any time.
        end = time.monotonic() + 60
        while time.monotonic() < end and profrun_.poll() is None and \
                not os.path.exists(output + '/gaps'):
            time.sleep(0.01)
        time.sleep(0.05)
        if profrun_.poll() is None:
            expect_equal(open(output + '/gaps', 'rb').read(8), b'SHIMGAPS',
                         'the head')
            profrun_.send_signal(signal.SIGSTOP)
            wait_for_switches(output, switches)
            profrun_.send_signal(signal.SIGCONT)
        used, said = [text.decode() for text in profrun_.communicate(timeout=60)]
    finally:
        profrun_.kill()
        profrun_.wait()
    if 'the kernel does not tell' in said:
        raise Skipped(said.strip())
    return output, said, int(used)


def dropped_by(output, said):
    lost = re.search(r'--gaps: the kernel has dropped (\d+) switches', said)
    expect(lost, said)
    head = open(output + '/gaps', 'rb').read(HEAD.size)
    expect_equal(HEAD.unpack(head)[3], int(lost.group(1)), 'in the head')
    return int(lost.group(1))


@test
def switches_that_the_kernel_drops_are_counted():
    output, said, _ = stopped_for(100000, 400000)
    expect('has dropped %d switches: not all' % dropped_by(output, said) in run(
        [shimtest.report, 'replay', '--to', '1ms', output]).stderr, 'the report')


@test
def switches_that_the_kernel_drops_last_are_counted():
    output, said, used = stopped_for(10**9, 60000)
    if int(os.uname().release.split('.')[0]) < 6:
        raise Skipped('the kernel counts none that are dropped last')
    data = open(output + '/gaps', 'rb').read()
    there = (len(data) - HEAD.size) // SWITCH.size
    # Each switch off has its switch on.
    expect(abs(there + dropped_by(output, said) - 2 * used) < 100,
           '%d of %d are there: %s' % (there, 2 * used, said))


if __name__ == '__main__':
    shimtest.main()
