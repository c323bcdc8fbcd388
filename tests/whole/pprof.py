#!/usr/bin/env python3
"""pprof.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

`export pprof` has the same numbers as the report and the program.  A decoder of our own
(profile_proto.py) reads it, and protoc and `go tool pprof` where they are installed.
"""
import json
import os
import pty
import re
import struct
import subprocess

import shimtest
from profile_proto import Profile
from shimtest import (compile, expect, expect_equal, new_directory, record, shim_report,
                      test)

PROTO = os.path.join(shimtest.PROGRAMS, '..', '..', 'scripts', 'report',
                     'export')


def export_to(path, output, *arguments):
    done = subprocess.run(
        [shimtest.report, 'export', 'pprof', output, '-o', path, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    expect_equal(done.stdout, b'', 'stdout')
    expect_equal(done.returncode, 0, done.stderr.decode())
    with open(path, 'rb') as file:
        return file.read()


def exported(output, *arguments):
    return Profile(export_to(os.path.join(new_directory('pprof'), 'file'),
                             output, *arguments))


def reported(output, *arguments):
    """{name: the report's row}, for functions whose name is unique."""
    about = json.loads(shim_report('report', '--format', 'json', output,
                                   *arguments))
    functions = {}
    for function in about['functions']:
        functions.setdefault(function['name'], []).append(function)
    return about, {name: of_name[0] for name, of_name in functions.items()
                   if len(of_name) == 1}


def expect_sums(source, times, calls, functions):
    """@times, @calls: {name: (flat, cum)}.  The report shows no self time that
    is below 0, or above the total; each visit of a path may round by 1 ns."""
    compared = 0
    for name, function in functions.items():
        flat, cum = times.get(name, (0, 0))
        for what, got, wanted in (
                ('self', max(min(flat, cum), 0), function['self_ns']),
                ('total', max(cum, 0), function['total_ns'])):
            expect(abs(got - wanted) <= 100, '%s: %s of %s: %s, not %s' % (
                source, what, name, got, wanted))
        expect_equal(calls.get(name, (0, 0))[0], function['calls'],
                     'calls of ' + name)
        compared += 1
    expect(compared > 3, 'only %d functions' % compared)


def recording_of(source, profile='calltree', optimize='-O0', arguments=(),
                 flags=()):
    result = record([compile(source, 'gcc', optimize, list(flags)),
                     *arguments], profile)
    expect_equal(result.status, 0, source)
    return result


PROGRAMS = [('unwind.cc', 'calltree'), ('unwind.cc', 'calltree:exact'),
            ('threads.c', 'calltree'), ('threads.c', 'calltree:exact'),
            ('exceptions.cc', 'calltree:exact'), ('computes.c', 'calltree'),
            ('forks.c', 'calltree')]


@test
def flat_and_cum_are_self_and_total_of_the_report():
    for source, kind in PROGRAMS:
        output = recording_of(source, kind).output
        for more in ([], ['--raw']):
            profile = exported(output, *more)
            expect_equal(profile.types, [('calls', 'count'),
                                         ('time', 'nanoseconds')], 'types')
            expect_sums(source, profile.flat_and_cum('time'),
                        profile.flat_and_cum('calls'),
                        reported(output, *more)[1])


@test
def calls_are_those_of_the_program():
    result = recording_of('threads.c', 'calltree:counts')
    profile = exported(result.output)
    expect_equal(profile.types, [('calls', 'count')], 'types')
    expect_equal(profile.default, 'calls', 'default')
    got = {name: flat for name, (flat, _) in
           profile.flat_and_cum('calls').items()}
    truth = result.truth()
    expect(truth, 'the program said nothing')
    expect_equal({name: got.get(name) for name in truth}, truth, 'calls')


@test
def samples_are_those_of_the_report():
    program = compile('computes.c', 'gcc', '-O0', name='computes_plain',
                      instrument=False)
    for clock, name in ('', 'cpu'), (',clock=wall', 'wall'):
        output = record([program], 'sampling:hz=500' + clock).output
        profile = exported(output)
        expect_equal(profile.types, [('samples', 'count'),
                                     (name, 'nanoseconds')], 'types')
        expect_equal(profile.default, name, 'default')
        period = profile.raw['period']
        expect_equal(period, 2000000, 'period')
        times = profile.flat_and_cum(name)
        counts = profile.flat_and_cum('samples')
        _, functions = reported(output)
        expect(any(f['calls'] > 20 for f in functions.values()), 'no samples')
        for function, about in functions.items():
            expect_equal(times.get(function), [
                about['self_ns'], about['total_ns']], function)
            expect_equal(counts[function][1], about['calls'], function)
            expect_equal(counts[function][0] * period, about['self_ns'],
                         function)


@test
def labels_say_the_thread():
    output = recording_of('threads.c').output
    profile = exported(output)
    about = json.loads(shim_report('report', '--format', 'json', output))
    calls = {}
    for _, values, labels in profile.samples:
        key = labels['pid'], labels['tid'], labels.get('thread', '')
        calls[key] = calls.get(key, 0) + values[0]
    expect(len(calls) > 2, 'threads: %s' % calls)
    wanted = {(t['pid'], t['tid'], t['name'] or ''): t['calls']
              for t in about['threads'] if t['calls']}
    expect_equal(calls, wanted, 'calls of threads')


@test
def groups_are_functions_of_their_own():
    profile = exported(recording_of(
        'grouped.c', 'calltree:by=parse/text',
        flags=['-I', shimtest.PROGRAMS]).output)
    groups = [f for f in profile.functions.values()
              if profile.name(f).startswith('parse[')]
    expect(len(groups) > 2, 'groups: %d' % len(groups))
    for function in groups:
        expect_equal(profile.name(function, 'system_name'), 'parse',
                     profile.name(function))


@test
def functions_have_both_names_and_their_place():
    output = recording_of('unwind.cc').output
    profile, mangled = exported(output), exported(output, '--mangled')
    about = json.loads(shim_report('report', '--format', 'json', output))
    places = {f['mangled']: (f['name'], f['file'] or '', f['line'] or 0)
              for f in about['functions']}
    expect(any(m.startswith('_Z') for m in places), places)
    got = {profile.name(f, 'system_name'): (
        profile.name(f), profile.name(f, 'filename'), f.get('start_line', 0))
        for f in profile.functions.values()}
    expect_equal(got, places, 'functions')
    for function in mangled.functions.values():
        expect_equal(mangled.name(function),
                     mangled.name(function, 'system_name'), 'mangled name')


@test
def mappings_have_build_ids():
    identity = '0123456789abcdef' * 2 + '01234567'
    path = compile('unwind.cc', 'gcc', '-O0', ['-Wl,--build-id=0x' + identity],
                   name='with_build_id')
    profile = exported(record([path], 'calltree').output)
    first = profile.raw['mapping'][0]
    expect_equal((profile.name(first, 'filename'),
                  profile.name(first, 'build_id')),
                 (os.path.realpath(path), identity), 'the first mapping')
    expect(first['has_functions'] and first['has_line_numbers'], first)
    for location in profile.locations.values():
        mapping = profile.mappings[location['mapping_id']]
        expect(mapping['memory_start'] <= location['address'] <
               mapping['memory_limit'], location)


@test
def value_chooses_the_first_column():
    output = recording_of('unwind.cc').output
    for value, name in (('calls', 'calls'), ('self', 'time'),
                        ('total', 'time'), (None, 'time')):
        more = ['--value', value] if value else []
        expect_equal(exported(output, *more).default, name, 'default')
    counts = recording_of('unwind.cc', 'calltree:counts').output
    done = subprocess.run([shimtest.report, 'export', 'pprof', counts,
                           '--value', 'self'], capture_output=True)
    expect_equal((done.returncode, done.stdout), (1, b''), 'counts')
    expect(b'counted, not timed' in done.stderr, done.stderr)


@test
def times_are_those_of_the_run():
    output = recording_of('unwind.cc').output
    about = json.loads(shim_report('report', '--format', 'json', output))
    raw = exported(output).raw
    expect(abs(raw['duration_nanos'] - about['duration_ns']) <= 1, raw)
    # json's numbers are rounded to doubles.
    expect(abs(raw['time_nanos'] - about['processes'][0]['start_real_ns']) <
           1000, raw)


@test
def paths_that_are_too_deep_count_for_their_ancestor():
    output = recording_of('unwind.cc').output
    whole, cut = exported(output), exported(output, '--max-depth', '3')
    expect(max(len(stack) for stack, _, _ in whole.samples) > 3, 'not deep')
    expect_equal(max(len(stack) for stack, _, _ in cut.samples), 3, 'depth')
    for which in 0, 1:
        expect_equal(sum(values[which] for _, values, _ in cut.samples),
                     sum(values[which] for _, values, _ in whole.samples),
                     'sum')
    expect(any('deeper than 3 frames' in c for c in cut.comments),
           cut.comments)


def lose_calls(output, number):
    """Changes the recording so that @number calls were lost for lack of space."""
    for directory, _, names in os.walk(output):
        for name in names:
            if name != '0.calltree':
                continue
            with open(os.path.join(directory, name), 'r+b') as file:
                file.seek(48)           # the root at the start of the first chunk
                offset = struct.unpack('<Q', file.read(8))[0]
                file.seek(offset + 64)
                expect_equal(file.read(8), bytes(8), 'lost')
                file.seek(offset + 64)
                file.write(struct.pack('<Q', number))


@test
def comments_say_how_far_to_believe_it():
    output = recording_of('longjmp.c').output
    comments = '\n'.join(exported(output).comments)
    expect('of the cost of recording subtracted from' in comments, comments)
    expect('calls ended without a leave' in comments, comments)
    expect('command: ' in comments and 'lost' not in comments, comments)
    raw = '\n'.join(exported(output, '--raw').comments)
    expect('cost of recording is not subtracted' in raw, raw)
    lose_calls(output, 12345)
    comments = exported(output).comments
    expect('12345 calls lost: space' in comments, comments)


@test
def output_is_whole_and_no_terminal_gets_it():
    output = recording_of('unwind.cc').output
    directory = new_directory('pprof')
    data = export_to(os.path.join(directory, 'file'), output)
    expect_equal(os.listdir(directory), ['file'], 'files')
    piped = subprocess.run([shimtest.report, 'export', 'pprof', output],
                           stdout=subprocess.PIPE, check=True).stdout
    expect(piped == data, 'stdout and -o differ')
    full = subprocess.run([shimtest.report, 'export', 'pprof', output, '-o',
                           '/dev/full'], stderr=subprocess.PIPE)
    expect_equal(full.returncode, 1, 'status on a full disk')
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        raise shimtest.Skipped('there are no terminals: %s' % error)
    done = subprocess.run([shimtest.report, 'export', 'pprof', output],
                          stdout=theirs, stderr=subprocess.PIPE)
    expect_equal(done.returncode, 2, 'status')
    expect(b'no text for a terminal' in done.stderr, done.stderr)


@test
def protoc_reads_it_and_writes_the_same():
    shimtest.need('protoc')
    path = os.path.join(new_directory('pprof'), 'file')
    data = export_to(path, recording_of('unwind.cc').output)
    plain = subprocess.run(['gzip', '-dc'], input=data, stdout=subprocess.PIPE,
                           check=True).stdout

    def protoc(action, data):
        return subprocess.run(
            ['protoc', '--proto_path=' + PROTO, '--%s=pprof.Profile' % action,
             'profile.proto'], input=data, stdout=subprocess.PIPE,
            check=True).stdout
    text = protoc('decode', plain)
    expect(b'sample {' in text and b'\n1: ' not in text, text[:500])
    again = subprocess.run(['gzip', '-c'], input=protoc('encode', text),
                           stdout=subprocess.PIPE, check=True).stdout
    expect_equal(Profile(again).raw, Profile(data).raw, 'round trip')


def go_top(path, which):
    """{name: (flat, cum)}"""
    done = subprocess.run(
        ['go', 'tool', 'pprof', '-top', '-nodecount=0', '-nodefraction=0',
         '-edgefraction=0', '-unit=ns', '-sample_index=' + which, path],
        capture_output=True, env={**os.environ, 'HOME': new_directory('home')})
    expect_equal(done.returncode, 0, done.stderr.decode())
    rows = re.findall(r'^ *(-?[\d.]+)\w* +\S+ +\S+ +(-?[\d.]+)\w* +\S+ +(.*)$',
                      done.stdout.decode(), re.M)
    return {name: (int(flat), int(cum)) for flat, cum, name in rows}


@test
def go_tool_pprof_shows_what_the_report_shows():
    shimtest.need('go')
    for source, kind in PROGRAMS:
        output = recording_of(source, kind).output
        path = os.path.join(new_directory('pprof'), 'file')
        export_to(path, output)
        expect_sums(source, go_top(path, 'time'), go_top(path, 'calls'),
                    reported(output)[1])


if __name__ == '__main__':
    shimtest.main()
