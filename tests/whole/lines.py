#!/usr/bin/env python3
"""lines.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

What samples find in inlined code, and on which line (tests/programs/lined.c).
"""
import csv
import json
import os
import random
import re
import shutil
import subprocess

import shimtest
from profile_proto import Profile
from shimtest import (compile, expect, expect_equal, new_directory, run,
                      shim_report, test)

ROUNDS = '1500000'


def program(family='gcc', optimize='-O2', flags=(), instrument=False):
    return compile('lined.c', family, optimize, list(flags),
                   name='lined' + '-hooks' * instrument + ''.join(flags),
                   instrument=instrument)


def sampled(path, profile='sampling', rounds=ROUNDS):
    """A recording of the program at @path."""
    directory = new_directory('recording')
    done = run([path, rounds], directory, profile)
    expect_equal((done.status, done.stderr), (0, ''), 'the program')
    return directory


def folded(directory, *arguments):
    """{(function, ...): count}"""
    paths = {}
    for line in shim_report('export', 'folded', directory,
                            *arguments).splitlines():
        path, count = line.rsplit(' ', 1)
        paths[tuple(path.split(';'))] = int(count)
    return paths


def from_main(paths):
    """The paths below main, with their share."""
    whole = sum(paths.values())
    found = {}
    for path, count in paths.items():
        if 'main' in path:
            below = path[path.index('main'):]
            found[below] = found.get(below, 0) + count / whole
    return found


@test
def samples_have_the_functions_that_are_inlined():
    for family in 'gcc', 'clang':
        paths = from_main(folded(sampled(program(family)), '--value', 'samples'))
        inlined = paths.get(('main', 'inlining', 'twice', 'mix'), 0)
        recursive = paths.get(('main', *4 * ['recurse'], 'mix'), 0)
        # clang makes a loop of the recursion, and so does gcc where it can.
        recursive += paths.get(('main', 'recurse', 'mix'), 0)
        expect(0.5 < inlined < 0.8 and 0.2 < recursive < 0.5,
               '%s: %s' % (family, paths))


@test
def a_call_of_a_function_and_a_sample_in_its_inlined_code_have_one_path():
    for family in 'gcc', 'clang':
        path = program(family, instrument=True)
        calls = set(folded(sampled(path, 'calltree', '1000'), '--value',
                           'calls'))
        samples = folded(sampled(path, rounds='300000'), '--value', 'samples')
        counted = {tuple(f for f in below if not f.startswith('__cyg_profile'))
                   for below, share in from_main(samples).items()
                   if share > 0.02}
        expect(('main', 'inlining', 'twice', 'mix') in counted, samples)
        # (Hooks have functions of their own.)
        functions = {f for call in calls for f in call}
        counted = {tuple(f for f in below if f in functions)
                   for below in counted}
        expect(counted <= calls, '%s: %s are no calls of %s' % (
            family, counted - calls, calls))


# --- profrun annotate ---

SOURCE = os.path.join(shimtest.PROGRAMS, 'lined.c')


def line_of(mark):
    """The number of the line with this mark."""
    with open(SOURCE) as file:
        for number, line in enumerate(file, 1):
            if '/* %s */' % mark in line:
                return number
    raise shimtest.Failed('no line is marked %s' % mark)


def annotated(directory, *words):
    """{function: {line: its object}}, of --json"""
    about = json.loads(shim_report('annotate', *words, directory, '--json'))
    return {function['name']: {line['line']: line
                               for line in function['lines']}
            for function in about['functions']}


def refused(*words):
    done = subprocess.run([shimtest.report, 'annotate', *words],
                          capture_output=True, text=True, timeout=60)
    expect(done.returncode in (1, 2) and not done.stdout, done.stdout)
    return done.stderr


@test
def samples_stand_at_their_lines():
    for family in 'gcc', 'clang':
        directory = sampled(program(family))
        about = json.loads(shim_report('annotate', 'mix', directory, '--json'))
        lines = annotated(directory, '^(mix|inlining|twice|main)$')
        everything = about['samples']
        expect(everything > 20 and about['period_ns'] == 1000000, about)
        expect_equal(set(lines), {'mix', 'inlining', 'twice', 'main'}, 'names')
        hot = max(lines['mix'].values(), key=lambda line: line['self_samples'])
        # (Of a short loop, some samples stand at its head.)
        expect(hot['line'] in (line_of('MIX'), line_of('MIX') - 1),
               (family, hot))
        expect_equal(hot['file'], os.path.realpath(SOURCE), 'file')
        if hot['line'] == line_of('MIX'):
            expect('MIX' in hot['source'], hot)
        expect(sum(line['self_samples'] for line in lines['mix'].values()) >
               0.9 * everything, lines['mix'])
        for function, mark in ('twice', 'TWICE'), ('inlining', 'INLINING'):
            total = lines[function][line_of(mark)]['total_samples']
            expect(0.5 * everything < total < 0.8 * everything,
                   (family, function, total, everything))
        main = lines['main'][line_of('MAIN')]
        expect(main['self_samples'] == 0 and
               main['total_samples'] > 0.5 * everything, main)


