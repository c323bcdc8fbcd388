#!/usr/bin/env python3
"""hardness.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Arguments and results in slow hooks under difficult conditions: programs built in many
ways, and debug information that is missing, damaged, in another file or of another
program.  No value may be wrong, as many must be right as in a plain build, and where
there are none the log gives the reason once.
"""
import os
import random
import re
import shutil
import struct
import subprocess
import time
import zlib

import arguments
import shimtest
from shimtest import Skipped, add_test, expect, expect_equal, record

shimtest.tests.clear()          # the tests of arguments.py do not run here

HARD_FIRST = 1000
CPU = open('/proc/cpuinfo').read() if os.path.exists('/proc/cpuinfo') else ''


# --- programs ---

def make_program(cxx):
    """A few prototypes with all types, and those of arguments_hard.h."""
    types = list(arguments.C_TYPES)
    if cxx:
        types = [('bool', 0) if t == '_Bool' else (t, s) for t, s in types
                 if '_Complex' not in t] + arguments.CXX_TYPES
    program = arguments.Program(types, cxx, 4)
    names = [type for type, _ in types]
    results = ['long', 'struct ld', 'struct l3', 'float', 'struct f3',
               'long double', 'void', 'struct i10', 'vector']
    program.random.shuffle(names)
    for n, at in enumerate(range(0, len(names), 4)):
        program.add(names[at:at + 4], results[n % len(results)],
                    method=cxx and n % 3 == 0)
    for type in ('long', 'double', 'struct ll'):
        program.add([type] * 9, 'long')
    program.text.append('#define HARD_FIRST %d\n#include "arguments_hard.h"' %
                        HARD_FIRST)
    program.cases += 1
    program.runs.append('QUIETLY static void run%d(void)\n{ run_hard(); }' %
                        program.cases)
    return program


def source_of(cxx):
    program = make_program(cxx)
    return program.write(os.path.join(
        shimtest.fixtures, 'hardness.cc' if cxx else 'hardness.c'), False)[0]


def version():
    """A hash of the headers: programs are compiled again when they change."""
    text = b''.join(open(os.path.join(shimtest.PROGRAMS, name), 'rb').read()
                    for name in ('arguments.h', 'arguments_hard.h'))
    return '-DVERSION=%d' % zlib.crc32(text)


def build(name, family, optimize, cxx, flags=(), libraries=()):
    if '-no-pie' in flags:      # there, an undefined weak symbol is 0
        libraries = [*libraries, shimtest.library]
    flags = ['-w', '-I', arguments.INCLUDE, version(), *flags]
    try:
        return shimtest.compile(source_of(cxx), family, optimize, flags,
                                'hardness_%s_%s' % ('c++' if cxx else 'c',
                                                    name),
                                libraries=libraries)
    except shimtest.Failed as error:
        if re.search(r'unrecogni[sz]ed|unsupported|not supported|unknown|'
                     r'invalid value|invalid linker|cannot find', str(error)):
            raise Skipped('%s cannot do this' % family)
        raise


def build_split(family, optimize, cxx, flags):
    """The place of .dwo files depends on the compiler's working directory."""
    directory = shimtest.new_directory('split')
    source = shutil.copy(source_of(cxx), directory)
    command = [shimtest.compiler_of(source, family), optimize, '-g', '-w',
               '-finstrument-functions', '-I', arguments.INCLUDE, '-I',
               shimtest.PROGRAMS, *flags]
    run_tool(*command, '-c', source, '-o', 'program.o', directory=directory)
    run_tool(*command, 'program.o', '-o', 'program', directory=directory)
    expect(any(file.endswith('.dwo') for file in os.listdir(directory)),
           'there is no .dwo file')
    return os.path.join(directory, 'program')


# --- answers ---

def is_equal(value, told):
    """Long doubles have 10 bytes that count, classes with a virtual table 8."""
    return told == value or (len(value) in (16, 20) and len(told) == 32 and
                             told[:len(value)] == value)


