"""profrun diff: real changes between two sets of runs, and noise."""

import csv
import io
import json
import math
import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree

import craft
import shimtest
from shimtest import (compile, expect, expect_equal, new_directory,
                      record, shim_report, test)

# Offsets in struct shim_meta.
META_LOST, META_LOST_OTHERS = 16544, 18624

recorded = {}


def runs(us, extra, count=5, program=None):
    """Recordings of the same program, made once."""
    key = us, extra, program
    made = recorded.setdefault(key, [])
    while len(made) < count:
        result = record([program or compile('slower.c'), str(us), extra],
                        'calltree:exact')
        expect_equal(result.status, 0, 'status')
        made.append(result.output)
    return made[:count]


def diff(*arguments):
    return json.loads(shim_report('diff', *arguments, '--format', 'json'))


def failed(status, *arguments):
    """The message of a failing diff."""
    done = subprocess.run([shimtest.report, 'diff', *arguments],
                          capture_output=True, text=True)
    expect_equal((done.returncode, done.stdout), (status, ''), arguments)
    return done.stderr


def by_name(about):
    return {f['name']: f for f in about['functions']}


def self_ns(output):
    about = json.loads(shim_report('report', output, '--format', 'json'))
    return {f['name']: f['self_ns'] for f in about['functions']}


# --- Student's distribution, by adding up its density ---

def student_tails(t, freedom, steps=20000):
    """The probability that |t| is at least @t."""
    norm = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) \
        / math.sqrt(freedom * math.pi)

    def density(x):
        return norm * (1 + x * x / freedom) ** (-(freedom + 1) / 2)
    t = abs(t)
    width = t / steps
    inside = sum((density(i * width) + 4 * density((i + .5) * width) +
                  density((i + 1) * width)) * width / 6 for i in range(steps))
    return 1 - 2 * inside


def welch(first, second):
    """(change, its standard error, degrees of freedom)"""
    def about(values):
        mean = sum(values) / len(values)
        return mean, sum((v - mean) ** 2 for v in values) / (
            len(values) - 1) / len(values)
    (m, a), (n, b) = about(first), about(second)
    return n - m, math.sqrt(a + b), (a + b) ** 2 / (
        a * a / (len(first) - 1) + b * b / (len(second) - 1))


def changed_runs():
    """Two sets of runs whose times differ, and what diff says of the function that changed.
    On a busy machine a program may wait for its processor for longer than it computes: one
    of three pairs of sets must show the change."""
    for _ in range(3):
        first, second = runs(1000, 'old'), runs(100000, 'old')
        changed = by_name(diff(*first, '--', *second))['changed']
        if changed['verdict'] == 'slower' and changed['change'] > 8e7:
            break
        recorded.clear()
    return first, second, changed


@test
def diff_distinguishes_changes_from_noise():
    first, second, changed = changed_runs()
    expect_equal(changed['verdict'], 'slower', 'changed')
    expect(changed['change'] > 8e7, changed)
    functions = by_name(diff(*first, '--', *second))
    expect_equal(functions['called']['a']['calls'], 1000, 'calls before')
    expect_equal(functions['called']['b']['calls'], 100000, 'calls after')
    functions = by_name(diff(*second, '--', *first))
    expect_equal(functions['changed']['verdict'], 'faster', 'the other way')


@test
def errors_and_chances_are_those_of_welch():
    first, second = runs(1000, 'old'), runs(100000, 'old', 3)
    functions = by_name(diff(*first, '--', *second))
    checked = 0
    for name in ('unchanged', 'changed', 'old_one', 'main'):
        change, error, freedom = welch([self_ns(o)[name] for o in first],
                                       [self_ns(o)[name] for o in second])
        got = functions[name]
        expect(abs(got['change'] - change) <= 2, (name, got, change))
        # The reference is rounded to ns.
        if error < 100:
            continue
        checked += 1
        # The numeric sum is too coarse for certain cases: allow p = 4e-4 at 50 errors
        # and two degrees of freedom, the fewest here.
        is_certain = abs(change / error) >= 50
        wanted = 0 if is_certain else student_tails(change / error, freedom)
        expect(abs(got['chance'] - wanted) <
               (5e-4 if is_certain else 1e-4) + wanted / 50, (name, got, wanted))
        limit = student_tails(got['error'] / error, freedom)
        expect(abs(limit - 0.01) < 5e-4, (name, got, limit))
    expect(checked > 0, functions)


@test
def a_recording_does_not_differ_from_itself():
    first = runs(1000, 'old')
    about = diff(first[0], first[0])
    expect_equal({f['verdict'] for f in about['functions']}, {'same'}, 'verdicts')
    expect_equal(about['change'], 0, 'change')
    about = diff(*first[:3], '--', *first[:3])
    expect_equal({f['verdict'] for f in about['functions']}, {'same'}, 'verdicts')


