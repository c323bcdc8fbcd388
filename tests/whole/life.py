#!/usr/bin/env python3
"""life.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

How programs begin and end with shim inside, which objects they load meanwhile, and what
of shim they can notice.
"""
import glob
import os
import re
import shutil
import signal
import stat
import struct
import subprocess

import shimtest
from shimtest import (BUILDS, PROFILES, Skipped, Unsolved, add_test, calls_of, compile,
                      known_failure, difference, expect, expect_equal, expect_truth, json_of,
                      linked, new_directory, record, run, run_both, shim_report, test, tree_of)


def each_build(function):
    """Makes a test for every compiler and profile."""
    for family, optimize in BUILDS:
        add_test('%s (%s %s)' % (function.__name__, family, optimize),
                 lambda family=family, optimize=optimize:
                 function(family, optimize))
    return function


def expect_tree(got, wanted):
    expect(got == wanted, 'the tree:\n' + difference(got, wanted))


# --- the end ---

ENDS = {
    # how: (status, how the recording describes the end)
    'return': (7, 'exit'), 'exit': (3, 'exit'), '_exit': (4, 'exit'),
    '_Exit': (4, 'exit'), 'quick_exit': (5, 'exit'), 'syscall': (6, 'unknown'),
    'abort': (-signal.SIGABRT, 'abort'), 'segv': (-signal.SIGSEGV, 'unknown'),
    'term': (-signal.SIGTERM, 'unknown'), 'kill': (-signal.SIGKILL, 'unknown'),
    'failed_exec': (-signal.SIGKILL, 'unknown'),
    'trap': (-(signal.SIGTRAP if shimtest.machine else signal.SIGILL),
             'unknown'), 'pthread_exit': (0, 'exit'),
}


# With a filter for system calls, shim makes none.
FILTERED = [how + ' filtered' for how in ('return', 'exit', '_exit', 'abort', 'kill')]


def check_end(how, family, optimize):
    program = compile('ends.c', family, optimize)
    how, *filtered = how.split()
    for profile in PROFILES:
        result = run_both([program, how, *filtered], profile)
        expect_equal(result.status, ENDS[how][0], 'exit status')
        expect_tree(tree_of(result.output), {
            'main': 1, 'main;middle': 1, 'main;middle;end': 1,
            'main;middle;end;leaf': 1000})
        about = json_of(result.output)
        expect_truth(result, calls_of(about))
        process = about['processes'][0]
        expect_equal(process['end'], ENDS[how][1], 'end')
        if process['end'] == 'exit':
            expect_equal(process['exit_status'], result.status, 'status')
        left = how in ('return', 'pthread_exit')
        expect_equal(about['open'], 0 if left else 3, 'open calls')


for how in [*ENDS, *FILTERED]:
    for family, optimize in BUILDS:
        add_test('all calls are there after %s (%s %s)' % (how, family,
                                                           optimize),
                 lambda how=how, family=family, optimize=optimize:
                 check_end(how, family, optimize))


@each_build
def what_became_another_program_ended_then(family, optimize):
    program = compile('execs.c', family, optimize)
    for how in '0', '1':                # without shim's variables, and with them
        result = run_both([program, how], 'calltree')
        expect_equal(result.status, 0, 'exit status')
        about = json_of(result.output)
        ends = {p['number']: (p['end'], p['end_known'])
                for p in about['processes']
                if p['pid'] == about['processes'][0]['pid']}
        wanted = {0: ('exec', True)}
        if how == '1':
            wanted[1] = ('exit', True)
        expect_equal(ends, wanted, 'ends')


@test
def calls_open_in_other_threads_at_the_end_are_counted():
    program = compile('ends_threads.c')
    for how in ('exit', 'kill'):
        result = run_both([program, how])
        expect_tree(tree_of(result.output), {
            'main': 1, 'worker': 7, 'worker;wait_for_the_end': 7,
            'worker;wait_for_the_end;leaf': 7})
        expect_equal(json_of(result.output)['open'], 15, 'open calls')


@test
def calls_of_an_abandoned_coroutine_end_when_another_takes_its_stack():
    """Calls that stayed open would take the time until the program's end."""
    program = compile('coroutines_abandoned.c', 'gcc', '-O0')
    for profile in 'calltree', 'calltree:counts', 'trace':
        result = record([program], profile)
        about = json_of(result.output)
        expect_equal((about['calls'], about['open'], about['unwound']),
                     (501, 3, 297), profile)


@test
def a_fiber_that_ends_without_a_return_is_no_caller_of_the_next():
    """A server would make a deeper path for each."""
    for optimize in '-O0', '-O2':
        program = compile('fibers_ended.c', 'gcc', optimize)
        for profile in 'calltree', 'calltree:exact', 'trace':
            result = record([program], profile)
            about = json_of(result.output)
            expect_equal((about['calls'], about['open'], about['unwound']),
                         (401, 1, 99), (optimize, profile))
            expect_tree(tree_of(result.output), {
                'main': 1, 'main;leaf': 100, 'fiber': 100, 'fiber;inside': 100,
                'fiber;inside;leaf': 100})


