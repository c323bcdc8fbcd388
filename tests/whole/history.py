#!/usr/bin/env python3
"""history.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

profrun history, with recordings whose times are known (craft.py).
"""
import glob
import json
import os
import random
import sqlite3
import struct
import subprocess

import craft
import shimtest
from shimtest import expect, expect_equal, new_directory, test

CODE = 0x555555000000
MS = 10**6
MAIN, INNER = '0x1000 [nothing]', '0x2000 [nothing]'


def recording(start, outer_ms, inner_ms, program='/bin/nothing', coarse=0):
    """main takes @outer_ms itself and calls a function that takes @inner_ms."""
    meta = bytearray(craft.meta(cost=0, program=program))
    struct.pack_into('<Q', meta, 80, (1700000000 + start) * 10**9)
    inner, outer = round(inner_ms * MS), round(outer_ms * MS)
    return craft.write(new_directory('run'), {
        'meta': bytes(meta),
        'images': craft.images(craft.image(CODE, CODE + 0x10000, program)),
        '0.calltree': craft.tree(
            craft.thread(),
            craft.node(CODE + 0x1000, craft.MEMORY, 1, inner + outer, coarse=coarse),
            craft.node(CODE + 0x2000, craft.MEMORY + 128, 10, inner, coarse=coarse))})


def history(*words, status=0):
    done = subprocess.run([shimtest.report, 'history', *words], capture_output=True,
                          text=True)
    expect_equal(done.returncode, status, '%s: %s' % (words, done.stderr))
    return done.stdout, done.stderr


def database(versions, runs=6, seed=1):
    """(milliseconds of main, of the other) of each version, with 1 % of noise."""
    chance = random.Random(seed)
    path = os.path.join(new_directory('db'), 'history.db')
    for number, (outer, inner) in enumerate(versions):
        made = [recording(1000 * number + n, outer * chance.gauss(1, 0.01),
                          inner * chance.gauss(1, 0.01)) for n in range(runs)]
        history('add', *made, '--as', 'v%d' % number, '--db', path)
    return path


def changes_of(*words, status=0):
    about = json.loads(history(*words, '--json', status=status)[0])
    return about, [(c['function'], c['version']) for c in about['changes']]


@test
def times_of_versions_are_those_of_the_recordings():
    path = database([(100, 50), (100, 50)], runs=3)
    about, _ = changes_of('--db', path)
    expect_equal([(v['version'], v['runs']) for v in about['versions']],
                 [('v0', 3), ('v1', 3)], 'versions')
    rows = sqlite3.connect(path).execute(
        'select version, sum(self_ns), sum(calls) from figure join run on run = run.id'
        ' group by version order by version').fetchall()
    expect_equal([row[2] for row in rows], [33, 33], 'calls')
    for version, row in zip(about['versions'], rows):
        expect(abs(version['mean_ns'] * 3 - row[1]) < 10, (version, row))
        expect(140 * MS < version['mean_ns'] < 160 * MS, version)
        expect(0 < version['deviation_ns'] < 10 * MS, version)


@test
def a_change_is_shown_with_its_function_and_version():
    path = database([(100, 50), (100, 50), (100, 60), (100, 60)])
    about, changes = changes_of('--db', path)
    expect_equal(changes, [(None, 'v2'), (INNER, 'v2')], 'changes')
    inner = about['changes'][1]
    expect(49 * MS < inner['before_ns'] < 51 * MS and 59 * MS < inner['after_ns'] < 61 * MS,
           inner)
    expect(inner['chance'] < 0.01, inner)
    text, _ = history('--db', path)
    expect('nothing: 24 runs of 4 versions' in text and INNER in text and
           ' %  v2' in text and 'no change' not in text, text)
    text, _ = history(MAIN, '--db', path)
    expect('%' not in text, text)
    _, changes = changes_of(MAIN, '--db', path, '--value', 'total')
    expect_equal(changes, [(MAIN, 'v2')], 'total')


@test
def equal_versions_show_no_change():
    path = database([(100, 50)] * 5)
    _, changes = changes_of('--db', path)
    expect_equal(changes, [], 'changes')
    expect('no change stands out from the noise' in history('--db', path)[0], 'text')


