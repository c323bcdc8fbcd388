#!/usr/bin/env python3
"""page.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

`profrun html`: in a browser, the page shows the numbers of the report; names cannot
affect it, it makes no requests, and it is quick.
"""
import base64
import http.server
import json
import os
import re
import threading

import craft
import shimtest
from browser import KEYS
from craft import MEMORY, node, sampled, throttled
from inlined import RATES, Program, at
from pagetest import (exported, human_ns, main, open_page, page_of,
                      page_thread_ms, recording_of, reported, rows_of, traced,
                      window)
from shimtest import (compile, expect, expect_equal, new_directory, record,
                      shim_report, test)

MAKE_RECORDING = os.path.join(os.environ.get('SHIM_BUILD', ''), 'tests',
                              'report', 'make_recording')


def expect_row(row, function):
    for column in 'self', 'total', 'mean':
        wanted = function[column + '_ns']
        got, text = row[column]
        if wanted is None:
            expect_equal(text, '-', row['name'])
            continue
        expect(abs(got - wanted) <= 1, '%s of %s: %s, not %s' % (
            column, row['name'], got, wanted))
        below = function['total_below_ns' if column == 'mean' else
                         column + '_below_ns']
        if below and column == 'mean':
            expect(text.startswith('< '), text)
            continue
        expect_equal(text, '< ' + human_ns(below) if below else human_ns(got),
                     'how %s is shown' % got)
    if 'calls' in row:
        expect_calls(row['calls'], function)


def expect_calls(cell, function):
    if function['calls'] is None:
        expect_equal(cell[1], '-', function['name'])
        return
    mark = '~' if function['calls_estimated'] else \
        '' if function['calls_complete'] else '> '
    expect_equal(cell, [function['calls'], mark + format(function['calls'], ',')],
                 function['name'])


def expect_functions(functions):
    """The table must equal that of the report, row by row."""
    rows = rows_of('#table')
    expect_equal(sorted(row['name'] for row in rows),
                 sorted(function['name'] for function in functions),
                 'functions')
    expect_equal([row['self'][0] for row in rows],
                 sorted((row['self'][0] for row in rows), reverse=True),
                 'the order')
    by_name = {}
    for function in functions:
        by_name.setdefault(function['name'], []).append(function)
    for row in rows:
        if len(by_name[row['name']]) == 1:
            expect_row(row, by_name[row['name']][0])
    expect(len(rows) > 3, 'only %d rows' % len(rows))


@test
def the_table_of_functions_is_that_of_the_report():
    for source, profile in (
            ('unwind.cc', 'calltree'), ('unwind.cc', 'calltree:exact'),
            ('threads.c', 'calltree:exact'), ('forks.c', 'calltree')):
        output = recording_of(source, profile)
        for more in [], ['--raw']:
            open_page(page_of(output, *more))
            expect_functions(reported(output, *more)['functions'])
            facts = window.text('#facts')
            for line in shim_report('report', *more, output).split('\n')[1:4]:
                expect(line.strip() in facts, '%r: %s' % (line, facts))


@test
def estimates_are_those_of_the_report():
    program = Program()
    for rates in RATES, [1000]:         # too few bursts: the figure is a lower bound
        output = program.record(
            node(program['main'], MEMORY, frame=1),
            node(program['outer'], at(0), calls=1234),
            node(program['off'], at(0), calls=8000, time=5000),
            sampled(at(0), program['mark_main'], 900),
            sampled(at(0), program['mark_deep'], 10),
            throttled(program['off'], rates, 100),
            budget=craft.budget(throttled=1))
        about = reported(output)
        open_page(page_of(output))
        expect_functions(about['functions'])
        shown = {row['name']: row for row in rows_of('#table')}
        expect(shown['outer']['self'][1].startswith('< '), str(shown['outer']))
        expect_equal(shown['outer']['calls'][1], '1,234', 'exact')
        expect_equal(shown['off']['calls'][1][0], '~' if rates is RATES else '>',
                     'estimate')
        expect_equal(shown['deep']['calls'][1], '-', 'nothing counts it')
        expect('0 ns' not in str(rows_of('#table')), str(rows_of('#table')))
        titles = window.run('return [...document.querySelectorAll('
                            '"#table tbody td")].map(cell => cell.title)')
        expect_equal(any('\u00b1' in title and title.startswith('~')
                         for title in titles), rates is RATES, str(titles))


@test
def each_thread_is_that_of_the_report():
    output = recording_of('threads.c', 'calltree:exact')
    about = reported(output, '--threads')
    open_page(page_of(output))
    threads = {thread['tid']: thread for thread in about['threads']
               if thread['calls']}
    options = window.run('return [...document.querySelector("#thread")'
                         '.options].map(o => [o.value, o.textContent])')
    expect_equal(len(options), len(threads) + 1, 'threads')
    compared = 0
    for value, text in options[1:9]:
        window.choose('#thread', value)
        functions = [{**about['functions'][f['function']], **f}
                     for f in threads[int(text.split()[0])]['functions']]
        rows = {row['name']: row for row in rows_of('#table')}
        expect_equal(len(rows), len(functions), text)
        for function in functions:
            expect_row(rows[function['name']], function)
            compared += 1
    expect(compared > 5, 'threads do nothing')


@test
def the_page_distinguishes_threads_of_several_processes():
    outputs = [recording_of('unwind.cc', 'calltree:exact'),
               recording_of('threads.c', 'calltree:exact')]
    joined = new_directory('joined') + '/both'
    shim_report('merge', '-o', joined, *outputs)
    open_page(page_of(joined))
    options = window.run('return [...document.querySelector("#thread")'
                         '.options].map(o => o.textContent)')
    threads = [t for t in reported(joined)['threads'] if t['calls']]
    expect_equal(len(options), len(threads) + 1, 'threads')
    for thread in threads:
        expect(any('/%d.' % thread['pid'] in option and
                   '/ %d' % thread['tid'] in option for option in options),
               '%s is not in %s' % (thread, options))


