#!/usr/bin/env python3
"""allocations.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

tests/programs/allocated.c knows its own allocations, compares them with the callbacks
that it gets, and prints each difference.
"""
import os
import re

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, test

INCLUDE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), 'include')
# Compilers know malloc and may remove calls of it.
FLAGS = ['-I', INCLUDE, '-fno-builtin']


def library(name, text, instrument=False):
    source = shimtest.new_source('source.c', text)
    return shimtest.compile(source, 'gcc', '-O1', ['-shared', '-fPIC', '-fno-builtin'],
                            name=name, instrument=instrument)


def allocated(case, *flags, arguments=(), profile='none', **more):
    program = compile('allocated.c', 'gcc', '-O1', [*FLAGS, *flags],
                      name='allocated' + ''.join(
                          os.path.basename(f) for f in flags))
    done = run([program, case, *arguments], new_directory('recording'),
               profile, **more)
    wrong = re.findall('^wrong: .*', done.stdout, re.M)
    expect(not wrong, '\n'.join(wrong[:10]))
    expect_equal((done.status, done.stderr), (0, ''), 'the program')
    return done.stdout


# Rows M-44, M-46.
@test
def all_allocation_functions_raise_events():
    allocated('family')


# Row 43 of section 2.1.
@test
def a_block_keeps_its_number_when_it_is_reallocated():
    allocated('changed')


@test
def failed_allocations_raise_no_event():
    allocated('failing')


@test
def callbacks_may_allocate():
    allocated('inside')


@test
def blocks_are_given_back_by_other_threads():
    allocated('threads')


@test
def a_fork_child_allocates_whatever_other_threads_did():
    allocated('forks')


@test
def signal_handlers_allocate():
    allocated('signals')


# Row C-4.
@test
def a_walk_that_was_ended_begins_anew():
    allocated('walk')


@test
def all_of_many_blocks_are_found():
    allocated('many')


# Row M-46.
@test
def events_distinguish_operator_new_from_malloc():
    path = new_directory('kinds') + '/kinds.cc'
    with open(path, 'w') as file:
        file.write(KINDS)
    for family in 'gcc', 'clang':
        program = compile(path, family, '-O1',
                          ['-I', INCLUDE, '-fno-builtin', '-std=c++17'],
                          name='kinds')
        done = run([program], new_directory('recording'), 'none')
        expect_equal((done.status, done.stdout), (0, '1 4 4 4 4 3 0 2\n'),
                     'kinds')


KINDS = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include <shim/allocations.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_enable_allocations
#pragma weak shim_profiler_on_allocation
#pragma weak shim_profiler_on_reallocation

static unsigned kinds[100], count;

extern "C" void on_allocation(struct shim_profiler *, const shim_block *block)
{
        kinds[count++ % 100] = block->kind;
}

extern "C" void on_reallocation(struct shim_profiler *, const shim_block *,
                                const shim_block *block)
{
        kinds[count++ % 100] = block->kind;
}

__attribute__((constructor)) static void start()
{
        shim_profiler_handle *handle = shim_profiler_create(nullptr);

        shim_profiler_enable_allocations(handle);
        shim_profiler_on_allocation(handle, on_allocation);
        shim_profiler_on_reallocation(handle, on_reallocation);
}

struct alignas(64) Big { char bytes[100]; };

int main()
{
        void *volatile kept[8];

        count = 0;
        kept[0] = calloc(3, 3);
        kept[1] = new int;
        kept[2] = new int[20];
        kept[3] = new (std::nothrow) int;
        kept[4] = new Big;
        kept[5] = aligned_alloc(64, 128);
        kept[6] = malloc(1);
        kept[6] = realloc(kept[6], 1000);
        for (unsigned i = 0, all = count; i < all; i++)
                printf(i + 1 < all ? "%u " : "%u\n", kinds[i]);
}
"""


# Rows 42 to 44 of section 2.1.
@test
def partial_unmaps_raise_events_for_their_parts():
    program = compile('mapping.c', 'gcc', '-O1', FLAGS)
    done = run([program], new_directory('recording'), 'none')
    expect_equal((done.status, done.stdout, done.stderr), (0, '', ''),
                 'the program')


# Row M-45.
@test
def calls_bypass_shim_without_subscribers():
    allocated('unheard')
    allocated('unheard', '-Wl,-z,now')
    allocated('unheard', '-no-pie')
    loaded = library('libcalls.so', """
