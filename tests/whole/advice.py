"""Advice about functions without names or lines, and about cheaper recording: the
report and profrun doctor print each piece once, and only where it applies."""
import os
import re
import shutil
import subprocess

import shimtest
from shimtest import compile, environment, expect, expect_equal, json_of, \
    new_directory, record, test

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
EXCLUDE = '-finstrument-functions-exclude-file-list='


def head_of(output):
    """The lines before the table."""
    return shimtest.shim_report('report', output).split('\n\n')[0].splitlines()


def lines_with(output, text):
    return [l for l in head_of(output) if text in l]


def doctor(program):
    done = subprocess.run([PROFRUN, 'doctor', program], capture_output=True,
                          text=True, cwd=new_directory('doctor'),
                          env=environment())
    return done.stdout


# --- symbols and lines ---

@test
def a_program_with_everything_gets_no_advice():
    program = compile('trivial.c')
    output = record([program, '10', '10'], 'calltree').output
    expect_equal(lines_with(output, 'stripped') +
                 lines_with(output, 'debug information'), [], 'the head')
    told = json_of(output)
    expect_equal((told['stripped'], told['without_debug_information']),
                 ([], []), 'json')
    expect('symbols and debug information' in doctor(program),
           doctor(program))


@test
def a_stripped_program_is_named_once_as_the_cause():
    program = compile('trivial.c', flags=['-s'], name='trivial-stripped')
    output = record([program, '10', '10'], 'calltree').output
    line, = lines_with(output, 'is stripped')
    expect(line.startswith('  trivial-stripped is stripped: functions '), line)
    expect_equal(lines_with(output, 'debug information'), [], 'one cause')
    told = json_of(output)
    expect_equal((told['stripped'], told['without_debug_information']),
                 ([program], []), 'json')
    expect(re.search('^warning +it is stripped: ', doctor(program), re.M),
           doctor(program))
    expect_equal(doctor(program).count('debug information'), 0, 'one cause')


@test
def a_program_without_debug_information_is_named_once():
    program = compile('trivial.c', flags=['-g0'], name='trivial-g0')
    output = record([program, '10', '10'], 'calltree').output
    line, = lines_with(output, 'without debug information')
    expect(line.startswith('  trivial-g0 is without ') and '-g' in line, line)
    told = json_of(output)
    expect_equal((told['stripped'], told['without_debug_information']),
                 ([], [program]), 'json')
    expect(re.search('^warning +it has no debug information', doctor(program),
                     re.M), doctor(program))


def ran(program, *options, status=0):
    """What profrun says of a run, and the path of the recording."""
    path = os.path.join(new_directory('run'), 'r')
    done = subprocess.run([PROFRUN, '-o', path, *options, program, '10', '10'],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, env=environment())
    expect_equal(done.returncode, status, done.stderr)
    return done.stderr, path


@test
def a_missing_g_is_the_one_cause_of_missing_arguments():
    program = compile('trivial.c', flags=['-g0'], name='trivial-g0')
    for profile in 'trace:args=all', 'calltree:by=trivial/1':
        said, _ = ran(program, '-p', profile)
        line, = [l for l in said.splitlines() if 'debug information:' in l]
        expect('source lines, arguments and results are unknown' in line, said)
    # Without a report, it is the log that says it.
    said, _ = ran(program, '--no-report', '-p', 'trace:args=all')
    expect_equal(said.count('no debug information'), 1, said)


@test
def names_that_a_stripped_program_lacks_have_that_cause():
    program = compile('trivial.c', flags=['-s'], name='trivial-stripped')
    cause = '; trivial-stripped is stripped, its functions have no names'
    said, path = ran(program, '-p', 'calltree:by=trivial/1')
    expect_equal(said.count(cause), 1, said)
    expect('in the program or its libraries at the start' not in said, said)
    done = subprocess.run([PROFRUN, 'report', '--callers', 'trivial', path],
                          capture_output=True, text=True, env=environment())
    expect_equal((done.returncode, done.stderr),
                 (1, 'profrun: no function trivial was recorded%s\n' % cause),
                 'callers')


@test
def coverage_of_a_program_without_lines_has_no_percentages():
    for flag in '-s', '-g0':
        program = compile('trivial.c', flags=[flag],
                          name='trivial-uncovered%s' % flag)
        said, _ = ran(program, '-p', 'coverage')
        expect('reached: unknown, since no line' in said and '%' not in said,
               said)
        expect_equal(said.count('compile with -g; do not strip'), 1, said)


