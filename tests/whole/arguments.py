#!/usr/bin/env python3
"""arguments.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Arguments as slow hooks see them.  Programs with many prototypes, generated here, print
the arguments that they pass, the results that they return, and the values that shim
reports (tests/programs/arguments.h); SEED=N generates others, PROTOTYPES=N more of them
at random.  No value may be wrong; the number of unavailable values is printed.
"""
import collections
import hashlib
import os
import random
import re
import subprocess

import shimtest
from shimtest import BUILDS, add_test, compile, expect, expect_equal, record

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')
# Those at random, beside those with each type; compiling them takes nearly all the time.
PROTOTYPES = int(os.environ.get('PROTOTYPES', '24'))

# Types: their spelling, and the number of bytes that count (0: all).
C_TYPES = [
    ('char', 0), ('signed char', 0), ('short', 0), ('unsigned short', 0),
    ('int', 0), ('unsigned', 0), ('long', 0), ('unsigned long long', 0),
    ('_Bool', 0), ('void *', 0), ('const char *const', 0), ('function', 0),
    ('enum colour', 0), ('float', 0), ('double', 0), ('const volatile int', 0),
    ('long double', 10), ('__int128', 0), ('float _Complex', 0),
    ('double _Complex', 0), ('vector', 0),
    ('struct c1', 0), ('struct c3', 0), ('struct f1', 0), ('struct f2', 0),
    ('struct f3', 0), ('struct f4', 0), ('struct fi', 0), ('struct i3', 0),
    ('struct ll', 0), ('struct dd', 0), ('struct ld', 0), ('struct dl', 0),
    ('struct ifd', 0), ('struct nested', 0), ('struct bits', 0),
    ('union du', 0), ('union fu', 0), ('struct l3', 0), ('struct i10', 0),
    ('struct packed', 0), ('struct aligned', 0), ('struct pointers', 0),
    ('struct array', 0), ('struct quad', 0), ('struct x87', 10),
    ('alignedint', 0), ('struct s7', 0), ('struct c15', 0),
]

# For processors with vector registers of this size.
WIDE_TYPES = [('wide', 0)]

C_DECLARATIONS = '''
enum colour { RED, GREEN = 1 << 20 };
typedef int (*function)(int, char);
typedef float vector __attribute__((vector_size(16)));
typedef double wide __attribute__((vector_size(32)));
typedef int alignedint __attribute__((aligned(32)));
struct c1 { char a; };
struct c3 { char a[3]; };
struct f1 { float a; };
struct f2 { float a, b; };
struct f3 { float a, b, c; };
struct f4 { float a[4]; };
struct fi { float a; int b; };
struct i3 { int a, b, c; };
struct ll { long a, b; };
struct dd { double a, b; };
struct ld { long a; double b; };
struct dl { double a; long b; };
struct ifd { int a; float b; double c; };
struct nested { struct { struct f1 a; int b[1]; } a; struct c1 b[8]; };
struct bits { unsigned a : 3, b : 13, c : 16; float d; };
union du { double a; unsigned long b; char c[8]; };
union fu { float a; struct f1 b; };
struct l3 { long a, b, c; };
struct i10 { int a[10]; };
struct packed { char a; long b; } __attribute__((packed));
struct aligned { long a, b; } __attribute__((aligned(16)));
struct pointers { void *a; const char *b; };
struct array { struct { short a; char b[2]; } a[3]; };
struct quad { __int128 a; };
struct x87 { long double a; };
struct s7 { short a[7]; };
struct c15 { char a[15]; };
'''

CXX_TYPES = [
    ('int &', 0), ('const double &', 0), ('long &&', 0), ('Copied', 0),
    ('Destroyed', 0), ('Moved', 0), ('Trivial', 0), ('Derived', 0),
    ('Virtual', 8), ('Holder', 0), ('Defaulted', 0), ('Outside', 0),
    ('Template<int>', 0), ('Method', 0), ('Field', 0), ('Scoped', 0),
    ('Empty', 0), ('Fixed', 0), ('Tiny', 0),
]

