#!/usr/bin/env python3
"""library.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The library as a file: its exports and dependencies, its mappings, and the processes
that it gets into.
"""
import os
import platform
import re
import shutil
import subprocess

import shimtest
from shimtest import (BUILDS, Skipped, add_test, compile, environment, expect,
                      expect_equal, new_directory, run, run_both,
                      test, tree_of)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# All functions of libc that libshim may call; none that allocates, locks or prints may
# be on the path of a call. dladdr1 and dl_iterate_phdr: when an exception is first
# thrown, and in the program's own dlopen, which also calls dlerror. dlsym: where the
# loader's list of objects lacks libshim.  The others are called inside the program's
# own call of that function.
IMPORTS = {
    '__cxa_finalize', '__cxa_at_quick_exit',
    '__errno_location', '__gmon_start__', '_ITM_deregisterTMCloneTable',
    '_ITM_registerTMCloneTable', 'dladdr', 'dladdr1', 'dlerror', 'dlsym',
    'environ', '__environ', 'getauxval', 'gnu_get_libc_version', 'on_exit',
    'pthread_key_create', 'pthread_setspecific',
    'dl_iterate_phdr', 'pthread_getspecific', 'pthread_testcancel',
    # variables
    '__libc_single_threaded', '__libc_stack_end', '_r_debug',
    # for threads of shim (runtime threads), created on request
    'pthread_attr_init', 'pthread_attr_destroy', 'pthread_attr_setdetachstate',
    'pthread_attr_setstacksize',
}       # never __tls_get_addr: it may allocate
# Called in programs that have ThreadSanitizer, which defines them (shim/inspect/helper.c).
THREAD_SANITIZER = {'__tsan_init', 'AnnotateIgnoreWritesBegin', 'AnnotateIgnoreWritesEnd'}


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={
                              **environment(), 'LC_ALL': 'C'})
    text = done.stdout.decode(errors='replace')
    expect(done.returncode == 0, '%s:\n%s' % (' '.join(command), text))
    return text


def mapped_names():
    """The names in shim.map; a trailing * is a pattern."""
    text = open(os.path.join(TOP, 'shim', 'shim.map')).read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    part = re.search(r'global:(.*?)local:', text, re.S).group(1)
    return set(re.findall(r'[\w*]+', part))


def exported_names():
    names = {}
    for line in output_of('nm', '-D', '--defined-only',
                          shimtest.library).splitlines():
        name, _, version = line.split()[-1].partition('@')
        names[name] = version
    return names


@test
def exports_are_those_of_the_map():
    listed, exported = mapped_names(), set(exported_names())
    plain = {n for n in listed if not n.endswith('*')}
    expect_equal(plain - exported, set(), 'in the map and not exported')
    others = {n for n in exported - plain if not n.startswith('shim_')}
    expect_equal(others, set(), 'exported and not in the map')


@test
def exports_have_no_version():
    versions = {n: v for n, v in exported_names().items() if v}
    expect_equal(versions, {}, 'versions')


@test
def nothing_is_imported_that_allocates_locks_or_prints():
    imports = {line.split()[-1].partition('@')[0] for line in output_of(
        'nm', '-D', '--undefined-only', shimtest.library).splitlines()}
    expect_equal(imports - IMPORTS - THREAD_SANITIZER, set(), 'imports')


@test
def libc_is_all_it_needs():
    needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', output_of(
        'readelf', '-dW', shimtest.library)))
    expect(needed <= {'libc.so.6', 'ld-linux-x86-64.so.2'}, str(needed))


