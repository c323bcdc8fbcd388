"""profrun attach, detach and record --pid: shim comes into a process that runs without it.

tests/programs/attached.c checks its own values, and counts system calls that failed with
EINTR."""
import os
import re
import signal
import subprocess
import time

import shimtest
from shimtest import Skipped, compile, expect, expect_equal, need, new_directory, test

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
HOOKS = ['-g', '-pthread', '-finstrument-functions']


class Program:
    """attached.c, when its threads run."""

    def __init__(self, count, kind='busy', flags=HOOKS, family='gcc', **more):
        self.process = subprocess.Popen(
            [compile('attached.c', family, '-O2', flags), str(count), kind],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)
        self.pid = self.process.pid
        expect_equal(self.process.stdout.readline(), 'ready\n', kind)
        self.directory = os.path.join(new_directory('attached'), 'recording')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()

    def attach(self, *words, **more):
        return profrun('attach', self.pid, '-o', self.directory, *words, **more)

    def detach(self):
        return profrun('detach', self.pid)

    def ends_well(self, what=''):
        out, _ = self.process.communicate('end\n', timeout=60)
        expect_equal((out, self.process.returncode), ('wrong 0 interrupted 0\n', 0),
                     what)

    def until(self, condition, what):
        """Waits until the recording has what @condition, a function, looks for."""
        end = time.monotonic() + 60
        while not condition():
            expect(time.monotonic() < end, 'in vain: %s' % (what,))
            time.sleep(0.05)

    def until_called(self, name, calls, what):
        self.until(lambda: self.calls(wait=True).get(name, 0) > calls, what)

    def report(self, *words, wait=False):
        done = subprocess.run([PROFRUN, 'report', *words, self.directory],
                              capture_output=True, text=True, timeout=60)
        if wait and done.returncode == 1:
            return ''
        expect_equal(done.returncode, 0, done.stderr)
        return done.stdout

    def calls(self, wait=False):
        """{function: calls}, of all processes.  @wait: there may be none yet."""
        found = {}
        done = subprocess.run([PROFRUN, 'export', 'folded', '--value', 'calls',
                               self.directory], capture_output=True, text=True,
                              timeout=60)
        if wait and 'no call was recorded' in done.stderr:
            return found
        expect_equal(done.returncode, 0, done.stderr)
        for line in done.stdout.splitlines():
            path, count = line.rsplit(' ', 1)
            name = path.split(';')[-1]
            found[name] = found.get(name, 0) + int(count)
        return found


def profrun(*words, status=0, **more):
    done = subprocess.run([PROFRUN, *map(str, words)], capture_output=True, text=True,
                          timeout=120, **more)
    expect_equal(done.returncode, status, (words, done.stderr))
    expect_equal(done.stdout, '', words)
    return done.stderr


def refused(*words, **more):
    return profrun(*words, status=1, **more)


def executable_bytes(pid):
    """The code and the slots of the program and of its libraries that stay read-only."""
    parts = {}
    with open('/proc/%d/maps' % pid) as maps, open('/proc/%d/mem' % pid, 'rb') as memory:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) == 6 and words[5][0] == '/' and words[1][1] != 'w' and \
                    'libshim' not in words[5] and 'recording' not in words[5]:
                low, high = (int(word, 16) for word in words[0].split('-'))
                memory.seek(low)
                parts[low, words[5].strip()] = memory.read(high - low)
    return parts


@test
def calls_are_recorded_from_the_attach_to_the_detach():
    for family in 'gcc', 'clang':
        with Program(2, family=family) as program:
            text = program.attach()
            expect('recording process %d (attached)' % program.pid in text, text)
            program.until_called('leaf', 1000, family)
            program.detach()
            first = program.calls()
            time.sleep(0.1)
            expect_equal(program.calls(), first, 'after the detach')
            # A call is open at the attach and at the detach in each of three threads.
            expect(abs(first['leaf'] - 2 * first['middle']) <= 6, first)
            expect('detached' in program.report(), program.report())
            program.ends_well(family)


@test
def slots_that_are_resolved_lazily_and_at_the_start_lead_to_shim():
    for flags in ['-Wl,-z,lazy'], ['-Wl,-z,now'], ['-fno-plt'], ['-no-pie']:
        with Program(1, flags=HOOKS + flags) as program:
            program.attach()
            program.until_called('leaf', 100, flags)
            program.detach()
            program.ends_well(flags)


@test
def a_detach_leaves_code_slots_threads_and_descriptors_as_they_were():
    # A filter switches call sites of the program off.
    for words in [], ['-F', '!leaf']:
        with Program(2, flags=HOOKS + ['-Wl,-z,now']) as program:
            def state():
                return (len(os.listdir('/proc/%d/fd' % program.pid)),
                        len(os.listdir('/proc/%d/task' % program.pid)))

            before, counts = executable_bytes(program.pid), state()
            program.attach(*words)
            time.sleep(0.1)
            during = executable_bytes(program.pid)
            expect(any(during.get(part) != before[part] for part in before),
                   'the slots lead to shim')
            expect_equal(state(), counts, 'while it records')
            program.detach()
            after = executable_bytes(program.pid)
            for part in before:
                expect(after.get(part) == before[part], (words, part))
            expect_equal(state(), counts, 'after the detach')
            program.ends_well()


