#!/usr/bin/env python3
"""info.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Compares the answers of <shim/info.h> about functions, images and the process with those
of readelf, addr2line and c++filt for the same files.
"""
import os
import re
import shutil
import subprocess

import shimtest
from shimtest import (PROGRAMS, add_test, compile, expect,
                      expect_equal, new_directory, run, test)

TOP = os.path.dirname(os.path.dirname(PROGRAMS))
INCLUDE = os.path.join(TOP, 'include')
PART = re.compile(r'\.(cold(\.\d+)?|part\.\d+|__part\.\d+)$')


def build(family, flags=(), name=None):
    return compile('info.cc', family, '-O2', name=name or 'info',
                   flags=['-I', INCLUDE, *flags], libraries=['-ldl'])


def output_of(*command, stdin=''):
    done = subprocess.run(command, input=stdin.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, LC_ALL='C'))
    expect(done.returncode == 0, '%s: %s' % (command, done.stdout[-300:]))
    return done.stdout.decode(errors='replace')


def ask(program, **more):
    result = run([program], new_directory('info'), **more)
    expect_equal(result.status, 0, 'status; ' + result.stderr)
    return result.stdout


def functions_of(text):
    """{address in the file: {'name': ..., 'aliases': ...}}"""
    functions = {}
    for line in text.splitlines():
        if line.startswith('function '):
            fields = dict(f.split(' ', 1) for f in line.split('\t'))
            functions[int(fields['function'], 16)] = fields
    return functions


def symbols_of(program, dynamic=False):
    """[(address, size, name)] of the program's function symbols."""
    found = []
    for line in output_of('readelf', '-W', '--dyn-syms' if dynamic else '-s',
                          program).splitlines():
        # readelf uses this name if nothing marks the file as a GNU one.
        f = line.replace('<OS specific>: 10', 'IFUNC').split()
        if len(f) >= 8 and f[3] in ('FUNC', 'IFUNC') and (
                f[6] != 'UND' or int(f[1], 16)):
            found.append((int(f[1], 16), int(f[2], 0), f[7].split('@')[0]))
        if not dynamic and "'.symtab'" not in line and line.startswith(
                'Symbol table'):
            found = []          # of .dynsym
    return found + chosen_of(program, found)


def chosen_of(program, symbols):
    """[(address, size, name)] of linkage table entries that jump to a resolved
    function: objdump names both entries by the function's address."""
    choosers = {int(m.group(1), 16) for m in re.finditer(
        r'IRELATIVE\s+([0-9a-f]+)', output_of('readelf', '-rW', program))}
    found = []
    for entry, chooser in re.findall(
            r'^([0-9a-f]+) <\*ABS\*\+0x([0-9a-f]+)@plt>:',
            output_of('objdump', '-d', program), re.M):
        expect(int(chooser, 16) in choosers, 'no relocation of ' + entry)
        found += [(int(entry, 16), 0, name) for address, _, name in symbols
                  if address == int(chooser, 16) and '.' not in name]
    return found


def whole_of(name, names):
    """The function of which @name is a part."""
    while PART.search(name) and PART.sub('', name) in names:
        name = PART.sub('', name)
    return name


def check_names(program, functions, symbols):
    names = {name for _, _, name in symbols}
    wanted, sizes, parts = {}, {}, {}
    for address, size, name in symbols:
        whole = whole_of(name, names)
        if whole != name:
            parts.setdefault(whole, set()).add((address, size))
            continue
        wanted.setdefault(address, set()).add(name)
        sizes[address] = max(size, sizes.get(address, 0))
    expect_equal(sorted(functions), sorted(wanted), 'functions of ' + program)
    for address, f in functions.items():
        aliases = f['aliases'].split('\1')
        expect_equal(set(aliases), wanted[address], 'aliases at %x' % address)
        expect_equal(f['name'], aliases[0], 'the name is the first alias')
        if sizes[address]:
            expect_equal(int(f['size'], 16), sizes[address], f['name'])
        ranges = [tuple(int(n, 16) for n in r.split('+'))
                  for r in f['ranges'].split(',')]
        expect_equal(ranges[0], (address, int(f['size'], 16)), 'hot part')
        expect_equal(set(ranges[1:]), set().union(
            *(parts.get(alias, set()) for alias in aliases)), f['name'])
    return parts