@test
def it_is_bound_at_once_and_its_data_read_only():
    dynamic = output_of('readelf', '-dW', shimtest.library)
    segments = output_of('readelf', '-lW', shimtest.library)
    expect(re.search(r'\(FLAGS_1\).*\bNOW\b', dynamic), 'no -z now')
    expect(re.search(r'\(FLAGS_1\).*\bNODELETE\b', dynamic), 'no -z nodelete')
    expect('GNU_RELRO' in segments, 'no relro')
    expect('TEXTREL' not in dynamic, 'text relocations')
    expect('RPATH' not in dynamic and 'RUNPATH' not in dynamic, 'a run path')
    expect(re.search(r'GNU_STACK.* RW ', segments), 'an executable stack')
    expect(not re.search(r'LOAD.* RWE ', segments),
           'a segment that is writable and executable')


@test
def its_thread_data_is_small_and_reached_without_a_call():
    segments = output_of('readelf', '-lW', shimtest.library)
    size = int(re.search(r'^\s*TLS\s+(\S+\s+){4}(0x\w+)', segments,
                         re.M).group(2), 16)
    expect(size <= 512, '%d bytes' % size)
    expect(re.search(r'\(FLAGS\).*STATIC_TLS', output_of(
        'readelf', '-dW', shimtest.library)), 'not initial-exec')


# The receivers of these are known: one profiler, or those in the plan of a call.
RAISED_TO_ONE = ['attach_complete', 'detach_succeeded', 'method_enter',
                 'method_exception_leave', 'method_leave', 'method_tail_call']