def relatives(about, name, callers):
    """{the other function: calls}, from the paths."""
    names = [function['name'] for function in about['functions']]
    paths = {path['id']: path for path in about['paths']}
    found = {}
    for path in about['paths']:
        above = paths.get(path['parent'])
        caller = names[above['function']] if above else \
            '(nobody: first in its thread)'
        called = names[path['function']]
        if name == (called if callers else caller):
            other = caller if callers else called
            found[other] = found.get(other, 0) + path['calls']
    return found


@test
def callers_and_callees_are_those_of_the_paths():
    output = recording_of('unwind.cc', 'calltree:exact')
    about = exported(output)
    open_page(page_of(output))
    rows = rows_of('#table')
    met = 0
    for number, row in enumerate(rows[:12]):
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        expect_equal(window.text('#function-name'), row['name'], 'the function')
        for selector in '#callers', '#callees':
            got = {r['name']: r['calls'][0] for r in rows_of(selector)}
            wanted = relatives(about, row['name'], selector == '#callers')
            expect_equal(got, wanted, '%s of %s' % (selector, row['name']))
            met += len(got)
    expect(met > 12, 'nobody calls anybody')


# The graph of the paths to a function, and of those from it: its first row next to the
# function must match the tables.
@test
def around_a_function_are_its_callers_and_callees():
    open_page(page_of(recording_of('unwind.cc', 'calltree:exact')))
    met = 0
    for number, row in enumerate(rows_of('#table')[:10]):
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        for selector, canvas, up in (('#callees', '#below-flame', False),
                                     ('#callers', '#above-flame', True)):
            wanted = [r for r in rows_of(selector) if r['name'][0] != '(' and
                      r['name'] != row['name']]
            if len(wanted) != 1 or not wanted[0]['total'][0]:
                continue
            box = window.run('const c = document.querySelector(arguments[0]);'
                             'c.scrollIntoView({ block: "center" });'
                             'const b = c.getBoundingClientRect();'
                             'return [b.x, b.y, b.height]', canvas)
            window.point(box[0] + 4, box[1] + (box[2] - 30 if up else 30))
            expect_equal(window.text('#tip strong'), wanted[0]['name'],
                         '%s of %s' % (canvas, row['name']))
            met += 1
    expect(met > 2, 'nothing to compare')


@test
def histograms_have_all_calls():
    output = recording_of('unwind.cc', 'calltree:exact')
    functions = {f['name']: f for f in reported(output)['functions']}
    open_page(page_of(output))
    compared = 0
    for number, row in enumerate(rows_of('#table')[:8]):
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        got = window.run(
            'return [...document.querySelectorAll("#histogram tbody tr")].map('
            'row => [row.cells[0].textContent, Number('
            'row.cells[1].textContent.replaceAll(",", ""))])')
        wanted = [[human_ns(ns), calls]
                  for ns, calls in functions[row['name']]['histogram'] or []]
        expect_equal([line for line in got if line[1]], wanted, row['name'])
        compared += len(wanted)
    expect(compared >= 4, 'no histograms')


def focused():
    return window.run('return [document.querySelector("#frame-name")'
                      '.textContent, document.querySelector("#frame-facts")'
                      '.textContent]')


def largest_path(about):
    """Names and paths from the first call down; each step takes the largest child."""
    found, above = [], None
    while True:
        below = [path for path in about['paths'] if path['parent'] == above]
        if not below:
            return found
        best = max(below, key=lambda path: path['total_ns'])
        found.append((about['functions'][best['function']]['name'], best))
        above = best['id']


@test
def keys_lead_through_the_paths():
    output = recording_of('unwind.cc', 'calltree:exact')
    about = exported(output)
    open_page(page_of(output))
    window.run('document.querySelector("#flame").focus()')
    path = largest_path(about)
    expect(len(path) > 2, path)
    for name, of in path:
        window.keys([KEYS['down']])
        got, facts = focused()
        expect_equal(got, name, 'down')
        for wanted in ('Total' + human_ns(of['total_ns']),
                       'Self' + human_ns(of['self_ns']),
                       'Calls' + format(of['calls'], ',')):
            expect(wanted in facts, '%s: %s' % (wanted, facts))
        expect_equal(window.text('#function-name'), name, 'the function')
    window.keys([KEYS['up']])
    expect_equal(focused()[0], path[-2][0], 'up')
    window.keys([KEYS['enter']])
    window.wait('return !document.querySelector("#zoom-out").disabled')
    window.keys([KEYS['escape']])
    window.wait('return document.querySelector("#zoom-out").disabled')
    window.keys([KEYS['home']])
    expect_equal(focused()[0], 'all', 'home')
    window.keys(['?'])
    expect(window.run('return document.querySelector("#help").open'), 'help')
    window.keys([KEYS['escape']])
    expect(not window.run('return document.querySelector("#help").open'),
           'help again')


