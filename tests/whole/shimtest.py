"""Shared code of the whole-program tests: compiles programs, runs them with and without
shim, reads recordings, and reports each test's result to meson (TAP).

A test is a function with @test; its name is the claim.  It fails by raising Failed (as
the expect functions do).  It is skipped by raising Skipped if the machine cannot run
it; packages of scripts/packages must be present (need()).  A test with a known failure
has @known_failure and raises Unsolved for that failure.
"""
import functools
import glob
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), 'programs')
PROFILES = ['calltree:counts', 'calltree', 'calltree:exact']
# clang's flags for sleds in all functions, without LLVM's runtime.
XRAY = ['-fxray-instrument', '-fxray-instruction-threshold=1', '-fnoxray-link-deps']
# scripts/check --nightly: each cell of large tables, and not only a part of them.
ALL = bool(os.environ.get('CHECK_ALL'))
# Each file of tests has both compilers and both optimizations, one file in each of the
# two ways to combine them; all four take twice as long.
BUILDS = [('gcc', '-O0'), ('clang', '-O2'), ('gcc', '-O2'), ('clang', '-O0')]
if not ALL:
    BUILDS = BUILDS[:2] if len(os.path.basename(sys.argv[0])) % 2 else BUILDS[2:]


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


class Unsolved(Exception):
    """The failure that @known_failure describes; any other failure counts as one."""


# --- the things under test: set by main() ---

library = None          # libshim.so.0
report = None           # shim-report
scratch = None          # a directory for this run
fixtures = None         # directory of compiled programs
fixtures_link = None    # a link to it, for LD_PRELOAD

# For another processor; set by cross.py:
machine = ''            # what its compilers' names begin with
emulator = []           # the command that runs its programs
common_flags = []       # flags for all programs


# --- tests ---

tests = []


def test(function):
    tests.append((function.__name__, function))
    return function


def add_test(name, function):
    tests.append((name, function))


def some(things, every=2, first=0):
    """Every second (third...) of what a test goes through, or all with CHECK_ALL=1."""
    things = list(things)
    return things if ALL else things[first % every::every]


def known_failure(description, always=True):
    """Marks a test that may raise Unsolved.  If it passes, meson reports an unexpected
    success, unless it only fails now and then."""
    def mark(function):
        function.known = (description, always)
        return function
    return mark


def need(*commands):
    """Fails if a command is missing that scripts/packages installs: that is no reason
    to skip a test."""
    for command in commands:
        expect(shutil.which(command), '%s is not installed; scripts/packages '
               'check installs what the tests need' % command)


def need_root():
    if os.geteuid() != 0:
        raise Skipped('not root')


def expect(condition, text):
    if not condition:
        raise Failed(text)


def expect_equal(got, wanted, what):
    if got != wanted:
        raise Failed('%s: got %r, wanted %r' % (what, got, wanted))


def run_tests(only):
    chosen = [t for t in tests
              if not only or any(re.search(o, t[0]) for o in only)]
    print('TAP version 13')
    print('1..%d' % len(chosen), flush=True)
    for number, (name, function) in enumerate(chosen, 1):
        begin = time.monotonic()
        note = ''
        description, always = getattr(function, 'known', (None, False))
        try:
            function()
            line = 'ok'
            if always:
                note = ' # FIXED %s' % description
        except Skipped as reason:
            line, note = 'ok', ' # SKIP %s' % reason
        except Unsolved as reason:
            line = 'not ok'
            if description:
                note = ' # TODO %s' % description
            print(re.sub('^', '# ', str(reason), flags=re.M))
        except Failed as error:
            line = 'not ok'
            print(re.sub('^', '# ', str(error), flags=re.M))
        except Exception:
            line = 'not ok'
            print(re.sub('^', '# ', traceback.format_exc().strip(),
                         flags=re.M))
        print('%s %d - %s%s' % (line, number, name, note))
        print('# %.2f s' % (time.monotonic() - begin), flush=True)
        if 'SHIM_TEST_STEPS' in os.environ:     # tests/mutate says when to go on
            os.read(int(os.environ['SHIM_TEST_STEPS']), 1)


# --- compiling ---

def compiler_of(source, family):
    cxx = source.endswith('.cc')
    name = machine + {'gcc': 'g++' if cxx else 'gcc',
                      'clang': 'clang++' if cxx else 'clang'}[family]
    if not shutil.which(name):
        raise Failed('%s is not installed; scripts/packages check installs '
                     'it' % name)
    return name


