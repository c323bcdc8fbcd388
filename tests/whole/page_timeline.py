#!/usr/bin/env python3
"""page_timeline.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The timeline of `profrun html`, in a browser: a chosen time, lanes, the strip of the whole
time, counters, the hits of a search, and how quick it is.
"""
import json
import os

import shimtest
from browser import KEYS
from pagetest import (main, open_page, page_of, page_thread_ms, reported,
                      rows_of, traced, window)
from shimtest import compile, expect, expect_equal, record, test
from telling import told

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')


def calls_of(output, *options):
    """[[thread, from, to, name]...], as `export chrome` has them."""
    events = json.loads(shimtest.shim_report('export', 'chrome', output,
                                             *options))
    found, stacks = [], {}
    for event in events['traceEvents']:
        stack = stacks.setdefault(event['tid'], [])
        if event['ph'] == 'B':
            stack.append((event['ts'] * 1000, event['name']))
        elif event['ph'] == 'E':
            begin, name = stack.pop()
            found.append([event['tid'], begin, event['ts'] * 1000, name])
    return found


def range_of(selector):
    return window.run('return document.querySelector(arguments[0]).dataset'
                      '.range.split(" ").map(Number)', selector)


def box_of(selector):
    return window.run('const c = document.querySelector(arguments[0]);'
                      'c.scrollIntoView({ block: "center" });'
                      'const b = c.getBoundingClientRect();'
                      'return [b.x, b.y, b.width, b.height]', selector)


def drag(points, key=None):
    """Drags the mouse from the first of @points over the others, holding @key."""
    moves = [{'type': 'pointerMove', 'x': int(x), 'y': int(y), 'duration': 0}
             for x, y in points]
    actions = [moves[0], {'type': 'pointerDown', 'button': 0}, *moves[1:],
               {'type': 'pointerUp', 'button': 0}]
    sources = [{'type': 'pointer', 'id': 'mouse', 'actions': actions}]
    if key:
        sources = [{'type': 'key', 'id': 'keyboard', 'actions': [
            {'type': 'keyDown', 'value': key},
            *[{'type': 'pause', 'duration': 0}] * len(actions),
            {'type': 'keyUp', 'value': key}]}, *sources]
        actions.insert(0, {'type': 'pause', 'duration': 0})
    window.ask('POST', '/actions', {'actions': sources})


def press(*keys):
    window.keys(keys)
    return window.text('#call-name')


@test
def a_chosen_time_has_the_calls_in_it():
    output = traced(4)
    open_page(page_of(output, '--raw'))
    every = {row['name']: row for row in rows_of('#table')}
    window.run('document.querySelector("#timeline").focus()')
    press(KEYS['home'], KEYS['down'])
    expect_equal(press(), 'outer', 'the call')
    press('e')
    first, last = range_of('#span')
    calls = calls_of(output)
    rows = {row['name']: row for row in rows_of('#table')}
    met = {name for _, begin, end, name in calls
           if begin < last and end > first}
    # The calls of the other thread may overlap it.
    expect('inner' in met and 'outer' in met, met)
    for name in met:
        inside = [(begin, end) for _, begin, end, found in calls
                  if found == name and begin < last - 1 and end > first + 1]
        time = sum(min(end, last) - max(begin, first) for begin, end in inside)
        expect_equal(rows[name]['calls'][0], len(inside), name)
        expect(abs(rows[name]['total'][0] - time) <= 4 * len(inside) + 4,
               '%s: %s, not %s' % (name, rows[name], time))
    expect(rows['inner']['calls'][0] < every['inner']['calls'][0], rows)
    self_ns = sum(row['self'][0] for row in rows.values())
    top = float(window.run('return document.querySelector("#frame-facts dd")'
                           '.title.replaceAll(",", "")'))
    expect(abs(self_ns - top) <= len(rows), '%s is %s' % (self_ns, top))
    # One thread of it.
    window.choose('#thread', '2')
    expect_equal({row['name'] for row in rows_of('#table')} - met, set(),
                 'functions of a thread')
    window.choose('#thread', '0')
    window.run('document.querySelector("#timeline").focus()')
    window.keys([KEYS['escape']])
    expect_equal({row['name']: row['calls'] for row in rows_of('#table')},
                 {name: row['calls'] for name, row in every.items()}, 'escape')


