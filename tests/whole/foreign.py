#!/usr/bin/env python3
"""foreign.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

An attacker may have made the objects that a recording names.  A process of its own
reads them; it may crash, loop or use all of its memory, and can do nothing else.
Further tests: names and lines are found wherever distributions put them.
"""
import csv
import http.server
import io
import lzma
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import threading
import zlib

import craft
import shimtest
from craft import BASE, MEMORY, node, thread
from shimtest import (compile, expect, expect_equal, new_directory, profrun, record,
                      test)

MIB = 1024


def report(recording, *words, preload=None, status=0, **more):
    """The output and messages of the report, and the memory of its processes in MiB."""
    if preload:
        # A sanitized report runs nevertheless, and leaves signals alone.
        more.update(LD_PRELOAD=preload, ASAN_OPTIONS=os.environ.get('ASAN_OPTIONS', '') +
                    ':verify_asan_link_order=0:handle_segv=0:handle_abort=0')
    out = open(os.path.join(new_directory('output'), 'out'), 'w+')

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    child = subprocess.Popen([shimtest.report, *words, recording], stdout=out,
                             stderr=subprocess.PIPE, preexec_fn=limit,
                             stdin=subprocess.DEVNULL,
                             cwd=new_directory('cwd'),
                             env=shimtest.environment(**more))
    said = child.stderr.read().decode(errors='replace')
    child.stderr.close()
    _, code, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(code)
    expect_equal(child.returncode, status, '%s: %s' % (words, said))
    out.seek(0)
    return out.read(), said, used.ru_maxrss >> 10


# --- failures of the reading process ---

def recorded():
    return record([compile('nesting.c')], 'calltree').output


def spoiled(what, *words):
    preload = compile('apart.c', flags=['-shared', '-fPIC', '-w'],
                      name='libapart.so', instrument=False,
                      libraries=['-ldl'])
    return report(recorded(), *words, preload=preload, APART=what)


def expect_addresses(printed, said, why):
    expect_equal(len(re.findall(r'by address', said)), 1, said)
    expect(why in said, said)
    expect(re.search(r'0x[0-9a-f]+ \[nesting\]', printed), printed)


@test
def a_crash_costs_the_names_of_one_object():
    expect_addresses(*spoiled('fall', 'report')[:2], 'Segmentation fault')
    expect_addresses(*spoiled('abort', 'report')[:2], 'Aborted')


@test
def a_loop_is_ended():
    expect_addresses(*spoiled('loop', 'report')[:2], 'more than 4 seconds')


@test
def it_can_open_nothing_connect_to_nothing_and_execute_nothing():
    # A sanitizer maps nearly the whole address space: its memory has no limit.
    allocate = [] if 'ASAN_OPTIONS' in os.environ else ['allocate']
    for what in ['open', 'create', 'connect', 'execute', 'write code', *allocate]:
        printed, said, _ = spoiled(what, 'report')
        expect('main' in printed and not said, '%s: %s%s' % (what, printed,
                                                             said))
    expect_addresses(*spoiled('nothing', 'report')[:2], 'Segmentation fault')


@test
def no_process_is_left_behind():
    for words, status in ((['report'], 0), (['report', '--memory'], 1)):
        marker = 'MARKER=%d.%s' % (os.getpid(), status)
        report(recorded(), *words, status=status, MARKER=marker[7:])
        left = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                if marker.encode() in open('/proc/%s/environ' % pid,
                                           'rb').read():
                    left.append(pid)
            except OSError:
                pass
        expect_equal(left, [], 'processes')


@test
def names_are_found_where_standard_streams_are_closed():
    for closed in '<&-', '2>&-', '<&- 2>&-':
        done = subprocess.run(
            ['sh', '-c', '"$0" report "$1" %s | cat' % closed, shimtest.report,
             recorded()], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=60, env=shimtest.environment())
        expect(b'main [nesting' in done.stdout, '%s: %s' % (closed, done))


