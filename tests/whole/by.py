#!/usr/bin/env python3
"""by.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Calls of one function grouped by an argument (calltree:by=). tests/programs/ grouped.c
and grouped_cxx.cc print how often they called it with which value.  Also tested: fast
hooks that ask for the arguments of single calls, on which groups depend.
"""
import os
import re
import signal

import shimtest
from shimtest import (BUILDS, add_test, calls_of, compile, expect,
                      expect_equal, expect_truth, json_of, record, run,
                      shim_report, tree_of)

INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')
ARGUMENTS = ['kind', 'colour', 'flag', 'letter', 'text', 'ratio', 'pointer',
             'wide']
CLOCKS = ['', 'exact,', 'counts,']


def fast_hooks_ask_about_single_calls(family, optimize):
    path = compile('asking.c', family, optimize, ['-I', INCLUDE])
    alone = record([path, '1'], 'none')
    # In the handler: handler, chosen, other.
    expect_equal(alone.stdout, 'enters 204 leaves 204 asked 102 right 101 '
                 'nothing 1 others 0\n', 'alone')
    beside = record([path, '2'], 'none')
    expect_equal(beside.stdout, 'enters 204 leaves 204 asked 102 right 101 '
                 'nothing 1 others 103\n', 'beside another profiler')


# --- groups ---

def truth_of(result, argument):
    """{value: calls}, as the program printed it."""
    found = re.findall(r'^by %s (.*) (\d+)$' % argument, result.stdout, re.M)
    return {value: int(calls) for value, calls in found}


def groups_of(about, function, shown=None):
    """{value: calls} of @function, from the report."""
    groups = {}
    for f in about['functions']:
        if not f['group'] or not re.search(function, f['name']):
            continue
        name, value = f['group'].split('=', 1)
        expect(f['name'].endswith('[%s]' % f['group']), f['name'])
        expect(not shown or name == shown, f['group'])
        groups[value] = groups.get(value, 0) + f['calls']
    return groups


def together(about):
    """{function: calls}, all groups added up."""
    calls = {}
    for name, n in calls_of(about).items():
        name = name.split('[')[0]
        calls[name] = calls.get(name, 0) + n
    return calls


def grouped(mode, argument, family, optimize, clock='', profile=None, **more):
    path = compile('grouped.c', family, optimize, ['-Wno-clobbered'
                   if family == 'gcc' else '-Wno-unused'])
    result = record([path, mode], profile or 'calltree:%sby=parse/%s' % (
        clock, argument), **more)
    expect_equal(result.stderr, '', 'stderr')
    return result, json_of(result.output)


def expect_groups(result, about, argument, missing=0):
    """Compares with the truth; up to @missing calls may lack a value."""
    truth = truth_of(result, argument)
    got = groups_of(about, '^parse', argument)
    unknown = got.pop('?', 0)
    expect(truth, result.stdout[-500:])
    if unknown == 0:
        expect_equal(got, truth, 'calls by ' + argument)
    expect(unknown <= missing, '%d calls without a value' % unknown)
    for value, calls in got.items():
        expect(calls <= truth.get(value, 0),
               '%s: %d calls, truth %d' % (value, calls, truth.get(value, 0)))
    expect_equal(sum(got.values()) + unknown, sum(truth.values()), 'calls')
    expect_equal((about['lost'], about['orphans']), (0, 0), 'lost')


def each_value_has_its_calls(family, optimize):
    for argument in ARGUMENTS:
        result, about = grouped('', argument, family, optimize)
        expect_equal(result.status, 0, 'status')
        expect_groups(result, about, argument)


def every_clock(family, optimize):
    for clock in CLOCKS:
        result, about = grouped('', 'kind', family, optimize, clock)
        expect_groups(result, about, 'kind')
        tree = tree_of(result.output)
        call = [path for path in tree if path.endswith(';call')]
        wanted = {'%s;parse[kind=%d]' % (call[0], n)
                  for n in range(7)} | {call[0]}
        direct = {path for path in tree if path.count(';') == call[0].count(
            ';') + 1 and path.startswith(call[0])}
        expect_equal(direct | {call[0]}, wanted, 'callees of call')
        deep = '%s;parse[kind=3];parse[kind=4]' % call[0]
        expect_equal(tree[deep], tree['%s;parse[kind=3]' % call[0]],
                     'recursion')
        expect_equal(tree[deep + ';leaf'], tree[deep], 'leaf')
        expect_truth(result, together(about))


