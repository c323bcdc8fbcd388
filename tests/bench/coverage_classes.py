"""Explains why shim and gcc --coverage disagree on whether a line was reached.

A third tool decides: callgrind counts each instruction that the same program executes,
and readelf gives the line of each.  So it is known for every trap whether the program
reached its address; the remaining differences come from gcc's code for the line, with
counters and without.
"""
import bisect
import collections
import os
import re
import subprocess

# With optimization, the code of a line is moved to that of other lines, shared with
# them, or removed.  Classes of lines that only shim reports as reached:
GCC_MISSES = "reached: gcc's own count at -O0 says so, too"
SHARED_PLACE = 'it begins where only an instruction of another line is'
MIXED = 'its instructions are in one block with those of a line that was reached'
MERGED = 'its instructions are reached from a line that was, in a block of their own'
# ... and classes of lines that only gcc reports as reached:
GCC_INVENTS = "not reached: gcc's own count at -O0 says so, too"
NO_STATEMENT = 'it is in the code that was executed, but begins elsewhere'
NO_CODE = 'it has no instruction, and begins where the program did not come'
OTHER_PATH = 'it has instructions, none of which was executed'
# Errors of shim, and unexplained differences.
DEFECT = 'not what the program did'
UNEXPLAINED = 'unexplained'
CLASSES = [GCC_MISSES, GCC_INVENTS, SHARED_PLACE, MIXED, MERGED, NO_STATEMENT,
           NO_CODE, OTHER_PATH, DEFECT, UNEXPLAINED]