@test
def functions_that_are_not_shown_are_not_on_the_timeline():
    output = traced(4)
    open_page(page_of(output))
    whole = range_of('#times-range')
    for options, names in (
            (['--hide', 'inner'], {'main', 'outer', 'leaf', 'work'}),
            (['--only', 'leaf'], {'leaf'}),
            (['--focus', '^inner$'], {'inner', 'leaf'}),
            (['--hide', 'inner', '--hide', 'leaf', '--merge-recursion'],
             {'main', 'outer', 'work'})):
        calls = calls_of(output, *options)
        expect_equal({name for *_, name in calls}, names, options)
        open_page(page_of(output, *options))
        expect(window.text('#merged').startswith(
            'All %d calls are there' % len(calls)), window.text('#merged'))
        expect_equal(range_of('#times-range'), whole, 'the whole time')
        window.run('document.querySelector("#timeline").focus()')
        seen, last = {press(KEYS['home'])}, None
        while window.text('#call-facts') != last:
            last = window.text('#call-facts')
            seen.add(press(KEYS['down']))
        expect(seen <= names and 'leaf' in seen or 'leaf' not in names,
               '%s: %s' % (options, seen))


@test
def a_drag_on_the_axis_chooses_a_time():
    open_page(page_of(traced(4)))
    x, y, width, _ = box_of('#timeline')
    whole = range_of('#times-range')[1]
    for top, key in (10, None), (60, '\ue008'):
        drag([(x + width / 4, y + top), (x + width / 3, y + top),
              (x + width / 2, y + top)], key)
        got = range_of('#span')
        expect(abs(got[0] - whole / 4) < whole / 200 and
               abs(got[1] - whole / 2) < whole / 200,
               '%s of %s' % (got, whole))
        expect_equal(range_of('#times-range'), [0, whole], 'the range')
        window.click('#span-none')
        expect(window.run('return document.querySelector("#span").hidden'),
               'all the time')
    window.click('#span-view')
    expect_equal(range_of('#span'), [0, whole], 'what is in view')
    window.click('#span-none')


@test
def the_window_of_the_strip_can_be_dragged():
    open_page(page_of(traced(4)))
    x, y, width, height = box_of('#overview')
    y += height / 2
    whole = range_of('#times-range')[1]

    def expect_range(first, last, what):
        got = range_of('#times-range')
        expect(abs(got[0] / whole - first) < 0.005 and
               abs(got[1] / whole - last) < 0.005,
               '%s: %s of %s' % (what, got, whole))
    steps = ((0.2, 0.4, 0.2, 0.4, 'a new window'),
             (0.3, 0.5, 0.4, 0.6, 'the window'),
             (0.4, 0.3, 0.3, 0.6, 'its left edge'),
             (0.6, 0.9, 0.3, 0.9, 'its right edge'))
    for begin, end, first, last, what in steps:
        drag([(x + width * begin, y), (x + width * (begin + end) / 2, y),
              (x + width * end, y)])
        expect_range(first, last, what)
    window.run('document.querySelector("#overview").focus()')
    window.keys([KEYS['left']])
    expect_range(0.18, 0.78, 'a key')
    window.keys([KEYS['home']])
    window.wait('return document.querySelector("#times-out").disabled')


@test
def lanes_close_and_open():
    open_page(page_of(traced(4)))
    height = 'return document.querySelector("#timeline").parentElement' \
        '.clientHeight'
    before = window.run(height)
    window.click('#lanes-all')
    closed = window.run(height)
    expect(closed < before, '%d, before: %d' % (closed, before))
    expect_equal(window.text('#lanes-all'), 'Open lanes', 'the button')
    x, y, width, _ = box_of('#timeline')
    # The calls of a closed lane are there, in thin rows.
    window.point(x + width - 9, y + 24 + 20 + 2, click=True)
    expect_equal(window.text('#call-name'), 'main', 'the first call')
    window.point(x + 40, y + 24 + 10, click=True)
    opened = window.run(height)
    expect(closed < opened < before, [closed, opened, before])
    window.run('document.querySelector("#timeline").focus()')
    press('x')
    expect_equal(window.run(height), closed, 'a key')
    press('X')
    expect_equal(window.run(height), before, 'all lanes')


@test
def a_search_leads_through_its_calls():
    open_page(page_of(traced(4)))
    window.run('document.querySelector("#search").focus()')
    window.keys(list('^outer$'))
    window.run('document.querySelector("#timeline").focus()')
    seen = []
    for key in 'nnnN':
        press(key)
        seen.append((window.text('#call-name'), window.text('#hit-call'),
                     window.run('return document.querySelector('
                                '"#call-facts dd").title')))
    expect_equal([name for name, _, _ in seen], ['outer'] * 4, 'functions')
    expect_equal([hit for _, hit, _ in seen],
                 ['hit 1 of 2', 'hit 2 of 2', 'hit 1 of 2', 'hit 2 of 2'],
                 'hits')
    times = [int(at.replace(',', '').split()[0]) for _, _, at in seen]
    expect(times[0] < times[1] and times[2] == times[0] and
           times[3] == times[1], times)
    # The same in the call paths.
    window.run('document.querySelector("#search").focus()')
    window.keys([KEYS['enter']])
    expect_equal([window.text('#frame-name'), window.text('#hit')],
                 ['outer', 'hit 1 of 2'], 'a path')
    window.click('#hit-next')
    expect_equal(window.text('#hit'), 'hit 2 of 2', 'the next one')


