#!/usr/bin/env python3
"""speedscope.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

`export speedscope` has the same numbers as the report.  A reader of our own checks it,
and so do the tables of speedscope itself in a browser, if it is installed: with `npm
install --global speedscope`, or in the directory SPEEDSCOPE.
"""
import functools
import http.server
import json
import os
import re
import subprocess
import threading
import time

import browser
import shimtest
from browser import Browser
from shimtest import (Skipped, compile, expect, expect_equal, new_directory,
                      record, shim_report, test)

SCHEMA = 'https://www.speedscope.app/file-format-schema.json'


def export(output, *arguments):
    about = json.loads(shim_report('export', 'speedscope', output, *arguments))
    expect_equal(about['$schema'], SCHEMA, 'schema')
    return about


def sums_of(about, profile):
    """{frame: [self, total]}; checks the order of the events as well."""
    sums, stack, inside = {}, [], {}
    at = profile['startValue']
    for event in profile['events']:
        expect(event['at'] >= at, 'time goes back: %s' % event)
        if stack:
            sums[stack[-1]][0] += event['at'] - at
        for frame, depth in inside.items():
            sums[frame][1] += event['at'] - at if depth else 0
        at, frame = event['at'], event['frame']
        sums.setdefault(frame, [0, 0])
        if event['type'] == 'O':
            stack.append(frame)
            inside[frame] = inside.get(frame, 0) + 1
        else:
            expect_equal(stack.pop(), frame, 'what is closed')
            inside[frame] -= 1
    expect_equal((stack, at), ([], profile['endValue']), 'the end')
    frames = about['shared']['frames']
    named = {}
    for frame, of_frame in sums.items():
        named.setdefault(frames[frame]['name'], []).append(of_frame)
    return {name: found[0] for name, found in named.items()
            if len(found) == 1}


@functools.lru_cache(maxsize=None)
def recording_of(source, profile):
    result = record([compile(source, 'gcc', '-O0')], profile)
    expect_equal(result.status, 0, source)
    return result.output


def reported(output, *arguments):
    about = json.loads(shim_report('report', '--format', 'json', output,
                                   *arguments))
    return {f['name']: f for f in about['functions']
            if sum(g['name'] == f['name'] for g in about['functions']) == 1}


@test
def self_and_total_are_those_of_the_report():
    for source, profile, more in (
            ('unwind.cc', 'calltree:exact', ['--raw']),
            ('exceptions.cc', 'calltree:exact', ['--raw']),
            ('threads.c', 'calltree:exact', ['--raw']),
            ('unwind.cc', 'calltree', []), ('threads.c', 'calltree', [])):
        output = recording_of(source, profile)
        about = export(output, *more)
        sums = sums_of(about, about['profiles'][0])
        functions = reported(output, *more)
        expect(len(functions) > 3, source)
        for name, function in functions.items():
            own, total = sums[name]
            expect(abs(own - function['self_ns']) <= 300,
                   'self of %s: %s, not %s' % (name, own, function['self_ns']))
            if more:
                expect(abs(total - function['total_ns']) <= 300,
                       'total of %s: %s, not %s' % (name, total,
                                                    function['total_ns']))


# The subtraction leaves many paths with negative times.
@test
def self_times_are_those_of_the_report_whatever_is_subtracted():
    make = os.path.join(os.environ.get('SHIM_BUILD', ''), 'tests', 'report',
                        'make_recording')
    expect(os.path.exists(make), 'SHIM_BUILD has no make_recording')
    output = new_directory('made') + '/recording'
    subprocess.run([make, output, '--paths', '5000', '--mode', 'coarse',
                    '--depth', '2', '--functions', '60',
                    '--image', shimtest.report], stdout=subprocess.DEVNULL,
                   check=True)
    about = json.loads(shim_report('export', 'json', output))
    expect(any(path['self_ns'] == 0 for path in about['paths']),
           'nothing is less than nothing')
    whole = export(output)
    sums = sums_of(whole, whole['profiles'][0])
    compared = 0
    for name, function in reported(output).items():
        if name in sums:
            expect(abs(sums[name][0] - function['self_ns']) <= 100,
                   'self of %s: %s, not %s' % (name, sums[name],
                                               function['self_ns']))
            compared += 1
    expect(compared > 30, 'only %d functions' % compared)


