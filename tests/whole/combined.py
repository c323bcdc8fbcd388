#!/usr/bin/env python3
"""combined.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Profilers that run together record the same as each of them alone: all pairs, some
triples, and all at once, in a program with threads, a signal, exceptions, a jump and a
fork.
"""
import glob
import itertools
import json
import os
import re

import shimtest
from shimtest import (add_test, compile, expect, expect_equal, new_directory, run,
                      shim_report)

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')
CALLTREES = ['calltree', 'calltree:exact', 'calltree:counts', 'calltree:by=work/n']
OTHERS = ['trace', 'memory', 'locks', 'exceptions', 'coverage', 'sampling:hz=1000',
          'pchist:hz=1000']
TRIPLES = [
    ('calltree', 'trace', 'memory'),
    ('calltree:exact', 'trace', 'memory'),
    ('calltree:exact', 'memory', 'locks'),
    ('calltree:by=work/n', 'trace', 'memory'),
    ('locks', 'exceptions', 'trace'),
    ('memory', 'locks', 'exceptions'),
    ('calltree:counts', 'memory', 'exceptions'),
    ('trace', 'memory', 'coverage'),
    ('calltree:exact', 'sampling:hz=1000', 'memory'),
]
GROUP = r' ?\[n=.*?\]'

if os.uname().machine != 'x86_64':
    OTHERS = [name for name in OTHERS if name.split(':')[0] not in
              ('coverage', 'sampling', 'pchist')]
    TRIPLES = [names for names in TRIPLES if set(names[1:]) <= set(OTHERS)]


def recorded(names):
    program = compile('combined.cc', optimize='-O1', flags=['-g', '-I', INCLUDE])
    samples_ = '3' if any('sampling' in name for name in names) else '0'
    done = run([program, samples_], new_directory('recording'), ';'.join(names))
    expect_equal((done.status, done.stdout, done.stderr), (3, 'child 4\n', ''),
                 'the program')
    return done.output


def folded(output, *options, groups=''):
    """The folded paths, without @groups.  (Threads that the program did not start
    belong to libraries.)"""
    found = {}
    for line in shim_report('export', 'folded', '--raw', *options,
                            output).splitlines():
        path, number = re.sub(groups, '', line).rsplit(' ', 1)
        if 'main' in path or 'in_thread' in path:
            found[path] = found.get(path, 0) + int(number)
    return found


def allocated(output):
    """libc's allocations for a thread depend on the loaded libraries."""
    return {value: {path: number for path, number in folded(
        output, '--memory', '--value', value, groups=GROUP).items()
        if not re.search(r'(main|run_all\(\)|contend\(void\*\))$', path)}
            for value in ('bytes', 'allocations', 'leaked')}


def waits(output):
    return sorted((lock['name'], lock['waits'], waiter['path'][-1])
                  for lock in json.loads(shim_report(
                      'report', output, '--format', 'json'))['locks']
                  for waiter in lock['waiters'] if lock['name'] == 'lock')


def throws(output):
    found = json.loads(shim_report('export', 'json', output))['throws']
    return json.dumps(found, sort_keys=True)


def lines_reached(output):
    """The counts of the spinning loop are left out."""
    return sorted(line for line in shim_report('export', 'lcov', output).splitlines()
                  if re.match('(DA|FNDA|SF):', line))


def samples(output):
    """Whether the samples are where the time is spent."""
    return 'spin()' in shim_report('export', 'folded', '--samples', '--value',
                                   'samples', output)


def histograms(output):
    return len(glob.glob(output + '/*/*.pchist'))


def ranges(output):
    """The functions whose calls were all timed: their minimum and maximum are known."""
    return sorted(f['name'] for f in json.loads(shim_report(
        'export', 'json', output))['functions'] if f.get('max') is not None)


DATA = {
    'calltree': lambda output: folded(output, '--value', 'calls'),
    'trace': lambda output: folded(output, '--trace', '--value', 'calls',
                                   groups=GROUP),
    'memory': allocated,
    'locks': waits,
    'exceptions': throws,
    'coverage': lines_reached,
    'sampling': samples,
    'pchist': histograms,
}

alone = {}


def data_of(name, output):
    data = DATA[name.split(':')[0]](output)
    if name == 'calltree:exact':
        return data, ranges(output)
    return data


def check(names):
    output = recorded(names)
    for name in names:
        if name not in alone:
            alone[name] = data_of(name, recorded([name]))
            expect(alone[name], '%s alone records nothing' % name)
        expect_equal(data_of(name, output), alone[name], '%s of %s' % (name, names))
    expect_equal(json.loads(shim_report('export', 'json', output)).get('lost', 0), 0,
                 'lost')


for number, (first, second) in enumerate(itertools.combinations(CALLTREES + OTHERS, 2)):
    if first in CALLTREES and second in CALLTREES:
        continue
    # The order of the names does not matter: each name is the first one and the second.
    orders = (first, second), (second, first)
    for pair in orders if shimtest.ALL else orders[number % 2:number % 2 + 1]:
        add_test('%s beside %s' % pair, lambda pair=pair: check(pair))
for names in TRIPLES:
    add_test('%s, %s and %s' % names, lambda names=names: check(names))
    add_test('%s, %s and %s' % names[::-1], lambda names=names[::-1]: check(names))
add_test('all at once', lambda: check(CALLTREES[:1] + OTHERS))

if __name__ == '__main__':
    shimtest.main()
