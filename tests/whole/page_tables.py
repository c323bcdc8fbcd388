#!/usr/bin/env python3
"""page_tables.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

The tables of `profrun html` besides that of functions, in a browser: the call tree in both
directions, the numbers of each thread, memory over time, and the ranks of a job.
"""
import json
import os

import craft
import shimtest
from browser import KEYS
from pagetest import (exported, human_ns, main, open_page, page_of, recording_of,
                      reported, rows_of, window)
from shimtest import (Failed, Skipped, compile, expect, expect_equal, new_directory,
                      record, shim_report, test)

TREE = """
return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(row => ({
    level: Number(row.ariaLevel), open: row.ariaExpanded,
    name: row.querySelector('.called').title,
    ...Object.fromEntries([...row.cells].filter(cell => cell.dataset.value)
        .map(cell => [cell.dataset.column, Number(cell.dataset.value)])) }));
"""


def open_all(selector):
    """Opens all rows of the tree by keys, and returns the rows."""
    window.run('document.querySelector(arguments[0] + " tbody tr").focus()',
               selector)
    window.keys([KEYS['home']])
    at = 0
    while True:
        rows = window.run(TREE, selector)
        if at == len(rows):
            return rows
        if rows[at]['open'] == 'false':
            window.keys([KEYS['right']])
        window.keys([KEYS['down']])
        at += 1


@test
def the_call_tree_has_the_paths_of_the_report():
    about = exported(recording_of('unwind.cc', 'calltree:exact'))
    open_page(page_of(recording_of('unwind.cc', 'calltree:exact')))
    window.click('#tab-tree-down')
    rows = open_all('#tree-down')
    paths = {path['id']: path for path in about['paths']}

    def names(path):
        above = names(paths[path['parent']]) if path['parent'] else []
        return above + [about['functions'][path['function']]['name']]
    wanted = {}
    for path in about['paths']:
        key = tuple(names(path))
        found = wanted.setdefault(key, [0, 0, 0])
        for i, figure in enumerate(('calls', 'total_ns', 'self_ns')):
            found[i] += path[figure]
    got, above = {}, []
    for row in rows:
        above = above[:row['level'] - 1] + [row['name']]
        found = got.setdefault(tuple(above), [0, 0, 0])
        for i, figure in enumerate(('calls', 'total', 'self')):
            found[i] += row[figure]
    expect_equal(set(got), set(wanted), 'paths')
    for key, figures in wanted.items():
        expect(all(abs(a - b) <= 1 for a, b in zip(figures, got[key])),
               '%s: %s, not %s' % (key, got[key], figures))
    expect(len(wanted) > 15, wanted)
    # A row is chosen: the drawing and the function follow.
    window.keys([KEYS['home'], KEYS['down'], KEYS['enter']])
    expect_equal([window.text('#frame-name'), window.text('#function-name')],
                 [rows[1]['name']] * 2, 'the chosen row')
    window.run('document.querySelector("#tree-down tbody tr").focus()')
    window.keys([KEYS['home'], KEYS['left']])
    closed = window.run(TREE, '#tree-down')
    expect(len(closed) < len(rows) and closed[0]['open'] == 'false', closed)


@test
def bottom_up_has_the_self_times_of_functions_by_caller():
    output = recording_of('unwind.cc', 'calltree:exact')
    about = exported(output)
    open_page(page_of(output))
    functions = {row['name']: row['self'][0] for row in rows_of('#table')}
    window.run('document.querySelector("#tab-table").focus()')
    window.keys([KEYS['left']])
    expect(window.run('return document.activeElement.id') == 'tab-tree-up' and
           not window.run('return document.querySelector("#tree-up").hidden'),
           'keys choose a table')
    rows = open_all('#tree-up')
    roots = [row for row in rows if row['level'] == 1]
    for row in roots:
        expect(abs(functions[row['name']] - row['self']) <= 5,
               '%s: %s' % (row, functions[row['name']]))
    names = [function['name'] for function in about['functions']]
    paths = {path['id']: path for path in about['paths']}
    wanted, got, root = {}, {}, None
    for path in about['paths']:
        above = paths.get(path['parent'])
        if above:
            key = names[path['function']], names[above['function']]
            wanted[key] = wanted.get(key, 0) + path['calls']
    for row in rows:
        root = row['name'] if row['level'] == 1 else root
        if row['level'] == 2:
            key = root, row['name']
            got[key] = got.get(key, 0) + row['calls']
    expect_equal(got, wanted, 'callers')


