#!/usr/bin/env python3
"""other_libc.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Programs of another libc than glibc (musl).  A recorded program executes them, or they
are recorded themselves: output and status must stay the same, with every profiler.
"""
import os
import shutil
import signal
import subprocess

import shimtest
from shimtest import (Skipped, compile, expect, expect_equal, new_directory, record,
                      run_both, test, tree_of)

PROFILES = ['calltree', 'calltree:exact', 'trace', 'sampling', 'memory',
            'locks', 'coverage', 'exceptions', 'pchist']
HOOKS = '''
void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function, (void)site;
}
void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function, (void)site;
}
'''


def musl(source, target, *flags):
    if not shutil.which('musl-gcc'):
        raise Skipped('musl-gcc is not installed (scripts/packages check)')
    done = subprocess.run(['musl-gcc', '-O1', '-g', '-w', source, '-o', target,
                           *flags], stderr=subprocess.PIPE, text=True)
    expect(done.returncode == 0, done.stderr)
    return target


def build(instrumented):
    """Compilers provide no hooks for this libc, so the program brings its own."""
    directory = new_directory('musl')
    flags = ['-pthread']
    if instrumented:
        source = os.path.join(directory, 'hooks.c')
        with open(source, 'w') as file:
            file.write(HOOKS)
        musl(source, os.path.join(directory, 'libhooks.so'), '-shared',
             '-fPIC')
        flags += ['-finstrument-functions', '-L' + directory, '-lhooks',
                  '-Wl,-rpath,' + directory]
    return musl(os.path.join(shimtest.PROGRAMS, 'other_libc.c'),
                os.path.join(directory, 'other_libc'), *flags)


def loader():
    return '/lib/ld-musl-%s.so.1' % os.uname().machine


@test
def a_program_of_another_libc_is_executed_as_ever():
    program, host = build(False), compile('other_libc.c')
    for profile in PROFILES:
        result = run_both([host, program], profile)
        expect_equal(result.status, -signal.SIGABRT, profile)
        expect_equal(result.stdout, 'threads 28\nback\nchild 3\nshell 4\n',
                     profile)


@test
def it_executes_programs_of_glibc_which_are_recorded():
    program, nested = build(False), compile('nesting.c')
    result = run_both([compile('other_libc.c'), program, nested])
    expect_equal(tree_of(result.output)['main;a;b;c'], 6, 'calls')


@test
def its_loader_may_be_the_command():
    program = build(False)
    if not os.path.exists(loader()):
        raise Skipped('%s is not there' % loader())
    for profile in PROFILES:
        expect_equal(run_both([loader(), program], profile).status,
                     -signal.SIGABRT, profile)


@test
def calls_of_a_program_of_another_libc_are_recorded():
    program = build(True)
    for profile in PROFILES:
        run_both([program], profile)
    tree = tree_of(record([program]).output)
    for path, calls in (('main;sum_threads', 1), ('use_memory', 8),
                        ('main;fault;on_fault', 1)):
        expect_equal(tree.get(path), calls, path)


if __name__ == '__main__':
    shimtest.main()