CXX_DECLARATIONS = '''
#define Q QUIETLY
struct Copied { int a; Q Copied() : a(1) {} Q Copied(const Copied &o) : a(o.a) {} };
struct Destroyed { long a[3]; Q ~Destroyed() { sink[0] = 1; } };
struct Moved { long a; Q Moved() : a(1) {} Moved(const Moved &) = delete;
	Q Moved(Moved &&o) : a(o.a) {} };
class Trivial { long a; float b; int c; public: Q int get() const { return c; } };
struct Base { int a; };
struct Derived : Base { float b; double c; };
struct Virtual { int v; virtual int get() { return v; } };
struct Holder { Copied a; int b; };
struct Defaulted { int a; Q Defaulted() = default;
	Q Defaulted(const Defaulted &) = default; Q ~Defaulted() = default; };
struct Outside { int a; Outside() = default; Outside(const Outside &); };
Q inline Outside::Outside(const Outside &) = default;
template <typename T> struct Template { T a; Q Template() : a() {}
	Q Template(const Template &o) : a(o.a) {} };
typedef int (Trivial::*Method)() const;
typedef int Base::*Field;
enum class Scoped : unsigned char { A, B };
struct Empty {};
struct Fixed { int a; Fixed() = default; Fixed(const Fixed &) = default;
	Fixed(int) {} };
struct Tiny { char a; Q Tiny() = default; Q ~Tiny() { sink[1] = 1; } };
'''

HARD = {'Virtual', 'Method', 'Field'}

# What makes a value that the compiler knows, and one that it does not know.
MAKERS = ['make', 'make_apart']

# enum shim_unavailable
REASONS = ['available', 'none', 'no debug information', 'not understood',
           'optimized out', 'clobbered', 'inlined', 'not returned', 'code',
           'not yet']


def declare(type, name):
    return '%s %s' % (type, name)


def is_copied(type):
    return (type[0].islower() and not type.endswith('&') and
            type != 'alignedint')


def bare(type):
    return (type.replace('const char *const', 'const char *')
            .replace('const volatile ', '').replace('&', '')
            .replace('const double', 'double').strip())