@test
def few_runs_are_said_to_be_too_few():
    text, _ = history('--db', database([(100, 50), (200, 50)], runs=4))
    expect('that takes 5 runs before and after it' in text, text)


@test
def the_newest_version_fails_above_a_threshold():
    path = database([(100, 50), (100, 50), (100, 60)])
    history('--db', path, '--fail-above', '30%')
    _, said = history('--db', path, '--fail-above', '10%', status=3)
    expect(INNER + ': +' in said and 'with v2, more than 10 %' in said, said)
    # A function that was not there before grew by no percentage.
    path = database([(100, 0), (100, 0), (100, 50)])
    _, said = history('--db', path, '--fail-above', '10%', status=3)
    expect(INNER + ': new with v2, more than' in said, said)
    # It was the version before.
    path = database([(100, 50), (100, 60), (100, 60)])
    history('--db', path, '--fail-above', '10%')


@test
def a_recording_is_added_once():
    path = os.path.join(new_directory('db'), 'history.db')
    one = recording(1, 5, 5)
    _, said = history('add', one, '--db', path)
    expect('1 run added' in said, said)
    _, said = history('add', one + '/', '--db', path)
    expect('is in ' in said and '0 runs added' in said, said)
    about, _ = changes_of('--db', path)
    expect_equal(about['versions'][0]['version'], os.path.basename(one), 'its name')


@test
def what_cannot_be_is_refused():
    folder = new_directory('db')
    path = os.path.join(folder, 'history.db')
    history('add', recording(1, 5, 5), '--db', path)
    text = os.path.join(folder, 'text')
    with open(text, 'w') as file:
        file.write('no database\n' * 100)
    other = os.path.join(folder, 'other')
    sqlite3.connect(other).execute('create table mine (x)').connection.commit()
    damaged = recording(3, 5, 5)
    meta, = glob.glob(damaged + '/**/meta', recursive=True)
    os.truncate(meta, 100)
    for words, status, message in (
            (['add', damaged, '--db', folder + '/new'], 1, 'its program is not known'),
            (['add', recording(2, 5, 5, '/bin/other'), '--db', path], 1, 'of other, but'),
            (['add', recording(2, 5, 5), '--db', text], 1, 'not a database'),
            (['add', recording(2, 5, 5), '--db', other], 1, 'no database of profrun'),
            (['add', '--db', path], 2, 'which recordings?'),
            (['add', recording(2, 5, 5), '--db', path, '--as', ''], 2, "'' is empty"),
            (['add', folder + '/missing', '--db', path], 1, 'No such file'),
            (['--db', folder + '/missing'], 1, 'no such database'),
            (['nosuch', '--db', path], 1, "has no function 'nosuch'"),
            (['--db', path, '--as', 'x'], 2, '--as is of history add'),
            (['--db', path, '--value', 'self'], 2, 'of a FUNCTION'),
            (['a', 'b', '--db', path], 2, 'too many')):
        _, said = history(*words, status=status)
        expect(message in said, (words, said))
    expect_equal(sqlite3.connect(path).execute('select count(*) from run').fetchone(),
                 (1,), 'runs')


def peak_of_adding(count):
    """Bytes.  The recording is read each time, and added once."""
    made, path = recording(1, 5, 5), os.path.join(new_directory('db'), 'history.db')
    # Sanitizers would keep released blocks for a while.
    options = os.environ.get('ASAN_OPTIONS', '') + \
        ':quarantine_size_mb=0:thread_local_quarantine_size_kb=0'
    pid = os.posix_spawn(shimtest.report, [shimtest.report, 'history', 'add', '--db', path] +
                         [made] * count, dict(os.environ, ASAN_OPTIONS=options),
                         file_actions=[(os.POSIX_SPAWN_OPEN, 2, '/dev/null', os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    expect_equal(status, 0, 'status')
    return usage.ru_maxrss * 1024


@test
def memory_does_not_grow_with_the_recordings():
    first, all = peak_of_adding(10), peak_of_adding(310)
    # With sanitizers, 6 KiB of each recording stay.
    most = 16384 if 'ASAN_OPTIONS' in os.environ else 4096
    expect(all - first < 300 * most, (first, all))


if __name__ == '__main__':
    shimtest.main()
