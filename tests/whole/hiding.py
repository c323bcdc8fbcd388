"""--hide, --only, --focus and --merge-recursion against the same done to the lines of
export folded."""

import fnmatch
import json
import re
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, json_of, record, shim_report,
                      test)

SOURCE = r'''
#include <pthread.h>
#include <stdlib.h>

static volatile unsigned long sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

namespace low {
static void *keep(size_t size)
{
	void *made = malloc(size);

	sink += (unsigned long)made;
	return made;
}

static void spin(int count)
{
	for (int i = 0; i < 10 * count; i++)
		sink += i;
}
}

namespace mid {
static void take(int count)
{
	pthread_mutex_lock(&lock);
	low::spin(count);
	free(low::keep(100));
	pthread_mutex_unlock(&lock);
}

static void walk(int depth)
{
	low::spin(depth * 1000);
	if (depth > 0)
		walk(depth - 1);
	else
		take(50000);
}

static int odd(int count);

static int even(int count)
{
	low::keep(8);
	return count ? odd(count - 1) : 1;
}

static int odd(int count)
{
	low::spin(2000);
	return count ? even(count - 1) : 0;
}
}

namespace high {
static void work(int count)
{
	for (int i = 0; i < count; i++) {
		mid::walk(5);
		mid::take(20000);
	}
	mid::even(7);
}

static void *in_thread(void *)
{
	work(30);
	return NULL;
}
}

int main()
{
	pthread_t thread;

	pthread_create(&thread, NULL, high::in_thread, NULL);
	high::work(40);
	pthread_join(thread, NULL);
	return 0;
}
'''


def recording(profile):
    if profile not in recording.made:
        if not recording.program:
            source = shimtest.new_source('hiding.cc', SOURCE)
            recording.program = compile(source, 'gcc', '-O0',
                                        flags=('-g', '-pthread'))
        recording.made[profile] = record([recording.program],
                                         profile=profile).output
    return recording.made[profile]


recording.made, recording.program = {}, None


def folded(output, value, *options):
    """{path: number}, of short names."""
    paths = {}
    for line in shim_report('export', 'folded', output, '--value', value,
                            '--raw', '--names', 'short', *options).splitlines():
        path, number = line.rsplit(' ', 1)
        paths[tuple(path.split(';'))] = int(number)
    return paths


def without(names):
    """Patterns of --hide and --only fit names with and without ()."""
    def is_hidden(name):
        return any(fnmatch.fnmatchcase(name, pattern) or
                   fnmatch.fnmatchcase(re.sub(r'\(\)$', '', name), pattern)
                   for pattern in names)
    return is_hidden


def fold(paths, value, is_hidden, focus='', merges=False, first=0):
    """What @paths should become; functions begin at @first."""
    made = {}
    for path, number in paths.items():
        if not re.search(focus, ';'.join(path)):
            # It may lead to the focus, and has calls all the same.
            if value != 'calls' or not any(
                    other[:len(path)] == path and
                    re.search(focus, ';'.join(other)) for other in paths):
                continue
        kept = list(path[:first])
        for name in path[first:]:
            if is_hidden(name) or (merges and kept and kept[-1] == name):
                continue
            kept.append(name)
        if len(kept) == first and value in ('bytes', 'allocations', 'leaked'):
            kept.append('(not in an instrumented function)')
        if len(kept) == first or (value == 'calls' and is_hidden(path[-1])):
            continue
        made[tuple(kept)] = made.get(tuple(kept), 0) + number
    return made


CHOICES = (
    (['--hide', 'low::*'], {'is_hidden': without(['low::*'])}),
    (['--hide', 'mid::take', '--hide', 'low::spin'],
     {'is_hidden': without(['mid::take', 'low::spin'])}),
    (['--only', 'mid::*', '--only', 'main'],
     {'is_hidden': lambda name: not without(['mid::*', 'main'])(name)}),
    (['--hide', 'main', '--hide', 'high::work'],
     {'is_hidden': without(['main', 'high::work'])}),
    (['--focus', 'mid::(walk|odd)'], {'focus': 'mid::(walk|odd)'}),
    (['--focus', '^low::spin', '--hide', 'mid::*'],
     {'focus': '(^|;)low::spin', 'is_hidden': without(['mid::*'])}),
    (['--merge-recursion'], {'merges': True}),
    (['--merge-recursion', '--hide', 'mid::odd'],
     {'merges': True, 'is_hidden': without(['mid::odd'])}),
)