# Rows P-12, P-13: where an event may be raised, the code compares one counter with 0
# and branches before it does anything else.
@test
def an_event_without_subscribers_is_a_load_and_a_branch():
    if platform.machine() != 'x86_64':
        raise Skipped('written for x86-64')
    counters = re.search(r'^(\w+) b events_counts$', output_of(
        'nm', shimtest.library), re.M)
    if not counters:
        raise Skipped('the library has no symbols')
    first = int(counters.group(1), 16)
    include = os.path.join(shimtest.PROGRAMS, '..', '..', 'include', 'shim')
    with open(os.path.join(include, 'events.def')) as file:
        names = re.findall(r'^SHIM_DEFINE_EVENT\((\w+)', file.read(), re.M)
    lines = output_of('objdump', '-d', '--no-show-raw-insn',
                      shimtest.library).splitlines()
    sites, wrong, function = {}, [], ''
    for number, line in enumerate(lines):
        if re.match(r'[0-9a-f]+ <', line):
            function = line
        found = re.search(r'# ([0-9a-f]+) <events_counts', line)
        if not found or re.search(r'\s(lock|lea)\s', line):   # the setters
            continue
        name = names[(int(found.group(1), 16) - first) // 4]
        # Perhaps it compares several at once; nothing is called before the decision.
        code = ' '.join(l.split('\t')[1].split()[0]
                        for l in lines[number:number + 9] if l.count('\t'))
        if not re.match(r'((?!call|jmp|ret|lock)\w+ )*?(j|set)(?!mp)\w+ ', code):
            wrong.append('%s: %s' % (name, code))
        sites.setdefault(function, set()).add(name)
    expect(not wrong, '\n'.join(wrong))
    # One function reads all counters: for `profrun ctl PID status`.
    # The setters look for the sole handle of an event.
    raised = set().union(*(s for f, s in sites.items() if len(s) < len(names) and
                           not re.search(r'<(shim_profiler_on_|find_sole_|remove_callbacks)',
                                         f)))
    expect_equal(sorted(set(names) - raised), RAISED_TO_ONE,
                 'events that are raised without a look')


# Row P-58: each event has a line in events.def and a call of RAISE.
@test
def a_new_event_is_one_line():
    top = os.path.join(shimtest.PROGRAMS, '..', '..')
    directory = new_directory('dummy')
    include = os.path.join(directory, 'include')
    shutil.copytree(os.path.join(top, 'include'), include)
    with open(os.path.join(include, 'shim', 'events.def'), 'a') as file:
        file.write('SHIM_DEFINE_EVENT(dummy, THREAD, ALWAYS, '
                   '(struct shim_profiler *, int number))\n')
    caller = os.path.join(directory, 'caller.c')
    with open(caller, 'w') as file:
        file.write('#include "runtime/events.h"\nvoid call(void);\n'
                   'void call(void) { RAISE(dummy, 7); }\n')
    module = os.path.join(directory, 'module.c')
    with open(module, 'w') as file:
        file.write('#include <shim/profiler.h>\n'
                   'static void on(struct shim_profiler *p, int n)\n'
                   '{ (void)p; (void)n; }\n'
                   'SHIM_PROFILER_MODULE(dummy)\n'
                   '{ shim_profiler_on_dummy(shim_profiler_create(0), on);\n'
                   '  return SHIM_OK; }\n')
    made = []
    for source in (os.path.join(top, 'shim', 'runtime', 'events.c'), caller, module):
        made.append(os.path.join(directory, os.path.basename(source) + '.o'))
        output_of('cc', '-std=gnu11', '-Wall', '-Wextra', '-Werror',
                  '-fvisibility=hidden', '-I', include,
                  '-I', os.path.join(top, 'shim'),
                  '-I', os.path.join(top, 'shim', 'arch', 'generic'),
                  '-c', source, '-o', made[-1])
    names = output_of('nm', *made)
    expect_equal(sorted(re.findall(r' ([TU]) shim_profiler_on_dummy$', names,
                                   re.M)), ['T', 'U'], 'the setter')


def check_no_writable_code(profile):
    program = compile('mapped.c')
    result = run([program], new_directory('maps'), profile)
    lines = [l for l in result.stdout.splitlines()
             if re.match(r'\S+ \S?wx', l)]
    expect_equal(lines, [], 'mappings that are writable and executable')
    expect('libshim' in result.stdout, 'we are not there')
    # Files opened for writing are mapped, and no descriptor stays open.
    expect('.calltree' in result.stdout, 'no file is mapped')


for profile in shimtest.PROFILES:
    add_test('no mapping is writable and executable (%s)' % profile,
             lambda profile=profile: check_no_writable_code(profile))


def check_bindings(family, optimize):
    """Programs refer to the hooks and to libc's names with libc's version; the loader
    must bind ours all the same."""
    program = compile('bound.c', family, optimize)
    wanted = {'__cyg_profile_func_enter', '__cyg_profile_func_exit',
              '__libc_start_main',
              '_setjmp', 'longjmp', '_exit', 'vfork', 'swapcontext',
              'makecontext', 'dlclose', 'abort', 'quick_exit', 'syscall',
              'prctl', 'clone'}
    result = run([program], new_directory('bindings'), LD_DEBUG='bindings',
                 LD_BIND_NOW='1')
    bound = set(re.findall(r'binding file %s \[0\] to %s \[0\]: normal symbol '
                           r"`(\w+)'" % (re.escape(program), re.escape(
                               shimtest.library)), result.stderr))
    used = {line.split()[-1].partition('@')[0] for line in output_of(
        'nm', '-D', '--undefined-only', program).splitlines()}
    expect('__cyg_profile_func_enter' in used, 'not instrumented')
    expect_equal((wanted & used) - bound, set(), 'bound elsewhere')
    expect(len(wanted & used) > 9, 'the program uses only %s' % (
        wanted & used))


for family, optimize in BUILDS:
    add_test('the hooks and what we stand in for are bound to us (%s %s)' %
             (family, optimize),
             lambda family=family, optimize=optimize:
             check_bindings(family, optimize))


# --- main ---

LINKED = {
    'PIE': ['-pie', '-fPIE'], 'no PIE': ['-no-pie', '-fno-pie'],
    'started as before glibc 2.34': ['-DOLD', '-nostartfiles'],
}


def begins(how, family='gcc', optimize='-O0'):
    if 'glibc' in how and platform.machine() != 'x86_64':
        raise Skipped('written for x86-64')
    return compile('begins.c', family, optimize, LINKED[how],
                   name='begins_' + how.replace(' ', '_'))


def check_start(how, family, optimize):
    program = begins(how, family, optimize)
    result = run_both([program, 'a b', ''])
    expect_equal(result.status, 43, 'status')
    expect_equal(tree_of(result.output), {'construct': 1, 'main': 1,
                                          'main;leaf': 1}, 'the tree')
    bindings = run([program], new_directory('start'), LD_DEBUG='bindings',
                   LD_BIND_NOW='1').stderr
    bound = re.search(r'binding file %s \[0\] to (\S+) \[0\]: normal symbol '
                      r"`__libc_start_main' \[(\S+)\]" % re.escape(program),
                      bindings)
    expect(bound, 'not bound')
    expect_equal(bound.group(1), shimtest.library, 'bound to')
    expect('before' not in how or bound.group(2) == 'GLIBC_2.2.5',
           'version ' + bound.group(2))


for how in LINKED:
    for family, optimize in BUILDS:
        add_test('main begins as without us (%s, %s %s)' % (
            how, family, optimize),
            lambda how=how, family=family, optimize=optimize:
            check_start(how, family, optimize))


@test
def main_is_known_to_have_begun_in_main_and_not_before():
    flag = re.search(r'^(\w+) b main_started$', output_of(
        'nm', shimtest.library), re.M)
    if not flag:
        raise Skipped('the library has no symbols')
    for how in LINKED:
        result = run([begins(how)], new_directory('main'),
                     FLAG='0x' + flag.group(1))
        expect_equal(re.findall(r'^flag in (\w+) (\d+)$', result.stdout, re.M),
                     [('constructor', '0'), ('main', '1')], how)


@test
def the_program_starts_when_its_own_dlsym_finds_no_start():
    if platform.machine() != 'x86_64':
        raise Skipped('written for x86-64')
    preload = '%s:%s' % (compile('no_next.c', flags=['-shared', '-fPIC'],
                                 name='libno_next.so', instrument=False),
                         shimtest.library)
    alone = run([begins('PIE')])
    for which in '', 'all':
        result = run([begins('PIE')], new_directory('no_next'),
                     LD_PRELOAD=preload, NO_NEXT=which)
        expect_equal(result.status, alone.status, 'status')
        expect_equal(result.stdout, alone.stdout, 'stdout')


@test
def a_program_without_relro_or_with_lazy_binding_is_recorded_as_well():
    for number, flags in enumerate((['-Wl,-z,norelro'], ['-Wl,-z,lazy'],
                                    ['-Wl,-z,now'], ['-fno-plt'],
                                    ['-no-pie', '-fno-pie'],
                                    ['-fcf-protection'],
                                    # Two segments share one page of the file.
                                    ['-fuse-ld=lld'])):
        if '-fuse-ld=lld' in flags and not shutil.which('ld.lld'):
            continue
        program = compile('nesting.c', flags=flags,
                          name='nesting%d' % number)
        output = new_directory('linked')
        expect_equal(run([program], output).status, 0, 'status')
        expect_equal(tree_of(output).get('main;a;b;c'), 6, ' '.join(flags))


# --- without a recording ---

def expect_passed_by(flags, **more):
    """No call of locks or memory reaches the library, which is preloaded."""
    program = compile('passed_by.c', name='passed_by' + ''.join(flags),
                      flags=flags)
    result = run_both([program], **more)
    expect_equal((result.status, result.stdout), (0, ''), flags)


@test
def no_call_of_a_lock_or_of_the_allocator_reaches_a_library_that_is_disabled():
    for flags in ['-Wl,-z,lazy'], ['-Wl,-z,now'], ['-Wl,-z,lazy', '-no-pie']:
        expect_passed_by(flags, SHIM_DISABLE='1')


@test
def no_call_of_a_lock_or_of_the_allocator_reaches_a_library_that_cannot_record():
    done = run([compile('passed_by.c')], '/proc/nowhere')
    expect_equal((done.status, done.stdout), (0, ''), 'no directory')
    expect('cannot make the recording' in done.stderr, done.stderr)


if __name__ == '__main__':
    shimtest.main()
