#!/usr/bin/env python3
"""python_frames.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Functions of Python in samples of its interpreter, CPython 3.11 to 3.13.
"""
import json
import os
import shutil
import subprocess

import shimtest
from shimtest import (Skipped, compile, expect, expect_equal, new_directory, run,
                      shim_report, test)

SCRIPT = """
import sys, threading, time

def leaf(n):
    s = 0
    for i in range(n):
        s += i * i
    return s

def steps(n):
    for _ in range(n):
        yield leaf(2000)

class Sorter:
    def sort(self, n):
        return sorted(range(n), key=lambda x: self.weigh(x))

    def weigh(self, x):
        return -x

def raises(depth):
    if depth:
        return raises(depth - 1)
    raise ValueError(leaf(10000))

def work(rounds, results):
    for _ in range(rounds):
        results.append(sum(steps(20)))
        results.append(Sorter().sort(1000)[0])
        try:
            raises(30)
        except ValueError as error:
            results.append(str(error))

def main(rounds, count):
    results = [[] for _ in range(count)]
    threads = [threading.Thread(target=work, args=(rounds, one))
               for one in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(results[0][:3], len(set(map(str, results))))

main(int(sys.argv[1]), int(sys.argv[2]))
"""

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')

# What python_begin() looks for, with memory that is no interpreter's.
PRETENDER = """
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

unsigned long Py_Version = VERSION;
uint64_t _PyRuntime[4096], PyCode_Type[64];

__attribute__((noinline)) unsigned long _PyEval_EvalFrameDefault(unsigned long n)
{
	volatile unsigned long sum = 0;

	while (n-- > 0)
		sum += n * n;
	return sum;
}

int main(void)
{
	struct timespec now;
	unsigned long i, sum = 0;

	for (i = 0; i < 4096; i++)
		_PyRuntime[i] = i % 3 ? (uintptr_t)&_PyRuntime[i * 7 % 4096] :
					i * 0x9e3779b97f4a7c15ull;
	do {
		sum += _PyEval_EvalFrameDefault(100000);
		for (i = 0; i < 4096; i++)
			_PyRuntime[i] += i & 8;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec == 0 && now.tv_nsec < 300000000);
	return sum == 1;
}
"""


def interpreters():
    """Every CPython here whose frames are known."""
    found = {}
    for name in ('/usr/bin/python3', 'python3.11', 'python3.12', 'python3.13'):
        path = shutil.which(name)
        done = path and subprocess.run(
            [path, '-c', 'import sys; print(sys.implementation.name,'
             ' *sys.version_info[:2], sys.executable)'],
            capture_output=True, text=True)
        words = done.stdout.split() if done and done.returncode == 0 else []
        if words[:2] == ['cpython', '3'] and 11 <= int(words[2]) <= 13:
            found.setdefault(words[2], words[3])
    if not found:
        raise Skipped('there is no CPython 3.11, 3.12 or 3.13')
    return found.values()


def script():
    path = os.path.join(new_directory('script'), 'task.py')
    with open(path, 'w') as file:
        file.write(SCRIPT.lstrip())
    return path


def paths_of(directory):
    """{(function, ...): time}, and the functions by name."""
    report = json.loads(shim_report('export', 'json', directory))
    by_id, paths = {}, {}
    for path in report['paths']:
        function = report['functions'][path['function']]
        by_id[path['id']] = by_id.get(path['parent'], ()) + (function['name'],)
        name = by_id[path['id']]
        paths[name] = paths.get(name, 0) + (path['self_ns'] or 0)
    return paths, {f['name']: f for f in report['functions']}


def below(paths, *names):
    """The time in paths that have these names in this order."""
    total = 0
    for path, time in paths.items():
        rest = iter(path)
        if all(name in rest for name in names):
            total += time
    return total


@test
def functions_of_python_have_names_lines_and_callers():
    task = script()
    for python in interpreters():
        directory = new_directory('recording')
        done = run([python, task, '200', '1'], directory, 'sampling:hz=5000')
        expect_equal((done.status, done.stderr), (0, ''), python)
        paths, functions = paths_of(directory)
        # A host may take the processor away in the call that begins to wait.
        whole = sum(paths.values()) - below(paths, 'Thread.join')
        expect(below(paths, 'work') > whole * 0.7, (python, paths))
        expect(below(paths, 'work', 'steps', 'leaf') > whole / 4, (python, paths))
        lambdas = [name for name in functions if '<lambda>' in name]
        expect(lambdas and below(paths, 'work', 'Sorter.sort', lambdas[0]) > 0,
               (python, paths))
        leaf = functions['leaf']
        expect_equal((os.path.basename(leaf['file']), leaf['line']),
                     ('task.py', 3), python)
        expect('leaf [Python task.py:3]' in shim_report('report', directory),
               python)
        # What is between two functions of Python in C stays; the interpreter goes.
        expect(not below(paths, '_PyEval_EvalFrameDefault', 'leaf'), paths)


