#!/usr/bin/env python3
"""events.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The events of threads, images, exceptions and processes: their order and number.  The
program must not notice that they are raised.
"""
import collections
import os
import re
import signal
import subprocess

import shimtest
from shimtest import (Failed, BUILDS, Skipped, add_test, compile, expect, expect_equal,
                      test)
from stream import stream_of

THREADS = 'stuv'


def of_threads(stream):
    """{thread: 'stuv'}: the events of each thread, in order."""
    threads = collections.OrderedDict()
    for event in stream.events:
        if event.kind in THREADS + 'w':
            threads[event.a] = threads.get(event.a, '') + event.kind
    return threads


# --- threads ---

def check_short(count, events=THREADS, **more):
    program = compile('short_threads.c', 'gcc', '-O2')
    stream = stream_of([program, str(count)], events, STREAM_MAX=str(
        count * 8), **more)
    threads = of_threads(stream)
    main, others = list(threads.items())[0], list(threads.items())[1:]
    expect_equal(main[1], ''.join(e for e in 's' if e in events) or main[1],
                 "main's thread")
    expect_equal(len(others), count, 'threads')
    wrong = [t for t in others
             if t[1] != ''.join(e for e in THREADS if e in events)]
    expect(not wrong, 'events of: %s' % wrong[:5])
    return stream


@test
def ten_thousand_short_threads_have_each_event_once_and_in_order():
    check_short(10000)


@test
def thread_events_come_to_a_subscriber_of_the_last_one():
    program = compile('short_threads.c', 'gcc', '-O2')
    stream = stream_of([program, '80'], 'v')
    expect_equal(stream.counts, {'v': 80}, 'events')


@test
def threads_without_subscribers_have_no_frame_of_shim():
    program = compile('thread_frames.c', 'gcc', '-O0')
    stream_of([program], 'i')
    stream = stream_of([program], 'suv')
    expect_equal(stream.counts['v'], 1, 'exited')


@test
def the_first_thread_starts_before_the_runtime_is_initialized():
    program = compile('short_threads.c', 'gcc', '-O2')
    kinds = [e.kind for e in stream_of([program, '0'], 'sib').events]
    expect_equal(kinds, ['s', 'i', 'b'], 'events')


@test
def callbacks_may_fork_and_spoil_errno():
    check_short(80, STREAM_FORK='1', STREAM_ERRNO='1')


@test
def threads_have_the_names_the_kernel_keeps():
    program = compile('names.c', 'gcc', '-O2')
    stream = stream_of([program], 'sw')
    started = [e.a for e in stream.events if e.kind == 's']
    names = [(e.a, e.text) for e in stream.events if e.kind == 'w']
    expect_equal(names, [(started[0], 'first'),
                         (started[1], 'a name that is '),
                         (started[1], 'other')], 'names')


@test
def no_call_is_open_when_a_thread_has_exited_and_none_comes_later():
    for source in ['thread_ends.c', 'leaving.c']:
        program = compile(source, 'gcc', '-O2')
        stream = stream_of([program], 'ELTXv', same=source == 'leaving.c')
        depth, gone = {}, set()
        for event in stream.events:
            expect(event.tid not in gone or event.kind not in 'ELTXv',
                   '%s: %s' % (source, event))
            if event.kind == 'v':
                expect_equal(depth.get(event.tid, 0), 0,
                             '%s: calls open at the end' % source)
                gone.add(event.tid)
            if event.kind in 'ELTX':
                depth[event.tid] = depth.get(event.tid, 0) + (
                    1 if event.kind == 'E' else -1)


# Row P-26.
@test
def no_lock_of_ours_is_held_while_a_callback_runs():
    for source, arguments, events, wanted, libraries in (
            ('short_threads.c', ['20'], 'ibestuv', 'ibestuv', []),
            ('names.c', [], 'w', 'w', []),
            ('opens.c', [plugin('alpha'), '3'], 'lmnop', 'lmno', ['-ldl']),
            ('clauses.cc', [], '!', '!', [])):
        program = compile(source, 'gcc', '-O2', libraries=libraries,
                          name=source.split('.')[0] + '_unlocked')
        counts = stream_of([program, *arguments], events, same=False,
                           STREAM_LOCK='1').counts
        expect('@' not in counts, '%s: %s' % (source, counts))
        expect(set(wanted) <= set(counts), '%s: %s' % (source, counts))


# --- images ---

def plugin(name, flags=()):
    return compile('plugin.c', 'gcc', '-O0', name='lib%s.so' % name,
                   flags=['-shared', '-fPIC', '-DPLUGIN=' + name, *flags])


def need_images():
    done = subprocess.run(['nm', '-D', '--defined-only', shimtest.library],
                          stdout=subprocess.PIPE)
    if b' shim_image_from_address' not in done.stdout:
        raise Skipped('images have no names yet')


