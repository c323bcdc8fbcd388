"""Recordings with a budget, of a program with inlined functions
(tests/programs/inlined.c).  They are made byte by byte (craft.py), so that the test can
place samples anywhere."""
import re
import subprocess

import craft
from craft import BASE, MEMORY, node, sampled, thread, throttled
from shimtest import compile, new_directory


def at(number):
    """The program's address of the @number-th 64 bytes after the root."""
    return MEMORY + 128 + 64 * number


class Program:
    """tests/programs/inlined.c, and the addresses of its marks and functions."""

    def __init__(self, family='gcc', flags=(), optimize='-O2', instrument=False):
        self.path = compile('inlined.c', family, optimize,
                            [*flags, *['-DWITHOUT_MARKS'] * instrument],
                            name='inlined' + '-hooks' * instrument + ''.join(flags),
                            instrument=instrument)
        self.symbols = {}
        for line in subprocess.run(['nm', self.path], check=True, text=True,
                                   capture_output=True).stdout.splitlines():
            word = line.split()
            if len(word) == 3:
                self.symbols[word[2]] = BASE + int(word[0], 16)

    def image(self):
        notes = subprocess.run(['readelf', '-n', self.path], text=True,
                               capture_output=True).stdout
        found = re.search(r'Build ID: ([0-9a-f]+)', notes)
        return craft.image(BASE, BASE + (1 << 20), self.path,
                           bytes.fromhex(found.group(1)) if found else b'')

    def __getitem__(self, name):
        return self.symbols[name]

    def record(self, *nodes, budget=None, **about):
        return self.record_timed(*nodes, budget=budget or craft.budget(), **about)

    def record_timed(self, *nodes, **about):
        """@nodes have times, and may have samples beside them."""
        return craft.write(new_directory('recording'), {
            'meta': craft.meta(**about), 'images': craft.images(self.image()),
            '0.calltree': craft.tree(thread(), *nodes)})


# 1,000 bursts of 1 ms with 950 to 1,049 calls: 1,000 a millisecond, in 900 ms.
RATES = [950 + i % 100 for i in range(1000)]


def with_estimates(program, rates=RATES, weight=100, state=1):
    """main has called outer() and off(); off() was switched off."""
    return program.record(
        node(program['main'], MEMORY, frame=1),
        node(program['outer'], at(0), calls=1234),
        # 5,000 before, and 3,000 of 4,000 since.
        node(program['off'], at(0), calls=8000, time=5000),
        node(program['off'], at(1), calls=1500, time=500),
        sampled(at(0), program['mark_main'], 900),
        # (Two places.)
        throttled(program['off'], rates, weight, state),
        budget=craft.budget(throttled=1, failed=int(state == 2)))