@test
def output_that_cannot_be_written_is_an_error():
    recording = recorded()
    for words in (['report'], ['stat'], ['info'], ['export', 'json'],
                  ['export', 'pprof'], ['diff', recording]):
        for where in '>&-', '>/dev/full':
            done = subprocess.run(
                ['sh', '-c', '"$0" "$@" ' + where, shimtest.report, *words, recording],
                stderr=subprocess.PIPE, timeout=60, env=shimtest.environment())
            expect_equal(done.returncode, 1, (words, where, done.stderr))
            expect(b'standard output: cannot write: ' in done.stderr, done)
    # Of what runs programs, 125 says that profrun itself failed.
    for words, status in [(['doctor'], 1), (['ctl', '--json'], 1)] + [
            (words + ['--help'], 1) for words in (
                ['ctl'], ['report'], ['export'], ['tui'], ['stack'], ['attach'])] + [
            (words, 125) for words in (
                ['--help'], ['--version'], ['help', '--help'], ['run', '--help'],
                ['record', '--help'], ['stat', '--help'])]:
        for where in '>&-', '>/dev/full':
            done = subprocess.run(
                ['sh', '-c', '"$0" "$@" ' + where, profrun(), *words],
                stderr=subprocess.PIPE, timeout=60, env=shimtest.environment(),
                cwd=new_directory('cwd'))
            expect_equal(done.returncode, status, (words, where, done.stderr))
            expect(b'standard output: cannot write: ' in done.stderr, done)


@test
def a_report_goes_to_no_other_stream_than_standard_error():
    """Not to the program's output, nor into the recording that profrun has open."""
    source = os.path.join(new_directory('streams'), 'streams.c')
    with open(source, 'w') as file:
        file.write('#include <fcntl.h>\n#include <stdio.h>\n'
                   'int main(void) { printf("%d%d%d", fcntl(0, 1) >= 0, fcntl(1, 1) >= 0,'
                   ' fcntl(2, 1) >= 0); return fflush(stdout) ? 4 : 3; }\n')
    program = compile(source)
    for closed, said, status in (('2>&-', b'110', 3), ('<&- 2>&-', b'010', 3),
                                 ('<&-', b'011', 3), ('>&-', b'', 4),
                                 ('<&- >&- 2>&-', b'', 4)):
        output = os.path.join(new_directory('profrun'), 'r')
        done = subprocess.run(
            ['sh', '-c', '"$@" ' + closed, 'sh', profrun(), '-o', output, program],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
            env=shimtest.environment())
        expect_equal((done.returncode, done.stdout), (status, said), closed)
        expect_equal(b'main' in done.stderr, '2>&-' not in closed, closed)
        expect_equal(report(output, 'report', '--format', 'csv')[1], '', closed)


def objects(count):
    """A recording of @count objects; each has functions all over the report."""
    directory, words = new_directory('objects'), []
    for i in range(count):
        path = os.path.join(directory, 'part%d' % i)
        with open(path + '.c', 'w') as file:
            for n in range(30):
                file.write('__attribute__((noinline)) int of%02d_%d(int x)'
                           '{ return x + %d; }\n' % (n, i, n))
            file.write('int part%d(void) { return %s; }\n' % (
                i, ' + '.join('of%02d_%d(%d)' % (n, i, n) for n in range(30))))
        words.append(compile(path + '.c', flags=['-shared', '-fPIC'],
                             name='libpart%d.so' % i))
    path = os.path.join(directory, 'all.c')
    with open(path, 'w') as file:
        file.write('%s\nint main(void) { return (%s) == 0; }\n' % (
            ' '.join('int part%d(void);' % i for i in range(count)),
            ' + '.join('part%d()' % i for i in range(count))))
    return record([compile(path, name='all%d' % count, libraries=words)],
                  'calltree:exact').output


