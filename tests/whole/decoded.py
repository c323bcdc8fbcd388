#!/usr/bin/env python3
"""decoded.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Programs of a run under --patch share what the decoder has found in their code.
"""
import os
import re
import struct
import subprocess

import shimtest
from shimtest import Skipped, compile, expect, expect_equal, run, test

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
HEAD = struct.Struct('<QQ')     # the key, the sum
MASK = (1 << 64) - 1
ANSWERS = HEAD.size
FIXED = 9                       # DECODE_ENTRY_FIXED


def add(lane, word):
    lane = (lane ^ word) * 0x9e3779b97f4a7c15 & MASK
    return lane ^ lane >> 32


def sum_of(answers):
    lanes = [0] * 4
    whole = len(answers) // 32 * 32
    for i in range(0, whole, 8):
        lanes[i // 8 % 4] = add(lanes[i // 8 % 4],
                                int.from_bytes(answers[i:i + 8], 'little'))
    for i in range(whole, len(answers)):
        lanes[i % 4] = add(lanes[i % 4], answers[i])
    lanes[0] = add(lanes[0], len(answers))
    sum = 0
    for lane in lanes:
        sum = add(sum, lane)
    return sum


class Shared:
    """A recording of several processes that share answers."""

    def __init__(self, program=None):
        self.recording = shimtest.new_directory('recording')
        self.directory = os.path.join(self.recording, 'decoded')
        os.mkdir(self.directory, 0o700)
        self.program = program or compile('unmovable.c', 'gcc', '-O2',
                                          ['-w', '-ldl'], 'shared',
                                          instrument=False)

    def run(self, **more):
        """The log's 'N of M' functions that were patched."""
        result = run([self.program], self.recording, SHIM_PATCH='*',
                     SHIM_VERBOSE='1', **more)
        expect_equal((result.status, result.stdout), (0, self.alone()), 'it')
        found = re.findall(r'--patch: (\d+ of \d+) functions of ' +
                           re.escape(self.program), result.stderr)
        expect_equal(len(found), 1, result.stderr)
        return found[0]

    def alone(self):
        return run([self.program]).stdout

    def file(self):
        """The answers about the program: the first file; libraries of the system are not
        patched."""
        name, = os.listdir(self.directory)
        return os.path.join(self.directory, name)

    def data(self):
        with open(self.file(), 'rb') as file:
            return file.read()

    def write(self, data):
        """Replaces the file."""
        path = self.file()
        os.remove(path)
        with open(path, 'wb') as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)


