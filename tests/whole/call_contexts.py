#!/usr/bin/env python3
"""call_contexts.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Arguments, locals and results from call contexts.  Programs with many functions,
generated here, print the values of their variables when they return, and the values
that shim reports (tests/programs/introspected.h); SEED=N generates others, PROTOTYPES=N
more of them at random.  No value may be wrong; the number of unavailable values is
printed.  tests/programs/introspected.c tests the rows of the specification.
"""
import os
import random
import re

import shimtest
from arguments import (C_DECLARATIONS, C_TYPES, CXX_DECLARATIONS, CXX_TYPES,
                       HARD, INCLUDE, MAKERS, PROTOTYPES, bare)
from shimtest import BUILDS, add_test, compile, expect, expect_equal, record, test

shimtest.tests.clear()      # the tests of arguments

NOT_YET, INLINED, NONE = '-9', '-6', '-1'


class Program:
    """The text of a program: functions with variables, and their callers."""

    def __init__(self, types, cxx, seed):
        self.random = random.Random(seed)
        self.cxx = cxx
        self.significant = dict(types)
        with open(os.path.join(shimtest.PROGRAMS, 'introspected.h')) as file:
            self.text = [file.read(), C_DECLARATIONS,
                         CXX_DECLARATIONS if cxx else '']
        self.runs, self.cases = [], 0
        self.statics = {}       # by case: names
        self.results = {}       # by case; the result is called r

    def size(self, name, type):
        return str(self.significant.get(type, 0) or 'sizeof(%s)' % name)

    def value(self, type, name, seed):
        """A statement that assigns a value to the variable."""
        return '%s((void *)&%s, %s, %d, %d);' % (
            MAKERS[seed % 2], name, self.size(name, type), seed,
            type in ('_Bool', 'bool'))

    def add(self, parameters, variables, result='void', body='', method=False,
            end='', inner=None):
        """@variables: (type, name, initializer or None, prefix, suffix); the program
        prints their values at the end."""
        self.cases += 1
        n = self.cases
        names = [('p%d' % i, t) for i, t in enumerate(parameters)]
        lines, keep, told = [], [], []
        for type, name, init, prefix, suffix in variables:
            plain = type if type.endswith('&') else bare(type)
            lines.append('%s%s %s%s%s;' % (
                prefix, plain, name, suffix, ' = ' + init if init else ''))
            if not init:
                lines.append(self.value(type, name, n * 31 + len(lines)))
            if 'static' in prefix:
                self.statics.setdefault(n, set()).add(name)
        for name, type in names + [(v[1], v[0]) for v in variables]:
            if type.endswith('&'):
                keep.append('{ const void *at = (const void *)&%s; '
                            'memcpy(uses[%d], &at, 8); }' % (name, len(told)))
                told.append((name, '8', None))
                continue
            keep.append('memcpy(uses[%d], (const void *)&%s, sizeof(%s));' % (
                len(told), name, name))
            told.append((name, None, self.significant.get(type, 0)))
        for i, (name, size, _) in enumerate(told):
            if not size:
                keep.append('sizes[%d] = sizeof(%s);' % (i, name))
            else:
                keep.append('sizes[%d] = %s;' % (i, size))
        if result != 'void':
            self.results[n] = 'known' if end == 'return r;' else 'unknown'
        head = '%s f%d(%s)' % (result, n, ', '.join(
            '%s %s' % (t, m) for m, t in names) or
            ('' if self.cxx else 'void'))
        text = '\n\t'.join(lines + [body] + keep + [end])
        if method:
            self.text.append('struct S%d { long x; CALLED %s%s; };\n'
                             '%s\n{\n\t%s\n}' % (
                                 n, method if method == 'static ' else '',
                                 head, head.replace(
                                     ' f%d' % n, ' S%d::f%d' % (n, n), 1),
                                 text))
        else:
            self.text.append('CALLED static %s;\nstatic %s\n{\n\t%s\n}' % (
                head, head, text))
        run = ['QUIETLY static void run%d(void)\n{' % n]
        if method:
            run.append('\tstatic S%d s;' % n)
        if method and method != 'static ':
            run.append('\tvoid *self = &s;\n\tprintf("this %d");'
                       '\n\tprint_bytes(&self, 8);\n\tputchar(\'\\n\');' % n)
        for name, type in names:
            run.append('\tstatic %s %s;' % (bare(type), name))
            if type == 'Method':
                run.append('\t%s = &Trivial::get;' % name)
            elif type not in HARD:
                run.append('\t' + self.value(type, name, n * 100 + len(run)))
            run.append('\tprintf("passed %d %s");' % (n, name))
            if type.endswith('&'):
                run.append('\t{ void *at = (void *)&%s; print_bytes(&at, 8); }'
                           % name)
            elif type == 'Empty':
                run.append('\tprintf(" any");')
            else:
                run.append('\tprint_bytes((void *)&%s, sizeof(%s));' % (
                    name, name))
            run.append('\tputchar(\'\\n\');')
        run.append('\tcurrent = %d;\n\t%sf%d(%s);\n\tcurrent = 0;' % (
            n, 's.' if method else '', n, ', '.join(
                'static_cast<%s &&>(%s)' % (bare(t), m)
                if t.endswith('&&') or t == 'Moved' else m
                for m, t in names)))
        if inner:       # of the block that ends with the function
            told.append((inner, '8', 0))
        for i, (name, _, significant) in enumerate(told):
            run.append('\tprintf("holds %d %s %d");\n\tprint_bytes(uses[%d], '
                       'sizes[%d]);\n\tputchar(\'\\n\');' % (
                           n, name, significant or 0, i, i))
        self.runs.append('\n'.join(run) + '\n}')

    def write(self, path):
        main = 'QUIETLY int main(void)\n{\n%s\n\treturn 0;\n}\n' % '\n'.join(
            '\trun%d();' % (i + 1) for i in range(self.cases))
        text = '\n'.join([self.text[0], 'size_t sizes[24];\nvoid *escaped;\n'
                          'QUIETLY __attribute__((noinline)) void '
                          'escape(void *at) { escaped = at; '
                          '__asm__ volatile("" ::: "memory"); }'] +
                         self.text[1:] + self.runs + [main])
        if not os.path.exists(path) or open(path).read() != text:
            with open(path, 'w') as file:
                file.write(text)
        return path


