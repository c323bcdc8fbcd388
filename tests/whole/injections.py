#!/usr/bin/env python3
"""injections.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

One system call of shim fails in each run of a whole program.  The program must print
and end as usual, and every loss must be counted or reported.

INJECT is the program that makes calls fail.  INJECTIONS is the number of runs for each
profiler (1000: some minutes), SEED chooses them, FIRST is the first one; FOR_GOOD=1:
from that call on all of them fail, except calls that never fail.
"""
import errno
import functools
import json
import os
import random
import re
import signal
import subprocess

import shimtest
from shimtest import (Failed, add_test, compile, environment, expect,
                      expect_equal, new_directory)

INJECT = os.environ['INJECT']
RUNS = int(os.environ.get('INJECTIONS', '5'))
SEED = int(os.environ.get('SEED', '1'))
FIRST = int(os.environ.get('FIRST', '0'))
FOR_GOOD = os.environ.get('FOR_GOOD') == '1'
PROFILES = ['calltree', 'trace', 'memory', 'sampling:hz=500', 'coverage',
            'locks']
# No call is interrupted forever, so EINTR is the last error.
ERRORS = [errno.ENOSPC, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.EAGAIN,
          errno.EMFILE, errno.EIO, errno.ENOSYS, errno.EINVAL, errno.EINTR]


@functools.lru_cache(maxsize=None)
def passed_on():
    """System calls that the library makes on behalf of the program."""
    symbols = subprocess.run(['nm', '-S', shimtest.library], text=True, check=True,
                             capture_output=True).stdout
    found = re.findall(r'^(\w+) (\w+) [tT] (?:sys_pass_on|arch_call_with_mask)$',
                       symbols, re.M)
    expect_equal(len(found), 2, 'functions that pass on')
    return ','.join('%x-%x' % (int(at, 16), int(at, 16) + int(size, 16))
                    for at, size in found)


class Run:
    def __init__(self, profile, number=0, error=0, for_good=False, kind=None):
        self.is_for_good = for_good
        self.directory = new_directory('injected')
        self.output = os.path.join(self.directory, 'r')
        os.mkdir(self.output, 0o700)
        answer = os.path.join(self.directory, 'answer')
        command = [compile('injected.c', 'gcc', '-O1'), library()]
        if profile:
            variables = environment(self.output, profile)
            preload = variables.pop('LD_PRELOAD')
            variables['PASSED_ON'] = passed_on()
            if kind is not None:
                variables['ONLY'] = str(kind)
            command = [INJECT, os.path.basename(shimtest.library), answer,
                       str(-number if for_good else number), str(error),
                       'env', 'LD_PRELOAD=' + preload] + command
        else:
            variables = environment()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=variables,
            start_new_session=True)
        try:
            self.stdout, self.stderr = process.communicate(timeout=60)
            self.status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.stdout, self.stderr = process.communicate()
            self.status = 'hangs'
        if profile and self.status != 'hangs':
            with open(answer) as file:
                count, self.failed, self.status = map(
                    int, file.readline().split())
                self.calls = list(map(int, file.read().split()))
            self.status = os.waitstatus_to_exitcode(self.status)

    def truth(self):
        return sum(int(n) for n in re.findall(r'^calls \S+ (\d+)$',
                                              self.stdout, re.M))

    def read(self):
        """The content of export json, or None, and all messages."""
        self.said = ''.join(re.findall('^shim: .*\n', self.stderr, re.M))
        log = os.path.join(self.output, 'log')
        if os.path.exists(log):
            self.said += open(log).read()
        self.says_why = self.said != ''
        done = subprocess.run([shimtest.report, 'export', 'json',
                               self.output], capture_output=True, text=True)
        self.about = None
        if done.returncode == 0:
            self.about = json.loads(done.stdout)
        elif not re.search('not a recording|no call was (recorded|read)',
                           done.stderr):
            raise Failed('shim-report: status %d: %s' % (done.returncode,
                                                         done.stderr))
        # If no system call works, only the reader can report the loss.
        elif self.said or self.is_for_good:
            self.said += done.stderr
        info = subprocess.run([shimtest.report, 'info', self.output],
                              capture_output=True, text=True).stdout
        for log in re.findall(r'^  log:\n((?:    .*\n?)+)', info, re.M):
            self.said += log


def library():
    return compile('plugin.c', 'gcc', '-O0',
                   ['-shared', '-fPIC', '-DPLUGIN=alpha'],
                   name='libalpha_plain.so', instrument=False)


# --- reports of missing data ---

def calls_missing(run, base):
    return run.truth() - run.about['calls'] - run.about['lost']


def counted_as_lost(run):
    return run.about['lost'] + sum(run.about['lost_others'].values())


def memory_missing(run, base):
    names = ('allocations', 'reallocations', 'mappings', 'allocated_bytes')
    got, wanted = run.about.get('memory'), base.about['memory']
    if not got:
        return 'all'
    # A block that could not be noted is a new one when it is reallocated.
    if run.about['memory_untold']:
        return 0
    return {name: (got[name], wanted[name]) for name in names
            if got[name] != wanted[name]} if not counted_as_lost(run) else 0