@test
def a_second_process_takes_the_answers_of_the_first():
    shared = Shared()
    first = shared.run()
    data = shared.data()
    key, sum = HEAD.unpack_from(data)
    expect_equal(os.path.basename(shared.file()), str(key), 'name')
    expect_equal(sum, sum_of(data[ANSWERS:]), 'sum')
    expect_equal(shared.run(), first, 'the second')
    # Answers that are not those of the decoder show that it is not asked.
    answers = bytearray(data[ANSWERS:])
    answers[::4] = [FIXED] * (len(answers) // 4)
    shared.write(HEAD.pack(key, sum_of(answers)) + answers)
    expect(shared.run().startswith('0 of '), 'taken')


@test
def damaged_answers_are_not_taken():
    shared = Shared()
    first = shared.run()
    data = shared.data()
    key, sum = HEAD.unpack_from(data)

    def changed(at, value):
        return data[:at] + bytes([value]) + data[at + 1:]

    def signed(answers):
        return HEAD.pack(key, sum_of(answers)) + answers

    for what, damaged in {
            'empty': b'', 'short': data[:-1], 'long': data + b'\0',
            'another key': changed(0, data[0] ^ 1),
            'another sum': changed(8, data[8] ^ 1),
            'another answer': changed(ANSWERS, data[ANSWERS] ^ 1),
            'no reason': signed(b'\x63' + data[ANSWERS + 1:]),
            'longer than its function': signed(
                data[ANSWERS:ANSWERS + 2] + b'\xff' + data[ANSWERS + 3:]),
            'no truth': signed(data[ANSWERS:ANSWERS + 3] + b'\2' +
                               data[ANSWERS + 4:])}.items():
        shared.write(damaged)
        expect_equal(shared.run(), first, what)
        expect_equal(shared.data(), damaged, what + ': it stays')


@test
def answers_that_others_could_have_written_are_not_taken():
    shared = Shared()
    first = shared.run()
    path = shared.file()
    with open(path, 'rb') as file:
        data = file.read()
    answers = bytes([FIXED, 0, 0, 0]) * ((len(data) - ANSWERS) // 4)
    forged = HEAD.pack(HEAD.unpack_from(data)[0], sum_of(answers)) + answers
    shared.write(forged)
    expect(shared.run().startswith('0 of '), 'it is forged well')
    os.chmod(path, 0o622)
    expect_equal(shared.run(), first, 'others may write it')
    os.chmod(path, 0o600)
    os.rename(path, path + '.other')
    os.symlink(path + '.other', path)
    expect_equal(shared.run(), first, 'a link')
    os.remove(path)
    os.mkfifo(path, 0o600)
    expect_equal(shared.run(), first, 'a pipe')


@test
def other_questions_have_other_answers():
    shared = Shared()
    shared.run()
    run([shared.program], shared.recording, SHIM_PATCH='easy')
    expect_equal(len(os.listdir(shared.directory)), 2, 'files')


LED_TO = """
__attribute__((noinline)) int led_to(volatile int *i) { *i += 1; *i *= 3; return *i; }
__asm__(".data\\n.quad led_to + " OFFSET "\\n.text");
int main(void) { int i = 1; return led_to(&i) - 6; }
"""


@test
def the_answers_about_a_file_that_was_overwritten_are_not_taken():
    shimtest.x86_64_only('--patch')
    programs = [compile(shimtest.new_source('led%s.c' % offset, LED_TO), 'gcc', '-O2',
                        ['-no-pie', '-Wl,--build-id=none', '-DOFFSET="%s"' % offset],
                        'led%s' % offset, instrument=False) for offset in '02']
    program = os.path.join(shimtest.new_directory('program'), 'program')
    shared = Shared(program)
    counts = []
    for one in programs:            # where the code of a function is entered by a pointer
        with open(one, 'rb') as source, open(program, 'wb') as file:
            file.write(source.read())
        os.chmod(program, 0o755)
        counts.append(tuple(map(int, shared.run().split(' of '))))
    (first, all), (second, all_then) = counts
    expect_equal((second, all_then), (first - 1, all), 'functions')


@test
def answers_that_could_not_be_written_take_no_space():
    functions = ''.join('int fun%d(int i) { return i * %d + %d; }\n' % (i, i, i)
                        for i in range(100, 2100))
    source = shimtest.new_source('many.c', functions + 'int main(void) {}\n')
    shared = Shared(compile(source, 'gcc', '-O2', [], 'many', instrument=False))
    # The first page of a file fits.
    script = 'mount -t tmpfs -o size=4k,mode=700 none "$1" && "$0" && ls -A "$1"'
    command = ['unshare', '-m', 'sh', '-c', script, shared.program,
               shared.directory]
    alone = run(command)
    if alone.status != 0:
        raise Skipped('no file system can be mounted: %s' % alone.stderr)
    result = run(command, shared.recording, SHIM_PATCH='fun*', SHIM_VERBOSE='1')
    expect('--patch: 2000 of 2000 functions of ' + shared.program in
           result.stderr, result.stderr)
    expect_equal((result.status, result.stdout), (0, alone.stdout), 'files')


@test
def nothing_is_shared_without_the_directory():
    shared = Shared()
    os.rmdir(shared.directory)
    shared.run()
    expect(not os.path.exists(shared.directory), 'the directory')


@test
def a_run_shares_answers_and_leaves_nothing():
    program = Shared().program
    script = '%s; %s; ls "$SHIM_DIR/decoded"; exit 3' % (program, program)
    recording = shimtest.new_directory('run') + '/r'
    done = subprocess.run([PROFRUN, '--patch', '*', '-p', 'calltree:counts', '-o',
                           recording, '--no-report', 'sh', '-c', script],
                          capture_output=True, text=True, timeout=120,
                          cwd=shimtest.new_directory('cwd'),
                          env=shimtest.environment())
    expect_equal(done.returncode, 3, done.stderr)
    alone = run([program]).stdout
    text = alone if isinstance(alone, str) else alone.decode()
    expect(done.stdout.startswith(text + text), done.stdout)
    expect(len(done.stdout[2 * len(text):].split()) >= 2, done.stdout)
    expect(not os.path.exists(recording + '/decoded'), 'it was removed')
    expect(re.search(r'^profrun: 2 processes: --patch: \d+ of \d+ functions of ' +
                     re.escape(program) + '$', done.stderr, re.M), done.stderr)
    # A process that executes the program again is one process.
    script = 'n=$1; shift; [ $n = 0 ] || exec sh "$0" $((n - 1))'
    path = os.path.join(shimtest.new_directory('script'), 'again')
    with open(path, 'w') as file:
        file.write(script + '\n')
    done = subprocess.run([PROFRUN, '--patch', '*', '-p', 'calltree:counts', '-o',
                           recording + '1', '--no-report', 'sh', path, '2'],
                          capture_output=True, text=True, timeout=120,
                          env=shimtest.environment())
    expect_equal(done.returncode, 0, done.stderr)
    expect(len(re.findall(r'^profrun: process \d+\.\d+: --patch: \d+ of ', done.stderr,
                          re.M)) == 1 and 'processes: ' not in done.stderr, done.stderr)
    # A program that is not there leaves nothing at all.
    done = subprocess.run([PROFRUN, '--patch', '*', '-o', recording + '2',
                           '/no/such/program'], capture_output=True, timeout=60,
                          env=shimtest.environment())
    expect(not os.path.exists(recording + '2'), 'no recording')


@test
def processes_that_go_on_writing_do_not_keep_the_directory():
    writes = 'n=0; while : > "$SHIM_DIR/decoded/$n"; do n=$((n+1)); done'
    script = '(%s) > /dev/null 2>&1 & sleep 0.3; exit 3' % writes
    for _ in range(3):
        recording = shimtest.new_directory('run') + '/r'
        done = subprocess.run([PROFRUN, '-q', '--patch', 'none', '-p', 'calltree:counts',
                               '-o', recording, 'sh', '-c', script],
                              capture_output=True, text=True, timeout=120,
                              env=shimtest.environment())
        expect_equal(done.returncode, 3, done.stderr)
        left = [name for name in os.listdir(recording) if name.startswith('decoded')]
        expect_equal(left, [], 'it was removed')


if __name__ == '__main__':
    shimtest.main()
