"""Names of C++ as --names asks for them, and where a line has no room."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

import shimtest
from shimtest import compile, expect, expect_equal, record, shim_report, test

SOURCE = r'''
namespace outer { namespace middle { namespace inner {

template <typename T, typename U> struct Pair {
	T first;
	U second;
};

template <typename T> struct Holder {
	template <typename U> __attribute__((noinline))
	Pair<T, U> keep(T const &first, U const &second) const
	{
		return Pair<T, U>{ first, second };
	}
};

} } }

int main()
{
	outer::middle::inner::Holder<long> holder;

	return (int)holder.keep<char>(0, 0).first;
}
'''
SHORT = 'outer::middle::inner::Holder::keep()'


def recording():
    if not hasattr(recording, 'output'):
        source = shimtest.new_source('names.cc', SOURCE)
        program = compile(source, 'gcc', '-O1', flags=('-g',))
        recording.output = record([program]).output
    return recording.output


def on_terminal(columns, *arguments):
    """What the report prints on a terminal that is so wide, in lines."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        raise shimtest.Skipped('there are no terminals: %s' % error)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ,
                struct.pack('HHHH', 50, columns, 0, 0))
    text = b''
    with subprocess.Popen([shimtest.report, *arguments, '--color', 'never'],
                          stdout=theirs, stderr=subprocess.PIPE):
        os.close(theirs)
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
    os.close(ours)
    return text.decode().replace('\r', '').splitlines()


def row_of(lines, part):
    rows = [line for line in lines if part in line]
    expect_equal(len(rows), 1, rows)
    return rows[0]


@test
def each_form_is_in_report_tree_and_exports():
    output = recording()
    for verb in (('report',), ('report', '--tree', '--min-percent', '0'),
                 ('report', '--callees', 'main'),
                 ('export', 'folded', '--value', 'calls'),
                 ('export', 'callgrind'), ('export', 'speedscope')):
        # pylint: disable=cell-var-from-loop
        def shown(*options):
            return shim_report(*verb, output, *options)
        full = shown()
        expect(SHORT not in full, (verb, 'short without being asked'))
        expect('Holder<long>' in full, (verb, full))
        expect_equal(shown('--names', 'full'), full, verb)
        expect(SHORT in shown('--names', 'short'), (verb, 'short'))
        expect('Pair<' not in shown('--names', 'short'), verb)
        expect('_ZNK5outer6middle5inner' in shown('--names', 'mangled'), verb)
        expect_equal(shown('--mangled'), shown('--names', 'mangled'), verb)


@test
def a_name_keeps_its_end_where_a_terminal_is_narrow():
    output = recording()
    wide = row_of(on_terminal(1000, 'report', output), 'Holder<')
    expect('Pair<long, char> outer' in wide and wide.endswith(']'), wide)
    # What stands in front of the names is as wide everywhere.
    before = wide.index('outer::')
    for room, name in ((90, SHORT + ' ['), (len(SHORT), SHORT),
                       (len(SHORT) - 1, 'outer::...::inner::Holder::keep()'),
                       (30, 'outer::...::Holder::keep()'),
                       (22, 'outer::...::keep()'), (13, '...::keep()')):
        lines = on_terminal(before + room, 'report', output)
        row = row_of(lines, 'keep()')
        expect(row[before:].startswith(name), (room, row))
        expect(room == 90 or row[before:] == name, (room, row))
        expect(all(len(line) <= before + room for line in lines
                   if line[:1] == ' ' and '[' in line), (room, lines))


@test
def names_are_whole_on_request_and_short_ones_fit():
    output = recording()
    wide = row_of(on_terminal(1000, 'report', output), 'Holder<')
    narrow = on_terminal(80, 'report', output, '--names', 'full')
    expect(wide in narrow, (wide, narrow))
    expect('_ZNK5outer6middle5inner6HolderI' in
           '\n'.join(on_terminal(60, 'report', output, '--mangled')), 'mangled')
    row_of(on_terminal(1000, 'report', output, '--names', 'short'), SHORT)


@test
def a_diff_has_each_form():
    output = recording()
    for form, part in (('full', 'Holder<long>'), ('short', SHORT),
                       ('mangled', '_ZNK5outer')):
        text = shim_report('diff', output, output, '--value', 'calls',
                           '--names', form)
        expect(part in text, (form, text))


@test
def the_page_has_short_names_beside_the_full_ones():
    output = recording()

    def strings(*options):
        page = shim_report('html', output, '-o', '-', *options)
        text = page.split('id="text"')[1].split('>', 1)[1].split('</script')[0]
        return json.loads(text)['strings']
    expect(SHORT in strings(), strings())
    expect(any('Holder<long>' in each for each in strings()), strings())
    expect(SHORT in strings('--names', 'short'), 'short')
    expect(not any('Holder<long>' in each
                   for each in strings('--names', 'short')), 'short')
    expect(SHORT not in strings('--names', 'mangled'), 'mangled')


@test
def formats_without_csv_say_so():
    output = recording()
    for arguments, status in ((('report', '--names', 'brief'), 2),
                              (('export', 'lcov', '--names', 'short'), 2)):
        done = subprocess.run([shimtest.report, *arguments, output],
                              capture_output=True, text=True)
        expect_equal(done.returncode, status, done)
        expect('--names' in done.stderr, done.stderr)


MANY = r'''
asm(".p2align 5\n"
    "first:\n"
    ".rept 200000\n"
    ".p2align 5\n"
    ".cfi_startproc\n"
    "mov $10000, %ecx\n"
    "1: dec %ecx\n"
    "jnz 1b\n"
    "ret\n"
    ".cfi_endproc\n"
    ".endr\n");
extern char first[];

int main(void)
{
	for (long i = 0; i < 200000; i++)
		((void (*)(void))(first + 32 * i))();
	return 0;
}
'''


@test
def each_of_many_functions_without_symbols_has_its_address():
    shimtest.x86_64_only('the program has assembly of x86-64')
    source = shimtest.new_source('many.c', MANY)
    program = os.path.join(os.path.dirname(source), 'many')
    subprocess.run(['gcc', '-O1', '-s', '-fuse-ld=gold', '-o', program, source], check=True)
    output = record([program], 'sampling:hz=4000').output
    done = subprocess.run([shimtest.report, 'export', 'folded', '--value', 'samples',
                           output], capture_output=True, text=True, timeout=120)
    # libdw does not find the index that gold places behind the tables: 17 s of processor
    # time would not do for a search in all of them for each function.
    expect_equal((done.returncode, done.stderr), (0, ''), 'messages')
    lasts = [line.rsplit(';', 1)[-1].split() for line in done.stdout.splitlines()]
    found = {words[0] for words in lasts}
    # What libc puts into a program has no tables, and may have a sample.
    unknown = sum(int(words[-1]) for words in lasts if words[0].startswith('[many]'))
    expect(len(found) > 500 and unknown <= 5, (len(found), unknown))


if __name__ == '__main__':
    shimtest.main()
