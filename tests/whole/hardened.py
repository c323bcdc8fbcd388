#!/usr/bin/env python3
"""hardened.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Security settings of our objects, libraries and programs, in the linker's and the
processor's notes.
"""
import glob
import os
import platform
import re
import subprocess

import shimtest
from shimtest import Skipped, expect, expect_equal, test

BUILD = os.environ['SHIM_BUILD']
PROGRAMS = ['profrun', 'scripts/run/shim-run', 'scripts/report/shim-report']


def readelf(*words):
    return subprocess.run(['readelf', '-W', *words], capture_output=True,
                          text=True, check=True).stdout


def has_ibt(path):
    return re.search(r'x86 feature:.*\bIBT\b', readelf('-n', path)) is not None


def need_x86():
    if platform.machine() != 'x86_64':
        raise Skipped('such branches are those of x86-64')


@test
def each_object_says_where_indirect_branches_go():
    need_x86()
    objects = [path for part in ('shim', 'hooks', 'scripts')
               for path in glob.glob('%s/%s/**/*.o' % (BUILD, part),
                                     recursive=True)]
    assembly = {os.path.basename(path) for path in objects
                if path.endswith('.S.o')}
    expect(len(objects) > 200 and len(assembly) >= 4, assembly)
    expect_equal([path for path in objects if not has_ibt(path)], [], 'without')


@test
def libraries_say_it_where_those_of_the_system_do():
    """The linker drops the note if one of libc's objects has none."""
    need_x86()
    startup = [subprocess.run(['gcc', '-print-file-name=' + name],
                              capture_output=True, text=True,
                              check=True).stdout.strip()
               for name in ('crti.o', 'crtbeginS.o', 'crtendS.o', 'crtn.o')]
    wanted = all(has_ibt(path) for path in startup
                 if 'Machine' in readelf('-h', path))
    for name in 'libshim.so.0', 'libshim-debuginfo.so':
        expect_equal(has_ibt('%s/shim/%s' % (BUILD, name)), wanted, name)


@test
def functions_that_tables_lead_to_begin_where_branches_may_go():
    need_x86()
    path = BUILD + '/shim/libshim.so.0'
    code = subprocess.run(['objdump', '-d', '--no-show-raw-insn', path],
                          capture_output=True, text=True, check=True).stdout
    begins = dict(re.findall(r'^[0-9a-f]+ <(\w+)>:\n +[0-9a-f]+:\t(\w+)', code,
                             re.M))
    exported = re.findall(r' FUNC +(?:GLOBAL|WEAK) +DEFAULT +\d+ ([\w.]+?)(?:@|\n)',
                          readelf('--dyn-syms', path))
    hooks = [name for name in begins if re.match(
        r'(tree_(counts|exact|traced)_(enter|leave)|plan_\w+|leaves_sort|'
        r'table_nothing|start_main|edge_thread_start)$', name)]
    expect(len(exported) > 100 and len(hooks) > 10, hooks)
    expect_equal([name for name in hooks + exported
                  if begins.get(name, 'endbr64') != 'endbr64'], [], 'others')


@test
def programs_are_hardened():
    for program in PROGRAMS:
        path = os.path.join(BUILD, program)
        symbols = readelf('--dyn-syms', path)
        if '__asan_init' in symbols:
            raise Skipped('sanitizers have other ways')
        expect('DYN' in readelf('-h', path), '%s: is not PIE' % program)
        expect('GNU_RELRO' in readelf('-l', path), '%s: RELRO' % program)
        expect('NOW' in readelf('-d', path), '%s: BIND_NOW' % program)
        expect('__stack_chk_fail' in symbols, '%s: stack protector' % program)
        expect(re.search(r'__\w+_chk@', symbols), '%s: FORTIFY' % program)


if __name__ == '__main__':
    shimtest.main()