@test
def a_full_disk_is_named_once():
    place = new_directory('full')
    program = compile('trivial.c')
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', place],
                      capture_output=True).returncode:
        return
    try:
        said = subprocess.run(
            [PROFRUN, '-p', 'trace', '-o', place + '/r', program, '999999',
             '0'], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env=environment()).stderr
        expect_equal(len(re.findall('disk|space left|cannot be written', said)),
                     1, said)
        expect('calls LOST (space: ' in said, said)
        shutil.rmtree(place + '/r')
        with open(place + '/fill', 'wb', buffering=0) as fill:
            try:
                while True:
                    fill.write(bytes(4096))
            except OSError:
                pass
        done = subprocess.run([PROFRUN, 'doctor'], cwd=place, text=True,
                              capture_output=True, env=environment())
        expect_equal(done.returncode, 1, done.stdout)
        line, = [l for l in done.stdout.splitlines() if 'problem' in l]
        expect('No space left on device' in line, line)
    finally:
        subprocess.run(['umount', place], check=True)


@test
def symbols_in_a_file_of_their_own_are_symbols():
    whole = compile('trivial.c', flags=['-Wl,--build-id'], name='trivial-whole')
    directory = new_directory('debug')
    program = os.path.join(directory, 'program')
    for command in (['objcopy', '--only-keep-debug', whole,
                     program + '.debug'],
                    ['objcopy', '--strip-all', '--add-gnu-debuglink=' +
                     program + '.debug', whole, program]):
        subprocess.run(command, check=True)
    output = record([program, '10', '10'], 'calltree').output
    expect_equal(lines_with(output, 'stripped') +
                 lines_with(output, 'debug information'), [], 'the head')
    # Where gdb looks for it, too.
    places = [os.path.join(directory, '.debug', 'program.debug')]
    build_id = subprocess.run(['readelf', '-n', program], capture_output=True, text=True,
                              check=True).stdout.split('Build ID: ')[1].split()[0]
    by_id = '/usr/lib/debug/.build-id/%s/%s.debug' % (build_id[:2], build_id[2:])
    if os.access('/usr/lib/debug/.build-id', os.W_OK):
        places.append(by_id)
    place = program + '.debug'
    for next_place in places + [None]:
        expect('symbols and debug information' in doctor(program), place)
        if next_place:
            os.makedirs(os.path.dirname(next_place), exist_ok=True)
            shutil.move(place, next_place)
            place = next_place
    os.remove(place)
    expect(re.search('^warning +its symbols are in program.debug, which is not here: ',
                     doctor(program), re.M), doctor(program))
    for name in build_id[2:] + '.debug', 'x' * 255:
        for command in (['--remove-section=.gnu_debuglink', program],
                        ['--add-gnu-debuglink=' + os.path.join(directory, name), program]):
            with open(os.path.join(directory, name), 'w'):
                pass
            subprocess.run(['objcopy', *command], check=True)
            os.remove(os.path.join(directory, name))
        told = by_id if 'x' not in name else name
        expect('its symbols are in %s, which' % told in doctor(program), doctor(program))


@test
def libraries_that_samples_are_in_are_not_named():
    program = compile('computes.c', instrument=False)
    output = record([program], 'sampling').output
    expect_equal(lines_with(output, 'stripped') +
                 lines_with(output, 'debug information'), [], 'the head')


# --- what costs much ---

AFTER_INLINING = '-finstrument-functions-after-inlining'
CURES = ['-finstrument-functions -finstrument-functions-exclude-function-list='
         'spin\n', AFTER_INLINING]
CXX_CURES = ['-finstrument-functions ' + EXCLUDE + '/usr/include', AFTER_INLINING]


@test
def many_trivial_calls_get_the_flags_that_leave_them_out():
    program = compile('trivial.c', optimize='-O2')
    for calls, length, wanted in ((3000000, 0, True), (30000, 0, False),
                                  (1100000, 300, False)):
        for profile in ('calltree', 'calltree:exact', 'calltree:counts'):
            is_wanted = wanted and profile != 'calltree:counts'
            # A mean by ticks contains the times without a processor, which may hide that
            # calls are trivial: one run of several must tell it.
            for _ in range(5 if is_wanted and profile == 'calltree' else 1):
                output = record([program, str(calls), str(length)], profile).output
                head = '\n'.join(head_of(output)) + '\n'
                expect(EXCLUDE not in head, 'a cure for C++: ' + head)
                is_told = all(cure in head for cure in CURES)
                if is_told == is_wanted:
                    break
            expect_equal(is_told, is_wanted,
                         '%s, %d calls of %d:\n%s' % (profile, calls, length,
                                                      head))
    # The raw report subtracts nothing, so its times can be compared.
    raw = shimtest.shim_report('report', '--raw', output)
    expect('longer than the program' not in raw, raw)