COUNTED = r"""
#include <shim/mark.h>

__attribute__((noinline)) static void step(int i)
{
        shim_counter("bytes read", i * 1000.0);
        shim_counter("queue", i % 3);
        shim_counter("same", 7);
}

int main(void)
{
        for (int i = 0; i < 50; i++)
                step(i);
        return 0;
}
"""

TEXTS = """
const [part, done] = arguments;
const prototype = CanvasRenderingContext2D.prototype;
const before = prototype.fillText;
const texts = [];
prototype.fillText = function (text, ...more) {
    texts.push(text);
    before.call(this, text, ...more);
};
dispatchEvent(new Event('resize'));
document.querySelector('#timeline').focus();
requestAnimationFrame(() => requestAnimationFrame(() => {
    prototype.fillText = before;
    done(texts);
}));
"""


@test
def counters_have_units_and_rates_and_change():
    path = shimtest.scratch + '/counted_values.c'
    with open(path, 'w') as file:
        file.write(COUNTED)
    output = record([compile(path, flags=['-I', INCLUDE])], 'trace').output
    open_page(page_of(output))
    window.run('document.querySelector("#timeline").blur()')

    def texts():
        window.run('document.querySelector("#search").focus()')
        return window.ask('POST', '/execute/async',
                          {'script': TEXTS, 'args': ['']})
    drawn = texts()
    expect('bytes read, per second' in drawn, drawn)
    expect(any(text.endswith('iB/s') for text in drawn), drawn)
    expect('queue' in drawn and '2' in drawn, drawn)
    expect('same' not in drawn, drawn)
    expect('same = 7' in window.text('#merged'), window.text('#merged'))
    window.choose('#rates', 'sum')
    drawn = texts()
    expect('bytes read' in drawn and '47.9 KiB' in drawn, drawn)


WAITING = r"""
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;

__attribute__((noinline)) static void hold(int times)
{
        pthread_mutex_lock(&the_lock);
        pthread_barrier_wait(&held);
        usleep(times * 5000);
        pthread_mutex_unlock(&the_lock);
        pthread_barrier_wait(&held);
}

__attribute__((noinline)) static void want(void)
{
        pthread_barrier_wait(&held);
        pthread_mutex_lock(&the_lock);
        pthread_mutex_unlock(&the_lock);
        pthread_barrier_wait(&held);
}

static void *holder(void *argument)
{
        for (int i = 1; i <= 10; i++)
                hold(i);
        return argument;
}

int main(void)
{
        pthread_t thread;

        pthread_barrier_init(&held, NULL, 2);
        pthread_create(&thread, NULL, holder, NULL);
        for (int i = 1; i <= 10; i++)
                want();
        pthread_join(thread, NULL);
        return 0;
}
"""


# The last of ten holders waits for 50 ms, so one of them at least holds the lock when
# the other thread comes.
@test
def a_wait_for_a_lock_leads_to_its_holder():
    path = shimtest.scratch + '/waiting.c'
    with open(path, 'w') as file:
        file.write(WAITING)
    output = record([compile(path, flags=['-pthread'])], 'trace;locks').output
    about = reported(output, '--locks')
    waited, = [lock for lock in about['locks'] if lock['name'] == 'the_lock']
    threads = {thread['tid'] for thread in about['threads']}
    main, = threads & {int(os.path.basename(name).split('.')[0])
                       for name in os.listdir(output) if name[0].isdigit()}
    holder, = threads - {main}
    lines = [line for line in shimtest.shim_report('replay', output).splitlines()
             if 'waited for mutex the_lock' in line]
    expect_equal(len(lines), waited['waits'], 'waits in replay')
    expect(all(line.endswith('held by %d' % holder) for line in lines), lines)
    open_page(page_of(output))
    expect('%d waits for locks' % waited['waits'] in window.text('#merged'),
           window.text('#merged'))
    expect('waits for a lock' in window.wait(
        'return document.querySelector("#legend").textContent'), 'the legend')
    window.run('document.querySelector("#timeline").focus()')
    press(KEYS['home'], KEYS['down'])
    seen = 0
    for number in range(10):
        facts = window.text('#call-facts')
        expect_equal(window.text('#call-name'), 'want', 'the call')
        if 'Waited' in facts:
            expect('for mutex the_lock, held by %d' % holder in facts, facts)
            begin = window.text('#call-facts dd')
            expect_equal(press('h'), 'hold', 'the holder')
            expect(window.text('#call-facts dd') != begin, 'another call')
            window.run('document.querySelector("#timeline").focus()')
            seen += 1
            window.keys([KEYS['home'], KEYS['down']] + [KEYS['right']] * number)
        press(KEYS['right'])
    expect(seen == waited['waits'], '%d of %d' % (seen, waited['waits']))
    # A span of time has no waits; all the time has them again.
    value = 'return document.querySelector("#metric").value'
    expect_equal(window.run(value), 'calls waits', 'shown first')
    window.click('#span-view')
    expect(window.run(value) != 'calls waits', 'a span has no waits')
    window.click('#span-none')
    expect_equal(window.run(value), 'calls waits', 'shown again')
    expect_equal(window.messages(), [], 'what the browser said')


