#!/usr/bin/env python3
"""damaged_values.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Damaged descriptions of values, and damaged records: the report prints a message for
each, and only the values concerned become unknown.
"""
import os
import shutil
import struct

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, record, test
from traced_values import ALL, entries, files_of, replay

# The tests of the imported module do not run here.
shimtest.tests.clear()

TYPE, ARGUMENTS, RESULT = 1, 2, 3       # enum shim_values_kind
RAW, TEXT, CUT, MISSING = 0, 1, 2, 0x40
CHUNKS, CHUNK = 44, 48                  # in struct shim_file
LIST = struct.Struct('<6I')             # struct shim_value_list; its values follow
VALUE = struct.Struct('<II')            # struct shim_value

# What truth(true) received: an ARGUMENTS_RAW of 6 bytes, of description 1.
GOT = bytes([18 << 2, 3, 1, 0, RAW, 1])
UNDESCRIBED = 'arguments or a result that N.values does not describe'
DAMAGED = 'a damaged description of values: they are unknown'
NO_ENTRY = 'not a description of values; the rest is unknown'

recorded = {}


def recording():
    if not recorded:
        output = record([compile('traced_types.c')], ALL).output
        recorded['output'] = output
        recorded['lines'] = replay(output)[0]
    return recorded['output']


def changed(change, change_trace=None):
    """The output of replay after @change(N.values) and @change_trace(N.trace)."""
    copy = os.path.join(new_directory('damaged'), 'recording')
    shutil.copytree(recording(), copy)
    for kind, how in (('values', change), ('trace', change_trace)):
        path, = files_of(copy, kind)
        with open(path, 'rb') as file:
            data = bytearray(file.read())
        if how:
            how(data)
        with open(path, 'wb') as file:
            file.write(data)
    return replay(copy)


def end_of(data):
    at, _, size = list(entries(data))[-1]
    return at + size


def first(data, kind):
    """The offset of the first entry of @kind: truth's, or the type bool."""
    return next(at for at, k, _ in entries(data) if k == kind)


def set_word(data, at, value):
    struct.pack_into('<I', data, at, value)


def list_of(*types, function=1, kind=ARGUMENTS, count=None, size=None, name=0):
    """A description that replaces the one of truth's arguments."""
    values = b''.join(VALUE.pack(type, name) for type in types)
    return LIST.pack(kind, size or LIST.size + len(values), 1, function,
                     len(types) if count is None else count, 0) + values


def append(data, entry):
    at = end_of(data)
    data[at:at + len(entry)] = entry


def check(what, change, call, message, change_trace=None):
    """Only the first call changes: it becomes @call."""
    lines, said = changed(change, change_trace)
    expect_equal(lines[0], call, what)
    expect_equal(lines[1:], recorded['lines'][1:], what + ': the others')
    expect(message in said if message else said == '', what + ': ' + said)
    return said


# --- descriptions ---

@test
def a_list_that_cannot_be_is_damage():
    def word(offset, value):
        return lambda data: set_word(data, first(data, ARGUMENTS) + offset, value)
    for what, change in (
            ('number 0', word(8, 0)), ('number 65536', word(8, 65536)),
            ('more values than a function has', word(16, 0x20000000)),
            ('a name in its values', word(28, 8)),
            ('a name behind it', word(28, 48))):
        said = check(what, change, 'truth(<unknown>) = true;', DAMAGED)
        expect(UNDESCRIBED in said, said)

    def unended(data):
        at = first(data, ARGUMENTS)
        data[at + 32:at + 40] = b'x' * 8
    check('a name that does not end', unended, 'truth(<unknown>) = true;', DAMAGED)
    # After this entry there are only zeros, which would be read as values.
    for what, entry in (('values behind it', list_of(1, count=3)),
                        ('13 values', list_of(*[0] * 13))):
        check(what, lambda data: append(data, entry),
              'truth(value = true) = true;', DAMAGED)


