#!/usr/bin/env python3
"""packages.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

What packages are made of: the files in scripts/debian, the spec, and the files for CMake
agree with the build (SHIM_BUILD) and with each other.  scripts/package builds the
packages.
"""
import fnmatch
import functools
import json
import os
import platform
import re
import shutil
import subprocess

import shimtest
from shimtest import expect, expect_equal, new_directory, test

BUILD = os.environ['SHIM_BUILD']
TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DEBIAN = os.path.join(TOP, 'scripts', 'debian')
LIBRARY = os.path.join(BUILD, 'shim', 'libshim.so.0')


def content(*path):
    with open(os.path.join(TOP, *path)) as file:
        return file.read()


@functools.lru_cache
def introspect(what):
    return json.loads(subprocess.run(
        ['meson', 'introspect', BUILD, '--' + what], check=True, text=True,
        stdout=subprocess.PIPE).stdout)


def option(name):
    return next(o['value'] for o in introspect('buildoptions')
                if o['name'] == name)


def installed():
    """The paths of all installed files, as Debian's prefix and folders make them."""
    shimtest.need('meson')
    prefix = option('prefix')
    folders = {os.path.join(prefix, option('libdir')): 'usr/lib/TRIPLET',
               os.path.join(prefix, option('libexecdir')): 'usr/libexec',
               os.path.join(prefix, option('mandir')): 'usr/share/man',
               prefix: 'usr'}
    paths = list(introspect('installed').values()) + [
        os.path.join(prefix, option('libdir'), 'libshim.so')]
    found = set()
    for path in paths:
        old = next(f for f in folders if path.startswith(f.rstrip('/') + '/'))
        found.add(folders[old] + path[len(old.rstrip('/')):])
    return found


def covers(pattern, path):
    return fnmatch.fnmatchcase(path, pattern) or path.startswith(
        pattern.rstrip('/') + '/') or any(
        fnmatch.fnmatchcase(path[:i], pattern)
        for i, c in enumerate(path) if c == '/')


def expect_partition(patterns, paths):
    """Each file belongs to one pattern, and each pattern has a file."""
    for path in sorted(paths):
        owners = [p for p in patterns if covers(p, path)]
        expect(len(owners) == 1, '%s belongs to %r' % (path, owners))
    for pattern in patterns:
        expect(any(covers(pattern, p) for p in paths), 'nothing is ' + pattern)


@test
def each_installed_file_is_in_one_debian_package():
    patterns = []
    for name in sorted(os.listdir(DEBIAN)):
        if name.endswith('.install'):
            patterns += [line.split()[0] for line in
                         content('scripts', 'debian', name).splitlines()]
    # Debian has the licence; debian/rules removes this copy.
    patterns.append('usr/share/doc/shim/LICENSE')
    expect_partition(patterns, installed())


@test
def each_installed_file_is_in_one_rpm():
    macros = {'_bindir': 'usr/bin', '_libdir': 'usr/lib/TRIPLET',
              '_libexecdir': 'usr/libexec', '_datadir': 'usr/share',
              '_mandir': 'usr/share/man', '_includedir': 'usr/include',
              '_docdir': 'usr/share/doc'}
    patterns = []
    for line in content('scripts', 'shim.spec').splitlines():
        match = re.match(r'(?:%doc )?%\{(\w+)\}(/.*)$', line)
        if match:
            patterns.append(macros[match.group(1)] + match.group(2))
    expect_partition(patterns, installed())


@test
def all_files_have_the_same_version():
    version = re.search(r"^  version: '(.*)',$", content('meson.build'),
                        re.M).group(1)
    for name, pattern in (
            ('CHANGELOG.md', r'^## (\S+)$'),
            ('scripts/debian/changelog', r'^\S+ \((\S+)\) '),
            ('scripts/shim.spec', r'%global shim_version (\S+)\}')):
        found = re.search(pattern, content(name), re.M)
        expect_equal(found and found.group(1), version, name)


@test
def build_dependencies_are_those_of_scripts_packages():
    wanted = set(re.findall(r'^build (\S+?)(?:/\S+)?(?: |$)',
                            content('scripts', 'packages'), re.M))
    field = re.search(r'^Build-Depends: (.*?)^\S', content(
        'scripts', 'debian', 'control'), re.M | re.S).group(1)
    named = {re.match(r'[^ :\[(]+', part.strip()).group(0)
             for part in field.split(',')}
    expect(named - {'debhelper-compat'} <= wanted, named - wanted)
    # Part of Debian's build-essential, or of what dpkg and meson depend on.
    expect_equal(wanted - named, {'gcc', 'g++', 'libc6-dev', 'dpkg-dev',
                                  'xz-utils', 'ninja-build'}, 'missing')