COUNTED = r'''
#include <stdlib.h>
void leaf(void) {}
int main(int argc, char **argv)
{
	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		leaf();
	return 0;
}
'''


def counted(*counts):
    """A recording for each number of calls."""
    if 'counted' not in recorded:
        source = shimtest.new_source('counted.c', COUNTED)
        recorded['counted'] = compile(source)
    return [record([recorded['counted'], str(count)]).output
            for count in counts]


@test
def unknown_changes_are_not_shown_as_equal():
    about = diff('--value', 'calls', *counted(100, 140, 120), '--',
                 *counted(110, 150, 130))
    leaf = by_name(about)['leaf']
    expect_equal(leaf['verdict'], 'not shown to differ', leaf)
    # With a standard deviation of 20, this number makes 10 the limit.
    runs_to_tell = leaf['runs_to_tell']

    def tails(count):
        return student_tails(10 / (20 * math.sqrt(2 / count)), 2 * count - 2)
    expect(tails(runs_to_tell) < 0.0101 and tails(runs_to_tell - 1) > 0.0099,
           (runs_to_tell, tails(runs_to_tell), tails(runs_to_tell - 1)))
    text = shim_report('diff', '--value', 'calls', *counted(100, 140, 120), '--',
                       *counted(110, 150, 130))
    expect(re.search(r'^ .*\+8\.3 not shown to differ +%d +120 +130  leaf$' %
                     runs_to_tell, text, re.M), text)
    expect('99 % certain' in text and ': not shown to differ\n' in text, text)


@test
def losses_that_cannot_be_are_damage_and_not_shown():
    """In the root of a thread, and in meta: of a thread, and of waits."""
    paths = []
    for what, lost in ('whole', 5), ('root', 1 << 60), ('meta', 5):
        about = craft.meta()
        if what == 'meta':
            for at in META_LOST, META_LOST_OTHERS:
                about = about[:at] + struct.pack('<Q', 1 << 62) + about[at + 8:]
        paths.append(craft.write(new_directory(what), {
            'meta': about, 'images': craft.images(craft.image(0x1000, 0x2000, '/bin/nothing')),
            '1.calltree': craft.tree(
                craft.thread(lost=[lost]),
                craft.node(0x1100, craft.MEMORY, calls=3, time=5000))}))
    whole, root, meta = paths
    for damaged, left in (root, ''), (meta, '5 and '):
        done = subprocess.run([shimtest.report, 'diff', whole, damaged, '--value', 'calls'],
                              capture_output=True, text=True, check=True)
        expect('cannot be' in done.stderr, done.stderr)
        sides = [line for line in done.stdout.splitlines() if re.match('[AB]  ', line)]
        expect(sides[0].endswith('  (5 calls LOST)'), sides)
        expect(sides[1].endswith('  (%san unknown number of calls LOST)' % left), sides)
        about = json.loads(shim_report('report', '--format', 'json', damaged))
        expect(about['lost'] <= 5, about)


@test
def a_difference_that_is_excluded_is_the_same():
    about = diff('--value', 'calls', *counted(10000, 10002, 10001), '--',
                 *counted(10001, 10003, 10002))
    leaf = by_name(about)['leaf']
    expect_equal((leaf['verdict'], 'runs_to_tell' in leaf), ('same', False), leaf)


@test
def diff_of_single_runs_says_that_noise_is_unknown():
    first, second = runs(1000, 'old')[0], runs(100000, 'old')[0]
    about = diff(first, second)
    expect_equal(about['chance'], None, 'chance')
    expect_equal(by_name(about)['changed']['verdict'], 'slower?', 'verdict')
    expect('not known' in shim_report('diff', first, second), 'not said')


@test
def functions_come_and_go():
    functions = by_name(diff(*runs(1000, 'old', 2), '--',
                             *runs(1000, 'new', 2)))
    expect_equal(functions['old_one']['verdict'], 'gone', 'old')
    expect_equal(functions['old_one']['b']['mean'], 0, 'old after')
    expect_equal(functions['new_one']['verdict'], 'new', 'new')
    expect_equal(functions['new_one']['a']['calls'], 0, 'new before')


@test
def a_program_of_another_name_is_compared():
    other = new_directory('other') + '/renamed'
    shutil.copy(compile('slower.c'), other)
    functions = diff(runs(1000, 'old')[0],
                     runs(1000, 'old', 1, other)[0])['functions']
    expect_equal(len([f for f in functions if f['name'] == 'main']), 1, 'mains')
    expect(not {'new', 'gone'} & {f['verdict'] for f in functions}, functions)


