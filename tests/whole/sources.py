#!/usr/bin/env python3
"""sources.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Marks of calls other than the compiler's hooks: XRay's sleds.
"""
import os

import installed
import shimtest
import trees
from shimtest import (PROGRAMS, add_test, calls_of, compile, difference,
                      expect, expect_counted, expect_equal, expect_truth, json_of, new_directory,
                      record, run, run_both, shim_report, test, tree_of)

# What must not be marked is written as attribute for the hooks.
XRAY = shimtest.XRAY + ['-Dno_instrument_function=xray_never_instrument']

INCLUDE = ['-I', os.path.join(PROGRAMS, '..', '..', 'include')]

# Functions that must be inlined have hooks, but no sleds.
INLINED = ['exceptions_inlined.cc', 'longjmp_inlined.c']


def xray(source, optimize='-O0', flags=(), name=None, libraries=()):
    """The path of the program, compiled with sleds."""
    name = name or os.path.splitext(os.path.basename(source))[0]
    return compile(source, 'clang', optimize, XRAY + list(flags),
                   name + '-xray', instrument=False, libraries=libraries)


def without_made(tree):
    """The tree without functions that the compiler has made for constructors, which have
    sleds, but no hooks."""
    kept = {}
    for path, calls in tree.items():
        names = path.split(';')
        made = [n.startswith(('_GLOBAL__', '__cxx_global_')) for n in names]
        if made[-1]:
            continue
        path = ';'.join(n for n, m in zip(names, made) if not m)
        kept[path] = kept.get(path, 0) + calls
    return kept


def check_tree(source, wanted, profile):
    """The tree is that of the hooks, whose functions are marked at the same places."""
    program = xray(source, flags=wanted.flags)
    result = run_both([program] + wanted.arguments, profile,
                      without_counts=wanted.cut or wanted.others)
    tree = without_made(tree_of(result.output, wanted.depth))
    about = json_of(result.output)
    if wanted.cut:
        tree = {path: n for path, n in tree.items()
                if wanted.cut not in path.split(';')}
    if wanted.others:
        tree = {path: n for path, n in tree.items() if path in wanted.tree}
    expect(tree == wanted.tree, 'the tree:\n' + difference(tree, wanted.tree))
    if '\ncalls ' in '\n' + result.stdout:
        expect_truth(result, calls_of(about))
    expect(about['lost'] == 0, 'lost: %s' % about['lost_causes'])


def add_trees():
    for number, source in enumerate(sorted(os.listdir(PROGRAMS))):
        if not source.endswith(('.c', '.cc')) or source in INLINED:
            continue
        wanted = trees.Wanted(source, 'clang', '-O0')
        if wanted.tree is None:
            continue
        for profile in shimtest.some(['calltree', 'trace', 'calltree:counts'], 3, number):
            add_test('xray %s %s, %s' % (source.split('.')[0], profile,
                                         wanted.claim),
                     lambda source=source, wanted=wanted, profile=profile:
                     check_tree(source, wanted, profile))


# --- more than one image ---

@test
def a_library_is_marked_however_it_is_loaded():
    library = xray('source_library.c', '-O2', ['-shared', '-fPIC'],
                   'libsource.so')
    program = compile('source_opens.c', 'clang', '-O2', instrument=False,
                      libraries=['-ldl'])
    wanted = {'library_sum': 3, 'library_sum;library_leaf': 15}
    result = record([program, library])
    expect_equal(result.stdout, '45\n', 'what it prints')
    expect_equal(tree_of(result.output), wanted, 'opened and closed')
    # It is there already when the program opens it.
    result = record([program, library],
                    LD_PRELOAD='%s:%s' % (shimtest.library, library))
    expect_equal(tree_of(result.output), wanted, 'linked')


@test
def a_library_that_comes_and_goes_leaves_no_memory_behind():
    library = xray('source_library.c', '-O2', ['-shared', '-fPIC'],
                   'libsource.so')
    program = compile('source_reopened.c', 'clang', '-O2', instrument=False,
                      libraries=['-ldl'])
    result = record([program, library], 'calltree:counts')
    # Its marks alone would take 300 pages.
    expect(int(result.stdout) < 600, result.stdout)
    expect_equal(calls_of(json_of(result.output)),
                 {'library_sum': 400, 'library_leaf': 2000}, 'calls')


@test
def hooks_and_sleds_make_one_tree():
    library = xray('source_library.c', '-O2', ['-shared', '-fPIC'],
                   'libsource.so')
    program = compile('source_opens.c', 'gcc', '-O0', libraries=['-ldl'])
    result = record([program, library])
    expect_equal(tree_of(result.output),
                 {'main': 1, 'main;library_sum': 3,
                  'main;library_sum;library_leaf': 15}, 'the tree')