@test
def copies_that_the_compiler_makes_are_left_out_by_the_source_s_name():
    source = os.path.join(new_directory('copies'), 'copies.c')
    with open(source, 'w') as file:
        file.write('''
void first(void) __asm__("spin.constprop.0"), second(void) __asm__("spin.lto_priv.1");
__attribute__((noinline)) void first(void) { __asm__ volatile(""); }
__attribute__((noinline)) void second(void) { __asm__ volatile(""); }
int main(void)
{
	for (int i = 0; i < 2000000; i++) {
		first();
		second();
	}
	return 0;
}
''')
    output = record([compile(source, optimize='-O2')], 'calltree:exact').output
    head = '\n'.join(head_of(output)) + '\n'
    expect(CURES[0] in head, head)


@test
def trivial_calls_that_are_patched_get_the_list_that_leaves_them_out():
    for source, name in ('trivial.c', 'spin'), ('trivial_cxx.cc', '_Z'):
        program = compile(source, optimize='-O2', instrument=False,
                          name=source.split('.')[0] + '-plain')
        # The exact times of a call do not contain those of the program when it has no
        # processor, but for few calls; a mean by ticks does.
        output = record([program, '3000000', '0'], 'calltree:exact',
                        SHIM_PATCH='*').output
        head = '\n'.join(head_of(output)) + '\n'
        expect(EXCLUDE not in head and AFTER_INLINING not in head, head)
        option, = re.findall("--patch '(.*)'\n", head)
        expect(option.startswith('*,-' + name), head)
        left = json_of(record([program, '3000000', '0'],
                              SHIM_PATCH=option).output)
        expect(left['calls'] < 3000000, '%s: %d' % (option, left['calls']))


@test
def trivial_calls_of_cxx_get_the_flag_for_its_headers():
    program = compile('trivial_cxx.cc', optimize='-O2')
    head = '\n'.join(head_of(record([program, '3000000', '0'],
                                    'calltree:exact').output))
    expect(all(cure in head for cure in CXX_CURES), head)
    expect('exclude-function-list' not in head, head)


@test
def trivial_calls_of_own_headers_are_left_out_by_their_names():
    directory = new_directory('headers')
    source = os.path.join(directory, 'main.cc')
    with open(os.path.join(directory, 'tiny.h'), 'w') as file:
        file.write('static int sum;\n'
                   'static void add(int n) { sum += n; }\n'
                   'static int get() { return sum; }\n')
    with open(source, 'w') as file:
        file.write('#include "tiny.h"\n'
                   'int main() { for (int i = 0; i < 3000000; i++)\n'
                   '\tadd(get()); }\n')
    program = os.path.join(directory, 'main')
    build = ['g++', '-O1', '-g', '-finstrument-functions', source, '-o',
             program]
    subprocess.run(build, check=True)
    head = '\n'.join(head_of(record([program], 'calltree:exact').output)) + '\n'
    flag, = re.findall(EXCLUDE + '.*', head)
    expect_equal(flag, EXCLUDE + '/usr/include,tiny.h', head)
    subprocess.run(build + [flag], check=True)
    names = [f['name'] for f in
             json_of(record([program], 'calltree').output)['functions']]
    expect_equal(names, ['main'], 'the flag works')


@test
def the_doctor_knows_the_flags_for_each_compiler():
    for family, flags, wanted in (
            ('gcc', [], EXCLUDE + '/usr/include as well'),
            ('gcc', [EXCLUDE + '/usr/include'], None),
            ('clang', [], '-finstrument-functions-after-inlining instead')):
        program = compile('everything.cc', family, flags=flags,
                          name='everything%d' % len(flags))
        hints = re.findall('^hint +(.*)', doctor(program), re.M)
        expect_equal(len(hints), 1 if wanted else 0, hints)
        expect(not wanted or wanted in hints[0], hints)
    hints = re.findall('^hint', doctor(compile('trivial.c')), re.M)
    expect_equal(hints, [], 'C')


shimtest.main()