def check_demangled(functions):
    filtered = output_of('c++filt', stdin='\n'.join(
        f['name'] for f in functions.values()) + '\n').splitlines()
    for f, wanted in zip(functions.values(), filtered):
        expect_equal(f['demangled'], wanted, f['name'])


def lines_of(field):
    return [(int(line), int(start, 16), int(end, 16)) for line, start, end in
            re.findall(r'(\d+)@(\w+)-(\w+)', field)]


def address_of(function, offset):
    for part in function['ranges'].split(','):
        start, size = (int(n, 16) for n in part.split('+'))
        if offset < size:
            return start + offset
        offset -= size
    raise shimtest.Failed('%s has no byte %x' % (function['name'], offset))


def check_lines(program, functions):
    """The line of every piece must be addr2line's for its first and last byte, and the
    pieces must cover the whole function."""
    asked = []
    for address, f in functions.items():
        if f['lines'].startswith('!'):
            continue
        lines = lines_of(f['lines'])
        expect(lines, 'no lines: ' + f['name'])
        whole = sum(int(r.split('+')[1], 16) for r in f['ranges'].split(','))
        expect_equal(sum(end - start for _, start, end in lines), whole,
                     'bytes with lines of ' + f['name'])
        asked.append((address, f['file'], None, f))
        for line, start, end in lines:
            asked.append((address_of(f, start), None, line, f))
            asked.append((address_of(f, end - 1), None, line, f))
    expect(len(asked) > 100, 'only %d lines' % len(asked))
    answers = output_of('addr2line', '-e', program, stdin=''.join(
        '%x\n' % a[0] for a in asked)).splitlines()
    for (address, file, line, f), answer in zip(asked, answers):
        answer = re.sub(r' \(discriminator \d+\)$', '', answer)
        wanted_file, wanted_line = answer.rsplit(':', 1)
        what = '%s at %x (%s)' % (f['name'], address, answer)
        if file is not None:
            expect_equal(os.path.realpath(file), os.path.realpath(wanted_file),
                         what)
        elif wanted_line == '?':
            expect_equal(line, 0, what)
        else:
            expect_equal(line, int(wanted_line), what)


ARGUMENTS = {
    'int shapes::twice<int>(int)': ['int'],
    'double shapes::twice<double>(double)': ['double'],
    'int shapes::number<42, true>(int)': ['42', 'true'],
    'int shapes::number<-7, false>(int)': ['-7', 'false'],
    'int shapes::pack<int, char, shapes::point*>(int, char, shapes::point*)':
        ['int', 'char', 'shapes::point*'],
    'shapes::table<long, 4u>::at(unsigned int)': ['long', '4'],
    'short shapes::table<long, 4u>::as<short>(unsigned int)':
        ['long', '4', 'short'],
    'int pointer<shapes::point const*>(shapes::point const*)':
        ['const shapes::point*'],
    'int pointer<int (*)(int)>(int (*)(int))': ['int (*)(int)'],
    '(anonymous namespace)::hidden(int)': [],
    'plain': [],
}


def check_arguments(functions):
    found = {name: f['arguments'] for f in functions.values()
             for name in [f['demangled'], *f['aliases'].split('\1')]}
    for name, wanted in ARGUMENTS.items():
        expect(name in found, 'no function ' + name)
        # gcc says "long int" where clang says "long".
        got = [re.sub(r'\b(long|short) int$', r'\1', a) for a in
               found[name].split('\1') if a]
        expect_equal(got, wanted, name)


def check(family):
    program = build(family)
    functions = functions_of(ask(program))
    parts = check_names(program, functions, symbols_of(program))
    if family == 'gcc':
        expect(len([f for f in functions.values()
                    if f['name'] == '_Z6choseni']) == 2, 'no chosen function')
        expect('_Z6splitsiPKc' in parts, 'gcc made no cold part')
    check_demangled(functions)
    check_lines(program, functions)
    check_arguments(functions)


for compiler in ('gcc', 'clang'):
    add_test('functions_are_those_of_the_symbol_table_and_debug_information'
             '_(%s)' % compiler, lambda compiler=compiler: check(compiler))