def lines_of(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode().splitlines()


class Code:
    """A program: its instructions by line, and whether each was executed."""

    def __init__(self, binary, arguments, work):
        self.read_instructions(binary)
        self.read_rows(binary)
        self.executed = executed(binary, arguments, work)

    def read_instructions(self, binary):
        self.at, self.leaders, self.ends, self.jumps = [], set(), set(), {}
        self.functions, self.indirect, self.final = [], [], set()
        after_jump = begins = True
        for text in lines_of(['objdump', '-d', '--no-show-raw-insn', binary]):
            found = re.match(r' *([0-9a-f]+):\t(?:bnd |notrack )*(\S+) *(\S*)',
                             text)
            if not found:
                begins = begins or text.endswith('>:')
                continue
            address = int(found.group(1), 16)
            if begins:
                self.functions.append(address)
            after_jump, begins = after_jump or begins, False
            self.at.append(address)
            if after_jump:
                self.leaders.add(address)
            after_jump = found.group(2)[0] == 'j' or found.group(2) == 'ret'
            if after_jump:
                self.ends.add(address)
            if found.group(2) in ('jmp', 'ret'):
                self.final.add(address)
            if after_jump and re.fullmatch('[0-9a-f]+', found.group(3)):
                target = int(found.group(3), 16)
                self.leaders.add(target)
                self.jumps.setdefault(target, []).append(address)
            elif found.group(3)[:1] == '*':
                self.indirect.append(address)

    def read_rows(self, binary):
        """The instructions and data by address; the last row has the instructions."""
        rows = []
        for text in lines_of(['readelf', '-W', '--debug-dump=decodedline',
                              binary]):
            found = re.match(r'(\S+) +(\d+|-) +(0x[0-9a-f]+|0)\b(.*)', text)
            if found:
                rows.append((os.path.basename(found.group(1)), found.group(2),
                             int(found.group(3), 16), found.group(4)))
        self.statements = collections.defaultdict(set)
        self.ranges = collections.defaultdict(list)
        self.owners = {}
        for row, after in zip(rows, rows[1:] + [(None, '-', 0, '')]):
            name, number, address, more = row
            if number == '-' or 'END' in more:
                continue
            line = name, int(number)
            if re.search(r'\bx\b', more):
                self.statements[line].add(address)
            if after[2] > address:
                self.ranges[line].append((address, after[2]))
                for instruction in self.between(address, after[2]):
                    self.owners[instruction] = line

    def between(self, low, high):
        return self.at[bisect.bisect_left(self.at, low):
                       bisect.bisect_left(self.at, high)]

    def instructions(self, line):
        return [address for low, high in self.ranges[line]
                for address in self.between(low, high)]

    def block(self, address):
        """The executed instructions around this one, from begin to end of its block."""
        first = last = bisect.bisect_left(self.at, address)
        while self.at[first] not in self.leaders and \
                self.at[first - 1] in self.executed:
            first -= 1
        while last + 1 < len(self.at) and self.at[last] not in self.ends and \
                self.at[last + 1] not in self.leaders:
            last += 1
        return self.at[first:last + 1]

    def before(self, block):
        """The predecessors: executed instructions that jump to the block or fall
        through; otherwise an indirect jump of the function."""
        i = bisect.bisect_right(self.functions, block[0])
        low, high = ([0] + self.functions + [1 << 64])[i:i + 2]
        found = [address for address in self.jumps.get(block[0], []) +
                 self.at[max(bisect.bisect_left(self.at, block[0]) - 1, 0):][:1]
                 if address in self.executed and
                 (address >= low and address not in self.final or
                  address in self.jumps.get(block[0], []))]
        if found or low == block[0]:
            return found
        return [address for address in self.indirect
                if low <= address < high and address in self.executed]


def executed(binary, arguments, work):
    out = os.path.join(work, 'callgrind.out')
    subprocess.run(['valgrind', '--tool=callgrind', '--dump-instr=yes',
                    '--compress-pos=no', '--compress-strings=no',
                    '--callgrind-out-file=' + out, binary, *arguments],
                   check=True, cwd=work, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found, is_it = set(), False
    with open(out) as file:
        for text in file:
            if text.startswith('ob='):
                is_it = text.rstrip('\n') == 'ob=' + os.path.realpath(binary)
            elif is_it and text.startswith('0x'):
                found.add(int(text.split(' ', 1)[0], 16))
    return found


def wrong_places(code, reached):
    """The offsets whose trap, {offset: whether it was hit}, disagrees with the
    execution."""
    return [offset for offset, is_reached in reached.items()
            if is_reached != (offset in code.executed)]


def leads_from(code, address, ran):
    """Whether the block is reached from the code of an executed line, through lines
    that were not executed only.  A block counts for each line that has instructions in
    it."""
    waiting, seen = [code.block(address)], set()
    while waiting:
        block = waiting.pop()
        if block[0] in seen:
            continue
        seen.add(block[0])
        if any(ran(code.owners.get(one)) for one in block):
            return True
        waiting += map(code.block, code.before(block))
    return False


def why_only_ours(code, line, ran):
    own = [a for a in code.instructions(line) if a in code.executed]
    places = own or code.statements[line] & code.executed
    if not all(leads_from(code, address, ran) for address in places):
        return UNEXPLAINED
    if not own:
        return SHARED_PLACE
    if all(any(ran(code.owners.get(one)) for one in code.block(address))
           for address in own):
        return MIXED
    return MERGED


def why_only_gccs(code, line):
    own = code.instructions(line)
    if any(address in code.executed for address in own):
        return NO_STATEMENT
    return OTHER_PATH if own else NO_CODE


def classify(code, ours, theirs, unoptimized):
    """{class: lines}, for lines on which both tools disagree.  @unoptimized: gcc's
    counts at -O0."""
    found = collections.defaultdict(list)
    reached = {(os.path.basename(path), number)
               for (path, number), is_reached in theirs.items() if is_reached}
    for key in sorted(set(ours) & set(theirs)):
        line = os.path.basename(key[0]), key[1]
        if ours[key] != bool(code.statements[line] & code.executed):
            found[DEFECT].append(line)
        elif ours[key] == theirs[key]:
            continue
        elif unoptimized.get(key, theirs[key]) == ours[key]:
            found[GCC_MISSES if ours[key] else GCC_INVENTS].append(line)
        elif ours[key]:
            found[why_only_ours(code, line, reached.__contains__)].append(line)
        else:
            found[why_only_gccs(code, line)].append(line)
    return found


def only_one_knows(code, ours, theirs):
    """The number of lines that only one tool knows, and how many of gcc's are
    statements in the line table."""
    missing = [(os.path.basename(path), number)
               for path, number in set(theirs) - set(ours)]
    return (len(set(ours) - set(theirs)), len(missing),
            [line for line in missing if code.statements[line]])
