#!/usr/bin/env python3
"""libcalls.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Calls of library functions (SHIM_LIBCALLS): programs do what they do without shim, and the
tree has the calls that they make.
"""
import os
import re
import subprocess

import shimtest
from shimtest import (add_test, compile, expect, expect_equal, json_of, record, run,
                      run_both, test, tree_of)

LINKS = {
    'lazy': ['-Wl,-z,lazy'],
    'now': ['-Wl,-z,now'],
    'no PLT': ['-fno-plt'],
    'no PIE': ['-no-pie', '-fno-pie', '-Wl,-z,lazy'],
}


def plain(source, family='gcc', optimize='-O2', flags=(), libraries=()):
    name = '%s-%s' % (os.path.splitext(source)[0],
                      '-'.join(re.sub(r'\W', '', flag) for flag in flags))
    return compile(source, family, optimize, list(flags) + ['-fno-builtin'],
                   name, instrument=False, libraries=libraries)


def calls_of(output):
    """{function: calls} of a tree."""
    calls = {}
    for path, n in tree_of(output).items():
        name = path.split(';')[-1]
        calls[name] = calls.get(name, 0) + n
    return calls


def check_calls(family, optimize, flags):
    program = plain('library_calls.c', family, optimize, flags,
                    ['-lm', '-lpthread'])
    for profile in ['calltree', 'calltree:exact', 'trace',
                    'calltree:counts;exceptions']:
        result = run_both([program, '5'], profile, without_counts=True,
                          SHIM_LIBCALLS='program')
    result = record([program, '5'], SHIM_LIBCALLS='program')
    calls = calls_of(result.output)
    wanted = {'malloc': 5, 'free': 5, 'strcpy': 5, 'strlen': 5, 'qsort': 2,
              'cexp': 1, 'csqrtl': 1, 'lldiv': 1, 'imaxdiv': 1, 'pow': 1,
              'strtold': 1, 'strtod': 1, 'close': 1, 'raise': 5,
              'getppid': 5, 'rand_r': 10000, 'pthread_create': 2,
              'pthread_join': 2, 'waitpid': 2, 'fflush': 1, 'fork': 1}
    got = {name: calls.get(name) for name in wanted}
    expect_equal(got, wanted, 'the calls')
    for name in ['setjmp', '_setjmp', 'longjmp', 'vfork', '_exit']:
        expect(name not in calls, name)
    expect_equal(json_of(result.output)['lost'], 0, 'lost')


for family in ['gcc', 'clang']:
    for optimize in ['-O0', '-O2']:
        for name, flags in LINKS.items():
            add_test('calls are counted: %s %s %s' % (family, optimize, name),
                     lambda family=family, optimize=optimize, flags=flags:
                     check_calls(family, optimize, flags))


@test
def the_unwinder_is_no_caller_of_the_program():
    """A program at a fixed address has a slot for the personality routine.  Its calls were
    ended with the frames that an exception leaves, and ended once more when they returned."""
    for family in 'gcc', 'clang':
        program = plain('unwind.cc', family, '-O1', ['-fno-pie', '-no-pie', '-I',
                                                     shimtest.PROGRAMS])
        result = run_both([program], 'calltree', SHIM_LIBCALLS='program')
        expect('__gxx_personality_v0' not in calls_of(result.output), family)
        head = shimtest.shim_report('report', result.output)
        expect('leaves had no call' not in head or ' 0 leaves had no call' in head, head)


@test
def a_list_chooses_functions_and_callers():
    program = plain('library_calls.c', libraries=['-lm', '-lpthread'])
    chosen = {
        'malloc,free': {'malloc', 'free'},
        'strto*': {'strtold', 'strtod', 'strtol'},
        'program,-p*,-m*': None,
        '-printf': None,
        'libc.so.6,-malloc': None,
        'none': set(),
    }
    every = set(calls_of(record([program], SHIM_LIBCALLS='program').output))
    expect(len(every) > 20, str(every))
    for text, wanted in chosen.items():
        result = record([program], SHIM_LIBCALLS=text)
        names = set(calls_of(result.output))
        if text == 'program,-p*,-m*':
            wanted = {n for n in every if n[0] not in 'pm'}
        elif text == '-printf':
            wanted = every - {'printf'}
        if wanted is not None:
            expect_equal(names, wanted, text)
        expect_equal(result.status, 3, text)


