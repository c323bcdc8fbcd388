#!/usr/bin/env python3
"""cross.py BUILD SHIM-REPORT FIXTURES [TEST...]

The library for AArch64: built in BUILD by a cross compiler and preloaded into programs
that qemu runs one by one.  The report of this machine reads the recordings.  The tests
are those of other files in this directory.

The emulator differs from a real machine: it has no coarse clock, so adaptive times are
exact; it cannot start programs for a program; with signals every few microseconds, the
program makes no progress; it does not model caches and memory order.  Programs are built
with -O2.  CHECK_ALL=1 (scripts/check --nightly): also with -O0, and the tests of life.py and
events.py.
"""
import os
import re
import shutil
import subprocess
import sys

import shimtest
from shimtest import Skipped, add_test, expect

MACHINE = 'aarch64-linux-gnu-'
NEEDED = [MACHINE + 'gcc', MACHINE + 'g++', 'qemu-aarch64', 'meson', 'ninja']
TOP = os.path.dirname(os.path.dirname(shimtest.PROGRAMS))

STARTS = 'the emulator starts no programs for programs'
SLOW = 'it takes the emulator more than a minute'
SITES = 'call sites are not switched in place on this processor'

# Tests that cannot run in the emulator, and why.
LEFT_OUT = [
    ('^(exec_open|spawns) ', STARTS),
    (r'^\w+ is told$', STARTS),
    ('^what_a_program_without_the_counter_begins', STARTS),
    ('^a_program_(that_is_executed_without_shim|that_could_not_record|that_runs_often|'
     'with_the_rights)', STARTS),
    ('^a_static_program_that_is_executed', STARTS),
    ('^(repeated_calls_of|what)_a_vfork_child', 'the emulator makes a fork of a vfork'),
    ('^what_bec(ame|omes)_another_program', STARTS),
    ('^(ten_thousand_short|what_is_opened_is_loaded)', SLOW),
    ('^(threads_may_load|names_are_right_when_threads)', SLOW),
    ('^(names_are_right_at_addresses_used_again|names_are_right_where_hundreds|'
     'objects_that_share_the_last_generation)',
     'the emulator does not use addresses again'),
    ('^names_are_known_when_the_first_thread_has_ended',
     'the emulator shows its own objects in /proc/thread-self/maps'),
    ('^a million tail calls', 'code of this processor is not decoded'),
    ('^calls_of_handlers_in_slow_hooks',
     'stacks are not walked on this processor'),
    ('^(nothing_but_the_hooks_time|nothing_of_ours|a_handler_and_a_child_forbid)',
     'the program looks at registers of x86-64'),
    ('^(what is called while stopped|all ways to call a hook)', SITES),
    ('^a_frame_tells', 'debug information is not read on this processor'),
]


# The emulator takes long for them: only scripts/check --nightly runs them there.
LONG = ('^(threads_held|a child forked while all is being switched|callbacks_may_fork|'
        'a_cancelled_thread_has_left|altstack_thread|threads_that_call_|daemon|no_lock_of_ours|'
        'few calls are misplaced|tasks_that_share_thread_data)')


def say_no(reason):
    print('TAP version 13\n1..1\nnot ok 1 - %s; scripts/packages check' % reason)
    sys.exit(1)


def system_root():
    """The directory whose lib/ has that machine's libc."""
    libc = subprocess.run([MACHINE + 'gcc', '-print-file-name=libc.so.6'],
                          stdout=subprocess.PIPE).stdout.decode().strip()
    if not os.path.isabs(libc):
        say_no('there is no libc for %sgcc' % MACHINE)
    return os.path.dirname(os.path.dirname(os.path.realpath(libc)))


def build(directory):
    """A test that fails if the build failed."""
    command = []
    if not os.path.exists(os.path.join(directory, 'build.ninja')):
        command = ['meson', 'setup', directory, TOP, '-Dwerror=true',
                   '--cross-file', os.path.join(TOP, 'tests', 'cross',
                                                'aarch64.ini')]
    output, status = b'', 0
    for command in filter(None, [command, ['ninja', '-C', directory]]):
        environment = {k: v for k, v in os.environ.items()
                       if k not in ('CC', 'CXX', 'CFLAGS', 'LDFLAGS')}
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment,
                              stderr=subprocess.STDOUT)
        output, status = output + done.stdout, status or done.returncode

    def it_is_built_without_a_warning():
        expect(status == 0, output.decode(errors='replace'))

    add_test('the library is built without a warning',
             it_is_built_without_a_warning)
    return status == 0


def add_tests():
    shimtest.machine = MACHINE
    # When a thread of the emulator allocates while another one forks, the child keeps a
    # lock of GLib's slice allocator forever; malloc's locks are handled.
    shimtest.emulator = ['env', 'G_SLICE=always-malloc', 'qemu-aarch64',
                         '-U', 'G_SLICE', '-L', system_root()]
    shimtest.common_flags = ['-DTICK_NS=2000000']
    shimtest.BUILDS = [('gcc', '-O2')]
    shimtest.PROFILES = ['calltree:exact']
    if shimtest.ALL:
        shimtest.BUILDS.insert(0, ('gcc', '-O0'))
        shimtest.PROFILES.insert(0, 'calltree:counts')
    import trees        # these imports need the settings above
    for family, optimize in shimtest.BUILDS:
        trees.add_tests(family, optimize)
    for name in ['kill', 'hooks', 'toggle'] + ['life', 'events'] * shimtest.ALL:
        __import__(name)


@shimtest.test
def arguments_are_not_available_and_the_log_says_why():
    program = shimtest.compile('arguments_asked.c', 'gcc', '-O2',
                               ['-I', os.path.join(TOP, 'include')])
    result = shimtest.record([program, 'af', 'values'], 'none')
    expect(' right 0,' in result.stdout, result.stdout)
    meta = open(os.path.join(result.output, os.listdir(result.output)[0],
                             'meta'), 'rb').read()
    expect(b'libshim-code.so cannot be used' in meta, 'the log is silent')


def leave_out():
    def refuse(reason):
        raise Skipped(reason)

    if not shimtest.ALL:
        shimtest.tests[:] = [t for t in shimtest.tests if not re.search(LONG, t[0])]
    for i, (name, _) in enumerate(shimtest.tests):
        for pattern, reason in LEFT_OUT:
            if re.search(pattern, name):
                shimtest.tests[i] = name, lambda reason=reason: refuse(reason)


def main():
    for program in NEEDED:
        if not shutil.which(program):
            say_no('%s is not installed' % program)
    if build(sys.argv[1]):
        add_tests()
        leave_out()
    sys.argv[1] = os.path.join(sys.argv[1], 'shim', 'libshim.so.0')
    shimtest.main()


if __name__ == '__main__':
    main()