# The graph is drawn where the numbers place it: a click on a path's box selects that
# path.
@test
def a_click_zooms_to_the_frame_under_it():
    output = recording_of('unwind.cc', 'calltree:exact')
    about = exported(output)
    open_page(page_of(output))
    box = window.run('const b = document.querySelector("#flame")'
                     '.getBoundingClientRect(); return [b.x, b.y, b.width]')
    all_ns = sum(path['total_ns'] for path in about['paths']
                 if path['parent'] is None)
    first = sorted((path for path in about['paths'] if path['parent'] is None),
                   key=lambda path: -path['total_ns'])
    at = 0
    for path in first:
        width = box[2] * path['total_ns'] / all_ns
        if width > 4:
            window.point(box[0] + at + width / 2, box[1] + 30)
            name = about['functions'][path['function']]['name']
            expect_equal(window.text('#tip strong'), name, 'the tip')
        at += width
    window.point(box[0] + 5, box[1] + 30, click=True)
    expect_equal(focused()[0],
                 about['functions'][first[0]['function']]['name'], 'click')


@test
def a_search_marks_and_adds_up():
    output = recording_of('unwind.cc', 'calltree:exact')
    about = exported(output)
    open_page(page_of(output))
    paths = {path['id']: path for path in about['paths']}
    names = [function['name'] for function in about['functions']]

    def sum_of(pattern):
        def matches(path):
            return re.search(pattern, names[path['function']])
        total = 0
        for path in about['paths']:
            above = paths.get(path['parent'])
            while above and not matches(above):
                above = paths.get(above['parent'])
            if matches(path) and not above:
                total += path['total_ns']
        return total
    for pattern in names[0][:4], 'main', '^[a-m]', 'no such function':
        window.run('document.querySelector("#search").focus()')
        window.run('document.querySelector("#search").value = ""')
        window.keys(list(pattern))
        found = [name for name in names if re.search(pattern, name)]
        text = window.text('#found')
        expect(text.startswith('%d function' % len(found)), text)
        wanted = sum_of(pattern)
        got = float(window.run('return document.querySelector("#found")'
                               '.dataset.value'))
        expect(abs(got - wanted) <= len(paths), '%s: %s' % (got, wanted))
        rows = [row['name'] for row in rows_of('#table')]
        expect_equal(sorted(rows), sorted(found), pattern)
    window.run('document.querySelector("#search").value = ""')
    window.keys(['('])
    expect('not a regular expression' in window.text('#found'), 'a bad one')
    window.keys([KEYS['escape']])
    expect_equal(window.text('#found'), '', 'escape')
    expect(len(rows_of('#table')) > len(found), 'all are there again')


@test
def counted_calls_have_no_times():
    output = recording_of('unwind.cc', 'calltree:counts')
    open_page(page_of(output))
    expect_equal(window.run('return [...document.querySelector("#metric")'
                            '.options].map(o => o.textContent)'), ['Calls'],
                 'what there is')
    wanted = {f['name']: f['calls'] for f in reported(output)['functions']}
    got = {row['name']: row['self'][0] for row in rows_of('#table')}
    expect_equal(got, wanted, 'calls')


@test
def samples_are_those_of_the_report():
    program = compile('computes.c', 'gcc', '-O0', name='computes_plain',
                      instrument=False)
    output = record([program], 'sampling:hz=500').output
    functions = {f['name']: f for f in reported(output)['functions']}
    open_page(page_of(output))
    rows = rows_of('#table')
    expect_equal(len(rows), len(functions), 'functions')
    for row in rows:
        function = functions[row['name']]
        expect_equal([row[c][0] for c in ('self', 'total', 'calls')],
                     [function['self_ns'], function['total_ns'],
                      function['calls']], row['name'])


@test
def memory_is_that_of_the_report():
    program = compile('remembered.c', 'gcc', '-O1', ['-fno-builtin'])
    output = record([program, 'all'], 'memory').output
    about = exported(output)
    open_page(page_of(output))
    expect_equal(window.run('return document.querySelector("#metric").value'),
                 'calls allocated', 'what is shown first')
    keys = {'allocated': 'allocated_bytes', 'allocations': 'allocations',
            'peak': 'peak_bytes', 'left': 'left_bytes'}
    known = window.run('return [...document.querySelector("#metric").options]'
                       '.map(o => o.value.split(" ")[1])')
    expect_equal('lost' in known, 'lost_bytes' in about['memory'] and
                 about['memory']['lost_bytes'] is not None, 'what is lost')
    parents = {path['id']: path['parent'] for path in about['paths']}
    functions = {path['id']: path['function'] for path in about['paths']}

    def below(kind, number):
        """The bytes allocated below function @number; each path counts once."""
        total = 0
        for path in about['paths']:
            at = path['id']
            while at is not None and functions[at] != number:
                at = parents[at]
            total += path['memory'][keys[kind]] if at is not None else 0
        return total
    for kind, key in keys.items():
        window.choose('#metric', 'calls ' + kind)
        rows = {row['name']: row for row in rows_of('#table')}
        met = 0
        for number, function in enumerate(about['functions']):
            total = below(kind, number)
            if not total:
                expect(function['name'] not in rows, function['name'])
                continue
            row = rows[function['name']]
            expect_equal([row['self'][0], row['total'][0]],
                         [function['memory'][key], total],
                         '%s of %s' % (kind, function['name']))
            met += 1
        expect(met > 1, 'nobody has ' + kind)


@test
def the_page_shows_the_losses_of_the_report():
    program = compile('leaking.c', 'gcc', '-O1', ['-fno-builtin'])
    output = record([program, 'plain'], 'memory').output
    wanted = {f['name']: f['memory']['lost_bytes'] +
              f['memory']['lost_below_bytes']
              for f in reported(output)['functions']}
    open_page(page_of(output))
    window.choose('#metric', 'calls lost')
    got = {row['name']: row['self'][0] for row in rows_of('#table')
           if row['self'][0]}
    expect_equal(got, {name: n for name, n in wanted.items() if n}, 'lost')
    expect(len(got) > 2, got)


