#!/usr/bin/env python3
"""locks.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Lock events and the lock profiler. tests/programs/locked.c knows its own waits, compares
them with the callbacks, and prints differences.  The waits of tests/programs/waits.cc
are known: the waiting path, the lock, the duration, and the path of the holder.
"""
import csv
import io
import json
import os
import re
import signal
import subprocess
import time

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, \
    shim_report, test

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')


def locked(case, *flags, family='gcc', optimize='-O1'):
    program = compile('locked.c', family, optimize, ['-I', INCLUDE, *flags],
                      name='locked' + ''.join(flags))
    done = run([program, case], new_directory('recording'), 'none')
    wrong = re.findall('^wrong: .*', done.stdout, re.M)
    expect(not wrong, '\n'.join(wrong[:10]))
    expect_equal((done.status, done.stdout, done.stderr), (0, 'done\n', ''),
                 'the program')


# Rows 54 and 56 of section 2.1.
@test
def waits_for_all_kinds_of_locks_raise_both_events():
    for family in 'gcc', 'clang':
        locked('every_kind', family=family)


@test
def condition_waits_raise_events_with_their_mutex():
    locked('conditions')


# Row 55 of section 2.1.
@test
def failed_lock_calls_raise_events_with_the_reason():
    locked('failing')


@test
def mutexes_of_all_types_behave_as_without_shim():
    locked('types')


@test
def signals_in_the_middle_of_a_wait():
    locked('signals')


@test
def waits_are_cancelled_as_they_were():
    locked('cancelled')


@test
def a_fork_child_gets_its_own_lock_events():
    locked('forks')


@test
def fork_handlers_wait():
    locked('in_handlers')


# Two versions with the same size; they must not mix.
@test
def conditions_of_the_older_version():
    program = compile('old_conditions.c', optimize='-O1',
                      flags=['-Wl,-z,now'])
    for profile in 'none', 'calltree', 'locks':
        done = run([program], new_directory('recording'), profile)
        expect_equal((done.status, done.stderr), (0, ''), profile)
    locks = [lock for lock in report(done.output)['locks']
             if lock['kind'] == 'condition']
    expect_equal(sum(lock['waits'] for lock in locks), int(done.stdout),
                 'waits')
    expect('turn_changed' in [lock['name'] for lock in locks], locks)


@test
def a_variable_beyond_what_is_mapped_of_the_file_has_its_name():
    done = run([compile('locked_far.c')], new_directory('recording'), 'locks')
    expect_equal(done.status, 0, done.stderr)
    names = [lock['name'] for lock in report(done.output)['locks']]
    expect('far+1048576' in names, names)


# Calls of these raise no events.
@test
def a_program_with_locks_of_its_own():
    source = os.path.join(new_directory('own'), 'own.c')
    with open(source, 'w') as file:
        file.write('''
#include <errno.h>
#include <pthread.h>
static int calls;
int pthread_mutex_lock(pthread_mutex_t *mutex) { calls++; return EDOM; }
int main(void)
{
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        return pthread_mutex_lock(&mutex) == EDOM && calls > 0 ? 7 : 1;
}
''')
    program = compile(source, optimize='-O1', flags=['-rdynamic'])
    done = run([program], new_directory('recording'), 'locks')
    expect_equal((done.status, done.stderr), (7, ''), 'the program')
    text = shim_report('info', done.output)
    expect('the program defines lock functions of its own' in text, text)


# libc offers all of these symbols or none: a program with only some would count wrong.
@test
def a_library_with_some_locks_of_its_own():
    directory = new_directory('some')
    for name, text in ('some.c', '''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
int read_locks;
static int go_on(const char *name, pthread_rwlock_t *lock)
{
        int result = ((int (*)(pthread_rwlock_t *))dlsym(RTLD_NEXT, name))(lock);

        read_locks += result == 0;
        return result;
}
int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
        return go_on("pthread_rwlock_rdlock", lock);
}
int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
        return go_on("pthread_rwlock_tryrdlock", lock);
}
'''), ('main.c', '''
#include <pthread.h>
extern int read_locks;
int main(void)
{
        pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

        for (int i = 0; i < 5; i++) {
                pthread_rwlock_rdlock(&lock);
                pthread_rwlock_unlock(&lock);
        }
        return read_locks;
}
'''):
        with open(os.path.join(directory, name), 'w') as file:
            file.write(text)
    library = compile(os.path.join(directory, 'some.c'), optimize='-O1',
                      flags=['-shared', '-fPIC'], name='libsome_locks.so')
    program = compile(os.path.join(directory, 'main.c'), optimize='-O1',
                      libraries=shimtest.linked(library), name='some_locks')
    for profile in 'calltree', 'locks':
        done = run([program], new_directory('recording'), profile)
        expect_equal((done.status, done.stderr), (5, ''), profile)


