#!/usr/bin/env python3
"""readme.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Checks the README: its commands run on tests/programs/app.c and print its report, and
the profiles, formats, options, files and manual pages that it names exist.  Commands
that install packages or build shim are not run.
"""
import functools
import glob
import os
import re
import shlex
import shutil
import subprocess

import shimtest
from shimtest import expect, expect_equal, new_directory, test

BUILD = os.environ['SHIM_BUILD']
TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
MANUAL = os.path.join(TOP, 'scripts', 'manual')
MOST_LINES = 150
# These build shim itself.
NOT_RUN = {'apt install ./build/packages/*.deb', 'meson setup build',
           'ninja -C build install'}


def content(*path):
    with open(os.path.join(TOP, *path)) as file:
        return file.read()


def blocks(language):
    return [block for name, block in
            re.findall(r'^```(\w*)\n(.*?)^```$', content('README.md'), re.M | re.S)
            if name == language]


def commands():
    """The commands of all shell blocks, without comments."""
    lines = [re.sub(r'\s+#.*', '', line) for block in blocks('sh')
             for line in block.splitlines()]
    return [command.strip() for line in lines if line
            for command in line.split('&&')]


def table(heading):
    """The first cells of the rows of the first table below a heading."""
    part = content('README.md').split('\n## %s\n' % heading)[1]
    part = part.split('\n## ')[0]
    rows = re.findall(r'^\| (.*?) \|', part, re.M)
    expect(len(rows) > 1, heading)
    return rows[1:]


def shell(command, directory):
    path = '%s:%s' % (BUILD, os.environ['PATH'])
    return subprocess.run(
        ['sh', '-ec', command], cwd=directory, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, env=shimtest.environment(PATH=path))


@functools.lru_cache
def prepared():
    """A directory with app.c and the output of the README's compiler commands."""
    directory = new_directory('readme')
    shutil.copy(os.path.join(TOP, 'tests', 'programs', 'app.c'), directory)
    compilers = [c for c in commands() if re.match(r'(gcc|clang) ', c)]
    expect(compilers, 'compiler commands')
    for command in compilers:
        done = shell(command, directory)
        expect_equal(done.returncode, 0, '%s: %s' % (command, done.stderr))
    return directory


@functools.lru_cache
def help_of(verb):
    done = subprocess.run([os.path.join(BUILD, 'profrun'), verb, '--help'],
                          capture_output=True, text=True)
    expect_equal(done.returncode, 0, verb)
    return done.stdout


@test
def it_has_at_most_150_lines():
    lines = content('README.md').count('\n')
    expect(lines <= MOST_LINES, '%d lines' % lines)


@test
def the_two_commands_follow_the_first_sentence():
    first = re.sub(r'\s+', ' ', content('README.md').split('```')[0])
    expect(re.fullmatch(r'# shim [^.]*\. ', first), first)
    expect_equal(commands()[:3], [
        'scripts/quickstart', 'scripts/check',
        'scripts/quickstart -- ./yourprog args'], 'first commands')


@test
def its_profrun_commands_run():
    directory = prepared()
    ran = [c for c in commands() if c.startswith('profrun ')]
    expect(len(ran) >= 8, ran)
    for command in ran:
        done = shell(command, directory)
        expect_equal(done.returncode, 0, '%s: %s' % (command, done.stderr))
        written = re.search(r' -o (\S+)', command)
        if written:
            path = os.path.join(directory, written.group(1))
            expect(os.path.getsize(path) > 0, command)
        else:
            said = done.stdout + done.stderr
            if command == 'profrun html':
                said += ' '.join(content(page) for page in
                                 glob.glob(directory + '/profrun.app.*.html'))
            # If the run is shorter than a tick of the coarse clock, main may have all
            # its time.
            expect(re.search(r'\b(work|main)\b', said), command)


@test
def its_other_commands_exist():
    for command in commands():
        words = shlex.split(command)
        if re.match(r'profrun|gcc|clang', words[0]) or command in NOT_RUN:
            continue
        expect(words[0].startswith('scripts/'), command)
        script = os.path.join(TOP, words[0])
        expect(os.access(script, os.X_OK), command)
        for word in words[1:2]:
            opening = content(words[0]).split('\nset ')[0]
            expect(re.search(r'^# .*(?<!\w)%s(?!\w)' % re.escape(word), opening,
                             re.M), command)