@test
def a_type_that_cannot_be_is_damage():
    for what, offset, value in (('number 0', 8, 0), ('number 65536', 8, 65536),
                                ('a tree that is larger', 16, 72)):
        lines, said = changed(lambda data: set_word(
            data, first(data, TYPE) + offset, value))
        wrong = [got for got, was in zip(lines, recorded['lines']) if got != was]
        expect_equal(wrong, [
            'truth(value = <unknown>) = <unknown>;',
            "many(a = 'a', b = 2, c = 3, d = 4, e = 5, f = 6, g = <unknown>);"],
            what)
        expect(DAMAGED in said and UNDESCRIBED in said, said)


NODE, PART = struct.Struct('<QIIIIQBBBBBBH'), struct.Struct('<qIIBBBxI')
POINTER, STRUCT = 8, 13                 # enum shim_type_kind
WRAPPER = 3                             # enum shim_typetree_form


def type_of(size, kind, form=0, parts=()):
    """An entry that replaces bool's, with such a tree: one number at its bottom."""
    tree = NODE.pack(size, 0, 0, 0, len(parts), 0, kind, form, *[0] * 5) + \
        NODE.pack(8, 0, 0, 0, 0, 0, 4, *[0] * 6) + b''.join(
            PART.pack(offset, 0, 1, *[0] * 4) for offset in parts) + bytes(8)
    tree = struct.pack('<4I', 16 + len(tree), 2, len(parts), 8) + tree
    return struct.pack('<4I', TYPE, 16 + len(tree), 1, 0) + tree


@test
def a_type_with_values_outside_of_its_bytes_is_damage():
    for what, size, kind, form, parts in (
            ('no bytes', 0, STRUCT, 0, ()),
            ('too many', 264, STRUCT, 0, ()),
            ('a field behind it', 8, STRUCT, 0, (1 << 20,)),
            ('an address that is another thing', 8, POINTER, WRAPPER, (1 << 20,))):
        entry = type_of(size, kind, form, parts)
        check(what, lambda data: append(data, entry), recorded['lines'][0],
              DAMAGED)
    lines, said = changed(lambda data: append(data, type_of(1, STRUCT)))
    expect_equal((lines[0], said), ('truth(value = {}) = {};', ''), 'one that is')


@test
def an_invalid_description_ends_its_chunk():
    for size in (0, 8, 44, 1 << 20):
        def change(data):
            # The type of letter's argument is the fourth entry.
            set_word(data, list(entries(data))[3][0] + 4, size)
        lines, said = changed(change)
        expect_equal(lines[:2], [recorded['lines'][0],
                                 'letter(<unknown>) = <unknown>;'], size)
        expect_equal({line.split('(')[1] for line in lines[1:]},
                     {'<unknown>) = <unknown>;', '<unknown>);'}, size)
        expect(NO_ENTRY in said, '%d: %s' % (size, said))


@test
def readers_skip_unknown_descriptions():
    said = check('kind 9', lambda data: set_word(data, first(data, ARGUMENTS), 9),
                 'truth(<unknown>) = true;', UNDESCRIBED)
    expect('.values' not in said.replace('N.values', ''), said)


@test
def all_chunks_are_read_and_missing_ones_reported():
    def split(data, offset=None):
        at = list(entries(data))[20][0]
        _, size, address = struct.unpack_from('<QQQ', data, CHUNK)
        set_word(data, CHUNKS, 2)
        struct.pack_into('<QQQQQQ', data, CHUNK, 4096, at - 4096, address,
                         offset or at, size - (at - 4096), address)
    lines, said = changed(split)
    expect_equal((lines, said), (recorded['lines'], ''), 'two chunks')
    for offset in (1 << 40, 4104):
        lines, said = changed(lambda data: split(data, offset))
        expect_equal(lines[:2], recorded['lines'][:2], 'what is in the first')
        expect('nothing(<unknown>) = <unknown>;' in lines, lines)
        wanted = ('cut at offset 65536: chunk 1 should reach'
                  if offset > 65536 else 'chunk 1 is invalid')
        expect(wanted in said, said)


# --- records ---