@test
def a_failed_dlopen_raises_an_event_and_keeps_dlerror():
    program = compile('opens.c', 'gcc', '-O0', libraries=['-ldl'])
    stream = stream_of([program, plugin('alpha'), '1'], 'lm')
    lines = stream.lines()
    expect_equal(lines[:2], [
        'l /nope', 'm /nope: cannot open shared object file: '
        'No such file or directory'], 'the first')
    # $ORIGIN depends on the caller, so the test checks only the beginning of the path.
    expect_equal(lines[4:5], ['l $ORIGIN/nope'], lines)
    expect_equal(stream.counts['m'], 5, 'failures')


@test
def dlopen_searches_with_the_runpath_of_its_caller():
    plugin('alpha')
    here = os.path.dirname(plugin('alpha'))
    for flag in ['--enable-new-dtags', '--disable-new-dtags']:
        program = compile('opens.c', 'gcc', '-O0', libraries=['-ldl'],
                          name='opens' + flag, flags=[
                              '-Wl,%s,-rpath,%s' % (flag, here)])
        result = stream_of([program, 'libalpha.so', '1'], 'lmn').result
        expect('plugin: fine' in result.stdout, result.stdout)


@test
def dlopen_searches_with_the_rpath_of_the_object_that_loaded_its_caller():
    here = os.path.dirname(plugin('alpha'))
    shared = ['-shared', '-fPIC', '-O0']
    inner = compile('opens_nested.c', 'gcc', '-O0', name='libinner.so', libraries=['-ldl'],
                    flags=[*shared, '-DINNER'])
    outer = compile('opens_nested.c', 'gcc', '-O0', name='libouter.so', libraries=[inner],
                    flags=[*shared, '-DOUTER', '-Wl,--no-as-needed,--disable-new-dtags,'
                           '-rpath,' + here])
    program = compile('opens_nested.c', 'gcc', '-O0', libraries=[outer])
    result = stream_of([program, 'libalpha.so'], 'lmn').result
    expect_equal(result.stdout, 'opened\n', 'stdout')


@test
def dlopen_and_dlclose_raise_load_and_unload_events():
    need_images()
    program = compile('opens.c', 'gcc', '-O0', libraries=['-ldl'])
    stream = stream_of([program, plugin('alpha'), '1000'], 'lmnop',
                       STREAM_MAX='1000000')
    counts = stream.counts
    expect_equal(counts['o'] >= 4000, True, 'unloading: %s' % counts)
    loaded, closed = set(), set()
    for event in stream.events:
        if event.kind == 'n':
            expect(event.a not in loaded, 'image %x came twice' % event.a)
            loaded.add(event.a)
        if event.kind == 'o':
            closed.add(event.a)
            # Another thread may still be raising its start event.
            expect(event.tid != event.pid or event.a in loaded,
                   'image %x goes before it came' % event.a)
    expect_equal(closed - loaded, set(), 'images that went and never came')


# --- exceptions ---

def check_clauses(family, optimize):
    program = compile('clauses.cc', family, optimize)
    stream = stream_of([program], '!?{}')
    throws = [e.text for e in stream.events if e.kind == '!']
    expect_equal(throws, ['i', 'l', '7Derived', 'i', 'i', 'St13runtime_error'],
                 'thrown')
    expect_equal(stream.counts['{'], 6, 'caught')
    expect_equal(stream.counts['}'], 6, 'ended')
    # The exception object is the same when it is thrown, lands and is caught.
    objects = {e.a for e in stream.events if e.kind == '!'}
    expect({e.a for e in stream.events if e.kind == '{'} <= objects,
           'another object was caught than thrown')
    clauses = [(stream.name(e.a), e.b >> 32, e.b & 0xffffffff)
               for e in stream.events if e.kind == '?']
    nested = [c for c in clauses if c[0] == 'nested']
    expect_equal(len(nested), 3, 'clauses of nested: %s' % clauses)
    expect_equal(len(set(nested)), 3, 'different ones of nested: %s' % nested)
    expect_equal({c[1] for c in nested}, {2}, 'kinds')
    expect(('cleans', 3) in {c[:2] for c in clauses},
           'no finally: %s' % clauses)
    # thrower has no destructors, but the cleanup of gcc's hooks.
    expect_equal([c[1] for c in clauses if c[0] == 'thrower'],
                 [3] * 4 if family == 'gcc' else [], 'cleanups of thrower')
    order = ''.join(e.kind for e in stream.events)
    # again() catches, throws again, and its catch block ends during unwinding
    expect(re.search(r'!\?+\{!\?+\}\?*\{\}', order), order)


def check_without_clauses(family, optimize):
    program = compile('clauses.cc', family, optimize)
    counts = stream_of([program], '!?{}', STREAM_NO_CLAUSES='1').counts
    expect_equal(counts, {'!': 6, '{': 6, '}': 6}, 'events')