@test
def verbs_and_options_in_its_text_are_those_of_the_help():
    text = re.findall(r'`profrun ([^`]*)`', content('README.md'))
    expect(len(text) >= 4, text)
    for line in text:
        words = line.split()
        verb = words[0] if re.fullmatch('[a-z]+', words[0]) else 'run'
        if verb == 'help':
            continue
        for word in words:
            if word.startswith('-') and not re.match('--help', word):
                expect(re.search(r'(?<![\w-])%s(?![\w-])' % word,
                                 help_of(verb)), line)


@test
def its_report_is_what_the_command_prints():
    report, = blocks('')
    command, rest = re.fullmatch(r'\$ (.*)\n((?:.*\n)*)', report).groups()
    done = shell(command, prepared())
    expect_equal(done.returncode, 0, done.stderr)

    def facts(text):
        """The text without times, and therefore without the order of the functions."""
        lines = re.findall(r'([\d,]+) +(?:< )?[\d.]+ \w+  (\w+ \[app app\.c:\d+\])$',
                           text, re.M)
        head = re.findall(r'\d process, .*|[\d,]+ calls in .*|^ self%.*', text,
                          re.M)
        return sorted(lines), [re.sub(r' +', ' ', line) for line in head]

    expect_equal(facts(done.stderr), facts(rest), command)
    expect_equal([len(part) for part in facts(rest)], [6, 3], 'report')


@test
def each_profile_of_its_table_is_recorded_and_none_is_missing():
    error = subprocess.run(
        [os.path.join(BUILD, 'profrun'), '-p', 'no-name', 'true'],
        capture_output=True, text=True).stderr
    known = re.search(r'there are (.*), and what NAME', error).group(1)
    profiles = [row.strip('`') for row in table('Profiles')]
    expect_equal(sorted({p.split(':')[0] for p in profiles}),
                 sorted(set(known.split(', ')) - {'none'}), 'profiles')
    for profile in profiles:
        done = shell('profrun record -q -p %s -o %s ./app' % (
            profile, re.sub(r'\W', '_', profile)), prepared())
        expect_equal((done.returncode, done.stderr), (0, ''), profile)


@test
def it_names_each_export_format():
    error = subprocess.run([os.path.join(BUILD, 'profrun'), 'export'],
                           capture_output=True, text=True).stderr
    known = re.findall(r'[\w-]+', error.split('which format?')[1].split('\n')[0])
    part = content('README.md').split('\n## Exports\n')[1].split('\n## ')[0]
    for name in known:
        # profrun gprof makes gmon itself.
        expect(re.search(r'\b%s\b' % name, part) or name == 'gmon', name)


@test
def files_and_manual_pages_that_it_names_exist():
    text = content('README.md')
    pages = set(re.findall(r'\b((?:profrun|shim)[a-z-]*)\((\d)\)', text))
    expect(len(pages) >= 8, pages)
    for name, number in pages:
        expect(os.path.exists(os.path.join(
            MANUAL, '%s.%s.scd' % (name, number))), name)
    paths = set(re.findall(r'\b(?:include|shim|hooks|scripts|tests)/[\w./]*\w',
                           text))
    expect(len(paths) >= 6, paths)
    for path in paths:
        expect(os.path.exists(os.path.join(TOP, path)), path)


@test
def each_measurement_and_each_suite_is_described():
    folder = os.path.join(TOP, 'tests', 'bench')
    described = content('tests', 'bench', 'README.md')
    names = [name for name in os.listdir(folder)
             if os.access(os.path.join(folder, name), os.X_OK) and
             os.path.isfile(os.path.join(folder, name))]
    expect(len(names) > 10, names)
    for name in names:
        expect(re.search(r'tests/bench/%s\b' % name, described), name)
    text = content('tests', 'README.md')
    suites = set(re.findall(r"suite: '(\w+)'", ''.join(
        content(path) for path in glob.glob(TOP + '/tests/*/meson.build'))))
    expect_equal(set(re.findall(r'^\| `(\w+)` \|', text, re.M)), suites, 'suites')


if __name__ == '__main__':
    shimtest.main()