def local(type, name, init=None, prefix='', suffix=''):
    return type, name, init, prefix, suffix


def make_program(cxx):
    types = list(C_TYPES)
    if cxx:
        types = [('bool', 0) if t == '_Bool' else (t, s) for t, s in types
                 if '_Complex' not in t] + [
                     (t, s) for t, s in CXX_TYPES if not t.endswith('&') and
                     t not in ('Moved',)]
    program = Program(types, cxx, int(os.environ.get('SEED', '1')))
    names = [t for t, _ in types]
    simple = [t for t in names if t not in HARD and t != 'Empty']
    plain = [t for t in simple if t not in dict(CXX_TYPES)]
    program.add([], [])
    for type in names:
        copied = type if type not in HARD else 'int'
        program.add([type], [])
        program.add(['int', type], [local('int', 'a', 'p0'),
                                    local(copied, 'b', 'p1' if type == copied
                                          else '7'),
                                    local('double', 'c', '1.5')])
    for type in simple:
        program.add([type], [local(type, 'a'), local(type, 'b')],
                    body='sink[1]++;')
        program.add([], [local(type, 'kept', None, 'static '),
                         local('int', 'a', '3')])
    for type in plain:
        if type != 'alignedint':
            program.add(['int'], [local('char', 'c', "'x'"),
                                  local(type, 'all', None, '', '[3]')])
        # A returned object stays above the hook's frame.
        program.add(['int', type], [local(bare(type), 'r', 'p1'),
                                    local('int', 'a', 'p0 + 1')],
                    result=bare(type), end='return r;')
        # Stores to variables that are never read again.
        program.add([type], [local(type, 'a')], body='escape((void *)&a);',
                    end='memset((void *)&a, 0x77, %s); memset(uses[1], 0x77, '
                    '%s);' % (program.size('a', type), program.size('a', type))
                    if type not in ('_Bool', 'bool', 'const volatile int')
                    else '')
    for n, (type, init) in enumerate([
            ('int', '-1'), ('unsigned', '200'), ('short', '-200'),
            ('unsigned char', '200'), ('long', '-3000000000'),
            ('enum colour', 'GREEN'), ('double', '2.25'), ('float', '-0.5f'),
            ('const char *', '"text"'), ('unsigned long long', '~0ull'),
            ('long double', '3.5'), ('__int128', '-5')]):
        program.significant.setdefault(type, 0)
        program.add([], [local(type, 'k', init, '' if 'const' in type else
                               'const ')])
        program.add(['int'], [local(type, 'k', init), local('int', 'i', 'p0')],
                    body='for (int n = 0; n < 3; n++) i += n; sink[0] = i;')
    # Inner blocks and early returns: variables out of scope.
    program.add(['int', 'long'], [local('int', 'a', 'p0'),
                                  local('long', 'b', 'p1 * 3')],
                'long', body='{ int hidden = a + 1; sink[3] = hidden; }',
                end='{ long inner = b + a; memcpy(uses[4], &inner, 8); '
                'sizes[4] = 8; return inner; }', inner='inner')
    program.add(['unsigned'], [local('unsigned', 'sum', '0')], 'unsigned',
                body='while (p0 > 0) { sum += p0 & 3; p0 >>= 1; }',
                end='return sum;')
    if cxx:
        program.add(['int', 'long'], [
            local('int &', 'r', 'p0'), local('const long &', 'c', 'p1'),
            local('int', 'a', 'r + 1')])
        for type in ('int', 'struct i10', 'double', 'Copied'):
            program.add([type, 'int'], [local(type, 'a', 'p0')], 'int',
                        method=True, end='return p1 + (int)x;')
            program.add([type, 'int'], [local(type, 'a', 'p0')], 'int',
                        method='static ', end='return p1;')
    for n in range(PROTOTYPES):  # up to 6 of each, of any type
        some = [program.random.choice(simple)
                for _ in range(program.random.randrange(1, 6))]
        more = [program.random.choice(simple)
                for _ in range(program.random.randrange(0, 6))]
        result = program.random.choice(['void'] + plain)
        program.add(some, [
            local(t, 'v%d' % i, None,
                  program.random.choice(['', '', '', 'static ']))
            for i, t in enumerate(more)] + (
                [local(bare(result), 'r')] if result != 'void' else []),
            bare(result), method=cxx and n % 3 == 0,
            body='for (int i = 0; i < 3; i++) sink[i] += 1;',
            end='return r;' if result != 'void' else '')
    return program


