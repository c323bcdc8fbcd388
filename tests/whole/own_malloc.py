#!/usr/bin/env python3
"""own_malloc.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

A program with an allocator of its own counts its callers: nothing in shim may call it.
The loader's pending error message must survive, too.
"""
import shimtest
from shimtest import add_test, compile, run_both, test

PROFILES = ['none', 'calltree:counts', 'calltree', 'calltree:exact', 'trace',
            'memory', 'memory:period=512K', 'locks', 'exceptions', 'sampling',
            'pchist']


def plugin():
    return compile('plugin.c', flags=['-shared', '-fPIC', '-DPLUGIN=alpha'],
                   name='libalpha.so')


def check(profile):
    run_both([compile('counting.c'), plugin()], profile)


for name in PROFILES:
    add_test('the_programs_malloc_is_not_called_by_' + name,
             lambda name=name: check(name))


@test
def an_exception_in_an_opened_library_leaves_the_loaders_text():
    """The C++ library is not the program's own: shim looks for it when it throws."""
    thrower = compile('thrower.cc', flags=['-shared', '-fPIC'],
                      name='libthrower.so')
    program = compile('told.c')
    for profile in ('calltree:counts', 'exceptions'):
        run_both([program, thrower], profile)


if __name__ == '__main__':
    shimtest.main()