class Answers:
    def __init__(self, text):
        self.right = self.missing = 0
        self.wrong, self.lost = [], []
        expect('wrong' not in text, 'sizes:\n' + text[-2000:])
        got = arguments.lines_of(text, 'got')
        for n, values in arguments.lines_of(text, 'passed').items():
            self.add(n, values, got.get(n, ['nothing']))
        gave = arguments.lines_of(text, 'gave')
        self.results = [0, 0]
        for n, values in arguments.lines_of(text, 'returned').items():
            self.add_result(n, values, gave.get(n, ['nothing']))

    def add(self, n, values, told):
        if told[0] in ('0x80131354', 'nothing'):
            self.missing += len(values)
            self.lost.append('%d: %s' % (n, told))
            return
        if told[0] != '0' or len(told) != len(values) + 1:
            self.wrong.append('%d: passed %s, got %s' % (n, values, told))
            return
        for i, (value, word) in enumerate(zip(values, told[1:])):
            if word.startswith('-'):
                self.missing += 1
                self.lost.append('%d: argument %d' % (n, i))
            elif value == 'any' or is_equal(value, word):   # an empty class
                self.right += 1
            else:
                self.wrong.append('%d: passed %s, got %s' % (n, value, word))

    def add_result(self, n, values, told):
        if told[0] != '0' or len(told) < 2 or told[1].startswith('-'):
            self.results[1] += 1
        elif is_equal(values[0], told[1]) or self.is_folded(values[0], told[1]):
            self.results[0] += 1
        else:
            self.wrong.append('%d: returned %s, gave %s' % (n, values, told))

    def is_folded(self, value, told):
        """A long double with a random exponent is no valid number.  When clang computes
        the result at compile time, it changes this exponent."""
        return len(value) == 20 and value[:16] == told[:16] and \
            told[16:20] == 'ff7f'


def answers_of(path, **more):
    result = record([path], 'none', **more)
    expect_equal((result.status, result.stderr), (0, ''), 'status and stderr')
    answers = Answers(result.stdout)
    answers.log = log_of(result.output)
    return answers


def log_of(output):
    text = shimtest.shim_report('info', output)
    return [line.strip() for line in text.partition('  log:\n')[2].splitlines()
            if line.startswith('    ')]


def expect_answers(answers, least, title):
    print('# %-34s %4d right, %3d unavailable, %d wrong; results %d, %d' % (
        title, answers.right, answers.missing, len(answers.wrong),
        *answers.results))
    expect(not answers.wrong, '\n'.join(answers.wrong[:40]))
    expect(answers.right >= least, '%d right, not %d:\n%s' % (
        answers.right, least, '\n'.join(answers.lost[:10])))


# --- the same program, built in many ways ---

plain = {}


def plain_right(family, optimize, cxx):
    key = family, optimize, cxx
    if key not in plain:
        plain[key] = answers_of(build('plain', family, optimize, cxx)).right
    return plain[key]


# name: compilers, -O..., whether also for C++, flags, libraries, environment.  These
# builds may lack some values that the plain build has, in percent.
BOTH, GCC, CLANG = ('gcc', 'clang'), ('gcc',), ('clang',)
O02, O0, O2 = ('-O0', '-O2'), ('-O0',), ('-O2',)
SLACK = 3
# What only one compiler does, in both languages.
IN_BOTH = ('plain', 'types', 'dwz', 'dwz_common', 'lto', 'lto_lld', 'after_inlining')


class Build:
    def __init__(self, name, families, optimize, *flags, libraries=(), like=None,
                 less=SLACK, post=None, languages=None, cpu=None,
                 **environment):
        self.name, self.families, self.optimize = name, families, optimize
        self.flags, self.libraries, self.like = flags, libraries, like
        self.less, self.post, self.languages = less, post, languages
        self.cpu, self.environment = cpu, environment

    def families_chosen(self):
        """Most builds have one compiler and one language for each, to save minutes."""
        if self.name in IN_BOTH:
            return self.families
        return shimtest.some(self.families, len(self.families), len(self.name))

    def languages_of(self, family):
        if self.languages:
            return self.languages
        if self.name in IN_BOTH or shimtest.ALL:
            return False, True
        return family == 'clang',

    def test(self, family, optimize, cxx):
        if self.cpu and not re.search(r'\b%s\b' % self.cpu, CPU):
            raise Skipped('this processor has no %s' % self.cpu)
        if '-gsplit-dwarf' in self.flags:
            path = build_split(family, optimize, cxx, self.flags)
        else:
            path = build(self.name, family, optimize, cxx, self.flags,
                         self.libraries)
        if self.post:
            path = self.post(path)
        least = plain_right(family, self.like or optimize, cxx)
        least = least * (100 - self.less) // 100
        expect_answers(answers_of(path, **self.environment), least,
                       '%s %s %s %s' % ('c++' if cxx else 'c', family, optimize,
                                        self.name))


