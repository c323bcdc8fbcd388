#!/usr/bin/env python3
"""marks.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

What is the same at all marks other than the compiler's hooks.  Arguments and results: no
value is wrong, and hardly any is missing (the programs of arguments.py).  Small stacks.
"""
import ctypes
import os
import subprocess

import arguments
import shimtest
from shimtest import BUILDS, add_test, compile, expect, expect_equal, record, run

shimtest.tests.clear()          # the tests of arguments.py do not run here

FAMILIES = {'patchable': ['gcc', 'clang'], 'fentry': ['gcc'], 'xray': ['clang'],
            'mcount': ['gcc', 'clang'], 'patch': ['gcc', 'clang']}


def together(mark, cxx):
    """Compiling takes longest there, so each mark and language has one compiler."""
    families = FAMILIES[mark]
    return families[-1 if mark == 'patch' or mark == 'patchable' and cxx else 0]


def has_lost_registers(mark, family, optimize):
    """clang may use argument registers before it calls mcount."""
    return (mark, family, optimize) == ('mcount', 'clang', '-O0')


def arguments_at(mark, family, optimize, cxx):
    right, missing = arguments.compare(family, optimize, cxx, mark=mark)
    limit = 10 if has_lost_registers(mark, family, optimize) else 2
    expect(100 * missing <= limit * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


def together_at(mark, family, optimize, cxx):
    """clang's callers omit what the function does not read."""
    right, missing = arguments.compare(family, optimize, cxx, mark=mark,
                                       apart=False)
    limit = arguments.LIMITS_TOGETHER[family, optimize] + 2
    if has_lost_registers(mark, family, optimize):
        limit = 10
    expect(100 * missing <= limit * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


for mark, families in FAMILIES.items():
    for family, optimize in BUILDS:
        for cxx in (False, True):
            if family not in families or not (cxx or mark == 'patchable' or shimtest.ALL):
                continue
            name = '%s_%s_%s%s' % (mark, 'c++' if cxx else 'c', family, optimize)
            how = (mark, family, optimize, cxx)
            add_test('no_argument_is_wrong_' + name,
                     lambda how=how: arguments_at(*how))
            if optimize == '-O2' and not (shimtest.ALL or family == together(mark, cxx)):
                continue
            add_test('no_argument_is_wrong_together_' + name,
                     lambda how=how: together_at(*how))
            add_test('no_result_is_wrong_' + name,
                     lambda how=how: arguments.compare_results(
                         *how[1:], mark=how[0]))


LOCAL = '''
#include <stdio.h>
#include <stdlib.h>
#define APART __attribute__((noinline))
static int written;
static APART int used(int a, double b) { written += a; return a * 3 + (int)b; }
static APART int ignored(int a, int unused) { written += a; return a * 5; }
APART double shown(const char *text, double x) { written++; return x / 2 + text[0]; }
APART void nothing(long *at) { *at += 1; }
int main(int argc, char **argv)
{
	long at = 7;
	double real = shown("A text", 3);
	int sum = used(argc, 2.5) + used(4, 3.5);
	ignored(6, argc);
	ignored(8, 3);
	nothing(&at);
	printf("%d %g %d %ld\\n", sum, real, written, at);
	return argv[0] == NULL;
}
'''


def functions_that_the_compiler_knows(mark, family):
    """Functions all of whose callers are known: what no caller passes, and what none uses,
    is unknown, never wrong."""
    path = arguments.write_text(
        os.path.join(shimtest.fixtures, 'marks_local.c'), [LOCAL])
    flags, variables = arguments.MARKS[mark]
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'program'}
    program = compile(path, family, '-O2', flags, 'marks_local_' + mark,
                      instrument=False)
    result = record([program], 'trace:args=all,results=all', **variables)
    expect(result.stdout == '20 66.5 20 8\n', result.stdout)
    shown = subprocess.run([shimtest.report, 'replay', result.output],
                           capture_output=True, text=True).stdout
    for call in ['used(a = 1, b = 2.5)', 'used(a = 4, b = 3.5)',
                 'shown(text = "A text", x = 3)', ') = 66.5;', ') = 5;', ') = 15;',
                 '(a = 6, unused = <optimized out>) = <optimized out>;',
                 '(a = 8, unused = <optimized out>) = <optimized out>;']:
        expect(call in shown, '%s: %s' % (call, shown))
    expect('the code is not understood' not in shown, shown)


for mark, families in FAMILIES.items():
    for family in families:
        add_test('functions_that_the_compiler_knows_%s_%s' % (mark, family),
                 lambda m=mark, f=family: functions_that_the_compiler_knows(m, f))


# Seen to crash at the push of a sled, and where a call of mcount leads to.
def handlers_see_all_callers_at_every_instruction(mark, family):
    flags, variables = arguments.MARKS[mark]
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'tiny,last,middle,loop'}
    program = compile('steps.c', family, '-O1', flags, 'steps_' + mark, instrument=False)
    # When the slot below mcount's frame has the address that replaces the function's own, that
    # instruction has no caller.
    cut = 'few' if mark == 'mcount' else 'none'
    for profile in 'calltree:counts', 'calltree', 'calltree:exact':
        result = record([program], profile, **variables)
        expect_equal((result.status, result.stdout), (3, 'stepped, %s cut\n' % cut), profile)
        calls = shimtest.calls_of(shimtest.json_of(result.output))
        expect_equal([calls.get(name) for name in ('middle', 'last', 'tiny')], [60, 60, 120],
                     profile)


