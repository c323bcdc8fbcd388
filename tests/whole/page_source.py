#!/usr/bin/env python3
"""page_source.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

`profrun html --source` in a browser: the lines of sampled functions with the samples of
each, whatever the text of a line is.
"""
import json
import os
import subprocess

import shimtest
from pagetest import main, open_page, page_of, window
from shimtest import (compile, expect, expect_equal, new_directory, run,
                      shim_report, test)

# (A test looks at the text of each of these lines.)
HOSTILE = """
int main(void)
{
\tvolatile unsigned x = 1; /* </script><script>document.title = 'x'</script> */

\tfor (int i = 0; i < 120000000; i++) /* <!-- <script> & &amp; "'\\ */
\t\tx = x * 3u + 1u; /* \u202e\u2067\x1b[31m\ufeff */ /* \xc0 \xe2\x82 */
\treturn x == 0; /* %s */
}
"""

LINES = """
return [...document.querySelectorAll('#listing tr[data-line]')].map(row => ({
    line: Number(row.dataset.line),
    self: Number(row.querySelector('[data-column=self]').dataset.value),
    total: Number(row.querySelector('[data-column=total]').dataset.value),
    text: row.querySelector('code').textContent }));
"""


def sampled(path, *arguments, profile='sampling'):
    directory = new_directory('recording')
    expect_equal(run([path, *arguments], directory, profile).status, 0,
                 'the program')
    return directory


def lined(*flags, instrument=False):
    return compile('lined.c', 'gcc', '-O2', list(flags), instrument=instrument,
                   name='lined' + ''.join(flags) + '-hooks' * instrument)


def choose(name):
    """Chooses a function in the table, and returns the lines that are shown."""
    window.run('[...document.querySelectorAll("#table button.function")].find('
               'each => each.textContent === arguments[0]).click()', name)
    expect_equal(window.text('#function-name'), name, 'the function')
    return window.run(LINES)


def annotated(name, output):
    about = json.loads(shim_report('annotate', name, output, '--json'))
    return {line['line']: line for line in about['functions'][0]['lines']}


def hostile():
    place = new_directory('hostile')
    source = os.path.join(place, 'hostile.c')
    text = (HOSTILE % ('long ' * 200)).encode('utf-8').replace(
        '\xc0 \xe2\x82'.encode(), b'\xc0 \xe2\x82')
    with open(source, 'wb') as file:
        file.write(text)
    subprocess.run(['gcc', '-O1', '-g', '-w', source, '-o',
                    source[:-2]], check=True)
    return source, sampled(source[:-2])


@test
def lines_have_the_samples_of_annotate():
    output = sampled(lined(), '1500000')
    open_page(page_of(output, '--source'))
    for name in 'mix', 'inlining', 'main':
        wanted = annotated(name, output)
        shown = {line['line']: line for line in choose(name)}
        expect(set(wanted) <= set(shown), '%s: %s' % (name, shown))
        for number, line in shown.items():
            found = wanted.get(number, {'self_samples': 0, 'total_samples': 0})
            expect_equal((line['self'], line['total']),
                         (found['self_samples'], found['total_samples']),
                         '%s:%d' % (name, number))
    with open(os.path.join(shimtest.PROGRAMS, 'lined.c')) as file:
        source = [line.rstrip('\n').expandtabs() for line in file]
    for number, line in shown.items():
        expect_equal(line['text'], source[number - 1], 'line %d' % number)
    expect_equal(window.messages(), [], 'what the browser said')


@test
def text_of_a_source_is_text():
    source, output = hostile()
    path = page_of(output, '--source')
    with open(path, 'rb') as file:
        page = file.read()
    for bad in b"</script><script>document", b'<!-- <script>', b'\x1b', \
            '\u202e'.encode(), '\u2067'.encode():
        expect(bad not in page, bad)
    open_page(path)
    expect('x' != window.run('return document.title'), 'a script of a line')
    lines = {line['line']: line['text'] for line in choose('main')}
    expect("</script><script>document.title = 'x'</script>" in lines[4], lines)
    expect('<!-- <script> & &amp; "\'\\ */' in lines[6], lines)
    expect('/* \\u202e\\u2067\\x1b[31m\\ufeff */ /* \ufffd ' in lines[7], lines)
    expect(len(lines[8]) < 450 and lines[8].endswith('\u2026'), lines)
    # In a frame as well.
    frame = page_of(output, '--source', '--embed')
    with open(frame, 'rb') as file:
        expect(b'</script><script>document' not in file.read(), 'frame')


@test
def sources_are_found_where_they_are_or_named():
    source, output = hostile()
    moved = new_directory('moved')
    os.rename(source, os.path.join(moved, 'hostile.c'))
    open_page(page_of(output, '--source', '--source-dir', moved))
    expect('volatile' in str(choose('main')), window.text('#listing'))
    open_page(page_of(output, '--source'))
    lines = choose('main')
    expect(lines and not any(line['text'] for line in lines) and
           any(line['self'] for line in lines), lines)
    expect('hostile.c: not found' in window.text('#listing caption'),
           window.text('#listing caption'))


@test
def calls_and_threads_have_the_lines_of_samples():
    output = sampled(lined(instrument=True), '1500000',
                     profile='calltree;sampling')
    path = page_of(output, '--source')
    open_page(path)
    expect('Samples by line' in window.text('#listing'), 'the first function')
    expect(any(line['self'] for line in choose('mix')), 'mix, of calls')
    same = shim_report('export', 'html', output, '--source')
    with open(path, encoding='utf-8') as file:
        expect_equal(same, file.read(), 'export html')
    open_page(page_of(output))
    expect(not choose('mix') and window.run(
        'return document.querySelector("#listing").hidden'), 'no --source')


@test
def what_has_no_lines_is_refused():
    calls = sampled(lined(instrument=True), '10', profile='calltree')
    for words, why in (
            (['html', calls, '--source'], 'no samples with lines'),
            (['html', calls, '--source-dir', '/'], 'without --source'),
            (['export', 'json', calls, '--source'], "html's")):
        done = subprocess.run([shimtest.report, *words, '-o', '/dev/null'],
                              capture_output=True, text=True, timeout=60)
        expect(done.returncode in (1, 2) and why in done.stderr, done)


main()
