#!/usr/bin/env python3
"""early.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Hooks that the program calls before shim can run: while the loader relocates (IFUNC),
before libc's constructor (.preinit_array, -z initfirst), and in constructors that run
before ours.
"""
import os
import re
import struct
import subprocess

import shimtest
from shimtest import (PROGRAMS, add_test, compile, expect, expect_equal,
                      json_of, linked, new_directory, run, run_both, shim_report,
                      test, tree_of)

PROFILES = ['calltree:counts', 'calltree', 'calltree:exact', 'trace']
MODULES = os.path.join(os.path.dirname(PROGRAMS), 'modules')

# Linker options by kind of program.
LINKED = {'PIE': ['-fPIE', '-pie'], 'fixed': ['-fno-pie', '-no-pie']}
BOUND = {'lazy': ['-Wl,-z,lazy'], 'now': ['-Wl,-z,now']}

RESOLVED = {'resolve_twice': 1, 'resolve_twice;choose': 2,
            'resolve_twice;choose;choose': 2,
            'resolve_twice;choose;choose;choose': 1,
            'resolve_twice;choose;choose;choose;choose': 1,
            'main': 1, 'main;resolved': 1, 'main;resolved;chosen': 1}
# With clang, the loader runs the resolver when the function is first called.
RESOLVED_LATER = {('main;resolved;' + path if 'twice' in path else path): calls
                  for path, calls in RESOLVED.items()}
PREINIT = {'begin': 1, 'begin;leaf': 5, 'main': 1, 'main;leaf': 1}
INITFIRST = {'construct': 1, 'construct;leaf': 2, 'main': 1,
             'main;initfirst': 1, 'main;initfirst;leaf': 1}


def library(source, name, family, flags):
    return linked(compile(source, family, '-O0', ['-shared', '-fPIC', *flags],
                          name='lib%s.so' % name))


def resolved(family, link, bound):
    return [compile('resolved.c', family, '-O0', LINKED[link] + BOUND[bound],
                    name='resolved-%s-%s' % (link, bound))]


def resolved_library(family, bound, flags, name):
    name = 'resolved_%s_%s' % (name, bound)
    return [compile('resolved_host.c', family, '-O0', name='host_' + name,
                    libraries=library('resolved.c', name, family,
                                      ['-DLIBRARY', *BOUND[bound], *flags]))]


def preinit(family, link, bound, calls='5'):
    return [compile('preinit.c', family, '-O0', LINKED[link] + BOUND[bound],
                    name='preinit-%s-%s' % (link, bound)), calls]


def initfirst(family, bound):
    name = 'initfirst_' + bound
    return [compile('initfirst_host.c', family, '-O0', name='host_' + name,
                    libraries=library('initfirst.c', name, family,
                                      ['-Wl,-z,initfirst', *BOUND[bound]]))]


def alias(path):
    """A resolver's address also has the name of the function that it resolves."""
    return re.sub(r'(?<![^;])twice(?![^;])', 'resolve_twice', path)


def expect_calls(output, wanted, what):
    tree = {}
    for path, calls in tree_of(output).items():
        tree[alias(path)] = tree.get(alias(path), 0) + calls
    if wanted is RESOLVED and 'main;resolved;resolve_twice' in tree:
        wanted = RESOLVED_LATER
    expect_equal(tree, wanted, what)


def check(command, wanted):
    if run(command).status != 3:
        # The test also runs without shim: the loader runs the resolver before it has
        # bound the hooks.
        run_both(command)
        return
    for profile in PROFILES:
        result = run_both(command, profile)
        expect_equal(result.status, 3, 'status')
        expect_calls(result.output, wanted, profile)
    # Settings count, however early they are read.
    result = run_both(command, SHIM_DISABLE='1')
    expect_equal(os.listdir(result.output), [], 'recorded when disabled')
    result = run_both(command, SHIM_FILTER='M:main')
    expect_equal(tree_of(result.output), {'main': 1}, 'with a filter')


def each(name, families=('gcc', 'clang')):
    def decorate(function):
        for family in families:
            add_test('%s_%s' % (name, family),
                     lambda family=family: function(family))
    return decorate


