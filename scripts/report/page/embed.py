#!/usr/bin/env python3
"""embed.py PAGE.html STYLE.css SCRIPT.js... OUT.c

Puts the parts of the page into one text and writes it as two C strings: the text before
the numbers and the text after them.  The page allows only these scripts and styles, by
their SHA-256, and no network.
"""
import base64
import hashlib
import sys


def digest(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def c_string(name, text):
    lines = []
    for line in text.splitlines(keepends=True):
        escaped = line.translate({ord('\\'): '\\\\', ord('"'): '\\"',
                                  ord('\n'): '\\n'})
        lines.append('"%s"' % ''.join(
            chr(byte) if byte < 128 else '\\%03o' % byte
            for byte in escaped.encode()))
    return 'extern const char %s[];\nconst char %s[] =\n%s;\n' % (
        name, name, '\n'.join(lines))


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def main(page, style, *rest):
    scripts, out = rest[:-1], rest[-1]
    # One function encloses all scripts, so the page has no other global names.
    script = "'use strict';\n(() => {\n%s})();\n" % ''.join(
        '\n' + read(path) for path in scripts)
    styles = read(style)
    for text in script, styles:
        if '</' in text:
            sys.exit('embed.py: "</" would end the element')
    policy = "default-src 'none'; script-src 'sha256-%s'; style-src " \
        "'sha256-%s'; base-uri 'none'; form-action 'none'" % (
            digest(script), digest(styles))
    text = read(page)
    for place, part in ('@POLICY@', policy), ('@STYLE@', styles), \
            ('@SCRIPT@', script):
        if text.count(place) != 1:
            sys.exit('embed.py: %s: wants one %s' % (page, place))
        text = text.replace(place, part)
    begin, _, end = text.partition('@NUMBERS@')
    with open(out, 'w', encoding='ascii') as file:
        file.write('/* Made by embed.py of %s. */\n' % page.rsplit('/', 1)[-1])
        file.write(c_string('html_begin', begin))
        file.write(c_string('html_end', end))


main(*sys.argv[1:])
