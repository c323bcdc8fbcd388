#!/usr/bin/env python3
"""formats.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Recordings of each version of the format since 0.9 stay readable: tests/formats has some
of every version, and NAME.txt what the report said of NAME when the version was new.
Where the report says it differently by now, SHIM_ACCEPT=1 writes the new texts; read
their differences, because the numbers must be the same.
"""
import glob
import os
import re
import subprocess
import tarfile

import shimtest
from shimtest import expect, expect_equal, new_directory, test

FORMATS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                       'formats')
HEADER = os.path.join(os.path.dirname(FORMATS), '..', 'include', 'shim', 'format.h')
# Their text is compared.
TEXTS = [('report', '--limit', '0'), ('report', '--tree'), ('report', '--threads'),
         ('report', '--memory'), ('report', '--locks'), ('report', '--coverage'),
         ('report', '--samples'), ('report', '--ranks'),
         ('report', '--messages'), ('report', '--raw', '--format', 'csv'),
         ('info',), ('stat',), ('replay',),
         ('export', 'folded', '--value', 'calls', '--mangled'),
         ('export', 'folded', '--value', 'bytes'), ('export', 'lcov')]
# They have to be written, where there is something to write.
OTHERS = [('report', '--format', 'json'), ('html', '-o', 'OUT'), ('annotate', 'main')] + [
    ('export', name, '-o', 'OUT') for name in (
        'json', 'csv', 'speedscope', 'pprof', 'callgrind', 'dot', 'perf-script', 'massif',
        'order', 'gmon', 'chrome', 'perfetto', 'ctf', 'cobertura')] + [
    ('merge', '-o', 'OUT')]
MISSING = re.compile(r'no (calls?|samples?|trace|allocations?|waits?|coverage|counters?|'
                     r'lines?|function)\b|were counted, not timed|not (there|recorded|known)|'
                     r'was recorded|recorded no |for coverage use|cannot be shown')


def recordings():
    found = sorted(glob.glob(FORMATS + '/*/*.tar.xz'))
    expect(found, 'no recordings in ' + FORMATS)
    for archive in found:
        directory = new_directory('formats')
        with tarfile.open(archive) as tar:
            tar.extractall(directory)
        yield archive[:-len('.tar.xz')], directory, os.path.basename(archive)[:-7]


def read(directory, name, words):
    """(status, output, messages) of shim-report in the recording's directory."""
    words = [os.path.join(new_directory('formats'), 'out') if word == 'OUT' else word
             for word in words]
    done = subprocess.run([shimtest.report, *words, name], cwd=directory,
                          env=dict(os.environ, TZ='UTC', LC_ALL='C.UTF-8', COLUMNS='100'),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    expect(done.returncode in (0, 1, 2), '%s %s: status %d: %s' % (
        name, ' '.join(words), done.returncode, done.stderr))
    return done.returncode, done.stdout, done.stderr


@test
def recordings_of_each_version_say_what_they_said():
    for path, directory, name in recordings():
        said = ''
        for words in TEXTS:
            status, out, messages = read(directory, name, words)
            said += '$ %s\n%s%s' % (' '.join(words), out, messages)
            said += 'status %d\n' % status if status else ''
        if os.environ.get('SHIM_ACCEPT'):
            with open(path + '.txt', 'w') as file:
                file.write(said)
        with open(path + '.txt') as file:
            wanted = file.read()
        if said != wanted:
            pairs = list(zip(said.split('\n'), wanted.split('\n'))) + [('', '')]
            expect_equal(*next(p for p in pairs if p[0] != p[1] or p == ('', '')), path)


@test
def recordings_of_each_version_can_be_exported():
    for _, directory, name in recordings():
        for words in OTHERS:
            status, _, messages = read(directory, name, words)
            expect(status == 0 or MISSING.search(messages),
                   '%s: %s: %s' % (name, ' '.join(words), messages))


@test
def each_version_of_the_format_has_recordings():
    with open(HEADER) as file:
        versions = re.findall(r'#define SHIM_FORMAT_VERSION\w*\s+(\d+)u', file.read())
    expect(versions, 'no version in ' + HEADER)
    found = set()
    for path, directory, name in recordings():
        for meta in glob.glob(os.path.join(directory, name, '*', 'meta')):
            with open(meta, 'rb') as file:
                found.add(str(int.from_bytes(file.read(12)[8:], 'little')))
    expect(set(versions) <= found, 'recordings have %s, the header %s' % (found, versions))


if __name__ == '__main__':
    shimtest.main()