@test
def recursion_counts_once_in_a_line():
    # (gcc makes a loop of it at -O2.)
    directory = sampled(program('gcc', '-O1', ['-fno-optimize-sibling-calls']))
    about = json.loads(shim_report('annotate', 'recurse', directory, '--json'))
    lines = {line['line']: line for line in about['functions'][0]['lines']}
    total = about['functions'][0]['total_samples']
    expect(total > 10, about)
    for mark in 'RECURSE', 'DEEPEST':
        got = lines[line_of(mark)]['total_samples']
        expect(0.9 * total <= got <= total, (mark, got, total))


@test
def text_shows_the_source_and_the_hottest_lines_first():
    directory = sampled(program())
    text = shim_report('annotate', 'mix', directory)
    head, listing = text.split(os.path.realpath(SOURCE) + '\n')
    expect(re.search(r'^mix \[lined lined\.c:\d+\]$', head, re.M), head)
    expect('hottest lines' in head and 'lined.c: x = (x * 2654435761u)' in head,
           head)
    expect(re.search(r'^ {40,}\d+  \S', listing, re.M), 'lines without samples: ' + listing)
    expect('static inline' in listing and '/* MIX */' in listing, listing)
    expect('\033' not in text, 'colour in a pipe')
    expect('\033[' in shim_report('annotate', 'mix', directory, '--color',
                                  'always'), 'no colour')
    # Without a name: the hottest function.
    expect_equal(shim_report('annotate', directory), text, 'the hottest')
    # Its loop has samples in two lines at least.
    directory = sampled(program(flags=('-O0',)))
    text = shim_report('annotate', 'mix', directory)
    short = shim_report('annotate', 'mix', directory, '--limit', '1',
                        '--context', '0')
    expect('--limit 0 shows all' in short and len(short) < len(text), short)


@test
def several_functions_are_shown_and_wrong_names_refused():
    directory = sampled(program())
    text = shim_report('annotate', '^(mix|twice)$', directory)
    expect('\nmix [' in '\n' + text and '\ntwice [' in text, text)
    expect('close: ' in refused('twicee', directory), 'suggestion')
    expect('no regular expression' in refused('(', directory), 'expression')
    calls = run([program(instrument=True), '10'], new_directory('calls'),
                'calltree').output
    expect('no samples with lines' in refused('mix', calls), 'calls alone')


@test
def a_function_without_samples_is_named_so():
    """Its calls were recorded, so it is not unknown."""
    both = sampled(program(instrument=True), 'sampling;calltree')
    expect_equal(refused('idle', both), 'profrun: no sample was taken in function idle\n',
                 'idle')
    expect('close: idle' not in refused('idly', both), 'suggestion')


@test
def sources_are_sought_where_they_are_said_to_be():
    place = new_directory('sources')
    source = os.path.join(place, 'a', 'gone.c')
    os.makedirs(os.path.dirname(source))
    shutil.copy(SOURCE, source)
    path = os.path.join(place, 'gone')
    subprocess.run(['gcc', '-O2', '-g', source, '-o', path], check=True)
    directory = sampled(path)
    expect('/* MIX */' in shim_report('annotate', 'mix', directory), 'there')
    moved = os.path.join(place, 'b')
    os.rename(os.path.dirname(source), moved)
    text = shim_report('annotate', 'mix', directory)
    expect('not found (sought: %s); --source-dir' % source in text and
           '/* MIX */' not in text, text)
    number = ' %d  \n' % line_of('MIX')
    expect(number in text, text)
    for value in moved, '%s=%s' % (os.path.dirname(source), moved):
        text = shim_report('annotate', 'mix', directory, '--source-dir', value)
        expect(os.path.join(moved, 'gone.c') in text and '/* MIX */' in text,
               text)
    # A part of a name is no directory, and a pipe is not read.
    text = shim_report('annotate', 'mix', directory, '--source-dir',
                       '%s=%s' % (os.path.dirname(source)[:-1], place + '/'))
    expect('not found' in text, text)
    os.makedirs(os.path.dirname(source))
    os.mkfifo(source)
    expect('not found' in shim_report('annotate', 'mix', directory), 'pipe')