@test
def a_wrong_list_is_said_and_no_call_is_recorded():
    program = plain('library_calls.c', libraries=['-lm', '-lpthread'])
    result = record([program], SHIM_LIBCALLS='F:nesting.c', SHIM_VERBOSE='1')
    expect_equal(result.status, 3, 'status')
    expect("'F:nesting.c' is not an item" in result.stderr, result.stderr)
    expect_equal(tree_of(result.output), {}, 'the tree')


@test
def a_filter_chooses_among_the_calls():
    program = plain('library_calls.c', libraries=['-lm', '-lpthread'])
    result = record([program, '5'], SHIM_LIBCALLS='program',
                    SHIM_FILTER='M:malloc,M:rand_r')
    expect_equal(calls_of(result.output), {'malloc': 5, 'rand_r': 10000},
                 'the calls')
    result = record([program, '5'], SHIM_LIBCALLS='program',
                    SHIM_FILTER='libm.so')
    names = set(calls_of(result.output))
    expect(names >= {'cexp', 'csqrtl', 'pow'} and
           not names & {'malloc', 'strtod', 'qsort'}, str(names))


@test
def arguments_are_those_of_the_calls():
    source = os.path.join(shimtest.scratch, 'passing.c')
    with open(source, 'w') as file:
        file.write('#include <fcntl.h>\n#include <math.h>\n'
                   '#include <stdio.h>\n#include <stdlib.h>\n'
                   '#include <string.h>\n#include <sys/mman.h>\n'
                   'int main(void) { volatile double x = 2;\n'
                   'int fd = open("/dev/null", O_RDWR);\n'
                   'char *block = malloc(77);\n'
                   'strcpy(block, "text");\n'
                   'mmap(NULL, 4096, 1, 2, fd, 8192);\n'
                   'printf("%zu %g\\n", strlen(block), pow(x, 3));\n'
                   'return 0; }\n')
    program = os.path.join(shimtest.scratch, 'passing')
    subprocess.run(['gcc', '-w', '-O1', '-fno-builtin', source, '-o', program,
                    '-lm'], check=True)
    # A filter, which some functions pass, takes another way to the hooks.
    for more in [{}, {'SHIM_FILTER': 'all,-M:close'}]:
        result = record([program], 'trace:args=all', SHIM_LIBCALLS='program',
                        **more)
        expect_equal(result.stdout, '4 8\n', 'what it prints')
        shown = subprocess.run([shimtest.report, 'replay', result.output],
                               capture_output=True, text=True).stdout
        for call in ['open(path = "/dev/null", flags = 2)',
                     'malloc(size = 77)', 'from = "text")',
                     'strlen(text = "text")', 'pow(x = 2, y = 3)',
                     'size = 4096, protection = 1, flags = 2, fd = 3, '
                     'offset = 8192)',
                     'printf(format = "%zu %g\\n")']:
            expect(call in shown, '%s: %s' % (call, shown))


@test
def calls_and_hooks_make_one_tree():
    program = compile('library_calls.c', 'gcc', '-O0', ['-fno-builtin'],
                      libraries=['-lm', '-lpthread'])
    tree = tree_of(record([program], SHIM_LIBCALLS='program').output)
    for path in ['main;memory;malloc', 'main;memory;strlen']:
        expect_equal(tree.get(path), 3, path)
    expect(tree.get('main;callbacks;qsort;compare', 0) >= 4, str(tree))
    expect_equal(tree.get('main;signals;raise;handler;getppid'), 3, str(tree))


