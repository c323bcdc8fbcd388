"""Requested data are recorded, or the run is refused before it starts; a setting that
cannot be followed gives a message."""
import glob
import itertools
import os
import re
import shutil
import subprocess

import shimtest
from installed import installed, load, log_of
from shimtest import (calls_of, compile, environment, expect, expect_equal,
                      json_of, new_directory, run, test)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')

# The modes of calltree and the other profilers: no two of calltree together.
CALLTREES = ['calltree', 'calltree:exact', 'calltree:counts',
             'calltree:by=work/n']
OTHERS = ['trace', 'memory', 'locks', 'exceptions', 'coverage', 'sampling',
          'pchist']


def everything():
    return compile('everything.cc', optimize='-O1')


def profrun(*words, **more):
    done = subprocess.run(
        [PROFRUN, *words], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=120, cwd=new_directory('run'),
        env=environment(**more))
    done.directory = None
    return done


# --- profilers that are recorded together ---

def files_of(output):
    return {name.split('.', 1)[1] for name in
            map(os.path.basename, glob.glob(output + '/*/*')) if '.' in name}


def lacking(output, names):
    """Those of @names that have no data in the recording."""
    files, told = files_of(output), None
    lacks = []
    for name in names:
        kind = name.split(':')[0]
        if kind in ('calltree', 'trace', 'coverage', 'sampling', 'pchist'):
            found = kind in files
        else:
            told = told or json_of(output)
            found = told.get({'memory': 'memory', 'locks': 'waiting',
                              'exceptions': 'throws'}[kind])
        if not found:
            lacks.append(name)
    return lacks


def combinations():
    for calltree in [None] + CALLTREES:
        head = [calltree] if calltree else []
        for size in (0, 1, 2, len(OTHERS)):
            for others in itertools.combinations(OTHERS, size):
                names = head + list(others)
                # Of pairs: those with a profiler that shares the nodes of calls.
                if names and (size < 2 or size == len(OTHERS) or
                              {'memory', 'trace'} & set(others)):
                    yield names


@test
def names_in_messages_do_nothing_to_a_terminal():
    """Sequences that begin with ESC or C1, marks that reorder text, half a character."""
    for name, shown in (('a\x1b[31m', 'a\\x1b[31m'), ('b\x9b31m', 'b\\xc2\\x9b31m'),
                        ('c\u202eexe', 'c\\xe2\\x80\\xaeexe'),
                        ('d\u2066', 'd\\xe2\\x81\\xa6'), (b'e\xe2\x80', 'e\\xe2\\x80'),
                        ('gr\u00fc\u00df', 'gr\u00fc\u00df')):
        for words in (['--', name], ['-p', name, 'true'], ['doctor', name]):
            done = profrun(*words)
            expect(shown in done.stdout + done.stderr, '%s: %s' % (words, done))
            expect(not re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]',
                                 done.stdout + done.stderr), '%s: %s' % (words, done))


@test
def lines_of_the_library_do_nothing_to_a_terminal():
    name = '/nowhere/a\x1b[31m\x9b\u202eb\nshim: all is well'
    for verbose in '0', '1':
        done = run(['/bin/true'], LD_PRELOAD=shimtest.library, SHIM_OUTPUT=name,
                   SHIM_VERBOSE=verbose)
        lines = done.stderr.splitlines()
        expect_equal((len(lines), done.stderr[-1:]), (1, '\n'), lines)
        expect('/nowhere' in lines[0] and not re.search(
            '[\x00-\x1f\x7f-\x9f\u202e]', lines[0]), lines)


@test
def too_few_files_are_named_as_the_reason():
    """The library could write files that the report cannot open."""
    done = subprocess.run(
        ['sh', '-c', 'ulimit -n 5; exec "$@"', 'sh', PROFRUN, '-o',
         os.path.join(new_directory('recording'), 'it'), everything()],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        cwd=new_directory('run'), env=environment())
    expect_equal((done.returncode, done.stdout), (3, 'caught\n'), done.stderr)
    expect('too many open files (raise the limit, ulimit -n' in done.stderr and
           '-finstrument-functions' not in done.stderr and
           'no call was recorded' not in done.stderr, done.stderr)


