#!/usr/bin/env python3
"""calls.py LIBSHIM SHIM-REPORT FIXTURES FAMILY OPTIMIZE [TEST...]

How calls end: for one compiler, the events of every program in tests/programs whose
opening comment lists them.  In that comment:

    stream:                 E entered, L left, T tail-called TARGET, X unwound
    stream (clang -O2):     replaces it for that compiler (the comment says why)
    only: clang             the other compiler cannot compile it
    flags: F G              for the compiler

The output and status of the program must be what they are without us.
"""
import os
import re
import sys

import shimtest
from shimtest import PROGRAMS, add_test, compile, expect
from stream import stream_of


class Wanted:
    def __init__(self, source, family, optimize):
        text = open(os.path.join(PROGRAMS, source)).read()
        comment = re.match(r'/\*\n(.*?)\n \*/', text, re.S)
        self.flags, self.lines, self.claim = [], None, ''
        if not comment:
            return
        lines = [line[3:] if line.startswith(' * ') else line[2:]
                 for line in comment.group(1).split('\n')]
        self.claim = lines[0]
        streams, section = {}, None
        for line in lines:
            head = re.match(r'stream(?: (\(.*\)))?:$', line)
            if head:
                section = streams.setdefault(head.group(1) or '', [])
            elif line.startswith('only: ') and line[6:] != family:
                return
            elif line.startswith('flags: '):
                self.flags = line[7:].split()
            elif section is not None and line[:1] == '\t':
                section.append(line.strip())
            else:
                section = None
        self.lines = streams.get('(%s %s)' % (family, optimize),
                                 streams.get('(%s)' % family,
                                             streams.get('')))


def difference(got, wanted):
    at = 0
    while at < min(len(got), len(wanted)) and got[at] == wanted[at]:
        at += 1
    return 'line %d; got:\n%s\nwanted:\n%s' % (
        at + 1, '\n'.join(got[max(0, at - 3):at + 12]),
        '\n'.join(wanted[max(0, at - 3):at + 12]))


def check(source, wanted, family, optimize):
    program = compile(source, family, optimize, wanted.flags)
    got = stream_of([program], 'ELTX').lines()
    expect(got == wanted.lines, difference(got, wanted.lines))


def main():
    family, optimize = sys.argv[4:6]
    del sys.argv[4:6]
    for source in sorted(os.listdir(PROGRAMS)):
        if not source.endswith(('.c', '.cc')):
            continue
        wanted = Wanted(source, family, optimize)
        if wanted.lines is None:
            continue
        add_test('%s, %s' % (source.split('.')[0], wanted.claim),
                 lambda source=source, wanted=wanted: check(
                     source, wanted, family, optimize))
    shimtest.main()


if __name__ == '__main__':
    main()