TWO = r"""
#include <pthread.h>
#include <time.h>

__attribute__((noinline)) static void take(long ns)
{
        struct timespec begin, now;

        clock_gettime(CLOCK_MONOTONIC, &begin);
        do
                clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec -
               begin.tv_nsec < ns);
}

static void *work(void *argument)
{
        for (int i = 0; i < 5; i++)
                take(1000);
        return argument;
}

int main(void)
{
        pthread_t thread;

        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
        for (int i = 0; i < 3; i++)
                take(4000000);
        return 0;
}
"""


CALLERS = TWO.split('static void *work')[0] + r"""
__attribute__((noinline)) static void slow(void)
{
        for (int i = 0; i < 10; i++)
                take(4000000);
}

__attribute__((noinline)) static void quick(void)
{
        for (int i = 0; i < 100; i++)
                take(0);
}

int main(void)
{
        slow();
        quick();
        return 0;
}
"""


def without_a_tick_in_quick(program):
    """The recording of a run in which no tick came in quick() or its callees.  A busy machine
    takes the processor from it in 1 of 400 runs."""
    for _ in range(10):
        output = record([program], 'calltree').output
        about = exported(output)
        quick = [f['name'] for f in about['functions']].index('quick')
        within = [p for p in about['paths'] if p['function'] == quick]
        within += [p for p in about['paths'] if p['parent'] in [q['id'] for q in within]]
        expect_equal(len(within), 2, 'quick, and take in it')
        if all(p['self_below_ns'] for p in within):
            return output
    raise Failed('quick() always has a known time: %s' % within)


@test
def a_time_is_known_if_one_of_its_paths_has_a_known_time():
    path = shimtest.new_source('callers.c', CALLERS)
    outputs = [without_a_tick_in_quick(compile(path)) for _ in range(2)]
    open_page(page_of(outputs[0]))
    window.click('#tab-tree-up')
    selves = {}
    open_all('#tree-up')
    for name, level, text in window.run(
            'return [...document.querySelectorAll("#tree-up tbody tr")].map(row => '
            '[row.querySelector(".called").title, Number(row.ariaLevel), '
            'row.querySelector("[data-column=self]").textContent])'):
        selves.setdefault((name, level), text)
    expect(selves['take', 1][0] != '<' and selves['take', 1].endswith(' ms'), selves)
    expect(selves['slow', 2][0] != '<' and selves['quick', 2][0] == '<', selves)
    # A rank whose samples of a function are none has a bound, not 0.
    joined = new_directory('joined') + '/all'
    shim_report('merge', '-o', joined, *outputs)
    open_page(page_of(joined))
    number = [row['name'] for row in rows_of('#table')].index('quick')
    window.run('document.querySelectorAll("#table button.function")'
               '[arguments[0]].click()', number)
    texts = window.run('return [...document.querySelectorAll('
                       '"#rank-table [data-column=own]")].map(cell => cell.textContent)')
    expect(len(texts) >= 2 and all(text[0] == '<' for text in texts[-2:]), texts)


@test
def durations_of_a_thread_are_its_own():
    path = shimtest.new_source('two.c', TWO)
    open_page(page_of(record([compile(path)], 'calltree:exact').output))

    def shown():
        number = [row['name'] for row in rows_of('#table')].index('take')
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        facts = window.run(
            'return Object.fromEntries([...document.querySelectorAll('
            '"#function-facts div")].map(d => [d.firstChild.textContent, '
            'd.lastChild.title]))')
        calls = window.run(
            'return [...document.querySelectorAll("#histogram tbody tr")]'
            '.map(row => Number(row.cells[1].textContent))')
        return [int(facts[key].split()[0].replace(',', ''))
                for key in ('Shortest', 'Longest')], sum(calls)
    (least, most), calls = shown()
    expect_equal(calls, 8, 'all threads')
    threads = []
    for value in '1', '2':
        window.choose('#thread', value)
        threads.append(shown())
    threads.sort(key=lambda each: each[1])
    ((slow, slowest), three), ((fast, fastest), five) = threads
    expect_equal([three, five], [3, 5], 'calls of threads')
    # A call of the fast thread that loses its processor may take longest.
    expect_equal([max(slowest, fastest), fast], [most, least], 'the ends')
    expect(slow >= 4000000 and slow > fast and slowest != fastest, threads)