def reached(run):
    done = subprocess.run([shimtest.report, 'export', 'lcov', run.output],
                          capture_output=True, text=True)
    return set(re.findall('^(?:SF:.*|DA:[0-9]+,[1-9].*)$', done.stdout, re.M))


def lines_missing(run, base):
    return run.about['lost'] == 0 and reached(base) - reached(run)


def nothing_missing(run, base):
    return 0


MISSING = {'calltree': calls_missing, 'trace': calls_missing,
           'memory': memory_missing, 'coverage': lines_missing}


def check(profile, run, base):
    run.read()
    run.said = set(run.said.splitlines()) - set(base.said.splitlines())
    if run.about is None:
        expect(run.said, 'no recording, and nothing says why')
        return
    missing = MISSING.get(profile, nothing_missing)(run, base)
    expect(not missing or run.said,
           'missing and not said: %s; %s, %s' % (
               missing, run.about['lost_causes'], run.about['lost_others']))
    if MISSING.get(profile) is calls_missing:
        expect(missing >= 0, '%d calls too many' % -missing)


# --- choice of the failing calls ---

def choose(calls, chance, runs):
    """Chooses each kind of call equally often, if there are enough calls of it."""
    kinds = {}
    for number, kind in enumerate(calls, 1):
        kinds.setdefault(kind, []).append(number)
    chosen = []
    for numbers in kinds.values():
        chance.shuffle(numbers)
    while len(chosen) < runs and any(kinds.values()):
        for numbers in kinds.values():
            if numbers:
                chosen.append(numbers.pop())
    return chosen[:runs]


def output_of(run):
    return re.sub('^shim: .*\n', '', run.stderr, flags=re.M)


def test_profile(profile, for_good=FOR_GOOD, runs=RUNS):
    alone, base = Run(None), Run(profile)
    base.read()
    expect_equal(alone.truth(), base.truth(), 'calls')
    expect(base.about and base.about['lost'] == 0,
           'without a failure: %s' % base.said)
    bad, refused = [], 0
    chosen = choose(base.calls, random.Random(SEED), runs)
    for turn, number in enumerate(chosen):
        if turn < FIRST:
            continue
        error = ERRORS[(turn + number) % (len(ERRORS) - for_good)]
        run = Run(profile, number, error, for_good)
        what = '%s: run %d: call %d (%s) fails with %s' % (
            profile, turn, number, run.__dict__.get('failed'),
            errno.errorcode[error])
        try:
            expect_equal((run.status, run.stdout, output_of(run)),
                         (alone.status, alone.stdout, alone.stderr),
                         'the program')
            check(profile, run, base)
            refused += run.about is None
        except Failed as reason:
            bad.append('%s: %s' % (what, reason))
        if not bad or bad[-1].find(what) != 0:
            subprocess.run(['rm', '-r', run.directory])
    print('# %d calls, %d injections, %d without a recording' % (
        len(base.calls), len(chosen), refused))
    expect(not bad, '%d of %d:\n%s' % (len(bad), len(chosen),
                                       '\n'.join(bad)))


def test_kinds(profile):
    """Each kind of system call is refused from the first one on."""
    alone, base = Run(None), Run(profile)
    base.read()
    bad, refused = [], 0
    kinds = sorted(set(base.calls))
    for kind in shimtest.some(kinds, 2, profile == 'coverage'):
        # At ticks only, a run that is as short as this may have no sample.
        for _ in range(8 if 'sampling' in profile else 1):
            run = Run(profile, 1, errno.EPERM, True, kind)
            run.read()
            if run.about or run.says_why:
                break
        try:
            expect_equal((run.status, run.stdout, output_of(run)),
                         (alone.status, alone.stdout, alone.stderr),
                         'the program')
            check(profile, run, base)
            refused += run.about is None
            expect(run.about or run.says_why, 'shim says nothing')
        except Failed as reason:
            bad.append('%s: call %d is refused: %s' % (profile, kind, reason))
    print('# %d kinds of calls, %d without a recording' % (len(kinds), refused))
    expect(not bad, '\n'.join(bad))


# The start is the same for all, so a short run takes two of them.
for profile in PROFILES if RUNS >= 100 else ['calltree', 'coverage']:
    add_test('a system call may be refused for good (%s)' % profile,
             lambda p=profile: test_kinds(p))

for profile in PROFILES:
    add_test('no failing system call is to be noticed (%s)' % profile,
             lambda p=profile: test_profile(p))

# Traps that can no longer be removed must not end the program.
if not FOR_GOOD:
    add_test('no failing system call is to be noticed for good (coverage)',
             lambda: test_profile('coverage', True, (RUNS + 4) // 5))

if __name__ == '__main__':
    shimtest.main()