for number, (mark, families) in enumerate(FAMILIES.items()):
    for family in shimtest.some(families, len(families), number):
        add_test('handlers_see_all_callers_at_every_instruction_%s_%s' % (mark, family),
                 lambda m=mark, f=family:
                 handlers_see_all_callers_at_every_instruction(m, f))


def stacks_of_4_kib_suffice(mark, family):
    flags, variables = arguments.MARKS[mark]
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'work,add'}
    program = compile('little_stack.c', family, '-O1',
                      ['-DLITTLE=4096', '-fno-inline', *flags],
                      'little_stack_' + mark, instrument=False)
    for profile in ['calltree', 'calltree:exact', 'trace',
                    'calltree;exceptions:unwind', 'trace:args=all,results=all']:
        result = record([program], profile, **variables)
        expect_equal((result.status, result.stdout), (5, 'coroutine: fine\n'),
                     profile)
        calls = shimtest.calls_of(shimtest.json_of(result.output))
        expect_equal((calls.get('work'), calls.get('add')), (1, 5), profile)


for mark, families in FAMILIES.items():
    for family in families:
        add_test('stacks_of_4_kib_suffice_%s_%s' % (mark, family),
                 lambda m=mark, f=family: stacks_of_4_kib_suffice(m, f))


def a_library_may_be_closed_while_its_functions_are_open(mark, family):
    """They have ended with jumps to the program, so nothing returns to their code."""
    flags, variables = arguments.MARKS[mark]
    flags = [f for f in flags if f not in ('-no-pie', '-fno-pie',
                                           '-mnop-mcount')]
    library = compile('closed_inside.c', family, '-O2',
                      ['-DLIBRARY', '-shared', '-fPIC', *flags],
                      'closed_inside_library_' + mark, instrument=False)
    program = compile('closed_inside.c', family, '-O1', [], 'closed_inside',
                      instrument=False, libraries=['-pthread'])
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'pass_*'}
    for profile in ['calltree', 'trace', 'calltree:counts;exceptions:unwind']:
        result = record([program, library], profile, **variables)
        expect_equal((result.status, result.stdout), (0, '400\n'), profile)
        expect_equal(shimtest.tree_of(result.output),
                     {'pass_deeper': 80, 'pass_on': 80}, profile)


