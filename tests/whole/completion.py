"""The completions of bash, zsh and fish for profrun."""

import os
import re
import subprocess

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, record, test

BUILD = os.environ['SHIM_BUILD']
PROFRUN = os.path.join(BUILD, 'profrun')
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                      'scripts', 'profrun.bash')


def proposed(*words, directory=None):
    """The completions for the last word."""
    quoted = ' '.join("'%s'" % word for word in (PROFRUN,) + words)
    done = subprocess.run(
        ['bash', '-uc', '. "$1"; COMP_WORDS=(%s); COMP_CWORD=%d; '
         '_profrun "$2"; printf "%%s\\n" "${COMPREPLY[@]}"' % (
             quoted, len(words)), 'bash', SCRIPT, PROFRUN],
        cwd=directory or new_directory('empty'), capture_output=True, text=True)
    expect_equal((done.returncode, done.stderr), (0, ''), words)
    return [line for line in done.stdout.splitlines() if line]


def help_of(verb):
    return subprocess.run([PROFRUN, verb, '--help'], capture_output=True,
                          text=True, check=True).stdout


@test
def verbs_are_those_of_profrun():
    usage = subprocess.run([PROFRUN, '--help'], capture_output=True, text=True,
                           check=True).stdout
    verbs = set(re.findall(r'^    profrun (\w+)', usage, re.M))
    expect_equal(verbs - set(proposed('')), set(), 'verbs')
    expect(len(verbs) > 10, verbs)


@test
def formats_are_those_of_export():
    formats = proposed('export', '')
    expect(len(formats) > 10, formats)
    done = subprocess.run([PROFRUN, 'export'], capture_output=True, text=True)
    known = re.findall(r'[\w-]+', done.stderr.split('which format?')[1]
                       .split('\n')[0])
    expect_equal(sorted(formats), sorted(known), 'formats')


@test
def profiles_are_those_of_run():
    text = help_of('run')
    names = set(re.findall(r'^ {29}([a-z]+)(?:\[|:|  )', text, re.M))
    known = {name.split(':')[0] for name in proposed('-p', '')}
    expect_equal(names, known, 'profiles')
    expect_equal(proposed('-p', 'calltree', ':', 'e'), ['exact'], 'a colon')
    expect_equal(sorted(proposed('-p', 'calltree', ':')),
                 ['calibrate', 'counts', 'exact'], 'a colon')


@test
def options_are_those_of_the_verb():
    for verb, some in (('run', '--profile'), ('report', '--callers'),
                       ('export', '--value'), ('replay', '--limit')):
        options = proposed(verb, '--')
        expect(some in options, (verb, options))
        for option in options:
            expect(option in help_of(verb), option)
    expect_equal(proposed('report', '--callee'), ['--callees'], 'one')
    expect('--profile' in proposed('--p'), 'without a verb')


PF_KTHREAD = 0x200000


def is_of_the_kernel(pid):
    try:
        with open('/proc/%s/stat' % pid) as file:
            return bool(int(file.read().rpartition(')')[2].split()[6]) & PF_KTHREAD)
    except OSError:
        return False            # it has ended


@test
def values_and_recordings_are_proposed():
    expect_equal(proposed('report', '--format', 'j'), ['json'], 'format')
    expect('waits' in proposed('export', 'folded', '--value', 'w'), 'value')
    directory = new_directory('recordings')
    output = record([compile('names.c')]).output
    os.symlink(output, os.path.join(directory, 'mine'))
    os.mkdir(os.path.join(directory, 'minor'))
    for verb in 'report', 'diff', 'html':
        expect_equal(proposed(verb, 'mi', directory=directory), ['mine'], 'recordings')
    expect_equal(proposed('export', 'json', '', directory=directory), ['mine'], 'export')
    functions = proposed('report', 'mine', '--callers', '', directory=directory)
    expect('main' in functions and len(functions) > 1, functions)
    expect_equal(proposed('report', 'mine', '--callees', 'mai', directory=directory),
                 ['main'], 'functions of the recording')
    for verb in 'stack', 'attach':
        pids = proposed(verb, '')
        expect(str(os.getpid()) in pids and
               not any(is_of_the_kernel(pid) for pid in pids if pid.isdigit()),
               (verb, pids))
    sleeper = subprocess.Popen(
        [PROFRUN, '-q',
         '--no-report', '-p', 'sampling', '-o', directory + '/asleep', 'sh', '-c',
         'echo; read line'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sleeper.stdout.readline()
    for verb in 'ctl', 'top', 'detach':
        pids = proposed(verb, '')
        expect(pids and str(os.getpid()) not in pids, (verb, pids))
    sleeper.communicate(b'\n')


def of_zsh(*words, directory):
    """What zsh completes: its own functions only print what they get."""
    shimtest.need('zsh')
    done = subprocess.run(
        ['zsh', '-fc', 'compdef() {}; _files() { print :files }; '
         '_command_names() { print :commands }; '
         '_describe() { print -rl -- "${(@P)3}" }; source $1; shift; words=("$@"); '
         'CURRENT=$#; _profrun', 'zsh', SCRIPT.replace('.bash', '.zsh'), PROFRUN, *words],
        cwd=directory, capture_output=True, text=True)
    expect_equal((done.returncode > 1, done.stderr), (False, ''), words)
    return re.sub(r'(?<!\\):.*', '', done.stdout.replace(':files', '')
                  .replace(':commands', ''), flags=re.M).replace('\\', '').split()


def of_fish(*words, directory):
    shimtest.need('fish')
    done = subprocess.run(
        ['fish', '--no-config', '-c', 'source $argv[1]; function profrun; end; '
         'complete -C $argv[2]', SCRIPT.replace('.bash', '.fish'),
         ' '.join(("'%s'" % PROFRUN,) + words)], cwd=directory, capture_output=True, text=True,
        env=dict(os.environ, HOME=directory, PATH=BUILD + ':' + os.environ['PATH']))
    expect_equal(done.stderr, '', words)
    return [line.split('\t')[0] for line in done.stdout.splitlines()]


@test
def zsh_and_fish_propose_the_same_as_bash():
    directory = new_directory('shells')
    os.symlink(record([compile('names.c')]).output, os.path.join(directory, 'mine'))
    for words in (('export', 'per'), ('report', 'mi'), ('report', '--calle'),
                  ('report', 'mine', '--callers', 'mai'), ('diff', '--format', 'j'),
                  ('-p', 'trace'), ('help', 'st')):
        wanted = sorted(proposed(*words, directory=directory))
        expect(wanted, words)
        expect_equal(sorted(of_zsh(*words, directory=directory)), wanted,
                     'zsh %s' % (words,))
        expect_equal(sorted(of_fish(*words, directory=directory)), wanted,
                     'fish %s' % (words,))


if __name__ == '__main__':
    shimtest.main()
