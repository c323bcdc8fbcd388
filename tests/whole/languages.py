"""Names of functions of Rust and D."""

import os
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, json_of, need,
                      new_directory, record, shim_report, test)

PROFRUN = os.path.join(os.environ.get('SHIM_BUILD', ''), 'profrun')

# What rustc 1.63 and gdc 12 called functions, and what these are in the source.
NAMES = [
    ('_RINvCscAEuU5ehQ2G_3app4workDNtB2_5ShapeEL_EB2_',
     'app::work::<dyn app::Shape>', 'app::work'),
    ('_RNvMs7_NtCsgEmfK2I1SDS_4core3numy12wrapping_mul',
     '<u64>::wrapping_mul', '<u64>::wrapping_mul'),
    ('_ZN89_$LT$core..ops..range..Range$LT$T$GT$$u20$as$u20$core..iter..range..'
     'RangeIteratorImpl$GT$9spec_next17hbfb862862803bd50E',
     '<core::ops::range::Range<T> as core::iter::range::RangeIteratorImpl>'
     '::spec_next',
     '<core::ops::range::Range as core::iter::range::RangeIteratorImpl>'
     '::spec_next'),
    ('_ZN3app4work17h0d18bef784cb9295E', 'app::work', 'app::work'),
    ('_D3app5Shape4areaMxFZl', 'app.Shape.area() const', 'app.Shape.area()'),
    ('_D3app5twiceFliZl.part.0', 'app.twice(long, int) [clone .part.0]',
     'app.twice() [clone .part.0]'),
    ('_Dmain', 'D main', 'D main'),
    # C++, and names of no language or of one without a library for its names
    ('_ZN2ns1fEi', 'ns::f(int)', 'ns::f()'),
    ('_Random', '_Random', '_Random'),
    ('_D', '_D', '_D'),
    ('_D3ap', '_D3ap', '_D3ap'),
    ('$s3app4workyyF', '$s3app4workyyF', '$s3app4workyyF'),
]


def endless(levels):
    """A name of D with so many types, each twice as long as the one before."""
    name, last = '_D1fFHii', len('_D1fF')
    for _ in range(levels):
        begin = len(name)
        name += 'H'
        for _ in range(2):
            distance = len(name) - last
            name += 'Q' + (chr(ord('A') + distance // 26) if distance > 25
                           else '') + chr(ord('a') + distance % 26)
        last = begin
    return name + 'Zv'


NAMES += [(endless(2), 'f(int[int], int[int][int[int]], '
           'int[int][int[int]][int[int][int[int]]])', 'f()'),
          (endless(60), endless(60), endless(60))]


def program():
    """Its functions have the names above."""
    if not hasattr(program, 'path'):
        source = os.path.join(new_directory('languages'), 'app.c')
        with open(source, 'w') as out:
            for n, (name, *_) in enumerate(NAMES):
                out.write('void f%d(void) __asm__("\\"%s\\"");\nvoid f%d(void) { }\n'
                          % (n, name, n))
            out.write('int main(void)\n{\n%s}\n' % ''.join(
                '\tf%d();\n' % n for n in range(len(NAMES))))
        program.path = compile(source, 'gcc', '-O0', flags=('-g',))
        program.output = record([program.path]).output
    return program.output


@test
def names_of_rust_and_d_are_those_of_the_source():
    output = program()
    functions = json_of(output)['functions']
    for mangled, name, short in NAMES:
        expect(any(f['name'] == name for f in functions), (name, functions))
        text = shim_report('export', 'folded', '--value', 'calls', output,
                           '--names', 'short')
        expect(';%s ' % short in text, (short, text))
        text = shim_report('export', 'folded', '--value', 'calls', output,
                           '--names', 'mangled')
        expect(';%s ' % mangled in text, (mangled, text))


@test
def the_page_and_exports_have_them():
    output = program()
    for words in (('report', '--tree', '--min-percent', '0'),
                  ('html', '-o', '-'), ('export', 'speedscope'),
                  ('export', 'callgrind'), ('export', 'csv'),
                  ('export', 'perf-script')):
        text = shim_report(*words, output, *(
            () if words[1] == 'perf-script' else ('--names', 'full')))
        expect('app.Shape.area() const' in text and
               'wrapping_mul' in text, (words, text))


@test
def a_program_of_d_has_names():
    need('gdc')
    source = os.path.join(new_directory('d'), 'app.d')
    with open(source, 'w') as out:
        out.write('module app;\n'
                  'class Shape { long side; this(long s) { side = s; }\n'
                  '  long area() const { return side * side; } }\n'
                  'T fold(T, alias f)(T first, int rounds) {\n'
                  '  foreach (i; 0 .. rounds) first = f(first, i);\n'
                  '  return first; }\n'
                  'long twice(long a, int b) { return a * 2 + b; }\n'
                  'int main() { auto s = new Shape(3);\n'
                  '  return cast(int)(s.area() + fold!(long, twice)(1, 10))'
                  ' == 0; }\n')
    path = source[:-2]
    done = subprocess.run(['gdc', '-O0', '-g', '-finstrument-functions',
                           source, '-o', path], capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    calls = {f['name']: f['calls']
             for f in json_of(record([path]).output)['functions']}
    expect_equal({name: calls.get(name) for name in (
        'D main', 'app.Shape.this(long)', 'app.Shape.area() const',
        'app.twice(long, int)', 'app.fold!(long, app.twice(long, int)).fold')},
                 {'D main': 1, 'app.Shape.this(long)': 1,
                  'app.Shape.area() const': 1, 'app.twice(long, int)': 10,
                  'app.fold!(long, app.twice(long, int)).fold': 1}, calls)


@test
def stacks_of_a_process_have_each_form():
    source = os.path.join(new_directory('waits'), 'waits.c')
    name, full, short = NAMES[0]
    with open(source, 'w') as out:
        out.write('#include <stdio.h>\n#include <unistd.h>\n'
                  'void work(void) __asm__("%s");\n'
                  'void work(void) { puts(""); fflush(stdout); pause(); }\n'
                  'int main(void) { work(); }\n' % name)
    with subprocess.Popen([compile(source, 'gcc', '-O0', flags=('-g',))],
                          stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        for options, wanted in (((), full), (('--names', 'full'), full),
                                (('--names', 'short'), short),
                                (('--names', 'mangled'), name)):
            done = subprocess.run([PROFRUN, 'stack', str(program.pid), *options],
                                  capture_output=True, text=True, timeout=60)
            expect('   ' + wanted + ' [' in done.stdout, (options, done))
        program.kill()
    done = subprocess.run([PROFRUN, 'stack', '1', '--names', 'brief'],
                          capture_output=True, text=True, timeout=60)
    expect_equal(done.returncode, 2, done)
    expect('--names' in done.stderr and 'brief' in done.stderr, done)


if __name__ == '__main__':
    shimtest.main()