def human_bytes(size):
    for unit in 'B', 'KiB', 'MiB':
        if size < 1023.95:
            return '%.*f %s' % (unit != 'B', size, unit)
        size /= 1024


GROWS = r"""
#include <stdlib.h>
#include <time.h>

static void *volatile blocks[100];

__attribute__((noinline)) static void fill(int i)
{
        blocks[i] = malloc(1000 * (i + 1));
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

__attribute__((noinline)) static void drop(int i)
{
        free(blocks[i]);
        blocks[i] = malloc(10);
}

int main(void)
{
        for (int i = 0; i < 100; i++)
                fill(i);
        for (int i = 0; i < 100; i++)
                drop(i);
        return 0;
}
"""


@test
def memory_begins_with_its_largest_path_and_is_drawn_over_time():
    path = shimtest.new_source('grows.c', GROWS)
    output = record([compile(path, 'gcc', '-O1', ['-fno-builtin'])],
                    'memory').output
    about = exported(output)
    open_page(page_of(output))
    best = max(about['paths'],
               key=lambda path: path['memory']['allocated_bytes'])
    name = about['functions'][best['function']]['name']
    expect_equal(window.text('#frame-name'), name, 'the path')
    most = max(about['functions'],
               key=lambda f: f['memory']['allocated_bytes'])
    expect_equal(window.text('#function-name'), most['name'], 'the function')
    points = about['memory_points']
    expect(len(points) > 1, points)
    window.run('document.querySelector("#curve").focus()')
    for _, size in points[:3]:
        window.keys([KEYS['right']])
        text = window.text('#point')
        wanted = human_bytes(size)
        expect(text.startswith(wanted + ' at '), '%s: %s' % (text, wanted))
    expect('peak ' + human_bytes(about['memory']['peak_bytes']) in
           window.text('#memory-facts'), window.text('#memory-facts'))


@test
def locks_begin_with_the_path_that_waits_longest():
    program = compile('waits.cc', 'gcc', '-O1', ['-std=c++17'])
    output = record([program, 'paths'], 'locks').output
    sums = {}
    for line in shim_report('export', 'folded', output, '--value',
                            'waits').splitlines():
        path, ns = line.rsplit(' ', 1)
        sums[path] = int(ns)
    open_page(page_of(output))
    expect_equal(window.text('#frame-name'),
                 max(sums, key=sums.get).split(';')[-1], 'the path')


@test
def time_without_a_processor_is_that_of_the_report():
    output = record([compile('cpu_time.c', libraries=['-lpthread']), '1'],
                    'calltree:clock=cpu').output
    about = reported(output)
    if any(process['tick_ns'] is None for process in about['processes']):
        raise Skipped('the kernel has no coarse clock here')
    open_page(page_of(output))
    rows = {row['name']: row for row in rows_of('#table')}
    known = 0
    for function in about['functions']:
        got, text = rows[function['name']]['waited']
        waited, below = function['waited_ns'], function['waited_below_ns']
        known += waited is not None
        expect(abs(got - (-1 if waited is None else waited)) <= 1,
               '%s: %s, not %s' % (function['name'], got, waited))
        expect_equal(text, '-' if waited is None else
                     '< ' + human_ns(below) if below else human_ns(got),
                     function['name'])
    expect(rows['sleeps']['waited'][0] > 100000000 and known > 2, rows)
    open_page(page_of(recording_of('unwind.cc', 'calltree:exact')))
    expect('waited' not in rows_of('#table')[0], 'all times are wall-clock times')


def job_with_one_slow_rank(count, slow):
    directory = new_directory('job')
    for rank in range(count):
        name = 'rank.%d' % rank
        time_ns = 10**8 if rank == slow else 10**6
        craft.write(os.path.join(directory, name), {
            'meta': craft.meta(1000 + rank, cost=0, rank=str(rank)),
            '0.calltree': craft.tree(craft.thread(), craft.node(
                0x555555001000, craft.MEMORY, 1, time_ns, coarse=0))},
                '%d.0' % (1000 + rank))
    return directory