class Program:
    """The text of a program, and its number of cases.

    Functions and their callers are compiled apart, so that the compiler does not know
    which arguments the functions ignore; or together, when clang's callers omit those.
    """

    def __init__(self, types, cxx, seed):
        self.random = random.Random(seed)
        self.cxx, self.types = cxx, types
        self.significant = dict(types)
        with open(os.path.join(shimtest.PROGRAMS, 'arguments.h')) as file:
            self.text = [file.read()]
        self.types_text, self.runs, self.cases = [], [], 0
        self.used = set()       # cases whose functions use their arguments
        self.parameters = {}    # by case

    def add(self, types, result, method=False, use=None):
        """@use: 0 not used, 1 always used, 2 sometimes used."""
        self.cases += 1
        n = self.cases
        if use is None:
            use = self.random.randrange(3)
        if use != 0:
            self.used.add(n)
        self.parameters[n] = ['this'] * method + types
        names = ['p%d' % i for i in range(len(types))]
        body = []
        for type, name in zip(types, names):
            where = 'sizeof(%s) < 64 ? sizeof(%s) : 64' % (name, name)
            if use == 1:
                body.append('memcpy(uses[%d], (const void *)&%s, %s);' %
                            (len(body), name, where))
            elif use == 2:
                body.append('if (sink[2] != 77) '
                            'memcpy(uses[%d], (const void *)&%s, %s);' %
                            (len(body), name, where))
        parameters = ', '.join(declare(t, m) for t, m in zip(types, names))
        if not self.cxx and not parameters:
            parameters = 'void'
        if result == 'void':
            end = 'sink[3]++;'
        else:
            # clang changes the exponent of a random long double that it knows.
            maker = MAKERS[n % 2 or self.significant[result] == 10]
            end = ('%s r; %s(&r, sizeof(r), %d, %d); returned(%d, &r, %s); '
                   'return r;' % (result, maker, n * 7919,
                                  result in ('_Bool', 'bool'), n,
                                  self.size('r', result)))
        head = '%s f%d(%s)' % (result, n, parameters)
        if method:
            self.types_text.append('struct S%d { long x; CALLED %s; };' % (n, head))
            head = '%s S%d::f%d(%s)' % (result, n, n, parameters)
            self.text.append('%s { %s %s }' % (head, ' '.join(body), end))
        else:
            self.types_text.append('LINKAGE CALLED %s;' % head)
            self.text.append('%s { %s %s }' % (head, ' '.join(body), end))
        run = ['QUIETLY static void run%d(void)\n{' % n]
        prints = []
        if method:
            run.append('\tS%d s; S%d *self = &s; make(&s, sizeof(s), 3, 0);' %
                       (n, n))
            prints.append('print_bytes(&self, 8);')
        for i, (type, name) in enumerate(zip(types, names)):
            plain = bare(type)
            # Aligned objects on the stack would hide the frame from debuggers.
            run.append('\t%s%s %s;' % (
                'static ' * (type in HARD or type == 'alignedint'), plain,
                name))
            if type not in HARD:
                run.append('\t%s((void *)&%s, %s, %d, %d);' % (
                    MAKERS[n % 2], name, self.size(name, type), n * 100 + i,
                    plain in ('_Bool', 'bool')))
            elif type == 'Method':
                run.append('\t%s = &Trivial::get;' % name)
            if is_copied(type):     # to a place of which only the caller knows
                run.append('\t%s v%d = %s;' % (plain, i, name))
            if type.endswith('&'):
                run.append('\tvoid *at%d = (void *)&%s;' % (i, name))
                prints.append('print_bytes(&at%d, 8);' % i)
            elif type == 'Empty':
                prints.append('printf(" any");')
            else:
                prints.append('print_bytes((void *)&%s, %s);' %
                              (name, self.size(name, type)))
        call = '%sf%d(%s)' % ('s.' if method else '', n, ', '.join(
            'static_cast<%s &&>(%s)' % (bare(t), m)
            if t.endswith('&&') or t == 'Moved' else
            'v%d' % i if is_copied(t) else m
            for i, (t, m) in enumerate(zip(types, names))))
        run.append('\tprintf("passed %d");' % n)
        run += ['\t' + line for line in prints]
        run.append('\tputchar(\'\\n\');\n\tcurrent = %d;\n\t%s;\n'
                   '\tcurrent = 0;\n}' % (n, call))
        self.runs.append('\n'.join(run))

    def add_sum(self):
        """An argument that is a sum.  clang's debug information gives the place of its
        spilled first operand instead."""
        self.cases += 1
        n = self.cases
        self.parameters[n] = ['long']
        self.types_text.append('CALLED void f%d(long);' % n)
        self.text.append('void f%d(long p0) { sink[3]++; }' % n)
        self.runs.append(
            'QUIETLY __attribute__((noinline)) static long other%d(void)\n{\n'
            '\tlong other; make(&other, 8, 7, 0); return other;\n}\n'
            'QUIETLY static void run%d(void)\n{\n'
            '\tlong first, sum; make(&first, 8, 3, 0);\n'
            '\tsum = first + other%d();\n'
            '\tprintf("passed %d"); print_bytes(&sum, 8); putchar(\'\\n\');\n'
            '\tlong spilled = first;\n'
            '\t__asm__ volatile("" : "+r"(spilled) : : "memory");\n'
            '\tSPILL;\n'
            '\tcurrent = %d; f%d(spilled + other%d()); current = 0;\n}' %
            (n, n, n, n, n, n, n))

    def size(self, name, type):
        return str(self.significant.get(type, 0) or 'sizeof(%s)' % name)

    def write(self, path, apart):
        """Writes the functions, and their callers into a second file if @apart."""
        returned = ('QUIETLY APART static void returned(int n, const void *r, '
                    'size_t size)\n{\n\tint was = current;\n\tcurrent = 0;\n'
                    '\tprintf("returned %d", n);\n\tprint_bytes(r, size);\n'
                    '\tputchar(\'\\n\');\n\tcurrent = was;\n}\n')
        main = 'QUIETLY int main(void)\n{\n%s\n\treturn 0;\n}\n' % '\n'.join(
            '\trun%d();' % (i + 1) for i in range(self.cases))
        types = [self.text[0], C_DECLARATIONS,
                 CXX_DECLARATIONS if self.cxx else ''] + self.types_text
        functions = types + [returned] + self.text[1:]
        calls = self.runs + [main]
        if not apart:
            return [write_text(path, functions + calls)]
        return [write_text(path, functions),
                write_text(path.replace('.c', '_calls.c'),
                           ['#define ARGUMENTS_CALLS'] + types + calls)]