@test
def every_combination_is_recorded():
    wrong = []
    for names in shimtest.some(combinations()):
        output = os.path.join(new_directory('recording'), 'it')
        words = [w for name in names for w in ('-p', name)]
        done = profrun('record', '-q', '-o', output, *words, everything())
        if done.returncode != 3 or done.stdout != 'caught\n':
            wrong.append('%s: status %d: %s' % (names, done.returncode,
                                                done.stderr))
        elif lacking(output, names):
            wrong.append('%s: nothing of %s' % (names,
                                                lacking(output, names)))
    expect(not wrong, '\n'.join(wrong))


@test
def one_profiler_in_two_ways_is_refused():
    for names in (('calltree', 'calltree:counts'),
                  ('sampling:hz=100', 'trace', 'sampling'),
                  ('memory', 'memory:unwind')):
        words = [w for name in names for w in ('-p', name)]
        done = profrun(*words, everything())
        expect_equal((done.returncode, done.stdout), (2, ''), names)
        expect("'%s' and '%s' cannot be combined" % (
            names[0], names[-1]) in done.stderr, done.stderr)
    done = profrun('-q', '-p', 'calltree', '-p', 'calltree', everything())
    expect_equal(done.returncode, 3, 'the same twice')


@test
def arguments_of_calltree_that_exclude_each_other_are_refused():
    for item, why in (
            ('calltree:exact,counts', 'cannot be recorded: counts times no call'),
            ('calltree:counts,by=f/1,calibrate', 'cannot be recorded: counts times no call'),
            ('calltree:counts,clock=cpu', 'cannot be recorded: counts times no call'),
            ('calltree:exact,budget=10', 'cannot be recorded with a budget: it times every '
                                         'call'),
            ('calltree:by=exact/1,budget=10', 'cannot be recorded with a budget: it looks at '
                                              'every call')):
        done = profrun('-p', item, everything())
        expect_equal((done.returncode, done.stdout), (2, ''), item)
        expect(item + ' ' + why in done.stderr, done.stderr)
    # The names of functions and parameters are no such arguments.
    done = profrun('-q', '-p', 'calltree:by=exact/counts,clock=cpu', everything())
    expect_equal(done.returncode, 3, done.stderr)


# Each kind of value, and an error in it.
BAD_VALUES = [
    ('calltree:counts=1', "'counts=1': calltree takes counts"),
    ('calltree:by=f', "'by=f': calltree takes by=FUNCTION/ARGUMENT; a name has"),
    ('calltree:by=f/0', "'by=f/0': calltree takes"),
    ('calltree:by-limit=8001', "'by-limit=8001': calltree takes by-limit=1...8000"),
    ('calltree:' + ','.join(['by=f/%d' % (i + 1) for i in range(9)]),
     "'by=f/9' is one too many: calltree takes by=FUNCTION/ARGUMENT at most 8 times"),
    ('coverage:label=a-b', "'label=a-b': coverage takes label=NAME of at most 200"),
    ('exceptions:unwound', "'unwound': exceptions takes unwind"),
    ('locks:', None),
    ('memory:period=0', "'period=0': memory takes period=SIZE, in bytes"),
    ('memory:period=1025G', "'period=1025G': memory takes period=SIZE"),
    ('memory:seed=12345678901234567890', "'seed=12345678901234567890': memory"),
    ('memory:leaks=1,,unwind', "'': memory takes period=SIZE, seed=N, leaks=MS"),
    ('memory:snapshots=86400001', 'takes snapshots=1...86400000'),
    ('none:x', "'x': none takes no arguments"),
    ('pchist:hz=20001', "'hz=20001': pchist takes hz=1...20000"),
    ('sampling:clock=cpu|wall', 'sampling takes clock=cpu|wall|thread'),
    ('sampling:clock=', 'sampling takes clock=cpu|wall|thread'),
    ('trace:ring=1023K', "'ring=1023K': trace takes ring=1M...1024G"),
    ('trace:min=10', "'min=10': trace takes min=TIME, from 1ns to 999999s"),
    ('trace:depth=0', "'depth=0': trace takes depth=N"),
    ('trace:every=f/0', "'every=f/0': trace takes every=FUNCTION/N"),
    ('trace:trigger=' + 'f' * 128, 'trace takes trigger=FUNCTION; a name has at most 127'),
    ('trace:signal=KILL', "'signal=KILL': trace takes signal=SIGNAL, a name or a number"),
    ('trace:off=1', "'off=1': trace takes off"),
]