DARKEST = """
const canvas = document.querySelector('#strip');
const { data } = canvas.getContext('2d').getImageData(0, 10, canvas.width, 1);
const alike = (a, b) => [0, 1, 2].every(i => data[4 * a + i] === data[4 * b + i]);
return [...Array(canvas.width).keys()].filter(x => !alike(x, 0));
"""


@test
def one_slow_rank_is_seen_where_ranks_are_narrower_than_pixels():
    open_page(page_of(job_with_one_slow_rank(3000, 1500)))
    different = window.run(DARKEST)
    width = window.run('return document.querySelector("#strip").width')
    expect(len(different) == 1 and abs(different[0] - width / 2) < 2,
           (different, width))


@test
def ranks_are_those_of_the_report():
    outputs = []
    for count in 1, 2, 9:
        result = record([compile('ranks.c'), str(count), '0'],
                        'calltree:exact')
        outputs.append(result.output)
    joined = new_directory('joined') + '/all'
    shim_report('merge', '-o', joined, *outputs)
    about = json.loads(shim_report('report', joined, '--ranks', '--format',
                                   'json'))
    open_page(page_of(joined))
    for number, row in enumerate(rows_of('#table')):
        window.run('document.querySelectorAll("#table button.function")'
                   '[arguments[0]].click()', number)
        rows = rows_of('#rank-table')
        expect_equal({r['name'] for r in rows}, set(about['ranks']), 'ranks')
        function, = (f for f in about['functions'] if f['name'] == row['name'])
        for name, wanted in zip(about['ranks'], function['each']):
            got, = (r['own'][0] for r in rows if r['name'] == name)
            expect(abs(got - wanted) <= 2, '%s of %s: %s, not %s' % (
                row['name'], name, got, wanted))
    window.run('document.querySelector("#strip").focus()')
    window.keys([KEYS['right']])
    expect(window.text('#cell').startswith(about['ranks'][0] + ': '),
           window.text('#cell'))
    open_page(page_of(outputs[0]))
    expect(window.run('return document.querySelector("#ranks").hidden'),
           'ranks of one recording')


COMPARED = r"""
static volatile long sum;

__attribute__((noinline)) static void leaf(void)
{
        for (int i = 0; i < 100; i++)
                sum += i;
}

#ifdef AFTER
__attribute__((noinline)) static void added(int n)
{
        for (int i = 0; i < n; i++)
                leaf();
}
#else
__attribute__((noinline)) static void removed(int n)
{
        for (int i = 0; i < n; i++)
                leaf();
        for (int i = 0; i < n; i++)
                leaf();
}
#endif

__attribute__((noinline)) static void both(int n)
{
        for (int i = 0; i < n; i++)
                leaf();
}

int main(void)
{
        for (int i = 0; i < 30; i++) {
                both(CALLS);
#ifdef AFTER
                added(CALLS);
#else
                removed(CALLS);
#endif
        }
        return 0;
}
"""
PIXEL = """
const [id, x, row] = arguments;
const canvas = document.querySelector(id);
const [red, green, blue] = canvas.getContext('2d').getImageData(
    Math.round(canvas.width * x), row * 20 + 2, 1, 1).data;
return `${red} ${green} ${blue}`;
"""