@test
def a_recording_of_its_own_is_made_without_profrun():
    program = compile('nesting.c')
    output = os.path.join(new_directory('bare'), 'a.%n.%p')
    for wanted in ('a.nesting.PID', 'a.nesting.PID'):
        process = subprocess.Popen(
            shimtest.emulator + [program], stdout=subprocess.DEVNULL,
            env=shimtest.environment(LD_PRELOAD=shimtest.library,
                                     SHIM_OUTPUT=output,
                                     SHIM_PROFILE='calltree:counts'))
        process.wait()
        made = os.path.join(os.path.dirname(output),
                            wanted.replace('PID', str(process.pid)))
        expect_equal(tree_of(made)['main;a;b;c'], 6, 'calls')


@test
def an_existing_recording_is_never_overwritten():
    program = compile('nesting.c')
    output = os.path.join(new_directory('bare'), 'r')
    for wanted in ('r', 'r.1', 'r.2'):
        result = run([program], LD_PRELOAD=shimtest.library,
                     SHIM_OUTPUT=output)
        expect_equal(result.stderr, '', 'stderr')
        made = os.path.join(os.path.dirname(output), wanted)
        expect_equal(tree_of(made)['main;a;b;c'], 6, 'calls in ' + wanted)


# --- objects ---

def plugin(name, family='gcc', optimize='-O0'):
    return compile('plugin.c', family, optimize,
                   ['-shared', '-fPIC', '-DPLUGIN=' + name],
                   name='lib%s.so' % name)


def plugin_calls(name, times):
    work = 'main;use;work'
    return {work: 2 * times, work + ';%s_twice' % name: 2 * times,
            'main;use;%s_construct' % name: times,
            'main;use;%s_construct;%s_twice' % (name, name): times,
            'main;use;%s_destruct' % name: times,
            'main;use;%s_destruct;%s_twice' % (name, name): times}


@each_build
def names_are_right_at_addresses_used_again(family, optimize):
    host = compile('plugin_host.c', family, optimize)
    names = ['alpha', 'beta_', 'gamma']
    libraries = [plugin(n, family, optimize) for n in names]
    for profile in PROFILES:
        result = run_both([host, '40'] + libraries, profile)
        expect('same place' in result.stdout, 'no address was used again')
        wanted = {'main': 1, 'main;use': 120, 'main;use;work': 120}
        for name in names:
            at = 'main;use;'
            wanted.update({
                at + 'work;%s_twice' % name: 80,
                at + '%s_construct' % name: 40,
                at + '%s_construct;%s_twice' % (name, name): 40,
                at + '%s_destruct' % name: 40,
                at + '%s_destruct;%s_twice' % (name, name): 40})
        expect_tree(tree_of(result.output), wanted)


def plugin_tree(names, each):
    """The calls of plugin_host when it opens each of @names @each times."""
    rounds = each * len(names)
    wanted = {'main': 1, 'main;use': rounds, 'main;use;work': rounds}
    for name in names:
        for path, calls in plugin_calls(name, each).items():
            if path != 'main;use;work':
                wanted[path] = calls
    return wanted


# The reader used to search a thousand objects at one address one by one.
@test
def names_are_right_where_hundreds_of_objects_have_been():
    host = compile('plugin_host.c')
    names = ['alpha', 'beta_', 'gamma']
    result = run_both([host, '400'] + [plugin(n) for n in names])
    expect('same place' in result.stdout, 'no address was used again')
    expect_tree(tree_of(result.output), plugin_tree(names, 400))


LAST_GENERATION = 0x7eff


