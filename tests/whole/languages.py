"""Functions of Rust, D, Go and Fortran."""

import os
import random
import re
import struct
import subprocess

import shimtest
from shimtest import (calls_of, compile, expect, expect_equal, json_of, need,
                      new_directory, record, shim_report, test)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')

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
    ('__shapes_MOD_twice', 'shapes::twice', 'shapes::twice'),
    ('__shapes_MOD_', '__shapes_MOD_', '__shapes_MOD_'),
    ('___MOD_twice', '___MOD_twice', '___MOD_twice'),
    # C++, and names of no language or of one without a library for its names
    ('_ZN2ns1fEi', 'ns::f(int)', 'ns::f()'),
    ('_ZW2mm5twicei', 'twice@mm(int)', 'twice@mm()'),
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


FORTRAN = """module shapes
contains
integer function twice(n)
  integer, intent(in) :: n
  twice = n + n
end function
end module
program main
  use shapes
  print *, twice(21)
end program
"""


@test
def procedures_of_fortrans_modules_have_names_and_debug_information():
    need('gfortran')
    directory = new_directory('fortran')
    source, path = (os.path.join(directory, name) for name in ('app.f90', 'app'))
    with open(source, 'w') as out:
        out.write(FORTRAN)
    subprocess.run(['gfortran', '-g', '-finstrument-functions', '-J', directory, source,
                    '-o', path], check=True)
    output = record([path], 'trace:args=all,results=all').output
    expect('shapes::twice(n = <not understood>) = ' in shim_report('replay', output),
           shim_report('replay', output))
    for filter in 'N:shapes', 'M:twice', 'M:__shapes_MOD_twice':
        counts = calls_of(json_of(record([path], SHIM_FILTER=filter).output))
        expect_equal(list(counts), ['shapes::twice'], filter)
    expect('shapes::twice' not in calls_of(json_of(
               record([path], SHIM_FILTER='-N:shapes').output)),
           'left out')


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


GO = '''package main

import "fmt"

type Shape struct{ side int }

//go:noinline
func (s *Shape) Area(n int) int {
	t := 0
	for i := 0; i < n; i++ {
		t = t*31 + i*s.side
	}
	return t
}

//go:noinline
func work(s *Shape) int {
	t := 0
	for {
		t += s.Area(1000000)
	}
}

func main() {
	fmt.Println("ready")
	work(&Shape{3})
}
'''