@test
def two_recordings_are_compared_side_by_side():
    outputs = {}
    # Times have an error where many short calls are timed by ticks.
    for profile, calls in ('calltree:exact', 1), ('calltree', 4000):
        for name, *more in ['old'], ['new', '-DAFTER']:
            program = compile(shimtest.new_source('compared.c', COMPARED), 'gcc', '-O1',
                              ['-DCALLS=%d' % calls, *more],
                              name='compared_%s_%d' % (name, calls))
            outputs[name, calls] = record([program], profile).output
    old, new = outputs['old', 1], outputs['new', 1]
    old_coarse, new_coarse = outputs['old', 4000], outputs['new', 4000]
    open_page(page_of(new, '--against', old))
    expect('Before: ' + os.path.basename(old) ==
           window.text('#beside-before'), window.text('#beside-before'))
    window.choose('#metric', 'calls calls')
    window.choose('#order', 'name')
    window.choose('#colors', 'function')
    # In main are both and removed (60 and 90 of 151 calls); now it is added and
    # both (60 and 60 of 121).
    expect_equal(window.run(PIXEL, '#flame', 0.75, 2),
                 window.run(PIXEL, '#flame-before', 0.05, 2), 'one function')
    expect(window.run(PIXEL, '#flame', 0.2, 2) !=
           window.run(PIXEL, '#flame-before', 0.6, 2), 'added and removed')
    # The legend comes last, and moves the pictures down.
    window.wait('return document.querySelector("#legend li")')
    for canvas, x, name, facts in (
            ('#flame-before', 0.6, 'removed', 'Before90Now0 (gone)'),
            ('#flame-before', 0.1, 'both', 'Before60Now60 (0.0 %)'),
            ('#flame', 0.2, 'added', 'Before0 (new)')):
        box = window.run('const c = document.querySelector(arguments[0]);'
                         'c.scrollIntoView({ block: "center" });'
                         'const b = c.getBoundingClientRect();'
                         'return [b.x, b.y, b.width]', canvas)
        window.point(box[0] + box[2] * x, box[1] + 50)
        expect_equal(window.text('#tip strong'), name, canvas)
        expect(facts in window.text('#tip'), window.text('#tip'))
    # A zoom in one is a zoom in the other.
    box = window.run('const b = document.querySelector("#flame-before")'
                     '.getBoundingClientRect(); return [b.x, b.y, b.width]')
    window.point(box[0] + box[2] * 0.1, box[1] + 50, click=True)
    expect_equal(window.text('#frame-name'), 'both', 'the path')
    window.wait('return !document.querySelector("#zoom-out").disabled')
    for canvas in '#flame', '#flame-before':
        window.wait('const at = x => { %s }; return at(0.03) === at(0.97)' %
                    PIXEL.replace('const [id, x, row] = arguments;',
                                  'const id = "%s", row = 2;' % canvas))
    window.keys([KEYS['escape']])
    window.wait('return document.querySelector("#zoom-out").disabled')
    window.messages()               # about the pixels that this test has read
    # Differences of times have an error.
    open_page(page_of(new_coarse, '--against', old_coarse))
    rows = rows_of('#table')
    now, before = [
        {f['name']: f for f in json.loads(shim_report(
            'report', '--format', 'json', output))['functions']}
        for output in (new_coarse, old_coarse)]
    met = 0
    for row in rows:
        errors = [of.get(row['name'], {}).get('self_error_ns') or 0
                  for of in (now, before)]
        wanted = sum(error ** 2 for error in errors) ** 0.5
        if wanted:
            expect(abs(row['noise'][0] - wanted) <= 2, [row, wanted])
            met += 1
    expect(met, 'nothing has an error: %s' % rows)
    window.click('#tab-tree-down')
    expect('\u00b1' in window.text('#tree-down'), window.text('#tree-down'))


QUICK = """
static __attribute__((noinline)) int quick(int x) { return x + 1; }

int main(void)
{
        int sum = 0;

        for (int i = 0; i < 4000; i++)
                sum = quick(sum);
        return sum != 4000;
}
"""


def quick():
    source = shimtest.new_source('quick.c', QUICK)
    return record([compile(source, 'gcc', '-O1')], 'calltree:exact').output


@test
def a_call_is_never_shown_to_take_0_ns():
    output = quick()
    functions = {row['name']: row for row in reported(output)['functions']}
    for name, row in functions.items():
        for key in 'min', 'max':
            ns, below = row[key + '_ns'], row[key + '_below_ns']
            expect((ns is None) != (below is None) and ns != 0 and below != 0,
                   '%s: %s' % (name, row))
    below = functions['quick']['min_below_ns']
    expect(below, functions['quick'])
    open_page(page_of(output))
    window.run("""for (const button of document.querySelectorAll(
        '#table button.function')) if (button.textContent === 'quick')
        button.click();""")
    facts = window.text('#function-facts')
    expect('Shortest< ' + human_ns(below) in facts, facts)
    text = shim_report('report', output)
    expect(' 0 ns' not in text, text)


