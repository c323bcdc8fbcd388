"""Exports of call paths for graphviz, for readers of perf script, and as a part of another
page; speedscope.py, pprof.py and others have formats of their own."""

import collections
import html.parser
import json
import os
import re
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record, run,
                      shim_report, test)

recorded = {}


def recording_of(source, profile):
    key = source, profile
    if key not in recorded:
        result = record([compile(source)], profile)
        expect_equal(result.status, 0, source)
        recorded[key] = result.output
    return recorded[key]


def functions_of(output, *more):
    about = json.loads(shim_report('report', output, '--format', 'json', '--limit', '0',
                                   *more))
    return {f['name']: f for f in about['functions']}


def folded(output, *more):
    paths = {}
    for line in shim_report('export', 'folded', output, *more).splitlines():
        path, count = line.rsplit(' ', 1)
        paths[path] = int(count)
    return paths


# --- dot ---

def graph(output, *more):
    """({label of a box}, {(caller, callee): label of an arrow}), as graphviz reads it."""
    shimtest.need('dot')
    text = shim_report('export', 'dot', output, *more)
    about = json.loads(subprocess.run(['dot', '-Tdot_json'], input=text, text=True,
                                      capture_output=True, check=True).stdout)
    boxes = {box['_gvid']: box['label'].split('\\n') for box in about['objects']}
    arrows = {(boxes[e['tail']][0], boxes[e['head']][0]): e['label'].split('\\n')
              for e in about.get('edges', ())}
    return {label[0]: label[1:] for label in boxes.values()}, arrows, about


@test
def graphviz_reads_the_functions_of_the_report_and_their_calls():
    output = recording_of('unwind.cc', 'calltree:exact')
    functions = functions_of(output)
    boxes, arrows, _ = graph(output, '--min-percent', '0')
    expect_equal(sorted(boxes), sorted(functions), 'boxes')
    for name, function in functions.items():
        expect_equal(boxes[name][-1], 'calls: %d' % function['calls'], name)
    wanted = collections.Counter()
    for path, count in folded(output, '--value', 'calls').items():
        for caller, callee in [path.split(';')[-2:]] if ';' in path else []:
            wanted[caller, callee] += count
    expect_equal({ends: int(label[1][:-2]) for ends, label in arrows.items()},
                 dict(wanted), 'arrows')


@test
def a_graph_says_what_it_leaves_out():
    output = recording_of('unwind.cc', 'calltree:exact')
    boxes, _, about = graph(output, '--min-percent', '50')
    everything, _, whole = graph(output, '--min-percent', '0')
    expect(0 < len(boxes) < len(everything), boxes)
    expect('%d of %d functions' % (len(boxes), len(everything)) in about['label'],
           about['label'])
    expect('label' not in whole, whole.get('label'))
    values, _, _ = graph(output, '--value', 'calls', '--min-percent', '0')
    main, = [v for n, v in values.items() if n == 'main']
    expect_equal(main[-1], str(sum(f['calls'] for f in functions_of(output).values())),
                 'calls of main and below')


@test
def graphs_have_names_with_quotes():
    source = os.path.join(new_directory('dot'), 'odd.cc')
    with open(source, 'w') as file:
        file.write('__attribute__((noinline)) long operator"" _km(unsigned long long n)\n'
                   '{ return (long)n; }\nint main() { return 0_km; }\n')
    boxes, arrows, _ = graph(record([compile(source)], 'calltree').output,
                             '--min-percent', '0', '--value', 'calls')
    name = 'operator"" _km(unsigned long long)'
    expect_equal(sorted(boxes), ['main', name], 'boxes')
    expect_equal(list(arrows), [('main', name)], 'arrows')


# --- perf script ---

EVENT = re.compile(r'(\S+) (\d+)/(\d+) (\d+)\.(\d{9}): +(\d+) ([\w-]+):$')
FRAME = re.compile(r'\t +[0-9a-f]+ (.*) \((.*)\)$')


def events_of(output, *more):
    """[(thread, time, period, event, path)]"""
    events = []
    for block in shim_report('export', 'perf-script', output, *more).split('\n\n'):
        if not block:
            continue
        head, *frames = block.split('\n')
        comm, _, tid, s, ns, period, event = EVENT.match(head).groups()
        names = [FRAME.match(frame).group(1) for frame in frames]
        events.append((tid, int(s) * 10 ** 9 + int(ns), int(period), event,
                       ';'.join(reversed(names))))
    return events


def sums_of(events):
    sums = collections.Counter()
    for _, _, period, _, path in events:
        sums[path] += period
    return dict(sums)


@test
def perf_script_has_the_times_and_calls_of_all_paths():
    output = recording_of('unwind.cc', 'calltree:exact')
    for value in 'self', 'calls':
        events = events_of(output, '--value', value)
        expect_equal(sums_of(events), {p: n for p, n in folded(output, '--value', value)
                                       .items() if n}, value)
        expect_equal({e[3] for e in events}, {'cpu-clock' if value == 'self' else 'calls'},
                     'event')


@test
def perf_script_has_one_event_for_each_sample():
    source = os.path.join(new_directory('sampled'), 'sampled.c')
    with open(source, 'w') as file:
        file.write('#include <pthread.h>\nstatic volatile long sink;\n'
                   '__attribute__((noinline)) void *spin(void *p)\n'
                   '{ for (long i = 0; i < 300000000; i++) sink += i; return p; }\n'
                   'int main(void) { pthread_t t; pthread_create(&t, 0, spin, 0);\n'
                   'spin(0); pthread_join(t, 0); return 0; }\n')
    output = record([compile(source, optimize='-O2')], 'sampling').output
    events = events_of(output)
    counts = collections.Counter(path for *_, path in events)
    expect_equal(dict(counts), folded(output, '--value', 'samples'), 'samples')
    expect_equal({e[2] for e in events}, {1000000}, 'periods')
    last = {}
    for tid, time, period, _, _ in events:
        expect_equal(time, last.get(tid, 0), 'time')
        last[tid] = time + period
    expect_equal(len(last), 2, 'threads')


# --- a page in a page ---

class Frames(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))


@test
def an_embedded_page_is_one_element_with_the_page_inside():
    output = recording_of('unwind.cc', 'calltree:exact')
    page = shim_report('html', output, '-o', '-')
    expect_equal(shim_report('export', 'html', output), page, 'export html')
    for verb in ('export', 'html'), ('html',):
        frames = Frames()
        frames.feed(shim_report(*verb, output, '--embed', *(
            ['-o', '-'] if verb == ('html',) else [])))
        (tag, attributes), = frames.found
        expect_equal((tag, attributes['sandbox'].split()[0]), ('iframe', 'allow-scripts'),
                     'the element')
        expect('allow-same-origin' not in attributes['sandbox'], attributes['sandbox'])
        expect_equal(attributes['srcdoc'], page, 'the page inside')


@test
def options_that_a_format_lacks_are_refused():
    output = recording_of('unwind.cc', 'calltree:exact')
    for arguments in (('dot', '--threads'), ('folded', '--embed'),
                      ('html', '--value', 'calls')):
        done = run([shimtest.report, 'export', arguments[0], output, *arguments[1:]])
        expect_equal(done.status, 2, arguments)
        expect(arguments[1] in done.stderr, done.stderr)


if __name__ == '__main__':
    shimtest.main()