@each('calls_of_a_resolver_in_the_program_are_recorded')
def _(family):
    for link in LINKED:
        for bound in BOUND:
            check(resolved(family, link, bound), RESOLVED)


@each('calls_of_a_resolver_in_a_library_are_recorded')
def _(family):
    for bound in BOUND:
        check(resolved_library(family, bound, [], 'usual'), RESOLVED)


@each('calls_of_a_resolver_that_runs_before_shim_is_relocated_are_recorded')
def _(family):
    for bound in BOUND:
        # A library without libc is relocated first.
        command = resolved_library(family, bound, ['-nostdlib'], 'alone')
        check(command, RESOLVED)
        if run(command).status != 3:
            continue
        order = run(command, LD_DEBUG='reloc', LD_PRELOAD=shimtest.library,
                    SHIM_DIR=new_directory('order')).stderr
        where = [re.search('relocation processing: ' + path, order)
                 for path in ('.*/libresolved_', re.escape(shimtest.library))]
        expect(all(where) and where[0].start() < where[1].start(),
               'shim was relocated first:\n' + order)


@test
def a_resolver_that_the_compiler_makes_runs():
    for link in LINKED:
        for bound in BOUND:
            program = compile('clones.c', 'gcc', '-O2',
                              LINKED[link] + BOUND[bound],
                              name='clones-%s-%s' % (link, bound))
            for profile in PROFILES:
                result = run_both([program], profile)
                expect_equal(json_of(result.output)['calls'], 2, profile)


@each('calls_before_any_constructor_are_recorded')
def _(family):
    for link in LINKED:
        for bound in BOUND:
            check(preinit(family, link, bound), PREINIT)


@each('calls_of_a_library_that_begins_before_libc_are_recorded')
def _(family):
    for bound in BOUND:
        check(initfirst(family, bound), INITFIRST)


# --- slots that the loader has not yet bound ---

@each('a_program_with_hooks_of_its_own_gets_all_calls')
def _(family):
    for bound in BOUND:
        for when in BOUND:
            made = library('hooks_own_library.c', 'hooks_own_' + bound, family,
                           BOUND[bound])
            program = compile('hooks_own.c', family, '-O0', BOUND[when],
                              name='hooks_own_%s_%s' % (bound, when),
                              libraries=made)
            for profile in PROFILES:
                result = run_both([program], profile)
                expect_equal(result.stdout, '5 4\n', profile)
                expect_equal(json_of(result.output)['calls'], 0, profile)


def marked(path, mark):
    """A copy of the library that is symbolic, but calls its functions through slots.
    Linkers store the mark as an entry DT_SYMBOLIC, or as a bit of DT_FLAGS."""
    tag, value = {'entry': (16, 0), 'bit': (30, 2)}[mark]
    data = bytearray(open(path, 'rb').read())
    start, = struct.unpack_from('<Q', data, 32)
    size, count = struct.unpack_from('<HH', data, 54)
    parts = [struct.unpack_from('<IIQQQQQQ', data, start + i * size) for i in range(count)]
    at, = [part[2] for part in parts if part[0] == 2]
    # More than one empty entry follows the last one.
    while struct.unpack_from('<Q', data, at)[0] not in (0, tag):
        at += 16
    _, before, following = struct.unpack_from('<QQQ', data, at)
    expect(following == 0 or before, 'no room for another entry')
    struct.pack_into('<QQ', data, at, tag, before | value)
    made = os.path.join(new_directory('marked'), mark + os.path.basename(path))
    with open(made, 'wb') as file:
        file.write(data)
    return made


@each('a_library_that_finds_its_own_hooks_first_keeps_them')
def _(family):
    host = compile('hooks_own_host.c', family)
    for bound in BOUND:
        for name, flags in ('symbolic', ['-Wl,-Bsymbolic']), ('usual', []):
            path = compile('hooks_own_library.c', family, '-O0', [
                '-shared', '-fPIC', '-DHOOKS', *flags, *BOUND[bound]],
                name='libhooks_%s_%s.so' % (name, bound))
            for more in [], ['deep']:
                result = run_both([host, path, *more])
                own = name == 'symbolic' or more
                expect_equal(result.stdout, '6\n' if own else '0\n',
                             '%s %s' % (path, more))
                expect_equal(json_of(result.output)['calls'], 1 if own else 7,
                             '%s %s' % (path, more))


