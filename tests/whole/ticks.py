#!/usr/bin/env python3
"""ticks.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The tick that profrun writes for the hooks of calltree, and that the kernel's takes its
place whatever becomes of the writer.
"""
import glob
import os
import signal
import struct
import subprocess
import time

import shimtest
from shimtest import (compile, environment, expect, expect_equal, json_of,
                      linker_name, need, new_directory, profrun, run, test)

# A struct shim_tick.
TICK = struct.Struct('<8sII48sQQI44x')


def command(output, *options, words=()):
    return [profrun(), 'run', '-q', '--no-report', '-o', output, *options, '--',
            compile('ticked.c', 'gcc', '-O1'), *words]


def self_ms(output):
    return {linker_name(function['name']): function['self_ns'] / 1e6
            for function in json_of(output)['functions']}


def ticks_of(output):
    return [process['tick_ns'] for process in json_of(output)['processes']]


def kernels_tick():
    output = os.path.join(new_directory('ticks'), 'recording')
    done = run([profrun(), 'run', '-q', '--no-report', '--tick', '0', '-o',
                output, compile('trivial.c', 'gcc', '-O1')])
    expect_equal(done.status, 0, done.stderr)
    return ticks_of(output)[0]


def is_near(tick, other):
    """Both are measured."""
    return abs(tick - other) < 0.01 * other


def has_tick():
    """Without the kernel's there is none."""
    if kernels_tick() is None:
        raise shimtest.Skipped('the kernel has no coarse clock here')


def writer_of(output):
    """The process that has the file mapped for writing."""
    for maps in glob.glob('/proc/[0-9]*/maps'):
        try:
            text = open(maps).read()
        except OSError:
            continue
        for line in text.splitlines():
            if line.endswith(output + '/tick') and 'rw-s' in line:
                return int(maps.split('/')[2])
    return None


def halves(disturb, *options, words=(), is_removed=True):
    """Calls @disturb(process, output) between the halves, which must both have self
    time."""
    has_tick()
    output = os.path.join(new_directory('ticks'), 'recording')
    process = subprocess.Popen(command(output, *options, words=words),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=environment())
    try:
        expect_equal(process.stdout.readline(), b'half\n', 'the first half')
        disturb(process, output)
        process.stdin.write(b'\n')
        process.stdin.close()
        expect_equal(process.stdout.readline(), b'done\n', 'the second half')
        process.send_signal(signal.SIGCONT)
        process.stdout.read()
        status = process.wait(60)
    finally:
        process.kill()          # a stopped one would keep the reader of our output waiting
    ms = self_ms(output)
    print('# first %.0f ms, second %.0f; status %d' % (
        ms['first'], ms['second'], status))
    # 300 ms each.  By a tick that stands still it is 0.
    expect(ms['first'] > 50, 'first: %s' % ms)
    expect(ms['second'] > 50, 'second: %s' % ms)
    end = time.monotonic() + 60     # a writer without profrun does it soon
    while (is_removed and os.path.exists(output + '/tick') and
           time.monotonic() < end):
        time.sleep(0.01)
    expect_equal(os.path.exists(output + '/tick'), not is_removed, 'the file')
    return output, status


def is_read(output):
    """A program that starts when the writer has had no processor for a quarter of a
    second does without it."""
    process, = glob.glob(output + '/[0-9]*')
    maps = '/proc/%s/maps' % os.path.basename(process).split('.')[0]
    return output + '/tick' in open(maps).read()


def nothing(process, output):
    expect(os.path.exists(output + '/tick'), 'there is no tick')
    expect(writer_of(output), 'nobody writes the tick')


@test
def profrun_writes_a_tick_and_removes_it():
    output, status = halves(nothing)
    expect_equal(status, 0, 'status')
    tick = ticks_of(output)[0]
    expect(not is_near(tick, kernels_tick()), 'the tick was the kernel\'s: %s' % tick)


@test
def programs_that_are_executed_use_it_too():
    output, status = halves(nothing, words=['again'])
    expect_equal(status, 0, 'status')
    kernel = kernels_tick()
    expect(not any(is_near(tick, kernel) for tick in ticks_of(output)),
           'ticks: %s' % ticks_of(output))


# The recording has both halves, although the one who wrote the tick is gone.
@test
def profrun_may_be_killed():
    def kill(process, output):
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    halves(kill)


@test
def profrun_may_be_stopped():
    def stop(process, output):
        process.send_signal(signal.SIGSTOP)
    expect_equal(halves(stop)[1], 0, 'status')


@test
def the_writer_may_be_killed():
    def kill(process, output):
        os.kill(writer_of(output), signal.SIGKILL)
    output, status = halves(kill)
    expect_equal(status, 0, 'status')
    expect(is_near(ticks_of(output)[0], kernels_tick()), ticks_of(output))