def waits_of(case):
    program = compile('waits.cc', 'gcc', '-O1', ['-std=c++17'])
    result = record([program, case], 'locks')
    expect_equal(result.status, 0, 'waits.cc')
    return result.output


DRAWN = """
const [part, done] = arguments;
const box = document.querySelector('#flame').parentElement.parentElement;
const prototype = CanvasRenderingContext2D.prototype;
const before = prototype.fillText;
const texts = [];
const frame = () => new Promise(requestAnimationFrame);
prototype.fillText = function (text, ...more) {
    if (text.includes(part) && texts.at(-1) !== text)
        texts.push(text);
    before.call(this, text, ...more);
};
(async () => {
    for (let width = 800; width > 60; width -= 7) {
        box.style.width = `${width}px`;
        await frame();
        await frame();
    }
    prototype.fillText = before;
    done(texts);
})();
"""


@test
def names_without_room_keep_their_end():
    source = os.path.join(new_directory('names'), 'names.cc')
    with open(source, 'w') as out:
        out.write('namespace outer { namespace inner { template <typename T> '
                  'struct Holder { template <typename U> __attribute__((noinline'
                  ')) T keep(U const &, T const &t) const { return t; } }; } }\n'
                  'int main() { long sum = 0; for (int i = 0; i < 500; i++) '
                  'sum += outer::inner::Holder<long>().keep<char>(1, i); '
                  'return sum < 0; }\n')
    output = record([compile(source, 'gcc', '-O1')]).output
    open_page(page_of(output))
    full = ('long outer::inner::Holder<long>::keep<char>(char const&, '
            'long const&) const')
    drawn = window.ask('POST', '/execute/async',
                       {'script': DRAWN, 'args': ['keep()']})
    expect_equal(drawn, ['outer::inner::Holder::keep()',
                         'outer::...::Holder::keep()', 'outer::...::keep()',
                         '...::keep()', 'keep()'], 'names in frames')
    expect_equal(window.run(
        'return [...document.querySelectorAll("#table button.function")]'
        '.map(b => [b.textContent, b.title]).sort()'),
        [['main', 'main'], ['outer::inner::Holder::keep()', full]], 'table')


@test
def waits_for_locks_are_those_of_the_report():
    output = waits_of('paths')
    about = reported(output)
    open_page(page_of(output))
    expect_equal(window.run('return document.querySelector("#metric").value'),
                 'calls waits', 'what is shown first')
    wanted = {}
    for line in shim_report('export', 'folded', output, '--value',
                            'waits').splitlines():
        path, ns = line.rsplit(' ', 1)
        name = path.split(';')[-1]
        wanted[name] = wanted.get(name, 0) + int(ns)
    got = {row['name'].replace(';', ':'): row['self'][0]
           for row in rows_of('#table') if row['self'][0]}
    expect_equal({name: ns for name, ns in wanted.items() if ns}, got, 'waits')
    # The table of locks, and of the functions that waited for each lock.
    rows = rows_of('#locks .first')
    expect_equal({row['name']: (row['waits'][0], row['waited_ns'][0],
                                row['max_ns'][0]) for row in rows},
                 {lock['name']: (lock['waits'], lock['waited_ns'],
                                 lock['max_ns']) for lock in about['locks']},
                 'locks')
    expect(len(rows) > 1, 'locks: %s' % rows)

    def text_of(path):
        text = ' \u2190 '.join(reversed(path)) if path else 'unknown'
        return text if len(text) <= 300 else text[:299] + '\u2026'
    for number, row in enumerate(rows):
        window.run('document.querySelectorAll("#locks .first button.function")'
                   '[arguments[0]].click()', number)
        lock, = (lock for lock in about['locks']
                 if lock['name'] == row['name'])
        expect_equal(
            sorted((r['name'], r['holder'], r['waits'][0], r['waited_ns'][0])
                   for r in rows_of('#locks .second')),
            sorted((text_of(w['path']), text_of(w['holder']), w['waits'],
                    w['waited_ns']) for w in lock['waiters']), row['name'])


@test
def exceptions_are_those_of_the_report():
    output = record([compile('exceptions.cc', 'gcc', '-O1')],
                    'exceptions').output
    about = reported(output)
    open_page(page_of(output))
    got = {row['name']: (row['throws'][0], row['catches'][0])
           for row in rows_of('#exceptions .first')}
    expect_equal(got, {e['type'] or 'unknown type': (e['throws'], e['catches'])
                       for e in about['exceptions']}, 'types')
    expect(got, 'nothing is thrown')
    throwers = rows_of('#exceptions .second')
    expect_equal(sum(row['throws'][0] for row in throwers),
                 max(throws for throws, _ in got.values()), 'throwers')


@test
def changes_in_the_page_are_differences_of_the_reports():
    program = compile('remembered.c', 'gcc', '-O1', ['-fno-builtin'])
    outputs = [record([program, case], 'memory').output
               for case in ('all', 'forked')]
    now, before = [reported(output) for output in outputs]
    open_page(page_of(outputs[0], '--against', outputs[1]))
    expect_equal(window.run('return document.querySelector("#colors").value'),
                 'change', 'colours')
    facts = window.run('return document.querySelector("#facts").textContent')
    expect('the noise is not known' in facts, facts)

    def memory_of(about):
        return {f['name']: f['memory']['allocated_bytes']
                for f in about['functions'] if f['memory']['allocated_bytes']}
    old, new = memory_of(before), memory_of(now)
    expect(set(old) != set(new) and set(old) & set(new), 'some are new')
    rows = {row['name']: row for row in rows_of('#table')}
    for name in set(old) | set(new):
        row = rows[name]
        expect_equal([row[c][0] for c in ('self', 'selfBefore', 'change')],
                     [new.get(name, 0), old.get(name, 0),
                      new.get(name, 0) - old.get(name, 0)], name)
    expect_equal(list(rows), sorted(rows, key=lambda name: -abs(
        rows[name]['change'][0])), 'the order')
    # A path that exists in one of the two recordings only.
    window.run('document.querySelector("#flame").focus()')
    window.keys([KEYS['home'], KEYS['down']])
    name, facts = focused()
    expect_equal(name, 'main', 'the first path')
    total = format(sum(old.values()) / 1024, '.1f')
    expect('Before%s KiB (' % total in facts, facts)
    # A comparison with itself: nothing changed.
    open_page(page_of(outputs[0], '--against', outputs[0]))
    expect_equal({row['change'][0] for row in rows_of('#table')}, {0},
                 'changes')