@test
def locks_taken_in_callbacks_raise_no_events():
    locked('inside')


# Row M-45.
@test
def no_lock_events_without_subscribers():
    locked('unheard')
    locked('unheard', '-Wl,-z,now')
    locked('unheard', '-no-pie')


# --- the profiler ---

def waits(case, profile='locks', family='gcc', optimize='-O1', status=0,
          instrument=True, **more):
    """The recording, and {lock: (waits, ns)} as measured by the program."""
    program = compile('waits.cc', family, optimize, ['-std=c++17'],
                      name=None if instrument else 'waits_unhooked',
                      instrument=instrument)
    done = run([program, case], new_directory('recording'), profile, **more)
    expect_equal((done.status, done.stderr), (status, ''), 'the program')
    measured = {}
    for name, count, ns in re.findall(r'^waited (\S+) (\d+) (\d+)$',
                                      done.stdout, re.M):
        before = measured.get(name, (0, 0))
        measured[name] = (before[0] + int(count), before[1] + int(ns))
    return done.output, measured


def report(output, *options):
    return json.loads(shim_report('report', output, '--format', 'json',
                                  *options))


def by_name(output):
    return {lock['name']: lock for lock in report(output)['locks']}


def check_times(locks, measured, share):
    """The times must not exceed the program's, which include shim's own work."""
    for name, (count, ns) in measured.items():
        lock = locks[name]
        expect_equal((lock['waits'], lock['failures'], lock['refusals'],
                      lock['open']), (count, 0, 0, 0), name)
        expect(ns * share <= lock['waited_ns'] <= ns, '%s: %d ns, measured %d'
               % (name, lock['waited_ns'], ns))
        expect(lock['max_ns'] * count >= lock['waited_ns'] >= lock['max_ns'],
               name)


def innermost(path, names):
    """The last function of @path that is in @names."""
    found = [re.sub(r'[<(].*', '', f.replace('void ', '')) for f in path or ()]
    found = [f for f in found if f in names]
    return found[-1] if found else None


def waiters(lock):
    """{(waiting function, holding function): waits}"""
    found = {}
    for waiter in lock['waiters']:
        key = (innermost(waiter['path'], ('reader', 'writer', 'hang', 'spin')),
               innermost(waiter['holder'], ('hold', 'owner')))
        found[key] = found.get(key, 0) + waiter['waits']
    return found


@test
def each_path_has_its_waits_and_where_the_holder_was():
    for family, optimize in ('gcc', '-O0'), ('gcc', '-O2'), ('clang', '-O1'):
        output, measured = waits('paths', family=family, optimize=optimize)
        locks = by_name(output)
        check_times(locks, measured, .5)
        expect_equal(waiters(locks['cache_lock']),
                     {('reader', 'hold'): 3, ('writer', 'hold'): 5}, 'paths')
        expect_equal(set(locks), {'cache_lock', 'pool+8'}, 'locks')


@test
def beside_other_profiles():
    for profile in ('locks;memory', 'calltree;locks', 'locks;calltree:exact',
                    'calltree:counts;memory;locks;sampling'):
        output, measured = waits('paths', profile)
        locks = by_name(output)
        check_times(locks, measured, .5)
        expect_equal(waiters(locks['cache_lock']),
                     {('reader', 'hold'): 3, ('writer', 'hold'): 5}, profile)
        expect('cache_lock' in shim_report('report', output, '--locks'),
               'asked for')


@test
def paths_are_unwound_where_nothing_is_instrumented():
    for family, optimize in ('gcc', '-O1'), ('clang', '-O0'):
        output, measured = waits('paths', 'locks:unwind', family, optimize,
                                 instrument=False)
        locks = by_name(output)
        check_times(locks, measured, .5)
        expect_equal({who: n for (who, _), n in
                      waiters(locks['cache_lock']).items()},
                     {'reader': 3, 'writer': 5}, 'paths')


# The figures of the issue.
@test
def waited_is_within_two_percent_of_what_the_program_measures():
    output, measured = waits('times', optimize='-O2')
    check_times(by_name(output), measured, .98)


