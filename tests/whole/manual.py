"""The manual pages must match --help and the code, completely and without additions."""

import os
import re
import subprocess

import shimtest
from shimtest import need, expect, expect_equal, test

BUILD = os.environ['SHIM_BUILD']
PROFRUN = os.path.join(BUILD, 'profrun')
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                       'scripts', 'manual')
VERBS = ('run', 'stat', 'record', 'report', 'annotate', 'replay', 'export', 'html', 'diff', 'history', 'merge',
         'gprof', 'finish', 'info', 'doctor', 'stack', 'attach', 'detach',
         'ctl', 'tui', 'top', 'reduce')


def profrun(*words, **more):
    return subprocess.run([PROFRUN, *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, **more)


def source(name):
    with open(os.path.join(SOURCES, name + '.scd')) as file:
        return file.read()


def page_of(verb):
    other = {'record': 'run', 'finish': 'gprof'}
    return source('profrun-%s.1' % other.get(verb, verb))


def section(page, title):
    """The text under a heading of any level."""
    found = re.search(r'^#+ %s\n(.*?)(?=^#|\Z)' % re.escape(title), page,
                      re.M | re.S)
    expect(found, title)
    return found.group(1)


def defined(page):
    """The bold words that begin a definition; several are separated by commas."""
    words = set()
    for line in re.findall(r'^(\*.+)\n\t', page, re.M):
        words |= set(re.findall(r'(?:^|, |\|)\*([^*]+)\*', line))
    return words


def options_in_help(text):
    lines = re.findall(r'^(?:  |      )((?:-\w, )?--[a-z-]+)', text, re.M)
    return {word for line in lines for word in line.split(', ')}


@test
def options_of_each_verb_are_those_of_its_page():
    for verb in VERBS:
        if verb == 'ctl':
            continue
        text = profrun(verb, '--help').stdout
        page = page_of(verb)
        more = {'record': 'Of run only', 'gprof': 'Of finish only'}.get(verb)
        if more:
            page = page.replace(section(page, more), '')
        written = {word for word in defined(page) if word.startswith('-')}
        if verb == 'doctor':
            usage = set(re.findall('--[a-z]+', text.splitlines()[0]))
            expect_equal(written, usage | {'--help'}, verb)
            continue
        expect_equal(sorted(written), sorted(options_in_help(text)), verb)
        expect(len(written) >= 2, verb)


@test
def options_of_help_are_taken():
    for verb in ('report', 'annotate', 'export', 'html', 'replay', 'diff',
                 'info'):
        text = profrun(verb, '--help').stdout
        for line in re.findall(r'^  .*?--[a-z].*', text, re.M):
            option, argument = re.match(
                r'.*?(--[a-z-]+)(?: ([A-Z]+))?(?:  |$)', line).groups()
            if option == '--help':
                continue
            done = profrun(verb, option)
            expect_equal('needs an argument' in done.stderr,
                         argument is not None, (verb, option))
            expect('unknown option' not in done.stderr, (verb, option))


@test
def verbs_of_ctl_are_those_of_its_page():
    text = profrun('ctl', '--help').stdout
    words = set()
    for line in re.findall(r'^    (.+?)  ', text, re.M):
        words |= set(re.findall(r'(?:^|\| )([a-z-]+)', line))
        words |= set(re.findall(r'(?<!\w)--?[a-z]+', line))
    written = defined(page_of('ctl')) - {'-h', '--help'}
    expect_equal(sorted(written), sorted(words), 'ctl')


def formats():
    done = profrun('export')
    return re.findall(r'[\w-]+', done.stderr.split('which format?')[1]
                      .split('\n')[0])


@test
def each_format_of_export_is_fuzzed():
    known = formats()
    expect(len(known) > 10, known)
    for name in ('flips.c', 'mutations.c'):
        with open(os.path.join(SOURCES, '..', '..', 'tests', 'fuzz',
                               name)) as file:
            fuzzed = re.findall(r'"export", "([\w-]+)"', file.read())
        expect_equal(sorted(set(fuzzed)), sorted(known), name)


@test
def formats_of_export_are_those_of_its_page():
    known = formats()
    expect_equal(sorted(defined(section(page_of('export'), 'FORMATS'))),
                 sorted(known), 'FORMATS')
    for name in known:
        expect(name in profrun('export', '--help').stdout, name)


@test
def values_of_options_are_those_of_the_pages():
    for verb, option, page in (('report', '--sort', 'report'),
                               ('export', '--value', 'export'),
                               ('diff', '--value', 'diff')):
        text = profrun(verb, '--help').stdout
        help = re.search(r'%s .*\n(?: {23}.*\n)*' % option, text).group(0)
        words = set(re.findall(r'\b(self|total|calls|samples|mean|max|bytes|'
                               r'allocations|peak|leaked|lost|temporary|waits)'
                               r'\b', help))
        body = re.search(r'^\*%s\* .*\n((?:\t.*\n)*)' % option,
                         page_of(page), re.M).group(1)
        expect_equal(sorted(set(re.findall(r'\*([a-z]+)\*', body)) &
                            words), sorted(words), (verb, option))


@test
def profilers_and_their_arguments_are_those_of_the_page():
    names = re.search(r'there are (.*), and what NAME',
                      profrun('-p', 'no-name', 'true').stderr).group(1)
    names = names.split(', ')
    expect(len(names) > 7, names)
    page = source('shim-profilers.7')
    titles = set(re.findall(r'^# (.*)', page, re.M))
    expect_equal(sorted(titles - {'NAME', 'SYNOPSIS', 'DESCRIPTION',
                                  'EXAMPLES', 'SEE ALSO'}),
                 sorted(name.upper() for name in names), 'profilers')
    for name in names:
        body = re.search(r'^# %s\n(.*?)(?=^# |\Z)' % name.upper(), page,
                         re.M | re.S).group(1)
        error = profrun('-p', name + ':?', 'true').stderr
        taken = re.search(r"'\?': %s takes (?!no arguments)(.*)" % name, error)
        words = [] if not taken else [
            re.match(r'[a-z-]+=?', word).group(0)
            for word in taken.group(1).split(', ')]
        if not taken:
            expect('takes no arguments' in error and
                   'takes no arguments' in body, (name, error))
        # Switches of PROFFLAGS begin with -, and clock=cpu contains a value.
        written = {re.match(r'[a-z-]+=?', word).group(0)
                   for word in defined(body) if re.match('[a-z]', word)}
        values = {'wall', 'cpu', 'thread', 'own', 'libunwind', 'both'}
        expect_equal(sorted(written - values), sorted(words), name)


@test
def the_overview_names_each_verb():
    verbs = defined(section(source('profrun.1'), 'VERBS'))
    expect_equal(sorted(verbs), sorted(VERBS + ('help',)), 'VERBS')
    usage = profrun('--help').stdout
    for verb in VERBS:
        expect(re.search(r'^    profrun %s\b' % verb, usage, re.M), verb)
        expect('profrun-%s' % verb in source('profrun.1') or
               verb in ('record', 'finish'), verb)


@test
def variables_are_those_of_the_library():
    with open(os.path.join(SOURCES, '..', '..', 'shim', 'runtime',
                           'config.def')) as file:
        names = re.findall(r'^(?:LONG_)?OPTION\((\w+),', file.read(), re.M)
    text = section(source('profrun.1'), 'ENVIRONMENT')
    for name in names:
        expect('*SHIM_%s*' % name.upper() in text, name)


@test
def pages_that_are_named_exist():
    pages = [name[:-4] for name in os.listdir(SOURCES)
             if name.endswith('.scd')]
    for page in pages:
        text = source(page)
        expect(text.startswith('%s(%s)\n' % tuple(page.rsplit('.', 1))), page)
        for name, number in re.findall(r'\*((?:profrun|shim)[a-z-]*)\*'
                                       r'\((\d)\)', text):
            expect('%s.%s' % (name, number) in pages, (page, name))


@test
def each_page_has_examples():
    for name in os.listdir(SOURCES):
        if name.endswith('.scd'):
            # A line of C or of a shell may begin with #, too.
            found = re.search(r'^# EXAMPLES\n(.*?)^# SEE ALSO', source(name[:-4]),
                              re.M | re.S)
            expect(found and re.search(r'^```\n.+?^```$', found.group(1),
                                       re.M | re.S), name)


@test
def examples_use_verbs_and_options_of_the_help():
    seen = 0
    for name in sorted(os.listdir(SOURCES)):
        if not name.endswith('.scd'):
            continue
        for line in re.findall(r'^(?:\$ )?(?:\w+=\S+ )*profrun (.*)$',
                               source(name[:-4]), re.M):
            words = re.split(r'[;&#]', line)[0].split()
            verb = words.pop(0) if words[0] in VERBS else 'run'
            text = profrun(verb, '--help').stdout
            if verb == 'ctl' and words:
                expect(re.search(r'(?<!\w)%s(?!\w)' % words[1], text), line)
            if verb == 'gprof':     # takes gprof's options
                continue
            for word in words:
                # Options after the program belong to the program.
                if verb in ('run', 'record') and word.startswith('./'):
                    break
                option = re.match(r'--?[A-Za-z][a-z-]*', word)
                if option:
                    expect(re.search(r'(?<![\w-])%s(?![\w-])' % option.group(0),
                                     text), '%s: %s' % (name, line))
                    seen += 1
    expect(seen > 40, seen)


@test
def help_shows_the_page():
    need('man', 'scdoc')
    for words in ('nonsense',), ('run', 'report'):
        expect_equal(profrun('help', *words).returncode, 2, words)
    expect(profrun('help', '--help').stdout.startswith('Usage'), '--help')
    for verb in VERBS + ('profilers', 'recording', 'modules', ''):
        done = profrun('help', verb) if verb else profrun('help')
        expect_equal((done.returncode, done.stderr), (0, ''), verb)
        title = {'profilers': 'shim-profilers(7)', 'modules': 'shim(7)',
                 'recording': 'shim-recording(5)', '': 'profrun(1)',
                 'record': 'profrun-run(1)', 'finish': 'profrun-gprof(1)',
                 }.get(verb, 'profrun-%s(1)' % verb)
        if subprocess.run(['which', 'man'], capture_output=True).returncode:
            expect(verb in done.stdout, verb)
        else:
            expect(done.stdout.lstrip().startswith(title), (verb, done.stdout))


@test
def man_has_nothing_to_complain_of():
    built = os.path.join(BUILD, 'scripts', 'manual')
    need('man', 'scdoc')
    for name in sorted(os.listdir(built)):
        if not re.search(r'\.\d$', name):
            continue
        done = subprocess.run(
            ['man', '--warnings', '-E', 'UTF-8', '-Tutf8', '-Z',
             os.path.join(built, name)], capture_output=True, text=True,
            env=dict(os.environ, MANROFFSEQ='', MANWIDTH='80', LC_ALL='C.UTF-8'))
        expect_equal((done.returncode, done.stderr), (0, ''), name)


@test
def the_examples_that_are_installed_are_those_their_list_has():
    top = os.path.join(SOURCES, '..', '..')
    folder = os.path.join(top, 'tests', 'modules')
    there = set(os.listdir(folder)) - {'README'}
    with open(os.path.join(folder, 'README')) as file:
        listed = set(re.findall(r'^    (\w+\.cc?) ', file.read(), re.M))
    with open(os.path.join(top, 'meson.build')) as file:
        installed = set(re.findall(r"'tests/modules/(\w+\.cc?)'", file.read()))
    expect_equal(listed, there, 'listed')
    expect_equal(installed, there, 'installed')


if __name__ == '__main__':
    shimtest.main()
