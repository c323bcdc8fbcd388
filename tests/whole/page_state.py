#!/usr/bin/env python3
"""page_state.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

`profrun html`, in a browser: the link keeps the state, the legend names the colours in
view, drawings are saved as SVG and PNG, and axe-core finds nothing that people could not
reach or read.  axe-core comes from npm, or from the directory AXE_CORE.
"""
import base64
import functools
import os
import re
import struct
import subprocess
import xml.etree.ElementTree

import shimtest
from browser import KEYS
from pagetest import (main, open_page, page_of, recording_of, rest, rows_of,
                      traced, window)
from shimtest import (Skipped, compile, expect, expect_equal, new_directory,
                      record, shim_report, test)

SHOWN = """
const value = id => document.querySelector(id)?.value;
const text = id => document.querySelector(id)?.textContent;
return JSON.stringify([value('#metric'), value('#thread'), value('#order'),
    value('#colors'), value('#search'), text('#found'), text('#frame-name'),
    text('#function-name'), document.querySelector('#up').ariaPressed,
    document.querySelector('#tab-tree-up').ariaSelected, text('#times-range'),
    text('#span-text'), document.querySelector('#timeline').parentElement
        .clientHeight, document.documentElement.dataset.theme || '',
    document.querySelector('#zoom-out').disabled, text('#call-name'),
    text('#call-facts'), text('#tree-up:not([hidden])'), text('#table'),
    [...document.querySelectorAll('#table [aria-sort], #callees [aria-sort]')]
        .map(cell => cell.textContent + cell.ariaSort), scrollY]);
"""


@test
def a_link_keeps_the_state():
    path = page_of(traced(4))
    open_page(path)
    rest()
    expect('#' not in window.run('return location.href'), 'nothing to keep')
    first = window.run(SHOWN)
    window.choose('#order', 'name')
    window.choose('#metric', 'calls calls')
    window.choose('#thread', '1')
    window.click('#up')
    window.click('#tab-tree-up')
    window.click('#tree-up tbody tr[aria-expanded="false"] .opener')
    window.run('document.querySelector("#timeline").focus()')
    window.keys([KEYS['home'], KEYS['down'], 'w', 'x', 'e'])
    window.run('document.querySelector("#flame").focus()')
    window.keys([KEYS['home'], KEYS['up'], KEYS['up'], KEYS['enter']])
    window.run('document.querySelector("#search").focus()')
    window.keys(list('inn'))
    window.click('#theme')
    window.click('#tab-table')
    window.click('#table th.name button')           # sorted by name
    window.click('#callees th:nth-child(2) button')
    window.click('#callees th:nth-child(2) button')
    window.click('#tab-tree-up')
    window.run('scrollTo(0, 150)')
    window.wait('return location.hash.includes("scroll=150")')
    shown, href = window.run(SHOWN), window.run('return location.href')
    expect(shown != first, shown)
    for _ in range(2):
        window.open('about:blank')
        window.open(href)
        window.wait('return document.documentElement.dataset.ready')
        rest()
        expect_equal(window.run(SHOWN), shown, href)
    expect_equal(window.run('return location.href'), href, 'the link')
    # Another link in the same page, and one that makes no sense.
    window.run('location.hash = ""')
    window.wait('return document.querySelector("#search").value === ""')
    rest()
    expect_equal(window.run(SHOWN), first, 'without a link')
    window.run('location.hash = "thread=99&colors=%00&time=5-x&span=9-1&'
               'function=1e9&path=-3&show=x&table=<b>"')
    rest()
    expect_equal(window.run(SHOWN), first, 'a link that makes no sense')
    expect_equal(window.messages(), [], 'what the browser said')


COLOURS = """
const canvas = document.querySelector(arguments[0]);
const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width,
    canvas.height);
const counts = new Map();
for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] === 255) {
        const key = `rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})`;
        counts.set(key, (counts.get(key) || 0) + 1);
    }
const part = getComputedStyle(document.documentElement);
return [...counts].filter(([, count]) => count > 400).map(([key]) => key);
"""
LEGEND = """
return [...document.querySelectorAll('#legend li')].filter(item =>
    item.querySelector('.swatch')).map(item => [item.textContent,
    getComputedStyle(item.querySelector('.swatch')).backgroundColor]);
"""