def other_calls_are_as_without(family, optimize):
    result, about = grouped('', 'kind', family, optimize)
    plain, _ = grouped('', 'kind', family, optimize,
                       profile='calltree:counts')
    tree = {}
    for path, calls in tree_of(result.output).items():
        path = re.sub(r'\[kind=\d+\]', '', path)
        tree[path] = tree.get(path, 0) + calls
    expect_equal(tree, tree_of(plain.output), 'tree')


def threads_share_groups(family, optimize):
    result, about = grouped('threads', 'text', family, optimize)
    expect_groups(result, about, 'text')
    names = [f['name'] for f in about['functions'] if f['group']]
    expect_equal(len(names), len(set(names)), 'groups')


def jumps_end_grouped_calls(family, optimize):
    for clock in CLOCKS:
        result, about = grouped('jumps', 'kind', family, optimize, clock)
        expect_groups(result, about, 'kind')
        open_ = sum(f['open'] for f in about['functions'])
        expect_equal(open_, 0, 'open calls')


def a_handler_loses_no_call(family, optimize):
    result, about = grouped('signals', 'kind', family, optimize)
    expect_groups(result, about, 'kind', missing=10 ** 9)
    expect_truth(result, together(about))


def forked_children_go_on(family, optimize):
    result, about = grouped('forks', 'kind', family, optimize)
    expect_groups(result, about, 'kind')
    expect_equal(len(about['processes']), 2, 'processes')


def a_kill_loses_nothing(family, optimize):
    for clock in CLOCKS:
        result, about = grouped('killed', 'kind', family, optimize, clock)
        expect_equal(result.status, -signal.SIGKILL, 'status')
        expect_groups(result, about, 'kind')


def too_many_values_share_the_last_group(family, optimize):
    result, about = grouped('many', 'kind', family, optimize)
    truth = truth_of(result, 'kind')
    got = groups_of(about, '^parse')
    rest = got.pop('...')
    expect_equal(len(got), 256, 'groups')
    for value, calls in got.items():
        expect_equal(calls, truth[value], value)
    expect_equal(sum(got.values()) + rest, sum(truth.values()), 'calls')
    expect('more values than the limit of groups' in
           shim_report('info', result.output), 'log')
    expect('further values than there may be groups (by-limit=N): '
           'parse[kind=...]\n' in shim_report('report', result.output),
           'report')
    few, about = grouped('many', 'kind', family, optimize,
                         profile='calltree:by=parse/kind,by-limit=3')
    got = groups_of(about, '^parse')
    expect_equal(len(got), 4, 'groups')
    expect_equal(sum(got.values()), sum(truth.values()), 'calls')


def by_number_and_several(family, optimize):
    result, about = grouped('', '', family, optimize,
                            profile='calltree:counts,by=parse/1,by=leaf/x')
    expect_equal(groups_of(about, '^parse', '1'), truth_of(result, 'kind'),
                 'parse')
    expect_equal(groups_of(about, '^leaf', 'x'), truth_of(result, 'kind'),
                 'leaf')


def what_there_is_not_is_said(family, optimize):
    for by, line in (
            ('nothing/kind', 'no function nothing'),
            ('parse/nothing', 'parse has no parameter nothing'),
            ('parse/9', 'parse has no parameter 9'),
            ('parse/nothing,by=parse/kind', 'parse has no parameter nothing')):
        result, about = grouped('', '', family, optimize,
                                profile='calltree:by=' + by)
        expect_equal(result.status, 0, 'status')
        log = shim_report('info', result.output)
        expect('by=%s: %s' % (by.split(',')[0], line) in log, log)
        expect(',' not in by or 'is grouped by another argument' in log, log)
        expect_equal(groups_of(about, '.'), {}, 'groups')
        expect_truth(result, calls_of(about))


def without_debug_information_nothing_is_grouped(family, optimize):
    path = compile('grouped.c', family, optimize, ['-g0', '-w'],
                   name='grouped_g0')
    result = record([path], 'calltree:by=parse/kind')
    about = json_of(result.output)
    expect('compile with -g' in shim_report('info', result.output), 'log')
    expect_equal(groups_of(about, '.'), {}, 'groups')
    expect_truth(result, calls_of(about))