@test
def a_function_with_hooks_and_sleds_is_recorded_once():
    program = compile('nesting.c', 'clang', '-O0', shimtest.XRAY, 'nesting-both')
    result = run_both([program])
    expect_truth(result, calls_of(json_of(result.output)))


# --- other users of the sleds ---

def asks(program):
    """What the program says of its functions, and what the log says."""
    output = new_directory('recording')
    done = run([program], output)
    return done.stdout, shim_report('info', output)


@test
def the_source_of_a_function_can_be_asked():
    sleds = xray('source_asked.c', '-O0', libraries=['-ldl'])
    hooks = compile('source_asked.c', 'clang', '-O0', libraries=['-ldl'])
    expect_equal(asks(sleds)[0], '0 2\n0 0\n', 'sleds')
    expect_equal(asks(hooks)[0], '0 1\n0 0\n', 'hooks')


@test
def info_says_which_marks_an_object_has():
    for program, wanted in ((xray('source_asked.c', '-O0', libraries=['-ldl']),
                             '(XRay: 2 functions, 4 sleds)'),
                            (compile('source_asked.c', 'clang', '-O0',
                                     libraries=['-ldl']),
                             '(-finstrument-functions)')):
        about = asks(program)[1]
        lines = [line for line in about.split('\n')
                 if os.path.basename(program) in line and wanted in line]
        expect_equal(len(lines), 1, about)


@test
def llvms_runtime_may_be_linked_in():
    program = compile('nesting.c', 'clang', '-O0',
                      [flag for flag in XRAY if 'link' not in flag],
                      'nesting-runtime', instrument=False)
    result = run_both([program])
    expect_truth(result, calls_of(json_of(result.output)))


@test
def sleds_that_another_tool_has_switched_on_are_left_alone():
    program = compile('nesting.c', 'clang', '-O0',
                      [flag for flag in XRAY if 'link' not in flag],
                      'nesting-runtime', instrument=False)
    output = new_directory('recording')
    there = new_directory('xray')
    result = run([program], output, directory=there,
                 XRAY_OPTIONS='patch_premain=true xray_mode=xray-basic')
    expect_equal(result.status, 0, 'status')
    expect_equal(result.stdout, run([program]).stdout, 'what it prints')
    expect('another tool has switched on its XRay sleds'
           in log_of(output), 'the log')


def log_of(output):
    """What the logs of all processes of a recording say."""
    text = ''
    for folder, _, files in os.walk(output):
        if 'meta' in files:
            text += open(os.path.join(folder, 'meta'),
                         errors='replace').read()
    return text


# --- profilers ---

def counted_by(module, program):
    """The lines that a module of tests/modules writes."""
    path = os.path.join(new_directory('module'), 'out')
    run([program], new_directory('recording'), '%s:%s' % (module, path),
        SHIM_MODULE_PATH=installed.installed().modules)
    return open(path).read()


@test
def modules_get_the_same_calls():
    sleds, hooks = xray('nesting.c'), compile('nesting.c', 'clang')
    for module in 'elt3_slow', 'elt3_fast', 'elt2', 'calls':
        expect_equal(counted_by(module, sleds), counted_by(module, hooks),
                     module)


@test
def hooks_of_modules_have_an_aligned_stack():
    text = counted_by('elt3_slow', xray('preserved.c', '-O2', INCLUDE))
    expect_equal(text, 'enters 12\nleaves 12\nframes 12\nfailures 0\n', 'hooks')


@test
def several_profilers_share_sleds():
    result = record([xray('nesting.c')], 'calltree;trace;memory;locks')
    wanted = record([compile('nesting.c', 'clang')],
                    'calltree;trace;memory;locks')
    expect_equal(tree_of(result.output), tree_of(wanted.output), 'the tree')


@test
def filters_switch_sleds_off():
    for spec in 'M:leaf', 'all,-M:leaf':
        trees_of = []
        for program in (xray('nesting.c'), compile('nesting.c', 'clang')):
            output = record([program], 'calltree', SHIM_FILTER=spec).output
            trees_of.append(tree_of(output))
        expect_equal(trees_of[0], trees_of[1], spec)
        expect(', 0 of them off' not in shim_report('info', output), 'off')


@test
def a_budget_switches_sleds_off():
    result = record([xray('budgeted.c', '-O2', libraries=['-ldl', '-lm'])],
                    'calltree', SHIM_BUDGET='10')
    about = shim_report('info', result.output)
    expect('functions switched off or counted: 0' not in about, about)


@test
def sleds_count_calls_for_a_budget():
    """What is counted and not switched off stays exact, in threads and in a child."""
    program = xray('calls_short.c', '-O2', ['-pthread'])
    expect_counted(program)


