"""
What mutate and mutate_unit share: the changes that they make, the copy of the sources
in which they make them, and the file of the results.
"""
import glob
import hashlib
import json
import math
import os
import re
import resource
import shutil
import signal

PARTS = ['shim', 'hooks', 'scripts', 'include', 'tests', '.ci']
FILES = ['meson.build', 'meson_options.txt', 'README.md', 'CHANGELOG.md', 'LICENSE']

# Other processors, and code that only a failing machine reaches.
NOT_THESE = re.compile(r'/arch/(aarch64|generic)/')
NOT_COUNTED = ('not compiled', 'same', 'equivalent')
GIB = 1 << 30


# --- changes ---

def swap(old, new):
    return re.compile(old), lambda match: new


def negate(match):
    return '%s(!(%s))' % (match[1], match[2])


def plus_one(match):
    return str(int(match[0]) + 1)


# The text that a change looks for in a line, and its replacement.
OPERATORS = [
    ('< is <=', *swap(r'(?<= )<(?= )', '<=')),
    ('<= is <', *swap(r'(?<= )<=(?= )', '<')),
    ('> is >=', *swap(r'(?<= )>(?= )', '>=')),
    ('>= is >', *swap(r'(?<= )>=(?= )', '>')),
    ('== is !=', *swap(r'(?<= )==(?= )', '!=')),
    ('!= is ==', *swap(r'(?<= )!=(?= )', '==')),
    ('&& is ||', *swap(r'(?<= )&&(?= |$)', '||')),
    ('|| is &&', *swap(r'(?<= )\|\|(?= |$)', '&&')),
    ('+ is -', *swap(r'(?<= )\+(?= )', '-')),
    ('- is +', *swap(r'(?<= )-(?= )', '+')),
    ('+= is -=', *swap(r'(?<= )\+=(?= )', '-=')),
    ('-= is +=', *swap(r'(?<= )-=(?= )', '+=')),
    ('<< is >>', *swap(r'(?<= )<<(?= )', '>>')),
    ('& is |', *swap(r'(?<= )&(?= )', '|')),
    ('++ is --', *swap(r'\+\+', '--')),
    ('condition negated', re.compile(r'(\b(?:if|while) )\((.*)\)(?=( \{)?$)'),
     negate),
    ('not without !', *swap(r'(?<=[ (])!(?=[a-z(])', '')),
    ('true is false', *swap(r'\btrue\b', 'false')),
    ('false is true', *swap(r'\bfalse\b', 'true')),
    ('a number is one more', re.compile(r'(?<=[ (\[])\d+(?=[;,) \]])'), plus_one),
    ('no statement', re.compile(r'(?<=\t)(?!return|case|default|break|goto)'
                                r'[a-z_][\w\->.\[\]]*(?:\(.*\)| [-+|&]?= .*);$'),
     lambda match: ';'),
    ('no break', *swap(r'(?<=\t)(break|continue);', ';')),
    ('return of nothing', re.compile(r'(?<=return )(?!0;|NULL;|false;)[^;]+(?=;)'),
     lambda match: '0'),
]


def code_lines(path):
    """(number, line) without comments, preprocessor, tables and declarations."""
    with open(path, encoding='utf-8') as file:
        lines = file.read().split('\n')
    is_comment = is_directive = False
    for number, line in enumerate(lines, 1):
        begins = line.lstrip()
        if is_comment or begins.startswith('/*'):
            is_comment = '*/' not in line
            continue
        was_directive, is_directive = is_directive, (
            (begins.startswith('#') or is_directive) and line.endswith('\\'))
        if was_directive or begins.startswith('#'):
            continue
        # Statements are indented; texts for people are not changed.
        if not line.startswith('\t') or '"' in line or "'" in line:
            continue
        if re.match(r'\s*(static|extern|const|struct|enum|union|unsigned|'
                    r'__asm__|_Static_assert)\b', line):
            continue
        yield number, re.sub(r'\s*/\*.*?\*/\s*$', '', line)


def changes(source):
    """All that could be made in the sources at @source."""
    for part in ('shim', 'hooks'):
        for path in sorted(glob.glob(os.path.join(source, part, '**', '*.c'),
                                     recursive=True)):
            name = os.path.relpath(path, source)
            if NOT_THESE.search('/' + name):
                continue
            for number, line in code_lines(path):
                for what, pattern, put in OPERATORS:
                    for match in pattern.finditer(line):
                        yield {'file': name, 'line': number, 'what': what,
                               'old': line, 'new': line[:match.start()] +
                               put(match) + line[match.end():]}


def key_of(change):
    text = '%(file)s:%(line)d:%(what)s:%(old)s:%(new)s' % change
    return hashlib.sha1(text.encode()).hexdigest()[:12]


# --- the copy ---

def copy_sources(source, target):
    shutil.rmtree(target, ignore_errors=True)
    for part in PARTS:
        shutil.copytree(os.path.join(source, part), os.path.join(target, part),
                        symlinks=True,
                        ignore=shutil.ignore_patterns('__pycache__'))
    for name in FILES:
        shutil.copy2(os.path.join(source, name), target)


def lines_of(source, name):
    with open(os.path.join(source, name), encoding='utf-8') as file:
        return file.read().split('\n')


def limit():
    resource.setrlimit(resource.RLIMIT_DATA, (8 * GIB, 8 * GIB))
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 * GIB, 8 * GIB))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A shell without job control ignores these in what it starts in the background.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


# --- results ---

def read_results(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {r['key']: r for r in map(json.loads, file)}


def summary(results):
    counts, by = {}, {}
    for result in results:
        counts[result['result']] = counts.get(result['result'], 0) + 1
        if 'test' in result:
            driver = result['test'].split(': ')[0]
            by[driver] = by.get(driver, 0) + 1
        if result['result'] in ('survived', 'unreached'):
            print('%(result)s: %(file)s:%(line)d: %(what)s' % result)
            print('    - %s\n    + %s' % (result['old'].strip(),
                                          result['new'].strip()))
    counted = sum(n for r, n in counts.items() if r not in NOT_COUNTED)
    found = counts.get('found', 0)
    print('found by:', ', '.join('%s %d' % (name, by[name]) for name in
                                 sorted(by, key=lambda n: -by[n])))
    print('%d changes, %d found (%.1f %%, 95 %% interval %.1f to %.1f); %s' % (
        counted, found, 100 * found / max(counted, 1), *interval(found, counted),
        counts))


def interval(found, counted):
    """Wilson's interval of a share, in percent."""
    if not counted:
        return 0, 100
    share, z = found / counted, 1.96
    middle = share + z * z / (2 * counted)
    wide = z * math.sqrt(share * (1 - share) / counted + (z / (2 * counted)) ** 2)
    scale = 100 / (1 + z * z / counted)
    return scale * (middle - wide), scale * (middle + wide)
