"""Shared code of the tests of the page of `profrun html`: one browser for all of them,
recordings, and the rows of the page's tables.
"""
import functools
import json
import os
import sys
import urllib.parse

import browser
import shimtest
from browser import Browser
from shimtest import (Skipped, compile, expect_equal, new_directory, record,
                      shim_report)

class Window:
    """The browser of all tests, once there is one."""

    browser = None

    def __getattr__(self, name):
        return getattr(self.browser, name)


window = Window()


def page_of(output, *arguments):
    path = os.path.join(new_directory('html'), 'page.html')
    shim_report('html', output, '-o', path, *arguments)
    return path


def open_page(path):
    window.open('file://' + urllib.parse.quote(path))
    window.wait('return document.documentElement.dataset.ready')
    expect_equal(window.messages(), [], 'what the browser said')


def page_thread_ms():
    """The processor time of the thread that runs the page's scripts and draws."""
    window.devtools('Performance.enable')
    metrics = window.devtools('Performance.getMetrics')['metrics']
    seconds, = [m['value'] for m in metrics if m['name'] == 'ThreadTime']
    return 1000 * seconds


FRAMES = """
const done = arguments[0];
requestAnimationFrame(() => requestAnimationFrame(() => done(
    !document.documentElement.dataset.pending)));
"""


def rest():
    """Waits until the page has drawn all, and has moved and written what follows."""
    for _ in range(1000):
        if window.ask('POST', '/execute/async', {'script': FRAMES, 'args': []}):
            return
    raise shimtest.Failed('the page does not rest')


@functools.lru_cache(maxsize=None)
def recording_of(source, profile, *flags):
    result = record([compile(source, 'gcc', '-O1', list(flags))], profile)
    expect_equal(result.status, 0, source)
    return result.output


def reported(output, *arguments):
    return json.loads(shim_report('report', '--format', 'json', *arguments,
                                  output))


def exported(output):
    return json.loads(shim_report('export', 'json', output))


ROWS = """
const table = document.querySelector(arguments[0]);
if (!table || table.hidden) return [];
const more = table.querySelector('button.more');
if (more && !more.hidden) more.click();
// The whole name, where a short one stands for it.
const nameIn = ({ title, textContent }) =>
    title.length > 60 && title.length <= 300 ? title : textContent;
return [...table.querySelectorAll('tbody tr')].map(row =>
    Object.fromEntries([...row.cells].map(cell => [cell.dataset.column,
        cell.classList.contains('name') ?
            nameIn(cell.querySelector('button')) :
            [Number(cell.dataset.value), cell.textContent]])));
"""


def rows_of(selector):
    return window.run(ROWS, selector)


def human_ns(ns):
    units = ['ns', 'us', 'ms', 's']
    while ns >= 999.5 and len(units) > 1:
        ns /= 1000
        units = units[1:]
    return '%.*f %s' % (0 if ns >= 99.95 else 1 if ns >= 9.995 else 2, ns,
                        units[0]) if ns > 0 else '0 ns'


TRACED = r"""
#include <pthread.h>

static volatile long sum;

__attribute__((noinline)) static void leaf(int n)
{
        for (int i = 0; i < n; i++)
                sum += i;
}

__attribute__((noinline)) static void inner(int n)
{
        leaf(n);
        if (n % 3 == 0)
                leaf(n * 20);
}

__attribute__((noinline)) static void outer(int n)
{
        for (int i = 0; i < n; i++)
                inner(i);
}

static void *work(void *argument)
{
        outer(3);
        return argument;
}

int main(int argc, char **argv)
{
        pthread_t thread;
        int n = argc > 1 ? __builtin_atoi(argv[1]) : 4;

        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
        for (int i = 0; i * 100 < n; i++)
                outer(n < 100 ? n : 100);
        return 0;
}
"""


@functools.lru_cache(maxsize=None)
def traced(number):
    path = shimtest.scratch + '/traced.c'
    with open(path, 'w') as file:
        file.write(TRACED.replace('__builtin_atoi', 'atoi').replace(
            '#include', '#include <stdlib.h>\n#include', 1))
    # Other tests of pages run beside this one, and compile a source of their own.
    name = 'traced_' + os.path.basename(sys.argv[0]).removesuffix('.py')
    output = record([compile(path, 'gcc', '-O1', name=name), str(number)],
                    'trace').output
    if not any(name.endswith('.trace') for _, _, names in os.walk(output)
               for name in names):
        raise Skipped('the library has no profile trace')
    return output


def main():
    reason = browser.missing()
    if reason:
        for number, (name, function) in enumerate(shimtest.tests):
            def skip():
                raise Skipped(reason)
            shimtest.tests[number] = name, skip
        shimtest.main()
        return
    with Browser() as window.browser:
        shimtest.main()
