"""Runs programs with tests/modules/stream.c beside shim, and reads the module's file:
one Event each, in the order of the process."""
import collections
import functools
import os
import struct
import subprocess

import shimtest
from shimtest import Failed, expect_equal, linker_name, new_directory

SOURCE = os.path.join(os.path.dirname(shimtest.PROGRAMS), 'modules', 'stream.c')
INCLUDE = os.path.join(os.path.dirname(os.path.dirname(shimtest.PROGRAMS)),
                       'include')
HEADER = struct.Struct('=QQ128Qq')
RECORD = struct.Struct('=IIIiQQ96s')

Event = collections.namedtuple('Event', 'kind pid tid depth a b text')


class Stream:
    def __init__(self, path, program):
        with open(path, 'rb') as file:
            data = file.read(HEADER.size)
            fields = HEADER.unpack(data)
            self.base, self.count = fields[0], fields[1]
            self.counts = {chr(i): n for i, n in enumerate(fields[2:130]) if n}
            self.depth_max = fields[130]
            # The file has holes; only its beginning was written.
            size = os.fstat(file.fileno()).st_size - HEADER.size
            data = file.read(min(size, self.count * RECORD.size))
        self.events = [Event(chr(r[0]), r[1], r[2], r[3], r[4], r[5],
                             r[6].split(b'\0')[0].decode(errors='replace'))
                       for r in RECORD.iter_unpack(data) if r[0]]
        self.names = names_of(program)

    def name(self, address):
        return self.names.get(address - self.base, hex(address))

    def lines(self, kinds=None):
        """The events as text: `E main`, `T a b`, `X f`, `! type`; without addresses."""
        lines = []
        for event in self.events:
            if kinds and event.kind not in kinds:
                continue
            line = event.kind
            if event.kind in 'ELTX?':
                line += ' ' + self.name(event.a)
            if event.kind == 'T':
                line += ' ' + (self.name(event.b) if event.b else '0')
            if event.kind == '?':
                line += ' %d %d' % (event.b & 0xffffffff, event.b >> 32)
            if event.text:
                line += ' ' + event.text
            lines.append(line)
        return lines


@functools.lru_cache(maxsize=None)
def names_of(program):
    done = subprocess.run(['nm', program], stdout=subprocess.PIPE, check=True)
    names = {}
    for line in done.stdout.decode().splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in 'tTwW':
            names[int(fields[0], 16)] = linker_name(fields[2])
    return names


@functools.lru_cache(maxsize=None)
def module():
    return shimtest.compile(SOURCE, 'gcc', '-O2', name='stream.so',
                            instrument=False,
                            flags=('-shared', '-fPIC', '-I', INCLUDE))


def stream_of(command, events, same=True, status=None, **more):
    """Runs @command with and without shim, compares the runs (unless not @same), and
    returns the Stream."""
    alone = shimtest.run(command) if same else None
    file = os.path.join(new_directory('stream'), 'events')
    ours = shimtest.run(command, new_directory('recording'),
                        LD_PRELOAD=shimtest.library + ':' + module(),
                        STREAM=file, STREAM_EVENTS=events, **more)
    if same:
        expect_equal(ours.status, alone.status, 'exit status')
        expect_equal(ours.stdout, alone.stdout, 'stdout')
        expect_equal(ours.stderr, alone.stderr, 'stderr')
    if status is not None:
        expect_equal(ours.status, status, 'exit status')
    if not os.path.exists(file):
        raise Failed('no events at all')
    stream = Stream(file, command[0])
    stream.result = ours
    return stream
