"""Parts of a trace: --from, --to, --thread, --min-duration, --depth, --function, and --hide,
--only, --focus, --merge-recursion of timelines."""

import collections
import json
import os
import pty
import re
import subprocess
import threading

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record, run,
                      shim_report, test)

SOURCE = r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
/* Some processors' clocks advance by 10 ns: what follows at once has the same time. */
__attribute__((no_instrument_function)) static void wait(void)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 1000);
}
__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }
__attribute__((noinline)) void again(int n) { if (n) again(n - 1); else leaf(); }
__attribute__((noinline)) void outer(void) { leaf(); again(3); }
static void *work(void *p) { pthread_setname_np(pthread_self(), "worker"); outer(); return p; }
int main(int c, char **v)
{
	pthread_t t;
	for (int i = c > 1 ? atoi(v[1]) : 10; i; i--) {
		if (c == 1)
			wait();
		outer();
	}
	pthread_create(&t, 0, work, 0);
	pthread_join(t, 0);
}
'''
ENTERED = {'main': 1, 'work': 1, 'outer': 11, 'leaf': 22, 'again': 44}
made = {}


def recording():
    if not made:
        source = shimtest.new_source('windows.c', SOURCE)
        made['program'] = compile(source)
        made['trace'] = record([made['program']], 'trace').output
    return made['trace']


def export(format, *options):
    path = os.path.join(new_directory(format), 'out')
    expect_equal(shim_report('export', format, recording(), '-o', path, *options), '',
                 'output')
    return path


def chrome(*options):
    """{name: calls}; checks that all calls nest."""
    with open(export('chrome', *options)) as file:
        events = json.load(file)['traceEvents']
    return nested((e['tid'], e['ph'] == 'B', e['name'], e['ts']) for e in events
                  if e['ph'] in 'BE')


def nested(events):
    calls, opened = collections.Counter(), collections.defaultdict(list)
    for lane, begins, name, _ in events:
        if begins:
            calls[name] += 1
            opened[lane].append(name)
        else:
            expect_equal(opened[lane].pop(), name, 'what ends')
    expect(not any(opened.values()), opened)
    return dict(calls)


def perfetto(*options):
    """The number of begun calls."""
    schema = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                          'scripts', 'report', 'export')
    plain = subprocess.run(['gzip', '-dc'], stdin=open(export('perfetto', *options), 'rb'),
                           stdout=subprocess.PIPE, check=True).stdout
    text = subprocess.run(['protoc', '--proto_path=' + schema, '--decode=perfetto.Trace',
                           'perfetto.proto'], input=plain, stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    expect_equal(text.count('TYPE_SLICE_BEGIN'), text.count('TYPE_SLICE_END'), options)
    return text.count('TYPE_SLICE_BEGIN')


def babeltrace(*options):
    shimtest.need('babeltrace2')
    text = subprocess.run(['babeltrace2', export('ctf', *options)], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    return nested(('', kind == 'enter', name, 0) for kind, name in
                  re.findall(r' (enter|leave): .*?function = \( "(\w+)"', text))


def otf2(*options):
    shimtest.need('otf2-print')
    text = subprocess.run(['otf2-print', '-Werror', export('otf2', *options) + '/traces.otf2'],
                          check=True, stdout=subprocess.PIPE).stdout.decode()
    return nested((location, kind == 'ENTER', name, 0) for kind, location, name in
                  re.findall(r'^(ENTER|LEAVE) +(\d+) .*?Region: "(\w+)"', text, re.M))


def timed(*options):
    """The profiles of speedscope: {name: events}."""
    with open(export('speedscope', *options)) as file:
        about = json.load(file)
    frames = [frame['name'] for frame in about['shared']['frames']]
    found = {}
    for profile in about['profiles']:
        events = [(0, e['type'] == 'O', frames[e['frame']], e['at'])
                  for e in profile['events']]
        times = [profile['startValue']] + [e[3] for e in events] + [profile['endValue']]
        expect_equal(times, sorted(times), 'times')
        found[profile['name']] = nested(events)
    return found


def replayed(*options):
    return nested((tid, not text.startswith('}'), re.sub(r'[^a-z]', '', text), 0)
                  for tid, text in lines_of(*options))


def lines_of(*options):
    """(thread, what) of the begins and ends of calls."""
    for line in shim_report('replay', recording(), *options).splitlines()[1:]:
        tid, text = re.match(r'\s*[\d.]+ (?:[ >]*[\d.]+ \w+)? +(\d+)  (.*)', line).groups()
        text = re.sub(r'  \(.*\)$', '', text.strip())
        if text.startswith('--'):
            continue
        if text.endswith(';'):
            yield tid, text
            yield tid, '} ' + text
        else:
            yield tid, text


CHOICES = [
    ((), ENTERED),
    (('--thread', 'worker'), {'work': 1, 'outer': 1, 'leaf': 2, 'again': 4}),
    (('--function', 'again'), {'again': 44, 'leaf': 11}),
    (('--function', 'again', '--depth', '1'), {'again': 11}),
    (('--depth', '2'), {'main': 1, 'work': 1, 'outer': 11}),
    (('--hide', 'again'), {'main': 1, 'work': 1, 'outer': 11, 'leaf': 22}),
    (('--hide', 'outer', '--depth', '2'), {'main': 1, 'work': 1, 'leaf': 11, 'again': 11}),
    (('--only', 'outer', '--only', 'leaf'), {'outer': 11, 'leaf': 22}),
    (('--focus', '^ag'), {'again': 44, 'leaf': 11}),
    (('--merge-recursion',), dict(ENTERED, again=11)),
    (('--hide', 'main', '--thread', 'worker', '--merge-recursion'),
     {'work': 1, 'outer': 1, 'leaf': 2, 'again': 1}),
]


@test
def timelines_have_the_calls_that_were_chosen():
    has_otf2 = 'Vampir' in subprocess.run([shimtest.report, 'export', '--help'],
                                          capture_output=True, text=True).stdout
    for options, calls in CHOICES:
        expect_equal(chrome(*options), calls, 'chrome %s' % (options,))
        expect_equal(perfetto(*options), sum(calls.values()), 'perfetto %s' % (options,))
        expect_equal(babeltrace(*options), calls, 'ctf %s' % (options,))
        if has_otf2:
            expect_equal(otf2(*options), calls, 'otf2 %s' % (options,))
        expect_equal(replayed(*options), calls, 'replay %s' % (options,))


@test
def speedscope_has_the_timeline_of_a_window():
    for options, calls in CHOICES[1:]:
        if options[0] in ('--hide', '--only', '--focus', '--merge-recursion'):
            options += ('--from', '0s')
        sums = collections.Counter()
        for profile in timed(*options).values():
            sums.update(profile)
        expect_equal(dict(sums), calls, options)
    profiles = timed('--from', '0s')
    expect_equal(sorted(sum(p.values()) for p in profiles.values()), [8, 71], profiles)
    expect_equal([name.split()[1] for name in timed('--thread', 'worker')], ['worker'],
                 'names')


def folded(*options):
    lines = shim_report('export', 'folded', recording(), '--value', 'calls',
                        *options).splitlines()
    return {path: int(count) for path, count in (line.rsplit(' ', 1) for line in lines)}


def calls_in(options):
    about = json.loads(shim_report('export', 'json', recording(), *options))
    return {f['name']: f['calls'] for f in about['functions']
            if f['calls'] or f['total_raw_ns']}


@test
def formats_of_call_paths_have_the_calls_that_were_chosen():
    for options, calls in CHOICES[:5]:
        expect_equal(calls_in(options), calls, options)
    expect_equal(folded('--function', 'again', '--depth', '2'),
                 {'again': 11, 'again;again': 11}, 'paths')


@test
def a_part_of_the_time_has_the_calls_that_lie_in_it():
    with open(export('chrome')) as file:
        events = [e for e in json.load(file)['traceEvents'] if e['ph'] in 'BE']
    outer = [e for e in events if e['name'] == 'outer']
    begin, end = outer[6]['ts'], outer[7]['ts']
    window = ('--from', '%dns' % round(begin * 1000 - 1), '--to',
              '%dns' % round(end * 1000 + 1))
    expect_equal(chrome(*window), {'main': 1, 'outer': 1, 'leaf': 2, 'again': 4}, 'calls')
    expect_equal(perfetto(*window), 8, 'perfetto')
    # main began earlier: its time counts, its call does not.
    expect_equal(calls_in(window), {'main': 0, 'outer': 1, 'leaf': 2, 'again': 4}, 'json')
    about = json.loads(shim_report('export', 'json', recording(), '--raw', *window))
    main, = (f for f in about['functions'] if f['name'] == 'main')
    wanted = (end - begin) * 1000 + 2
    expect(abs(main['total_raw_ns'] - wanted) <= 5, (main, wanted))
    longest = max(b['ts'] - a['ts'] for a, b in zip(outer[::2], outer[1::2])) * 1000
    calls = chrome('--min-duration', '%dns' % round(longest + 1))
    expect('outer' not in calls and calls['main'] == 1, calls)


@test
def calls_that_only_reach_through_a_part_of_the_time_have_its_time():
    with open(export('chrome')) as file:
        times = sorted(e['ts'] for e in json.load(file)['traceEvents']
                       if e['ph'] in 'BE')
    # The longest time in which no call of any thread begins or ends.
    begin, end = max(zip(times, times[1:]), key=lambda pair: pair[1] - pair[0])
    third = (end - begin) / 3
    window = ('--from', '%dns' % round((begin + third) * 1000), '--to',
              '%dns' % round((begin + 2 * third) * 1000))
    open_then = chrome(*window)
    done = subprocess.run([shimtest.report, 'export', 'json', recording(), '--raw',
                           *window], capture_output=True, timeout=60)
    expect_equal((done.returncode, done.stderr), (0, b''), 'it says')
    about = json.loads(done.stdout)
    expect_equal({f['name'] for f in about['functions'] if f['total_raw_ns'] > 0},
                 set(open_then), 'functions')
    expect_equal(about['calls'], 0, 'calls')
    # The worker may have lost its processor, while main waits for it.
    wanted = third * 1000 * (2 if 'work' in open_then else 1)
    expect(abs(about['time_raw_ns'] - wanted) <= 10, (about['time_raw_ns'], open_then, third))


@test
def what_has_no_window_is_refused():
    plain = record([made['program']], 'calltree').output
    for options, status, words in (
            (('chrome', '--thread', 'nobody'), 1, 'no thread nobody was recorded'),
            (('perfetto', '--function', 'nobody'), 1, 'no function nobody was recorded'),
            (('json', '--function', 'leav'), 1, 'leaf'),
            (('chrome', '--hide', 'nobody'), 0, "--hide 'nobody'"),
            (('chrome', '--only', 'nobody'), 1, 'leave no function to show'),
            (('ctf', '--from', '2s', '--to', '1s', '-o', 'x'), 2, '--to: before --from'),
            (('json', '--from', '0s', '--memory'), 2, 'select calls of a trace'),
            (('massif', '--from', '0s'), 2, 'select calls of a trace'),
            (('lcov', '--from', '0s'), 2, 'coverage has no times'),
            (('speedscope', '--from', '0s', '--value', 'calls'), 2, 'of a window')):
        done = run([shimtest.report, 'export', options[0], recording(), *options[1:]])
        expect_equal(done.status, status, options)
        expect(words in done.stderr, done.stderr)
    done = run([shimtest.report, 'export', 'json', plain, '--from', '0s'])
    expect(done.status == 1 and 'there is no trace in it' in done.stderr, done.stderr)


@test
def a_long_export_shows_its_progress_on_a_terminal():
    recording()
    long = record([made['program'], '700000'], 'trace').output
    ours, theirs = pty.openpty()
    seen = []

    def listen():
        try:
            while data := os.read(ours, 4096):
                seen.append(data)
        except OSError:
            pass
    listener = threading.Thread(target=listen)
    listener.start()
    subprocess.run([shimtest.report, 'export', 'chrome', long], stdout=subprocess.DEVNULL,
                   stderr=theirs, check=True)
    os.close(theirs)
    listener.join()
    shown = [int(n) for n in re.findall(rb'exporting +(\d+)%', b''.join(seen))]
    expect(shown == sorted(shown) and any(0 < n < 100 for n in shown), seen)


if __name__ == '__main__':
    shimtest.main()
