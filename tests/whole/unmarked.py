#!/usr/bin/env python3
"""unmarked.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Functions that no compiler has marked (SHIM_PATCH): every program of the tests, compiled
without any flag, does what it does without shim; its tree is that of the hooks.
"""
import json
import lzma
import os
import re
import shutil
import subprocess
import types

import shimtest
import trees
from shimtest import (PROGRAMS, Skipped, add_test, compile, difference, expect,
                      expect_equal, json_of, record, run, run_both, test,
                      tree_of)

# Functions that must be inlined have hooks, but no code of their own.
INLINED = ['exceptions_inlined.cc', 'longjmp_inlined.c']

PATCHED = re.compile(r'--patch: (\d+) of (\d+) functions of (\S+)')


def plain(source, family, optimize, flags=(), libraries=()):
    name = os.path.splitext(os.path.basename(source))[0] + '-plain'
    return compile(source, family, optimize, flags, name, instrument=False,
                   libraries=libraries)


def contract(tree, names):
    """The tree without functions that have no hooks."""
    kept = {}
    for path, calls in tree.items():
        parts = path.split(';')
        if parts[-1] in names:
            path = ';'.join(part for part in parts if part in names)
            kept[path] = kept.get(path, 0) + calls
    return kept


def check_tree(source, family, wanted):
    program = plain(source, family, '-O0', wanted.flags)
    result = run_both([program] + wanted.arguments, without_counts=True,
                      SHIM_PATCH='*')
    hooked = record([compile(source, family, '-O0', wanted.flags)] +
                    wanted.arguments)
    names = {part for path in [*tree_of(hooked.output), *wanted.tree]
             for part in path.split(';')}
    if wanted.cut:      # a handler that did not run there
        names.add(wanted.cut)
    tree = contract(tree_of(result.output, wanted.depth), names)
    if wanted.cut:
        tree = {path: n for path, n in tree.items()
                if wanted.cut not in path.split(';')}
    if wanted.others:
        tree = {path: n for path, n in tree.items() if path in wanted.tree}
    expect(tree == wanted.tree, 'the tree:\n' + difference(tree, wanted.tree))
    # Threads that reach a part of the address space at once may lose calls there.
    about = json_of(result.output)
    expect(about['lost'] == 0 or wanted.others,
           'lost: %s' % about['lost_causes'])


def check_same(source, family, wanted):
    program = plain(source, family, '-O2', wanted.flags)
    for profile in ['calltree', 'trace', 'calltree:counts;exceptions:unwind']:
        run_both([program] + wanted.arguments, profile, without_counts=True,
                 SHIM_PATCH='*')


