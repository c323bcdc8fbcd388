#!/usr/bin/env python3
"""flips.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Recordings of all kinds with one wrong bit: see tests/fuzz/flips.c, whose program is
FLIPS_PROGRAM.  One bit for each kind of file; FLIPS=1000 tests a thousand in each
recording, SEED chooses others, KIND=trace tests one kind.
"""
import glob
import os
import re
import struct
import time

import shimtest
from inlined import Program, with_estimates
from shimtest import (compile, expect, expect_equal, new_directory,
                      record, run, test)

EVERYTHING = ('calltree:exact;trace:args=all,results=all;memory:snapshots=1;'
              'locks;exceptions;sampling:hz=2000;coverage')
SWITCH = struct.Struct('<QIIII')
KINDS = {'gaps', 'counters', 'meta', 'images', 'calltree', 'sampling', 'trace', 'functions', 'values',
         'coverage', 'pchist', 'arcs', 'end'}


def add_gaps(recording, begin_ns):
    """Adds the files that profrun --gaps and --counters write, whether or not the
    kernel allows to record them."""
    process, = glob.glob(recording + '/*.0')
    pid = int(os.path.basename(process).split('.')[0])
    with open(recording + '/counters', 'w') as file:
        for i in range(200):
            file.write('%d %d %d.5 resident bytes\n' %
                       (begin_ns + i * 500000, pid, i))
    with open(recording + '/gaps', 'wb') as file:
        file.write(struct.pack('<8sIIQ', b'SHIMGAPS', 1, 24, 0))
        for i in range(1000):
            file.write(SWITCH.pack(begin_ns + i * 100000, pid, pid + i % 3, 0,
                                   i // 3 % 2 * (1 + i % 2) + 1))


def add_made_code(top):
    """Samples of code that a program made, with its map and its dump."""
    at = new_directory('made')
    done = record([compile('made.c', 'gcc', '-O1', instrument=False), 'dump',
                   '/a.js'], 'sampling', directory=at)
    process, = glob.glob(done.output + '/*.*')
    pid = os.path.basename(process).split('.')[0]
    os.rename(os.path.join(at, 'jit-%s.dump' % pid), process + '/jit-dump')
    with open(process + '/jit-map', 'w') as file:
        file.write('1000 1000 a\n1800 10 b\n')
    os.rename(done.output, os.path.join(top, 'made'))


def recordings():
    top = new_directory('recordings')

    def add(name, command, profile, **more):
        begin_ns = time.monotonic_ns()
        done = record(command, profile, **more)
        if 'trace' in profile:
            add_gaps(done.output, begin_ns)
        os.rename(done.output, os.path.join(top, name))
    add('everything', [compile('flips.cc', 'gcc', '-O1')], EVERYTHING)
    add('groups', [compile('flips.cc', 'gcc', '-O1')], 'calltree:by=step/n')
    with open(os.path.join(top, 'groups', 'end'), 'w') as file:
        file.write('status 0 mono-ns %d\n' % time.monotonic_ns())
    # A stub satisfies the linker: the sanitizer need not be installed.
    stub = compile('counted_stub.c', 'clang', flags=['-shared', '-fPIC'],
                   name='libcounted.so', instrument=False)
    add('counted', [compile('flips.cc', 'clang', '-O1', name='flips-counted',
                            flags=['-fsanitize-coverage=trace-pc-guard,pc-table',
                                   '-fno-sanitize-link-runtime'],
                            libraries=[stub])], 'coverage')
    add('gprof', [compile('flips.cc', 'gcc', '-O1', ['-pg'], name='flips-pg',
                          instrument=False)], 'pchist:hz=1000',
        directory=new_directory('gmon'))
    add_made_code(top)
    os.rename(with_estimates(Program()), os.path.join(top, 'budget'))
    for name, profile in ('cpu', 'calltree:clock=cpu'), ('calibrate', 'calltree:calibrate'):
        add(name, [compile('flips.cc', 'gcc', '-O1')], profile)
    return top


@test
def a_bit_that_is_wrong_crashes_no_reader():
    top = recordings()
    kinds = {re.sub(r'^[\d.]+', '', os.path.basename(path))
             for path in glob.glob(top + '/*/*/*') + glob.glob(top + '/*/[ceg]*')}
    expect(KINDS <= kinds, 'no file of %s' % (KINDS - kinds))
    flips = os.environ.get('FLIPS', '1')
    done = run([os.environ['FLIPS_PROGRAM'], top, flips,
                os.environ.get('SEED', '1'),
                *os.environ.get('KIND', '').split()], timeout=36000)
    print(re.sub('^', '# ', done.stdout.strip(), flags=re.M))
    expect_equal((done.status, done.stderr), (0, ''), 'flips')


if __name__ == '__main__':
    shimtest.main()
