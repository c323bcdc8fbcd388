#!/usr/bin/env python3
"""mutations.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Recordings of everything there is, changed in ways that keep their structure: see
tests/fuzz/mutations.c, which MUTATIONS_PROGRAM is.  A few hundred; as many as one likes
by tests/fuzz/mutate.
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

SECONDS = 25                    # of a check


def forget_names(recording):
    """Its objects are nowhere: what takes most of the time is not what is changed."""
    for path in glob.glob(recording + '/**/images', recursive=True):
        data, at = bytearray(open(path, 'rb').read()), 24
        while size := struct.unpack_from('<I', data, at)[0]:
            id_size, = struct.unpack_from('<I', data, at + 64)
            data[at + 72:at + 72 + id_size + 2] = b'?' * id_size + b'/?'
            at += size
        open(path, 'wb').write(data)


def recordings():
    """Those of flips.py, a recording of two of them, and all again without names."""
    top = flips.recordings()
    shim_report('merge', '-o', os.path.join(top, 'ranks'),
                os.path.join(top, 'everything'), os.path.join(top, 'groups'))
    for name in os.listdir(top):
        shutil.copytree(os.path.join(top, name),
                        os.path.join(top, 'unnamed.' + name))
        forget_names(os.path.join(top, 'unnamed.' + name))
    return top


def run(top, count, seed, first):
    """Prints what it says as it comes; how many cases there were."""
    child = subprocess.Popen(
        [os.environ['MUTATIONS_PROGRAM'], top, str(count), seed, str(first)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors='replace')
    for line in child.stdout:
        print('#', line.rstrip(), flush=True)
    expect_equal(child.wait(), 0, 'status')


@test
def a_recording_that_nobody_would_write_crashes_no_reader():
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