@test
def a_library_with_hooks_is_recorded_by_them():
    library = compile('source_library.c', 'gcc', '-O0', ['-shared', '-fPIC'])
    with open(os.path.join(shimtest.scratch, 'uses_library.c'), 'w') as file:
        file.write('int library_sum(int n);\n'
                   'int main(void) { return library_sum(4); }\n')
    program = os.path.join(shimtest.scratch, 'uses_library')
    subprocess.run(['gcc', file.name, library, '-o', program], check=True)
    result = record([program], SHIM_LIBCALLS='program', SHIM_VERBOSE='1')
    expect_equal(result.status, 10, 'status')
    expect_equal(tree_of(result.output),
                 {'library_sum': 1, 'library_sum;library_leaf': 4}, 'the tree')
    expect('1 have marks of their own' in result.stderr, result.stderr)


@test
def the_calls_of_an_opened_library_are_recorded():
    source = os.path.join(shimtest.scratch, 'caller.c')
    with open(source, 'w') as file:
        file.write('#include <stdlib.h>\nint library_sum(int n);\n'
                   'int library_sum(int n) { return abs(-n); }\n')
    library = os.path.join(shimtest.scratch, 'libcaller.so')
    program = plain('source_opens.c', libraries=['-ldl'])
    for flags in [['-Wl,-z,now'], ['-fno-plt']]:
        subprocess.run(['gcc', '-O1', '-fno-builtin', '-shared', '-fPIC',
                        source, '-o', library] + flags, check=True)
        result = record([program, library], SHIM_LIBCALLS='libcaller.so')
        expect_equal(result.stdout, '15\n', 'what it prints')
        expect_equal(tree_of(result.output), {'abs': 3}, str(flags))


@test
def addresses_that_code_loads_and_only_calls_are_recorded():
    """clang's -fno-plt loads a function's address once, and calls the register.  gcc calls
    through the slot."""
    source = os.path.join(shimtest.scratch, 'loads.c')
    with open(source, 'w') as file:
        file.write('#include <stdio.h>\n#include <stdlib.h>\n'
                   '#include <string.h>\n#include <unistd.h>\n'
                   'static void (*kept)(void *);\n'
                   'int main(int argc, char **argv) {\n'
                   'for (int i = 0; i < 5; i++) {\n'
                   'char *text = malloc(10);\n'
                   'strcpy(text, "text");\n'
                   'if (strlen(text) + strlen(text + 1) != 7) abort();\n'
                   'free(text); getppid(); }\n'
                   'if (argc > 1) kept = free;\n'
                   'printf("%d\\n", kept == free); return argv == NULL; }\n')
    for family in ['gcc', 'clang']:
        for optimize in ['-O1', '-O2', '-O3']:
            program = os.path.join(shimtest.scratch, 'loads')
            subprocess.run([family, '-w', optimize, '-fno-builtin', '-fno-plt',
                            source, '-o', program], check=True)
            result = record([program, 'x'], SHIM_LIBCALLS='program',
                            SHIM_VERBOSE='1')
            expect_equal(result.stdout, '1\n', 'what it prints')
            expect_equal(calls_of(result.output),
                         {'malloc': 5, 'strcpy': 5, 'strlen': 10, 'getppid': 5,
                          'printf': 1}, '%s %s' % (family, optimize))
            expect('1 whose address the object may use' in result.stderr,
                   result.stderr)


ROUNDS = '''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile int ends;
static const char *volatile text = "text";
static void *busy(void *unused)
{
	while (!ends)
		if (strlen(text) != 4)
			abort();
	return unused;
}
int main(void)
{
	pthread_t thread;
	char line[8];
	pthread_create(&thread, NULL, busy, NULL);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 1000; i++)
			free(calloc(3, 7));
		puts("done");
		fflush(stdout);
	}
	ends = 1;
	pthread_join(thread, NULL);
	return 5;
}
'''