def compile(source, family='gcc', optimize='-O0', flags=(), name=None,
            instrument=True, libraries=()):
    """The path of the compiled program; compiles it if it is out of date."""
    source = os.path.join(PROGRAMS, source)
    command = [compiler_of(source, family), optimize, '-g', '-Wall', '-pthread',
               '-I', PROGRAMS]
    command += ['-finstrument-functions'] if instrument else []
    command += common_flags + list(flags) + list(libraries)
    # A program compiled in two ways has two places: other drivers run beside this one.
    with open(source, 'rb') as file:
        text = source.encode() if source.startswith(PROGRAMS) else file.read()
    way = hashlib.sha256(' '.join(command).encode() + text).hexdigest()[:12]
    target = os.path.join(fixtures, '%s%s-%s' % (family, optimize, way),
                          name or os.path.splitext(os.path.basename(source))[0])
    try:
        age = os.path.getmtime(target)
        if all(os.path.getmtime(f) < age
               for f in [source, *glob.glob(os.path.join(PROGRAMS, '*.h'))]):
            return target
    except OSError:
        pass
    os.makedirs(os.path.dirname(target), exist_ok=True)
    made = '%s.%d' % (target, os.getpid())      # other processes may be compiling it, too
    at = command.index('-pthread')
    done = subprocess.run(command[:at] + [source] + command[at:] + ['-o', made],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, '%s:\n%s' % (
        ' '.join(command), done.stdout.decode(errors='replace')))
    os.replace(made, target)
    return target


def linked(library):
    """What links a program to @library, which is found where it was compiled."""
    return [library, '-Wl,-rpath,' + os.path.dirname(library)]


# --- running ---

def profrun():
    path = os.path.join(os.path.dirname(report), '..', '..', 'profrun')
    return os.path.normpath(path)


def environment(output=None, profile='calltree:counts', **more):
    variables = {k: v for k, v in os.environ.items()
                 if not k.startswith('SHIM_') and k != 'LD_PRELOAD'}
    if output:      # one recording for all processes, as with profrun
        variables.update(LD_PRELOAD=library, SHIM_DIR=output,
                         SHIM_PROFILE=profile)
    variables.update(more)
    if fixtures_link and 'LD_PRELOAD' in more:
        variables['LD_PRELOAD'] = more['LD_PRELOAD'].replace(fixtures,
                                                             fixtures_link)
    if emulator and 'LD_PRELOAD' in variables:  # the variable is meant for the emulated program
        variables['QEMU_SET_ENV'] = 'LD_PRELOAD=' + variables.pop('LD_PRELOAD')
    return variables


def new_directory(stem):
    return tempfile.mkdtemp(prefix=stem + '.', dir=scratch)


def x86_64_only(why):
    """Skips the test on other processors, also where an emulator runs the programs."""
    if platform.machine() != 'x86_64' or machine:
        raise Skipped(why)


def new_source(name, text):
    """The path of a new file of that name with the text."""
    path = os.path.join(new_directory(os.path.splitext(name)[0]), name)
    with open(path, 'w') as file:
        file.write(text)
    return path


class Result:
    def __init__(self, status, stdout, stderr, output):
        self.status, self.output = status, output
        self.stdout = stdout.decode(errors='replace')
        self.stderr = stderr.decode(errors='replace')

    def truth(self):
        """The program's own counts of its calls."""
        found = re.findall(r'^calls (\S+) (\d+)$', self.stdout, re.M)
        counts = {}
        for name, calls in found:
            counts[name] = counts.get(name, 0) + int(calls)
        return counts


def until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < end, 'in vain: %s' % (what,))
        time.sleep(0.01)


def state_of(task):
    """The letter of /proc for the process, or for PID/task/TID."""
    with open('/proc/%s/stat' % task) as file:
        return file.read().rpartition(')')[2].split()[0]


def run(command, output=None, profile='calltree:counts', timeout=60,
        directory=None, **more):
    """Runs @command; with shim if @output (the directory of the recording) is given."""
    if emulator:    # a busy machine makes the emulator even slower
        timeout *= 4
    try:
        done = subprocess.run(
            emulator + command, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
            cwd=directory or scratch,
            env=environment(output, profile, **more))
    except subprocess.TimeoutExpired:
        raise Failed('%s did not end in %d s' % (command, timeout))
    return Result(done.returncode, done.stdout, done.stderr, output)


def expect_kept_registers(family, flags):
    """Callers may know which registers a marked function leaves alone."""
    name = 'knowing' + ''.join(flags).replace('=', '')
    program = compile('knowing.c', family, '-O2', flags, name, instrument=False)
    directory = new_directory('cwd')
    wanted = run([program, '300000'], directory=directory).stdout
    for profile in 'none', 'calltree:counts', 'calltree', 'calltree:exact', 'trace':
        for more in {}, {'SHIM_FILTER': 'all,-M:leaf'}, {'SHIM_BUDGET': '5'}:
            if not more or profile == 'calltree':
                result = record([program, '300000'], profile, directory=directory, **more)
                expect_equal((result.status, result.stdout), (0, wanted),
                             '%s %s' % (profile, more))


def record(command, profile='calltree:counts', **more):
    return run(command, new_directory('recording'), profile, **more)