@test
def calls_are_compared_when_nothing_was_timed():
    program = compile('slower.c')
    first, second = (record([program, us, 'old'], 'calltree:counts').output
                     for us in ('10', '30'))
    about = diff(first, second)
    expect_equal(about['value'], 'calls', 'value')
    expect_equal(by_name(about)['called']['change'], 20, 'change')
    done = failed(1, '--value', 'self', first, second)
    expect('counted, not timed' in done, done)


@test
def samples_are_not_compared_with_calls():
    program = compile('slower.c')
    calls, samples, lines = (record([program, '100', 'old'], profile).output
                             for profile in ('calltree', 'sampling', 'coverage'))
    for words, status, message in (
            (['diff', calls, samples], 1,
             '%s has samples, the others have calls: they cannot be compared' % samples),
            (['html', calls, '--against', samples], 1,
             '%s has samples, and %s has calls: they cannot be compared' % (samples, calls)),
            (['html', samples, '--against', calls], 1,
             '%s has calls, and %s has samples: they cannot be compared' % (calls, samples)),
            (['html', samples, '--against', samples], 0, ''),
            (['html', calls, '--against', lines], 0, lines + ': no call was recorded')):
        done = subprocess.run([shimtest.report, *words], text=True, capture_output=True,
                              cwd=new_directory('compared'))
        expect_equal(done.returncode, status, (words, done.stderr))
        expect(message in done.stderr and (message or not done.stderr), done.stderr)


@test
def csv_and_json_and_text_agree():
    first, second = runs(1000, 'old', 3), runs(100000, 'old', 3)
    rows = list(csv.DictReader(io.StringIO(shim_report(
        'diff', '--format', 'csv', *first, '--', *second))))
    functions = diff(*first, '--', *second)['functions']
    expect_equal([r['name'] for r in rows], [f['name'] for f in functions],
                 'order')
    for row, function in zip(rows, functions):
        expect_equal(row['verdict'], function['verdict'], row['name'])
        expect(math.isclose(float(row['change']), function['change'],
                            rel_tol=1e-6, abs_tol=1), (row, function))
    text = shim_report('diff', *first, '--', *second, '--limit', '1')
    expect(rows[0]['name'] in text.splitlines()[5], text)


def rows_of_text(*arguments):
    """{function: (A, B, change)} from the printed table."""
    lines = shim_report('diff', '--limit', '0', *arguments).splitlines()
    start = next(i for i, line in enumerate(lines) if 'function' in line) + 1
    return {line.split()[-1]: tuple(line[at:at + 10].strip()
                                    for at in (0, 11, 22))
            for line in lines[start:]}


@test
def numbers_in_the_text_are_those_that_were_counted():
    first, second = runs(1000, 'old', 1), runs(100000, 'new', 1)
    rows = rows_of_text('--value', 'calls', first[0], second[0])
    expect_equal(rows['called'], ('1,000', '100,000', '+99,000'), 'calls')
    expect_equal(rows['old_one'][1:2], ('0',), 'gone')
    expect_equal(rows['main'], ('1', '1', '0'), 'the same')
    rows = rows_of_text(first[0], second[0])
    expect_equal(rows['old_one'][1], '0 ns', 'no time after')
    expect_equal(rows['new_one'][0], '0 ns', 'no time before')
    program = compile('remembered.c', 'gcc', '-O1', ['-fno-builtin'])
    output = record([program, 'all'], 'memory').output
    for value in 'allocations', 'bytes':
        about = diff('--value', value, output, output)
        rows = rows_of_text('--value', value, output, output)
        for function in about['functions']:
            got = rows[function['name']][0]
            if value == 'allocations':
                expect_equal(got, format(round(function['a']['mean']), ','),
                             function['name'])
            else:
                expect(re.fullmatch(r'[\d.]+ (B|[KM]iB)', got), got)


REFUSALS = [((), 'which two recordings'), (('one',), 'which two recordings'),
            (('one', 'two', 'three'), 'which two recordings'),
            (('--', 'one'), 'before and after'),
            (('one', '--'), 'before and after'),
            (('one', 'two', '--value', 'color'), 'unknown value'),
            (('one', 'two', '--tree'), 'unknown option')]


@test
def wrong_words_are_refused():
    for words, message in REFUSALS:
        done = failed(2, *words)
        expect(message in done, (words, done))
    done = failed(1, runs(1000, 'old')[0], 'missing')
    expect('missing: No such file' in done, done)


# --- continuous integration ---

def judged(*arguments, status, directory=None):
    """(standard output, standard error)"""
    done = subprocess.run([shimtest.report, 'diff', *arguments], capture_output=True,
                          text=True, cwd=directory)
    expect_equal(done.returncode, status, done.stderr[:500])
    return done.stdout, done.stderr