# A check has one of the tests of each program, with one compiler.
def add_programs(family):
    for number, source in enumerate(sorted(os.listdir(PROGRAMS))):
        if not source.endswith(('.c', '.cc')):
            continue
        wanted = trees.Wanted(source, family, '-O0')
        if wanted.tree is None:
            continue
        name = source.split('.')[0]
        is_chosen = (family == 'gcc') == (number // 2 % 2 == 0)
        of_tree = number % 2 == 0 and source not in INLINED
        if source not in INLINED and (is_chosen and of_tree or shimtest.ALL):
            add_test('tree of %s, %s' % (name, family),
                     lambda source=source, wanted=wanted:
                     check_tree(source, family, wanted))
        if is_chosen and not of_tree or shimtest.ALL:
            add_test('same %s, %s' % (name, family),
                     lambda source=source, wanted=wanted:
                     check_same(source, family, wanted))


add_programs('gcc')
add_programs('clang')


def patched(result):
    """{file name: (patched, chosen)} as the log says."""
    return {os.path.basename(path): (int(some), int(every)) for some, every,
            path in PATCHED.findall(result.stderr)}


@test
def what_must_survive_other_returns_survives():
    for family in ['gcc', 'clang']:
        for optimize in ['-O0', '-O2']:
            program = compile('entries.cc', family, optimize, ['-rdynamic'],
                              'entries-plain', instrument=False)
            for profile in ['calltree', 'trace', 'calltree:exact']:
                alone = run([program])
                ours = record([program], profile, SHIM_PATCH='*')
                expect_equal((ours.status, ours.stdout, ours.stderr),
                             (alone.status, alone.stdout, alone.stderr),
                             '%s %s %s' % (family, optimize, profile))


@test
def a_list_chooses_functions():
    program = plain('nesting.c', 'gcc', '-O0')
    every = tree_of(record([program], SHIM_PATCH='*').output)
    names = {part for path in every for part in path.split(';')}
    expect('main' in names and len(names) > 2, str(names))
    some = tree_of(record([program], SHIM_PATCH='m?in').output)
    expect_equal(some, {'main': 1}, 'one')
    some = tree_of(record([program], SHIM_PATCH='*,-main').output)
    expect_equal({part for path in some for part in path.split(';')},
                 names - {'main'}, 'all but one')
    expect_equal(tree_of(record([program], SHIM_PATCH='*',
                                SHIM_FILTER='M:main').output),
                 {'main': 1}, 'with a filter')


@test
def libraries_that_shim_opens_for_itself_stay_as_they_are():
    """For arguments it opens libdw, which needs libelf, zlib and others."""
    program = compile('nesting.c', 'gcc', '-O0', ['-g'], 'nesting-debug',
                      instrument=False)
    for more in {'SHIM_PATCH': '*'}, {'SHIM_LIBCALLS': '*'}:
        result = record([program], 'trace:args=all', SHIM_VERBOSE='1', **more)
        mine = program if 'SHIM_PATCH' in more else 'libc.so.6'
        objects = {os.path.basename(f['object'])
                   for f in json_of(result.output)['functions']}
        expect_equal(objects, {os.path.basename(mine)}, str(more))
        expect('libelf' not in result.stderr, result.stderr)


@test
def the_c_library_can_be_patched_while_shim_reads_debug_information():
    """For that shim opens a library, and looks at the images with its lock held."""
    program = compile('nesting.c', 'gcc', '-O0', ['-g'], 'nesting-debug',
                      instrument=False)
    alone = run([program])
    for profile in 'coverage', 'trace:args=all', 'calltree:by=main/argc':
        result = record([program], profile, SHIM_PATCH='*,libc.so.6')
        expect_equal((result.status, result.stdout, result.stderr),
                     (alone.status, alone.stdout, alone.stderr), profile)


@test
def shim_does_not_wait_for_the_library_that_it_is_opening():
    """AddressSanitizer has marks in what the loader calls meanwhile, thousands of times: each
    waited a second for its own thread."""
    program = compile('nesting.c', 'clang', '-O1', ['-g', '-fsanitize=address'],
                      'nesting-asan', instrument=False)
    result = record([program], 'trace:args=all', timeout=30, SHIM_PATCH='*')
    expect_equal((result.status, result.stdout), (0, run([program]).stdout),
                 'what it does')


@test
def a_wrong_list_is_said_and_nothing_is_patched():
    program = plain('nesting.c', 'gcc', '-O0')
    result = record([program], SHIM_PATCH='F:nesting.c', SHIM_VERBOSE='1')
    expect_equal(result.status, 0, 'status')
    expect("'F:nesting.c' is not an item" in result.stderr, result.stderr)
    expect_equal(tree_of(result.output), {}, 'the tree')


@test
def a_library_is_patched_however_it_is_loaded():
    library = plain('source_library.c', 'gcc', '-O0', ['-shared', '-fPIC'])
    program = plain('source_opens.c', 'gcc', '-O2', libraries=['-ldl'])
    wanted = {'library_sum': 3, 'library_sum;library_leaf': 15}
    for more in [{}, {'LD_PRELOAD': '%s:%s' % (shimtest.library, library)}]:
        result = record([program, library], SHIM_PATCH='library_*', **more)
        expect_equal(result.stdout, '45\n', 'what it prints')
        expect_equal(tree_of(result.output), wanted, 'the tree')


@test
def the_source_says_that_no_compiler_has_marked_the_function():
    program = plain('source_asked.c', 'gcc', '-O0', libraries=['-ldl'])
    result = record([program], SHIM_PATCH='*,-unmarked')
    expect_equal(result.stdout, '0 5\n0 0\n', 'the source')


@test
def hooks_and_functions_without_marks_make_one_tree():
    library = plain('source_library.c', 'gcc', '-O0', ['-shared', '-fPIC'])
    program = compile('source_opens.c', 'gcc', '-O0', libraries=['-ldl'])
    result = record([program, library], SHIM_PATCH='library_*')
    expect_equal(tree_of(result.output),
                 {'main': 1, 'main;library_sum': 3,
                  'main;library_sum;library_leaf': 15}, 'the tree')


@test
def what_cannot_be_moved_is_left_and_said():
    # However long the program's path is.
    program = os.path.join(shimtest.new_directory('long'), 'x' * 200, 'y' * 200)
    os.mkdir(os.path.dirname(program))
    shutil.copy(plain('unmovable.c', 'gcc', '-O2', ['-w', '-ldl']), program)
    alone = run([program])
    result = record([program], SHIM_PATCH='hard_*,easy', SHIM_VERBOSE='1')
    expect_equal((result.status, result.stdout), (alone.status, alone.stdout),
                 'what it does')
    expect_equal(set(tree_of(result.output)), {'easy'}, 'the tree')
    for reason in ['2 first block under 5 bytes', '1 a loop to the entry',
                   '3 jumps into the first bytes',
                   '4 uses its return address',
                   '1 a jump to it is no tail call',
                   '1 no unwind table of an ordinary call']:
        expect(reason in result.stderr, '%s: %s' % (reason, result.stderr))


@test
def jumps_to_the_thunks_of_retpolines_are_no_reason():
    # They return, or jump on, by a return address of their own.
    program = plain('unmovable.c', 'gcc', '-O2', ['-w', '-ldl'])
    thunks = plain('unmovable.c', 'gcc', '-O2', [
        '-w', '-ldl', '-fcf-protection=none', '-mindirect-branch=thunk',
        '-mfunction-return=thunk'])
    for each in program, thunks:
        result = record([each], SHIM_PATCH='easy')
        expect_equal(set(tree_of(result.output)), {'easy'}, each)


ALIASED = '''
#include <stdio.h>
volatile int count;
__attribute__((noinline)) int first(int x) { count += x; count *= 3; return x; }
int second(int) __attribute__((alias("first")));
__attribute__((noinline)) int other(int x) { count += x; count *= 5; return x; }
int main(void) { printf("%d\\n", first(1) + second(2) + other(3)); return 0; }
'''


@test
def an_item_may_be_any_name_of_a_function():
    source = os.path.join(shimtest.new_directory('aliased'), 'aliased.c')
    with open(source, 'w') as file:
        file.write(ALIASED)
    program = plain(source, 'gcc', '-O2')
    for patch, wanted in (('*,-first', {'main', 'other'}), ('*,-second', {'main', 'other'}),
                          ('second', {'first'}), ('-first,second', {'main', 'other', 'first'})):
        result = record([program], SHIM_PATCH=patch)
        expect_equal(set(shimtest.calls_of(shimtest.json_of(result.output))) -
                     {'_init', '_fini'}, wanted, patch)


@test
def a_function_is_left_if_one_that_is_not_chosen_gets_its_return_address():
    program = plain('unmovable.c', 'gcc', '-O2', ['-w', '-ldl'])
    alone = run([program])
    result = record([program], SHIM_PATCH='hard_passes_on,easy', SHIM_VERBOSE='1')
    expect_equal((result.status, result.stdout), (alone.status, alone.stdout),
                 'what it does')
    expect_equal(set(tree_of(result.output)), {'easy'}, 'the tree')


@test
def setjmp_of_the_patched_c_library_keeps_the_place_of_its_caller():
    # It ends with a jump to the function that stores the return address.
    program = plain('longjmp.c', 'gcc', '-O2')
    alone = run([program])
    result = record([program], SHIM_PATCH='*,libc.so.6', SHIM_VERBOSE='1')
    expect_equal((result.status, result.stdout), (alone.status, alone.stdout),
                 'what it does')
    text = doctor('--patch', 'libc.so.6', program)
    for name in 'setjmp', '_setjmp':
        expect('\nleft     %s: uses its return address\n' % name in text, name)


# clang's outliner moves instructions that functions share into functions of their own.
SHARING = '''
#include <stdio.h>
struct numbers { long a, b, c, d; int e, f; };
volatile struct numbers last;
#define SHARES(name, op) \\
__attribute__((noinline)) long name(struct numbers *p, long x, long y) \\
{ \\
	p->a = x, p->b = y, p->c = x + y, p->d = x - y; \\
	last.a = x, last.b = y; \\
	if (p->e < p->f) \\
		return x op y; \\
	p->c = x; \\
	return last.e; \\
}
SHARES(first, +) SHARES(second, -) SHARES(third, *) SHARES(fourth, |)
int main(void)
{
	struct numbers n = { 0 };
	long sum = 0;

	for (long i = 0; i < 100; i++) {
		n.e = i % 3, n.f = i % 2 + 1;
		sum += first(&n, i, sum) + second(&n, sum, i) + third(&n, i, i) +
		       fourth(&n, sum, 3);
	}
	printf("%ld\\n", sum);
}
'''


@test
def flags_may_pass_calls_of_instructions_that_functions_share():
    source = os.path.join(shimtest.scratch, 'sharing.c')
    with open(source, 'w') as file:
        file.write(SHARING)
    for optimize in '-O2', '-Oz':
        program = plain(source, 'clang', optimize, [
            '-fasynchronous-unwind-tables', '-mllvm', '-enable-machine-outliner=always'])
        alone = run([program])
        bare = os.path.join(shimtest.scratch, 'sharing' + optimize)
        subprocess.run(['strip', '-o', bare, program], check=True)
        for path in program, bare:
            result = record([path], SHIM_PATCH='*', SHIM_VERBOSE='1')
            expect_equal((result.status, result.stdout), (0, alone.stdout), path)
            expect('instructions that functions share' in result.stderr, result.stderr)
            names = set(shimtest.calls_of(json_of(result.output)))
            expect(path == bare or names == {'main', 'first', 'second', 'third', 'fourth'},
                   names)


@test
def callers_may_know_which_registers_a_function_leaves_alone():
    """clang's interprocedural register allocation."""
    program = plain('knowing.c', 'clang', '-O2', ['-mllvm', '-enable-ipra'])
    alone = run([program])
    for more in {}, {'SHIM_BUDGET': '10'}, {'SHIM_FILTER': 'all,-M:leaf'}:
        for profile in 'calltree:counts', 'calltree', 'calltree:exact', 'trace:args=all':
            if not more or profile == 'calltree':
                result = record([program], profile, SHIM_PATCH='*', **more)
                expect_equal((result.status, result.stdout), (0, alone.stdout),
                             '%s %s' % (profile, more))


GENERATES = r'''
#include <cstdio>

namespace v8 {
struct V8 {
	__attribute__((noinline, used))
	static void SetReturnAddressLocationResolver(unsigned long (*resolver)(unsigned long));
};
}
static unsigned long (*resolve)(unsigned long);
void v8::V8::SetReturnAddressLocationResolver(unsigned long (*resolver)(unsigned long))
{
	resolve = resolver;
}

extern "C" {
unsigned long stack;
extern char after_call[];
__attribute__((noinline)) int finds_caller(void)
{
	unsigned long at = stack - 8;

	if (resolve)
		at = resolve(at);
	return *(char **)at == after_call;
}
__attribute__((noinline)) int callee(void) { return finds_caller() + 1; }
int generated(void);
}
asm(".text\ngenerated: sub $8, %rsp\nmov %rsp, stack(%rip)\n"
    "call callee\nafter_call: add $8, %rsp\nret\n");

int main(void)
{
	printf("%d %d\n", generated(), generated());
	return 0;
}
'''


@test
def v8_is_told_where_return_addresses_are():
    source = shimtest.new_source('generates.cc', GENERATES)
    for family in 'gcc', 'clang':
        for marks in [], ['-fpatchable-function-entry=5'], ['-pg', '-mfentry']:
            if family == 'clang' and '-pg' in marks:
                marks = ['-pg']
            program = plain(source, family, '-O1', ['-no-pie', '-rdynamic', *marks])
            result = run_both([program], **({} if marks else {'SHIM_PATCH': '*'}))
            expect_equal(result.stdout, '2 2\n', (family, marks))
            expect_equal(tree_of(result.output).get('main;callee;finds_caller'), 2,
                         (family, marks))


@test
def the_library_of_java_stays_as_it_is():
    source = shimtest.new_source('jvm.c', 'int library_sum(int n) { return n * 3 + 1; }\n')
    program = plain('source_opens.c', 'gcc', '-O1', libraries=['-ldl'])
    for name in 'libjvm.so', 'libjvm2.so':
        library = os.path.join(os.path.dirname(source), name)
        subprocess.run(['gcc', '-O1', '-shared', '-fPIC', source, '-o', library],
                       check=True)
        result = record([program, library], SHIM_PATCH='library_sum', SHIM_VERBOSE='1')
        expect_equal((result.status, result.stdout), (0, '48\n'), 'what it does')
        stays = name == 'libjvm.so'
        expect_equal(tree_of(result.output), {} if stays else {'library_sum': 3}, name)
        expect_equal('libjvm.so stay as they are: the Java virtual machine' in result.stderr,
                     stays, result.stderr)


@test
def functions_of_ocaml_stay_as_they_are():
    source = shimtest.new_source('caml.c', '''
#define FUNCTION(name, calls) __attribute__((noinline)) int name(int x) \\
{ volatile int y = calls; return y + 1; }
FUNCTION(caml_alloc_shr, x)
FUNCTION(caml_apply2, caml_alloc_shr(x))
FUNCTION(camlMain__f_12, caml_apply2(x))
FUNCTION(camlike, camlMain__f_12(x))
int main(void) { return camlike(0) != 4; }
''')
    program = plain(source, 'gcc', '-O1')
    result = record([program], SHIM_PATCH='program', SHIM_VERBOSE='1')
    expect_equal((result.status, tree_of(result.output)),
                 (0, {'main': 1, 'main;camlike': 1, 'main;camlike;caml_alloc_shr': 1}),
                 'the tree')
    expect("2 OCaml's, whose stack its collector reads" in result.stderr, result.stderr)


@test
def no_page_need_be_between_two_parts_of_the_code():
    source = shimtest.new_source('parts.c', '''
__attribute__((noinline, section(".far"))) int far(int x) { return x * x + 1; }
__attribute__((noinline)) int near(int x) { return far(x) - 1; }
int main(void) { return near(3) != 9; }
''')
    for family in 'gcc', 'clang':
        program = plain(source, family, '-O1', ['-no-pie', '-Wl,-z,max-page-size=4096',
                                                '-Wl,--section-start=.far=0x408000'])
        result = run_both([program], SHIM_PATCH='main,near,far')
        expect_equal(tree_of(result.output), {'main': 1, 'main;near': 1, 'main;near;far': 1},
                     family)


@test
def a_library_may_have_one_unwind_table_or_none():
    source = os.path.join(shimtest.scratch, 'alone.c')
    with open(source, 'w') as file:
        file.write('int library_sum(int n)\n'
                   '{ volatile int sum = n; return sum * 3 + 1; }\n')
    program = plain('source_opens.c', 'gcc', '-O1', libraries=['-ldl'])
    for flags, tree, said in [
            ([], {'library_sum': 3}, '1 of 1 functions'),
            (['-fno-asynchronous-unwind-tables'], {},
             '1 no unwind table of an ordinary call')]:
        library = source[:-2] + '.so'
        subprocess.run(['gcc', '-O1', '-shared', '-fPIC', '-nostdlib', *flags,
                        source, '-o', library], check=True)
        result = record([program, library], SHIM_PATCH='library_sum',
                        SHIM_VERBOSE='1')
        expect_equal((result.status, result.stdout), (0, '48\n'),
                     'what it does')
        expect_equal(tree_of(result.output), tree, 'the tree')
        expect(said in result.stderr and 'stay as they are' not in result.stderr,
               result.stderr)


@test
def samples_in_moved_instructions_have_their_function_and_its_callers():
    program = plain('moved.c', 'gcc', '-O2')
    output = record([program], 'calltree:counts;sampling',
                    SHIM_PATCH='*').output
    stacks = {}
    for line in shimtest.shim_report('export', 'folded', output, '--value',
                                     'samples').splitlines():
        path, samples = line.rsplit(' ', 1)
        stacks[path] = stacks.get(path, 0) + float(samples)
    whole = sum(n for path, n in stacks.items()
                if re.search(r';main;middle[^;]*;slow$', path))
    inside = sum(n for path, n in stacks.items()
                 if path.split(';')[-1] in ('slow', '[unknown code]'))
    expect(inside > 20 and whole > 0.98 * inside, str(stacks))


LARGE = r'''
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

static volatile unsigned long sum;

__attribute__((noinline)) static void compute(unsigned long number)
{
	for (int i = 0; i < 1000; i++)
		sum += number * i;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW))
			puts(dlerror());
	for (clock_t end = clock() + CLOCKS_PER_SEC * 3 / 10; clock() < end;)
		compute(sum);
	return 0;
}
'''


@test
def changing_the_code_of_libraries_is_no_time_of_hooks():
    """A budget learns the cost of calls from it, and the report says it."""
    source = shimtest.new_source('large.c', ''.join(
        'int large%d(int a) { return a %% 7 * a + %d; }\n' % (i, i) for i in range(4000)))
    library = compile(source, 'gcc', '-O1', ['-shared', '-fPIC', '-g0'], instrument=False,
                      name='large.so')
    program = compile(shimtest.new_source('opens_large.c', LARGE), 'gcc', '-O1',
                      instrument=False)
    output = record([program, library], 'calltree', SHIM_PATCH='*',
                    SHIM_BUDGET='10').output
    budget = json_of(output)['budget']
    expect(budget['images_ns'] > 10e6, budget)
    expect(budget['hooks_ns'] < budget['images_ns'] / 2, budget)
    expect(budget['time_ns'] > 200e6, budget)
    text = shimtest.shim_report('report', output)
    expect('looking at libraries and changing their code took' in text, text)


@test
def backtraces_pass_moved_instructions_that_fault():
    for family in 'gcc', 'clang':
        program = plain('faults.c', family, '-O1', ['-rdynamic'])
        result = run_both([program], without_counts=True, SHIM_PATCH='*')
        expect_equal(result.stdout.count('loads+0'), 8, result.stdout)
        for name in 'pushes', 'aligns':
            expect_equal(len(re.findall(r' %s\+\d+ try_it\+\d+ main\+' % name,
                                        result.stdout)), 2, result.stdout)


@test
def gdb_finds_the_callers_of_patched_functions():
    if not shutil.which('gdb'):
        raise Skipped('no gdb')
    program = plain('faults.c', 'gcc', '-O1', ['-rdynamic'])

    def stack(**more):
        done = subprocess.run(
            ['gdb', '-nx', '-batch', '-ex', 'set startup-with-shell off',
             *[word for name, value in more.items()
               for word in ('-ex', 'set environment %s %s' % (name, value))],
             '-ex', 'run', '-ex', 'continue', '-ex', 'backtrace', program],
            env=shimtest.environment(), stdin=subprocess.DEVNULL, timeout=300,
            capture_output=True, text=True)
        return re.findall(r'^#\d+ .*?(?:in )?(\S+) \(', done.stdout, re.M)

    alone = stack()
    ours = stack(LD_PRELOAD=shimtest.library, SHIM_PATCH='*',
                 SHIM_DIR=shimtest.new_directory('gdb'))
    expect_equal(alone, ['loads', 'handler', 'loads', 'try_it', 'main'],
                 'alone')
    expect('shim_entry' in ours, str(ours))
    # The first instructions of a function have no name where they are.
    expect_equal([name for name in ours if name not in ('shim_entry', '??')],
                 ['handler', 'try_it', 'main'], 'with shim')


def stripped(program, *flags):
    """Without symbols, except in a separate file."""
    path = program + '-stripped' + ''.join(flags)
    debug = path + '.debug'
    for command in (['objcopy', '--only-keep-debug', program, debug],
                    ['objcopy', '--strip-all', *flags,
                     '--add-gnu-debuglink=' + debug, program, path]):
        subprocess.run(command, check=True)
    return path, debug


@test
def symbols_of_a_stripped_program_are_in_its_debug_file():
    program = plain('nesting.c', 'gcc', '-O0')
    wanted = tree_of(record([program], SHIM_PATCH='*').output)
    some = tree_of(record([program], SHIM_PATCH='m*').output)
    for flags in [], ['--remove-section=.note.gnu.build-id']:
        path, debug = stripped(program, *flags)
        output = record([path], SHIM_PATCH='m*').output
        if not flags:  # The report wants the build-id.
            expect_equal(tree_of(output), some, 'the tree')
        expect_equal(json_of(output)['calls'], sum(some.values()), 'calls')
        # The file of another program.
        with open(debug, 'r+b') as file:
            shutil.copyfileobj(open(plain('nesting.c', 'gcc', '-O1'), 'rb'),
                               file)
        expect_equal(tree_of(record([path], SHIM_PATCH='m*').output), {},
                     'another file')
        os.remove(debug)
        expect_equal(json_of(record([path], SHIM_PATCH='*').output)['calls'],
                     sum(wanted.values()), 'calls by unwind tables')


def with_inner_symbols(program, change=lambda data: data):
    """Stripped; .gnu_debugdata has the symbols that are not in .dynsym."""
    path, inner, dynamic = [program + '-inner' + end
                            for end in ('', '.mini', '.dynamic')]

    def names(*flags):
        done = subprocess.run(['nm', '--defined-only', '--format=posix', *flags,
                               program], check=True, capture_output=True,
                              text=True)
        return {line.split()[0] for line in done.stdout.splitlines()
                if line.split()[1] in 'tT'}

    with open(dynamic, 'w') as file:
        file.write('\n'.join(names() - names('-D')))
    subprocess.run(['objcopy', '-S', '--keep-symbols=' + dynamic, program,
                    inner], check=True)
    with open(inner, 'rb') as file:
        packed = change(lzma.compress(file.read()))
    with open(inner, 'wb') as file:
        file.write(packed)
    subprocess.run(['objcopy', '--strip-all', '--add-section',
                    '.gnu_debugdata=' + inner, program, path], check=True)
    return path


@test
def symbols_of_a_stripped_program_may_be_inside_of_it():
    for flags in ['-O0'], ['-O0', '-rdynamic', '-Wl,-E']:
        program = plain('nesting.c', 'gcc', '-O0', flags)
        wanted = {text: tree_of(record([program], SHIM_PATCH=text).output)
                  for text in ('m*', '*,-main')}
        expect(len(wanted['*,-main']) > 2, str(wanted))
        for text, tree in wanted.items():
            path = with_inner_symbols(program)
            expect_equal(tree_of(record([path], SHIM_PATCH=text).output), tree,
                         '%s %s' % (flags, text))
        for change in lambda data: data[:len(data) // 2], \
                lambda data: data[:99] + bytes(99) + data[198:]:
            path = with_inner_symbols(program, change)
            result = record([path], SHIM_PATCH='*')
            expect_equal(result.stdout, run([program]).stdout, 'what it prints')


PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')


def doctor(*words, status=0):
    done = subprocess.run([PROFRUN, 'doctor', *words], capture_output=True,
                          text=True, timeout=120,
                          cwd=shimtest.new_directory('doctor'),
                          env=shimtest.environment())
    expect_equal(done.returncode, status, done.stdout + done.stderr)
    return done.stdout


@test
def the_doctor_lists_what_will_be_patched_and_why_not():
    program = plain('unmovable.c', 'gcc', '-O2', ['-w', '-ldl'])
    logged = record([program], SHIM_PATCH='*', SHIM_VERBOSE='1').stderr
    told = json.loads(doctor('--json', '--patch', '*', program))
    mine, = [o for o in told['patch'] if o['object'] == program]
    expect_equal(patched(types.SimpleNamespace(stderr=logged))
                 [os.path.basename(program)],
                 (mine['patched'], mine['patched'] + mine['left']), 'counts')
    reasons = {f['name']: f['reason'] for f in mine['functions']}
    expect_equal(reasons['easy'], None, 'easy')
    expect_equal(sum(f['patched'] for f in mine['functions']), mine['patched'],
                 'patched')
    for reason, count in ('a loop to the entry', 1), \
            ('jumps into the first bytes', 3), ('uses its return address', 4):
        names = [n for n, why in reasons.items() if why == reason]
        expect_equal(len([n for n in names if n.startswith('hard_')]), count,
                     reason)
    text = doctor('--patch', 'hard_*', '--patch', 'easy', program)
    expect('\npatched  easy\n' in text, text)
    for name, reason in reasons.items():
        if name.startswith('hard_') and reason:
            expect('\nleft     %s: %s\n' % (name, reason) in text, text)
    # Its main did not run, and nothing is left behind.
    expect_equal(re.findall('^(?!patched|left|total|ok|warning|hint|/).+', text,
                            re.M), [], 'other lines')


@test
def the_doctor_says_why_there_is_no_list():
    program = plain('nesting.c', 'gcc', '-O0')
    text = doctor('--patch', 'no_such_function', program, status=1)
    expect('problem  --patch: ' in text, text)
    for words in ['--patch', 'F:nesting.c', program], ['--patch', '*'], \
            ['--patch']:
        doctor(*words, status=2)


@test
def nearly_all_functions_of_a_real_program_are_patched():
    lua = shutil.which('lua5.4') or shutil.which('sqlite3')
    if not lua:
        raise Skipped('no lua5.4 and no sqlite3')
    command = ([lua, '-e', 'print(#string.rep("x", 9))'] if 'lua' in lua else
               [lua, ':memory:', 'select 9'])
    result = record(command, SHIM_PATCH='*', SHIM_VERBOSE='1')
    expect_equal(result.stdout.strip(), '9', 'what it prints')
    for name, (some, every) in patched(result).items():
        expect(every < 50 or some >= 0.9 * every,
               '%s: %d of %d' % (name, some, every))


# Runs inside gdb: counts how often each address is reached, calls or jumps alike.
GDB = r'''
import gdb, json, os
asked = json.load(open(os.environ['ASKED']))
gdb.execute('set pagination off')
gdb.execute('set confirm off')
gdb.execute('starti')
entry, = [int(line.split()[-1], 16) for line in
          gdb.execute('info auxv', to_string=True).splitlines()
          if 'AT_ENTRY' in line]
gdb.execute('tbreak *%d' % entry)
gdb.execute('continue')
start = {}
for line in open('/proc/%d/maps' % gdb.selected_inferior().pid):
    words = line.split()
    if len(words) > 5:
        start.setdefault(words[5], int(words[0].split('-')[0], 16) -
                         int(words[2], 16))
found = []
for path, address in asked:
    found.append(gdb.Breakpoint('*%d' % (start[path] + address)))
    found[-1].ignore_count = 1 << 30
gdb.execute('continue')
json.dump([f.hit_count for f in found], open(os.environ['ASKED'], 'w'))
'''


def check_with_gdb(command, **more):
    """Every function's count is that of gdb's breakpoint at its beginning."""
    about = json_of(record(command, **more).output)
    expect_equal(about['lost'], 0, 'lost')
    places = {(os.path.realpath(f['object']), int(f['address'], 16)):
              f['calls'] for f in about['functions']}
    directory = shimtest.new_directory('gdb')
    script, asked = [os.path.join(directory, name)
                     for name in ('count.py', 'asked')]
    with open(script, 'w') as file:
        file.write(GDB)
    with open(asked, 'w') as file:
        json.dump(list(places), file)
    subprocess.run(['gdb', '-nx', '-batch', '-x', script, '--args', *command],
                   env=shimtest.environment(ASKED=asked), timeout=600,
                   stdin=subprocess.DEVNULL, capture_output=True, check=True)
    with open(asked) as file:
        counts = dict(zip(places, json.load(file)))
    wrong = {place: (places[place], counts[place]) for place in places
             if places[place] != counts[place]}
    expect(not wrong, 'ours, gdb: %s' % wrong)
    return len(places), about['calls']


@test
def counts_of_debians_programs_are_those_of_gdb():
    if not shutil.which('gdb'):
        raise Skipped('no gdb')
    small = os.path.join(shimtest.new_directory('small'), 'text')
    with open(small, 'w') as file:
        file.write(' '.join(str(i * i % 97) for i in range(800)))
    for words in ['gzip', '-k', '-c', small], \
            ['sqlite3', ':memory:', 'create table t(a,b);'
             'insert into t values(1,2),(3,4);'
             'select sum(a),b from t group by b;']:
        path = shutil.which(words[0])
        if path:
            functions, calls = check_with_gdb(
                [os.path.realpath(path)] + words[1:], SHIM_PATCH='*')
            expect(functions > 20 and calls > 1000, path)


@test
def counts_of_optimized_programs_are_those_of_gdb():
    if not shutil.which('gdb'):
        raise Skipped('no gdb')
    for family, other, flags, more in \
            ('gcc', 'longjmp.c', [], {'SHIM_PATCH': '*,-_*'}), \
            ('clang', 'tail_calls.c', ['-fpatchable-function-entry=5'], {}):
        for source in 'nesting.c', other:
            check_with_gdb([compile(source, family, '-O2', flags,
                                    'gdb-' + source.split('.')[0],
                                    instrument=False)], **more)


if __name__ == '__main__':
    shimtest.main()