@test
def objects_that_cannot_all_be_open_are_not_read_again_for_each_line():
    """A reading process has one object, and at most 16 run at a time."""
    used = {}
    for count in 12, 24:
        recording = objects(count)
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            printed, _, _ = report(recording, 'report', '--limit', '0',
                                   '--sort', 'calls')
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            expect_equal(len(re.findall(r' \w+ \[\S+ \S+\.c:\d+\]', printed)),
                         count * 31 + 1, 'names with lines')
            seconds = (after.ru_utime + after.ru_stime - before.ru_utime -
                       before.ru_stime)
            used[count] = min(seconds, used.get(count, seconds))
    expect(used[24] < 14 * used[12], 'seconds: %s' % used)


ODD = ['=1+1', '+5', '+5;x', '-a', '@b', '-7', '-', 'c=d', '-[Object m:]']


@test
def cells_that_begin_like_formulas_are_text_and_numbers_stay():
    path = os.path.join(new_directory('odd'), 'odd.c')
    with open(path, 'w') as file:
        for i, name in enumerate(ODD):
            file.write('int f%d(void) __asm__("\\"%s\\"");\n'
                       'int f%d(void) { return 1; }\n' % (i, name, i))
        file.write('int main(void) { return !(%s); }\n' % ' + '.join(
            'f%d()' % i for i in range(len(ODD))))
    printed, said, _ = report(record([compile(path)], 'calltree').output,
                              'export', 'csv')
    names = {row['mangled'] for row in csv.DictReader(io.StringIO(printed))}
    expect_equal(names, {'main', "'=1+1", '+5', "'+5;x", "'-a", "'@b", '-7',
                         "'-", 'c=d', "'-[Object m:]"}, said)


@test
def debug_information_that_zstd_has_compressed_is_not_called_missing():
    """elfutils reads it since 0.189."""
    program = os.path.join(new_directory('zstd'), 'packed')
    debug = program + '.debug'
    shutil.copy(compile('nesting.c'), program)
    done = subprocess.run(['objcopy', '--compress-debug-sections=zstd', program],
                          stderr=subprocess.PIPE)
    if done.returncode:
        raise shimtest.Skipped('objcopy: %s' % done.stderr)
    told = 'zstd has compressed, which this libdw cannot read'
    for is_apart in False, True:
        if is_apart:
            for command in (['--only-keep-debug', program, debug],
                            ['--strip-all', '--add-gnu-debuglink=' + debug, program]):
                subprocess.run(['objcopy', *command], check=True)
        recording = record([program], 'trace:args=all').output
        printed, said, _ = report(recording, 'report')
        if re.search(r'\[packed nesting\.c:\d+\]', printed):
            raise shimtest.Skipped('this libdw reads zstd')
        expect_equal(said, '', 'messages')
        expect('packed is with debug information that ' + told in printed, printed)
        expect('without debug information' not in printed, printed)
        printed, _, _ = report(recording, 'info')
        expect('no debug information, zstd has compressed it, which this libdw cannot '
               'read: no lines, no arguments: ' in printed, (is_apart, printed))
    done = subprocess.run([profrun(), 'doctor', compile('nesting.c')], timeout=60,
                          stdout=subprocess.PIPE, cwd=new_directory('cwd'),
                          env=shimtest.environment())
    expect(b'it has symbols and debug information' in done.stdout, done)
    subprocess.run(['objcopy', '--compress-debug-sections=zstd', compile('nesting.c'),
                    program], check=True)
    done = subprocess.run([profrun(), 'doctor', program], timeout=60,
                          stdout=subprocess.PIPE, cwd=new_directory('cwd'),
                          env=shimtest.environment())
    expect(b'its debug information is compressed with zstd' in done.stdout, done)


# --- bombs ---

MANY = 384 << 20


def pack(packer, path, head=b''):
    """A file of very many zeros."""
    with open(path, 'wb') as file:
        file.write(head)
        for _ in range(MANY >> 24):
            file.write(packer.compress(b'\0' * (1 << 24)))
        file.write(packer.flush())
    return path