# As killall does it: nobody is left who could say that the ticks are over, and the file
# stays.
@test
def all_of_profrun_may_be_killed():
    def kill(process, output):
        # The one that is killed last has no time to end the tick in order.  profrun
        # ends a writer that is stopped.
        was_read.append(is_read(output))
        pids = [process.pid, writer_of(output)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        for pid in reversed(pids) if next(order) else pids:
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
    order, was_read = iter((False, True)), []
    for _ in range(2):
        output, _ = halves(kill, is_removed=False)
        kernel = kernels_tick()
        expect(is_near(ticks_of(output)[0], kernel), ticks_of(output))
        for function in json_of(output)['functions']:
            if linker_name(function['name']) != 'main':
                expect(function['total_ns'] < 20e9, function)
        expect_equal('ended without notice' in
                     run([shimtest.report, 'info', output]).stdout, was_read.pop(), 'log')


@test
def the_writer_may_be_stopped():
    def stop(process, output):
        os.kill(writer_of(output), signal.SIGSTOP)
    expect_equal(halves(stop)[1], 0, 'status')


@test
def a_child_may_outlive_profrun():
    def wait(process, output):
        process.wait(60)
    halves(wait, words=['child'])


# Its pages then read as zero.
@test
def the_file_may_be_truncated():
    def truncate(process, output):
        os.truncate(output + '/tick', 0)
    expect_equal(halves(truncate)[1], 0, 'status')


@test
def it_may_be_removed():
    def remove(process, output):
        os.remove(output + '/tick')
    expect_equal(halves(remove)[1], 0, 'status')


@test
def the_program_sees_nothing_of_it():
    program = compile('sleeps.c', 'gcc', '-O1')
    seen = []
    for hz in '0', '2000':
        output = os.path.join(new_directory('ticks'), 'recording')
        done = run([profrun(), 'run', '-q', '--no-report', '--tick', hz, '-o',
                    output, program, 'fds'])
        expect_equal((done.status, done.stderr), (0, ''), 'status')
        seen.append(done.stdout)
    expect_equal(seen[0], seen[1], 'files')


# No descriptor for the pipe, nor one for the file.
@test
def without_descriptors_the_program_runs_by_the_kernels_tick():
    program = compile('trivial.c', 'gcc', '-O1')
    for limit in '4', '5', '6', '7':
        output = os.path.join(new_directory('ticks'), 'recording')
        done = run(['sh', '-c', 'ulimit -n %s; exec "$@"' % limit, 'sh',
                    profrun(), 'run', '-q', '--no-report', '-o', output, program])
        alone = run(['sh', '-c', 'ulimit -n %s; exec "$@"' % limit, 'sh', program])
        expect_equal((done.status, done.stdout), (alone.status, alone.stdout),
                     limit)


@test
def only_the_modes_with_a_coarse_clock_need_it():
    for profile, wanted in (('calltree', True), ('default', True),
                            ('calltree:by-limit=5', True),
                            ('calltree:exact', False),
                            ('calltree:calibrate', False), ('memory', False),
                            ('calltree:counts', False), ('sampling', False)):
        output = os.path.join(new_directory('ticks'), 'recording')
        done = run([profrun(), 'run', '-q', '--no-report', '-p', profile, '-o',
                    output, '/bin/sh', '-c', 'ls "$SHIM_DIR"'])
        expect_equal('tick\n' in done.stdout, wanted, profile)


@test
def a_wrong_number_is_refused():
    for text in 'x', '', '-1', '99', '10001', '1e3':
        for words, more in ((['--tick=' + text], {}), ([], {'SHIM_TICK': text})):
            if text or words:
                done = run([profrun(), 'run', *words, '/bin/true'], **more)
                expect_equal(done.status, 2, text)
                expect('is no number of ticks' in done.stderr, done.stderr)
    done = run([profrun(), 'run', '-q', '--no-report', '-o',
                os.path.join(new_directory('ticks'), 'recording'), '/bin/true'],
               SHIM_TICK='100')
    expect_equal((done.status, done.stderr), (0, ''), 'SHIM_TICK=100')


# What could be in the directory of a recording and is not profrun's, or not any more,
# or not of this machine.
@test
def another_file_is_not_believed():
    has_tick()
    kernel = kernels_tick()
    boot = open('/proc/sys/kernel/random/boot_id').read().strip().encode()

    def recorded(data, mode=0o600):
        output = new_directory('recording')
        with open(output + '/tick', 'wb') as file:
            file.write(data)
        os.chmod(output + '/tick', mode)
        done = run([compile('trivial.c', 'gcc', '-O1')], output, 'calltree')
        expect_equal(done.status, 0, done.stderr)
        expect(is_near(ticks_of(output)[0], kernel), ticks_of(output))

    def page(magic=b'SHIMTICK', version=1, boot=boot, clock=0, length=1000,
             over=0):
        return TICK.pack(magic, version, TICK.size, boot, clock, length,
                         over).ljust(4096, b'\0')
    # The processor's clock is beyond the first and before the last of these.
    for clock in 0, 1 << 62:
        recorded(page(clock=clock))
    recorded(page(boot=b'00000000-0000-0000-0000-000000000000'))
    recorded(page(boot=b'x' * 48))
    recorded(page(magic=b'SHIMMETA'))
    recorded(page(over=1))
    recorded(page()[:128])
    recorded(b'')
    recorded(page(), 0o644)
    output = new_directory('recording')
    os.mkfifo(output + '/tick', 0o600)
    done = run([compile('trivial.c', 'gcc', '-O1')], output, 'calltree')
    expect_equal(done.status, 0, done.stderr)
    expect(is_near(ticks_of(output)[0], kernel), 'a fifo')


@test
def valgrind_finds_no_error_in_a_recorded_program():
    """It hides the page of the kernel's clock."""
    need('valgrind')
    program = compile('nesting.c')
    output = os.path.join(new_directory('valgrind'), 'recording')
    os.mkdir(output, 0o700)
    done = subprocess.run(
        ['valgrind', '-q', '--error-exitcode=99', program], capture_output=True, text=True,
        env=environment(LD_PRELOAD=shimtest.library, SHIM_DIR=output))
    expect_equal(done.returncode, 0, done.stderr[-2000:])
    expect(json_of(output)['calls'] > 0, 'no call')


DAEMONS = r'''
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }
int main(void)
{
    int child, i;

    for (child = 0; child < 12; child++) {
        if (fork() != 0)
            continue;
        usleep(2000 + 500 * child);
        for (i = 0; i < 100; i++)
            leaf();
        return 0;
    }
    usleep(1000);
    return 0;
}
'''


@test
def children_that_end_shortly_after_profruns_ticks_have_no_word_of_it():
    """profrun waits for the kernel's tick, some milliseconds, before it has ended its own in
    order."""
    has_tick()
    program = compile(shimtest.new_source('daemons.c', DAEMONS), 'gcc', '-O1')
    for _ in range(5):
        output = os.path.join(new_directory('ticks'), 'recording')
        done = run([profrun(), 'run', '-q', '--no-report', '-o', output, program])
        expect_equal((done.status, done.stderr), (0, ''), 'profrun')
        time.sleep(0.05)
        text = shimtest.shim_report('info', output)
        expect('ended without notice' not in text, text)
        expect_equal(json_of(output)['calls'], 12 * 100 + 1, 'calls')


# step() is called often enough to be timed by the tick; the last call sleeps.  It says
# when main ends.
OUTLIVES = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) void asleep(int seconds) { sleep(seconds); }
__attribute__((noinline)) void step(int seconds)
{
    if (seconds)
        sleep(seconds);
}