def put(got):
    def change(data):
        at = data.find(GOT)
        expect(at > 0, 'no record of truth(true)')
        data[at:at + len(got)] = got
    return change


@test
def records_that_say_less_than_they_should_are_unknown_from_there_on():
    twice = lambda data: append(data, list_of(1, 1))
    for what, change, got, text in (
            ('nothing', None, bytes([18 << 2, 2, 1, 0, 0, 0]),
             'value = <unknown>'),
            ('one of two', twice, GOT, 'true, <unknown>'),
            ('not even how', twice, GOT[:4] + bytes([MISSING | 4, RAW]),
             '<optimized out>, <unknown>'),
            ('a text without its size', twice,
             GOT[:4] + bytes([MISSING | 4, TEXT]),
             '<optimized out>, <unknown>'),
            ('a text that is longer', None, GOT[:4] + bytes([TEXT, 255]),
             'value = <unknown>'),
            ('a value that is longer', lambda data: append(data, list_of(5)),
             GOT, '<unknown>'),
            ('a type that is not there', lambda data: append(
                data, list_of(60000)), GOT, '<unknown>'),
            ('a type of number 0', lambda data: append(data, list_of(0)), GOT,
             '<unknown>'),
            ('a description that is not there', None,
             GOT[:2] + b'\xf0\xff' + GOT[4:], '<unknown>'),
            ('a reason that is none', None,
             GOT[:4] + bytes([MISSING | 63, 0]), 'value = <unknown>'),
            ('a way that is none', None, GOT[:4] + bytes([7, 0]),
             'value = <unknown>')):
        check(what, change, 'truth(%s) = true;' % text, UNDESCRIBED, put(got))


@test
def values_without_room_are_three_dots_to_the_end():
    check('cut', lambda data: append(data, list_of(1, 1, 1)),
          'truth(...) = true;', '', put(GOT[:4] + bytes([CUT, RAW])))


@test
def each_reason_of_unavailability_has_a_text():
    for reason, words in enumerate((
            'available', 'none', 'no debug information', 'not understood',
            'optimized out', 'overwritten', 'inlined', 'does not return here',
            'the code is not understood', 'not made yet')):
        check(words, None, 'truth(value = <%s>) = true;' % words, '',
              put(GOT[:4] + bytes([MISSING | reason, 0])))


@test
def values_of_another_function_or_kind_belong_to_no_call():
    check('of a result', lambda data: set_word(data, first(data, ARGUMENTS),
                                               RESULT),
          'truth(<unknown>) = true;', UNDESCRIBED)
    check('of another function', lambda data: append(
        data, list_of(1, function=3)), 'truth = true;',
        'that a signal handler interrupted: left out')


@test
def descriptions_name_their_function():
    data = open(files_of(recording(), 'values')[0], 'rb').read()
    of = [(kind, LIST.unpack_from(data, at)[3]) for at, kind, _ in entries(data)
          if kind != TYPE]
    functions = {function for _, function in of}
    expect(0 not in functions and len(functions) > 20, functions)
    expect_equal(len(set(of)), len(of), 'descriptions')


# --- long ones ---

@test
def long_names_are_cut_and_long_lists_end():
    source = os.path.join(new_directory('names'), 'names.c')
    names = [chr(ord('a') + i) * 60 for i in range(12)]
    with open(source, 'w') as file:
        file.write('void longest(int %s) {}\n void most(int %s) {}\n'
                   'int main(void) { longest(-7); most(%s); return 0; }\n' % (
                       'n' * 300, ', int '.join(names),
                       ', '.join(map(str, range(12)))))
    made = record([compile(source)], 'trace:args=longest,args=most')
    lines, said = replay(made.output)
    whole = ', '.join('%s = %d' % (name, i) for i, name in enumerate(names))
    expect_equal(lines[1:3], ['longest(%s = -7);' % ('n' * 255),
                              'most(%s);' % whole[:511]], 'calls')
    expect_equal(said, '', 'stderr')


if __name__ == '__main__':
    shimtest.main()