def mark_compressed(program, name):
    """Sets SHF_COMPRESSED, which objcopy cannot set."""
    with open(program, 'r+b') as file:
        data = file.read()
        headers, = struct.unpack_from('<Q', data, 0x28)
        count, names = struct.unpack_from('<HH', data, 0x3c)
        names, = struct.unpack_from('<Q', data, headers + names * 64 + 24)
        for at in range(headers, headers + count * 64, 64):
            place, _, flags = struct.unpack_from('<IIQ', data, at)
            if data[names + place:].startswith(name + b'\0'):
                file.seek(at + 8)
                file.write(struct.pack('<Q', flags | 0x800))
                return
    expect(False, 'no section %s' % name)


@test
def compressed_sections_need_no_more_than_their_file_may():
    directory = new_directory('bombs')
    program, symbols, information = (os.path.join(directory, name) for name in
                                     ('bomb', 'symbols', 'information'))
    pack(lzma.LZMACompressor(preset=1), symbols)
    # Compilers and linkers take half a minute for this.
    pack(zlib.compressobj(1), information, struct.pack('<IIQQ', 1, 0, MANY, 1))
    build = ['gcc', '-g', '-finstrument-functions', '-x', 'c', '-', '-o', program]
    # The symbols of a stripped program, and its debug information.
    for commands in ([['strip', program],
                      ['objcopy', '--add-section', '.gnu_debugdata=' + symbols, program]],
                     [['objcopy', '--update-section', '.debug_info=' + information,
                       program]]):
        subprocess.run(build, check=True, input=b'int main(void) { return 0; }')
        for command in commands:
            subprocess.run(command, check=True)
        if 'strip' not in commands[0]:
            mark_compressed(program, b'.debug_info')
        expect(os.path.getsize(program) < 2 << 20, 'no bomb')
        recording = record([program], 'calltree').output
        printed, said, mib = report(recording, 'report')
        expect(mib < 256, '%s: %d MiB' % (commands, mib))
        expect('[bomb' in printed, printed)


@test
def a_string_that_is_a_million_names_is_not_read_as_often():
    """Each symbol begins one byte further in the same string."""
    directory = new_directory('names')
    path, count = os.path.join(directory, 'object'), 20000
    source = os.path.join(directory, 's.s')
    with open(source, 'w') as file:
        file.write('.globl %s\n.type %s,@function\n%s: ret\n' %
                   (('a' * 30000,) * 3))
    subprocess.run(['gcc', '-c', source, '-o', path], check=True)
    data = bytearray(open(path, 'rb').read())
    sections = struct.unpack_from('<Q', data, 40)[0]
    for i in range(struct.unpack_from('<H', data, 60)[0]):
        kind, = struct.unpack_from('<I', data, sections + 64 * i + 4)
        if kind == 2:
            table = sections + 64 * i
    name = data.index(b'a' * 30000) - struct.unpack_from(
        '<Q', data, sections + 64 * struct.unpack_from(
            '<I', data, table + 40)[0] + 24)[0]
    symbols = b'\0' * 24 + b''.join(
        struct.pack('<IBBHQQ', name + i, 0x12, 0, 1, 16 * i, 16)
        for i in range(count))
    struct.pack_into('<QQ', data, table + 24, len(data), len(symbols))
    struct.pack_into('<I', data, table + 44, 1)
    with open(path, 'wb') as file:
        file.write(data + symbols)
    recording = craft.write(new_directory('recording'), {
        'meta': craft.meta(), 'images': craft.images(craft.image(
            BASE, BASE + (1 << 30), path, b'')),
        '0.calltree': craft.tree(thread(), *[node(BASE + 16 * i, MEMORY)
                                             for i in range(count)])})
    printed, said, mib = report(recording, 'export', 'csv')
    expect(mib < 256, '%d MiB' % mib)
    expect(len(printed) < 32 << 20, '%d bytes' % len(printed))
    expect('a' * 30000 in printed, 'not one name')