def run_it(family, optimize, cxx, flags=(), name=None):
    os.makedirs(shimtest.fixtures, exist_ok=True)
    program = make_program(cxx)
    source = program.write(os.path.join(
        shimtest.fixtures, 'introspected' + ('.cc' if cxx else '.c')))
    path = compile(source, family, optimize, name=name or
                   'introspected' + ('_cxx' if cxx else ''),
                   flags=['-w', '-I', INCLUDE, *flags])
    result = record([path], 'none')
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    return program, result.stdout


class Comparison:
    def __init__(self):
        self.right, self.missing, self.wrong = {}, {}, []
        self.reasons = {}

    def count(self, what, told, value, where, significant=0):
        if told.startswith('-'):
            self.missing[what] = self.missing.get(what, 0) + 1
            key = what, told
            self.reasons[key] = self.reasons.get(key, 0) + 1
        elif told == value or value == 'any' or (significant and len(told) == len(value) and
                               told[:2 * significant] ==
                               value[:2 * significant]):
            self.right[what] = self.right.get(what, 0) + 1
        else:
            self.wrong.append('%s: is %s, told %s' % (where, value, told))


def compare(program, text):
    """Compares every line of shim's values with the program's."""
    comparison = Comparison()
    passed, holds, told = {}, {}, []
    for line in text.splitlines():
        words = line.split()
        if words[0] == 'passed':
            passed.setdefault(int(words[1]), {})[words[2]] = words[3]
        elif words[0] == 'this':
            passed.setdefault(int(words[1]), {})['this'] = words[2]
        elif words[0] == 'holds':
            holds.setdefault(int(words[1]), {})[words[2]] = (int(words[3]),
                                                             words[4])
        elif words[0] in ('enter', 'leave'):
            told.append(words)
        else:
            comparison.wrong.append(line)
    seen = set()
    for words in told:
        when, n, kind = words[0], int(words[1]), words[2]
        where = ' '.join(words[:4])
        seen.add((when, n))
        if kind == 'this':
            comparison.count(when + ' this', words[3],
                             passed.get(n, {}).get('this'), where)
        elif kind == 'argument' and len(words) == 5:
            name = 'p' + words[3]
            value = passed[n].get(name) if when == 'enter' else \
                holds[n].get(name, (0, None))[1]
            comparison.count(when + ' arguments', words[4], value, where,
                             holds[n].get(name, (0, None))[0])
        elif kind == 'local' and len(words) == 5:
            static = words[3] in program.statics.get(n, ())
            if when == 'enter' and not static:
                if words[4] != NOT_YET:
                    comparison.wrong.append(where + ' ' + words[4])
                continue
            if when == 'enter':
                continue        # the value before the call
            significant, value = holds[n].get(words[3], (0, 'not at all'))
            comparison.count('statics' if static else 'locals', words[4],
                             value, where, significant)
        elif kind == 'result':
            if when == 'enter' or n not in program.results:
                if words[3] != NONE:
                    comparison.wrong.append(' '.join(words))
                continue
            if program.results[n] == 'unknown':
                continue
            significant, value = holds[n]['r']
            comparison.count('results', words[3], value, where, significant)
        elif kind in ('arguments', 'locals') and words[3] == '0x80131354':
            comparison.count(when + ' unknown', '-2', '', where)
        else:
            comparison.wrong.append(' '.join(words))
    expect_equal(len(seen), 2 * program.cases, 'events')
    return comparison