DRAG = """
const [closer, done] = arguments;
const canvas = document.querySelector('#timeline');
const frame = () => new Promise(requestAnimationFrame);
const send = (type, x) => {
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new PointerEvent(type, { clientX: box.x + x,
        clientY: box.y + 150, buttons: 1, bubbles: true, pointerId: 1 }));
};
(async () => {
    canvas.scrollIntoView();
    canvas.setPointerCapture = () => {};
    for (let i = 0; i < closer; i++)
        canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'w' }));
    await frame();
    send('pointerdown', 600);
    const took = [];
    let last = await frame();
    for (let i = 0; i < 60; i++) {
        send('pointermove', 600 + (i % 2 ? i : -i) * 7);
        const now = await frame();
        took.push(now - last);
        last = now;
    }
    send('pointerup', 600);
    done(took.sort((a, b) => a - b));
})();
"""


@test
def ten_million_calls_can_be_dragged_at_the_frame_rate():
    output = traced(4260000)
    calls = reported(output)['calls']
    expect(calls >= 10000000, calls)
    path = page_of(output)
    open_page(path)
    for closer in 0, 3, 8:
        before = page_thread_ms()
        took = window.ask('POST', '/execute/async', {'script': DRAG, 'args': [closer]})
        used = (page_thread_ms() - before) / len(took)
        print('# %d calls, %d KiB, ms for a frame: %.1f of the processor, %.1f in all, at '
              'most %.1f' % (calls, os.path.getsize(path) / 1024, used, took[len(took) // 2],
                             took[-1]))
        # On a busy machine frames come late, however little time they take.
        expect(used < 1000 / 60, '%.1f ms for each frame' % used)


LINES = """
const done = arguments[arguments.length - 1];
const prototype = CanvasRenderingContext2D.prototype;
const before = prototype.lineTo;
let count = 0;
prototype.lineTo = function (...point) {
    count++;
    before.apply(this, point);
};
dispatchEvent(new Event('resize'));
document.querySelector('#timeline').focus();
requestAnimationFrame(() => requestAnimationFrame(() => {
    prototype.lineTo = before;
    done(count);
}));
"""


@test
def messages_are_lines_and_a_wait_leads_to_the_late_rank():
    open_page(page_of(told()))
    note = window.text('#merged')
    expect('5 messages: a line leads from the call that sends' in note, note)
    expect('4 waits for late ranks' in note, note)
    window.wait('return document.querySelector("#legend").textContent'
                '.includes("messages")')
    expect_equal(window.ask('POST', '/execute/async',
                            {'script': LINES, 'args': []}), 5, 'lines')
    window.run('document.querySelector("#timeline").focus()')
    press(KEYS['home'], KEYS['down'], KEYS['down'])
    for _ in range(6):
        facts, name = window.text('#call-facts'), window.text('#call-name')
        if 'Waited' in facts:
            break
        press(KEYS['right'])
    wanted = {'receive': 'for rank 0, which sends later',
              'meet': 'for rank 0, which comes last',
              'spread': 'for rank 0, which comes last',
              'hand_over': 'for rank 1, which receives later'}
    expect(name in wanted and wanted[name] in facts, (name, facts))
    # What the other rank did meanwhile: it may not have left an earlier call.
    late = press('h')
    expect(late in ('run_first', 'run_second', 'send_late', 'meet', 'spread',
                    'collect', 'send_three') and late != name, (name, late))


if __name__ == '__main__':
    main()