def check_terminate(family, optimize):
    program = compile('terminates.cc', family, optimize)
    stream = stream_of([program], '!{}ELTX')
    expect_equal(stream.result.status, -signal.SIGABRT, 'status')
    # An exception without a handler unwinds nothing.  (The C++ library itself catches
    # the exception for which it terminates.)
    expect_equal([k for k in 'X}' if k in stream.counts], [], 'events')


for family, optimize in BUILDS:
    for check, name in [(check_clauses, 'exceptions are told'),
                        (check_without_clauses, 'no clauses unless enabled'),
                        (check_terminate, 'terminate sees who threw')]:
        add_test('%s (%s %s)' % (name, family, optimize),
                 lambda check=check, family=family, optimize=optimize:
                 check(family, optimize))


def check_private_library(flags, libraries, host):
    """The C++ library is not in the program's scope."""
    thrower = compile('thrower.cc', 'gcc', '-O2', name='libthrower%s.so' % host,
                      flags=['-shared', '-fPIC', *flags])
    program = compile('thrower_host.c', 'gcc', '-O0', libraries=libraries,
                      name='thrower_host')
    for events in ['', '!?{}ELTX']:
        stream = stream_of([program, thrower], events or 'i')
        if events:
            expect_equal(stream.counts['!'], 20, 'thrown')
            expect_equal(stream.counts['{'], 20, 'caught')


@test
def exceptions_of_a_library_that_brings_cxx_along():
    check_private_library([], ['-ldl'], 'shared')


@test
def exceptions_of_a_library_that_has_cxx_in_it():
    check_private_library(['-static-libstdc++'], ['-ldl'], 'static')


# A limit: shim cannot look into a private C++ library.  Every call has an end, but a
# call whose end gcc's leave hook reports during unwinding looks like a return.
@test
def exceptions_of_a_program_that_has_cxx_in_it():
    program = compile('unwind.cc', 'gcc', '-O2', name='unwind-static',
                      flags=['-static-libstdc++', '-static-libgcc'])
    stream = stream_of([program], 'ELTX')
    expect_equal(stream.counts['E'],
                 stream.counts['L'] + stream.counts.get('X', 0),
                 'calls and their ends: %s' % stream.counts)


# --- processes ---

def check_exec(how):
    program = compile('execs.c', 'gcc', '-O0')
    stream = stream_of([program, str(how)], 'x', STREAM_ERRNO='1')
    paths = [(e.text, e.pid == e.tid) for e in stream.events]
    path = ['/bin/sh', '/bin/sh', 'sh', 'sh', '/bin/sh', 'sh', '/bin/sh', None,
            '/bin/sh'][how]
    if path is None:
        expect(paths[-1][0].startswith('/proc/self/fd/'), paths)
        path = paths[-1][0]
    expect_equal([p[0] for p in paths if p[0] != ''][-3:],
                 ['/nope', '/bin/true', path], 'executed')


for how, name in enumerate(['execve', 'execv', 'execvp', 'execvpe', 'execl',
                            'execlp', 'execle', 'fexecve', 'execveat']):
    add_test(name + ' is told', lambda how=how: check_exec(how))

ENDS = {
    'exit': 'ibe', 'return': 'ibe', '_exit': 'ibe', '_Exit': 'ibe',
    'quick_exit': 'ibe', 'pthread_exit': 'ibe', 'abort': 'ib',
    # None of our code runs then, and the recording is already on disk.
    'segv': 'i', 'term': 'i', 'kill': 'i', 'syscall': 'i',
}


def check_end(how, wanted):
    program = compile('ends.c', 'gcc', '-O0')
    stream = stream_of([program, how], 'ibeEL')
    expect_equal(''.join(e.kind for e in stream.events if e.kind in 'ibe'),
                 wanted, 'events')
    expect_equal(stream.counts['E'], 1003, 'calls')


for how, wanted in ENDS.items():
    add_test('the end by %s is told' % how,
             lambda how=how, wanted=wanted: check_end(how, wanted))


def check_mutual(optimize):
    if not os.path.exists(os.path.join(os.path.dirname(shimtest.library),
                                       'libshim-code.so')):
        raise Failed('there is no decoder: was it built without Zydis?')
    program = compile('tail_mutual.c', 'clang', optimize)
    stream = stream_of([program], 'ELTX', STREAM_MAX='100')
    expect_equal(stream.counts, {'E': 1000002, 'T': 1000000, 'L': 2}, 'events')
    expect_equal(stream.depth_max, 2, 'depth')      # main and one of them


for optimize in ['-O0', '-O2']:
    add_test('a million tail calls make nothing deeper (clang %s)' % optimize,
             lambda optimize=optimize: check_mutual(optimize))

if __name__ == '__main__':
    shimtest.main()