CALLS_SOURCE = '''
#include <stdlib.h>
__attribute__((noinline)) void grows(void) { __asm__ volatile(""); }
__attribute__((noinline)) void stays(void) { __asm__ volatile(""); }
int main(int c, char **v)
{
	for (int i = 0; i < atoi(v[1]); i++)
		grows();
	for (int i = 0; i < 100; i++)
		stays();
	return c < 0;
}
'''


def ci_runs(counts=('99', '119')):
    if counts not in recorded:
        source = shimtest.new_source('ci.c', CALLS_SOURCE)
        program = compile(source)
        recorded[counts] = ([record([program, n], 'calltree:counts').output
                             for n in counts], source)
    return recorded[counts]


@test
def growth_beyond_ten_times_is_a_factor():
    (few, many), _ = ci_runs(('1', '1915'))
    text = judged(few, many, status=0)[0]       # 102 and 2,016 calls
    expect('all of it: +1,914 (x20), ' in text, text)


@test
def a_threshold_that_is_crossed_is_status_3_and_named():
    (a, b), _ = ci_runs()
    # 200 calls become 220: 10 % of all.
    for limit, status in (('5%', 3), ('9.9', 3), ('10%', 0), ('50%', 0), ('0%', 3)):
        _, errors = judged(a, b, '--fail-above', limit, status=status)
        expect(bool(errors) == (status == 3), errors)
    expect('all of it: calls 200 -> 220 (+20, +10.0 % of all of A), above --fail-above 5%'
           in judged(a, b, '--fail-above', '5%', status=3)[1], 'the whole')
    expect('grows: calls 99 -> 119 (+20, +10.0 % of all of A)'
           in judged(a, b, '--fail-above', '5%', status=3)[1], 'the function')
    expect_equal(judged(b, a, '--fail-above', '5%', status=0)[1], '', 'fewer calls')
    expect('all of it: +20 (+10.0 %), ' in judged(a, b, status=0)[0], 'a percentage')
    expect('is not a percentage' in judged(a, b, '--fail-above', 'x', status=2)[1], 'no number')


@test
def a_threshold_is_not_crossed_by_noise():
    fast, slow, _ = changed_runs()
    judged(*fast, '--', *slow, '--fail-above', '5%', status=3)
    judged(*slow, '--', *fast, '--fail-above', '5%', status=0)
    # A limit within what runs vary; of a run of each, nothing is known about that.
    few, more = counted(100, 140, 120), counted(110, 150, 130)
    judged(*few, '--', *more, '--value', 'calls', '--fail-above', '0%', status=0)
    judged(few[0], more[0], '--value', 'calls', '--fail-above', '0%', status=3)


@test
def github_gets_annotations_of_source_lines():
    (a, b), source = ci_runs()
    text, _ = judged(a, b, '--format', 'github', '--fail-above', '5%', status=3,
                     directory=os.path.dirname(source))
    lines = text.splitlines()
    expect_equal(lines[0], '::error title=profrun diff::calls 200 -> 220 (+20, +10.0 %25 of '
                 'all of A)', 'the whole')
    expect_equal(lines[1], '::error file=ci.c,line=3,title=grows%3A more?::calls 99 -> 119 '
                 '(+20, +10.0 %25 of all of A)', 'the function')
    expect_equal(len(lines), 2, text)
    text, _ = judged(a, b, '--format', 'github', status=0)
    expect([line.split()[0] for line in text.splitlines()] == ['::notice', '::warning'] and
           'file=%s,' % source in text, text)


@test
def junit_gets_a_test_case_for_each_function():
    (a, b), _ = ci_runs()
    text, _ = judged(a, b, '--format', 'junit', '--fail-above', '5%', status=3)
    suite = xml.etree.ElementTree.fromstring(text)
    expect_equal((suite.tag, suite.get('tests'), suite.get('failures')),
                 ('testsuite', '4', '2'), 'suite')
    failed = {case.get('name'): case.find('failure') is not None for case in suite}
    expect_equal(failed, {'all of it': True, 'grows': True, 'stays': False, 'main': False},
                 'cases')


@test
def csv_and_json_tell_how_many_runs_would_tell():
    a = runs(1000, 'old')
    rows = list(csv.DictReader(io.StringIO(shim_report(
        'diff', *a[:3], '--', *a[2:5], '--format', 'csv'))))
    functions = by_name(diff(*a[:3], '--', *a[2:5]))
    expect_equal({row['name']: row['runs_to_tell'] for row in rows},
                 {name: str(f.get('runs_to_tell', '')) for name, f in functions.items()},
                 'runs')


if __name__ == '__main__':
    shimtest.main()
