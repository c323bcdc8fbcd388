"""Regions, tasks and barriers of clang's OpenMP as functions of the call tree."""

import os
import shutil
import subprocess

import shimtest
from shimtest import expect, expect_equal, new_directory, test, tree_of

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
KNOWN = {}


def program():
    if 'program' not in KNOWN:
        shimtest.need('clang')
        path = os.path.join(new_directory('openmp'), 'openmp')
        made = subprocess.run(['clang', '-O1', '-g', '-fopenmp', '-finstrument-functions',
                               '-o', path, os.path.join(shimtest.PROGRAMS, 'openmp.c')],
                              capture_output=True, text=True)
        expect_equal(made.returncode, 0, made.stderr)
        KNOWN['program'] = path
    return KNOWN['program']


def recorded(profile='calltree:counts', **environment):
    output = os.path.join(new_directory('recorded'), 'job')
    done = subprocess.run([PROFRUN, 'record', '-q', '-p', profile, '-o', output, program()],
                          env=shimtest.environment(**environment), capture_output=True,
                          text=True, timeout=60)
    expect_equal((done.returncode, done.stdout), (0, 'done\n'), done.stderr)
    return output


def paths_of(output):
    return [(path.split(';'), calls) for path, calls in tree_of(output).items()]


def calls_of(paths, name, above=None):
    return sum(calls for path, calls in paths
               if path[-1] == name and (above is None or above in path[:-1]))


@test
def regions_and_tasks_are_in_the_tree_of_their_threads():
    paths = paths_of(recorded())
    # 4 of step, 1 of tasks, 1 of nested and 3 inside of it
    expect_equal(calls_of(paths, 'omp.parallel'), 9, paths)
    expect_equal(calls_of(paths, 'omp.parallel', 'step'), 4, paths)
    expect_equal(calls_of(paths, 'omp.implicit_task'), 6 * 3 + 3 * 2, paths)
    expect_equal(calls_of(paths, 'omp.implicit_task', 'step'), 4, 'in the first thread')
    expect_equal(calls_of(paths, 'work', 'omp.implicit_task'),
                 4 * 3 * 2 + 20 + 3 * 2, paths)
    expect_equal(calls_of(paths, 'handed', 'omp.implicit_task'), 20, paths)
    for path, _ in paths:
        expect(path[0] in ('main', 'omp.implicit_task'), path)


@test
def waits_are_in_the_tree():
    paths = paths_of(recorded())
    # Explicit ones in step; a region has one at its end.
    expect_equal(calls_of(paths, 'omp.barrier'), 4 * 3 + 6 * 3 + 3 * 2, paths)
    expect_equal(calls_of(paths, 'omp.barrier', 'omp.implicit_task'),
                 calls_of(paths, 'omp.barrier'), paths)
    expect_equal(calls_of(paths, 'omp.taskwait'), 1, paths)
    # Tasks run while a thread waits for them.
    expect(calls_of(paths, 'handed', 'omp.taskwait') +
           calls_of(paths, 'handed', 'omp.barrier') == 20, paths)


@test
def regions_have_times_and_a_trace():
    output = recorded('trace')
    text = shimtest.shim_report('replay', output)
    expect_equal(text.count('omp.parallel {'), 9, text)
    about = {each['name']: each for each in shimtest.json_of(output)['functions']}
    expect(about['omp.barrier']['self_ns'] > 0, about['omp.barrier'])
    expect(about['omp.parallel']['total_ns'] >= about['omp.parallel']['self_ns'], about)


@test
def the_tool_can_be_disabled():
    names = {path[-1] for path, _ in paths_of(recorded(OMP_TOOL='disabled'))}
    expect(not any(name.startswith('omp.') for name in names) and 'step' in names, names)


@test
def the_tool_is_found_in_a_directory_with_a_blank():
    """A blank ends an entry of LD_PRELOAD."""
    moved = os.path.join(new_directory('moved'), 'a blank')
    os.mkdir(moved)
    directory, name = os.path.split(shimtest.library)
    for library in name, 'libshim-openmp.so':
        shutil.copy(os.path.join(directory, library), moved)
    paths = paths_of(recorded(SHIM_LIBRARY=os.path.join(moved, name)))
    expect_equal(calls_of(paths, 'omp.parallel'), 9, paths)


if __name__ == '__main__':
    shimtest.main()