@test
def a_bad_value_is_reported_with_the_valid_ones():
    """profrun reports the value before the program starts; without profrun the profiler
    does."""
    for profile, wanted in BAD_VALUES:
        done = profrun('record', '-q', '-o', new_directory('recording') + '/it',
                       '-p', profile, everything())
        output = os.path.join(new_directory('recording'), 'it')
        result = run([everything()], SHIM_OUTPUT=output, SHIM_PROFILE=profile,
                     LD_PRELOAD=shimtest.library)
        expect_equal((result.status, result.stdout), (3, 'caught\n'), profile)
        if wanted is None:
            expect_equal((done.returncode, done.stderr, result.stderr), (3, '', ''),
                         profile)
            continue
        expect_equal((done.returncode, done.stdout), (2, ''), profile)
        expect(wanted in done.stderr, '%s: %s' % (profile, done.stderr))
        expect(wanted in result.stderr, '%s: %s' % (profile, result.stderr))


@test
def help_and_completion_name_each_option():
    help = profrun('--help').stdout + profrun('run', '--help').stdout
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                         'hooks', 'options', 'options.def')
    with open(table) as file:
        options = re.findall(r'^OPTION\((\w+), \w+, "([a-z-]+)", (\w+)', file.read(),
                             re.M)
    expect(len(options) > 20, options)
    for profiler, key, kind in options:
        expect(re.search(r'\b%s\b' % key, help), '%s:%s' % (profiler, key))


# --- names ---

@test
def an_unknown_name_suggests_the_nearest():
    for profile, meant in (('calltre', "mean 'calltree'"),
                           ('tarce', "mean 'trace'"),
                           ('samplng:hz=10', "mean 'sampling'"),
                           ('calltree:exat', "mean 'exact'"),
                           ('trace:rnig=4M', "mean 'ring='"),
                           ('nowhere', 'there are calltree, ')):
        for how, more in ((['-p', profile], {}), ([], {'SHIM_PROFILE':
                                                       profile})):
            for verb in ('run', 'record'):
                done = profrun(verb, *how, everything(), **more)
                expect_equal((done.returncode, done.stdout), (2, ''), profile)
                expect(meant in done.stderr, done.stderr)
    done = profrun('-p', 'none', '-p', 'calltre', everything())
    expect_equal((done.returncode, done.stdout), (2, ''), 'beside another')


@test
def near_misses_of_the_command_line_get_an_answer():
    program = everything()
    for words, said in (
            (('-p', 'calltree,memory', program),
             'for several, repeat the option: -p calltree -p memory'),
            (('--budjet', '10', program), "did you mean '--budget'?"),
            (('--quiet=3', program), '--quiet=3: takes no argument'),
            (('-x', program), "unknown option '-x'"),
            (('-o',), '-o: needs an argument'),
            (('-p', program),
             "which program?  '%s' was taken for a profiler" % program),
            (('report', '--callrs', 'f'), "did you mean '--callers'?"),
            (('report', '-x'), "unknown option '-x'"),
            (('report', '--sort', 'totl'), 'did you mean total?'),
            (('report', '--sort', 'color'), 'there are self, total, calls'),
            (('export', 'foldd'), 'did you mean folded?'),
            (('diff', 'a', 'b', '--fail-above', 'x'), 'not a percentage')):
        done = profrun(*words)
        expect_equal((done.returncode, done.stdout), (2, ''), words)
        expect(said in done.stderr, '%s: %s' % (words, done.stderr))
    done = profrun('report', program)
    expect_equal(done.returncode, 1, 'a program as a recording')
    expect('%s: is a program, not a recording; profrun %s records it'
           % (program, program) in done.stderr, done.stderr)
    done = profrun('report', __file__)
    expect('is a file, not the directory of a recording' in done.stderr,
           done.stderr)


@test
def a_program_of_this_directory_is_suggested():
    directory = new_directory('here')
    shutil.copy(everything(), directory + '/unusual')
    done = subprocess.run([PROFRUN, 'unusual'], cwd=directory, text=True,
                          capture_output=True, env=environment())
    expect_equal(done.returncode, 127, done.stderr)
    expect('unusual: not found in PATH; did you mean ./unusual?'
           in done.stderr, done.stderr)