@test
def an_object_that_is_a_pipe_is_not_opened():
    directory = new_directory('pipe')
    path = os.path.join(directory, 'object')
    os.mkfifo(path)
    writer = subprocess.Popen(['sh', '-c', 'exec >"$0"; echo opened', path],
                              stderr=subprocess.DEVNULL)
    recording = craft.write(new_directory('recording'), {
        'meta': craft.meta(), 'images': craft.images(craft.image(
            BASE, BASE + (1 << 30), path)),
        '0.calltree': craft.tree(thread(), node(BASE + 16, MEMORY))})
    try:
        for _ in range(20):     # the thread may not have begun to wait at first
            report(recording, 'report')
            expect_equal(writer.poll(), None, 'somebody opened it')
    finally:
        writer.kill()
        writer.wait()


# --- where names and lines come from ---

@test
def newline_in_a_path_keeps_its_names():
    program = os.path.join(new_directory('new\nline'), 'nesting')
    shutil.copy(compile('nesting.c'), program)
    for profile, words in (('calltree', ['report']), ('trace', ['replay'])):
        printed, said, _ = report(record([program], profile).output, *words)
        expect('main' in printed and 'by address' not in said,
               '%s: %s%s' % (profile, printed, said))


def names_and_lines(recording, *words, **more):
    printed, said, _ = report(recording, 'report', '--limit', '0', *words,
                              **more)
    return (set(re.findall(r'  (\w+) \[nesting nesting\.c:\d+\]', printed)),
            said)


def stripped(where, link=True):
    """A program whose debug information is in @where(its directory, build-id)."""
    directory = new_directory('stripped')
    program = os.path.join(directory, 'nesting')
    shutil.copy(compile('nesting.c'), program)
    recording = record([program], 'calltree').output
    notes = subprocess.run(['readelf', '-n', program], capture_output=True,
                           text=True, check=True).stdout
    build_id = re.search(r'Build ID: (\w+)', notes).group(1)
    debug = where(directory, build_id)
    os.makedirs(os.path.dirname(debug), exist_ok=True)
    subprocess.run(['objcopy', '--only-keep-debug', program, debug], check=True)
    subprocess.run(['strip', '-g', program], check=True)
    subprocess.run(['strip', program], check=True)
    if link:
        subprocess.run(['objcopy', '--add-gnu-debuglink=' + debug, program],
                       check=True)
    return recording, program, debug


WANTED = {'main', 'a', 'b', 'c'}


@test
def debug_information_may_be_beside_the_object():
    for place in '', '.debug':
        recording, _, debug = stripped(lambda directory, _: os.path.join(
            directory, place, 'nesting.dbg'))
        names, said = names_and_lines(recording)
        expect(WANTED <= names and not said, '%s: %s %s' % (place, names, said))
        # A file with another checksum belongs to another program.
        with open(debug, 'ab') as file:
            file.write(b'x')
        names, said = names_and_lines(recording)
        expect_equal(names, set(), 'another')


@test
def files_are_looked_for_below_another_root_directory_first():
    root = new_directory('root')
    recording, program, debug = stripped(lambda directory, _: os.path.join(
        directory, '.debug', 'nesting.dbg'))
    for path in program, debug:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        shutil.move(path, root + path)
    # Another program has its name now.
    shutil.copy('/bin/true', program)
    expect_equal(names_and_lines(recording)[0], set(), 'by its name')
    names, said = names_and_lines(recording, '--symfs', root)
    expect(WANTED <= names and not said, (names, said))
    # The program's links are relative to that directory.
    place = os.path.dirname(program)
    os.rename(root + place, root + '/other')
    os.symlink('/other', root + place)
    names, said = names_and_lines(recording, '--symfs', root)
    expect(WANTED <= names and not said, (names, said))
    # What is not there, or is another program's, is where its name says.
    os.remove(program)
    shutil.move(root + '/other/nesting', program)
    shutil.move(root + '/other/.debug/nesting.dbg', debug)
    for is_there in False, True:
        if is_there:
            shutil.copy('/bin/true', root + '/other/nesting')
        names, said = names_and_lines(recording, '--symfs', root)
        expect(WANTED <= names and not said, (names, said))
    os.remove(program)
    _, said = names_and_lines(recording, '--symfs', root)
    expect(root + '/other/nesting: not the file that was recorded' in said, said)
    for path, why in (('missing', 'No such file'), ('/bin/true', 'Not a directory')):
        _, said, _ = report(recording, 'report', '--symfs', path, status=2)
        expect('--symfs: %s: ' % path in said and why in said, said)


