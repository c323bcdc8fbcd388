#!/usr/bin/env python3
"""no_tables.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Samples in code that has no tables for the unwinder: assembly, Go, and code that a program
makes while it runs.
"""
import csv
import io
import json
import os
import re
import shutil
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record, run,
                      shim_report, test)

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')
PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')


def folded(output):
    """(samples of whole stacks, of others, the stacks)"""
    text = shim_report('export', 'folded', '--value', 'samples', output)
    stacks = [line.rsplit(' ', 1) for line in text.splitlines()]
    cut = sum(int(n) for stack, n in stacks
              if stack.startswith('[callers that could not be found]'))
    return sum(int(n) for _, n in stacks) - cut, cut, stacks


def guesses(about):
    """{function: its samples whose caller is a guess}"""
    found = {}
    for path in about['paths']:
        name = about['functions'][path['function']]['name']
        found[name] = found.get(name, 0) + path.get('guessed', 0)
    return found


def share(stacks, pattern):
    return sum(int(n) for stack, n in stacks if re.search(pattern, stack))


@test
def code_without_tables_has_callers_by_its_frame_pointer():
    for family, optimize in shimtest.BUILDS:
        program = compile('no_tables.c', family, optimize, ['-I', INCLUDE],
                          instrument=False)
        done = run([program], new_directory('recording'), 'none')
        expect_equal((done.status, done.stderr), (0, ''), 'the program')
        lines = dict(line.split(': ') for line in done.stdout.splitlines())
        for case in 'by_pointer', 'by_epilogue', 'both':
            expect_equal(lines.pop(case), 'whole, with main, short', case)
        expect_equal(lines.pop('end'), 'whole, without main, short', 'end')
        expect_equal(len(lines), 9, done.stdout)
        for case, line in lines.items():
            expect_equal(line, 'cut, without main, short', case)


@test
def a_function_without_frame_has_a_caller():
    program = compile('no_tables.c', 'gcc', '-O1', ['-I', INCLUDE],
                      instrument=False)
    output = record([program, 'spin'], 'sampling').output
    whole, cut, stacks = folded(output)
    spun = share(stacks, ';main;calls_leaf;leaf$')
    expect(spun > 20 and spun >= 0.9 * (whole + cut), stacks)
    # That its caller is a guess is told: of leaf, and of no other function.
    about = json.loads(shim_report('export', 'json', output))
    guessed = guesses(about)
    expect(spun <= guessed['leaf'] <= about['guessed'] <= whole + cut, guessed)
    expect(about['guessed'] and not guessed['main'], guessed)
    expect(re.search(r'of them \([\d.]+ %\) have a caller that is a guess',
                     shim_report('report', output)), 'the report')
    tree = shim_report('report', '--tree', output)
    expect(re.search(r' leaf \[.*\] \(caller guessed', tree) and
           not re.search(r' main \[.*\(caller guessed', tree), tree)
    # Callers, callees and CSV tell the same.  (calls_leaf has no tables either.)
    callers = shim_report('report', '--callers', 'leaf', output)
    expect(re.search(r' calls_leaf \[.*\] \(guessed', callers), callers)
    callees = shim_report('report', '--callees', 'calls_leaf', output)
    expect(re.search(r' leaf \[.*\] \(caller guessed', callees), callees)
    above = shim_report('report', '--callers', 'main', output)
    expect('guessed' not in above.split('callers of')[1], above)
    up = shim_report('report', '--callers', 'leaf', '--tree', output)
    expect(re.search(r' leaf \[.*\] \(caller guessed', up) and
           not re.search(r' main \[.*guessed', up), up)
    rows = list(csv.DictReader(io.StringIO(shim_report('export', 'csv', output))))
    expect_equal({row['name']: int(row['guessed']) for row in rows
                  if row['name'] in guessed}, guessed, 'CSV')


