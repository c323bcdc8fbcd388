"""Tables that keep to their limits, and say what they lack."""

import glob
import os
import re
import shutil
import struct
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, json_of, new_directory,
                      record, shim_report, test)

PROGRAM = r'''
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sink;

static void leaf(void) { sink++; }
static void once(void) { leaf(); }
static void wait_for_it_in_a_function_with_a_long_name(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}
#define WRAP(name, inner) \
	static void name(void) { for (int i = 0; i < 3; i++) leaf(); inner(); }
WRAP(fourth_function_with_quite_a_long_name, wait_for_it_in_a_function_with_a_long_name)
WRAP(third_function_with_quite_a_long_name, fourth_function_with_quite_a_long_name)
WRAP(second_function_with_quite_a_long_name, third_function_with_quite_a_long_name)
WRAP(first_function_with_quite_a_long_name, second_function_with_quite_a_long_name)
static void *in_thread(void *nothing)
{
	first_function_with_quite_a_long_name();
	return nothing;
}

int main(void)
{
	pthread_t thread;

	once();
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, in_thread, NULL);
	usleep(50000);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	for (int i = 0; i < 20000; i++)
		leaf();
	first_function_with_quite_a_long_name();
	return 0;
}
'''


def recording(profile):
    if profile not in recording.made:
        if not recording.program:
            source = shimtest.new_source('tables.c', PROGRAM)
            recording.program = compile(source, 'gcc', '-O0',
                                        flags=('-g', '-pthread'))
        recording.made[profile] = record([recording.program],
                                         profile=profile).output
    return recording.made[profile]


recording.made, recording.program = {}, None


def rows_of(text):
    return [line for line in text.splitlines()
            if re.match(r'^ *[\d.]+ .*\[tables ', line)]


@test
def a_tree_has_as_many_rows_as_its_limit():
    output = recording('calltree:exact')
    whole = rows_of(shim_report('report', '--tree', '--min-percent', '0', output))
    expect(len(whole) > 10, whole)
    for limit in (1, 3, 7):
        text = shim_report('report', '--tree', '--min-percent', '0', '--limit',
                           str(limit), output)
        expect_equal(len(rows_of(text)), limit, text)
        expect('... %d more call paths' % (len(whole) - limit) in text, text)
        # Each row's caller is there, and no row that is left out is larger.
        shown = [float(line.split()[0]) for line in rows_of(text)]
        left = sorted(float(line.split()[0]) for line in whole)[:-limit]
        expect(min(shown) >= max(left) - 0.5, (shown, left))
        depths = [(len(line) - len(line.split('  ')[-1])) for line in rows_of(text)]
        expect(all(b - a <= 2 for a, b in zip(depths, depths[1:])), text)
    text = shim_report('report', '--tree', '--min-percent', '0', '--limit', '0',
                       output)
    expect_equal(len(rows_of(text)), len(whole), text)


@test
def what_cannot_be_sorted_by_is_refused_with_the_reason():
    for profile, sort, why in (
            ('calltree:counts', 'self', 'counted, not timed'),
            ('calltree:counts', 'mean', 'counted, not timed'),
            ('calltree', 'max', 'calltree:exact'),
            ('sampling:clock=wall,hz=1000', 'mean', 'samples do not tell'),
            ('sampling:clock=wall,hz=1000', 'max', 'samples do not tell')):
        done = subprocess.run([shimtest.report, 'report', recording(profile),
                               '--sort', sort], capture_output=True, text=True)
        expect_equal((done.returncode, done.stdout), (1, ''), (profile, sort))
        expect('--sort ' + sort in done.stderr and why in done.stderr,
               done.stderr)
    for profile, sort in (('calltree:exact', 'max'), ('calltree', 'mean'),
                          ('calltree:counts', 'calls'),
                          ('sampling:clock=wall,hz=1000', 'total')):
        shim_report('report', recording(profile), '--sort', sort)


@test
def a_histogram_says_what_share_of_the_calls_it_has():
    text = shim_report('report', recording('calltree'), '--histogram', 'leaf')
    some, every, percent = re.search(
        r'^([\d,]+) of ([\d,]+) finished calls \((\S+) %\)', text, re.M).groups()
    calls = sum(f['calls'] for f in json_of(recording('calltree'))['functions']
                if f['name'] == 'leaf')
    expect_equal(int(every.replace(',', '')), calls, text)
    bars = sum(int(n.replace(',', ''))
               for n in re.findall(r'^ +[\d.]+ \w+ +([\d,]+)  #', text, re.M))
    expect_equal(int(some.replace(',', '')), bars, text)
    expect(abs(float(percent) - 100 * bars / calls) <= 0.06 * float(percent), text)
    text = shim_report('report', recording('calltree:exact'), '--histogram',
                       'leaf')
    expect('finished calls' not in text, text)


@test
def paths_to_locks_have_lines_like_a_terminal():
    text = shim_report('report', '--locks', recording('calltree;locks'))
    lines = [line for line in text.splitlines() if ' in ' in line and ' < ' in line]
    expect(lines, text)
    expect(max(map(len, lines)) <= 150, max(lines, key=len))
    expect(any(line.endswith(' < ...') for line in lines), lines)
    text = shim_report('report', '--locks', '--names', 'full',
                       recording('calltree;locks'))
    expect(' < first_function_with_quite_a_long_name < in_thread' in text, text)