def write_text(path, lines):
    text = '\n'.join(lines)
    if not os.path.exists(path) or open(path).read() != text:
        with open(path, 'w') as file:
            file.write(text)
    return path


def make_program(cxx, wide=False):
    types = C_TYPES + WIDE_TYPES * wide
    if cxx:
        types = [('bool', 0) if t == '_Bool' else (t, s) for t, s in types
                 if '_Complex' not in t] + CXX_TYPES
    program = Program(types, cxx, int(os.environ.get('SEED', '1')))
    names = [t for t, _ in types]
    results = [t for t in names if not t.startswith('const') and
               not t.endswith('&') and t not in HARD and
               t not in ('wide', 'Moved', 'Empty', 'Copied', 'Outside', 'Template<int>',
                         'Holder')]
    program.add([], 'void')
    for type in names:          # each type alone, and after others
        program.add([type], 'void')
        program.add(['int', type, 'double', 'long'], 'int')
    for type in results:        # each result
        program.add(['int', 'double'], type)
    for use in range(3):        # passed on the stack
        for type in ('long', 'double', 'struct dd', 'struct ll', 'struct l3',
                     'void *', 'long double'):
            program.add([type] * 9, 'long', use=use)
    if not cxx:     # clang's callers do not pass arguments that are not read
        program.add(['struct dd', 'union du', 'struct f4', 'struct nested',
                     'struct f3', 'double _Complex', 'double', 'struct packed',
                     'double _Complex'], 'union fu', use=0)
    program.add_sum()
    for n in range(PROTOTYPES):  # up to 9 parameters of any type
        program.add([program.random.choice(names)
                     for _ in range(program.random.randrange(1, 10))],
                    program.random.choice(results + ['void']),
                    method=cxx and n % 3 == 0)
    return program


def lines_of(text, what):
    found = {}
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == what:
            found[int(words[1])] = words[2:]
    return found


def compile_part(source, family, optimize, flags):
    """The object file; its name depends on its source and options."""
    command = [shimtest.compiler_of(source, family), optimize, *flags]
    text = ' '.join(command) + open(source).read()
    target = os.path.join(shimtest.fixtures, 'part-%s.o' % hashlib.sha256(
        text.encode()).hexdigest()[:16])
    if not os.path.exists(target):
        made = '%s.%d' % (target, os.getpid())      # another driver may make it, too
        done = subprocess.run(command + ['-c', source, '-o', made])
        expect_equal(done.returncode, 0, source)
        os.replace(made, target)
    return target


def link(objects, family, cxx, flags):
    path = os.path.join(shimtest.new_directory('linked'), 'arguments')
    compiler = shimtest.compiler_of('.cc' if cxx else '.c', family)
    done = subprocess.run([compiler, *flags, *objects, '-o', path])
    expect_equal(done.returncode, 0, ' '.join(objects))
    return path


# Marks of functions other than hooks: compiler flags, variables.
MARKS = {
    'patchable': (['-fpatchable-function-entry=5', '-DMARKED_ENTRIES'], {}),
    'fentry': (['-pg', '-mfentry', '-mrecord-mcount', '-fno-pie', '-no-pie'], {}),
    'xray': ([*shimtest.XRAY, '-DMARKED_XRAY'], {}),
    'mcount': (['-pg'], {}),
    'patch': ([], {'SHIM_PATCH': 'f*,S*'}),
}