# --- changes to a linked program ---

def run_tool(*command, directory=None):
    shimtest.need(command[0])
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=directory)
    expect(done.returncode == 0, '%s: %s' % (
        ' '.join(command), done.stdout.decode(errors='replace')))


def copy_of(path):
    directory = shimtest.new_directory('copy')
    return shutil.copy(path, directory)


def split_debug(path):
    """The method of distributions: .gnu_debuglink."""
    path = copy_of(path)
    run_tool('objcopy', '--only-keep-debug', path, path + '.debug')
    run_tool('objcopy', '--strip-debug', path)
    run_tool('objcopy', '--add-gnu-debuglink=' + path + '.debug', path)
    return path


def use_dwz(path):
    path = copy_of(path)
    run_tool('dwz', path)
    return path


def use_common_dwz(path):
    path = copy_of(path)
    shutil.copy(path, path + '.other')
    run_tool('dwz', '-m', path + '.common', path, path + '.other')
    return path


def compress(path):
    path = copy_of(path)
    run_tool('objcopy', '--compress-debug-sections=zlib-gnu', path)
    return path


HARD = [
    Build('plain', BOTH, O02),
    Build('dwarf4', BOTH, O2, '-gdwarf-4'),
    Build('dwarf3', GCC, O2, '-gdwarf-3', '-gstrict-dwarf'),
    Build('types', GCC, O2, '-gdwarf-4', '-fdebug-types-section'),
    Build('types5', GCC, O2, '-fdebug-types-section'),
    Build('dwarf64', GCC, O2, '-gdwarf64'),
    Build('split', BOTH, O2, '-gsplit-dwarf'),
    Build('split4', BOTH, O2, '-gdwarf-4', '-gsplit-dwarf'),
    Build('zlib', BOTH, O2, '-gz=zlib'),
    Build('zlib_gnu', GCC, O2, post=compress),
    Build('debuglink', BOTH, O2, post=split_debug),
    Build('debuglink_crc', GCC, O2, '-Wl,--build-id=none', post=split_debug),
    Build('dwz', GCC, O2, post=use_dwz),
    Build('dwz_common', GCC, O2, post=use_common_dwz),
    Build('protector', BOTH, O2, '-fstack-protector-strong'),
    Build('protector_all', BOTH, O02, '-fstack-protector-all'),
    Build('protected', GCC, O2, '-fcf-protection=full',
          '-fstack-clash-protection', '-D_FORTIFY_SOURCE=2'),
    Build('cet', CLANG, O2, '-fcf-protection=full'),
    Build('no_plt', BOTH, O2, '-fno-plt', '-Wl,-z,now'),
    Build('frame_pointer', BOTH, O2, '-fno-omit-frame-pointer'),
    Build('no_frame_pointer', BOTH, O0, '-fomit-frame-pointer'),
    Build('no_pie', BOTH, O2, '-fno-pic', '-no-pie'),
    Build('pic', BOTH, O0, '-fPIC'),
    Build('medium', BOTH, O2, '-mcmodel=medium'),
    Build('large', BOTH, O2, '-mcmodel=large', '-fno-pic', '-no-pie', less=5),
    Build('size', BOTH, ('-Os',), like='-O2', less=10),
    Build('most', BOTH, ('-O3',), like='-O2', less=10),
    Build('debuggable', GCC, ('-Og',), like='-O2', less=10),
    Build('little', BOTH, ('-O1',), like='-O2', less=10),
    Build('v3', BOTH, ('-O3',), '-march=x86-64-v3', like='-O2', less=10,
          cpu='avx2'),
    Build('realign', BOTH, O2, '-mstackrealign'),
    Build('red_zone', BOTH, O2, '-mno-red-zone'),
    Build('partition', GCC, O2, '-freorder-blocks-and-partition'),
    Build('sections', BOTH, O2, '-ffunction-sections', '-Wl,--gc-sections'),
    Build('icf_lld', BOTH, O2, '-ffunction-sections', '-fuse-ld=lld',
          '-Wl,--icf=all', less=20),
    Build('icf_gold', BOTH, O2, '-ffunction-sections', '-fuse-ld=gold',
          '-Wl,--icf=all', less=20),
    Build('lto', GCC, O2, '-flto'),
    Build('lto_lld', CLANG, O2, '-flto', '-fuse-ld=lld'),
    Build('thinlto_lld', CLANG, O2, '-flto=thin', '-fuse-ld=lld'),
    Build('no_ipa_ra', GCC, O2, '-fno-ipa-ra'),
    Build('patchable', BOTH, O2, '-fpatchable-function-entry=8,3', '-DMARKED_ENTRIES',
          languages=(False,)),
    Build('split_stack', GCC, O2, '-fsplit-stack', '-fuse-ld=gold', less=100),
    Build('shadow_saves', CLANG, O0, '-fsanitize=safe-stack', less=70),
    Build('undefined', GCC, O0, '-fsanitize=alignment,bounds,shift', less=10),
    Build('profile', GCC, O2, '-fprofile-arcs', less=50),
    Build('pg', GCC, O02, '-pg', less=100),
    Build('fentry', GCC, O2, '-pg', '-mfentry', less=100),
    Build('asan', BOTH, ('-O1',), '-fsanitize=address', like='-O2', less=90,
          ASAN_OPTIONS='verify_asan_link_order=0:detect_leaks=0'),
    Build('after_inlining', CLANG, O2, '-finstrument-functions-after-inlining',
          less=60),
    Build('short_enums', BOTH, O2, '-fshort-enums', languages=(False,)),
    Build('gsimple', CLANG, O2, '-fno-standalone-debug', '-gcolumn-info'),
    Build('long_double_128', GCC, O2, '-mlong-double-128', less=100,
          languages=(False,)),
    Build('zero_regs', GCC, O2, '-fzero-call-used-regs=all'),
    Build('trivial_auto', BOTH, O2, '-ftrivial-auto-var-init=pattern'),
    Build('retpoline', CLANG, O2, '-mretpoline'),
    Build('thunks', GCC, O2, '-mindirect-branch=thunk',
          '-mfunction-return=thunk'),
    Build('slp', GCC, ('-O3',), '-fno-ipa-icf', '-fipa-pta', '-fgcse-las',
          like='-O2', less=10),
    Build('icf_gcc', GCC, O2, '-fipa-icf'),
]

