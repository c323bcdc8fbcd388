"""Recordings made byte by byte as <shim/format.h> describes, of any size and shape, to
test readers."""
import os
import struct

CLOCK = 1000000000000           # first clock value
SECOND = 1000000000             # a clock unit is 1 ns
HEADER = 4096
CHUNKS = 40
MEMORY = 0x7f0000000000         # address of the first chunk in the program
BASE = 0x555555000000           # load address of the program's code

THREAD, EXTRA, GROUP, MEMORY_NODE, HEAP, LIVES, ALIVE, SNAPSHOT, LOCK, TYPE, THROW, SAMPLED, THROTTLED, COUNTERS = (
    word << 48 for word in (0xffff, 0xfffe, 0xfffd, 0xfffc, 0xfffb, 0xfffa,
                            0xfff4, 0xfff5, 0xfff9, 0xfff8, 0xfff7,
                            0xfff3, 0xfff2, 0xfff1))


def file_header(kind, chunks, pid=1000, number=0):
    """@chunks: offset, size, address of each."""
    data = struct.pack('<8sII16sIIII', b'SHIMFILE', 1, HEADER, kind.encode(),
                       pid, number, pid, len(chunks))
    data += b''.join(struct.pack('<3Q', *chunk) for chunk in chunks)
    return data.ljust(HEADER, b'\0')


def chunked(kind, body, pid=1000):
    """A file with one chunk."""
    body += b'\0' * (-len(body) % 64)
    return file_header(kind, [(HEADER, len(body), MEMORY)], pid) + body


BUDGET = 18848                  # offset in struct shim_meta


def meta(pid=1000, profile='calltree', budget=None, cost=1000, ended=True, **strings):
    """The meta file of a process that ran for a second.  @budget: words of struct
    shim_meta, see budget().  @cost: in 1/1000 ns, of a call inside of it and outside.
    @ended: whether its end is known."""
    strings = {'program': '/bin/nothing', 'command': 'nothing',
               'profile': profile, **strings}
    text = b''.join(b'%s=%s\0' % (name.encode(), value.encode())
                    for name, value in strings.items())
    data = struct.pack('<8sIIIIIIII', b'SHIMMETA', 1, 18840, pid, 1, 2, ended, 0, 0)
    data += struct.pack('<8Q', CLOCK, CLOCK, CLOCK + SECOND, CLOCK + SECOND,
                        0, 1700000000 * SECOND, (CLOCK + SECOND) * ended, 1000000)
    data += struct.pack('<4I', cost, cost, cost, cost)
    data += struct.pack('<QQII', 0, 0, len(text), 0)
    data = (data + text).ljust(20480, b'\0')
    return data[:BUDGET] + budget + data[BUDGET + len(budget):] if budget else data


def budget(percent=10, throttled=0, failed=0, period_ns=1000000, weight=1000,
           own_ns=0, bursts=0):
    """A process that ran with a budget and has @weight samples."""
    return struct.pack('<4I4Q', int(percent * 100), throttled, failed, 0,
                       period_ns, weight, own_ns, bursts)


def sampled(parent, address, samples=0, own=0):
    return struct.pack('<8Q', SAMPLED, parent, address, samples,
                       (samples + own) % 2**64, own, 0, 0)


def counters(**calls):
    """The counters of a file: _1=5 is counter 1 with 5 calls."""
    values = [0] * 2040
    for name, number in calls.items():
        values[int(name[1:])] = number
    return struct.pack('<8Q2040Q', COUNTERS, *[0] * 7, *values)


def throttled(function, rates=(), weight=0, state=1, cost=0, ns=1000000, counter=0):
    """A function that was switched off after @weight samples.  @rates: calls in bursts
    of @ns each."""
    r = [n * 15625000 // ns for n in rates]
    squares = sum(x * x for x in r)
    slopes = sum(x * n * cost // ns for x, n in zip(r, rates))
    return struct.pack('<16Q', THROTTLED, function, weight, state, len(r),
                       sum(rates), ns * len(r), sum(r), squares % 2**64,
                       squares >> 64, slopes, 1, counter, 0, 0, 0)


def image(start, end, path, build_id=b'\x01' * 20, generation=0, bias=None):
    path = path if isinstance(path, bytes) else path.encode()
    text = build_id + path + b'\0'
    size = (72 + len(text) + 7) & ~7
    data = struct.pack('<IIQQQQQQQII', size, generation, start, end,
                       start if bias is None else bias, CLOCK, 0, 0, 0,
                       len(build_id), len(path) + 1) + text
    return data.ljust(size, b'\0')


def images(*records):
    return (struct.pack('<8sIIQ', b'SHIMIMGS', 1, 24, 0) + b''.join(records) +
            b'\0' * 8)


def node(function, parent, calls=1, time=0, start=0, frame=0, hits=0, coarse=2,
         group=0, extra=0):
    return struct.pack('<6QIBBHQ', function, parent, calls, time, start, frame,
                       hits, coarse, 0, group, extra)


def thread(tid=1000, name=b'main', coroutine=0, lost=()):
    return struct.pack('<6Q16s8Q', THREAD | tid, 0, coroutine, 0, CLOCK, 0,
                       name, *lost, *[0] * (8 - len(lost)))


def sample_root(tid=1000, period_ns=1000000):
    return struct.pack('<6Q16s8Q', THREAD | tid, 0, 0, 0, period_ns, 1, b'main',
                       *[0] * 8)


def lock(path, address, holder=0, kind=0, waits=1, time=5, longest=5):
    return struct.pack('<16Q', LOCK, path, address, holder, kind, waits, time,
                       longest, 0, 0, 0, *[0] * 5)


def throw(path, type, catcher=0, count=1):
    return struct.pack('<8Q', THROW, path, type, catcher, 0, count, 0, 0)


def tree(*nodes, kind='calltree'):
    """A file of nodes; the first node, a root, is at MEMORY."""
    return chunked(kind, b''.join(nodes))


def write(directory, files, process='1000.0'):
    """Writes a recording of one process with @files; returns its path."""
    top = os.path.join(directory, process)
    os.makedirs(top)
    for name, data in files.items():
        with open(os.path.join(top, name), 'wb') as file:
            file.write(data)
    return directory


# --- traces ---

BLOCK, FIRST = 65536, 8192


def head(kind, size):
    return kind << 2 | size // 2 << 8


def functions(words):
    return chunked('functions', struct.pack('<%dQ' % len(words), *words))


def trace(records, tid=1000, **info):
    """A file of one thread.  @records: byte strings."""
    blocks, data, room = [], b'', BLOCK - FIRST
    for record in records:
        if not data or len(data) + len(record) > room:
            if data:
                blocks.append(data.ljust(room, b'\0'))
                room = BLOCK
            data = struct.pack('<QQIIII16s', len(blocks) + 1, CLOCK, tid, 0, 1,
                               0, b'main')
        data += record
    blocks.append(data.ljust(room, b'\0'))
    about = struct.pack('<IIQQQQQ7QQ', BLOCK, 0, 0, len(blocks), 0,
                        info.get('too_short', 0), info.get('filtered', 0),
                        *[0] * 7, 0)
    return (file_header('trace', [(HEADER, 0, 0)]) +
            about.ljust(FIRST - HEADER, b'\0') + b''.join(blocks))


def enter(function):
    return struct.pack('<I', 2 | function << 17)


def leave():
    return struct.pack('<H', 1)


def track(number):
    return struct.pack('<Q', head(4, 8) | number << 16)