def run(family, optimize, cxx, flags=('-g',), apart=True, callers=('-g',), wide=False,
        mark=None):
    more, variables = MARKS.get(mark, ([], {}))
    os.makedirs(shimtest.fixtures, exist_ok=True)
    program = make_program(cxx, wide)
    sources = program.write(os.path.join(
        shimtest.fixtures, 'arguments%s.%s' % (
            '_wide' if wide else '' if apart else '_together',
            'cc' if cxx else 'c')), apart)
    common = ['-w', '-I', INCLUDE, '-I', shimtest.PROGRAMS]
    hooks = ['-finstrument-functions'] if mark is None else []
    # Functions that several programs share are compiled once.
    ways = [[*hooks, *common, *flags, *more], common + list(callers)]
    objects = [compile_part(s, family, optimize, way) for s, way in zip(sources, ways)]
    path = link(objects, family, cxx, [*hooks, *flags, *more])
    result = record([path], 'none', **variables)
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    return program, result.stdout


def compare(family, optimize, cxx, **how):
    """Counts the right and the unavailable values: of all cases, and of those whose
    functions use their arguments."""
    program, text = run(family, optimize, cxx, **how)
    passed, got = lines_of(text, 'passed'), lines_of(text, 'got')
    expect_equal(len(passed), program.cases, 'cases')
    expect('wrong' not in text, 'sizes:\n' + text[-2000:])
    right, missing, wrong = 0, 0, []
    used = [0, 0]               # missing, all
    why = collections.Counter()
    for n, values in passed.items():
        told = got.get(n, ['nothing'])
        if told[0] != '0' or len(told) != len(values) + 1:
            wrong.append('%d: passed %s, got %s' % (n, values, told))
            continue
        if n in program.used:
            used[0] += sum(word.startswith('-') for word in told[1:])
            used[1] += len(values)
        for type, value, word in zip(program.parameters[n], values, told[1:]):
            if word.startswith('-'):
                missing += 1
                why[type, word.split(':')[1], n in program.used] += 1
                if os.environ.get('LIST'):
                    print('#   f%d: %s at %d of %s: %s' % (
                        n, type, told.index(word), program.parameters[n], word))
            elif value == 'any' and len(word) == 2 or word == value or (
                    len(value) == 20 and    # long double
                    word[:20] == value and len(word) == 32) or (
                        len(value) == 16 and len(word) == 32 and
                        word[:16] == value):    # Virtual
                right += 1
            elif word == '0' and type in dict(CXX_TYPES):
                missing += 1    # the value exists, but the description of its class is missing
                why[type, '3', n in program.used] += 1
            else:
                wrong.append('%d: passed %s, got %s' % (n, value, word))
    print('# arguments: %d right, %d not available (%.1f %%; %.1f %% of those '
          'that are used), %d wrong' % (
              right, missing, 100 * missing / (right + missing or 1),
              100 * used[0] / (used[1] or 1), len(wrong)))
    for (type, reason, is_used), count in sorted(why.items()):
        print('#   %4d %s%s: %s' % (count, type, ', used' * is_used,
                                    REASONS[int(reason)]))
    expect(not wrong, '\n'.join(wrong[:40]))
    return right, missing


def compare_results(family, optimize, cxx, flags=('-g',), **how):
    program, text = run(family, optimize, cxx, flags, apart=False, **how)
    returned, gave = lines_of(text, 'returned'), lines_of(text, 'gave')
    expect_equal(len(gave), program.cases, 'cases')
    right, missing, wrong = 0, [], []
    for n in range(1, program.cases + 1):
        value = returned.get(n, ['-0'])[0]      # void
        told = gave[n]
        if told[0] != '0' or len(told) != 2:
            wrong.append('%d: returned %s, got %s' % (n, value, told))
        elif told[1] == value or (len(value) == 20 and      # long double
                                  told[1][:20] == value and
                                  len(told[1]) == 32):
            right += 1
        elif value == '-0' and told[1] == '-0:1':
            right += 1
        elif told[1].startswith('-') and value != '-0':
            missing.append(n)
        else:
            wrong.append('%d: returned %s, got %s' % (n, value, told[1]))
    print('# results: %d right, %d not available (%.1f %%), %d wrong' % (
        right, len(missing), 100 * len(missing) / (right + len(missing) or 1),
        len(wrong)))
    expect(not wrong, '\n'.join(wrong[:40]))
    expect(100 * len(missing) <= right + len(missing),
           'missing: %s' % missing[:40])