#define _GNU_SOURCE
#include "slot.h"
#include <stdlib.h>
void *get(void) { return malloc(1); }
const char *called(void) { return called_object(); }
""", instrument=True)
    # shim notices the library at its first hooked call.
    allocated('unheard', arguments=['libc.so', loaded],
              profile='calltree:counts')


@test
def before_main_and_after_exit_handlers():
    text = allocated('ending')
    expect_equal(text, 'exit handler\ntold 3 59876 3 0 live 0\n', 'told')


# A library's constructors run before ours.
@test
def allocations_before_the_start_raise_events():
    early = library('libearly.so', """
#include <stdlib.h>
static void *volatile kept;
__attribute__((constructor)) static void first(void)
{
        free(malloc(100));
        for (int i = 0; i < 1000; i++)
                kept = malloc(11);
        kept = realloc(kept, 200);
}
""")
    text = allocated('ending', '-Wl,--no-as-needed', early)
    expect_equal(text, 'exit handler\ntold %d %d 4 1 live 1000\n'
                 % (1004, 100 + 11000 + 59876), 'told')


# The allocator of this library is not libc's: a block that goes to the wrong one ends
# the program.
OTHER = """
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

struct head { void *base; size_t size; uint64_t magic; uint64_t unused; };

static struct head *head_of(void *pointer)
{
        struct head *head = (struct head *)pointer - 1;

        if (head->magic != 0x1234567887654321)
                abort();
        return head;
}

void *memalign(size_t alignment, size_t size)
{
        size_t room = alignment < 32 ? 32 : alignment;
        char *base = size > (size_t)1 << 60 ? NULL :
                     __libc_memalign(room, size + room);

        if (!base) {
                errno = ENOMEM;
                return NULL;
        }
        ((struct head *)(base + room))[-1] =
                (struct head){ base, size, 0x1234567887654321, 0 };
        return base + room;
}

void *malloc(size_t size) { return memalign(16, size); }
void *aligned_alloc(size_t a, size_t size) { return memalign(a, size); }
void *valloc(size_t size) { return memalign(4096, size); }
void *pvalloc(size_t size) { return memalign(4096, size); }

void *calloc(size_t count, size_t size)
{
        size_t all;
        void *pointer;

        if (__builtin_mul_overflow(count, size, &all)) {
                errno = ENOMEM;
                return NULL;
        }
        pointer = memalign(16, all);
        return pointer ? memset(pointer, 0, all) : NULL;
}

void free(void *pointer)
{
        if (!pointer)
                return;
        head_of(pointer)->magic = 0;
        __libc_free(((struct head *)pointer)[-1].base);
}

void *realloc(void *pointer, size_t size)
{
        void *moved;
        size_t before;

        if (pointer && size == 0) {
                free(pointer);
                return NULL;
        }
        moved = malloc(size);
        if (!moved || !pointer)
                return moved;
        before = head_of(pointer)->size;
        memcpy(moved, pointer, before < size ? before : size);
        free(pointer);
        return moved;
}

void *reallocarray(void *pointer, size_t count, size_t size)
{
        size_t all;

        if (__builtin_mul_overflow(count, size, &all)) {
                errno = ENOMEM;
                return NULL;
        }
        return realloc(pointer, all);
}

int posix_memalign(void **pointer, size_t alignment, size_t size)
{
        int before = errno;
        void *got;

        if (alignment % sizeof(void *) || (alignment & (alignment - 1)))
                return EINVAL;
        got = memalign(alignment, size);
        errno = before;
        if (!got)
                return ENOMEM;
        *pointer = got;
        return 0;
}
"""


@test
def another_allocator_behind_us_is_used():
    other = library('libother.so', OTHER)
    for case in 'family', 'failing', 'threads', 'many', 'unheard':
        allocated(case, LD_PRELOAD='%s:%s' % (shimtest.library, other),
                  arguments=['libother'] if case == 'unheard' else [])


if __name__ == '__main__':
    shimtest.main()