def no_value_is_wrong(family, optimize):
    for argument in ('kind', 'ratio'):
        result, about = grouped('', '', family, optimize,
                                profile='calltree:by=ignoring/' + argument)
        truth = truth_of(result, argument)
        got = groups_of(about, '^ignoring', argument)
        expect_equal(sum(got.values()), sum(truth.values()), 'calls')
        unknown = got.pop('?', 0)
        print('# %s: %d calls, %d without a value' % (
            argument, sum(truth.values()), unknown))
        for value, calls in got.items():
            expect(calls <= truth.get(value, 0), '%s: %d calls, truth %s' % (
                value, calls, truth.get(value)))


def what_cannot_be_had_is_a_group(family, optimize):
    result, about = grouped('', '', family, optimize,
                            profile='calltree:by=inlined/kind')
    truth = truth_of(result, 'kind')
    expect_equal(groups_of(about, '^inlined'), {'?': sum(truth.values())},
                 'groups')


def beside_a_filter(family, optimize):
    result, about = grouped('', 'kind', family, optimize,
                            SHIM_FILTER='all,-M:leaf')
    expect_groups(result, about, 'kind')
    expect_equal(calls_of(about).get('leaf', 0), 0, 'leaf')


def what_asking_takes_is_nobodys_time(family, optimize):
    """The first inquiry reads debug information, for 0.1 ms or more.  The least
    of several: another process may take a function's processor for longer."""
    for clock in ('', 'exact,'):
        times = []
        for _ in range(5):
            result, about = grouped('', 'kind', family, optimize, clock)
            [call] = [f for f in about['functions'] if f['name'] == 'call']
            times.append((call['self_ns'], call['self_raw_ns']))
        self, raw = min(times)
        print('# %s self and raw, us: %s' % (
            clock, [(a // 1000, b // 1000) for a, b in times]))
        expect(clock == '' or raw > 100000, 'raw: %d' % raw)
        expect(self < raw / 3 or self < 1000000, '%d of %d' % (self, raw))


def wrong_options_are_refused(family, optimize):
    profrun = os.path.join(os.environ.get('SHIM_BUILD', '.'), 'profrun')
    program = compile('grouped.c', family, optimize, [
        '-Wno-clobbered'])
    for wrong in ('by=parse', 'by=/kind', 'by=parse/', 'by=parse/0', 'by=',
                  'by=parse/kind,', 'by=parse/kind,wrong', 'by-limit=0',
                  'by-limit=8001', 'by-limit=x', 'by=%s/kind' % ('x' * 128),
                  ','.join('by=f%d/x' % n for n in range(9))):
        done = run([profrun, 'run', '-p', 'calltree:' + wrong, program])
        expect(done.status not in (0, 1) and 'calltree takes ' in
               done.stderr and not done.stdout, wrong + ': ' + done.stderr)
        result = record([program], 'calltree:' + wrong)
        expect_equal(result.status, 0, 'status')
        expect(not [name for _, _, names in os.walk(result.output)
                    for name in names if name.endswith('.calltree')], wrong)


def libraries_come_and_go(family, optimize):
    plugins = [compile('plugin.c', family, optimize, name='lib%s.so' % name,
                       flags=['-DPLUGIN=' + name, '-fPIC', '-shared'])
               for name in ('alpha', 'beta')]
    host = compile('plugin_host.c', family, optimize, ['-ldl'])
    rounds = 20
    result = record([host, str(rounds)] + plugins,
                    'calltree:by=alpha_twice/n,by=beta_twice/n')
    expect_equal((result.status, result.stderr), (0, ''), 'status, stderr')
    about = json_of(result.output)
    for name in ('alpha', 'beta'):
        # (An optimizer need not call the function twice, nor keep its argument.)
        groups = groups_of(about, name + '_twice', 'n')
        if optimize == '-O0':
            expect_equal(groups, {'1': 2 * rounds, '2': 2 * rounds}, name)
        expect_equal(sum(groups.values()), 4 * rounds, name)


def other_parameters_may_come_to_the_same_address(family, optimize):
    libraries = [compile('grouped_library.c', family, optimize,
                         ['-fPIC', '-shared', *more], 'lib%s.so' % name)
                 for name, more in (('first', []), ('other', ['-DSWAPPED']))]
    host = compile('grouped_opens.c', family, optimize, ['-ldl'])
    # There are entries for 256 functions that are not unloaded.
    rounds = 150 if (family, optimize) == ('gcc', '-O2') else 10
    result = record([host] + libraries + [str(rounds)],
                    'calltree:by=library_call/n')
    expect_equal((result.status, result.stderr), (0, ''), 'status, stderr')
    expect_equal(groups_of(json_of(result.output), 'library_call', 'n'),
                 {'7': rounds, '8': rounds}, 'groups')


def beside_a_module(family, optimize):
    module = compile(os.path.join('..', 'modules', 'elt3_fast.c'), 'gcc',
                     '-O2', ['-I', INCLUDE, '-shared', '-fPIC'],
                     name='libshim-profiler-elt3_fast.so', instrument=False)
    for clock in CLOCKS:
        written = module + '.counts'
        result, about = grouped(
            '', 'kind', family, optimize, profile='calltree:%sby=parse/kind;'
            '%s:%s' % (clock, module, written))
        calls = sum(calls_of(about).values())
        with open(written) as file:
            expect_equal(file.read(), 'enters %d\nleaves %d\n' % (
                calls, calls), 'what the module counted')
        os.remove(written)
        expect_groups(result, about, 'kind')
        expect_truth(result, together(about))


def calls_may_be_off_meanwhile(family, optimize):
    for clock in CLOCKS:
        result, about = grouped('pauses', 'kind', family, optimize, clock)
        expect_groups(result, about, 'kind')
        expect_truth(result, together(about))
        expect_equal(sum(f['open'] for f in about['functions']), 0, 'open')


def members_overloads_and_exceptions(family, optimize):
    path = compile('grouped_cxx.cc', family, optimize)
    for by, function, argument, name in (
            ('shapes::Point::move/by', 'move', 'by', 'move'),
            ('Point::move/2', 'move', '2', 'move'),
            ('move/this', 'move', 'this', 'this'),
            ('overloaded/kind', 'overloaded', 'kind', 'overloaded')):
        result = record([path], 'calltree:by=' + by)
        expect_equal(result.status, 0, 'status')
        about = json_of(result.output)
        expect_equal(groups_of(about, function, argument),
                     truth_of(result, name), by)
        expect_equal((about['lost'], about['orphans'],
                      sum(f['open'] for f in about['functions'])), (0, 0, 0),
                     'lost')


def every_format_shows_groups(family, optimize):
    result, about = grouped('', 'text', family, optimize)
    output = result.output
    # On a busy machine a single tick may have all the time.
    for arguments in (['report', '--tree', '--min-percent', '0'],
                      ['report', '--callers', 'parse'], ['report', '--callees', 'call'],
                      ['report', '--format', 'csv'], ['export', 'json'],
                      ['export', 'folded'], ['report', '--limit', '0']):
        text = shim_report(*arguments, output)
        expect(re.search(r'parse\[text=\\?"+SELECT 1\\?"+\]', text),
               '%s:\n%s' % (arguments, text[:2000]))
    callers = shim_report('report', '--callers', 'parse', output)
    expect('callers of parse in its 4 groups' in callers, callers)
    expect(re.search(r'  call \[', callers), callers)


# Tests that do not repeat for every compiler.
ONCE = (other_calls_are_as_without, by_number_and_several,
        what_asking_takes_is_nobodys_time, wrong_options_are_refused,
        what_there_is_not_is_said, what_cannot_be_had_is_a_group,
        without_debug_information_nothing_is_grouped, beside_a_filter,
        too_many_values_share_the_last_group, every_format_shows_groups)

for family, optimize in BUILDS:
    for claim in (fast_hooks_ask_about_single_calls, no_value_is_wrong,
                  each_value_has_its_calls,
                  every_clock, threads_share_groups, jumps_end_grouped_calls,
                  a_handler_loses_no_call, forked_children_go_on,
                  a_kill_loses_nothing, libraries_come_and_go,
                  other_parameters_may_come_to_the_same_address, beside_a_module,
                  calls_may_be_off_meanwhile,
                  members_overloads_and_exceptions):
        add_test('%s_%s_%s' % (claim.__name__, family, optimize),
                 lambda c=claim, f=family, o=optimize: c(f, o))
for claim in ONCE:
    add_test(claim.__name__, lambda c=claim: c('gcc', '-O2'))

if __name__ == '__main__':
    shimtest.main()