# The highest share of missing values, in percent: issue 4 demands 1 and 3.  The
# remaining ones are numbers that callers load from static memory, which another thread
# may write. clang's callers do not pass arguments that they see are unused, if caller
# and callee were compiled together.
LIMITS = {'-O0': 1, '-O2': 1.5}
LIMITS_TOGETHER = {('gcc', '-O0'): 1, ('clang', '-O0'): 3, ('gcc', '-O2'): 7,
                   ('clang', '-O2'): 40}


def test_apart(family, optimize, cxx):
    right, missing = compare(family, optimize, cxx)
    expect(100 * missing <= LIMITS[optimize] * (right + missing),
           '%d of %d are missing' % (missing, right + missing))
    _, without = compare(family, optimize, cxx, callers=['-g0'])
    print("# %d more without the caller's debug information" %
          (without - missing))
    expect(optimize == '-O0' or without > missing, 'callers are not asked')


def test_wide(family, optimize, cxx):
    """The same with vectors that fill one register."""
    if not re.search(r'^flags\b.* avx ', open('/proc/cpuinfo').read(), re.M):
        raise shimtest.Skipped('this processor has no AVX')
    right, missing = compare(family, optimize, cxx, flags=('-g', '-mavx'),
                             callers=('-g', '-mavx'), wide=True)
    # If a function does not use such a vector, the place of the following ones is
    # unknown.
    limit = {'-O0': 1, '-O2': 3}[optimize]
    expect(100 * missing <= limit * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


def functions_of_c_linkage_lack_nothing():
    """(clang -O0 leaves out objects, and only a C++ name would show this.)"""
    right, missing = compare('clang', '-O2', True,
                             flags=('-g', '-DLINKAGE=extern "C"'),
                             callers=('-g', '-DLINKAGE=extern "C"'))
    expect(100 * missing <= LIMITS['-O2'] * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


def test_together(family, optimize, cxx):
    right, missing = compare(family, optimize, cxx, apart=False)
    limit = LIMITS_TOGETHER[family, optimize]
    expect(100 * missing <= limit * (right + missing),
           '%d of %d are missing' % (missing, right + missing))


def is_chosen(claim, family, optimize, cxx):
    """Compiling with -O2 takes long: together and wide are in one language each, unless
    all are wanted."""
    return (shimtest.ALL or optimize == '-O0' or claim == test_apart or
            (cxx == (family == 'gcc')) == (claim == test_together))


for family, optimize in BUILDS:
    for cxx in (False, True):
        for claim in (test_apart, test_together, test_wide):
            if not is_chosen(claim, family, optimize, cxx):
                continue
            add_test('no_argument_is_wrong_%s_%s%s_%s' % (
                'c++' if cxx else 'c', family, optimize, claim.__name__[5:]),
                lambda t=claim, f=family, o=optimize, c=cxx: t(f, o, c))
        if is_chosen(test_together, family, optimize, cxx):
            add_test('no_result_is_wrong_%s_%s%s' % (
                'c++' if cxx else 'c', family, optimize),
                lambda f=family, o=optimize, c=cxx: compare_results(f, o, c))


def nothing_without_debug_information():
    program, text = run('gcc', '-O0', False, ['-g0'])
    got = lines_of(text, 'got')
    expect_equal(len(got), program.cases, 'cases')
    expect_equal({tuple(words) for words in got.values()}, {('0x80131354',)},
                 'answers')


add_test('nothing_without_debug_information', nothing_without_debug_information)


def main_lacks_nothing(family, optimize):
    with open(os.path.join(shimtest.PROGRAMS, 'arguments.h')) as file:
        header = file.read()
    path = write_text(os.path.join(shimtest.fixtures, 'main_called.cc'), [
        header,
        'QUIETLY __attribute__((constructor)) static void begin(void)',
        '{ current = 1; }',
        'int main(int argc, char **argv)',
        '{ current = 0; printf("passed 1"); print_bytes(&argc, sizeof(argc));',
        'print_bytes(&argv, sizeof(argv)); putchar(10); return 0; }'])
    result = record([compile(path, family, optimize, flags=[
        '-w', '-g', '-I', INCLUDE, '-I', shimtest.PROGRAMS])], 'none')
    expect_equal(lines_of(result.stdout, 'got').get(1),
                 ['0', *lines_of(result.stdout, 'passed')[1]], 'arguments')


def asked(mask, what, family, optimize):
    path = compile('arguments_asked.c', family, optimize, ['-I', INCLUDE])
    result = record([path, mask, what], 'none')
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    lines = result.stdout.splitlines()
    expect(len(lines) == 1, result.stdout)
    return [int(word) for word in re.findall(r'\d+', lines[0])]


def every_row_of_the_tables(family, optimize):
    for mask in ('a', 'r', 'f', 'ar', 'af', 'rf', 'arf'):
        questions, _, _, read = asked(mask, 'table', family, optimize)
        expect(questions >= 4, 'asked %d' % questions)
        expect_equal(read, int('a' in mask or 'r' in mask),
                     'debug information was read')


def who_does_not_ask_reads_nothing(family, optimize):
    expect_equal(asked('arf', 'nothing', family, optimize), [2, 0, 0, 0],
                 'answers')


def generation_2_is_told_without_asking(family, optimize):
    for mask in ('a', 'f', 'af', 'r'):
        expect_equal(asked(mask, 'elt2', family, optimize)[:2],
                     [2, 2 * ('a' in mask)], 'hooks and values, ' + mask)


def inlined_functions_and_loops(family, optimize):
    questions, right, missing, _ = asked('a', 'values', family, optimize)
    print('# %d right, %d not available' % (right, missing))
    expect(questions >= 2, 'asked %d' % questions)
    expect_equal(right + missing, 4 * 7 + 2, 'arguments')


for claim in (main_lacks_nothing, every_row_of_the_tables, who_does_not_ask_reads_nothing,
              generation_2_is_told_without_asking, inlined_functions_and_loops):
    for family, optimize in BUILDS:
        add_test('%s_%s_%s' % (claim.__name__, family, optimize),
                 lambda c=claim, f=family, o=optimize: c(f, o))


def what_was_closed_is_forgotten(family):
    """Loads another library at the same addresses, and then the first one again."""
    include = ['-I', INCLUDE]
    sizes = [4, 2, 4, 4, 2]
    names = {size: compile('arguments_again.c', family, '-O2',
                           include + ['-shared', '-fPIC', '-DTYPE=' + type],
                           'again%d' % size)
             for size, type in ((4, 'int'), (2, 'short'))}
    host = compile('arguments_again.c', family, '-O2', include,
                   libraries=['-ldl'])
    result = record([host, *(names[size] for size in sizes)], 'none')
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    lines = [line.split() for line in result.stdout.splitlines()]
    places = [line[0] for line in lines[::3]]
    again = sum(a == b for a, b in zip(places, places[1:]))
    expect(again >= 2, 'only %d were where the one before was' % again)
    expect_equal([line[1:] for line in lines],
                 [[str(size), str(size)] for size in sizes for _ in range(3)],
                 'lengths')


def removed(family, flags):
    """Arguments in a library whose file is removed before its first call."""
    library = compile('arguments_again.c', family, '-O2',
                      ['-I', INCLUDE, '-shared', '-fPIC', '-DTYPE=int'],
                      'removed_' + family)
    host = compile('arguments_again.c', family, '-O2',
                   ['-I', INCLUDE, '-DREMOVES'] + flags, libraries=['-ldl'])
    result = record([host, library], 'none')
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    return [line.split()[1:] for line in result.stdout.splitlines()]


def what_is_opened_ahead_is_there_when_the_file_has_gone(family):
    expect_equal(removed(family, ['-DAHEAD']), [['4', '4']] * 3, 'lengths')


def who_does_not_enable_values_has_nothing_opened_before_it_asks(family):
    expect_equal(removed(family, []), [['0', '0']] * 3, 'lengths')


def inlined_functions_of_others_are_described_where_they_were_inlined():
    """(gcc calls no hooks in functions that are extern inline.)"""
    library = os.path.join(shimtest.new_directory('outside'),
                           'liboutside.so')
    subprocess.run(['cc', '-O2', '-shared', '-fPIC', '-DLIBRARY', '-I', INCLUDE,
                    '-o', library, os.path.join(shimtest.PROGRAMS,
                                                'arguments_outside.c')],
                   check=True)
    for optimize in ('-O0', '-O2'):
        program = compile('arguments_outside.c', 'clang', optimize,
                          ['-I', INCLUDE], libraries=[library])
        result = record([program], 'none')
        expect_equal((result.status, result.stdout, result.stderr),
                     (0, '0: 2 arguments, 4 and 2 bytes\n0: a result\n', ''),
                     'what is told, ' + optimize)


STRING = r'''
#include <cstdio>
#include <cstring>
#include <shim/hooks.h>
#include <string>
#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_get_function_enter3_info
#define QUIETLY __attribute__((no_instrument_function))

static const void *object;
static char room[256];

void passed(int, std::string text, double);

QUIETLY static void enter(union shim_function_or_client function,
			  shim_elt_info info)
{
	uint32_t size = sizeof(room);

	if (function.function == (shim_function)passed && shim_get_function_enter3_info(
				function.function, info, NULL, &size,
				(struct shim_argument_info *)room))
		room[0] = 0;
}

QUIETLY __attribute__((constructor)) static void start()
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
				    SHIM_ENABLE_FUNCTION_ARGS);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, enter, NULL, NULL);
}

static volatile double sum;

__attribute__((noinline)) void passed(int number, std::string text, double real)
{
	object = &text;
	sum = number + real + text.size();
}

QUIETLY int main()
{
	struct shim_argument_info *info = (struct shim_argument_info *)room;
	std::string text("a text");

	passed(4711, text, 47.11);
	printf("%u: %d %d %d, %u bytes\n", info->ranges_count,
	       *(int *)info->ranges[0].start,
	       (const void *)info->ranges[1].start == object,
	       *(double *)info->ranges[2].start == 47.11,
	       info->ranges[1].length);
	return 0;
}
'''


def objects_are_found_whose_class_is_described_elsewhere(family):
    """clang leaves the description of the class to the C++ library.  The test asks for
    no members there; the size is unknown then."""
    path = write_text(os.path.join(shimtest.fixtures, 'string_passed.cc'),
                      [STRING])
    for optimize in ('-O0', '-O2'):
        program = compile(path, family, optimize, ['-I', INCLUDE, '-g', '-w'],
                          name='string_passed')
        result = record([program], 'none')
        expect_equal((result.status, result.stderr), (0, ''), optimize)
        expect(re.fullmatch(r'3: 4711 1 1, (32%s) bytes\n' % (
            '|0' if family == 'clang' else ''), result.stdout),
            optimize + ': ' + result.stdout)


for family in ('gcc', 'clang'):
    for claim in (objects_are_found_whose_class_is_described_elsewhere,
                  what_was_closed_is_forgotten,
                  what_is_opened_ahead_is_there_when_the_file_has_gone,
                  who_does_not_enable_values_has_nothing_opened_before_it_asks):
        add_test('%s_%s' % (claim.__name__, family),
                 lambda c=claim, f=family: c(f))

add_test('functions_of_c_linkage_lack_nothing_clang_-O2',
         functions_of_c_linkage_lack_nothing)
add_test('inlined_functions_of_others_are_described_where_they_were_inlined_clang',
         inlined_functions_of_others_are_described_where_they_were_inlined)

if __name__ == '__main__':
    shimtest.main()