def run_both(command, profile='calltree:counts', without_counts=False, **more):
    """The run with shim; stdout, stderr and status must be the same as without it.
    @without_counts: the program's own counts may differ from run to run."""
    alone = run(command, **more)
    ours = record(command, profile, **more)

    def text(result):
        if not without_counts:
            return result.stdout
        return re.sub(r'^calls .*\n', '', result.stdout, flags=re.M)
    expect_equal(ours.status, alone.status, 'exit status')
    expect_equal(text(ours), text(alone), 'stdout')
    expect_equal(ours.stderr, alone.stderr, 'stderr')
    return ours


# --- reading ---

def shim_report(*arguments):
    # Two seconds of a processor may take a minute where ten programs want it.
    done = subprocess.run([report, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300,
                          stdin=subprocess.DEVNULL)
    expect(done.returncode == 0, 'shim-report %s: status %d: %s' % (
        ' '.join(arguments), done.returncode,
        done.stderr.decode(errors='replace')))
    return done.stdout.decode(errors='replace')


# Suffixes that compilers append to the name of a function's copy.
CLONE = re.compile(r'(\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)?)+$')


@functools.lru_cache(maxsize=None)
def linker_name(name):
    # Complete or base object constructor: compilers choose either where both are the
    # same code.
    return re.sub(r'([CD])1E', r'\g<1>2E', CLONE.sub('', name))


def tree_of(output, depth=320):
    """{path: calls}, where a path is 'a;b;c' in linker names.  A path deeper than
    @depth counts for its ancestor at that depth."""
    tree = {}
    for line in shim_report('export', 'folded', output, '--value', 'calls',
                            '--mangled', '--max-depth', str(depth)).splitlines():
        path, calls = line.rsplit(' ', 1)
        path = ';'.join(linker_name(name) for name in path.split(';'))
        tree[path] = tree.get(path, 0) + int(calls)
    return tree


def json_of(output):
    return json.loads(shim_report('report', '--format', 'json', '--mangled',
                                  output))


def calls_of(about):
    """{function: calls} from the result of json_of()."""
    calls = {}
    for function in about['functions']:
        name = linker_name(function['name'])
        calls[name] = calls.get(name, 0) + function['calls']
    return calls


def expect_counted(program):
    """Runs calls_short.c with a budget.  On a busy machine the shorter function may go off and
    have no burst: then the report says that it was called more often than was counted."""
    result = record([program, '2000000'], 'calltree', SHIM_BUDGET='20')
    expect_equal((result.status, result.stdout), (0, 'done\n' * 2), 'the program')
    about = json_of(result.output)
    expect(about['budget']['functions_counted'] > 0, about['budget'])
    functions = {f['name']: f for f in about['functions']}
    expect_equal(functions['longer']['calls'], 6000000, 'longer')
    expect_equal(functions['longer']['calls_error'], None, 'an exact number')
    shorter = functions['shorter']
    error = 2 * (shorter['calls_error'] or 0)
    expect(shorter['calls'] <= 60000000 + error and
           (shorter['calls'] >= 60000000 - error or not shorter['calls_complete']), shorter)


def difference(got, wanted):
    lines = []
    for path in sorted(set(got) | set(wanted)):
        if got.get(path) != wanted.get(path):
            lines.append('%s: got %s, wanted %s' % (
                path if len(path) < 300 else
                path[:140] + ' ... ' + path[-140:],
                got.get(path, 'nothing'), wanted.get(path, 'nothing')))
    if len(lines) > 40:
        lines[40:] = ['... and %d more' % (len(lines) - 40)]
    return '\n'.join(lines)


def expect_truth(result, calls, exact=True):
    """Every function must be recorded as often as the program says it was called."""
    truth = result.truth()
    expect(truth, 'the program printed no counts:\n' + result.stdout)
    got = {name: calls.get(name, 0) for name in truth}
    if exact:
        expect(got == truth, 'calls:\n' + difference(got, truth))
    return truth


def without_blanks(path, levels):
    """A path for LD_PRELOAD without blanks: through a link to the directory @levels
    above it."""
    if not re.search(r'[\s:;]', path):
        return path
    top = path
    for _ in range(levels):
        top = os.path.dirname(top)
    link = tempfile.mkdtemp(prefix='link.', dir=scratch) + '/to'
    os.symlink(top, link)
    return os.path.normpath(os.path.join(link, os.path.relpath(path, top)))


def main():
    global library, report, scratch, fixtures, fixtures_link
    if len(sys.argv) < 4:
        sys.exit('usage: %s LIBSHIM SHIM-REPORT FIXTURES [TEST...]' %
                 sys.argv[0])
    library, report, fixtures = map(os.path.abspath, sys.argv[1:4])
    # Of another build, as one with sanitizers; profrun finds its own by SHIM_LIBEXEC.
    report = os.environ.pop('SHIM_REPORT', report)
    os.makedirs(fixtures, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix='shim-whole.')
    library = without_blanks(library, 2)
    fixtures_link = without_blanks(fixtures, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # A shell without job control ignores these in what it starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    try:
        run_tests(sys.argv[4:])
    finally:
        if not os.environ.get('KEEP'):
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            print('# kept', scratch)