# --- the timeline ---

# The page subtracts nothing from single calls, so the test compares with --raw.
@test
def each_call_is_there_with_its_time():
    output = traced(4)
    functions = {f['name']: f for f in
                 reported(output, '--raw')['functions']}
    open_page(page_of(output, '--raw'))
    calls = sum(f['calls'] for f in functions.values())
    expect('All %d calls are there one by one' % calls in
           window.text('#merged'), window.text('#merged'))
    for number, row in enumerate(rows_of('#table')):
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        function = functions[row['name']]
        found = rows_of('#calls')
        expect_equal(len(found), function['calls'], row['name'])
        took = [call['took'][0] for call in found]
        expect(abs(sum(took) - function['total_ns']) <= 2 * len(took),
               '%s: %s, not %s' % (row['name'], took, function['total_ns']))
        for key, found_ns in ('max', max(took)), ('min', min(took)):
            # Calls shorter than a step of the clock have a bound.
            reported_ns, below_ns = function[key + '_ns'], function[
                key + '_below_ns']
            expect(abs(found_ns - reported_ns) <= 2 if below_ns is None
                   else found_ns <= below_ns, (function, took))
    expect_equal({call['name'].split()[-1] for call in found},
                 {'traced_page'},
                 'the thread')


@test
def keys_lead_through_the_calls():
    open_page(page_of(traced(4)))
    window.run('document.querySelector("#timeline").focus()')

    def press(*keys):
        window.keys(keys)
        return window.text('#call-name')
    expect_equal([press(KEYS['home']), press(KEYS['down']),
                  press(KEYS['down']), press(KEYS['down']),
                  press(KEYS['right']), press(KEYS['right']),
                  press(KEYS['up']), press(KEYS['right']),
                  press(KEYS['right']), press(KEYS['down'])],
                 ['main', 'outer', 'inner', 'leaf', 'leaf', 'leaf', 'inner',
                  'inner', 'inner', 'leaf'], 'calls')
    expect_equal(window.text('#function-name'), 'leaf', 'the function')
    expect('Depth4' in window.text('#call-facts'), 'the depth')
    window.keys([KEYS['enter']])
    window.wait('return !document.querySelector("#times-out").disabled')
    window.keys([KEYS['escape']])
    window.wait('return document.querySelector("#times-out").disabled')
    # The other thread's lane is below this one.
    expect_equal([press(KEYS['home'])] + [press(KEYS['down'])
                                          for _ in range(5)],
                 ['main', 'outer', 'inner', 'leaf', 'work', 'outer'],
                 'lanes')


@test
def the_timeline_of_a_thread_has_its_calls_only():
    output = traced(4)
    open_page(page_of(output))
    threads = [t for t in reported(output)['threads'] if t['calls']]
    expect_equal(len(threads), 2, threads)
    for value, text in window.run(
            'return [...document.querySelector("#thread").options].slice(1)'
            '.map(o => [o.value, o.textContent])'):
        window.choose('#thread', value)
        calls, = (t['calls'] for t in threads
                  if t['tid'] == int(text.split()[0]))
        found = 0
        for number in range(len(rows_of('#table'))):
            window.run('document.querySelectorAll("#table button.function")'
                       '[arguments[0]].click()', number)
            found += len(rows_of('#calls'))
        expect_equal(found, calls, text)
    window.run('document.querySelector("#timeline").focus()')
    window.keys([KEYS['home']])
    expect_equal(window.text('#call-name'), 'work', 'the second thread')
    expect_equal(window.messages(), [], 'what the browser said')


@test
def marks_are_at_their_times():
    output = record([compile('marks.c', flags=[
        '-I', os.path.join(shimtest.PROGRAMS, '..', '..', 'include')])],
        'trace').output
    open_page(page_of(output))
    rows = rows_of('#said')
    said = [row['name'] for row in rows]
    for wanted in ('a mark; with <odd> \\x1b characters', 'load',
                   'files = 1.5', 'files = -2'):
        expect(wanted in said, '%r is not in %s' % (wanted, said))
    at = {row['name']: row['from'][0] for row in rows}
    load, = (row for row in rows if row['name'] == 'load')
    expect(load['from'][0] <= at['files = 1.5'] <=
           load['from'][0] + load['took'][0] <= at['files = -2'], rows)
    expect_equal([row['from'][0] for row in rows],
                 sorted(row['from'][0] for row in rows), 'the order')
    window.run('document.querySelector("#said button.function").click()')
    window.wait('return !document.querySelector("#times-out").disabled')