for mark, families in FAMILIES.items():
    for family in families:
        if mark == 'mcount':
            continue            # the program has to be marked, too
        add_test('a_library_may_be_closed_while_its_functions_are_open_%s_%s' %
                 (mark, family), lambda m=mark, f=family:
                 a_library_may_be_closed_while_its_functions_are_open(m, f))


OWN_RETURN = '''
#include <stdint.h>
#include <stdio.h>
#define APART __attribute__((noinline))
APART void *plain(void)
{
	__asm__ volatile("");
	return __builtin_return_address(0);
}
APART void *framed(volatile char *to)
{
	volatile char text[200];
	text[3] = to[0];
	plain();
	to[0] = text[3];
	return __builtin_return_address(0);
}
APART int compares(const void *at)
{
	return __builtin_return_address(0) == at;
}
volatile int count;
APART void *passes(void) { count++; return plain(); }
APART void *passes_on(void) { count--; return passes(); }
APART int other(volatile int *n) { int room[9] = {0}; room[*n] = 1; return room[3]; }
int main(void)
{
	volatile char text[2] = "x";
	volatile int n = 3;
	uintptr_t start = (uintptr_t)main;
	printf("%d %d %d %d %d\\n", (uintptr_t)plain() - start < 4096,
	       (uintptr_t)framed(text) - start < 4096, compares(main), other(&n),
	       (uintptr_t)passes_on() - start < 4096);
	return 0;
}
'''


def functions_that_use_their_return_address_find_it(mark, family, optimize):
    """Those of marks without ends are left out, and no other."""
    path = arguments.write_text(
        os.path.join(shimtest.fixtures, 'marks_own_return.c'), [OWN_RETURN])
    flags, variables = arguments.MARKS[mark]
    program = compile(path, family, optimize, flags, 'marks_own_return_' + mark,
                      instrument=False)
    result = record([program], SHIM_VERBOSE='1', **variables)
    is_jump = optimize != '-O0'  # at the end of passes and passes_on
    expect_equal((result.status, result.stdout), (0, '1 1 0 1 %d\n' % is_jump),
                 'the program')
    calls = shimtest.calls_of(shimtest.json_of(result.output))
    wanted = {'main': 1, 'other': 1}
    passing = {'passes': 1, 'passes_on': 1}
    if mark == 'xray':
        wanted.update({'plain': 3, 'framed': 1, 'compares': 1, **passing})
    elif not is_jump:
        wanted.update(passing)
    if mark != 'xray':
        count = 5 if is_jump else 3
        expect('%d marked functions use their own return address' % count
               in result.stderr, result.stderr)
    expect_equal(calls, wanted, 'the calls')


for mark, families in FAMILIES.items():
    for family, optimize in BUILDS:
        if family in families and mark != 'patch':
            add_test('functions_that_use_their_return_address_find_it_%s_%s%s' %
                     (mark, family, optimize), lambda m=mark, f=family, o=optimize:
                     functions_that_use_their_return_address_find_it(m, f, o))


WRAPPER = '''
#define _GNU_SOURCE
#include <dlfcn.h>
volatile int count;
__attribute__((noinline)) static void *next(const char *name)
{
	count++;
	return dlsym(RTLD_NEXT, name);
}
__attribute__((noinline)) static void *next_version(const char *name)
{
	count++;
	return dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
}
__attribute__((noinline)) static void *nearby(const char *name)
{
	count++;
	return dlopen(name, RTLD_NOW);
}
int getpagesize(void)
{
	int (*real)(void) = next("getpagesize");

	return next_version("getpagesize") == (void *)real ? real() + 1 : 0;
}
int has_nearby(void) { return nearby("libmarks_beside.so") != 0; }
'''

WRAPPED = '''
#include <stdio.h>
#include <unistd.h>
int has_nearby(void);
int main(void) { printf("%d %d\\n", getpagesize(), has_nearby()); return 0; }
'''


