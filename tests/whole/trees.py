#!/usr/bin/env python3
"""trees.py LIBSHIM SHIM-REPORT FIXTURES FAMILY OPTIMIZE [TEST...]

The recorded tree of every program in tests/programs whose opening comment lists it, for
one compiler.  In that comment:

    tree:                   lines of `path calls`, all there are
        *                   as a line: and others, not compared
    tree (clang -O2):       replaces it for that compiler (a known limit: the
                            comment says why)
    cut: NAME               leave out paths through NAME
    depth: N                deeper calls count for their ancestor there
    arguments: A B          what to call the program with
    flags: F G              for the compiler
    orphans: N              leaves without an enter; 0 if not given

Beside the tree, the counts that the program prints must be what was recorded,
nothing may be lost, and its output and status must be what they are without us.
"""
import os
import re
import sys

import shimtest
from shimtest import (PROFILES, PROGRAMS, add_test, calls_of, compile, difference, expect,
                      expect_truth, json_of, run_both, tree_of)


class Wanted:
    def __init__(self, source, family, optimize):
        text = open(os.path.join(PROGRAMS, source)).read()
        comment = re.match(r'/\*\n(.*?)\n \*/', text, re.S)
        self.tree = None
        self.others = False
        self.cut = None
        self.depth = 320
        self.arguments = []
        self.flags = []
        self.orphans = 0
        self.claim = ''
        if not comment:
            return
        lines = [line[3:] if line.startswith(' * ') else line[2:]
                 for line in comment.group(1).split('\n')]
        self.claim = lines[0]
        mine = '(%s %s)' % (family, optimize)
        section = None
        trees = {}
        for line in lines:
            head = re.match(r'tree(?: (\(.*\)))?:$', line)
            if head:
                section = trees.setdefault(head.group(1) or '', [])
            elif line.startswith('cut: '):
                self.cut = line[5:]
            elif line.startswith('depth: '):
                self.depth = int(line[7:])
            elif line.startswith('orphans: '):
                self.orphans = int(line[9:])
            elif line.startswith('flags: '):
                self.flags = line[7:].split()
            elif line.startswith('arguments: '):
                self.arguments = line[11:].split()
            elif section is not None and line[:1] in ('\t', ' '):
                section.append(line.strip())
            else:
                section = None
        lines = trees.get(mine, trees.get(''))
        if lines is None:
            return
        self.others = '*' in lines
        self.tree = {}
        for line in lines:
            if line != '*':
                path, calls = line.rsplit(' ', 1)
                self.tree[path] = self.tree.get(path, 0) + int(calls)


def check(source, wanted, profile, family, optimize):
    program = compile(source, family, optimize, wanted.flags)
    # Where signals come at any time, more runs see more.
    for _ in range(3 if shimtest.ALL and wanted.cut else 1):
        check_run(program, wanted, profile)


def check_run(program, wanted, profile):
    result = run_both([program] + wanted.arguments, profile,
                      without_counts=wanted.cut or wanted.others)
    tree = tree_of(result.output, wanted.depth)
    about = json_of(result.output)
    got = tree
    if wanted.cut:
        got = {path: n for path, n in got.items()
               if wanted.cut not in path.split(';')}
    if wanted.others:
        got = {path: n for path, n in got.items() if path in wanted.tree}
    expect(got == wanted.tree, 'the tree:\n' + difference(got, wanted.tree))
    if '\ncalls ' in '\n' + result.stdout:
        expect_truth(result, calls_of(about))
    expect(about['lost'] == 0, 'lost: %s' % about['lost_causes'])
    expect(about['orphans'] <= wanted.orphans,
           '%d orphans' % about['orphans'])


def chosen_profiles(number, family, optimize):
    """A check has each program in each build, and each of the four in another profile."""
    # An emulator is too slow to run the others as well.
    profiles = PROFILES + ([] if shimtest.machine else ['trace'])
    build = 2 * (family == 'gcc') + (optimize == '-O2')
    return shimtest.some(profiles, len(profiles), number + build)


def add_tests(family, optimize):
    for number, source in enumerate(sorted(os.listdir(PROGRAMS))):
        if not source.endswith(('.c', '.cc')):
            continue
        wanted = Wanted(source, family, optimize)
        if wanted.tree is None:
            continue
        for profile in chosen_profiles(number, family, optimize):
            name = '%s %s, %s' % (source.split('.')[0], profile, wanted.claim)
            add_test(name, lambda source=source, wanted=wanted,
                     profile=profile: check(source, wanted, profile, family,
                                            optimize))


def main():
    family, optimize = sys.argv[4:6]
    del sys.argv[4:6]
    add_tests(family, optimize)
    shimtest.main()


if __name__ == '__main__':
    main()