@test
def arguments_and_results_are_with_their_calls():
    output = record([compile('traced_values.c')],
                    'trace:args=all,results=all').output
    open_page(page_of(output))
    window.run('document.querySelector("#timeline").focus()')
    window.keys([KEYS['home'], KEYS['down']])
    got = []
    for _ in range(4):
        got.append((window.text('#call-name'), window.run(
            'const facts = [...document.querySelectorAll("#call-facts div")]'
            '.map(d => [d.firstChild.textContent, d.lastChild.textContent]);'
            'return Object.fromEntries(facts)')))
        window.keys([KEYS['right']])
    expect_equal([(name, facts.get('Arguments'), facts.get('Result'))
                  for name, facts in got],
                 [('add', 'a = %d, b = 10' % n, str(10 + n))
                  for n in range(3)] + [('half', 'x = 5', '2.5')], 'calls')


class Pieces:
    """A reader of our own for the data in the page."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            self.page = file.read()
        self.about = json.loads(self.script('text'))['timeline']
        self.pieces = []                # by lane
        for number, lane in enumerate(self.about['lanes']):
            self.numbers = self.decode(self.script('calls%d' % (number + 1)))
            self.pieces.append([self.piece() for _ in range(lane['pieces'])])
            depth = end = 0
            for piece in self.pieces[-1]:
                depth += piece['depth']
                end += piece['end']
                piece.update(depth=depth, end=end, begin=end - piece['ns'])

    def script(self, name):
        return re.search('<script [^>]* id="%s">(.*?)</script>' % name,
                         self.page, re.S)[1]

    @staticmethod
    def decode(text):
        number = shift = 0
        for byte in base64.b64decode(text):
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                yield number
                number = shift = 0

    def signed(self):
        number = next(self.numbers)
        return -(number + 1) // 2 if number % 2 else number // 2

    def piece(self):
        piece = {'depth': self.signed(), 'end': self.signed(),
                 'ns': next(self.numbers), 'what': next(self.numbers),
                 'calls': 1}
        if piece['what'] == 0:
            piece['calls'] = next(self.numbers)
            piece['busy'] = next(self.numbers)
        return piece


@test
def of_many_calls_the_short_ones_are_merged_and_counted():
    output = traced(3000)
    wanted = reported(output)
    path = page_of(output, '--max-calls', '500')
    contents = Pieces(path)
    about = contents.about
    expect_equal(about['calls'], wanted['calls'], 'calls')
    alone = sum(piece['what'] > 0 for lane in contents.pieces
                for piece in lane)
    expect(0 < alone <= 500, '%d calls one by one' % alone)
    expect_equal(alone + about['merged'], wanted['calls'], 'all calls')
    for lane, pieces in zip(about['lanes'], contents.pieces):
        expect_equal(sum(piece['calls'] for piece in pieces), lane['calls'],
                     'calls of a lane')
        rows = {}
        for piece in pieces:
            rows.setdefault(piece['depth'], []).append(piece)
            if piece['what']:
                expect(piece['ns'] >= about['least_ns'] - 2, piece)
            else:
                expect(piece['busy'] <= piece['ns'] + 2 * piece['calls'],
                       piece)
        for depth, row in rows.items():
            for before, after in zip(row, row[1:]):
                expect(before['end'] <= after['begin'] + 1, 'they overlap')
            for piece in row if depth else []:
                expect(any(above['what'] and above['begin'] <= piece['begin'] + 1
                           and piece['end'] <= above['end'] + 1
                           for above in rows[depth - 1]),
                       'nothing is around %s' % piece)
    open_page(path)
    text = '%s of %s calls, all shorter than' % (
        format(about['merged'], ','), format(about['calls'], ','))
    expect(window.text('#merged').startswith(text), window.text('#merged'))


@test
def a_million_events_are_there_within_three_seconds():
    output = traced(213000)         # 235 calls out of each hundred
    calls = reported(output)['calls']
    expect(calls * 2 > 1000000, calls)
    path = page_of(output)
    # On a busy machine a page waits for its processor, however little time it takes.
    window.open('about:blank')
    before = page_thread_ms()
    open_page(path)
    used = page_thread_ms()
    used -= before if before < used else 0      # the same process, or another one
    print('# %d calls, %d KiB, ready after %s ms, %.0f ms of the processor' % (
        calls, os.path.getsize(path) / 1024,
        window.run('return document.documentElement.dataset.ready'), used))
    # The rest is the browser's: it reads the file and starts.
    expect(100 < used < 1500, 'ready after %.0f ms' % used)
    # The page follows the keys: each step is drawn before the next one.
    window.run('document.querySelector("#timeline").scrollIntoView()')
    before = page_thread_ms()
    frames = window.ask('POST', '/execute/async', {'script': FRAMES,
                                                   'args': []})
    used = (page_thread_ms() - before) / len(frames)
    print('# frames of %d to %d ms, %.1f of the processor' % (min(frames), max(frames), used))
    expect(used < 1000 / 30, frames)      # as often as a key repeats


FRAMES = """
const done = arguments[0];
const canvas = document.querySelector('#timeline');
const keys = [...'w'.repeat(25), ...'d'.repeat(20), ...'s'.repeat(25)];
const took = [];
let last = performance.now();
const step = () => {
    took.push(performance.now() - last);
    last = performance.now();
    if (!keys.length)
        return done(took);
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key: keys.shift() }));
    requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


# Compilers accept few of these names, so the test writes them over names of the same
# length in the binary.
NAMES = [
    b'</script><script>window.harm = 1</script>',
    b'<img src=x onerror="window.harm = 2">',
    b'<!--<script>',
    b'a"quoted\' and `${window.harm = 3}`',
    b'two\nlines\tand a tab',
    b'to the right\xe2\x80\xaeto the left',
    b'no \xff\xfe UTF-8',
    b'&lt;&amp;\\u003c\\',
    b'constructor__proto__',
]
LONG = 'x' * 65536