for one in HARD:
    for family in one.families_chosen():
        for optimize in one.optimize:
            for cxx in one.languages_of(family):
                add_test('%s_%s_%s_%s' % (
                    one.name, family, 'c++' if cxx else 'c', optimize),
                    lambda b=one, f=family, o=optimize, c=cxx: b.test(f, o, c))



# --- no debug information ---

NOTHING = 'no debug information, %s: no lines, no arguments: %s'
NO_SYMBOL = 'no symbol for a function, %s: no lines, no arguments: %s'


def expect_nothing(answers, path, reason, line=NOTHING):
    """Expects no value, and one log line with the reason."""
    expect_equal((answers.right, answers.wrong), (0, []), 'values')
    expect(answers.missing > 100, '%d unavailable' % answers.missing)
    lines = [line.replace(' (deleted)', '') for line in answers.log
             if path in line]
    expect_equal(lines, [line % (reason, path)], 'the log')


def without(name, reason, *flags, change=lambda path: path, line=NOTHING):
    def run():
        path = change(build('g0' if flags else 'plain', 'gcc', '-O0', False,
                            flags))
        expect_nothing(answers_of(path), path, reason, line)
    add_test(name + '_is_nothing', run)


def strip(path, what='--strip-debug'):
    path = copy_of(path)
    run_tool('strip', what, path)
    return path


