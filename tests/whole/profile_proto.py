"""Reads a gzip'ed profile.proto, independently of protobuf.

Any violation of the format is an error: an unknown field, a number that refers to
nothing, text that is not UTF-8.
"""
import gzip

PROFILE = {1: 'sample_type*', 2: 'sample*', 3: 'mapping*', 4: 'location*',
           5: 'function*', 6: 'string_table*', 7: 'drop_frames',
           8: 'keep_frames', 9: 'time_nanos', 10: 'duration_nanos',
           11: 'period_type', 12: 'period', 13: 'comment*',
           14: 'default_sample_type'}
VALUE_TYPE = {1: 'type', 2: 'unit'}
SAMPLE = {1: 'location_id*', 2: 'value*', 3: 'label*'}
LABEL = {1: 'key', 2: 'str', 3: 'num', 4: 'num_unit'}
MAPPING = {1: 'id', 2: 'memory_start', 3: 'memory_limit', 4: 'file_offset',
           5: 'filename', 6: 'build_id', 7: 'has_functions',
           8: 'has_filenames', 9: 'has_line_numbers', 10: 'has_inline_frames'}
LOCATION = {1: 'id', 2: 'mapping_id', 3: 'address', 4: 'line*',
            5: 'is_folded'}
LINE = {1: 'function_id', 2: 'line'}
FUNCTION = {1: 'id', 2: 'name', 3: 'system_name', 4: 'filename',
            5: 'start_line'}
INSIDE = {'sample_type': VALUE_TYPE, 'period_type': VALUE_TYPE,
          'sample': SAMPLE, 'label': LABEL, 'mapping': MAPPING,
          'location': LOCATION, 'line': LINE, 'function': FUNCTION}
PACKED = ('location_id', 'value', 'comment')
VARINT, BYTES = 0, 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if value >= 1 << 64 or shift > 70:
        raise ValueError('a number of more than 64 bits')
    return value, at


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def numbers(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(signed(value))
    return values


def message(data, fields):
    found = {name[:-1]: [] for name in fields.values() if name[-1] == '*'}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        name = fields[key >> 3]
        single = name.rstrip('*')
        # "line" is a message in a location, and a number in a line.
        inside = INSIDE.get(single) if key & 7 == BYTES else None
        if key & 7 == VARINT:
            value, at = varint(data, at)
            value = signed(value)
        elif key & 7 == BYTES:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError('%s is cut' % single)
            value = data[at:at + size]
            at += size
            if inside:
                value = message(value, inside)
            elif single in PACKED:
                found[single] += numbers(value)
                continue
            elif single == 'string_table':
                value = value.decode()
            else:
                raise ValueError('%s is a number' % single)
        else:
            raise ValueError('%s has wire type %d' % (single, key & 7))
        if name != single:
            found[single].append(value)
        else:
            found[single] = value
    return found


class Profile:
    """A profile with its numbers replaced by the objects that they refer to."""

    def __init__(self, data):
        self.raw = raw = message(gzip.decompress(data), PROFILE)
        self.text = raw['string_table']
        if self.text[0] != '':
            raise ValueError('the first text is %r' % self.text[0])
        self.types = [(self.text[t['type']], self.text[t['unit']])
                      for t in raw['sample_type']]
        self.default = self.text[raw.get('default_sample_type', 0)]
        self.comments = [self.text[n] for n in raw['comment']]
        self.functions = self.by_id('function')
        self.mappings = self.by_id('mapping')
        self.locations = self.by_id('location')
        self.names = {}
        for number, location in self.locations.items():
            if location.get('mapping_id'):
                self.mappings[location['mapping_id']]
            self.names[number] = tuple(
                self.name(self.functions[line['function_id']])
                for line in location['line'])
        self.samples = [(self.stack(sample), sample['value'],
                         self.labels(sample)) for sample in raw['sample']]

    def by_id(self, kind):
        found = {entry['id']: entry for entry in self.raw[kind]}
        if len(found) != len(self.raw[kind]) or 0 in found:
            raise ValueError('ids of %s' % kind)
        return found

    def name(self, function, which='name'):
        return self.text[function.get(which, 0)]

    def stack(self, sample):
        if len(sample['value']) != len(self.types):
            raise ValueError('%d values' % len(sample['value']))
        return [name for number in sample['location_id']
                for name in self.names[number]]

    def labels(self, sample):
        return {self.text[label['key']]: self.text[label['str']]
                if label.get('str') else label.get('num', 0)
                for label in sample['label']}

    def flat_and_cum(self, type_name):
        """{function name: [flat, cum]}, added up like pprof does."""
        which = [name for name, unit in self.types].index(type_name)
        sums = {}
        for stack, values, _ in self.samples:
            for name in set(stack):
                sums.setdefault(name, [0, 0])[1] += values[which]
            sums[stack[0]][0] += values[which]
        return sums

    def lines(self, function, which=0):
        """{line of the function: [flat, cum]}"""
        places = {number: [(self.name(self.functions[line['function_id']]),
                            line.get('line', 0)) for line in location['line']]
                  for number, location in self.locations.items()}
        sums = {}
        for sample in self.raw['sample']:
            stack = [place for number in sample['location_id']
                     for place in places[number]]
            for name, line in set(stack):
                if name == function:
                    sums.setdefault(line, [0, 0])[1] += sample['value'][which]
            if stack[0][0] == function:
                sums[stack[0][1]][0] += sample['value'][which]
        return sums