@test
def a_system_call_that_the_attach_interrupts_goes_on():
    for kind in 'read', 'poll', 'semaphore', 'sleep', 'epoll':
        with Program(0, kind) as program:
            time.sleep(0.05)
            program.attach()
            program.detach()
            program.ends_well(kind)


@test
def attach_and_detach_again_and_again_continue_one_recording():
    with Program(4) as program:
        program.attach()
        for _ in range(5):
            program.detach()
            before = program.calls()['leaf']
            profrun('attach', program.pid)
            program.until_called('leaf', before, 'calls after the attach')
        program.detach()
        text = refused('attach', program.pid, '-p', 'trace')
        expect('continues that recording' in text, text)
        program.ends_well()


@test
def record_with_a_pid_ends_after_its_time():
    with Program(1) as program:
        text = profrun('record', '--pid', program.pid, '--for', '1s', '-o',
                       program.directory)
        expect('detached from process' in text, text)
        expect(program.calls()['leaf'] > 0, 'calls')
        program.ends_well()


@test
def samples_include_threads_that_ran_before():
    with Program(1, 'read', flags=['-g', '-pthread']) as program:
        program.attach('-p', 'sampling')
        program.until(lambda: re.search(r' work \[', program.report(wait=True)), 'work')
        program.detach()
        program.ends_well()


@test
def other_profilers_record_too():
    for profile, pattern in (('memory', 'allocated in [1-9]'), ('trace', r'[1-9].* leaf \['),
                             ('calltree:exact', r'[1-9].* leaf \[')):
        with Program(1, flags=HOOKS) as program:
            program.attach('-p', profile)
            words = ['--memory'] if profile == 'memory' else []
            program.until(lambda: re.search(pattern, program.report(*words, wait=True)),
                          profile)
            program.detach()
            program.ends_well(profile)


@test
def a_child_of_the_program_has_its_own_part_of_the_recording():
    with Program(1, 'fork') as program:
        program.attach()
        program.until(lambda: len(os.listdir(program.directory)) > 2, 'a part of the child')
        program.detach()
        program.ends_well()


@test
def a_killed_profrun_does_no_harm():
    need('strace')
    # The first calls of ptrace stop the thread; then it maps a stack, opens the library,
    # starts shim, while profrun sleeps, and frees the stack.
    steps = [('ptrace', n) for n in (3, 5, 7, 8, 9, 10, 11, 14, 17, 40, 80, 92, 99, 104)]
    for call, step in steps + [('clock_nanosleep', n) for n in (1, 3)]:
        for kind in ('sleep', 'busy')[step % 2:][:1 + (step < 12)]:
            with Program(0, kind) as program:
                done = subprocess.run(
                    ['strace', '-qq', '-o', '/dev/null', '-e', 'trace=ptrace,clock_nanosleep',
                     '-e', 'inject=%s:signal=KILL:when=%d' % (call, step), PROFRUN, 'attach',
                     str(program.pid), '-o', program.directory], capture_output=True,
                    text=True, timeout=60)
                if done.returncode not in (0, -signal.SIGKILL):
                    raise Skipped('strace cannot trace: ' + done.stderr)
                time.sleep(0.02)
                again = subprocess.run([PROFRUN, 'attach', str(program.pid), '-o',
                                        program.directory + '.again'],
                                       capture_output=True, text=True, timeout=60)
                expect(again.returncode == 0 or 'is recorded already' in again.stderr,
                       (call, step, kind, again.stderr))
                program.ends_well((call, step, kind))


@test
def what_cannot_be_attached_to_is_refused_with_a_reason():
    text = refused('attach', 2 ** 22 - 1)
    expect('there is no process' in text, text)
    text = profrun('attach', 'x', status=2)
    expect("'x' is not a process id" in text, text)
    text = profrun('attach', status=2)
    expect('needs a process id' in text, text)
    with Program(0) as program:
        text = refused('detach', program.pid)
        expect('is not attached to' in text, text)
        text = profrun('attach', program.pid, '-p', 'coverage', status=2)
        expect('coverage needs the whole run' in text, text)
        program.process.send_signal(signal.SIGSTOP)
        while b'T (stopped)' not in open('/proc/%d/status' % program.pid, 'rb').read():
            time.sleep(0.01)
        text = refused('attach', program.pid)
        expect('is stopped: continue it first' in text, text)
        program.process.send_signal(signal.SIGCONT)
        program.attach()
        text = refused('attach', program.pid)
        expect('is recorded already' in text, text)
        program.detach()
        program.ends_well()
    with Program(0, flags=HOOKS + ['-static']) as program:
        text = program.attach(status=1)
        expect('is statically linked' in text, text)
        expect(not os.path.exists(program.directory), 'no directory')
        program.ends_well('static')


@test
def a_preloaded_process_is_left_to_ctl():
    environment = dict(os.environ, LD_PRELOAD=shimtest.library,
                       SHIM_OUTPUT=os.path.join(new_directory('preloaded'), 'own'))
    with Program(0, env=environment) as program:
        text = refused('attach', program.pid)
        expect('was started with shim: use `profrun ctl' in text, text)
        program.ends_well()


@test
def the_settings_of_ctl_work_afterwards():
    with Program(1) as program:
        program.attach('--control')
        done = subprocess.run([PROFRUN, 'ctl', str(program.pid), 'status'],
                              capture_output=True, text=True, timeout=60)
        expect_equal(done.returncode, 0, done.stderr)
        expect('calltree' in done.stdout, done.stdout)
        program.ends_well()


shimtest.main()
