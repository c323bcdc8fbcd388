"""Turns a recording of make_recording into one of traces: the same process with N.trace
and N.functions in place of its trees.  It contains every kind of record."""
import glob
import os
import random
import struct

BLOCK, FIRST, HEADER = 65536, 8192, 4096
BIAS, CLOCK = 0x555555000000, 1000000000000
MASK = 0x7fff


def head(kind, size):
    return kind << 2 | size // 2 << 8


class Writer:
    """Writes the records of one thread; a block begins when the previous one is full."""

    def __init__(self, tid, functions, rng):
        self.tid, self.functions, self.rng = tid, functions, rng
        self.time = CLOCK >> 1
        self.stack, self.track = [], 0
        self.blocks, self.data = [], b''

    def begin(self):
        if self.data:
            self.blocks.append(self.data)
        name = b'thread-%d' % self.tid
        self.data = struct.pack('<QQIIII16s', len(self.blocks) + 1, self.time,
                                self.tid, self.track, 1, 0, name)
        stack = self.stack[-1000:]
        self.data += struct.pack('<HHI', head(9, 0), 4 + 2 * len(stack),
                                 len(stack) < len(self.stack))
        self.data += b''.join(struct.pack('<I', f) for f in stack)

    def put(self, record):
        room = BLOCK - (FIRST if not self.blocks else 0)
        if not self.data or len(self.data) + len(record) > room - 16:
            self.begin()
        self.data += record

    def pass_time(self):
        step = self.rng.choice([3, 50, 400, 3000, 40000])
        self.time += step
        if step > MASK:
            self.put(struct.pack('<Q', head(1, 8) | self.time % 2**48 << 16))

    def enter(self):
        self.pass_time()
        function = self.rng.randrange(1, self.functions)
        if self.rng.random() < 0.02:
            word = head(2, 8) | function << 16 | (self.time & MASK) << 48
            self.put(struct.pack('<Q', word))
        else:
            self.put(struct.pack('<I', 2 | (self.time & MASK) << 2 |
                                 function << 17))
        self.stack.append(function)

    def leave(self):
        self.pass_time()
        if self.rng.random() < 0.05:
            self.put(struct.pack('<H', head(3, 2)))
        self.put(struct.pack('<H', 1 | (self.time & MASK) << 1))
        self.stack.pop()

    def text(self, kind, text):
        text += b'\0' * (len(text) % 2 or 2)
        self.put(struct.pack('<H', head(kind, 2 + len(text))) + text)

    def other(self):
        name = b'\x1b[1mnew\n'
        self.rng.choice([
            lambda: self.text(14, b'a mark; <b>\x1b[1m\n'),
            lambda: self.text(15, b'range'), lambda: self.text(16, b'range'),
            lambda: self.text(12, b'x = 1, "\xff"'),
            lambda: self.text(13, b'-3'),
            lambda: self.put(struct.pack('<HHIdQ', head(17, 24), 0, 0, 1.5,
                                         0x6e)),
            lambda: self.put(struct.pack('<HHI16s', head(7, 24), 0, self.tid,
                                         name)),
            lambda: self.put(struct.pack('<HHI', head(11, 8), 0, 5)),
            lambda: self.put(struct.pack('<H', head(63, 8)) + b'abcdef'),
            lambda: self.put(b'\0' * 6)])()

    def run(self, calls):
        for _ in range(calls):
            if self.rng.random() < 0.03:
                self.other()
            if len(self.stack) < 30 and (not self.stack or
                                         self.rng.random() < 0.52):
                self.enter()
            else:
                self.leave()
        self.blocks.append(self.data)
        return self.blocks


def file_header(kind, number, size, pid=1000):
    chunk = struct.pack('<QQQ', HEADER, size - HEADER, 0)
    text = struct.pack('<8sII16sIIII', b'SHIMFILE', 1, HEADER, kind, pid,
                       number, pid + number, 1) + chunk
    return text.ljust(HEADER, b'\0')


def write_trace(path, number, functions, calls, rng):
    writer = Writer(1000 + number, functions, rng)
    blocks = writer.run(calls)
    info = struct.pack('<IIQQ', BLOCK, 1, 0, len(blocks)).ljust(HEADER, b'\0')
    data = file_header(b'trace', number, BLOCK) + info
    for i, block in enumerate(blocks):
        data += block.ljust(BLOCK - (0 if i else FIRST), b'\0')
    with open(path, 'wb') as file:
        file.write(data)


def make(recording, calls=20000, threads=2, seed=1):
    rng = random.Random(seed)
    words = [0] + [BIAS + 0x1000 + 16 * i for i in range(60)]
    for process in glob.glob(os.path.join(recording, '*.0')):
        for tree in glob.glob(os.path.join(process, '*.calltree')):
            os.remove(tree)
        size = HEADER + 8 * 512
        with open(os.path.join(process, '9.functions'), 'wb') as file:
            file.write((file_header(b'functions', 9, size) +
                        struct.pack('<%dQ' % len(words), *words))
                       .ljust(size, b'\0'))
        for number in range(threads):
            write_trace(os.path.join(process, '%d.trace' % number), number,
                        len(words), calls, rng)