def run_out_of_generations(output):
    """Changes the recording as if its objects had been loaded after the last
    generation."""
    images, = glob.glob(os.path.join(output, '*', 'images'))
    data = bytearray(open(images, 'rb').read())
    at, = struct.unpack_from('<I', data, 12)
    ranges = []
    while at + 72 <= len(data):
        size, generation = struct.unpack_from('<II', data, at)
        if size == 0:
            break
        if generation:
            ranges.append(struct.unpack_from('<QQ', data, at + 8))
            struct.pack_into('<I', data, at + 4, LAST_GENERATION)
        at += size
    expect(len(ranges) > 10, 'nothing was closed')
    open(images, 'wb').write(data)
    tree, = glob.glob(os.path.join(output, '*', '*.calltree'))
    data = bytearray(open(tree, 'rb').read())
    low, high = min(r[0] for r in ranges), max(r[1] for r in ranges)
    words = list(struct.unpack('<%dQ' % (len(data) // 8), data))
    for i, word in enumerate(words):
        if low <= word & 0xffffffffffff < high and 0 < word >> 48 < 0x7eff:
            words[i] = word & 0xffffffffffff | LAST_GENERATION << 48
    open(tree, 'wb').write(struct.pack('<%dQ' % len(words), *words))


@test
def objects_that_share_the_last_generation_have_a_name_if_they_are_one():
    host = compile('plugin_host.c')
    for names in (['alpha'], ['alpha', 'beta_']):
        result = run_both([host, '20'] + [plugin(n) for n in names])
        run_out_of_generations(result.output)
        tree = tree_of(result.output)
        if len(names) == 1:
            expect_tree(tree, plugin_tree(names, 20))
            continue
        # The function's object is unknown, and the report must not guess.
        expect_equal(sorted(n for n in ';'.join(tree).split(';')
                            if '_' in n or n == 'work'), [], 'names')
        expect_equal(sum(tree.values()),
                     sum(plugin_tree(names, 20).values()), 'calls')


def named_library(family, optimize):
    return compile('named_library.c', family, optimize, ['-shared', '-fPIC'],
                   name='libnamed.so')


# They used to be printed as numbers.  Other position-independent code has other
# entries.
@each_build
def functions_that_are_known_by_a_linkage_table_have_their_names(family,
                                                                 optimize):
    library = named_library(family, optimize)
    for flags in ([], ['-no-pie', '-fno-pie'], ['-Wl,-z,now'],
                  ['-no-pie', '-fno-pie', '-fcf-protection=branch',
                   '-Wl,-z,ibtplt']):
        if shimtest.machine and '-Wl,-z,ibtplt' in flags:
            continue
        program = compile('named_chosen.c', family, optimize, flags,
                          name='named_chosen' + ''.join(flags),
                          libraries=[library])
        result = run_both([program])
        expect_tree(tree_of(result.output),
                    {'main': 1, 'main;chosen': 1, 'main;chosen_here': 1,
                     'main;library_function': 2})


@each_build
def of_many_names_that_is_shown_by_which_a_function_is_called(family,
                                                              optimize):
    program = compile('named_chosen.c', family, optimize, name='named_pie',
                      libraries=[named_library(family, optimize)])
    result = run_both([program])
    expect_equal(tree_of(result.output).get('main;library_function'), 2,
                 'by another object')
    program = compile('named_chosen.c', family, optimize, name='named_both',
                      libraries=[os.path.join(shimtest.PROGRAMS,
                                              'named_library.c')])
    result = run_both([program])
    # Tables describe call sites only in optimized code.
    wanted = 'library_function' if optimize == '-O2' else first_name(
        program, ['a', 'library_function', 'named_library_function'])
    expect_equal(tree_of(result.output).get('main;' + wanted), 2,
                 'by another source file')


FORKS = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

pid_t fork(void)
{
	int fd = open(getenv("FORKS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	int is_noted = write(fd, "x", 1) == 1;

	close(fd);
	return is_noted ? ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))() : -1;
}
'''


def forks_of_the_report(output):
    library = compile(shimtest.new_source('forks_counted.c', FORKS), 'gcc', '-O1',
                      ['-shared', '-fPIC'], instrument=False)
    note = os.path.join(new_directory('forks'), 'forks')
    done = run([shimtest.report, 'report', output], LD_PRELOAD=library, FORKS=note,
               ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0')
    expect_equal(done.status, 0, done.stderr)
    return os.path.getsize(note)


# A sandbox, a process, reads each file.  Those of the program read its table of names again
# for each process that ran it.
@test
def a_program_that_runs_often_is_read_once():
    program = compile('named_chosen.c', 'gcc', '-O2', name='named_elsewhere', instrument=False,
                      libraries=[named_library('gcc', '-O2')])
    forks = []
    for times in 1, 8:
        result = record(['sh', '-c', 'for i in $(seq %d); do %s; done' % (times, program)])
        expect_equal(list(tree_of(result.output).values()), [2 * times], 'calls')
        forks.append(forks_of_the_report(result.output))
    expect(0 < forks[0] == forks[1], 'sandboxes: %d, then %d' % tuple(forks))


def first_name(program, names):
    done = subprocess.run(['readelf', '-Ws', program], stdout=subprocess.PIPE,
                          check=True)
    found = [line.split()[7] for line in done.stdout.decode().splitlines()
             if len(line.split()) > 7 and line.split()[7] in names]
    return found[0]


def load_and_unload_at_once():
    host = compile('plugin_host.c', 'gcc', '-O0', libraries=['-ldl'])
    names = ['alpha', 'beta_', 'gamma']
    result = run_both([host, 't300'] + [plugin(n) for n in names])
    wanted = {'main': 1, 'use_often': 3, 'use': 900, 'work': 900}
    for name in names:
        wanted.update({name + '_twice': 1200, name + '_construct': 300,
                       name + '_destruct': 300})
    return json_of(result.output), wanted


@test
def threads_may_load_and_unload_at_once():
    for _ in range(10 if shimtest.ALL else 4):  # this crashed in two of three runs once
        about, wanted = load_and_unload_at_once()
        expect_equal(about['calls'] + about['lost'], sum(wanted.values()),
                     'calls')


@test
@known_failure('dlclose and our look at what is gone are two: functions of a library '
               'that comes meanwhile have no name or that of another',
               always=False)
def names_are_right_when_threads_load_and_unload_at_once():
    about, wanted = load_and_unload_at_once()
    calls = calls_of(about)
    text = 'calls:\n' + difference(calls, wanted)
    # Functions without a library, and addresses at which a library has no function.
    nameless = {name for name in calls if name.startswith('0x')}
    expect_equal(set(calls) - nameless - set(wanted), set(), text)
    # The functions of libraries that stay are right, and no call is lost.
    for name in ('main', 'use_often', 'use'):
        expect_equal(calls.get(name), wanted[name], text)
    expect_equal(sum(calls.values()) + about['lost'], sum(wanted.values()), text)
    if calls != wanted:
        raise Unsolved(text)


@each_build
def what_runs_before_our_constructor_and_after_our_destructor_counts(
        family, optimize):
    early = compile('early.c', family, optimize, ['-shared', '-fPIC'],
                    name='libearly.so')
    for profile in PROFILES:
        host = compile('early_host.c', family, optimize,
                       libraries=linked(early))
        order = run([host], LD_DEBUG='files', LD_PRELOAD=shimtest.library,
                    SHIM_DIR=new_directory('order')).stderr
        where = [order.index(text) for text in (
            'calling init: ' + early, 'calling init: ' + shimtest.library)]
        expect(where[0] < where[1], 'our constructor ran first')
        result = run_both([host], profile)
        expect_tree(tree_of(result.output), {
            'main': 1, 'main;leaf': 1, 'main;early_call': 1,
            'main;early_call;early_leaf': 1, 'early_construct': 1,
            'early_construct;early_leaf': 1, 'early_destruct': 1,
            'early_destruct;early_leaf': 1})


@each_build
def names_are_known_when_the_first_thread_has_ended(family, optimize):
    library = compile('plugin.c', family, optimize,
                      ['-shared', '-fPIC', '-DPLUGIN=alpha'],
                      name='libalpha_late.so')
    for profile in PROFILES:
        result = run_both([compile('first_ends.c', family, optimize), library],
                          profile)
        expect_equal(result.status, 3, 'status')
        tree = tree_of(result.output)
        expect(not any('0x' in path for path in tree), str(tree))
        expect_equal(tree.get('go_on;work'), 1, str(tree))


# --- hooks that do not return ---

def check_interrupted(how, family, optimize):
    program = compile('interrupted.c', family, optimize)
    for profile in PROFILES:
        result = record([program, how], profile)
        expect_equal(result.status, 0, 'exit status')
        times = int(re.search(r'^times (\d+)$', result.stdout, re.M)[1])
        truth = result.truth()
        about = json_of(result.output)
        # A hook that did not return may have counted a call that never began.
        more = about['calls'] + about['lost'] - sum(truth.values())
        expect(0 <= more <= times, '%s: %d calls too many, %d times' %
               (profile, more, times))
        top = {'main;jumping;outer', 'loop;outer'}
        for path in tree_of(result.output, depth=12):
            names = path.split(';')
            where = names.index('outer') if 'outer' in names else 0
            below = names[where + 1:] if where else []
            good = (';'.join(names[:where + 1]) in top if where else
                    path in ('main', 'main;jumping', 'main;cancelling',
                             'loop'))
            good &= below in ([], ['inner'], ['inner', 'leaf']) or (
                set(below) == {'down'})
            expect(good, '%s: the path %s' % (profile, path))


for how in ('jump', 'cancel'):
    for family, optimize in BUILDS:
        add_test('hooks may be left in the middle by a %s (%s %s)' % (
            how, family, optimize),
            lambda how=how, family=family, optimize=optimize:
            check_interrupted(how, family, optimize))


@test
def the_report_counts_calls_that_ended_at_an_unknown_time():
    program = compile('ends.c')
    killed = record([program, 'kill'], 'calltree').output
    left = record([program, '_exit'], 'calltree').output
    both = os.path.join(new_directory('merged'), 'both')
    shim_report('merge', '-o', both, killed, left)
    for recording, line in {
            left: r'  3 calls were open at the end\n',
            killed: r'  3 calls were open at the end; when that was is not ',
            both: r'  6 calls were open at the end; of 3 of them it is not '
                  r'known when that was: '}.items():
        text = shim_report('report', recording)
        expect(re.search(line, text), text)


# --- exec ---

@test
def what_becomes_another_program_ends_there():
    program = compile('execs.c')
    for how in range(10):       # all ways to end, and one that is killed
        result = record([program, str(how)], 'calltree')
        images = json_of(result.output)['processes']
        ours = [image for image in images if image['program'] == program]
        expect_equal([image['end'] for image in ours],
                     ['unknown' if how == 9 else 'exec'], 'end, %d' % how)
        head = shim_report('report', result.output)
        # The others pass on no environment, and so no shim.
        expect('2 processes, %s1 thread' % (
            '1 exec, ' if how in (1, 2, 4, 5) else '') in head, head)
        expect_equal('when that was is not known' in head, how == 9, head)


def left_out(recording):
    return re.findall('an executed program is not recorded: (.*)',
                      shim_report('info', recording))


@test
def a_program_that_is_executed_without_shim_is_told_of():
    program = compile('execs.c')
    for how in range(9):
        told = left_out(record([program, str(how)], 'calltree').output)
        if how in (1, 2, 4, 5):
            expect_equal(told, [], how)
        else:
            expect_equal(len(told), 1, how)
            expect(re.fullmatch('its environment has no LD_PRELOAD with shim: '
                                r'(/bin/|/proc/self/fd/)?(sh|\d+)', told[0]), told)
    # It is there, and in the environment that counts.
    for words, wanted in ((['env', '-i', program], [program]),
                          (['env', 'LD_PRELOAD=', program], [program]),
                          (['env', '-i', 'nowhere'], []), (['env', 'A=b', 'true'], []),
                          (['sh', '-c', 'env -i true; env -i nowhere'], ['true'])):
        told = left_out(record(words, 'calltree').output)
        expect_equal([text.split()[-1] for text in told], wanted, words)
    # Each of the functions that create a child, once for all of its calls.
    path = os.path.join(new_directory('spawns'), 'spawns.c')
    with open(path, 'w') as file:
        file.write('''
            #include <spawn.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            int main(int count, char **words)
            {
                char *arguments[] = { "true", NULL }, *none[] = { NULL };
                int how = atoi(words[1]), i;

                if (how > 1)
                    unsetenv("LD_PRELOAD");
                for (i = 0; i < 3; i++)
                    if (how == 0)
                        posix_spawn(NULL, "/bin/true", NULL, NULL, arguments, none);
                    else if (how == 1)
                        posix_spawnp(NULL, "true", NULL, NULL, arguments, none);
                    else if (how == 2)
                        system("true");
                    else
                        pclose(popen("true", "r"));
                posix_spawn(NULL, "/nowhere", NULL, NULL, arguments, none);
                while (wait(NULL) > 0);
                return count - 2;
            }''')
    program = compile(path)
    for how in range(4):
        told = left_out(run_both([program, str(how)], 'calltree').output)
        expect_equal([text.split()[-1] for text in told],
                     [('/bin/true', 'true', '/bin/sh', '/bin/sh')[how]], how)


@test
def a_program_with_the_rights_of_another_user_is_told_of():
    if os.geteuid() != 0:
        raise Skipped('only root can make one')
    directory = new_directory('rights')
    program = os.path.join(directory, 'other')
    shutil.copy(shutil.which('true'), program)
    os.chown(program, 65534, 65534)
    for mode, wanted in (0o4755, ['it runs with the rights of another user: ' + program]), \
            (0o755, []):
        os.chmod(program, mode)
        told = left_out(record(['env', program], 'calltree').output)
        expect_equal(told, wanted, mode)


SPAWNER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    extern char **environ;
    char *file = words[2];
    char *arguments[] = { file, NULL };
    int status = -1;

    if (count == 4)
        setenv("LD_PRELOAD", words[3], 1);
    switch (atoi(words[1])) {
    case 0: posix_spawn(NULL, file, NULL, NULL, arguments, environ); break;
    case 1: posix_spawnp(NULL, file, NULL, NULL, arguments, environ); break;
    case 2: if (vfork() == 0) { execv(file, arguments); _exit(1); } break;
    case 3: if (fork() == 0) { execvp(file, arguments); _exit(1); } break;
    case 4: if (fork() == 0) { execl(file, file, NULL); _exit(1); } break;
    case 5: execvpe(file, arguments, environ); return 1;
    case 6: execveat(open(file, O_PATH), "", arguments, environ, AT_EMPTY_PATH); return 1;
    }
    wait(&status);
    return WEXITSTATUS(status);
}
"""

# Prints its environment and ends with 7; x86-64's kernels execute it.
OTHER_MACHINE = r"""
.globl _start
_start: mov (%esp), %eax
        lea 8(%esp, %eax, 4), %esi
1:      mov (%esi), %ecx
        test %ecx, %ecx
        jz 4f
        xor %edx, %edx
2:      cmpb $0, (%ecx, %edx)
        je 3f
        inc %edx
        jmp 2b
3:      movb $10, (%ecx, %edx)
        inc %edx
        mov $1, %ebx
        mov $4, %eax
        int $0x80
        add $4, %esi
        jmp 1b
4:      mov $7, %ebx
        mov $1, %eax
        int $0x80
"""


# How the spawner looks for a program whose name has no slash.
IN_PATH = 1, 3, 5
IN_DIRECTORY = 0, 2, 4, 6


def build(source, *flags):
    program = source.rsplit('.', 1)[0]
    if subprocess.run(['gcc', *flags, source, '-o', program],
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Skipped('gcc %s makes no program' % ' '.join(flags))
    return program


def program_of_another_machine():
    shimtest.x86_64_only('it is 32-bit x86')
    other = build(shimtest.new_source('other.S', OTHER_MACHINE), '-m32',
                  '-nostdlib', '-static')
    if run(['sh', '-c', 'exec "$0"', other]).status != 7:
        raise Skipped('the kernel executes no 32-bit programs')
    return other


@test
def the_dynamic_linker_of_another_machine_does_not_see_shim():
    other = program_of_another_machine()
    spawner = compile(shimtest.new_source('spawner.c', SPAWNER))
    for how in range(6):
        result = record([spawner, str(how), other], 'calltree')
        expect_equal((result.status, result.stderr), (7, ''), how)
        expect('\nSHIM_PROFILE=calltree\n' in '\n' + result.stdout, result.stdout)
        expect('LD_PRELOAD' not in result.stdout, result.stdout)
        expect_equal(left_out(result.output),
                     ['it is built for another kind of machine: ' + other], how)
    # Other libraries stay, and so does an environment without shim.
    for list, wanted in ('%s:/other.so', 'LD_PRELOAD=/other.so'), \
            ('/a.so %s /b.so', 'LD_PRELOAD=/a.so:/b.so'), \
            ('/a.so /b.so', 'LD_PRELOAD=/a.so /b.so'):
        list = list.replace('%s', shimtest.library)
        for how in range(6):
            result = record([spawner, str(how), other, list], 'calltree')
            expect(wanted in result.stdout.split('\n'), result.stdout)


SMALL_SPAWNER = r"""
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char **words;

static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int count = 0;

    for (int c; (c = getc(maps)) != EOF;)
        count += c == '\\n';
    fclose(maps);
    return count;
}

static void *spawn(void *status)
{
    char *arguments[] = { words[2], NULL };

    if (words[1][0] == '0')
        posix_spawn(NULL, words[2], NULL, NULL, arguments, environ);
    else if (vfork() == 0) {
        execve(words[2], arguments, environ);
        _exit(1);
    }
    wait(status);
    return NULL;
}

int main(int count, char **given)
{
    int status = -1, before = mappings();
    pthread_attr_t attributes;
    pthread_t thread;

    words = given;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, &attributes, spawn, &status);
        pthread_join(thread, NULL);
        if (WEXITSTATUS(status) != 7)
            return 1;
        if (i == 9)
            before = mappings();
    }
    return mappings() == before ? 7 : 2;
}
"""


@test
def a_large_environment_without_shim_needs_no_stack():
    other = program_of_another_machine()
    spawner = compile(shimtest.new_source('spawner.c', SMALL_SPAWNER), flags=['-pthread'])
    more = {'MORE_%d' % i: 'x' for i in range(3000)}
    for how in '01':
        result = record([spawner, how, other], 'calltree', **more)
        expect_equal((result.status, result.stderr), (7, ''), how)
        expect('MORE_1=x\n' in result.stdout and 'LD_PRELOAD' not in result.stdout, how)


def new_script(line, *rest):
    script = os.path.join(new_directory('script'), 'script')
    with open(script, 'w') as file:
        file.write('\n'.join(('#!' + line,) + rest + ('',)))
    os.chmod(script, 0o755)
    return script


@test
def a_script_sees_shim_if_its_interpreter_does():
    other = program_of_another_machine()
    spawner = compile(shimtest.new_source('spawner.c', SPAWNER))
    for line in other, ' \t' + other + ' -x', new_script(other) + ' -y':
        script = new_script(line)
        for how in IN_PATH + IN_DIRECTORY:
            result = record([spawner, str(how), script], 'calltree')
            expect_equal((result.status, result.stderr), (7, ''), (line, how))
            expect('LD_PRELOAD' not in result.stdout, result.stdout)
            expect_equal(left_out(result.output)[0].split(': ')[0],
                         'it is built for another kind of machine', (line, how))
    for line in '/bin/sh', '/bin/sh -e':
        script = new_script(line, 'echo "$LD_PRELOAD"')
        result = record([spawner, '0', script], 'calltree')
        expect_equal((result.status, result.stdout, left_out(result.output)),
                     (0, shimtest.library + '\n', []), line)
    # The kernel does not give a script the rights of its owner.
    if os.geteuid() == 0:
        os.chown(script, 65534, -1)
        os.chmod(script, 0o4755)
        result = record([spawner, '0', script], 'calltree')
        expect_equal(left_out(result.output), [], 'set-user-id')


@test
def only_some_functions_look_for_a_program_in_the_path():
    other = program_of_another_machine()
    spawner = compile(shimtest.new_source('spawner.c', SPAWNER))
    ordinary = new_script('/bin/sh', 'echo "LD_PRELOAD=$LD_PRELOAD"; exit 7')
    name = os.path.basename(other)
    os.rename(ordinary, os.path.join(os.path.dirname(ordinary), name))
    directories = os.path.dirname(other), os.path.dirname(ordinary)
    for directory, path, hidden, seen in (*directories, IN_DIRECTORY, IN_PATH), \
            (*reversed(directories), IN_PATH, IN_DIRECTORY):
        script = 'cd "$0" && PATH="$1:$PATH" && shift && exec "$@"'
        for how in hidden + seen:
            result = record(['sh', '-c', script, directory, path, spawner, str(how), name],
                            'calltree')
            about = '%s in %s: %s' % (how, directory, result.stdout + result.stderr)
            expect_equal((result.status, result.stderr), (7, ''), about)
            expect_equal('LD_PRELOAD' in result.stdout, how in seen, about)
            expect_equal(len(left_out(result.output)), how in hidden, about)


@test
def a_static_program_that_is_executed_is_told_of():
    static = build(shimtest.new_source('static.c', 'int main(void) { return 7; }'),
                   '-static')
    pie = build(shimtest.new_source('pie.c', 'int main(void) { return 7; }'),
                '-static-pie')
    linker = re.search(r'(/\S*/ld-linux\S*)', run(['ldd', shutil.which('true')]).stdout)
    script = '%s; %s; %s; [ $? = 7 ]' % (static, static, pie)
    result = record(['sh', '-c', script], 'calltree')
    expect_equal(result.status, 0, result.stderr)
    expect_equal(left_out(result.output), ['it is statically linked: ' + static],
                 'once')
    expect_equal(left_out(record(['sh', '-c', pie + '; true'], 'calltree').output),
                 ['it is statically linked: ' + pie], 'at any address')
    # The dynamic linker is, too, but loads shim into what it executes.
    if linker:
        result = record(['sh', '-c', linker.group(1) + ' /bin/true; true'], 'calltree')
        expect_equal(left_out(result.output), [], 'the dynamic linker')
        link = os.path.join(new_directory('link'), 'ld.so')
        os.symlink(linker.group(1), link)
        result = record(['sh', '-c', link + ' /bin/true; true'], 'calltree')
        expect_equal(left_out(result.output), [], 'its other name')


OUT_OF_REACH = 'it cannot write to the recording from there: '


@test
def a_program_that_could_not_record_runs_as_without_shim():
    shows = ['sh', '-c', 'echo "${LD_PRELOAD-none}"']
    # The recording is not where it was.
    result = record(['sh', '-c', 'mv "$SHIM_DIR" "$SHIM_DIR.away"; exec "$@"', 'sh',
                     'env', *shows], 'calltree')
    expect_equal((result.status, result.stdout, result.stderr), (0, 'none\n', ''), 'moved')
    expect_equal(left_out(result.output + '.away'),
                 [OUT_OF_REACH + shutil.which('env')], 'moved')
    # Nor is the library.
    library = os.path.join(new_directory('library'), 'libshim.so.0')
    shutil.copy(shimtest.library, library)
    result = record(['sh', '-c', 'mv "$0" "$0.away"; exec "$@"', library, 'env', *shows],
                    'calltree', LD_PRELOAD=library)
    expect_equal((result.status, result.stdout, result.stderr), (0, 'none\n', ''), 'library')
    expect_equal(left_out(result.output), ["it cannot open shim's library from there: " +
                                           shutil.which('env')], 'library')
    # It is there again.
    result = record(['sh', '-c', 'mv "$SHIM_DIR" "$SHIM_DIR.away"; sh -c : ;'
                     'mv "$SHIM_DIR.away" "$SHIM_DIR"; exec "$@"', 'sh', *shows],
                    'calltree')
    expect('libshim.so' in result.stdout and result.stderr == '', result.stdout)
    if os.geteuid() != 0:
        raise Skipped('only root can become another user')
    result = record(['setpriv', '--reuid', '65534', '--clear-groups', *shows], 'calltree')
    expect_equal((result.status, result.stdout, result.stderr), (0, 'none\n', ''), 'user')
    expect_equal(left_out(result.output), [OUT_OF_REACH + 'sh'], 'user')
    mount = 'env -u LD_PRELOAD mount -o '   # it would record there meanwhile
    script = mount + 'bind "$SHIM_DIR" "$SHIM_DIR"; ' + mount + \
        'remount,bind,ro "$SHIM_DIR"; exec "$@"'
    command = ['unshare', '-m', 'sh', '-c', script, 'sh', *shows]
    if run(['unshare', '-m', 'true']).status != 0:
        raise Skipped('no namespace of mounts')
    result = record(command, 'calltree')
    expect_equal((result.status, result.stdout, result.stderr), (0, 'none\n', ''),
                 'read-only')


# --- handlers of fork ---

@each_build
def handlers_of_fork_that_are_set_before_shim_starts_are_calls_of_their_process(
        family, optimize):
    library = compile('fork_handlers.c', family, optimize,
                      ['-shared', '-fPIC', '-DLIBRARY'], name='libfork_handlers.so')
    program = compile('fork_handlers.c', family, optimize, name='fork_handlers',
                      libraries=linked(library))
    for profile in PROFILES:
        result = run_both([program], profile)
        expect_equal(json_of(result.output)['lost'], 0, 'lost')
        # A child that still wrote into the parent's recording would put the node of
        # in_child where the parent puts that of in_parent.
        expect_tree(tree_of(result.output), {
            'main': 1, 'main;prepare': 3, 'main;in_parent': 3, 'main;in_child': 3,
            'main;after': 1})


# The child copied the parent's open calls as they were then: with the number by which the
# parent had closed the library, which means nothing in the child, or with the place on the
# stack of a later call, which had ended for a callee of the child's.
@each_build
def open_calls_of_a_child_are_those_of_the_fork(family, optimize):
    library = compile('left_after_fork.c', family, optimize,
                      ['-shared', '-fPIC', '-DLIBRARY'], name='libleft_after_fork.so')
    program = compile('left_after_fork.c', family, optimize, name='left_after_fork')
    for profile in PROFILES:
        for splits, more in (1, []), (2, ['again']):
            result = run_both([program, library] + more, profile)
            expect_equal(result.status, 7, 'exit status')
            expect_tree(tree_of(result.output), {
                'main': 1, 'main;split': splits, 'main;split;after': 1})


# --- without a clock ---

NO_CLOCK = {
    # how: the calls of work by main, and of worker
    'call': (2, 0), 'thread': (2, 2), 'fork': (3, 2), 'exec': (4, 2),
}


@each_build
def what_a_program_without_the_counter_begins_has_none_either(
        family, optimize):
    program = compile('no_clock.c', family, optimize)
    for how, (works, workers) in NO_CLOCK.items():
        for profile in PROFILES:
            result = run_both([program, how], profile)
            if how == 'exec' and result.status == -signal.SIGSEGV:
                works, workers = 2, 0   # glibc's loader reads the clock itself
            else:
                expect_equal(result.status, 0, '%s, %s' % (how, profile))
            about = json_of(result.output)
            expect_equal(about['lost'], 0, 'lost')
            wanted = {'main': 1 + (works == 4), 'main;work': works,
                      'main;work;leaf': 5 * works}
            if workers:
                wanted.update({'worker': workers, 'worker;work': workers,
                               'worker;work;leaf': 5 * workers})
            expect_tree(tree_of(result.output), wanted)


@each_build
def a_handler_and_a_child_forbid_the_counter(family, optimize):
    program = compile('no_clock.c', family, optimize)
    for how in 'handler', 'vfork':
        for profile in PROFILES + ['trace']:
            result = run_both([program, how], profile)
            expect_equal(result.status, 0, '%s, %s' % (how, profile))
            about = json_of(result.output)
            expect_truth(result, calls_of(about))
            expect_equal(about['lost'], 0, 'lost')


@each_build
def repeated_calls_of_a_vfork_child_are_in_its_own_tree(family, optimize):
    program = compile('vfork_calls.c', family, optimize)
    for profile in PROFILES:
        result = run_both([program], profile)
        calls = calls_of(json_of(result.output))
        expect_equal({name: calls.get(name) for name in
                      ['main', 'look_for', 'work', 'leaf']},
                     {'main': 1, 'look_for': 3, 'work': 19, 'leaf': 61}, profile)
        expect('nothing lost' in shim_report('report', result.output), profile)


@each_build
def what_a_vfork_child_leaves_open_ends_with_it(family, optimize):
    """Its calls would take the time until the end of the parent."""
    program = compile('vfork_calls.c', family, optimize)
    for profile in PROFILES + ['trace']:
        about = json_of(record([program], profile).output)
        expect_equal((about['open'], about['unwound']), (0, 3), profile)
        total = {function['name']: function.get('total_ns')
                 for function in about['functions']}
        if total['main'] is not None:       # main waits for each child
            expect(total['look_for'] < total['main'], (profile, total))


@each_build
def without_the_counter_from_the_start_calls_are_counted(family, optimize):
    early = compile('no_clock.c', family, optimize,
                    ['-shared', '-fPIC', '-DEARLY'], name='libno_clock.so')
    program = compile('no_clock.c', family, optimize,
                      libraries=['-Wl,--no-as-needed', *linked(early)],
                      name='no_clock_early')
    for profile in PROFILES:
        result = run_both([program, 'thread'], profile)
        about = json_of(result.output)
        expect_truth(result, calls_of(about))
        expect_equal(about['lost'], 0, 'lost')
        expect_tree(tree_of(result.output), {
            'main': 1, 'main;work': 2, 'main;work;leaf': 10, 'worker': 2,
            'worker;work': 2, 'worker;work;leaf': 10})


# --- traces in the process ---

@each_build
def nothing_but_the_hooks_time_is_to_be_noticed(family, optimize):
    program = compile('manners.c', family, optimize, libraries=['-lm'])
    for profile in PROFILES:
        result = run_both([program], profile)
        expect('changed' not in result.stdout.replace('unchanged', ''),
               result.stdout)
        expect('vectors kept' in result.stdout, result.stdout)
        expect_truth(result, calls_of(json_of(result.output)))


def is_checked():
    """Whether the library has assertions (-Dassertions=true), as the builds have that trap
    undefined behaviour.  Checks take registers, so hooks use 152 and 632 bytes there."""
    with open(shimtest.library, 'rb') as file:
        return b'assert_failed' in file.read()


@test
def hooks_use_128_bytes_of_stack_and_512_at_most():
    program = compile('stack_use.c')

    def measured(result):
        return {name: int(n) for name, n in
                re.findall(r'^(\w+) (\d+)$', result.stdout, re.M)}
    alone = measured(run([program]))    # the call itself: a return address
    for profile in PROFILES:
        used = measured(record([program], profile))
        used = {name: used[name] - alone[name] for name in used}
        limits = {'fast': 128, 'path': 512, 'first': 512}
        if is_checked():
            limits = {name: limit * 3 // 2 for name, limit in limits.items()}
        over = ['%s: %d bytes' % (name, used[name]) for name in limits
                if used[name] > limits[name]]
        expect(not over, '%s: %s' % (profile, ', '.join(over)))


@test
def a_recording_is_its_owners_alone():
    program = compile('threads.c')
    parent = new_directory('modes')
    output = os.path.join(parent, 'r')
    subprocess.run(shimtest.emulator + [program],
                   stdout=subprocess.DEVNULL, umask=0,
                   env=shimtest.environment(LD_PRELOAD=shimtest.library,
                                            SHIM_OUTPUT=output))
    seen = 0
    for directory, _, files in os.walk(output):
        expect_equal(oct(stat.S_IMODE(os.stat(directory).st_mode)), '0o700',
                     directory)
        for file in files:
            path = os.path.join(directory, file)
            expect_equal(oct(stat.S_IMODE(os.stat(path).st_mode)), '0o600',
                         path)
            seen += 1
    expect(seen > 3, 'only %d files' % seen)


@test
def files_of_dead_threads_are_used_again():
    program = compile('threads.c')
    result = record([program])
    files = [f for _, _, files in os.walk(result.output) for f in files
             if f.endswith('.calltree')]
    expect(len(files) <= 66, '%d files for at most 65 threads at a time' %
           len(files))


@test
def nothing_of_ours_is_open_or_running_at_main():
    # The program prints the same as without shim: see above.  Here: what it prints.
    program = compile('manners.c', libraries=['-lm'])
    result = record([program])
    lines = result.stdout.splitlines()
    expect('threads 3' in lines, result.stdout)     # ., .. and main
    expect('SigCgt:\t0000000000000000' in lines, result.stdout)
    expect('timers 0' in lines, result.stdout)


if __name__ == '__main__':
    shimtest.main()