@test
def a_list_that_is_taken_for_a_program_is_told():
    done = profrun('record', '--libcalls', 'M:malloc', everything())
    expect_equal(done.returncode, 127, done.stderr)
    expect("M:malloc: not found; a list of --libcalls is part of its word: "
           "--libcalls='M:malloc'" in done.stderr, done.stderr)


@test
def an_unknown_verb_suggests_one():
    # A directory that may not be searched would make it 126, as env(1) does.
    path = ':'.join(directory for directory in os.environ['PATH'].split(':')
                    if os.access(directory, os.X_OK))
    for verb, meant in (('reprot', 'report'), ('exprot', 'export'),
                        ('recrod', 'record')):
        done = profrun(verb, PATH=path)
        expect_equal(done.returncode, 127, verb)
        expect('%s: not found; did you mean `profrun %s`?' % (verb, meant)
               in done.stderr, done.stderr)
    done = profrun('predict', PATH=path)
    expect_equal(done.stderr, 'profrun: predict: not found\n', 'another word')
    # A name that is a verb elsewhere can be a program.
    directory = new_directory('bin')
    os.symlink('/bin/true', directory + '/reprot')
    done = profrun('-q', '-p', 'none', 'reprot',
                   PATH=directory + ':' + os.environ['PATH'])
    expect_equal((done.returncode, done.stderr), (0, ''), 'a program')


@test
def a_module_that_cannot_be_loaded_is_refused_with_the_reason():
    directory = new_directory('modules')
    compile_text = installed().compile_text
    compile_text('int nothing;', 'plain', directory)
    compile_text('const unsigned shim_profiler_module_api = 0;\n'
                 'int shim_profiler_init_old(void) { return 0; }', 'old',
                 directory)
    compile_text('extern int missing; int *p = &missing;', 'undefined',
                 directory)
    for name, why in (('plain', 'not built with SHIM_PROFILER_MODULE'),
                      ('old', 'built for an older shim'),
                      ('undefined', 'undefined symbol: missing'),
                      ('./none.so', 'there is no such file')):
        done = profrun('-p', name, everything(), SHIM_MODULE_PATH=directory)
        expect_equal((done.returncode, done.stdout), (2, ''), name)
        expect(why in done.stderr, done.stderr)


@test
def a_module_may_lack_what_the_program_has():
    directory = installed().compile_text('''
        #include <shim/profiler.h>
        extern int of_the_program;
        SHIM_PROFILER_MODULE(guest)
        {
            return of_the_program == 5 ? SHIM_OK : SHIM_E_FAIL;
        }''', 'guest')
    host = os.path.join(directory, 'host')
    with open(host + '.c', 'w') as file:
        file.write('int of_the_program = 5; int main(void) { return 4; }\n')
    subprocess.run(['gcc', '-rdynamic', host + '.c', '-o', host], check=True)
    done = profrun('-p', 'guest', host, SHIM_MODULE_PATH=directory)
    expect_equal(done.returncode, 4, done.stderr)
    expect('not started' not in done.stderr, done.stderr)


@test
def profrun_finds_its_library_in_a_directory_with_a_blank():
    directory = os.path.join(new_directory('with'), 'a blank and \xe4')
    shutil.copytree(os.path.dirname(installed().library), directory)
    library = os.path.join(directory, os.path.basename(installed().library))
    program = everything()
    for path in (None, '/nowhere'):
        more = {'LD_LIBRARY_PATH': path} if path else {}
        output = os.path.join(new_directory('recording'), 'it')
        done = profrun('record', '-q', '-o', output, program,
                       SHIM_LIBRARY=library, **more)
        expect_equal((done.returncode, done.stdout, done.stderr),
                     (3, 'caught\n', ''), path)
        expect_equal(calls_of(json_of(output)).get('main'), 1, path)
        # With everything the suggestion needs beside it, and for modules as well.
        done = profrun('-p', 'calltre', program, SHIM_LIBRARY=library, **more)
        expect("was not found" in done.stderr, done.stderr)
        done = profrun('doctor', program, SHIM_LIBRARY=library, **more)
        expect('a probe was recorded' in done.stdout, done.stdout)
    colon = directory + ':x'
    os.rename(directory, colon)
    done = profrun(program, SHIM_LIBRARY=os.path.join(
        colon, os.path.basename(library)))
    expect('colon' in done.stderr, done.stderr)