@test
def threads_exceptions_and_generators_of_python_go_on_as_they_do_alone():
    task = script()
    for python in interpreters():
        command = [python, task, '15', '4']
        alone = subprocess.run(command, capture_output=True, text=True)
        directory = new_directory('recording')
        done = run(command, directory, 'sampling:hz=5000')
        expect_equal((done.status, done.stdout, done.stderr),
                     (alone.returncode, alone.stdout, alone.stderr), python)
        paths, _ = paths_of(directory)
        expect(below(paths, 'work', 'steps', 'leaf') > 0, (python, paths))
        expect(below(paths, 'raises', 'raises', 'leaf') > 0, (python, paths))


def pretender(version):
    folder = new_directory('pretender')
    source = os.path.join(folder, 'pretender.c')
    with open(source, 'w') as file:
        file.write(PRETENDER)
    path = os.path.join(folder, 'pretender')
    subprocess.run(['gcc', '-O1', '-g', '-rdynamic', '-w',
                    '-DVERSION=' + version, '-o', path, source], check=True)
    directory = os.path.join(folder, 'recording')
    done = subprocess.run(
        [PROFRUN, 'run', '-p', 'sampling:hz=5000', '-o', directory, path],
        capture_output=True, text=True)
    expect_equal(done.returncode, 0, version)
    paths, _ = paths_of(directory)
    expect(below(paths, 'main', '_PyEval_EvalFrameDefault') > 0, paths)
    return done.stderr


OPENER = """
#include <dlfcn.h>

int main(int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
	int (*run)(int, char **);

	if (!library)
		return 9;
	run = (int (*)(int, char **))dlsym(library, "Py_BytesMain");
	return run ? run(argc - 1, argv + 1) : 9;
}
"""


@test
def an_interpreter_that_is_opened_later_is_read():
    task = script()
    source = shimtest.new_source('opener.c', OPENER)
    opener = compile(source, instrument=False)
    libraries = []
    for python in interpreters():
        done = subprocess.run(
            [python, '-c', 'import sysconfig as s; print(s.get_config_var('
             '"LIBDIR"), s.get_config_var("INSTSONAME"))'],
            capture_output=True, text=True)
        path = os.path.join(*done.stdout.split())
        if '.so' in path and os.path.exists(path):
            libraries.append(path)
    if not libraries:
        raise Skipped('no interpreter is a library')
    for library in libraries:
        output = new_directory('recording')
        done = run([opener, library, task, '40', '2'], output, 'sampling')
        expect_equal(done.status, 0, done.stderr)
        paths, functions = paths_of(output)
        time = sum(paths.values())
        expect(below(paths, 'work', 'leaf') > 0.2 * time,
               (library, time, below(paths, 'work', 'leaf')))
        expect(functions['leaf']['file'].endswith('task.py'), functions['leaf'])


ROUNDS = 20

CLOSER = """
#include <dlfcn.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < %d; i++) {
		void *library = dlopen(argv[1], RTLD_NOW);

		if (!library || dlclose(library) != 0)
			return 9;
	}
	return argc - 2;
}
""" % ROUNDS


@test
def libraries_without_an_interpreter_are_not_looked_for_when_they_are_opened():
    shimtest.need('strace')
    folder = new_directory('closer')
    source, library = (os.path.join(folder, name)
                       for name in ('closer.c', 'other.so'))
    with open(source, 'w') as file:
        file.write(CLOSER)
    with open(os.path.join(folder, 'other.c'), 'w') as file:
        file.write('int other(void) { return 1; }\n')
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', library, file.name],
                   check=True)
    log = os.path.join(folder, 'log')
    done = run(['strace', '-qq', '-o', log, '-e', 'trace=openat',
                compile(source, instrument=False), library],
               new_directory('recording'), 'sampling:hz=10')
    if not os.path.exists(log) or not os.path.getsize(log):
        raise Skipped('strace cannot trace: %s' % done.stderr)
    expect_equal(done.status, 0, done.stderr)
    with open(log) as file:
        scans = file.read().count('/proc/self/maps')
    # A scan after each dlclose, and those of the start.
    expect(scans < 1.5 * ROUNDS, scans)


@test
def memory_that_is_no_interpreters_is_not_believed():
    for version in ('0x030b00f0', '0x030c00f0', '0x030d00f0'):
        pretender(version)


@test
def an_unknown_version_is_said():
    said = pretender('0x030a00f0')
    expect('functions of Python are not shown' in said, said)


if __name__ == '__main__':
    shimtest.main()