@test
def a_stripped_program_has_its_dynamic_symbols_and_no_lines():
    program = build('gcc', ['-rdynamic', '-s'], 'info_stripped')
    functions = functions_of(ask(program))
    symbols = symbols_of(program, dynamic=True)
    expect(len(symbols) > 5, 'no dynamic symbols')
    check_names(program, functions, symbols)
    check_demangled(functions)
    for f in functions.values():
        for what in ('lines', 'file', 'arguments'):
            expect_equal(f[what], '!SHIM_E_FUNCTION_NOT_IL', f['name'])


@test
def a_program_is_known_when_another_file_has_its_name():
    program = build('gcc')
    copy = os.path.join(new_directory('replaced'), 'info')
    shutil.copy(program, copy)
    other = compile('info_plugin.c', flags=['-shared', '-fPIC'],
                    name='libinfo_other.so')
    # The file at the program's path is replaced before it is read.
    text = ask(copy, INFO_REPLACE=other)
    check_names(program, functions_of(text), symbols_of(program))
    expect('image %s' % copy in text, text[:300])


@test
def unloaded_and_unknown_libraries_give_different_results():
    library = compile('info_plugin.c', flags=['-shared', '-fPIC'],
                      name='libinfo_plugin.so')
    text = ask(build('gcc'), INFO_LIBRARY=library)
    expect('loaded SHIM_OK 1' in text and 'listed SHIM_OK 1' in text, text)
    functions = functions_of(text)
    check_names(library, functions, symbols_of(library))
    lines = [f for f in functions.values() if f['name'] == 'plugin_function']
    expect(lines and lines_of(lines[0]['lines']), 'no lines')
    expect_equal(re.findall(r'^gone .*$', text, re.M), [
        'gone image SHIM_E_DATAINCOMPLETE 0',
        "gone function SHIM_E_DATAINCOMPLETE ''",
        'gone lines SHIM_E_DATAINCOMPLETE',
        'gone address SHIM_E_DATAINCOMPLETE'], text)
    flags = re.search(r'^image .*libinfo_plugin.so\t.*flags (\w+)', text, re.M)
    expect_equal(flags.group(1), '9', 'on disk, and may go')


@test
def the_process_and_the_image_are_described():
    program = build('gcc')
    text = ask(program)
    expect('process 1 %s\n' % program in text, text[:500])
    runtime = re.search(r'^runtime (.*)$', text, re.M).group(1)
    expect(re.match(r'shim \d+\.\d+\.\d+, glibc 2\.\d+, Linux \d+.*, GCC: ',
                    runtime), runtime)
    notes = output_of('readelf', '-nW', program)
    wanted = re.search(r'Build ID: (\w+)', notes)
    image = re.search(r'^image (.*)\tbias .*\tid (\w*)$', text, re.M)
    expect_equal(image.group(1), program, 'path')
    expect_equal(image.group(2), wanted.group(1) if wanted else '', 'build-id')


def copy_of_the_library(with_helper):
    directory = new_directory('library')
    for file in (shimtest.library, os.path.join(os.path.dirname(
            shimtest.library), 'libshim-debuginfo.so')):
        if with_helper or file == shimtest.library:
            shutil.copy(file, directory)
    return os.path.join(directory, os.path.basename(shimtest.library))


@test
def without_the_helper_names_are_linker_names_and_the_log_says_why():
    program = build('gcc')
    output = new_directory('info')
    result = run([program], output, LD_PRELOAD=copy_of_the_library(False))
    functions = functions_of(result.stdout)
    check_names(program, functions, symbols_of(program))
    for f in functions.values():
        expect_equal(f['demangled'], f['name'], 'name')
        expect_equal(f['lines'], '!SHIM_E_FUNCTION_NOT_IL', f['name'])
    expect('libshim-debuginfo.so cannot be used' in
           shimtest.shim_report('info', output), 'the log says nothing')


@test
def the_helper_meets_neither_the_network_nor_the_programs_environment():
    shimtest.need('strace')
    output = new_directory('info')
    trace = os.path.join(new_directory('trace'), 'trace')
    result = run(['strace', '-f', '-e', 'trace=network', '-o', trace,
                  '-E', 'LD_PRELOAD=' + shimtest.library,
                  '-E', 'SHIM_DIR=' + output, build('gcc')],
                 DEBUGINFOD_URLS='http://127.0.0.1:1')
    expect_equal(result.status, 0, 'status')
    calls = [line for line in open(trace) if 'socket(' in line]
    expect_equal(calls, [], 'network')
    expect(lines_of(result.stdout), 'no lines')


if __name__ == '__main__':
    shimtest.main()