@test
def the_symbols_file_lists_what_the_library_exports():
    machine = platform.machine()
    shimtest.need('nm')
    expect(machine in ('x86_64', 'aarch64'), machine)
    name = {'x86_64': 'amd64', 'aarch64': 'arm64'}[machine]
    listed = {symbol for only, symbol in re.findall(
        r'^ (?:\(arch=(\w+)\))?(\w+)@Base ',
        content('scripts', 'debian', 'libshim0.symbols'), re.M)
        if only in ('', name)}
    lines = subprocess.run(['nm', '-D', '--defined-only', LIBRARY], check=True,
                           text=True, stdout=subprocess.PIPE).stdout
    expect_equal({line.split()[-1] for line in lines.splitlines()}, listed,
                 'symbols')


@test
def both_changelogs_are_in_the_package():
    """Debian's own tool takes ours for that of the package, unless it is told."""
    shimtest.need('dh_installchangelogs')
    directory = new_directory('changelogs')
    debian = os.path.join(directory, 'debian')
    documents = os.path.join(debian, 'shim-doc/usr/share/doc/shim-doc')
    shutil.copytree(DEBIAN, debian)
    os.makedirs(documents)
    shutil.copy(os.path.join(TOP, 'CHANGELOG.md'), documents)
    done = subprocess.run(['make', '-f', 'debian/rules', 'override_dh_installchangelogs'],
                          cwd=directory, capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    expect_equal(sorted(os.listdir(documents)), ['CHANGELOG.md', 'changelog'], 'files')
    with open(os.path.join(documents, 'changelog')) as file:
        expect(file.read().startswith('shim-profiler ('), 'changelog')


PROJECT = '''
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(shim %s REQUIRED)
add_executable(app app.c)
target_link_libraries(app PRIVATE shim::instrumented shim::headers)
shim_add_profiler(calls calls.c)
file(WRITE ${CMAKE_BINARY_DIR}/preload "${shim_PRELOAD}")
'''

PROGRAM = '''
#include <shim/mark.h>
static int twice(int n) { return n + n; }
int main(void)
{
	int sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += twice(i);
	return sum < 0;
}
'''


def cmake(root, version):
    directory = new_directory('cmake')
    for name, text in (('CMakeLists.txt', PROJECT % version),
                       ('app.c', PROGRAM),
                       ('calls.c', content('tests', 'modules', 'calls.c'))):
        with open(os.path.join(directory, name), 'w') as file:
            file.write(text)
    built = os.path.join(directory, 'build')
    done = subprocess.run(
        ['cmake', '-S', directory, '-B', built, '-DCMAKE_PREFIX_PATH=' + root],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done, built


@test
def the_test_of_the_package_has_what_its_program_needs():
    needed = set(re.findall(r'^need \S+ (\S+)$', content('tests', 'bench', 'programs'), re.M))
    depends = re.search(r'^Tests: quickstart\nDepends: (.*)$',
                        content('scripts', 'debian', 'tests', 'control'), re.M).group(1)
    expect(needed and needed <= set(depends.split(', ')), (needed, depends))


@test
def cmake_finds_an_installation_that_was_moved():
    shimtest.need('cmake')
    first = new_directory('installed')
    done = subprocess.run(
        ['meson', 'install', '--no-rebuild', '-C', BUILD, '--destdir', first],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect_equal(done.returncode, 0, done.stdout)
    root = first + '.moved'
    os.rename(first, root)
    root += option('prefix')
    done, built = cmake(root, '0.9')
    expect_equal(done.returncode, 0, done.stdout)
    done = subprocess.run(['cmake', '--build', built], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect_equal(done.returncode, 0, done.stdout)
    with open(os.path.join(built, 'preload')) as file:
        expect(file.read().startswith(root), root)
    counts = os.path.join(built, 'counts')
    done = subprocess.run(
        [os.path.join(root, 'bin', 'profrun'), '-p', 'calls:' + counts,
         os.path.join(built, 'app')], cwd=built, text=True,
        capture_output=True,
        env=shimtest.environment(SHIM_MODULE_PATH=built))
    expect_equal(done.returncode, 0, done.stderr)
    with open(counts) as file:
        expect('1000 twice' in file.read(), counts)
    done, _ = cmake(root, '0.10')
    expect('not compatible' in re.sub(r'\s+', ' ', done.stdout) or
           'compatible with requested version' in
           re.sub(r'\s+', ' ', done.stdout), done.stdout)


if __name__ == '__main__':
    shimtest.main()