def named_program():
    directory = new_directory('named')
    stand_ins = ['stand_in_%d_' % i + 'z' * 80 for i in range(len(NAMES))]
    lines = ['static volatile int count;']
    for name in stand_ins + [LONG]:
        lines.append('__attribute__((noinline)) void %s(void) '
                     '{ count++; }' % name)
    lines.append('int main(void) { %s return 0; }' % ' '.join(
        name + '();' for name in stand_ins + [LONG]))
    with open(directory + '/named.c', 'w') as file:
        file.write('\n'.join(lines))
    path = compile(directory + '/named.c', 'gcc', '-O0')
    with open(path, 'rb') as file:
        data = file.read()
    for stand_in, name in zip(stand_ins, NAMES):
        stand_in = stand_in.encode() + b'\0'
        expect(stand_in in data, 'the symbol is there')
        data = data.replace(stand_in, (name + b'\0').ljust(len(stand_in),
                                                           b'\0'))
    named = directory + '/named'
    with open(named, 'wb') as file:
        file.write(data)
    os.chmod(named, 0o755)
    return named


@test
def names_are_nothing_but_names():
    output = record([named_program()], 'calltree:exact').output
    names = [f['name'] for f in reported(output)['functions']]
    expect(any('</script>' in name for name in names), names)
    expect(any(len(name) == 65536 for name in names), 'the long name')
    open_page(page_of(output))
    scripts = window.run('return document.querySelectorAll("script").length')
    plain = page_of(recording_of('unwind.cc', 'calltree:exact'))
    shown = {row['name'] for row in rows_of('#table')}
    for name in names:
        plain_name = re.sub(
            '[\x00-\x1f\x7f-\x9f\u202e]', lambda c: (
                '\\x%02x' if ord(c[0]) < 256 else '\\u%04x') % ord(c[0]), name)
        if len(plain_name) > 300:
            plain_name = plain_name[:299] + '\u2026'
        expect(plain_name in shown, '%r is not in %r' % (plain_name, shown))
    # The test looks at each name in every place.
    for number in range(len(names)):
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
    window.run('document.querySelector("#flame").focus()')
    window.keys([KEYS['down'], KEYS['down']] + [KEYS['right']] * len(names))
    expect_equal(window.run('return window.harm'), None, 'harm')
    expect_equal(window.run('return document.querySelectorAll("img").length'),
                 0, 'pictures')
    expect_equal(window.messages(), [], 'what the browser said')
    open_page(plain)
    expect_equal(window.run('return document.querySelectorAll("script")'
                            '.length'), scripts, 'scripts')


@test
def the_whole_name_is_copied():
    output = record([named_program()], 'calltree:exact').output
    open_page(page_of(output))
    for name in 'main', LONG:
        number = window.run(
            'return [...document.querySelectorAll("#table button.function")]'
            '.findIndex(b => b.textContent.startsWith(arguments[0]))', name[:9])
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        window.devtools('Browser.grantPermissions', permissions=[
            'clipboardReadWrite', 'clipboardSanitizedWrite'])
        window.click('#copy')
        window.wait('return document.querySelector("#copied").textContent')
        expect_equal(window.text('#copied'), 'copied', 'what it says')
        got = window.ask('POST', '/execute/async', {
            'script': 'navigator.clipboard.readText().then(arguments[0], '
                      'error => arguments[0](String(error)))', 'args': []})
        expect(got == name, 'copied: %s' % got[:100])


class Server(http.server.ThreadingHTTPServer):
    """A server of one page that remembers all requests."""

    daemon_threads = True       # browsers keep connections open

    def __init__(self, path):
        super().__init__(('127.0.0.1', 0), Handler)
        with open(path, 'rb') as file:
            self.page = file.read()
        self.asked = []
        self.url = 'http://127.0.0.1:%d' % self.server_port
        self.thread = threading.Thread(target=self.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(self.server.page)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@test
def the_page_loads_nothing_from_elsewhere():
    path = page_of(recording_of('unwind.cc', 'calltree:exact'))
    with Server(path) as server:
        window.open(server.url + '/page.html')
        window.wait('return document.documentElement.dataset.ready')
        window.run('document.querySelectorAll("#table button.function")[1]'
                   '.click()')
        expect_equal(window.run('return performance.getEntriesByType('
                                '"resource").length'), 0, 'resources')
        # An attempt must fail.
        failed = window.ask('POST', '/execute/async', {'script': """
            const done = arguments[1];
            const image = new Image();
            image.src = arguments[0] + '/image';
            document.body.append(image);
            document.body.append(Object.assign(document.createElement('script'),
                { textContent: 'window.harm = 1' }));
            fetch(arguments[0] + '/fetched').then(() => done('fetched'),
                () => setTimeout(() => done('refused'), 300));
            """, 'args': [server.url]})
        expect_equal(failed, 'refused', 'fetch')
        expect_equal(window.run('return window.harm'), None, 'harm')
        expect_equal(server.asked, ['/page.html'], 'requests')
        window.messages()


def ready_ms(paths):
    """The time until a page with @paths paths is usable."""
    output = new_directory('made') + '/recording'
    shimtest.subprocess.run(
        [MAKE_RECORDING, output, '--paths', str(paths), '--depth', '60',
         '--functions', '3000', '--image', shimtest.report],
        stdout=shimtest.subprocess.DEVNULL, check=True)
    path = page_of(output)
    took = []
    for _ in range(3):
        open_page(path)
        took.append(float(window.run('return document.documentElement'
                                     '.dataset.ready')))
    print('# %d paths, %d KiB, ready after %s ms' % (
        paths, os.path.getsize(path) / 1024, took))
    return output, min(took)


@test
def a_hundred_thousand_paths_are_there_as_soon_as_a_few():
    expect(os.path.exists(MAKE_RECORDING), 'SHIM_BUILD has no make_recording')
    _, few_ms = ready_ms(10000)
    output, many_ms = ready_ms(100000)
    # The time for each path must not grow, apart from the fixed cost of a page.
    expect(many_ms < 20 * few_ms, '%s ms, and %s for a tenth' % (many_ms,
                                                                few_ms))
    about = exported(output)
    expect(len(about['paths']) > 90000, 'paths')
    expect_functions(about['functions'])


CONTRAST = """
const light = color => {
    const part = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = color.match(/[\\d.]+/g).map(n => part(n / 255));

    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const background = node => {
    const color = getComputedStyle(node).backgroundColor;

    return /, 0\\)$/.test(color) ? background(node.parentElement) : color;
};
const bad = [];
for (const node of document.querySelectorAll('body *')) {
    const text = [...node.childNodes].some(n => n.nodeType === 3 &&
        n.textContent.trim());
    if (!text || !node.checkVisibility() || node.matches(':disabled'))
        continue;
    const [a, b] = [light(getComputedStyle(node).color),
        light(background(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5)
        bad.push(`${node.tagName} ${node.className} ${ratio}`);
}
return bad;
"""


@test
def it_is_light_and_dark_and_can_be_read():
    path = page_of(recording_of('unwind.cc', 'calltree:exact'))
    grounds = []
    for theme in 'light', 'dark':
        window.devtools('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': theme}])
        open_page(path)
        expect_equal(window.run(CONTRAST), [], 'too little contrast, ' + theme)
        grounds.append(window.run('return getComputedStyle(document.body)'
                                  '.backgroundColor'))
    expect(grounds[0] != grounds[1], 'light and dark are %s' % grounds)
    window.click('#theme')
    expect_equal(window.run('return getComputedStyle(document.body)'
                            '.backgroundColor'), grounds[0], 'the switch')
    window.devtools('Emulation.setEmulatedMedia', features=[])