@test
def no_caller_is_a_guess_where_there_are_tables():
    program = compile('lined.c', 'gcc', '-O1', ['-g'], instrument=False)
    output = record([program, '1500000'], 'sampling').output
    guessed = guesses(json.loads(shim_report('export', 'json', output)))
    # One sample in some hundred runs meets what libc and libgcc put into a program: these
    # have none.
    startup = sum(guessed.pop(name, 0) for name in (
        '_init', '_fini', 'frame_dummy', 'register_tm_clones', 'deregister_tm_clones',
        '__do_global_dtors_aux'))
    expect('main' in guessed and not any(guessed.values()), guessed)
    expect_equal('guess' in shim_report('report', output), startup > 0, 'the report')


GO = r'''package main

// #cgo LDFLAGS: -lm
// #include <math.h>
// static double computed(double x)
// {
//	for (int i = 0; i < 2000000; i++)
//		x += sin(x);
//	return x;
// }
import "C"
import "fmt"

//go:noinline
func leaf(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += i * s
	}
	return s
}

//go:noinline
func middle(n int) int {
	s := 0
	for i := 0; i < 100; i++ {
		s += leaf(n)
	}
	return s + 1
}

//go:noinline
func inC() float64 { return float64(C.computed(1.0)) }

func main() {
	ch := make(chan int)
	go func() { ch <- middle(2000000) }()
	fmt.Println(middle(1000000), <-ch, inC())
}
'''


@test
def functions_of_go_have_callers():
    shimtest.need('go')
    directory = new_directory('go')
    with open(os.path.join(directory, 'app.go'), 'w') as out:
        out.write(GO)
    path = os.path.join(directory, 'app')
    done = subprocess.run(
        ['go', 'build', '-o', path, 'app.go'], capture_output=True, text=True,
        cwd=directory, env=dict(
            os.environ, HOME=directory, GOCACHE=directory + '/cache', GOFLAGS='',
            GOTOOLCHAIN='local', GO111MODULE='off', CGO_ENABLED='1'))
    expect_equal(done.returncode, 0, done.stderr)
    whole, cut, stacks = folded(record([path], 'sampling').output)
    expect(cut <= 0.02 * whole, (whole, cut, stacks))
    for pattern in (r'^runtime\.goexit\S*;main\.main\.func1;main\.middle;main\.leaf$',
                    r'^runtime\.goexit\S*;runtime\.main;main\.main;main\.middle;'
                    r'main\.leaf$',
                    r'^runtime\.goexit.*;main\.main;main\.inC;.*;computed'):
        expect(share(stacks, pattern) > 5, (pattern, stacks))


@test
def functions_of_node_have_callers():
    if not shutil.which('node'):
        raise shimtest.Skipped('node is not installed')
    directory = new_directory('node')
    script = os.path.join(directory, 'app.js')
    with open(script, 'w') as out:
        out.write('function leaf(n) { let s = 0;\n'
                  '  for (let i = 0; i < n; i++) s = (s * 31 + i) | 0;\n'
                  '  return s; }\n'
                  'function middle(n) { let s = 0;\n'
                  '  for (let i = 0; i < 50; i++) s = (s + leaf(n + i)) | 0;\n'
                  '  return s; }\n'
                  'let s = 0;\n'
                  'for (let i = 0; i < 10; i++) s += middle(200000);\n'
                  'console.log(s);\n')
    output = new_directory('made') + '/recording'
    done = subprocess.run(
        [PROFRUN, '-q', '-o', output, '-p', 'sampling', '--', 'node',
         '--perf-basic-prof', script], capture_output=True, text=True, cwd=directory,
        timeout=120)
    expect_equal(done.returncode, 0, done.stderr)
    whole, cut, stacks = folded(output)
    expect(cut <= 0.02 * whole, (whole, cut))
    expect(share(stacks, '^_start;.*node::.*;JS:[^;]*leaf ') > 0.3 * whole, stacks)


if __name__ == '__main__':
    shimtest.main()