# --- without profrun ---

def alone(profile='calltree:counts', **more):
    """Runs the program with plain LD_PRELOAD; returns stderr and the log."""
    output = os.path.join(new_directory('recording'), 'it')
    result = run([everything()], SHIM_OUTPUT=output, SHIM_PROFILE=profile,
                 LD_PRELOAD=shimtest.library, **more)
    expect_equal((result.status, result.stdout), (3, 'caught\n'), profile)
    result.output = output
    return result


@test
def without_profrun_an_ignored_setting_is_reported_once():
    expect_equal(alone().stderr, '', 'nothing to say')
    for profile, more, line in (
            ('calltre;calltree', {}, "'calltre' was not found"),
            ('calltree;sampling:hertz=3', {}, "'hertz=3': sampling takes hz="),
            ('calltree;sampling:hz=0', {}, "'hz=0': sampling takes hz=1...20000"),
            ('calltree;calltree:counts', {}, "'calltree:counts': not beside"),
            ('calltree', {'SHIM_FILTER': 'M:f,Q:x'}, "'Q:x' is not an item"),
            ('calltree', {'SHIM_FILTER': '@/no/file'}, '/no/file: no such'),
            ('calltree', {'SHIM_PROFLIE': 'x'}, 'SHIM_PROFLIE is not a setting'),
            ('calltree', {'SHIM_DIR': 'a/b'}, 'SHIM_DIR is no absolute path'),
            ('calltree', {'SHIM_MODULE_PATH': 'a', 'SHIM_PROFILE': 'none'},
             None)):
        more.setdefault('SHIM_PROFILE', profile)
        output = os.path.join(new_directory('recording'), 'it')
        result = run([everything()], SHIM_OUTPUT=output,
                     LD_PRELOAD=shimtest.library, **more)
        expect_equal((result.status, result.stdout), (3, 'caught\n'), more)
        if line is None:
            expect_equal(result.stderr, '', more)
            continue
        expect(len(re.findall('^shim: .*' + re.escape(line), result.stderr,
                              re.M)) == 1, result.stderr)
        expect_equal(result.stderr.count('\n'), 1, result.stderr)
        expect(line in log_of(output), log_of(output))


@test
def with_profrun_the_program_s_stderr_has_nothing_of_ours():
    result = load('calltree:counts;calltre', [everything()])
    expect_equal((result.status, result.stderr), (3, ''), 'with SHIM_DIR')
    expect("'calltre' was not found" in log_of(result.output), 'the log')


@test
def record_reports_a_module_that_does_not_start():
    directory = installed().compile_text('''
        #include <shim/profiler.h>
        SHIM_PROFILER_MODULE(unwilling) { return SHIM_E_FAIL; }''',
        'unwilling')
    for words, lines in ((['record'], 1), (['record', '-q'], 0),
                         (['run', '--no-report'], 1)):
        done = profrun(*words, '-p', 'calltree', '-p', 'unwilling',
                       everything(), SHIM_MODULE_PATH=directory)
        expect_equal(done.returncode, 3, words)
        expect_equal(done.stderr.count("'unwilling' was not started"), lines,
                     done.stderr)


@test
def only_the_program_itself_says_why_it_cannot_record():
    """What the processes that it starts print is its output."""
    code = """
import os
os.rename(os.environ['SHIM_DIR'], os.environ['SHIM_DIR'] + '.away')
os.system('echo one >&2')
os.popen('echo two >&2').close()"""
    for verb in 'run', 'record':
        done = profrun(verb, '-q', '-p', 'calltree', 'python3', '-c', code)
        expect_equal(sorted(line for line in done.stderr.splitlines()
                            if not line.startswith('profrun: ')), ['one', 'two'], verb)
    for who, lines in ('$$', 1), ('1$$', 0), ('', 1):
        result = run(['sh', '-c', 'SHIM_DIR=/proc/nowhere SHIM_SPEAK=%s LD_PRELOAD="$0" '
                      'exec "$1"' % who, shimtest.library, everything()])
        expect_equal((result.status, result.stdout), (3, 'caught\n'), who)
        expect_equal((result.stderr.count('cannot make the recording'),
                      result.stderr.count('\n')), (lines, lines), result.stderr)


# --- filters ---