@test
def mutexes_of_cxx_have_their_names():
    output, measured = waits('cxx')
    locks = by_name(output)
    check_times(locks, measured, .3)
    expect_equal({name: lock['kind'] for name, lock in locks.items()},
                 {'app::guard': 'mutex', 'app::timed': 'mutex',
                  'app::recursive': 'mutex', 'app::shared': 'read lock',
                  'app::ready': 'condition'}, 'kinds')
    # The longest wait, but the last row.
    expect_equal(report(output)['locks'][-1]['name'], 'app::ready', 'order')


@test
def each_refusal_is_counted():
    output, _ = waits('tries')
    lock = by_name(output)['cache_lock']
    expect_equal((lock['waits'], lock['refusals'], len(lock['waiters'])),
                 (0, 1000, 1), 'trylock')
    expect_equal(innermost(lock['waiters'][0]['path'], ('spin',)), 'spin',
                 'path')
    expect('refused at once: 1,000' in shim_report('report', output), 'text')


@test
def a_child_has_its_own():
    output, measured = waits('forked')
    expect_equal(waiters(by_name(output)['cache_lock']),
                 {('writer', 'hold'): 2, ('reader', 'hold'): 4}, 'both')
    pids = [p['pid'] for p in report(output)['processes']]
    parts = [report(output, '--process', str(pid))['waiting']['waits']
             for pid in pids]
    expect_equal(sorted(parts), [2, 4], 'each')


@test
def waits_survive_sigkill():
    output, _ = waits('killed', status=-signal.SIGKILL)
    with open(os.path.join(output, 'end'), 'w') as file:
        file.write('status 9 mono-ns %d\n' % time.monotonic_ns())
    lock = by_name(output)['cache_lock']
    expect_equal((lock['waits'], lock['open'], lock['failures']), (1, 1, 0),
                 'the lock')
    expect_equal(waiters(lock), {('hang', 'owner'): 1}, 'paths')
    expect(lock['max_ns'] == lock['waited_ns'] > 100e6, lock)
    expect('not over at the end: 1' in shim_report('report', output), 'text')


@test
def waits_that_are_left_by_jumps_and_cancellation_are_over():
    output, _ = waits('left')
    lock = by_name(output)['slots']
    expect_equal((lock['kind'], lock['waits'], lock['failures'], lock['open']),
                 ('semaphore', 2, 2, 0), 'slots')


@test
def locks_in_no_variable_have_their_address():
    environment = {}
    for name in 'FIRST', 'SECOND':
        source = os.path.join(new_directory('library'), 'source.c')
        with open(source, 'w') as file:
            # Two objects of the same size: one is loaded where the other was.
            file.write('#include <pthread.h>\n'
                       'pthread_mutex_t exported;\n'
                       'extern pthread_mutex_t %s\n'
                       '        __attribute__((alias("exported")));\n'
                       % ('a_' + name))
        environment[name] = shimtest.compile(source, 'gcc', '-O1', ['-shared', '-fPIC'],
                                             name='lib%s.so' % name, instrument=False)
    output, measured = waits('elsewhere', **environment)
    found = [(lock['name'], lock['waits']) for lock in report(output)['locks']]
    expect_equal(sorted(found, key=str),
                 [('a_FIRST', 1), ('a_SECOND', 1), (None, 2)], 'locks')


@test
def the_same_in_all_formats():
    output, measured = waits('paths')
    locks = report(output)['locks']
    rows = list(csv.DictReader(io.StringIO(shim_report(
        'report', output, '--format', 'csv', '--locks'), newline='')))
    expect_equal([(r['lock'], r['kind'], r['path'], r['holder'], r['waits'],
                   r['waited_ns']) for r in rows],
                 [(l['name'], l['kind'], ';'.join(w['path']),
                   ';'.join(w['holder']), str(w['waits']),
                   str(w['waited_ns'])) for l in locks for w in l['waiters']],
                 'csv')
    total = sum(int(line.rsplit(' ', 1)[1]) for line in shim_report(
        'export', 'folded', output, '--value', 'waits').splitlines())
    wanted = sum(lock['waited_ns'] for lock in locks)
    expect(abs(total - wanted) <= len(rows), '%d, %d' % (total, wanted))
    text = shim_report('report', output)
    expect('in 10 waits (mutex ' in text and 'mutex cache_lock' in text, text)


@test
def an_empty_table_is_reported():
    program = compile('nesting.c')
    done = run([program], new_directory('recording'), 'locks')
    text = shim_report('report', done.output)
    expect('in 0 waits' in text, text)
    done = run([program], new_directory('recording'), 'calltree')
    failed = subprocess.run([shimtest.report, 'report', done.output, '--locks'],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(failed.returncode == 1 and b'no locks were recorded' in
           failed.stdout, failed.stdout)


if __name__ == '__main__':
    shimtest.main()
