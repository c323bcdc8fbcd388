#!/usr/bin/env python3
"""mutations.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Recordings of all kinds, changed in ways that keep their structure: see
tests/fuzz/mutations.c, whose program is MUTATIONS_PROGRAM.  This test runs a few
hundred cases; tests/fuzz/mutate runs any number.
"""
import glob
import os
import shutil
import struct
import subprocess
import time

import flips
import shimtest
from shimtest import Skipped, expect, expect_equal, shim_report, test

shimtest.tests.clear()          # flips.py's

# Of a check; scripts/check --nightly has more.
SECONDS = float(os.environ.get('MUTATION_SECONDS', '4'))


def forget_names(recording):
    """Removes the objects: they take most of the time and are not mutated."""
    for path in glob.glob(recording + '/**/images', recursive=True):
        data, at = bytearray(open(path, 'rb').read()), 24
        while size := struct.unpack_from('<I', data, at)[0]:
            id_size, = struct.unpack_from('<I', data, at + 64)
            data[at + 72:at + 72 + id_size + 2] = b'?' * id_size + b'/?'
            at += size
        open(path, 'wb').write(data)


def recordings():
    """The recordings of flips.py, a merge of two of them, and all of them again without
    names."""
    top = flips.recordings()
    shim_report('merge', '-o', os.path.join(top, 'ranks'),
                os.path.join(top, 'everything'), os.path.join(top, 'groups'))
    for name in os.listdir(top):
        shutil.copytree(os.path.join(top, name),
                        os.path.join(top, 'unnamed.' + name))
        forget_names(os.path.join(top, 'unnamed.' + name))
    return top


def run(top, count, seed, first):
    """Prints the program's output as it comes; returns the number of cases."""
    child = subprocess.Popen(
        [os.environ['MUTATIONS_PROGRAM'], top, str(count), seed, str(first)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors='replace')
    for line in child.stdout:
        print('#', line.rstrip(), flush=True)
    expect_equal(child.wait(), 0, 'status')


@test
def mutated_recordings_crash_no_reader():
    if not os.path.exists(os.environ.get('MUTATIONS_PROGRAM', '')):
        raise Skipped('no program with sanitizers')
    top, seed = recordings(), os.environ.get('SEED', '1')
    if 'MUTATIONS' in os.environ:
        run(top, int(os.environ['MUTATIONS']), seed,
            int(os.environ.get('FIRST', '0')))
        return
    end, first, step = time.monotonic() + SECONDS, 0, 50
    while time.monotonic() < end:
        run(top, step, seed, first)
        first += step
    expect(first, 'no time for one')


if __name__ == '__main__':
    shimtest.main()