@test
def the_legend_names_every_colour_in_view():
    # What is wide enough to be seen must not depend on times.
    open_page(page_of(recording_of('unwind.cc', 'calltree:counts')))
    for by in 'function', 'object':
        window.choose('#colors', by)
        rest()
        if by == 'function':
            expect_equal(len(window.run(LEGEND)), 12, 'names at first')
            window.click('#legend button')
        legend = window.run(LEGEND)
        known = [color for _, color in legend]
        got = window.run(COLOURS, '#flame')
        expect(legend and len(got) > 2, [legend, got])
        # The first row, of all paths, has a name of its own.
        root = window.run(
            'const c = document.querySelector("#flame").getContext("2d");'
            'const d = c.getImageData(300, 2, 1, 1).data;'
            'return `rgb(${d[0]}, ${d[1]}, ${d[2]})`')
        expect(all(near(color, [*known, root]) for color in got)
               if by == 'function' else True, '%s: %s' % (got, legend))
    window.choose('#colors', 'function')
    window.run('document.querySelector("#flame").focus()')
    names = [name for name, _ in legend_now()]
    rows = {row['name'] for row in rows_of('#table')}
    expect(len(set(names) & rows) > 3, [names, rows])
    window.keys([KEYS['home']] + [KEYS['down']] * 2 + [KEYS['enter']])
    inside = [name for name, _ in legend_now()]
    # How many calls are too narrow depends on their times.
    expect(set(inside) - {'too narrow to be told apart'} < set(names),
           [inside, names])
    window.run('document.querySelector("#search").focus()')
    window.keys(list('main'))
    expect('found' in [name for name, _ in legend_now()], legend_now())
    window.messages()           # about the pixels that this test has read


def legend_now():
    rest()
    return window.run(LEGEND)


def near(color, known):
    """Colours of a canvas may be rounded."""
    def parts(text):
        return [int(n) for n in re.findall(r'\d+', text)[:3]]
    return any(all(abs(a - b) <= 2 for a, b in zip(parts(color), parts(other)))
               for other in known)


SAVED = """
const [id, done] = arguments;
const before = URL.createObjectURL;
URL.createObjectURL = blob => {
    const reader = new FileReader();
    reader.onload = () => done([blob.type, reader.result]);
    reader.readAsDataURL(blob);
    URL.createObjectURL = before;
    return before.call(URL, blob);
};
document.querySelector(id).click();
"""


def saved(button):
    kind, url = window.ask('POST', '/execute/async',
                           {'script': SAVED, 'args': [button]})
    return kind, base64.b64decode(url.split(',', 1)[1])


@test
def pictures_are_saved():
    open_page(page_of(traced(4)))
    window.devtools('Browser.setDownloadBehavior', behavior='deny')
    window.choose('#metric', 'calls calls')         # the same in each run
    rest()
    # The first call has room for its name, however long the others had no processor.
    window.run('document.querySelector("#timeline").focus()')
    window.keys([KEYS['home'], KEYS['enter']])
    rest()
    for what, names in (('paths', {'main', 'outer', 'inner'}),
                        ('timeline', {'main'})):
        kind, data = saved('#%s-svg' % what)
        expect_equal(kind, 'image/svg+xml', what)
        root = xml.etree.ElementTree.fromstring(data)
        texts = {text.text for text in root.iter(
            '{http://www.w3.org/2000/svg}text')}
        expect(names <= texts, '%s: %s' % (what, texts))
        boxes = [box for box in root.iter('{http://www.w3.org/2000/svg}rect')]
        expect(len(boxes) > 5, 'boxes: %d' % len(boxes))
        kind, data = saved('#%s-png' % what)
        expect_equal((kind, data[:8]), ('image/png', b'\x89PNG\r\n\x1a\n'),
                     what)
        size = struct.unpack('>II', data[16:24])
        canvas = window.run('const c = document.querySelector(arguments[0]);'
                            'return [c.clientWidth * 2, '
                            'c.parentElement.clientHeight * 2]',
                            {'paths': '#flame'}.get(what, '#timeline'))
        expect_equal(list(size), canvas, 'size of ' + what)
    expect_equal(window.messages(), [], 'what the browser said')