@test
def trees_of_callers_and_callees_agree_with_the_tables():
    output = recording('calltree:exact')
    calls = {f['name']: f['calls'] for f in json_of(output)['functions']}
    for function in ('leaf', 'second_function_with_quite_a_long_name'):
        for option in ('--callers', '--callees'):
            tree = shim_report('report', '--tree', option, function,
                               '--min-percent', '0', '--limit', '0', output)
            rows = rows_of(tree)
            indents = [line.index(re.search(r'\S+ \[tables', line).group())
                       for line in rows]
            expect(re.search(r'\b%s \[' % function, rows[0]), tree)
            root = int(re.findall(r' ([\d,]+)  ', rows[0])[-1].replace(',', ''))
            expect_equal(root, calls[function], tree)
            children = {}
            for line, indent in zip(rows, indents):
                if indent == indents[0] + 2:
                    name = re.search(r'(\S+) \[tables', line).group(1)
                    number = re.findall(r' ([\d,]+)  ', line)[-1]
                    children[name] = int(number.replace(',', ''))
            table = shim_report('report', option, function, output)
            wanted = {name: int(number.replace(',', '')) for number, name in
                      re.findall(r'^ +([\d,]+) .*  (\S+) \[tables', table, re.M)}
            expect_equal(children, wanted, (option, tree, table))
    text = shim_report('report', '--tree', '--callers', 'leaf', '--limit', '2',
                       output)
    expect_equal(len(rows_of(text)), 2, text)


@test
def damaged_records_are_never_nothing_lost():
    output = recording('calltree:exact')
    expect('; nothing lost\n' in shim_report('report', output), 'before')
    expect_equal(json_of(output)['damaged_records'], 0, 'before')
    damaged = os.path.join(new_directory('damaged'), 'recording')
    shutil.copytree(output, damaged)
    tree, = glob.glob(os.path.join(damaged, '*', '0.calltree'))
    with open(tree, 'r+b') as file:
        file.seek(0x1100)
        file.write(bytes([0x5a] * 0x100))
    about = json_of(damaged)
    expect(about['damaged_records'] > 0, about['damaged_records'])
    text = shim_report('report', damaged)
    expect('nothing lost' not in text, text)
    expect('; an unknown number of calls LOST (at least %d records of call trees '
           'are damaged)' % about['damaged_records'] in text, text)
    expect('at least %d records are damaged' % about['damaged_records'] in
           shim_report('info', damaged), 'info')


def damage_of(output, name, at, size):
    """A copy of @output with @size zeros in the file @name; the report and its
    messages."""
    copy = os.path.join(new_directory('damaged'), 'recording')
    shutil.copytree(output, copy)
    with open(os.path.join(copy, os.path.relpath(name, output)), 'r+b') as file:
        file.seek(at)
        file.write(bytes(size))
    done = subprocess.run([shimtest.report, 'report', copy], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    return json_of(copy)['damaged_records'], done.stdout, done.stderr


@test
def zeroed_records_are_damage():
    output = recording('calltree')
    name, = glob.glob(os.path.join(output, '*', '0.calltree'))
    with open(name, 'rb') as file:
        tree = file.read()
    # From the root's end; what is lost at the end of a file looks unused.
    first = struct.unpack_from('<Q', tree, 48)[0] + 128
    used = [at for at in range(first, len(tree), 64) if any(tree[at:at + 8])]
    expect(len(used) > 2, used)
    for at in used[:-1]:
        damaged, text, messages = damage_of(output, name, at, 64)
        expect(damaged > 0, at)
        expect('at offset %d: zeros between nodes\n' % at in messages,
               messages)
        expect('; an unknown number of calls LOST (at least %d records' % damaged in
               text, text)
    # The program had not finished this node.
    messages = damage_of(output, name, used[-2], 8)[2]
    expect('zeros between' not in messages, messages)


def with_count(profile, kind, field, value):
    """What the report says of a recording with @value in the 64 bits at @field of the
    last node of @kind, which are the first 16 bits."""
    copy = os.path.join(new_directory('damaged'), 'recording')
    shutil.copytree(recording(profile), copy)
    for name in glob.glob(copy + '/*/*.calltree'):
        with open(name, 'r+b') as file:
            tree = file.read()
            found = [at for at in range(4096, len(tree) - 64, 64)
                     if any(tree[at:at + 8]) and
                     struct.unpack_from('<Q', tree, at)[0] >> 48 in kind]
            if not found:
                continue
            file.seek(found[-1] + field)
            file.write(struct.pack('<Q', value))
        done = subprocess.run([shimtest.report, 'report', copy], text=True,
                              capture_output=True)
        expect('at offset %d: a count' % found[-1] in done.stderr,
               (found[-1], done.stderr))
        return json_of(copy), done.stdout
    raise AssertionError('no such node')


@test
def counts_that_cannot_be_are_damage():
    # In a run of less than a minute, no thread makes 2^40 calls.
    for value in 1 << 40, 1 << 57, (1 << 64) - 1:
        about, text = with_count('calltree', (0, 0x8000), 16, value)
        expect_equal(about['damaged_records'], 1, text)
        expect(sum(f['calls'] for f in about['functions']) < 1 << 32, text)
        expect('unknown number of calls LOST' in text, text)
    for profile, kind, field in (('memory', 0xfffc, 24), ('memory', 0xfffc, 32),
                                 ('memory', 0xfffc, 96), ('locks', 0xfff9, 40)):
        about, text = with_count(profile, (kind,), field, 1 << 62)
        expect(about['damaged_records'] > 0, text)
        expect('nothing lost' not in text, text)


if __name__ == '__main__':
    shimtest.main()