def filtered(*words, **more):
    output = os.path.join(new_directory('recording'), 'it')
    done = profrun('record', '-q', '-p', 'calltree:counts', '-o', output,
                   *words, everything(), **more)
    said = done.stderr
    expect_equal((done.returncode, said), (3, ''), words)
    return sorted(calls_of(json_of(output)))


def write(text):
    path = os.path.join(new_directory('list'), 'of items')
    with open(path, 'w') as file:
        file.write(text)
    return path


WANTED = ['allocate()', 'main']


@test
def a_filter_has_as_many_items_as_one_likes():
    many = ','.join('M:nothing_of_this_name_%d' % i for i in range(3000))
    # Just below the longest variable that the system accepts.
    few = ','.join('M:nothing%d' % i for i in range(7000))
    for text in (many, few):
        text += ',M:main,M:allocate'
        expect_equal(filtered('-F', text), WANTED, 'an option')
        expect_equal(filtered(SHIM_FILTER=text), WANTED, 'a variable')
        result = alone(SHIM_FILTER=text)
        expect_equal(result.stderr, '', 'preloaded alone')
        expect_equal(sorted(calls_of(json_of(result.output))), WANTED,
                     'preloaded alone')
    expect_equal(filtered('-F', many, '-F', many, '-F', 'M:main,M:allocate'),
                 WANTED, 'options')


@test
def handlers_that_come_while_a_filter_decides_are_recorded():
    program = compile('filtered_storm.c')
    for profile in ('calltree:counts', 'trace') * 3:
        result = shimtest.record([program], profile, SHIM_FILTER='all,-M:never')
        calls = calls_of(json_of(result.output))
        expect_equal({name: calls.get(name, 0) for name in ('handler', 'inner')},
                     result.truth(), profile)
        expect_equal(sum(n for name, n in calls.items() if name.startswith('once_')),
                     300, profile)


@test
def a_filter_may_be_in_a_file():
    path = write('# what is wanted\n'
                 'M:main, M:allocate   # two\n'
                 '\n\t M:compute\r\n'
                 'F:not#a.comment\n'
                 '-M:compute')
    expect_equal(filtered('-F', '@' + path), WANTED, '-F @FILE')
    expect_equal(filtered('-F', '@' + path, '-F', '-M:main'),
                 ['allocate()'], 'and more')
    expect_equal(filtered(SHIM_FILTER='@' + path), WANTED, 'SHIM_FILTER=@FILE')
    result = alone(SHIM_FILTER='@' + path)
    expect_equal(sorted(calls_of(json_of(result.output))), WANTED,
                 'preloaded alone')
    large = write(''.join('M:nothing%d\n' % i for i in range(50000)) +
                  'M:main\nM:allocate\n')
    expect_equal(filtered('-F', '@' + large), WANTED, 'a long list')
    result = alone(SHIM_FILTER='@' + large)
    expect_equal(sorted(calls_of(json_of(result.output))), WANTED,
                 'a long list, preloaded alone')


@test
def a_file_of_items_that_cannot_be_read_is_refused():
    for text, why in (('M:a\nM:b, Q:z\n', r":2: 'Q:z' is not an item"),
                      ('# nothing\n\n', ' has no items'),
                      ('M:a\0b\n', ':1: not a line of text'), (None, ': No such')):
        path = write(text) if text else '/no/such/file'
        done = profrun('-F', '@' + path, everything())
        expect_equal((done.returncode, done.stdout), (2, ''), text)
        expect(re.search('--filter: ' + re.escape(path) + why, done.stderr),
               done.stderr)
    for path in (write('# nothing\n'), os.path.dirname(write(''))):
        result = alone(SHIM_FILTER='@' + path)
        expect(re.search('^shim: --filter: all functions are recorded: .*',
                         result.stderr), result.stderr)


def unknown_in(words):
    output = os.path.join(new_directory('recording'), 'it')
    profrun('record', '-q', '-o', output, '-F', words, everything())
    return [l.split('named ')[1] for l in
            shimtest.shim_report('report', output).splitlines()
            if 'no object was loaded' in l]