@test
def escapes_in_a_source_are_not_the_terminals():
    place = new_directory('escapes')
    source = os.path.join(place, 'hostile.c')
    with open(SOURCE) as file:
        text = file.read()
    with open(source, 'w') as file:
        file.write(text.replace('/* MIX */', '/* \033[31m\x01 */'))
    path = os.path.join(place, 'hostile')
    subprocess.run(['gcc', '-O2', '-g', source, '-o', path], check=True)
    text = shim_report('annotate', 'mix', sampled(path))
    expect('\033' not in text and '\\x1b[31m\\x01' in text, text)


@test
def a_program_without_lines_is_told_so():
    for flags, why in ((['-g0'], 'has no debug information'),
                       (['-g0', '-s'], 'has no debug information')):
        path = program(flags=flags)
        directory = sampled(path)
        text = shim_report('annotate', directory)
        expect('no line is known: %s %s' % (path, why) in text, text)


@test
def histograms_and_budgets_have_lines_too():
    for profile, instrument in (('pchist', False),
                                ('calltree:budget=20', True)):
        directory = sampled(program(instrument=instrument), profile,
                            '200000' if instrument else '6000000')
        lines = annotated(directory, '^mix$')['mix']
        hot = max(lines.values(), key=lambda line: line['self_samples'])
        expect(hot['line'] in (line_of('MIX'), line_of('MIX') - 1) and
               hot['self_samples'] > 5, (profile, lines))


@test
def counts_of_coverage_stand_beside_the_samples():
    directory = sampled(program(), 'sampling;coverage')
    lines = annotated(directory, 'mix')['mix']
    expect(lines[line_of('MIX')]['count'] >= 1, lines)
    titles = shim_report('annotate', 'mix', directory).split('\n')
    expect(any(re.fullmatch(' share  samples      self     total       count '
                            '  line', line) for line in titles), titles)


@test
def code_has_samples_lines_and_jumps():
    for family in 'gcc', 'clang':
        directory = sampled(program(family))
        text = shim_report('annotate', 'inlining', directory, '--asm')
        rows = re.findall(r'^ *(\d+\.\d\d) +([\d,]+) (.{5}) +([0-9a-f]+)  (\S.*)',
                          text, re.M)
        about = json.loads(shim_report('annotate', 'inlining', directory,
                                       '--json'))['functions'][0]
        expect_equal(sum(int(row[1].replace(',', '')) for row in rows),
                     about['total_samples'], text)
        expect(99 < sum(float(row[0]) for row in rows) < 101, text)
        expect('imul' in text and
               ' lined.c:%d  x = (x * 2654435761u)' % line_of('MIX') in text,
               text)
        # The loops jump back: an arrow from below.
        lanes = re.findall(r'^.{15} (.{5}) ', text, re.M)
        expect(any('+' in lane and lane.endswith('>') for lane in lanes) and
               any('+' in lane and lane.endswith('-') for lane in lanes), text)
        expect(re.search(r'  j[a-z]+ 0x[0-9a-f]+ <inlining\+0x', text), text)
        expect('inlined everywhere' in
               shim_report('annotate', 'mix', directory, '--asm'), 'mix')


@test
def the_code_of_a_stripped_program_is_shown():
    directory = sampled(program(flags=['-g0', '-s']))
    text = shim_report('annotate', directory)
    expect('no line is known' in text and 'imul' in text, text)


# --- exports ---

@test
def pprof_has_the_lines():
    directory = sampled(program())
    path = os.path.join(new_directory('pprof'), 'profile')
    shim_report('export', 'pprof', directory, '-o', path)
    profile = Profile(open(path, 'rb').read())
    wanted = annotated(directory, '^(mix|inlining)$')
    for name, lines in wanted.items():
        found = profile.lines(name)
        expect_equal({line: flat for line, (flat, _) in found.items() if flat},
                     {n: line['self_samples'] for n, line in lines.items()
                      if line['self_samples']}, name)
        expect_equal({line: cum for line, (_, cum) in found.items()},
                     {n: line['total_samples'] for n, line in lines.items()},
                     name)
    if shutil.which('go'):
        done = subprocess.run(['go', 'tool', 'pprof', '-list', 'mix', path],
                              capture_output=True, text=True, timeout=60)
        hot = [line for line in done.stdout.splitlines() if 'MIX' in line]
        expect(hot and 'ms' in hot[0], done.stdout + done.stderr)