@test
def registers_that_a_convention_preserves_are_kept():
    program = xray('preserved.c', '-O2', INCLUDE)
    for profile in ['calltree', 'calltree:counts', 'calltree:exact', 'trace',
                    'calltree;exceptions:unwind']:
        result = record([program], profile)
        expect_equal((result.status, result.stdout), (0, 'kept\ncalls 12\n'),
                     profile)


@test
def sleds_before_conditional_jumps_keep_the_flags():
    """clang 14 makes them with -Os.  Each function calls another one in half of its calls."""
    wanted = run([compile('conditional.c', 'clang', '-Os', instrument=False),
                  '100000']).stdout
    program = xray('conditional.c', '-Os', INCLUDE)
    elt3 = 'elt3_slow:%s/out' % new_directory('module')
    for profile in ('calltree', 'calltree:counts', 'calltree:exact', 'trace', elt3,
                    'calltree;trace;memory', 'calltree;exceptions:unwind',
                    'calltree:budget=1'):
        result = record([program, '100000'], profile)
        expect_equal((result.status, result.stdout), (0, wanted), profile)
        if profile == elt3 or 'budget' in profile:
            continue
        expect_equal(calls_of(json_of(result.output))['equal'], 100000, profile)
        text = shim_report('report', result.output)
        expect('leaves had no call' not in text, text)
    for spec in 'M:e*', '-M:twice', '-M:less':
        result = record([program, '100000'], 'calltree', SHIM_FILTER=spec)
        expect_equal((result.status, result.stdout), (0, wanted), spec)


@test
def hooks_may_use_all_vector_registers():
    result = record([xray('preserved.c', '-O2', INCLUDE), 'hooks'], 'none')
    expect_equal((result.status, result.stdout),
                 (0, 'kept\ncalls 12\nhooks 24\n'), 'kept')


# --- switching ---

@test
def sleds_are_switched_while_threads_run():
    program = xray('source_toggled.c', '-O2', libraries=['-ldl'])
    wanted = run([program]).stdout
    for profile in 'calltree', 'elt3_slow:%s/out' % new_directory('module'):
        result = run([program, '2000'], new_directory('recording'), profile,
                     SHIM_MODULE_PATH=installed.installed().modules)
        expect_equal((result.status, result.stdout), (0, wanted), profile)


@test
def sleds_that_were_on_do_not_jump_while_they_are_off():
    """A jump that is taken costs more than an instruction without an effect."""
    program = xray('source_off.c', '-O2', libraries=['-ldl'])
    expect_equal(run([program]).stdout, 'eb\neb\neb\n', 'as compiled')
    result = record([program], 'calltree')
    expect_equal(result.stdout, 'e8\na9\ne8\n', 'the first byte')
    for profile in 'none', 'sampling':
        result = record([program], profile)
        expect_equal(result.stdout, '66\n66\n66\n', profile)


@test
def a_program_may_switch_its_sleds_itself():
    """By LLVM's runtime, while another thread runs them.  shim lets go of them."""
    program = compile('patched_by_llvm.cc', 'clang', '-O2',
                      [flag for flag in XRAY if 'link' not in flag] + ['-pthread'],
                      'patched-runtime', instrument=False)
    wanted = run([program]).stdout
    expect_equal(wanted, 'seen 300\n', 'without shim')
    for profile in 'none', 'calltree', 'trace', 'calltree;memory':
        result = record([program], profile)
        expect_equal((result.status, result.stdout), (0, wanted), profile)
        expect(('changes its code' in log_of(result.output)) == (profile != 'none'),
               'the log of ' + profile)


@test
def sleds_behind_landing_pads_have_the_same_tree():
    program = xray('nesting.c', flags=['-fcf-protection=branch'],
                   name='nesting-branch')
    hooks = compile('nesting.c', 'clang')
    for profile in 'calltree:counts', 'calltree', 'calltree:exact', 'trace':
        expect_equal(tree_of(record([program], profile).output),
                     tree_of(record([hooks], profile).output), profile)
    for module in 'elt3_slow', 'elt3_fast':
        expect_equal(counted_by(module, program), counted_by(module, hooks),
                     module)


@test
def sleds_that_cannot_be_changed_are_told():
    """A system where memory cannot be made executable."""
    shimtest.need('gcc')
    program = xray('nesting.c')
    refuses = compile('refuses_code.c', 'gcc', '-O2', instrument=False)
    output = new_directory('recording')
    result = run([refuses, program], output)
    expect_equal(result.stdout, run([program]).stdout, 'what it prints')
    expect('calls of its marked functions are not recorded' in log_of(output),
           'the log')


if __name__ == '__main__':
    add_trees()
    shimtest.main()