@test
def a_stripped_program_of_go_has_names_and_lines_and_callers():
    need('go')
    directory = new_directory('go')
    with open(os.path.join(directory, 'app.go'), 'w') as out:
        out.write(GO)
    cache = {'HOME': directory, 'GOCACHE': os.path.join(directory, 'cache'),
             'GOFLAGS': '', 'GOTOOLCHAIN': 'local', 'GO111MODULE': 'off'}
    path = os.path.join(directory, 'app')
    done = subprocess.run(['go', 'build', '-ldflags', '-s -w', '-o', path, 'app.go'],
                          capture_output=True, text=True, cwd=directory,
                          env=dict(os.environ, **cache))
    expect_equal(done.returncode, 0, done.stderr)

    def stacks(program):
        with subprocess.Popen([program], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            done = subprocess.run([PROFRUN, 'stack', str(process.pid)],
                                  capture_output=True, text=True, timeout=120)
            process.kill()
        return done.stdout + done.stderr
    text = stacks(path)
    frames = [line.split(maxsplit=1)[1] for line in text.splitlines()
              if line.startswith('  #')]
    # (Area has no frame, so its caller is passed over.)
    at = frames.index('main.main [app app.go:26]')
    match = re.match(r'main\.(\(\*Shape\)\.Area|work) \[app app\.go:(\d+)\]$',
                     frames[at - 1])
    expect(match, text)
    expect(int(match[2]) in (range(10, 12) if 'Area' in match[1] else
                             range(20, 22)), text)
    expect(frames[at + 1].startswith('runtime.main [app proc.go:'), text)
    expect(any(frame.startswith('runtime.sysmon [app proc.go:')
               for frame in frames), text)


def go_table(magic, functions, end):
    """The table of a linker: Go 1.16 (0xfffffffa), 1.18 (0xfffffff0), 1.20."""
    is_old = magic == 0xfffffffa
    names, values, records, index = b'', b'\0', b'', b''
    size = 8 if is_old else 4
    kind = '<Q' if is_old else '<I'
    base = 0 if is_old else functions[0][0]
    room = (2 * len(functions) + 1) * size
    for n, (address, name, line) in enumerate(functions):
        until = functions[n + 1][0] if n + 1 < len(functions) else end

        def pairs(*numbers):
            text = b''
            for number in numbers:
                while number > 0x7f:
                    text += bytes((number & 0x7f | 0x80,))
                    number >>= 7
                text += bytes((number,))
            return text + b'\0'
        file_at = len(values)
        values += pairs(2, until - address)
        line_at = len(values)
        values += pairs(2 * (line + 1), until - address)
        index += struct.pack(kind, address - base) + struct.pack(
            kind, room + len(records))
        records += struct.pack(kind, address - base) + struct.pack(
            '<8I', len(names), 0, 0, 0, file_at, line_at, 0, 1) + bytes(8)
        names += name.encode() + b'\0'
    index += struct.pack(kind, end - base)
    head = struct.pack('<IHBB2Q', magic, 0, 1, 8, len(functions), 1)
    at = len(head) + (40 if is_old else 48)
    parts = [names, struct.pack('<2I', 99, 2), b'x\0app.go\0', values,
             index + records]
    if not is_old:
        head += struct.pack('<Q', base)
    for part in parts:
        head += struct.pack('<Q', at)
        at += len(part)
    return head + b''.join(parts)


@test
def tables_of_each_version_of_go_are_read_and_damaged_ones_harm_nothing():
    need('objcopy', 'strip', 'nm')
    directory = new_directory('table')
    source = os.path.join(directory, 'app.c')
    with open(source, 'w') as out:
        out.write('int work(int n) { return n + 1; }\n'
                  'int main(void) { return work(-1); }\n')
    sound = compile(source, 'gcc', '-O0', flags=('-no-pie', '-fno-pie'))
    starts = {line.split()[2]: int(line.split()[0], 16) for line in
              subprocess.run(['nm', sound], capture_output=True, text=True,
                             check=True).stdout.splitlines()
              if len(line.split()) == 3}
    functions = [(starts['work'], 'main.work', 300), (starts['main'], 'main.main', 2)]
    rng = random.Random(1)
    for magic in (0xfffffffa, 0xfffffff0, 0xfffffff1):
        path = os.path.join(directory, 'app%x' % magic)
        table = go_table(magic, functions, starts['main'] + 64)
        with open(path + '.table', 'wb') as out:
            out.write(table)
        subprocess.run(['objcopy', '--add-section', '.gopclntab=' + path + '.table',
                        sound, path], check=True, capture_output=True)
        subprocess.run(['strip', path], check=True)
        output = record([path]).output

        def named():
            # pylint: disable=cell-var-from-loop
            return {f['name']: (f['file'], f['line'])
                    for f in json_of(output)['functions']}
        expect_equal(named(), {'main.work': ('app.go', 300),
                               'main.main': ('app.go', 2)}, hex(magic))
        with open(path, 'rb') as file:
            whole = file.read()
        begin = whole.index(table)
        for _ in range(40):
            damaged = bytearray(whole)
            for _ in range(rng.randrange(1, 4)):
                damaged[begin + rng.randrange(len(table))] = rng.choice(
                    (0, 0x7f, 0x80, 0xff))
            os.unlink(path)
            with open(path, 'wb') as file:
                file.write(damaged)
            expect_equal(sum(f['calls'] for f in json_of(output)['functions']),
                         2, 'calls')


if __name__ == '__main__':
    shimtest.main()