@test
def names_in_dwz_files_are_found():
    """dwz has moved a part of the debug information into another file."""
    if not shutil.which('dwz'):
        raise shimtest.Skipped('dwz is not installed')
    directory = new_directory('shared')
    for name in 'nesting', 'other':
        shutil.copy(compile('nesting.c'), os.path.join(directory, name))
    done = subprocess.run(['dwz', '-m', 'common', '-M',
                           os.path.join(directory, 'common'), 'nesting',
                           'other'], cwd=directory, capture_output=True)
    expect_equal(done.returncode, 0, done.stderr)
    recording = record([os.path.join(directory, 'nesting')], 'calltree').output
    names, said = names_and_lines(recording)
    expect(WANTED <= names, (names, said))


class Server(http.server.BaseHTTPRequestHandler):
    files, asked = {}, []

    def do_GET(self):
        self.asked.append(self.path)
        found = self.files.get(self.path)
        self.send_response(200 if found else 404)
        self.end_headers()
        if found:
            self.wfile.write(open(found, 'rb').read())

    def log_message(self, *_):
        pass


@test
def debuginfod_is_used_only_on_request():
    recording, program, debug = stripped(
        lambda directory, _: os.path.join(directory, 'far', 'away'), False)
    notes = subprocess.run(['readelf', '-n', program], capture_output=True,
                           text=True, check=True).stdout
    build_id = re.search(r'Build ID: (\w+)', notes).group(1)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    more = {'DEBUGINFOD_URLS': 'http://127.0.0.1:%d' % server.server_port,
            'DEBUGINFOD_CACHE_PATH': new_directory('cache')}
    try:
        Server.files['/buildid/%s/debuginfo' % build_id] = debug
        names, _ = names_and_lines(recording, **more)
        expect_equal((names, Server.asked), (set(), []), 'nobody wants it')
        names, said = names_and_lines(recording, '--debuginfod', **more)
        if 'there is no libdebuginfod' in said:
            raise shimtest.Skipped('libdebuginfod is not installed')
        expect(WANTED <= names, (names, said, Server.asked))
        # The same after the program itself was removed.
        Server.files['/buildid/%s/executable' % build_id] = program + '.copy'
        os.rename(program, program + '.copy')
        names, said = names_and_lines(recording, '--debuginfod', **more)
        expect(WANTED <= names, (names, said, Server.asked))
    finally:
        server.shutdown()


@test
def a_doctor_that_is_interrupted_removes_its_directory():
    """Each signal comes when the directory is there, unless the probe is faster."""
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        for words in ['doctor'], ['doctor', '--patch', '*', compile('nesting.c')]:
            ended = []
            while -number not in ended:
                expect(len(ended) < 100, (words, ended))
                place = new_directory('doctor')
                with subprocess.Popen([profrun(), *words], cwd=place,
                                      stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as process:
                    while not os.listdir(place) and process.poll() is None:
                        pass
                    process.send_signal(number)
                ended.append(process.returncode)
                expect_equal(os.listdir(place), [], (words, number))


@test
def one_call_is_not_several():
    source = shimtest.new_source('one.c', 'int main(void) { return 0; }')
    text = shimtest.shim_report('report', record([compile(source)]).output)
    expect('  1 call in 1 path of 1 function; nothing lost' in text, text)


if __name__ == '__main__':
    shimtest.main()