int main(int count, char **words)
{
    int seconds = atoi(words[1]), i;

    (void)count;
    for (i = 1; i < 100000; i++)
        step(i == 99999 ? seconds : 0);
    asleep(seconds);
    return 0;
}
"""


@test
def the_time_since_the_last_tick_of_profrun_is_the_programs():
    has_tick()
    program = compile(shimtest.new_source('outlives.c', OUTLIVES), 'gcc', '-O1')
    runs = []
    for profile in 'calltree', 'calltree:clock=cpu':
        for end in ': in order', 'kill -9 $PPID':
            output = os.path.join(new_directory('ticks'), 'recording')
            script = '%s 2 & sleep 0.3; %s; sleep 0.2' % (program, end)
            words = [profrun(), 'run', '-q', '--no-report', '-p', profile, '-o', output,
                     'sh', '-c', script]
            runs.append((profile, end, output, subprocess.Popen(words, env=environment())))
    for *_, process in runs:
        process.wait()
    time.sleep(5)
    for profile, end, output, _ in runs:
        functions = {function['name']: function for function in json_of(output)['functions']}
        key = 'total_ns' if profile == 'calltree' else 'waited_ns'
        ms = {name: functions[name][key] / 1e6 for name in ('step', 'asleep', 'main')}
        if profile == 'calltree':
            ms['main'] /= 2
        else:   # it only waits in these
            del ms['main']
        expect(all(1900 < time < 2900 for time in ms.values()), (profile, end, ms))


if __name__ == '__main__':
    shimtest.main()