@test
def calls_bytes_and_samples_are_exact():
    output = recording_of('threads.c', 'calltree:counts')
    about = export(output)
    expect_equal(about['profiles'][0]['unit'], 'none', 'unit')
    sums = sums_of(about, about['profiles'][0])
    for name, function in reported(output).items():
        expect_equal(sums[name][0], function['calls'], name)
    program = compile('remembered.c', 'gcc', '-O1', ['-fno-builtin'])
    output = record([program, 'all'], 'memory').output
    functions = reported(output)
    for value, key, unit in (('bytes', 'allocated_bytes', 'bytes'),
                             ('peak', 'peak_bytes', 'bytes'),
                             ('allocations', 'allocations', 'none')):
        about = export(output, '--value', value)
        expect_equal(about['profiles'][0]['unit'], unit, 'unit')
        sums = sums_of(about, about['profiles'][0])
        for name, function in functions.items():
            expect_equal(sums.get(name, [0])[0], function['memory'][key], name)


@test
def waits_for_locks_are_those_of_folded():
    program = compile('waits.cc', 'gcc', '-O1', ['-std=c++17'])
    output = record([program, 'paths'], 'locks').output
    about = export(output)
    wanted = sum(int(line.rsplit(' ', 1)[1]) for line in shim_report(
        'export', 'folded', output, '--value', 'waits').splitlines())
    got = about['profiles'][0]['endValue']
    expect(wanted > 0 and abs(got - wanted) <= 100, '%s, not %s' % (got, wanted))


@test
def threads_are_profiles_of_their_own():
    output = recording_of('threads.c', 'calltree:counts')
    about = export(output, '--threads')
    whole = json.loads(shim_report('report', '--format', 'json', output))
    wanted = {'%s/%s %s' % (t['pid'], t['tid'], t['name'] or ''): t['calls']
              for t in whole['threads'] if t['calls']}
    got = {p['name']: p['endValue'] for p in about['profiles']}
    expect_equal(got, wanted, 'calls of threads')


@test
def paths_that_are_too_deep_count_for_their_ancestor():
    output = recording_of('unwind.cc', 'calltree:counts')
    done = subprocess.run([shimtest.report, 'export', 'speedscope', output,
                           '--max-depth', '3'], capture_output=True)
    expect(b'deeper than 3' in done.stderr, done.stderr)
    about = json.loads(done.stdout)
    profile = about['profiles'][0]
    depth = deepest = 0
    for event in profile['events']:
        depth += 1 if event['type'] == 'O' else -1
        deepest = max(deepest, depth)
    expect_equal((deepest, profile['endValue']),
                 (3, export(output)['profiles'][0]['endValue']), 'all calls')


def is_speedscope(place):
    return os.path.exists(place + '/dist/release/index.html')