# The lowest share of locals available at the end, in percent.
LEAST = {'-O0': 99, '-O2': 1}


def test_matrix(family, optimize, cxx):
    program, text = run_it(family, optimize, cxx)
    comparison = compare(program, text)
    parts = []
    for what in sorted(set(comparison.right) | set(comparison.missing)):
        right = comparison.right.get(what, 0)
        missing = comparison.missing.get(what, 0)
        parts.append('%s %d of %d' % (what, right, right + missing))
    print('# %d functions, told: %s; %d wrong' % (
        program.cases, ', '.join(parts), len(comparison.wrong)))
    print('# not told: %s' % ', '.join('%s %s: %d' % (*key, number) for
          key, number in sorted(comparison.reasons.items())))
    expect(not comparison.wrong, '\n'.join(comparison.wrong[:40]))
    right = comparison.right.get('locals', 0)
    missing = comparison.missing.get('locals', 0)
    expect(100 * right >= LEAST[optimize] * (right + missing),
           '%d of %d locals' % (right, right + missing))
    right = comparison.right.get('results', 0)
    missing = comparison.missing.get('results', 0)
    expect(right > 40 and 100 * missing <= 3 * right,
           '%d of %d results' % (right, right + missing))


for family, optimize in BUILDS:
    for cxx in (False, True):
        add_test('no_value_is_wrong_%s_%s%s' % (
            'c++' if cxx else 'c', family, optimize),
            lambda f=family, o=optimize, c=cxx: test_matrix(f, o, c))


# --- rows ---

def check_row(case, least, family='gcc', optimize='-O0', flags=(), log=None):
    program = compile('introspected.c', family, optimize,
                      ['-I', INCLUDE, *flags],
                      name='introspected_rows' + ''.join(flags))
    result = record([program, case], 'none')
    expect_equal((result.status, result.stderr), (0, ''), case)
    found = re.search(r'^(\d+) checks, (\d+) wrong$', result.stdout, re.M)
    expect(found and found.group(2) == '0', result.stdout[-3000:])
    expect(int(found.group(1)) >= least, result.stdout)
    lines = log_of(result.output)
    expect(len(lines) == (log is not None), repr(lines))
    expect(not log or log in lines[0], repr(lines))


def log_of(output):
    """All noted contexts, of all processes."""
    found = []
    for folder, _, files in os.walk(output):
        for name in files:
            with open(os.path.join(folder, name), 'rb') as file:
                found += re.findall(rb'call contexts: [^\n\0]*', file.read())
    return [line.decode() for line in found]


# The test's name; the case of introspected.c, and its number of checks.
ROWS = [
    ('without_introspection_there_is_no_context', 'off', 40),
    ('afterwards_it_is_too_late_to_enable_it', 'late', 40),
    ('arguments_and_locals_are_told_to_who_asks', 'plainly', 900),
    ('a_context_is_for_who_asked_for_it', 'others', 1200),
    ('who_asks_how_calls_are_left_is_told_values_too', 'tracks', 900),
    ('it_may_be_enabled_first', 'first', 1000),
    ('two_calls_make_two_copies', 'twice', 16),
    ('what_is_out_of_bounds_is_nothing', 'bounds', 100),
    ('a_context_is_good_in_its_callback_only', 'stash', 30),
    ('a_million_buffers_that_are_given_back_take_no_memory', 'leak', 2),
    ('buffers_may_be_given_back_by_other_threads', 'threads', 100000),
    ('what_interrupts_a_callback_may_not_ask', 'signals', 400),
    ('locals_that_are_not_understood_have_a_reason', 'odd', 10),
    ('statics_have_a_value_before_the_function_begins', 'statics', 2),
]

NO_BUFFER = 'a profiler released a buffer that is not in use'

for name, case, least in ROWS:
    add_test(name, lambda c=case, n=least: check_row(c, n))


@test
def variables_of_inlined_functions_have_a_reason():
    for family, optimize in BUILDS:
        check_row('inlined', 6, family, optimize)


@test
def with_the_other_compiler_too():
    for case in ('plainly', 'odd', 'bounds'):
        check_row(case, 10, 'clang')


@test
def constants_of_each_size_and_version_are_locals():
    for version in 3, 5:
        check_row('constants', 11, 'gcc', '-O2', ['-gdwarf-%d' % version])


@test
def a_forked_child_has_contexts_of_its_own():
    check_row('fork', 1700, log=NO_BUFFER)


@test
def releasing_a_pointer_that_is_no_buffer_is_logged():
    check_row('frees', 15, log=NO_BUFFER)


@test
def buffers_are_bounded():
    check_row('exhaust', 300000, log='no buffer is left')


@test
def without_debug_information_there_is_a_reason():
    check_row('unknown', 20, flags=['-g0'])


if __name__ == '__main__':
    shimtest.main()