class Rounds:
    """A program with a busy thread; each round calls calloc and free 1,000 times."""

    def __init__(self, flags, environment=None):
        source = os.path.join(shimtest.scratch, 'rounds.c')
        with open(source, 'w') as file:
            file.write(ROUNDS)
        program = os.path.join(shimtest.scratch, 'rounds')
        subprocess.run(['gcc', '-O1', '-fno-builtin', *flags, source, '-o',
                        program, '-lpthread'], check=True)
        self.process = subprocess.Popen([program], text=True, env=environment,
                                        stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.answer('ready')

    def answer(self, wanted):
        expect_equal(self.process.stdout.readline(), wanted + '\n', 'the program')

    def round(self):
        self.process.stdin.write('go\n')
        self.process.stdin.flush()
        self.answer('done')

    def end(self):
        self.process.stdin.close()
        expect_equal(self.process.wait(), 5, 'the status')


def profrun(*words, status=0):
    done = subprocess.run([os.path.join(os.environ['SHIM_BUILD'], 'profrun'),
                           *words], capture_output=True, text=True)
    expect_equal(done.returncode, status, done.stderr)
    return done.stderr


@test
def calls_are_recorded_from_an_attach_to_the_detach():
    for flags in ['-Wl,-z,lazy'], ['-Wl,-z,now'], ['-fno-plt']:
        rounds = Rounds(flags)
        pid = str(rounds.process.pid)
        first, second = (os.path.join(shimtest.new_directory('recording'), 'r')
                         for _ in range(2))
        rounds.round()
        profrun('attach', pid, '-o', first, '--libcalls=calloc,free')
        rounds.round()
        rounds.round()
        profrun('detach', pid)
        rounds.round()
        profrun('attach', pid, '-o', second, '--libcalls')
        rounds.round()
        profrun('detach', pid)
        rounds.round()
        rounds.end()
        expect_equal(calls_of(first), {'calloc': 2000, 'free': 2000}, str(flags))
        calls = calls_of(second)
        expect_equal([calls.get(name) for name in ['calloc', 'free', 'puts']],
                     [1000, 1000, 1], str(flags))
        expect(calls['strlen'] > 0, 'the busy thread')


@test
def ctl_changes_which_calls_are_recorded():
    """Also in a program that has begun without."""
    output = shimtest.new_directory('recording')
    rounds = Rounds([], shimtest.environment(output, 'calltree',
                                             SHIM_CONTROL='1'))
    pid = str(rounds.process.pid)
    rounds.round()
    for text in 'calloc', 'program,-strlen', 'none', 'free':
        profrun('ctl', pid, 'libcalls', text)
        rounds.round()
    said = profrun('ctl', pid, 'libcalls', 'F:rounds.c', status=1)
    expect("'F:rounds.c' is not an item" in said, said)
    rounds.round()
    rounds.end()
    calls = calls_of(output)
    expect_equal({name: calls.get(name) for name in
                  ['calloc', 'free', 'puts', 'strlen']},
                 {'calloc': 2000, 'free': 3000, 'puts': 1, 'strlen': None},
                 'the calls')


@test
def slots_that_cannot_be_changed_are_told():
    """Systems where memory cannot be made executable, or not writable again."""
    refuses = compile('refuses_code.c', 'gcc', '-O2', instrument=False)
    for flags, more in (['-Wl,-z,lazy'], []), (['-Wl,-z,now'], ['-w']):
        program = plain('sums.c', flags=flags)
        result = run([refuses, *more, program],
                     shimtest.new_directory('recording'),
                     SHIM_LIBCALLS='program', SHIM_VERBOSE='1')
        expect_equal((result.status, result.stdout), (0, '5050\n'), str(more))
        expect(re.search('--libcalls: .*not recorded', result.stderr),
               result.stderr)


if __name__ == '__main__':
    shimtest.main()