@test
def it_can_be_printed():
    open_page(page_of(recording_of('unwind.cc', 'calltree:exact')))
    printed = window.print()
    expect(printed.startswith(b'%PDF'), printed[:20])
    expect(len(re.findall(rb'/Type */Page\b', printed)) >= 1, 'pages')
    expect(len(printed) > 20000, '%d bytes' % len(printed))
    height = window.run('return document.querySelector("#graph").style.height')
    window.run('dispatchEvent(new Event("beforeprint"))')
    expect_equal(window.run('return [document.documentElement.dataset.theme, '
                            'parseInt(document.querySelector("#graph").style'
                            '.height) <= 1000]'), ['light', True], 'on paper')
    window.run('dispatchEvent(new Event("afterprint"))')
    expect_equal(window.run('return [document.documentElement.dataset.theme, '
                            'document.querySelector("#graph").style.height]'),
                 [None, height], 'afterwards')
    window.devtools('Emulation.setEmulatedMedia', media='print')
    expect_equal(window.run(
        'return [...document.querySelectorAll("button:not(.function), select")]'
        '.filter(e => e.checkVisibility() && !e.closest("th"))'
        '.map(e => e.id)'), [], 'what paper cannot do')
    expect(window.run('return document.querySelector("#flame").width') > 100,
           'the picture')
    window.devtools('Emulation.setEmulatedMedia', media='')


UNNAMED = """
return [...document.querySelectorAll('button, select, input, canvas, table, ' +
    'section')].filter(e => e.checkVisibility() && !(e.ariaLabel ||
        e.getAttribute('aria-labelledby') || e.labels?.length ||
        e.caption || e.textContent.trim() && e.matches('button')))
    .map(e => e.outerHTML.slice(0, 100));
"""


@test
def everything_has_a_name_and_a_key():
    open_page(page_of(recording_of('threads.c', 'calltree:exact')))
    expect_equal(window.run(UNNAMED), [], 'without a name')
    sorts = window.run('return [...document.querySelectorAll("#table th")]'
                       '.map(th => th.ariaSort)')
    expect_equal([s for s in sorts if s], ['descending'], 'aria-sort')
    window.click('#table th:nth-child(4) button')
    sorts = window.run('return [...document.querySelectorAll("#table th")]'
                       '.map(th => th.ariaSort)')
    expect_equal(sorts[3], 'descending', 'aria-sort')


@test
def an_empty_page_says_so():
    program = compile('computes.c', 'gcc', '-O0', name='computes_plain',
                      instrument=False)
    output = record([program], 'calltree').output
    path = os.path.join(new_directory('html'), 'page.html')
    done = shimtest.subprocess.run(
        [shimtest.report, 'html', output, '-o', path], capture_output=True)
    expect(b'no call was recorded' in done.stderr, done.stderr)
    open_page(path)
    expect_equal(rows_of('#table'), [], 'functions')
    expect('no calls of instrumented functions' in window.text('#facts'),
           window.text('#facts'))


@test
def the_page_has_a_name_of_its_own_by_default():
    output = recording_of('unwind.cc', 'calltree:exact')
    directory = new_directory('default')
    done = shimtest.subprocess.run([shimtest.report, 'html', output],
                                   cwd=directory, capture_output=True)
    expect_equal((done.returncode, done.stdout, done.stderr), (0, b'', b''),
                 'html')
    expect_equal(os.listdir(directory), [os.path.basename(output) + '.html'],
                 'files')
    done = shimtest.subprocess.run([shimtest.report, 'html', '-o', '/dev/full',
                                    output], capture_output=True)
    expect_equal(done.returncode, 1, 'status on a full disk')


if __name__ == '__main__':
    main()