@functools.lru_cache(maxsize=None)
def speedscope_directory():
    """The directory of speedscope's page: the user's choice, or where npm installs it
    for the tests."""
    place = os.environ.get('SPEEDSCOPE', '')
    if is_speedscope(place):
        return place + '/dist/release'
    shimtest.need('npm')
    prefix = os.path.join(shimtest.fixtures, 'npm')
    place = os.path.join(prefix, 'node_modules', 'speedscope')
    if not is_speedscope(place):
        os.makedirs(prefix, exist_ok=True)
        done = subprocess.run(
            ['npm', 'install', '--prefix', prefix, '--no-save', '--no-audit',
             '--no-fund', '--ignore-scripts', 'speedscope'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, timeout=200)
        # The test does not require a reachable registry.
        if re.search('E(NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT|CONNRESET)|'
                     'network', done.stderr):
            raise Skipped('npm cannot reach its registry, and SPEEDSCOPE names '
                          'no copy of speedscope')
        expect(done.returncode == 0 and is_speedscope(place), done.stderr)
    return place + '/dist/release'


class Handler(http.server.SimpleHTTPRequestHandler):
    profile = None

    def translate_path(self, path):
        return self.profile if os.path.basename(path) == os.path.basename(self.profile or '') else \
            super().translate_path(path)

    def log_message(self, *_):
        pass


TABLE = """
return [...document.querySelectorAll('tr')].slice(1).map(row =>
    [...row.cells].map(cell => cell.innerText.trim()));
"""
UNITS = {'ns': 1, '\u00b5s': 1e3, 'ms': 1e6, 's': 1e9, '': 1}


def number_of(text):
    """The value of "1.23ms (4.5%)", and its possible rounding error."""
    number, unit = re.match(r'([\d.,]+)(\D*) \(', text + ' (').groups()
    digits = len(number.partition('.')[2])
    scale = UNITS[unit.strip()]
    return float(number.replace(',', '')) * scale, scale * 10 ** -digits


def show(look):
    """Calls @look with a window and the address of speedscope's page."""
    reason = browser.missing()
    if reason:
        raise Skipped(reason)
    directory = speedscope_directory()
    server = http.server.ThreadingHTTPServer(
        ('127.0.0.1', 0), functools.partial(Handler, directory=directory))
    server.daemon_threads = True        # browsers keep connections open
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with Browser() as window:
            # speedscope renders only visible rows.
            window.devtools('Emulation.setDeviceMetricsOverride', width=1400,
                            height=4000, deviceScaleFactor=1, mobile=False)
            look(window, 'http://127.0.0.1:%d/' % server.server_port)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def shown_in(window, url, format, output, *more, names=(), name='profile.json'):
    """{name: (self, total)} from its table, as text.  The rows come one after another:
    those of @names are waited for."""
    # A name of its own: the browser keeps a file that is as old as the last, in seconds.
    directory = new_directory('speedscope')
    name = os.path.basename(directory) + '-' + name
    Handler.profile = os.path.join(directory, name)
    shim_report('export', format, output, '-o', Handler.profile, *more)
    window.open('about:blank')
    window.open(url + 'index.html#profileURL=%s%s' % (url, name))
    window.wait('return document.title.includes(" - speedscope")')
    window.keys(['3'])
    end = time.monotonic() + 60
    while True:
        shown = {name: (own, total) for total, own, name in window.wait(TABLE)}
        missing = set(names) - set(shown)
        if not missing or time.monotonic() > end:
            break
        time.sleep(0.1)
    expect(not missing, 'missing: %s, of %s' % (missing, shown))
    return shown


def look_at_profiles(window, url):
    for source, profile, more in (('unwind.cc', 'calltree:exact', ['--raw']),
                                  ('threads.c', 'calltree:counts', [])):
        output = recording_of(source, profile)
        functions = reported(output, *more)
        shown = shown_in(window, url, 'speedscope', output, *more, names=functions)
        expect(len(shown) >= len(functions) > 3, 'rows: %s' % shown)
        for name, function in functions.items():
            own, total = (number_of(text) for text in shown[name])
            if profile == 'calltree:counts':
                expect_equal(own[0], function['calls'], name)
                continue
            for what, (got, error) in ('self_ns', own), ('total_ns', total):
                expect(abs(got - function[what]) <= 300 + error,
                       '%s of %s: %s, not %s' % (what, name, got,
                                                 function[what]))


def look_at_traces(window, url):
    """A trace in Chrome's format, and as a timeline of its own.  Each event is rounded to
    a nanosecond."""
    for source, format, *more in (('unwind.cc', 'chrome'), ('exceptions.cc', 'chrome'),
                                  ('unwind.cc', 'speedscope', '--from', '0s')):
        output = recording_of(source, 'trace')
        functions = reported(output, '--raw', '--limit', '0')
        shown = shown_in(window, url, format, output, *more, names=functions)
        expect(len(shown) >= len(functions) > 3, 'rows: %s' % shown)
        for name, function in functions.items():
            own, total = (number_of(text) for text in shown[name])
            for what, (got, error) in ('self_ns', own), ('total_ns', total):
                expect(abs(got - function[what]) <= error +
                       300 + function['calls'], '%s of %s in %s: %s, not %s' %
                       (what, name, source, got, function[what]))


def look_at_perf_script(window, url):
    """speedscope weighs by time only, which is right for samples of one period."""
    source = os.path.join(new_directory('sampled'), 'sampled.c')
    with open(source, 'w') as file:
        file.write('static volatile long sink;\n'
                   '__attribute__((noinline)) void spin(long n)\n'
                   '{ while (n--) sink += n; }\n'
                   'int main(void) { spin(1000000000); return 0; }\n')
    output = record([compile(source, optimize='-O2')], 'sampling').output
    samples = dict(line.rsplit(' ', 1) for line in shim_report(
        'export', 'folded', output, '--value', 'samples').splitlines())
    wanted = sum(int(n) for path, n in samples.items() if path.endswith(';spin'))
    shown = shown_in(window, url, 'perf-script', output, names=['spin'],
                     name='app.linux-perf.txt')
    got, error = number_of(shown['spin'][0])
    expect(wanted > 100 and abs(got - wanted * 1e6) <= 2e6 + error, (shown, wanted))


@test
def speedscope_reads_the_text_of_perf_script():
    show(look_at_perf_script)


@test
def speedscope_shows_what_the_report_shows():
    show(look_at_profiles)


@test
def speedscope_shows_a_trace_of_chrome_as_the_report_does():
    show(look_at_traces)


if __name__ == '__main__':
    shimtest.main()
