#!/usr/bin/env python3
"""hostile.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Programs that leave whoever else is in their process little room, in every profile:
what they print and how they end is as without shim.  Each program is in a few
profiles; in all of them with CHECK_ALL=1 (scripts/check --nightly).
"""
import os
import re

import shimtest
from shimtest import (Skipped, add_test, compile, expect, expect_equal, linked,
                      new_directory, run, run_both, test)

ALL = ['none', 'calltree:counts', 'calltree', 'calltree:exact', 'trace', 'memory',
       'sampling:hz=1000', 'pchist', 'coverage', 'locks', 'exceptions',
       'calltree;sampling;memory;locks', 'trace;coverage']
FEW = ['calltree', 'trace', 'memory', 'sampling:hz=1000', 'coverage']
PROFILES = ALL if shimtest.ALL else FEW
FAMILIES = ['gcc', 'clang']

CASES = ['handler_that_forks', 'generations', 'vforks', 'callbacks', 'all_blocked',
         'faults', 'preempted_fibers', 'smallest_stacks', 'little_left',
         'other_pointer', 'no_descriptors', 'no_directory', 'no_files', 'no_memory', 'no_rights', 'no_environment',
         'ends_by_abort', 'ends_by_signal', 'first_thread_ends', 'exits_at_once']

# Of programs that other tests look into, too: their tree, their lines, ...
TREES = ['altstack', 'clone_raw', 'coroutines', 'fibers', 'forks_raw', 'longjmp',
         'siglongjmp', 'small_stacks', 'thread_ends']
RESISTING = ['chroot', 'nofile', 'descriptors', 'dumpable', 'landlock', 'left',
             'frozen', 'timer', 'raw', 'context', 'attribute', 'inherited', 'masked',
             'stepped']


# What a signal takes is more than 512 bytes, and its handler has data of the thread.
SIGNALS = {'little_left': 'coverage|sampling|pchist',
           'other_pointer': 'coverage'}


def profiles_of(family):
    """Each with one of the two."""
    return shimtest.some(PROFILES, 2, FAMILIES.index(family))


def each(name, make):
    """A test for each compiler; @make returns the command."""
    def check(family):
        for profile in profiles_of(family):
            if name not in SIGNALS or not re.search(SIGNALS[name], profile):
                run_both(make(family), profile, without_counts=True)
    for family in FAMILIES:
        add_test('%s is as ever (%s)' % (name, family),
                 lambda family=family: check(family))


for case in CASES:
    each(case, lambda family, case=case: [
        compile('hostile.c', family, '-O1'), case])
for name in TREES:
    each(name, lambda family, name=name: [compile(name + '.c', family, '-O1')])
for case in RESISTING:
    each('resisting ' + case, lambda family, case=case: [
        compile('resisting.c', family), case, new_directory('root')])
each('masks', lambda family: [compile('masks.c', family)])
each('a resolver', lambda family: [compile(
    'resolved.c', family, flags=['-fPIE', '-pie', '-Wl,-z,now'],
    name='hostile_resolved')])
each('a function of preinit_array', lambda family: [compile(
    'preinit.c', family, flags=['-fPIE', '-pie'], name='hostile_preinit'), '5'])
each('a library that begins first', lambda family: [compile(
    'initfirst_host.c', family, name='hostile_initfirst', libraries=linked(compile(
        'initfirst.c', family, flags=['-shared', '-fPIC', '-Wl,-z,initfirst'],
        name='libhostile_first.so')))])


@test
def every_case_is_tried():
    expect_equal(run([compile('hostile.c', optimize='-O1')]).stdout.split(), CASES,
                 'cases')


# --- how it is started ---

def through(words, profile):
    """The program, started by the shell that says @words first."""
    program = compile('hostile.c', optimize='-O1')
    script = words + '; exec "$@" no_environment'
    command = ['bash', '-c', script, 'bash', program]
    alone = run(command)
    ours = run(['bash', '-c', script, 'bash', 'env',
                'LD_PRELOAD=' + shimtest.library, 'SHIM_PROFILE=' + profile,
                'SHIM_DIR=' + new_directory('recording'), program])
    expect_equal((ours.status, ours.stdout), (alone.status, alone.stdout),
                 '%s, %s' % (words, profile))


STARTS = {'no bytes in files': 'ulimit -f 0',
          'four descriptors': 'ulimit -n 4',
          'a little stack': 'ulimit -s 128',
          'closed streams': 'exec <&- 2>&-',
          'a broken pipe': 'exec 2> >(:); sleep 0.1',
          'a full device': 'exec 2>/dev/full',
          'no child processes': 'ulimit -u 1'}


def check_start(words):
    for profile in PROFILES:
        through(words, profile)


for name, words in STARTS.items():
    add_test('started with %s it is as ever' % name,
             lambda words=words: check_start(words))


def sanitized(family, kind, source, profiles):
    """Without instrumentation of ours a sanitizer may refuse to run at all."""
    program = compile(source + '.c', family, '-O1', ['-fsanitize=' + kind],
                      name=source + '_' + kind)
    profrun = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    alone = run([program])
    if 'unexpected memory mapping' in alone.stderr:
        raise Skipped('the addresses of this kernel are random beyond what the sanitizer '
                      'of %s knows' % family)
    for profile in profiles:
        output = os.path.join(new_directory('profrun'), 'r')
        done = run([profrun, 'record', '-q', '-p', profile, '-o', output, program])
        expect_equal((done.status, done.stdout, done.stderr),
                     (alone.status, alone.stdout, alone.stderr), profile)
        expect(os.listdir(output), 'nothing was recorded')


for kind in 'address', 'undefined':
    for family in FAMILIES:
        add_test('with the %s sanitizer it is as ever (%s)' % (kind, family),
                 lambda family=family, kind=kind: sanitized(family, kind, 'nesting',
                                                            profiles_of(family)))
for family in FAMILIES:
    # Some read debug information, for which new threads are prepared.
    add_test('threads with the thread sanitizer are as ever (%s)' % family,
             lambda family=family: sanitized(
                 family, 'thread', 'threads',
                 profiles_of(family) + ['trace:args=all,results=all']))


if __name__ == '__main__':
    shimtest.main()