CUT = """
const cut = [];
for (const table of document.querySelectorAll('.numbers'))
    for (const cell of table.querySelectorAll('.number')) {
        const box = cell.getBoundingClientRect();
        if (!box.width || table.closest('[hidden]'))
            continue;
        cell.scrollIntoView({ block: 'center' });
        const at = cell.getBoundingClientRect();
        const text = document.createRange();
        text.selectNodeContents(cell);
        const need = text.getBoundingClientRect();
        for (const x of [need.left + 1, need.right - 1])
            if (!cell.contains(document.elementFromPoint(x, at.y + at.height / 2)))
                cut.push(`${cell.textContent} at ${x}`);
    }
return [cut, document.documentElement.scrollWidth];
"""


@test
def no_number_is_cut_on_a_narrow_screen():
    open_page(page_of(recording_of('unwind.cc', 'calltree:exact')))
    size = {'width': 420, 'height': 900, 'deviceScaleFactor': 1, 'mobile': False}
    window.devtools('Emulation.setDeviceMetricsOverride', **size)
    try:
        for tab in '#tab-table', '#tab-tree-down', '#tab-tree-up':
            window.click(tab)
            cut, width = window.run(CUT)
            expect_equal(cut, [], tab)
            expect_equal(width, 420, tab)
    finally:
        window.devtools('Emulation.clearDeviceMetricsOverride')


SHORTER = """
#include <stdlib.h>
__attribute__((noinline)) void spin(long n)
{
        while (n-- > 0)
                __asm__ volatile("" : : : "memory");
}
int main(int argc, char **argv)
{
        for (int i = 0; i < 100; i++)
                spin(atol(argv[1]));
        return argc - 2;
}
"""


@test
def a_function_that_is_called_is_not_gone():
    source = shimtest.new_source('shorter.c', SHORTER)
    program = compile(source, 'gcc', '-O1')
    old, now = (record([program, times], 'calltree').output
                for times in ('1000000', '1'))
    open_page(page_of(now, '--against', old))
    spin, = [row for row in rows_of('#table') if row['name'].startswith('spin')]
    expect(spin['part'][1].startswith('\u2212'), spin)


NAMES = """
const box = document.querySelector('#table').getBoundingClientRect();
const least = Math.min(box.width / 3, 150);
return [...document.querySelectorAll('#table td.name')].map(cell =>
    cell.getBoundingClientRect()).filter(({ width, right }) =>
    width < least || right > box.right + 1).map(({ width, right }) =>
    [width, right, box.right]);
"""


@test
def names_are_in_view_beside_the_numbers_of_a_comparison():
    output = recording_of('unwind.cc', 'calltree:exact')
    open_page(page_of(output, '--against', output))
    for width in 1400, 1050, 900, 420:
        window.devtools('Emulation.setDeviceMetricsOverride', width=width,
                        height=900, deviceScaleFactor=1, mobile=False)
        try:
            expect_equal(window.run(NAMES), [], width)
        finally:
            window.devtools('Emulation.clearDeviceMetricsOverride')


LEGEND = """
const box = document.querySelector('#legend');
return [box.scrollHeight - box.clientHeight, [...box.querySelectorAll('button')]
    .map(button => button.textContent)];
"""


@test
def the_legend_is_whole_on_a_narrow_screen():
    names = ['function_%d_with_a_name_for_a_line_of_its_own' % i for i in range(20)]
    source = os.path.join(new_directory('legend'), 'legend.c')
    with open(source, 'w') as file:
        file.writelines('__attribute__((noinline)) int %s(int n) { return n + 1; }\n'
                        % name for name in names)
        file.write('int main(void) { volatile int n = 0;\n%s return n != 20; }\n' %
                   ''.join('n = %s(n);\n' % name for name in names))
    open_page(page_of(record([compile(source, 'gcc', '-O1')],
                             'calltree:counts').output))
    size = {'width': 420, 'height': 900, 'deviceScaleFactor': 1, 'mobile': False}
    window.devtools('Emulation.setDeviceMetricsOverride', **size)
    try:
        window.choose('#colors', 'function')
        window.wait('return document.querySelectorAll("#legend li").length > 9')
        hidden, buttons = window.run(LEGEND)
        expect_equal((hidden, len(buttons)), (0, 1), buttons)
    finally:
        window.devtools('Emulation.clearDeviceMetricsOverride')


if __name__ == '__main__':
    main()