def cut_off(path):
    """Cuts the debug sections, which lie after the loaded part of the file."""
    path = copy_of(path)
    with open(path, 'r+b') as file:
        file.truncate(os.path.getsize(path) * 2 // 3)
    return path


def remove_dwo(path):
    directory = os.path.dirname(path)
    for file in os.listdir(directory):
        if file.endswith('.dwo'):
            os.remove(os.path.join(directory, file))
    return path


def lose_dwo(path):
    return remove_dwo(build_split('gcc', '-O0', False, ['-gsplit-dwarf']))


def pack_dwo(path):
    """libdw 0.188 does not read packages."""
    path = build_split('gcc', '-O0', False, ['-gdwarf-4', '-gsplit-dwarf'])
    run_tool('dwp', '-e', path, '-o', path + '.dwp',
             directory=os.path.dirname(path))
    return remove_dwo(path)


without('g0', 'built without -g or stripped', '-g0')
without('stripped', 'built without -g or stripped', change=strip)
without('without_symbols', 'the file was stripped or differs from the loaded object',
        change=lambda path: strip(path, '--strip-all'), line=NO_SYMBOL)
without('shortened', 'the file was stripped or differs from the loaded object',
        change=cut_off, line=NO_SYMBOL)
without('lost_dwo', 'a .dwo file is missing', change=lose_dwo)
without('packed_dwo', 'a .dwo file is missing', change=pack_dwo)


def lost_debug_file():
    path = split_debug(build('plain', 'gcc', '-O0', False))
    os.remove(path + '.debug')
    expect_nothing(answers_of(path), path, 'built without -g or stripped')


def debug_file_of_another():
    path = split_debug(build('plain', 'gcc', '-O0', False))
    shutil.copy(build('plain', 'gcc', '-O2', False), path + '.debug')
    expect_nothing(answers_of(path), path, 'built without -g or stripped')


# --- a file that differs from the loaded one ---

def replaced(other):
    """The main program's file still exists."""
    path = copy_of(build('plain', 'gcc', '-O0', False))
    more = {}
    if other:
        more['HARD_OTHER'] = copy_of(build('plain', 'gcc', '-O2', False))
    answers = answers_of(path, HARD_FILE=path, **more)
    expect(other or not os.path.exists(path), 'it is still there')
    expect_answers(answers, plain_right('gcc', '-O0', False),
                   'replaced' if other else 'removed')


def replaced_library(other):
    flags = ['-shared', '-fPIC', '-Dmain=library_main']
    path = copy_of(build('library', 'gcc', '-O0', False, flags))
    host = path + '.host'
    run_tool('gcc', os.path.join(shimtest.PROGRAMS, 'arguments_host.c'), path,
             '-o', host)
    more = {}
    if other:
        more['HARD_OTHER'] = copy_of(build('library', 'gcc', '-O2', False,
                                           flags))
    answers = answers_of(host, HARD_FILE=path, **more)
    expect_nothing(answers, path,
                   'the file was stripped or differs from the loaded object', NO_SYMBOL)


add_test('lost_debug_file_is_nothing', lost_debug_file)
add_test('debug_file_of_another_is_nothing', debug_file_of_another)
add_test('a_replaced_program_is_still_read', lambda: replaced(True))
add_test('a_removed_program_is_still_read', lambda: replaced(False))
add_test('a_replaced_library_is_nothing', lambda: replaced_library(True))
add_test('a_removed_library_is_nothing', lambda: replaced_library(False))



# --- damage ---

DAMAGED = ('.debug', '.eh_frame', '.gnu_debug')


def sections_of(data):
    """[(offset, size)] of the parts that readers of debug information read: sections
    after the loaded part, and the headers."""
    headers, = struct.unpack_from('<Q', data, 0x28)
    size, count, names = struct.unpack_from('<HHH', data, 0x3a)

    def header(n):
        return struct.unpack_from('<IIQQQQ', data, headers + n * size)
    names = header(names)[4]
    found, behind = [], len(data)
    for n in range(count):
        name, kind, _, address, offset, length = header(n)
        end = data.index(b'\0', names + name)
        text = data[names + name:end].decode()
        if text.startswith(DAMAGED) and kind != 8 and length:
            found.append((offset, length))
            behind = min(behind, offset) if not address else behind
    return found, behind, (headers, size * count)


def damage(data, chance):
    data = bytearray(data)
    sections, behind, headers = sections_of(bytes(data))
    for _ in range(chance.randrange(1, 30)):
        offset, length = chance.choice(sections)
        at = offset + chance.randrange(length)
        data[at] = chance.choice([0, 1, 0x7f, 0x80, 0xff, data[at] ^ 1,
                                  chance.randrange(256)])
    if chance.randrange(8) == 0:
        data[headers[0] + chance.randrange(headers[1])] ^= 0xff
    if chance.randrange(8) == 0:
        del data[behind + chance.randrange(len(data) - behind):]
    return bytes(data)


def own_lines(text):
    return [line for line in text.splitlines()
            if line.startswith(('passed', 'returned'))]


def significant(lines):
    """Addresses differ from run to run: only the number of values counts."""
    return [(line.split()[:2], len(line.split())) for line in lines]


def damaged(family, optimize, cxx, *flags):
    """SEED and RUNS are for longer campaigns."""
    name = 'damaged' + ''.join(flags).replace('-', '_')
    data = open(build(name, family, optimize, cxx, flags), 'rb').read()
    seed, runs = (int(os.environ.get(name, default))
                  for name, default in (('SEED', '1'), ('RUNS', '8')))
    path = os.path.join(shimtest.new_directory('damaged'), 'program')
    asked = slowest = told = 0
    wanted = None
    for number in range(runs):
        with open(path, 'wb') as file:
            file.write(data if number == 0 else
                       damage(data, random.Random(seed * 1000003 + number)))
        os.chmod(path, 0o700)
        begin = time.monotonic()
        result = record([path], 'none', timeout=120)
        slowest = max(slowest, time.monotonic() - begin)
        lines = significant(own_lines(result.stdout))
        wanted = wanted or lines
        expect_equal((result.status, result.stderr), (0, ''),
                     'run %d: status and stderr' % number)
        expect_equal(lines, wanted, 'run %d: what it prints' % number)
        asked += result.stdout.count('\ngot ')
        told += result.stdout.count(' 0x80131354')
    print('# %d runs, %d questions, %d without an answer, at most %.1f s' % (
        runs, asked, told, slowest))
    expect(asked > 0, 'nothing was asked')


for arguments_ in (('gcc', '-O2', False), ('gcc', '-O0', True),
                   ('clang', '-O2', True), ('clang', '-O0', False, '-gdwarf-4'),
                   ('gcc', '-O0', False, '-gz=zlib')):
    add_test('damaged_debug_information_harms_nobody_' +
             '_'.join(str(a) for a in arguments_),
             lambda a=arguments_: damaged(*a))


# --- a reader that fails ---

def failing_reader(fault, line):
    directory = shimtest.new_directory('reader')
    for name in (shimtest.library, os.path.join(
            os.path.dirname(shimtest.library), 'libshim-code.so')):
        shutil.copy(name, directory)
    run_tool('gcc', '-O0', '-w', '-shared', '-fPIC', '-DFAULT=%d' % fault,
             '-I', arguments.INCLUDE,
             '-I', os.path.join(arguments.INCLUDE, '..', 'shim'),
             os.path.join(shimtest.PROGRAMS, 'bad_debuginfo.c'), '-o',
             os.path.join(directory, 'libshim-debuginfo.so'))
    path = build('plain', 'gcc', '-O0', False)
    library = os.path.join(directory, os.path.basename(shimtest.library))
    answers = answers_of(path, LD_PRELOAD=library)
    expect_equal((answers.right, answers.wrong), (0, []), 'values')
    lines = [text for text in answers.log if path in text]
    expect(lines and set(lines) == {line % path}, '%r' % lines)


for fault, name, line in (
        (1, 'crashes', 'debug information is damaged: no lines, no arguments: '
         '%s'),
        (3, 'runs_over_its_stack', 'debug information is damaged: no lines, no '
         'arguments: %s'),
        (4, 'aborts', 'debug information is damaged: no lines, no arguments: '
         '%s'),
        (2, 'never_ends', 'debug information takes too long to read, it may be '
         'damaged: no lines, no arguments: %s')):
    add_test('a_reader_that_%s_harms_nobody' % name,
             lambda f=fault, l=line: failing_reader(f, l))

if __name__ == '__main__':
    shimtest.main()