def a_function_may_end_with_a_jump_to_dlsym(mark, family):
    """libc looks for the object that its caller is in: for RTLD_NEXT, and for the search
    path."""
    directory = shimtest.new_directory('wrapper')
    flags, variables = arguments.MARKS[mark]
    if mark == 'fentry':  # the other flags are for programs
        flags = ['-pg', '-mfentry']
    sources = [arguments.write_text(os.path.join(directory, name), [text])
               for name, text in (('wrapper.c', WRAPPER), ('wrapped.c', WRAPPED),
                                  ('beside.c', 'int beside;'))]
    beside = os.path.join(directory, 'beside')
    os.mkdir(beside)
    for command in (
            [*flags, '-shared', '-fPIC', sources[0], '-o', 'libmarks_wrapper.so',
             '-Wl,--enable-new-dtags,-rpath,' + beside],
            [sources[1], '-o', 'wrapped', directory + '/libmarks_wrapper.so'],
            ['-shared', '-fPIC', sources[2], '-o', beside + '/libmarks_beside.so']):
        subprocess.run([family, '-O2', '-w', *command], check=True, cwd=directory)
    program = os.path.join(directory, 'wrapped')
    if mark == 'patch':
        variables = {'SHIM_PATCH': 'libmarks_wrapper.so'}
    alone = run([program])
    expect(alone.stdout.endswith(' 1\n'), alone.stdout)
    result = record([program], **variables)
    expect_equal((result.status, result.stdout), (alone.status, alone.stdout),
                 'the program')
    calls = shimtest.calls_of(shimtest.json_of(result.output))
    expect_equal({name: calls.get(name) for name in ('next', 'next_version', 'nearby')},
                 {'next': 1, 'next_version': 1, 'nearby': 1}, 'the calls')


for mark, families in FAMILIES.items():
    for family in families:
        add_test('a_function_may_end_with_a_jump_to_dlsym_%s_%s' % (mark, family),
                 lambda m=mark, f=family: a_function_may_end_with_a_jump_to_dlsym(m, f))


PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1


def refuse_executable_memory(command):
    """Runs it where the system lets no memory become executable."""
    prctl = ctypes.CDLL(None).prctl
    tried = subprocess.run(['true'], preexec_fn=lambda: os._exit(
        prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0))
    if tried.returncode != 0:
        raise shimtest.Skipped('the kernel has no PR_SET_MDWE')
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60,
        cwd=shimtest.new_directory('cwd'),
        preexec_fn=lambda: prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0))


def calls_are_recorded_where_no_memory_becomes_executable(mark, family):
    """As under systemd's MemoryDenyWriteExecute."""
    path = arguments.write_text(
        os.path.join(shimtest.fixtures, 'marks_local.c'), [LOCAL])
    flags, _ = arguments.MARKS.get(mark, ([], {}))
    options = {'patch': ['--patch', 'program'],
               'libcalls': ['--libcalls']}.get(mark, [])
    program = compile(path, family, '-O2', flags, 'marks_local_' + mark,
                      instrument=False)
    output = os.path.join(shimtest.new_directory('recording'), 'r')
    done = refuse_executable_memory(
        [os.path.join(os.environ['SHIM_BUILD'], 'profrun'), '-q', '-o', output,
         '-p', 'calltree:counts', *options, program])
    expect_equal((done.returncode, done.stdout), (0, '20 66.5 20 8\n'), 'program')
    calls = shimtest.calls_of(shimtest.json_of(output))
    wanted = {'printf': 1} if mark == 'libcalls' else {'shown': 1, 'used': 2}
    expect_equal({name: calls.get(name) for name in wanted}, wanted, done.stderr)


for mark, families in dict(FAMILIES, libcalls=['gcc']).items():
    add_test('calls_are_recorded_where_no_memory_becomes_executable_' + mark,
             lambda m=mark, f=families[0]:
             calls_are_recorded_where_no_memory_becomes_executable(m, f))


if __name__ == '__main__':
    shimtest.main()