@test
def a_filter_names_objects_that_are_there():
    for words in ('all', 'program', 'all,-libc.so', 'all,-libc', '-lib*.6, program',
                  'M:main,-M:nothing', 'everything', 'none,every*ng',
                  '??ery*i*,all'):
        expect_equal(unknown_in(words), [], words)
    line, = unknown_in('all,-main')
    expect_equal(line, "'main': --filter leaves nothing out and lets nothing through "
                 'by that (a function is M:main)', 'a function')
    line, = unknown_in('all,-a, b*,-c*x , d?,M:e')
    expect(line.startswith("'a', 'b*', 'c*x' and 1 more: "), line)


def unmatched_in(words, program=None, status=0):
    """What the report says of items that have matched no function."""
    output = os.path.join(new_directory('recording'), 'it')
    done = profrun('record', '-o', output, '-F', words,
                   *(program or [compile('filtered.cc')]))
    expect_equal(done.returncode, status, 'status')
    lines = re.findall('^  no function was called that --filter names by (.*)$',
                       shimtest.shim_report('report', output), re.M)
    expect(len(lines) <= 1, lines)
    return lines[0] if lines else None


@test
def items_that_match_no_function_that_was_called_are_named():
    for words in ('all', 'M:main', 'N:space', 'T:Class', 'N:space,T:Class,M:main,all',
                  'M:m*,-M:main,all', 'all,-M:_Z8deliverdi', 'F:filtered.cc',
                  'all,-F:*.cc,M:in_child', '-M:in_parent', '-M:deliverd',
                  ', all ,, M:in_parent'):
        expect_equal(unmatched_in(words), None, words)
    expect_equal(unmatched_in('all,-M:nothing'), "'M:nothing'", 'a name')
    expect_equal(unmatched_in('M:main, ,M:never,-T:space::Clas'),
                 "'M:never', 'T:space::Clas'", 'kinds')
    expect_equal(unmatched_in('all,-F:other.c'),
                 "'F:other.c' (F: needs debug information: -g)", 'a file')
    expect_equal(unmatched_in('all,' + ','.join('M:n%d' % i for i in range(2000))),
                 "'M:n0', 'M:n1', 'M:n2' and 1020 more", 'many')


# How a process ends does not matter: what has matched is in the recording.
@test
def items_that_match_nothing_are_named_however_the_program_ends():
    killed = compile('killed_by_itself.c')
    for how, status in (('kill', -9), ('raw', 5), ('abort', -6), ('exec', 0)):
        expect_equal(unmatched_in('all,-M:nothing,-M:ends', [killed, how], status),
                     "'M:nothing'", how)


@test
def a_filter_that_lets_nothing_through_is_the_reason():
    output = os.path.join(new_directory('recording'), 'it')
    done = profrun('-o', output, '-F', 'M:nothing', compile('filtered.cc'))
    expect('nothing was recorded: --filter lets none of the functions through that '
           'were called' in done.stderr, done.stderr)


@test
def marks_that_do_not_run_are_the_reason():
    source = write('int marked(void); int marked(void) { return 1; }\n'
                   '__attribute__((patchable_function_entry(0))) int main(void)\n'
                   '{ return 0; }\n')
    program = os.path.join(os.path.dirname(source), 'program')
    subprocess.run(['gcc', '-O2', '-fpatchable-function-entry=5', '-o', program,
                    '-x', 'c', source], check=True)
    output = os.path.join(new_directory('recording'), 'it')
    done = profrun('-o', output, program)
    expect_equal(done.returncode, 0, 'status')
    expect('none of the functions of %s that ran was marked' % program in done.stderr and
           'was compiled with' not in done.stderr, done.stderr)


@test
def a_long_filter_is_not_the_whole_report():
    path = write(''.join('M:nothing%d\n' % i for i in range(5000)) + 'M:main')
    output = os.path.join(new_directory('recording'), 'it')
    profrun('record', '-q', '-F', '@' + path, '-o', output, everything())
    line, = [l for l in shimtest.shim_report('report', output).splitlines()
             if 'only the functions that --filter' in l]
    expect(len(line) < 250 and line.endswith("...' lets through"), line)


@test
def a_filter_that_is_cut_has_no_item_of_half_a_name():
    for length in range(1, 7):
        path = write('M:%s,' % ('x' * length) + 'M:abc,' * 2000 + 'M:main')
        output = os.path.join(new_directory('recording'), 'it')
        profrun('record', '-q', '-F', '@' + path, '-o', output, everything())
        report = shimtest.shim_report('report', output)
        expect('no object was loaded' not in report, report)


shimtest.main()
