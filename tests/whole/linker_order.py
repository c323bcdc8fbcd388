"""profrun export order: linkers must place the functions of a program in this order."""

import os
import re
import subprocess

import shimtest
from shimtest import (expect, expect_equal, new_directory, record,
                      test)

# The order in the file differs from the order by cost.
SOURCE = '''
volatile unsigned long work;
static void spend(unsigned long n) { while (n-- > 0) work++; }
void never(void) { work = 0; }
void cold(void) { spend(1000); }
static void warm(void) { spend(20000000); }
void often(void) { work++; }
namespace space { struct Hot { void run(int) { spend(100000000); } }; }
int main()
{
    space::Hot hot;
    for (int i = 0; i < 2000; i++)
        often();
    cold();
    warm();
    hot.run(1);
    return work == 0;
}
'''
HOT = '_ZN5space3Hot3runEi'
LINKERS = {
    'lld': ('ld.lld', '--symbol-ordering-file', ''),
    'gold': ('ld.gold', '--section-ordering-file', '.text.'),
}


def build(directory, *flags, name='program'):
    source = os.path.join(directory, 'program.cc')
    if not os.path.exists(source):
        with open(source, 'w') as file:
            # for this test, spend is inlined into its caller
            file.write(SOURCE.replace(
                'static void spend', '__attribute__((always_inline)) '
                '__attribute__((no_instrument_function)) '
                'static inline void spend'))
    binary = os.path.join(directory, name)
    done = subprocess.run(['g++', '-g', '-O0', '-ffunction-sections', *flags,
                           source, '-o', binary], stderr=subprocess.PIPE)
    expect_equal((done.returncode, done.stderr), (0, b''), flags)
    return binary


def recorded():
    directory = new_directory('linked')
    ran = record([build(directory, '-finstrument-functions')],
                 'calltree:exact')
    return directory, ran


def order_of(ran, *words):
    done = subprocess.run([shimtest.report, 'export', 'order', ran.output,
                           *words], capture_output=True, text=True)
    expect_equal((done.returncode, done.stderr), (0, ''), words)
    return done.stdout.splitlines()


def placed(binary):
    """The program's own functions, by address."""
    text = subprocess.run(['nm', '-n', binary], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    known = (HOT, 'main', '_ZL4warmv', '_Z4coldv', '_Z5oftenv', '_Z5neverv')
    return [name for name in re.findall(r' [tTwW] (\w+)$', text, re.M)
            if name in known]


@test
def hot_functions_come_first_under_their_linker_names():
    # On a busy machine, main may wait for its processor for longer than warm computes: one
    # of three runs must be right.
    for _ in range(3):
        _, ran = recorded()
        names = order_of(ran)
        if names[:2] == [HOT, '_ZL4warmv']:
            break
    expect_equal(names[:2], [HOT, '_ZL4warmv'], 'by self')
    expect_equal(sorted(names), sorted([HOT, 'main', '_ZL4warmv', '_Z4coldv',
                                        '_Z5oftenv']), 'each once')
    expect_equal(order_of(ran, '--value', 'calls')[0], '_Z5oftenv', 'by calls')
    expect_equal(order_of(ran, '--value', 'total')[0], 'main', 'by total')


@test
def linkers_put_them_in_that_order():
    directory, ran = recorded()
    names = order_of(ran, '--value', 'calls')
    for linker, (program, option, prefix) in LINKERS.items():
        shimtest.need(program)
        path = os.path.join(directory, linker + '.order')
        with open(path, 'w') as file:
            file.writelines(prefix + name + '\n' for name in reversed(names))
        # The linker names all COMDAT functions of C++ alike.
        binary = build(directory, '-fuse-ld=' + linker,
                       '-Wl,%s,%s' % (option, path), name=linker)
        got = [name for name in placed(binary) if name in names]
        expect_equal(got, names[::-1], linker)
        expect(placed(build(directory, '-fuse-ld=' + linker, name='plain')) !=
               placed(binary), linker)


@test
def libraries_have_their_own():
    directory = new_directory('library')
    library, main = (os.path.join(directory, name)
                     for name in ('libpart.so', 'main'))
    for source, text in (('part.c', 'int part(int n) { return n + 1; }\n'),
                         ('main.c', 'int part(int n);\nint main(void) '
                                    '{ return part(-1); }\n')):
        with open(os.path.join(directory, source), 'w') as file:
            file.write(text)
    flags = ['gcc', '-g', '-finstrument-functions']
    subprocess.run(flags + ['-shared', '-fPIC', directory + '/part.c', '-o',
                            library], check=True)
    subprocess.run(flags + [directory + '/main.c', '-o', main, '-L', directory,
                            '-lpart', '-Wl,-rpath,' + directory], check=True)
    ran = record([main])
    expect_equal(order_of(ran), ['main'], 'the program')
    expect_equal(order_of(ran, '--object', 'libpart.so'), ['part'], 'its name')
    expect_equal(order_of(ran, '--object', library), ['part'], 'its path')
    done = subprocess.run([shimtest.report, 'export', 'order', ran.output,
                           '--object', 'libno.so'], capture_output=True,
                          text=True)
    expect_equal(done.stdout, '', 'none')
    expect('no function of libno.so was called' in done.stderr, done.stderr)


@test
def other_formats_have_no_object():
    _, ran = recorded()
    for words in (['folded', ran.output, '--object', 'x'],
                  ['order', ran.output, '--value', 'bytes'],
                  ['order', ran.output, '--threads']):
        done = subprocess.run([shimtest.report, 'export', *words],
                              capture_output=True, text=True)
        expect_equal((done.returncode, done.stdout), (2, ''), words)


if __name__ == '__main__':
    shimtest.main()