@test
def hidden_functions_leave_their_time_to_the_line_that_calls_them():
    directory = sampled(program())
    path = os.path.join(new_directory('pprof'), 'profile')
    shim_report('export', 'pprof', directory, '-o', path, '--hide', 'mix',
                '--hide', 'twice')
    lines = Profile(open(path, 'rb').read()).lines('inlining')
    wanted = annotated(directory, 'inlining')['inlining']
    expect_equal(lines[line_of('INLINING')][0],
                 wanted[line_of('INLINING')]['total_samples'], 'flat')


@test
def folded_csv_and_perf_script_have_the_lines_that_are_asked_for():
    directory = sampled(program())
    wanted = {(name, line): (about['self_samples'], about['total_samples'])
              for name, lines in annotated(
                  directory, '^(mix|inlining|twice|main)$').items()
              for line, about in lines.items()}
    rows = csv.DictReader(shim_report('export', 'csv', '--lines',
                                      directory).splitlines())
    got = {(row['name'], int(row['line'])):
           (int(row['self_samples']), int(row['total_samples']))
           for row in rows if row['line']}
    expect_equal({key: got.get(key) for key in wanted}, wanted, 'csv')
    # A stack counts for the innermost line, and once for each line of it.
    stacks = [line.rsplit(' ', 1) for line in shim_report(
        'export', 'folded', '--lines', '--value', 'samples',
        directory).splitlines()]
    events = shim_report('export', 'perf-script', '--lines', directory)
    # (A frame without a line is one, too.)
    frames = [re.findall(r'^\t +[0-9a-f]+ (.*) \(.*\)(?:\n  lined\.c:(\d+))?$',
                         event, re.M) for event in events.split('\n\n')]
    for (name, line), counts in wanted.items():
        place = '%s (lined.c:%d)' % (name, line)
        found = [[int(n) for stack, n in stacks
                  if stack.split(';')[-1] == place],
                 [int(n) for stack, n in stacks if place in stack.split(';')]]
        expect_equal(tuple(map(sum, found)), counts, 'folded, ' + place)
        key = name, str(line)
        expect_equal((sum(each[:1] == [key] for each in frames),
                      sum(key in each for each in frames)), counts,
                     'perf-script, ' + place)
    for words in (['speedscope'], ['folded', '--value', 'bytes'],
                  ['csv', '--threads']):
        done = subprocess.run([shimtest.report, 'export', *words, '--lines',
                               directory], capture_output=True, text=True)
        expect(done.returncode == 2 and '--lines' in done.stderr, done.stderr)


@test
def calls_have_no_lines():
    calls = sampled(program('gcc', instrument=True), 'calltree', '1000')
    done = subprocess.run([shimtest.report, 'export', 'folded', '--lines',
                           calls], capture_output=True, text=True)
    expect(done.returncode == 1 and 'calls have no lines' in done.stderr,
           done.stderr)


# --- code that a program makes while it runs ---

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')


def names_of(directory):
    return {function['name']: function['calls'] for function in json.loads(
        shim_report('report', '--format', 'json', directory))['functions']}


def made(*words, at=None):
    """A recording by profrun, and the names in it."""
    at = at or new_directory('made')
    directory = os.path.join(at, 'recording')
    command = [PROFRUN, '-q', '--no-report', '-p', 'sampling', '-o', directory,
               '--', compile('made.c', 'gcc', '-O1', instrument=False), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60,
                          cwd=at)
    expect_equal(done.returncode, 0, done.stderr)
    for path in os.listdir(directory):
        if '.' in path:
            try:
                os.unlink('/tmp/perf-%s.map' % path.split('.')[0])
            except FileNotFoundError:
                pass
    return directory, names_of(directory)


