"""Why we say of a line that it was reached and gcc --coverage does not, or the other
way round.

Which of the two is right is found out by a third: callgrind counts each instruction
that the same program executes, readelf says which line each belongs to.  So it is
known of every place where a trap was whether the program came there; what is left is
what gcc made of the line, with counters and without.
"""
import bisect
import collections
import os
import re
import subprocess

# With optimization the code of a line is moved to where others are, shared with them,
# or not there at all.  Of those that we alone say are reached:
GCC_MISSES = "reached: gcc's own count at -O0 says so, too"
SHARED_PLACE = 'it begins where only an instruction of another line is'
MIXED = 'its instructions are in one block with those of a line that was reached'
MERGED = 'its instructions are reached from a line that was, in a block of their own'
# ... and of those that gcc alone says are:
GCC_INVENTS = "not reached: gcc's own count at -O0 says so, too"
NO_STATEMENT = 'it is in the code that was executed, but begins elsewhere'
NO_CODE = 'it has no instruction, and begins where the program did not come'
OTHER_PATH = 'it has instructions, none of which was executed'
# Ours to mend, and whatever else there is.
DEFECT = 'not what the program did'
UNEXPLAINED = 'unexplained'
CLASSES = [GCC_MISSES, GCC_INVENTS, SHARED_PLACE, MIXED, MERGED, NO_STATEMENT,
           NO_CODE, OTHER_PATH, DEFECT, UNEXPLAINED]


def lines_of(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode().splitlines()


class Code:
    """A program: its instructions, by line, and which of them are executed."""

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
        """By address what begins there; the last row has the instructions."""
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
        """What was executed with this one, up to where that begins and ends."""
        first = last = bisect.bisect_left(self.at, address)
        while self.at[first] not in self.leaders and \
                self.at[first - 1] in self.executed:
            first -= 1
        while last + 1 < len(self.at) and self.at[last] not in self.ends and \
                self.at[last + 1] not in self.leaders:
            last += 1
        return self.at[first:last + 1]

    def before(self, block):
        """From where it was come to: what was executed and jumps there, or goes
        on there; else a jump of the function that says where only when it runs."""
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
    """Where a trap was, {offset: whether it was run into}, and the program did
    otherwise."""
    return [offset for offset, is_reached in reached.items()
            if is_reached != (offset in code.executed)]


def leads_from(code, address, ran):
    """Whether this was come to from the code of a line that ran, by way of none
    but lines that did not: a block is one of several lines when one of them has
    instructions in it."""
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
    """{class: lines}, of those of which both know and say different things.
    @unoptimized: what gcc counts at -O0."""
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
    """Of lines that one of the two does not know at all: how many there are, and
    how many of gcc's there is a statement of in the line table."""
    missing = [(os.path.basename(path), number)
               for path, number in set(theirs) - set(ours)]
    return (len(set(ours) - set(theirs)), len(missing),
            [line for line in missing if code.statements[line]])