def compare(output, value, *more):
    before = folded(output, value, *more)
    expect(value == 'waits' or len(before) > 3, (value, before))
    for options, what in CHOICES:
        got = folded(output, value, *options, *more)
        wanted = fold(before, value, what.get('is_hidden', lambda name: False),
                      what.get('focus', ''), what.get('merges', False),
                      1 if '--threads' in more else 0)
        # Each number was rounded to one.
        slack = len(before) if value in ('self', 'waits') else 0
        for path in set(got) | set(wanted):
            # Functions of two objects have this name.
            if value == 'samples' and 'pthread_create' in path:
                continue
            expect(abs(got.get(path, 0) - wanted.get(path, 0)) <= slack,
                   (value, options, path, got.get(path), wanted.get(path)))


@test
def times_and_calls_are_those_of_folded_paths():
    output = recording('calltree:exact')
    compare(output, 'self')
    compare(output, 'calls')


@test
def threads_stay_apart():
    compare(recording('calltree:exact'), 'calls', '--threads')


@test
def samples_are_those_of_folded_paths():
    compare(recording('sampling:hz=5000'), 'samples')


@test
def memory_and_waits_are_those_of_folded_paths():
    output = recording('calltree;memory;locks')
    for value in ('bytes', 'allocations', 'leaked', 'waits'):
        compare(output, value)


@test
def totals_include_hidden_functions_below():
    output = recording('calltree:exact')
    whole = json_of(output)
    for options, _ in CHOICES:
        about = json.loads(shim_report('report', '--format', 'json', '--raw',
                                       output, *options))
        everything = json.loads(shim_report('export', 'json', '--raw', output,
                                            *options))
        functions = {f['name']: f for f in about['functions']}
        for function in functions.values():
            expect(function['self_ns'] <= function['total_ns'], function)
        total = sum(f['self_ns'] for f in functions.values())
        outside = about['hidden']['time_of_no_shown_caller_ns']
        expect(abs(total + outside - about['time_ns']) <= 100,
               (options, total, outside, about['time_ns']))
        if '--focus' not in options:
            expect(abs(about['time_ns'] -
                       about['hidden']['time_without_focus_ns']) <= 1, about)
        expect_equal(about['calls'], whole['calls'], 'all calls')
        shown = sum(f['calls'] for f in functions.values())
        expect_equal(shown + about['hidden']['calls'], whole['calls'],
                     (options, 'calls that are shown and not'))
        expect(everything['hidden'] == about['hidden'], 'json')


@test
def every_output_shows_the_same():
    output = recording('calltree:exact')
    for verb in (('report',), ('report', '--tree', '--min-percent', '0'),
                 ('report', '--callers', 'mid::take'),
                 ('report', '--format', 'csv'), ('export', 'callgrind'),
                 ('export', 'speedscope'), ('export', 'csv'),
                 ('diff', output)):
        text = shim_report(*verb, output)
        expect('low::spin' in text or '--callers' in verb, (verb, text))
        text = shim_report(*verb, output, '--hide', 'low::*', '--hide',
                           'high::*')
        expect('low::' not in text and 'high::' not in text, (verb, text))
        expect('mid::take' in text, (verb, text))
    page = shim_report('html', output, '-o', '-', '--only', 'mid::*')
    expect('mid::take' in page and 'low::spin' not in page, 'page')


@test
def the_head_says_what_is_not_shown():
    output = recording('calltree:exact')
    text = shim_report('report', output, '--hide', 'low::*')
    expect(re.search(r'^  not shown: 2 functions, [\d,]+ calls; the time of '
                     r'hidden functions is their callers\'$', text, re.M), text)
    text = shim_report('report', output, '--focus', 'odd')
    expect(re.search(r'^  focus: call paths through odd, \S+ \S+ of \S+ \S+$',
                     text, re.M), text)


@test
def a_hide_pattern_without_match_is_reported():
    output = recording('calltree:exact')
    for arguments, status, words in (
            (('report', output, '--hide', 'lwo::*'), 0, "--hide 'lwo::*'"),
            (('report', output, '--only', 'lwo::*'), 1, 'no function to show'),
            (('report', output, '--focus', 'lwo'), 1, 'no function to show'),
            (('report', output, '--focus', 'a('), 2, "--focus 'a('"),
            (('report', output, '--hide', 'main', '--callers', 'main'), 1,
             'main is hidden'),
            (('export', 'lcov', output, '--hide', 'main'), 2, '--hide')):
        done = subprocess.run([shimtest.report, *arguments],
                              capture_output=True, text=True)
        expect_equal(done.returncode, status, done)
        expect(words in done.stderr, done.stderr)


if __name__ == '__main__':
    shimtest.main()
