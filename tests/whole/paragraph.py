"""profrun stat: one paragraph about a run."""

import json
import os
import re
import subprocess

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, record, shim_report, test

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
SOURCE = '''
#include <stdlib.h>
#include <stdio.h>
static void *kept[10];
__attribute__((noinline)) void *takes(int i) { return kept[i] = malloc(1000); }
int main(int c, char **v)
{
	for (int i = 0; i < 10; i++)
		takes(i);
	for (int i = 0; i < 4; i++)
		free(kept[i]);
	puts("said");
	return c > 1 ? atoi(v[1]) : 0;
}
'''


def program(instrument=True):
    source = os.path.join(new_directory('stat'), 'stat%d.c' % instrument)
    with open(source, 'w') as file:
        file.write(SOURCE)
    return compile(source, instrument=instrument)


def stat(*words, directory=None):
    directory = directory or new_directory('stat')
    done = subprocess.run([PROFRUN, 'stat', *words], capture_output=True, text=True,
                          cwd=directory,
                          env={k: v for k, v in os.environ.items() if k != 'SHIM_BUILD'})
    return done, sorted(os.listdir(directory))


@test
def a_run_is_one_paragraph_and_leaves_no_recording():
    done, left = stat('--', program(), '7')
    expect_equal((done.returncode, done.stdout, left), (7, 'said\n', []), done.stderr)
    expect_equal(len(done.stderr.splitlines()), 1, done.stderr)
    for words in (': [0-9.]+ [um]?s, 1 thread, exit status 7[.]',
                  '11 calls of 2 functions; most self time in (main|takes) ',
                  '1[0-2] allocations of [0-9.]+ KiB, at most [0-9.]+ KiB at a time',
                  'Our own cost: '):
        expect(re.search(words, done.stderr), (words, done.stderr))


@test
def json_has_what_the_report_has():
    target = os.path.join(new_directory('stat'), 'kept')
    done, _ = stat('--json', '-o', target, '--', program())
    about = json.loads(done.stderr.splitlines()[0])
    expect_equal((about['calls'], about['functions'], about['lost']), (11, 2, 0), about)
    again = subprocess.run([PROFRUN, 'stat', target, '--json'], capture_output=True,
                           text=True, check=True)
    expect_equal(json.loads(again.stdout), about, 'of the recording')
    first = subprocess.run([PROFRUN, 'stat', '--json', target], capture_output=True,
                           text=True)
    expect_equal(first.stdout, again.stdout, 'the option before the recording')
    memory = json.loads(shim_report('report', target, '--format', 'json', '--memory'))
    expect_equal(about['allocations'], memory['memory']['allocations'], 'memory')


@test
def what_was_not_recorded_has_no_sentence():
    output = record([program()], 'calltree:counts').output
    done, _ = stat(output)
    expect_equal(done.returncode, 0, done.stderr)
    for word in 'allocation', 'wait', 'Our own cost', 'self time':
        expect(word not in done.stdout, done.stdout)
    expect('11 calls of 2 functions; most in takes (90.9 %), main (9.1 %).' in done.stdout,
           done.stdout)


@test
def a_program_without_hooks_is_sampled_and_wrong_words_are_refused():
    done, _ = stat('--', program(False))
    expect('allocations' in done.stderr and 'sampled instead' in done.stderr, done.stderr)
    for words in ((), ('--tree', 'true')):
        done, _ = stat(*words)
        expect_equal(done.returncode, 2, done.stderr)
        expect('profrun stat --help' in done.stderr, done.stderr)


if __name__ == '__main__':
    shimtest.main()
