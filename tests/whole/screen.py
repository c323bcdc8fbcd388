"""profrun tui and top on a terminal, which tmux plays: what the screen shows after keys."""

import contextlib
import glob
import os
import pty
import re
import select
import signal
import subprocess
import time

import shimtest
from shimtest import (compile, expect, expect_equal, json_of, need, new_directory,
                      record, shim_report, test)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
SOURCE = '''
#include <stdlib.h>
static volatile int sum;
/* Has nearly all of the time, whatever calls cost and however often main is interrupted. */
__attribute__((noinline)) void leaf(int i)
{
	for (int k = 0; k < 200; k++)
		sum += i;
}
__attribute__((noinline)) void middle(int n) { for (int i = 0; i < n; i++) leaf(i); }
__attribute__((noinline)) void other(int n) { leaf(n); }
int main(void)
{
	free(malloc(100));
	for (int i = 0; i < 30; i++)
		middle(1000);
	other(3);
	return 0;
}
'''
BUSY = '''
#include <time.h>
static volatile unsigned long sum;
__attribute__((noinline)) void work(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sum += i % 7;
}
int main(void)
{
	struct timespec now;

	do {
		work();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec == 0 && now.tv_nsec < 300000000);
	return 0;
}
'''


class Terminal:
    """A terminal of its own server, so that no other tmux is touched."""

    count = 0

    def __init__(self, *words, columns=100, rows=24, **variables):
        need('tmux')
        Terminal.count += 1
        self.name = 'shim-%d-%d' % (os.getpid(), Terminal.count)
        self.ended = os.path.join(new_directory('terminal'), 'ended')
        command = 'env %s %s; echo ended $? >%s; sleep 600' % (
            ' '.join('%s=%s' % v for v in {'LC_ALL': 'C.UTF-8', **variables}.items()),
            ' '.join("'%s'" % w for w in words), self.ended)
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(columns),
                  '-y', str(rows), command)

    def tmux(self, *words):
        done = subprocess.run(['tmux', '-L', self.name, *words], text=True,
                              capture_output=True, encoding='utf-8')
        expect(done.returncode == 0, (words, done.stderr))
        return done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        subprocess.run(['tmux', '-L', self.name, 'kill-server'], capture_output=True)

    def capture(self):
        return self.tmux('capture-pane', '-p')

    def screen(self):
        """The screen, when it is no longer being drawn."""
        before = None
        while (now := self.capture()) != before:
            before = now
            time.sleep(0.05)
        return now

    def keys(self, *keys):
        for key in keys:
            self.tmux('send-keys', key)
        return self

    def type(self, text):
        self.tmux('send-keys', '-l', text)
        return self

    def until(self, expression, seconds=60):
        """Waits until the screen matches; returns the match."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = self.capture()
            found = re.search(expression, text, re.M)
            if found:
                return found
            time.sleep(0.05)
        expect(False, '%r is not on the screen:\n%s' % (expression, self.screen()))

    def status(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:    # the shell opens the file before it writes
                with open(self.ended) as file:
                    return int(re.match(r'ended (\d+)\n', file.read()).group(1))
            except (FileNotFoundError, AttributeError):
                time.sleep(0.05)
        raise shimtest.Failed('it did not end:\n' + self.screen())


def program(made=[]):
    if not made:
        source = shimtest.new_source('screen.c', SOURCE)
        made.append(compile(source))
    return made[0]


def recording(*profiles, made={}):
    if profiles not in made:
        target = os.path.join(new_directory('screen'), 'recording')
        subprocess.run([PROFRUN, 'record', '-q', '-o', target,
                        *(w for p in profiles for w in ('-p', p)), program()],
                       check=True, capture_output=True)
        made[profiles] = target
    return made[profiles]


def tui(*words, profiles=('calltree:exact',), columns=100, rows=24, **variables):
    return Terminal(PROFRUN, 'tui', recording(*profiles), *words, columns=columns,
                    rows=rows, **variables)


@test
def functions_have_the_numbers_of_the_report():
    lines = shim_report('report', recording('calltree:exact')).splitlines()
    with tui() as terminal:
        terminal.until('^ *self%')
        rows = [l.split() for l in lines if re.search(r'(main|middle|leaf|other) \[', l)]
        expect_equal(len(rows), 4, lines)
        for row in rows:
            name = re.search(r'(main|middle|leaf|other) \[', ' '.join(row)).group(1)
            shown = terminal.until(r'^ *(.*) %s \[screen' % name)
            expect_equal(shown.group(1).split()[:3], row[:3], name)
        terminal.keys('q')
        expect_equal(terminal.status(), 0, 'status')


@test
def rows_are_sorted_and_filtered():
    with tui() as terminal:
        terminal.until('by self time')
        terminal.keys('c').until('by calls')
        terminal.until(r'mean function\n.*30,001 .*leaf')
        terminal.keys('/').until('only functions that match')
        terminal.type('^(MAIN|oth)').keys('Enter')
        terminal.until(r', with \^\(MAIN')
        screen = terminal.screen()
        expect_equal(sorted(re.findall(r'(main|middle|leaf|other) \[', screen)),
                     ['main', 'other'], screen)
        terminal.keys('/').until('match: .*oth')
        terminal.keys('C-u').type('(').keys('Enter')
        terminal.until(r'\(: Unmatched')
        terminal.keys('/').keys('Escape')
        terminal.keys('b').until('no allocations were recorded')


@test
def a_guessed_caller_is_marked():
    program = compile('no_tables.c', 'gcc', '-O1', ['-I', os.path.join(
        shimtest.PROGRAMS, '..', '..', 'include')], instrument=False)
    output = shimtest.record([program, 'spin'], 'sampling').output
    with Terminal(PROFRUN, 'tui', output) as terminal:
        terminal.until('functions by')
        terminal.keys('2').until('call tree')
        terminal.keys('e').until(r' leaf \(caller guessed')
        expect(not re.search(r' main \(', terminal.screen()), terminal.screen())
        terminal.keys('3').until('callers: below')
        terminal.until(r'\+ leaf \(caller guessed')
        terminal.keys('o').until(r' calls_leaf \(guessed')


@test
def the_tree_opens_and_closes():
    with tui() as terminal:
        terminal.until('functions by')
        terminal.keys('2').until('call tree')
        # A single first function is open, and what has most of the time below it.
        terminal.until(r'- main')
        terminal.until(r'^ *[0-9.]+ .* 30,000 +leaf')
        terminal.until(r'^ *[0-9.]+ .* 1 +\+ other')
        terminal.keys('E').until(r'\+ main')
        expect('leaf' not in terminal.screen(), terminal.screen())
        terminal.keys('Enter').until(r'\+ middle')
        terminal.keys('/').type('other').keys('Enter', 'o')
        terminal.until('^other')
        terminal.keys('Escape').until('call tree')


@test
def callers_are_below_functions():
    with tui() as terminal:
        terminal.until('functions by')
        terminal.keys('3').until('below each function are its callers')
        terminal.keys('/').type('leaf').keys('Enter', 'Enter')
        terminal.until(r'- leaf(?:.*\n)+? *[0-9.]+ .* 30,000   \+ middle')
        terminal.until(r'  \+ other')


@test
def a_function_leads_to_its_callers_callees_and_source():
    with tui() as terminal:
        terminal.until('functions by')
        terminal.keys('/').type('middle').keys('Enter', 'Enter')
        terminal.until(r'^callers\n +30 .* main')
        terminal.until(r'^callees\n +30,000 .* leaf')
        terminal.until(r'calls took [0-9.]+ [nu]s to')
        terminal.keys('s').until(r'no samples of its lines')
        terminal.until(r'^ +10 .*void middle')
        terminal.keys('Escape').until('^callers')
        terminal.keys('/').type('leaf').keys('Enter', 'Enter').until(r'^callees: none')


@test
def samples_give_lines_their_times():
    source = shimtest.new_source('busy.c', BUSY)
    target = os.path.join(new_directory('busy'), 'recording')
    subprocess.run([PROFRUN, 'record', '-q', '-o', target, '-p', 'sampling',
                    compile(source)], check=True, capture_output=True)
    with Terminal(PROFRUN, 'tui', target) as terminal:
        terminal.until('functions by self time; [0-9,]+ samples')
        terminal.keys('/').type('^work').keys('Enter', 'Enter')
        terminal.until('^callers')
        terminal.keys('s').until('self%.* self +line')
        # The cursor is at the line with the most time.
        terminal.until(r'^ *[0-9]+[.][0-9]+ +[0-9.]+ [mu]?s +[0-9]+ .*sum [+]= i % 7')


@test
def threads_have_trees_of_their_own():
    with tui() as terminal:
        terminal.until('functions by')
        terminal.keys('4').until(r'^ +pid +tid')
        terminal.keys('Enter').until(r'- main')


@test
def memory_is_shown_where_it_was_recorded():
    with tui(profiles=('memory',)) as terminal:
        terminal.until('functions by bytes')
        terminal.until(r'^ +100 B +1 .*main')


@test
def small_terminals_and_new_sizes_are_served():
    for columns, rows in (20, 5), (40, 8), (200, 50):
        with tui(columns=columns, rows=rows) as terminal:
            terminal.until('[0-9]')
            for key in '2', '3', '4', '1', '?', 'Escape':
                terminal.keys(key)
            terminal.tmux('resize-window', '-x', '100', '-y', '20')
            terminal.until(r'^ *self%.*function')
            terminal.tmux('resize-window', '-x', '7', '-y', '3')
            terminal.keys('Down', 'Enter', '2', 'Q')
            expect_equal(terminal.status(), 0, 'status')


@test
def narrow_terminals_show_names_and_the_numbers_that_fit():
    time = r' +\S+ \w?s'
    for columns, rows in (60, r'^ +[\d.]+%s%s +1 main' % (time, time)), \
            (32, r'^ +[\d.]+%s main' % time), (25, r'^ +[\d.]+ main'), \
            (20, r'^ +[\d.]+ main'), (15, '^main'):
        with tui(columns=columns) as terminal:
            terminal.until(rows)
            for key, title in ('2', 'call path'), ('3', 'call path'), ('4', 'name'), \
                    ('1', 'function'):
                terminal.keys(key)
                terminal.until(r'^ *(\S+ +)*%s' % title)


@test
def without_a_terminal_or_a_recording_it_says_so():
    done = subprocess.run([PROFRUN, 'tui', recording('calltree:exact')], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    expect_equal((done.returncode, done.stdout), (1, ''), done.stderr)
    expect('needs a terminal' in done.stderr, done.stderr)
    with Terminal(PROFRUN, 'tui', '/nowhere') as terminal:
        terminal.until('/nowhere: No such file')
        expect_equal(terminal.status(), 1, 'status')
    with tui(TERM='no-such-terminal') as terminal:
        terminal.until(r"'no-such-terminal' \(TERM\) is not known")
        expect_equal(terminal.status(), 1, 'status')
    with tui(TERM='dumb') as terminal:
        terminal.until(r"the cursor of the terminal 'dumb' \(TERM\) cannot be moved")
        expect_equal(terminal.status(), 1, 'status')


@test
def other_character_sets_and_no_colour_are_served():
    with tui(LC_ALL='C', NO_COLOR='1') as terminal:
        terminal.until('functions by')
        coloured = terminal.tmux('capture-pane', '-p', '-e')
        expect(not re.search('\033\\[[0-9;]*3[0-7]', coloured), coloured)
    with tui() as terminal:
        terminal.until('functions by')
        coloured = terminal.tmux('capture-pane', '-p', '-e')
        expect(re.search('\033\\[[0-9;]*3[0-7]', coloured), coloured)


def takes_signal(number):
    with tui() as terminal:
        terminal.until('functions by')
        pid = terminal.tmux('list-panes', '-F', '#{pane_pid}').strip()
        children = subprocess.run(['pgrep', '-P', pid], text=True, capture_output=True)
        before = terminal.tmux('display-message', '-p', '#{alternate_on}').strip()
        expect_equal(before, '1', 'the alternate screen')
        os.kill(int(children.stdout.split()[0]), number)
        expect_equal(terminal.status(), 128 + number, 'status')
        # tmux reads what was written before the end only now.
        end = time.monotonic() + 60
        while (terminal.tmux('display-message', '-p', '#{alternate_on}').strip() != '0' and
               time.monotonic() < end):
            time.sleep(0.05)
        expect_equal(terminal.tmux('display-message', '-p', '#{alternate_on}').strip(), '0',
                     'the alternate screen after %s' % number.name)


@test
def a_signal_leaves_the_terminal_as_it_was():
    """Control-\\ sends SIGQUIT."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP,
                   signal.SIGABRT):
        takes_signal(number)