@functools.lru_cache(maxsize=None)
def axe_core():
    """The text of axe-core: of the user's copy, or of npm's for the tests."""
    place = os.environ.get('AXE_CORE', '')
    if not place:
        shimtest.need('npm')
        prefix = os.path.join(shimtest.fixtures, 'npm-axe')
        place = os.path.join(prefix, 'node_modules', 'axe-core')
    if not os.path.exists(place + '/axe.min.js'):
        os.makedirs(prefix, exist_ok=True)
        done = subprocess.run(
            ['npm', 'install', '--prefix', prefix, '--no-save', '--no-audit',
             '--no-fund', '--ignore-scripts', 'axe-core'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, timeout=200)
        # The test does not require a reachable registry.
        if re.search('E(NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT|CONNRESET)|'
                     'network', done.stderr):
            raise Skipped('npm cannot reach its registry, and AXE_CORE names '
                          'no copy of axe-core')
        expect_equal(done.returncode, 0, done.stderr)
    with open(place + '/axe.min.js', encoding='utf-8') as file:
        return file.read()


AXE = """
const [rules, done] = arguments;
axe.run(rules ? { runOnly: rules } : {}).then(found => done(found.violations.map(each => [each.id,
    each.nodes.map(node => node.html.slice(0, 200))])),
    error => done(String(error)));
"""


# In the dark only the colours differ.
RULES = {'light': None, 'dark': ['color-contrast']}


def expect_accessible(what, theme):
    window.run(axe_core() + '; window.axe = axe')
    found = window.ask('POST', '/execute/async', {'script': AXE,
                                                  'args': [RULES[theme]]})
    expect_equal(found, [], 'axe-core on ' + what)


SHIFTS = """
const done = arguments[0];
let sum = 0;
new PerformanceObserver(list => {
    for (const entry of list.getEntries())
        sum += entry.value;
}).observe({ type: 'layout-shift', buffered: true });
setTimeout(() => done(sum), 0);
"""


# The legend follows the drawings, which come first.
@test
def nothing_moves_when_the_legend_comes():
    open_page(page_of(recording_of('unwind.cc', 'calltree:counts')))
    top = 'return document.querySelector("#flame").getBoundingClientRect().top'
    legend = window.run(LEGEND)
    expect(len(legend) > 3, 'the legend is there: %s' % legend)
    before = window.run(top)
    rest()
    expect_equal(window.run(top), before, 'the call paths')
    expect_equal(window.ask('POST', '/execute/async', {
        'script': SHIFTS, 'args': []}), 0, 'layout shifts')
    window.run('document.querySelector("#flame").focus()')
    window.keys([KEYS['home']] + [KEYS['down']] * 4 + [KEYS['enter']])
    rest()
    expect(len(window.run(LEGEND)) < len(legend), 'fewer names')
    expect_equal(window.run(top), before, 'the call paths, with fewer names')


@test
def axe_core_finds_no_violations():
    memory = compile('remembered.c', 'gcc', '-O1', ['-fno-builtin'])
    waits = compile('waits.cc', 'gcc', '-O1', ['-std=c++17'])
    joined = new_directory('joined') + '/all'
    shim_report('merge', '-o', joined, recording_of('unwind.cc',
                                                    'calltree:exact'),
                recording_of('threads.c', 'calltree:exact'))
    pages = {
        'a trace': page_of(traced(4)),
        'memory': page_of(record([memory, 'all'], 'memory').output),
        'locks': page_of(record([waits, 'paths'], 'locks').output),
        'exceptions': page_of(record([compile('exceptions.cc', 'gcc', '-O1')],
                                     'exceptions').output),
        'two recordings': page_of(joined),
        'coverage': page_of(record([compile('threads.c', 'gcc', '-O1')],
                                   'coverage').output),
        'lines': page_of(record([
            compile('lined.c', 'gcc', '-O2', ['-g'], instrument=False,
                    name='lined-page'), '400000'],
            'sampling').output, '--source'),
        'a comparison': page_of(
            recording_of('unwind.cc', 'calltree:exact'), '--against',
            recording_of('unwind.cc', 'calltree')),
    }
    for first, theme in enumerate(('light', 'dark')):
        window.devtools('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-color-scheme', 'value': theme}])
        for what, path in shimtest.some(pages.items(), 2, first):
            if what == 'coverage':
                window.open('file://' + path)
                expect_accessible('%s, %s' % (what, theme), theme)
                continue
            open_page(path)
            rest()
            expect_accessible('%s, %s' % (what, theme), theme)
            window.click('#tab-tree-down')
            if what == 'a trace':
                window.click('#span-view')
                window.click('#help-button')
            expect_accessible('%s, %s, more of it' % (what, theme), theme)
    window.devtools('Emulation.setEmulatedMedia', features=[])


if __name__ == '__main__':
    main()