@test
def a_symbolic_library_that_calls_its_own_hooks_through_slots_keeps_them():
    host = compile('hooks_own_host.c')
    for bound in BOUND:
        path = compile('hooks_own_library.c', flags=[
            '-shared', '-fPIC', '-DHOOKS', *BOUND[bound]],
            name='libhooks_slots_%s.so' % bound)
        for mark in 'entry', 'bit':
            # Coverage inspects each object when it is opened.
            result = run_both([host, marked(path, mark)], 'calltree;coverage')
            expect_equal(result.stdout, '6\n', '%s %s' % (bound, mark))
            expect_equal(json_of(result.output)['calls'], 1, '%s %s' % (bound, mark))


# --- modules ---

def module(name):
    target = os.path.join(new_directory('module'),
                          'libshim-profiler-%s.so' % name)
    top = os.path.dirname(os.path.dirname(PROGRAMS))
    done = subprocess.run(
        ['gcc', '-shared', '-fPIC', '-O1', '-g',
         '-I' + os.path.join(top, 'include'),
         os.path.join(MODULES, name + '.c'), '-o', target],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, done.stdout.decode())
    return target


def events_of_module(command, **more):
    """The events that a module counts in the program, and the run."""
    path = os.path.join(new_directory('counted'), 'counted')
    result = run_both(command, '%s:%s' % (module('elt3_fast'), path), **more)
    counted = dict(re.findall(r'(\w+) (\d+)', open(path).read()))
    return {event: int(n) for event, n in counted.items()}, result


@each('a_module_gets_what_was_called_before_it_could_be_loaded')
def _(family):
    early = library('early.c', 'early', family, [])
    for command, wanted in (
            (resolved(family, 'PIE', 'lazy'), RESOLVED),
            (resolved_library(family, 'lazy', ['-nostdlib'], 'alone'), RESOLVED),
            (preinit(family, 'PIE', 'now'), PREINIT),
            (initfirst(family, 'lazy'), INITFIRST)):
        events, _ = events_of_module(command)
        calls = sum(wanted.values())
        expect_equal(events, {'enters': calls, 'leaves': calls}, command[0])
    # ... and of constructors that run before ours.
    host = compile('early_host.c', family, '-O0', libraries=early,
                   name='early_host')
    events, _ = events_of_module([host])
    expect_equal(events, {'enters': 8, 'leaves': 8}, 'early_host')


@test
def calls_before_libc_that_are_not_kept_are_counted_as_lost():
    command = preinit('gcc', 'PIE', 'lazy', '100000')
    truth = 100003          # begin, and main with its leaf
    for profile in PROFILES:
        about = json_of(run_both(command, profile).output)
        expect_equal((about['calls'], about['lost']), (truth, 0), profile)
    events, result = events_of_module(command)
    expect_equal(events['enters'], events['leaves'], 'events')
    expect(500 < events['enters'] < 1000, str(events))
    expect('before libc' in shim_report('info', result.output), 'no line')
    result = run_both(command, 'calltree:counts;%s:/dev/null' %
                      module('elt3_fast'))
    about = json_of(result.output)
    expect_equal(about['calls'] + about['lost'], truth, str(about['lost']))
    expect(about['lost'] > 90000, 'lost %d' % about['lost'])


@test
def arguments_of_calls_from_before_are_not_available():
    path = os.path.join(new_directory('arguments'), 'calls')
    result = run_both(resolved('gcc', 'PIE', 'lazy'),
                      '%s:file=%s' % (module('arguments'), path))
    lines = open(path).read()
    expect_equal(result.status, 3, 'status')
    asked = re.findall(r'choose\((.*)\)$', lines, re.M)
    expect(len(asked) == 6 and all('?' in one for one in asked), lines)
    expect(re.search(r'resolved\(number = 1\)', lines), lines)


if __name__ == '__main__':
    shimtest.main()