# --- top ---

# Calls leaf again and again, until its standard input ends.
RUNS = '''
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile int sum;
__attribute__((noinline)) void leaf(int i) { sum += i; }
__attribute__((noinline)) void middle(void)
{
	for (int i = 0; i < 1000; i++)
		leaf(i);
	free(malloc(1000));
}
static void *second(void *unused)
{
	for (;;) {
		middle();
		usleep(1000);
	}
	return unused;
}
int main(void)
{
	struct pollfd input = { 0, POLLIN, 0 };
	pthread_t thread;

	pthread_create(&thread, NULL, second, NULL);
	while (poll(&input, 1, 1) == 0)
		middle();
	return 3;
}
'''


# 88,572 call paths.
MANY = '''
#include <poll.h>
void a(int depth), b(int depth), c(int depth);
static void all(int depth) { if (depth > 0) { a(depth); b(depth); c(depth); } }
void a(int depth) { all(depth - 1); }
void b(int depth) { all(depth - 1); }
void c(int depth) { all(depth - 1); }
int main(void)
{
	struct pollfd input = { 0, POLLIN, 0 };

	do
		all(10);
	while (poll(&input, 1, 10) == 0);
	return 0;
}
'''


class Running:
    """A program that shim records while it runs."""

    def __init__(self, *words, text=RUNS, other=None):
        directory = new_directory('runs')
        for name, content in (('runs.c', text), ('other.c', other)):
            with open(os.path.join(directory, name), 'w') as file:
                file.write(content or '')
        self.output = os.path.join(new_directory('runs'), 'recording')
        self.program = compile(os.path.join(directory, 'runs.c'),
                               flags=[os.path.join(directory, 'other.c')] if other else [])
        self.run = subprocess.Popen(
            [PROFRUN, 'record', '-q', '-o', self.output, *words, self.program],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            listed = subprocess.run([PROFRUN, 'ctl'], text=True, capture_output=True).stdout
            found = re.search(r'^ *([0-9]+) .*%s$' % re.escape(self.output), listed, re.M)
            if found:
                self.pid = found.group(1)
                return self
            time.sleep(0.05)
        raise shimtest.Failed('the program does not run')

    def wait_until_its_path_is_recorded(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for images in glob.glob(self.output + '/*/images'):
                with open(images, 'rb') as file:
                    if self.program.encode() in file.read():
                        return
            time.sleep(0.01)
        raise shimtest.Failed('the program is not in the recording')

    def finish(self):
        self.run.stdin.close()
        return self.run.wait(60)

    def __exit__(self, *unused):
        if self.run.poll() is None:
            self.finish()


@test
def tui_says_what_it_does_when_a_row_takes_long_to_open():
    source = shimtest.new_source('many.c', MANY)
    output = os.path.join(new_directory('many'), 'recording')
    subprocess.run([PROFRUN, 'record', '-q', '-o', output, compile(source)], check=True,
                   stdin=subprocess.DEVNULL, capture_output=True)
    with Terminal(PROFRUN, 'tui', '--sort', 'calls', output) as terminal:
        terminal.until('^ *self%')
        terminal.keys('3').until('^callers:')
        terminal.keys('/').type('all').keys('Enter', 'Right')
        terminal.until('^looking for the callers of all')
        terminal.until(r'- all \[many')
        expect('looking for' not in terminal.screen(), 'the message stays')


def count(text):
    return int(text.replace(',', ''))


@test
def top_looks_less_often_when_looks_are_dear():
    with Running(text=MANY) as running:
        with Terminal(PROFRUN, 'top', running.pid) as terminal:
            found = float(terminal.until('every ([2-9]|10|[1-9][.][0-9]) s').group(1))
            # (What a look costs may have grown before the key was read.)
            for presses in range(4):
                terminal.keys('-')
                time.sleep(0.5)
                chosen = float(terminal.until('every ([0-9.]+) s').group(1))
                if chosen < 0.8 * found:
                    break
            expect(chosen < 0.8 * found, terminal.screen())
        with Terminal(PROFRUN, 'top', '--delay', '0.5', running.pid) as terminal:
            terminal.until('calls/s; every 0.5 s')


@test
def top_shows_what_functions_do_now():
    with Running() as running, Terminal(PROFRUN, 'top', '-d', '0.3', running.pid,
                                        columns=130) as terminal:
        terminal.until(r'^ *([0-9.]+|-) .* ([0-9,]+) +([0-9,]+) leaf \[runs\]')
        terminal.until('functions: [0-9,]+ calls/s; every 0.3 s')
        first = count(terminal.until(r' ([1-9][0-9,]+) leaf \[runs\]').group(1))
        # It goes on, and its callee is called a thousand times as often.
        end = time.monotonic() + 60
        while time.monotonic() < end and count(
                terminal.until(r' ([0-9,]+) leaf \[runs\]').group(1)) <= first:
            time.sleep(0.1)
        # One count after the other is read.
        os.kill(int(running.pid), signal.SIGSTOP)
        try:
            terminal.until('functions: 0 calls/s')
            terminal.keys('i').until('calls since the start')
            screen = terminal.screen()
        finally:
            os.kill(int(running.pid), signal.SIGCONT)
        calls = {name: count(re.search(r' ([0-9,]+) %s \[' % name, screen).group(1))
                 for name in ('leaf', 'middle')}
        expect(0 <= 1000 * calls['middle'] - calls['leaf'] <= 2000, screen)
        terminal.keys('i', 'c', '/').type('leaf').keys('Enter').until('; with leaf')
        terminal.keys('Enter').until('^leaf: self')
        terminal.until(r'^ +[0-9,]{5,} .* middle$')
        terminal.keys('Escape', '2').until(r'^ +tid +calls/s')
        terminal.until(r'^ *%s .*\n(.*\n)?.*runs' % '[0-9]+')
        terminal.keys('q')
        expect_equal(terminal.status(), 0, 'status')
        expect_equal(running.finish(), 3, 'the program')


# A function of a header in two files: `late` calls the second as soon as there is input.
TWICE = '''
#line 7 "twice.h"
__attribute__((noinline)) static int twice(int x) { return 2 * x; }
'''
EARLY = TWICE + '''
#include <poll.h>
void late(void);
int main(void)
{
	struct pollfd input = { 0, POLLIN, 0 };

	while (poll(&input, 1, 1) == 0)
		twice(1);
	for (int i = 0; i < 20000; i++) {
		twice(1);
		late();
		poll(0, 0, 1);
	}
	return 3;
}
'''
LATE = TWICE + '''
void late(void) { twice(2); }
'''


@test
def top_has_one_row_for_equal_functions_that_come_later():
    with Running(text=EARLY, other=LATE) as running, \
            Terminal(PROFRUN, 'top', '-d', '0.2', running.pid) as terminal:
        terminal.until(r' twice \[runs')
        time.sleep(1)      # a look that knows its name
        running.run.stdin.write(b'go')
        running.run.stdin.flush()
        terminal.until(r' late \[runs')
        time.sleep(0.5)
        screen = terminal.screen()
        expect_equal(len(re.findall(r' twice \[runs', screen)), 1, screen)
        running.run.kill()


@test
def top_finds_names_as_soon_as_the_file_is_there():
    # Tests that run beside this one have programs of the same text.
    with Running(text=RUNS + '/* of process %d */\n' % os.getpid()) as running:
        running.wait_until_its_path_is_recorded()
        os.rename(running.program, running.program + '.away')
        try:
            with Terminal(PROFRUN, 'top', '-d', '0.2', running.pid) as terminal:
                terminal.until(r' 0x[0-9a-f]+ \[runs(.*\n)*profrun: .*not there, or no ELF')
                os.rename(running.program + '.away', running.program)
                terminal.until(r' leaf \[runs\]')
        finally:
            if os.path.exists(running.program + '.away'):
                os.rename(running.program + '.away', running.program)


@test
def top_controls_the_process():
    with Running('--control', '-p', 'calltree', '-p', 'memory') as running, \
            Terminal(PROFRUN, 'top', '-d', '0.2', running.pid) as terminal:
        terminal.until(r'bytes/s.*\n(.*\n)*.* [0-9.]+ [KM]iB middle')
        terminal.keys('r').until('^stop: done')
        terminal.until('functions: 0 calls/s')
        terminal.keys('r').until('^start: done')
        terminal.until('functions: [1-9][0-9,]* calls/s')
        terminal.keys('B').type('200').keys('Enter').until(
            '^budget 200: (?!profrun).*(1 to 99|refused|budget)')
        terminal.keys('F').type('all,-M:leaf').keys('Enter').until('^filter all,-M:leaf: done')
        terminal.until(r'^ +0\.00 .* leaf')
        terminal.keys('p').until(', paused')
        terminal.keys('p', 'w').until('no waits are recorded')


@test
def top_stays_when_the_process_ends():
    with Running() as running, Terminal(PROFRUN, 'top', '-d', '0.2', running.pid) as terminal:
        terminal.until('functions: [1-9][0-9,]* calls/s')
        expect_equal(running.finish(), 3, 'the program')
        terminal.until(', ended')
        terminal.keys('/').type('leaf').keys('Enter').until('; with leaf')
        terminal.keys('Enter').until('^leaf: self')
        terminal.until('^ .* middle$')
        terminal.keys('Q')
        expect_equal(terminal.status(), 0, 'status')


@test
def top_says_why_there_is_nothing_to_see():
    for words, wanted, status in (
            (('999999999',), 'there is no process 999999999', 1),
            ((str(os.getpid()),), 'shim does not record process', 1),
            (('-d', '0.01', '1'), 'is not from 0.1 to 60 seconds', 2),
            (('abc',), "'abc' is not the number of a process", 2),
            ((), 'which process', 2)):
        with Terminal(PROFRUN, 'top', *words) as terminal:
            terminal.until(re.escape(wanted))
            expect_equal(terminal.status(), status, words)
    done = subprocess.run([PROFRUN, 'top', '1'], text=True, stdin=subprocess.DEVNULL,
                          capture_output=True)
    expect_equal((done.returncode, done.stdout), (1, ''), done.stderr)
    expect('needs a terminal' in done.stderr, done.stderr)


@test
def what_the_screen_cannot_show_the_report_prints():
    recording = record([compile('lined.c', 'gcc', '-O1'), '1'], 'coverage').output
    with Terminal(PROFRUN, 'tui', recording, columns=200) as terminal:
        terminal.until('no calls, samples or allocations in it to look through; profrun '
                       'report prints what there is')
        expect_equal(terminal.status(), 1, 'status')
    expect('reached: ' in shim_report('report', recording), recording)


# --- profrun --live ---

LIVE = '''
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) void work(void)
{
	for (unsigned long i = 0; i < 100000; i++)
		sum += i % 7;
}
int main(int argc, char **argv)
{
	char line[100];

	printf("input %d\\n", (int)read(0, line, sizeof(line)));
	fflush(stdout);
	fputs("an error\\n", stderr);
	while (access(argv[1], F_OK) != 0)
		work();
	puts("the end");
	return 5;
}
'''


def live_program():
    source = shimtest.new_source('live.c', LIVE)
    return compile(source)


@contextlib.contextmanager
def live(*words):
    stop = os.path.join(new_directory('live'), 'stop')
    try:
        with Terminal(PROFRUN, '--live', '-o', stop + '.recording', *words, '--',
                      live_program(), stop, columns=110) as terminal:
            yield terminal, stop
    finally:
        open(stop, 'w').close()


@test
def live_shows_the_screen_and_then_the_output_and_the_report():
    with live() as (terminal, stop):
        terminal.until('functions: [1-9][0-9,]* calls/s')
        terminal.until(r' work \[live\]')
        expect('an error' not in terminal.screen(), terminal.screen())
        open(stop, 'w').close()
        terminal.until(', ended')
        terminal.keys('q')
        expect_equal(terminal.status(), 5, 'status')
        screen = terminal.until(r'(?s)input 0\n.*an error\n.*the end\n(.*\n)*.*work \[')
        expect('recording: ' + stop + '.recording' in terminal.screen(), screen)


@test
def live_may_be_left_before_the_program_ends():
    with live('--no-report') as (terminal, stop):
        terminal.until(r' work \[live\]')
        terminal.keys('q').until('input 0\nan error\n')
        expect('the end' not in terminal.screen(), terminal.screen())
        open(stop, 'w').close()
        terminal.until('the end\n')
        expect_equal(terminal.status(), 5, 'status')


def read_until(fd, wanted, seconds=60):
    text = b''
    while wanted not in text:
        expect(select.select([fd], [], [], seconds)[0] and len(text) < 1 << 24,
               '%r was not written: %r' % (wanted, text[-2000:]))
        text += os.read(fd, 4096)
    return text


@test
def of_live_ctrl_c_is_the_program_s():
    stop = os.path.join(new_directory('live'), 'stop')
    program = live_program()
    pid, fd = pty.fork()
    if pid == 0:
        os.environ['TERM'] = 'xterm'
        os.execv(PROFRUN, [PROFRUN, '--live', '--no-report', '-o', stop + '.recording',
                           '--', program, stop])
    try:
        read_until(fd, b' work ')
        os.write(fd, b'\x03')
        text = read_until(fd, b', ended')
    finally:
        open(stop, 'w').close()
    os.write(fd, b'q')
    try:
        while True:
            text += os.read(fd, 4096)
    except OSError:     # the other end is closed
        pass
    expect_equal(os.waitpid(pid, 0)[1], signal.SIGINT, 'status')
    expect(b'an error\r\n' in text and b'the end' not in text, text)


@test
def a_program_that_is_killed_ends_before_the_screen_of_live_is_left():
    """The time that the screen stays is not the time of open calls."""
    begin = time.monotonic()
    with live('--no-report') as (terminal, stop):
        pid = int(terminal.until(r'process (\d+): ').group(1))
        terminal.until(r' work \[live\]')
        os.kill(pid, signal.SIGKILL)
        terminal.until(', ended')
        seen_ns = (time.monotonic() - begin) * 1e9
        time.sleep(seen_ns / 1e9)
        terminal.keys('q')
        expect_equal(terminal.status(), 128 + signal.SIGKILL, 'status')
        about = json_of(stop + '.recording')
    expect(about['duration_ns'] < seen_ns and about['open'] > 0,
           (about['duration_ns'], about['open'], seen_ns))


@test
def live_needs_a_terminal_and_a_program_that_is_recorded():
    done = subprocess.run([PROFRUN, '--live', 'true'], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, start_new_session=True)
    expect_equal((done.returncode, done.stdout, done.stderr),
                 (2, '', 'profrun: --live needs a terminal\n'), 'no terminal')
    with Terminal(PROFRUN, '--live', '-q', '-o', new_directory('live') + '/recording',
                  'sh', '-c', 'echo short; exit 4') as terminal:
        # The screen comes if the recording is found before the program ends.
        terminal.until('short|, ended')
        terminal.keys('q')
        expect_equal(terminal.status(), 4, 'status')
        terminal.until('short')


if __name__ == '__main__':
    shimtest.main()