@test
def code_that_was_made_has_the_names_of_its_map():
    directory, names = made('map')
    first = names.get('LazyCompile:first a.js:1', 0)
    expect(first > 20 and names.get('second', 0) > 10 and
           'old' not in names and 'bad' not in names, names)
    # The copy is the recording's, and can be moved with it.
    kept = [os.path.join(at, name) for at, _, files in os.walk(directory)
            for name in files if name == 'jit-map']
    expect_equal(len(kept), 1, kept)
    expect_equal(os.stat(kept[0]).st_mode & 0o777, 0o600, 'mode')
    expect('its code is in no file' in shim_report('annotate', 'first',
                                                   directory), 'annotate')
    with open(kept[0], 'wb') as file:
        file.write(bytes(range(256)) * 64 + b'\n\nfff fff')
    expect('[unknown code]' in names_of(directory), 'damaged')
    os.unlink(kept[0])
    os.symlink('/etc/passwd', kept[0])
    done = subprocess.run([shimtest.report, 'report', directory],
                          capture_output=True, text=True, timeout=60)
    expect('root' not in done.stdout, done.stdout)


def source_of_made():
    path = os.path.join(new_directory('source'), 'a.js')
    with open(path, 'w') as file:
        file.write('one\nfunction first(n) {\n  x *= n;\n  return x;\n')
    return path


def jit_dump(directory):
    kept = [os.path.join(at, name) for at, _, files in os.walk(directory)
            for name in files if name == 'jit-dump']
    expect_equal(len(kept), 1, kept)
    return kept[0]


def expect_first_and_second(directory, names, source):
    first = 'JS:*first %s:1:2' % source
    expect(names.get(first, 0) > 20 and names.get('second', 0) > 10 and
           'old' not in names, names)
    expect('[made at run time a.js:2]' in shim_report('report', directory),
           shim_report('report', directory))
    text = shim_report('annotate', first, directory)
    rows = [line for line in text.splitlines() if line.endswith('x *= n;')]
    expect(rows and float(rows[-1].split()[0]) > 1, text)


@test
def code_that_was_made_has_the_names_and_lines_of_its_dump():
    source = source_of_made()
    directory, names = made('dump', source)
    expect_first_and_second(directory, names, source)
    kept = jit_dump(directory)
    expect_equal(os.stat(kept).st_mode & 0o777, 0o600, 'mode')
    with open(kept, 'rb') as file:
        whole = file.read()
    expect(b'\x0f\xaf\xc7\xff\xcf' not in whole, 'the code is kept')


@test
def lines_of_v8_are_found_although_names_of_files_are_overwritten():
    source = source_of_made()
    directory, names = made('v8', source)
    expect_first_and_second(directory, names, source)


@test
def a_dump_without_lines_has_names():
    directory, names = made('dump', '0')
    expect(names.get('JS:*first 0:1:2', 0) > 20, names)
    expect('no line is known' in shim_report('annotate', 'second', directory),
           'annotate')


@test
def a_dump_of_another_is_not_kept():
    at = new_directory('made')
    other = os.path.join(new_directory('other'), 'dump')
    with open(other, 'wb'):
        pass
    script = os.path.join(at, 'run')
    with open(script, 'w') as file:
        file.write('#!/bin/sh\nln -s %s jit-$$.dump\nexec "$@"\n' % other)
    os.chmod(script, 0o700)
    directory = os.path.join(at, 'recording')
    done = subprocess.run(
        [PROFRUN, '-q', '--no-report', '-p', 'sampling', '-o', directory, '--',
         script, compile('made.c', 'gcc', '-O1', instrument=False)],
        capture_output=True, text=True, timeout=60, cwd=at)
    expect_equal(done.returncode, 0, done.stderr)
    expect(not any('jit-dump' in files for _, _, files in os.walk(directory)),
           'a symbolic link was followed')


@test
def a_damaged_dump_ends_where_it_is_damaged():
    directory, _ = made('dump', source_of_made())
    kept = jit_dump(directory)
    with open(kept, 'rb') as file:
        whole = file.read()
    rng = random.Random(1)
    for length in (0, 8, 39, 40, 47, 56, 90, 120, len(whole) - 1):
        with open(kept, 'wb') as file:
            file.write(whole[:length])
        names_of(directory)
    for _ in range(60 if shimtest.ALL else 20):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            damaged[rng.randrange(40, len(whole))] = rng.choice(
                (0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        with open(kept, 'wb') as file:
            file.write(damaged)
        shim_report('annotate', '.*', directory)
    with open(kept, 'wb') as file:
        file.write(whole[:4] + b'\2' + whole[5:])
    expect('[unknown code]' in names_of(directory), 'another version')


@test
def code_without_a_map_is_unknown():
    _, names = made()
    expect(names.get('[unknown code]', 0) > 20, names)


if __name__ == '__main__':
    shimtest.main()
