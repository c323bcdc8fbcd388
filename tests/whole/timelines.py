"""Exports of a trace for other viewers: chrome, perfetto, ctf, otf2."""

import collections
import gzip
import json
import os
import re
import signal
import subprocess
import time

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record,
                      shim_report, test)

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..',
                     'scripts', 'report', 'export')
PROGRAMS = ['coroutines.c', 'exceptions.cc', 'longjmp.c']
MARKS = ['-I', os.path.join(os.path.dirname(shimtest.PROGRAMS), '..',
                            'include')]
recorded = {}


def trace_of(source):
    if source not in recorded:
        result = record([compile(source, flags=MARKS if source == 'marks.c'
                                 else ())], 'trace')
        expect_equal(result.status, 0, source)
        recorded[source] = result.output
    return recorded[source]


def calls_of(output):
    about = json.loads(shim_report('report', output, '--format', 'json',
                                   '--limit', '0'))
    calls = collections.Counter()
    for function in about['functions']:
        calls[function['name']] += function['calls']
    return +calls


def export(format, output, *more):
    path = os.path.join(new_directory(format), 'out')
    expect_equal(shim_report('export', format, output, '-o', path, *more), '',
                 'output')
    return path


class Lanes:
    """Checks begins and ends, which must nest in each lane and be ordered in time."""

    def __init__(self, what):
        self.what = what
        self.calls = collections.Counter()
        self.open = collections.defaultdict(list)
        self.last = {}

    def event(self, lane, time, name):
        """@name: the call that begins; None: an end."""
        expect(time >= self.last.get(lane, 0),
               '%s: lane %s: %s after %s' % (self.what, lane, time,
                                             self.last.get(lane)))
        self.last[lane] = time
        if name is not None:
            self.open[lane].append(name)
            self.calls[name] += 1
        else:
            expect(self.open[lane], '%s: an end too many' % self.what)
            self.open[lane].pop()

    def check(self, calls):
        expect_equal([lane for lane in self.open if self.open[lane]], [],
                     self.what + ': still open')
        expect(self.calls, self.what + ': no calls')
        expect_equal(self.calls, calls, self.what)


def check_calls(source, lanes):
    lanes.check(calls_of(trace_of(source)))


# --- chrome ---

def chrome_events(output):
    with open(export('chrome', output)) as file:
        return json.load(file)['traceEvents']


@test
def chrome_has_every_call():
    for source in PROGRAMS:
        lanes = Lanes('chrome ' + source)
        for event in chrome_events(trace_of(source)):
            if event['ph'] in 'BE':
                lanes.event((event['pid'], event['tid']), event['ts'],
                            event['name'] if event['ph'] == 'B' else None)
        check_calls(source, lanes)


@test
def chrome_has_names_of_threads_and_what_the_program_says():
    events = chrome_events(trace_of('marks.c'))
    said = collections.Counter(e['ph'] for e in events)
    expect_equal(said['b'], said['e'], 'ranges')
    expect(said['b'] > 0 and said['C'] > 0 and said['i'] > 0, said)
    names = {e['args']['name'] for e in events if e['ph'] == 'M'}
    expect({'marks', 'painter'} <= names, names)


# --- perfetto ---

def perfetto_packets(output):
    """[{field: value, or list of values}], decoded by protoc."""
    shimtest.need('protoc')
    with gzip.open(export('perfetto', output), 'rb') as file:
        text = subprocess.run(
            ['protoc', '--proto_path=' + PROTO, '--decode=perfetto.Trace',
             'perfetto.proto'], input=file.read(), stdout=subprocess.PIPE,
            check=True).stdout.decode()
    expect(not re.search(r'^ *\d+:', text, re.M), 'fields nobody knows')
    # By sequence: the time of its clock, and the track of packets that name none.
    times, tracks, names = {}, {}, {}
    for packet in text.split('\npacket {'):
        fields = dict(re.findall(r'^ *(\w+): "?(.*?)"?$', packet, re.M))
        sequence = fields.get('trusted_packet_sequence_id')
        if 'trace_packet_defaults {' in packet:
            expect_equal(fields['sequence_flags'], '1', 'a new sequence')
            expect_equal(re.findall(r'clock_id: (\d+)\s+timestamp: 0', packet),
                         ['6', '64'], 'clocks')
            times[sequence] = 0
            tracks[sequence] = fields['track_uuid']
            names[sequence] = {}
            continue
        expect(sequence in times, 'a packet of no sequence')
        if 'track_event {' in packet:
            fields.setdefault('track_uuid', tracks[sequence])
            if fields.get('timestamp_clock_id') != '6':
                times[sequence] += int(fields['timestamp'])
                fields['timestamp'] = str(times[sequence])
        names[sequence].update(re.findall(r'iid: (\d+)\s+name: "(.*)"', packet))
        if 'name_iid' in fields:
            fields['function'] = names[sequence][fields['name_iid']]
        yield fields, packet


@test
def perfetto_has_every_call():
    for source in PROGRAMS:
        lanes, tracks = Lanes('perfetto ' + source), set()
        for fields, packet in perfetto_packets(trace_of(source)):
            if 'track_descriptor {' in packet:
                tracks.add(fields['uuid'])
            kind = fields.get('type')
            if kind in ('TYPE_SLICE_BEGIN', 'TYPE_SLICE_END'):
                expect(fields['track_uuid'] in tracks, 'a track of no name')
                lanes.event(fields['track_uuid'], int(fields['timestamp']),
                            fields['function']
                            if kind == 'TYPE_SLICE_BEGIN' else None)
        check_calls(source, lanes)


@test
def perfetto_has_the_times_of_chrome():
    for source in PROGRAMS:
        perfetto = sorted(
            (int(fields['timestamp']), fields['type'] == 'TYPE_SLICE_BEGIN')
            for fields, _ in perfetto_packets(trace_of(source))
            if fields.get('type') in ('TYPE_SLICE_BEGIN', 'TYPE_SLICE_END'))
        chrome = sorted(
            (round(event['ts'] * 1000), event['ph'] == 'B')
            for event in json.load(open(export('chrome', trace_of(source))))
            ['traceEvents'] if event['ph'] in 'BE')
        expect_equal([time for time, _ in perfetto], [time for time, _ in chrome],
                     source)


@test
def perfetto_has_what_the_program_says():
    kinds = collections.Counter()
    for fields, packet in perfetto_packets(trace_of('marks.c')):
        if 'double_counter_value' in fields:
            kinds['counter'] += 1
        elif fields.get('type') == 'TYPE_INSTANT':
            kinds['mark'] += 1
        elif 'track_event {' in packet and 'name_iid' not in fields and \
                'name' in fields:
            kinds['range'] += 1
    expect(all(kinds[k] > 0 for k in ('counter', 'mark', 'range')), kinds)


# --- ctf ---

def babeltrace(path):
    shimtest.need('babeltrace2')
    done = subprocess.run(['babeltrace2', '--clock-cycles', path],
                          capture_output=True, text=True)
    expect_equal((done.returncode, done.stderr), (0, ''), 'babeltrace2')
    pattern = (r'\[(\d+)\] \S+ (\w+): \{ pid = (\d+), tid = (\d+), thread = '
               r'"(.*?)" \}, \{ coroutine = (\d+) \}, (.*)')
    lines = done.stdout.splitlines()
    events = [re.fullmatch(pattern, line) for line in lines]
    expect(all(events) and events, [l for l, e in zip(lines, events) if not e][:3])
    return [event.groups() for event in events]


@test
def ctf_has_every_call():
    for source in PROGRAMS:
        lanes = Lanes('ctf ' + source)
        for ns, kind, pid, tid, thread, track, fields in babeltrace(
                export('ctf', trace_of(source))):
            if kind in ('enter', 'leave'):
                name = re.search(r'function = \( "(.*)" :', fields).group(1)
                lanes.event((pid, tid, track), int(ns),
                            name if kind == 'enter' else None)
        check_calls(source, lanes)


@test
def ctf_has_what_the_program_says():
    kinds = collections.Counter(event[1] for event in babeltrace(
        export('ctf', trace_of('marks.c'))))
    expect(all(kinds[k] > 0 for k in ('mark', 'range_begin', 'range_end',
                                      'counter')), kinds)


@test
def ctf_is_whole_or_not_there():
    output = trace_of('marks.c')
    directory = new_directory('ctf')
    for limit, path, message in ((None, directory, 'exists'),
                                 (None, directory + '/no/such', 'No such file'),
                                 (1, directory + '/out', 'File too large')):
        command = [shimtest.report, 'export', 'ctf', output, '-o', path]
        if limit:
            command = ['sh', '-c', 'ulimit -f %d; trap "" XFSZ; exec "$@"' %
                       limit, 'sh'] + command
        done = subprocess.run(command, capture_output=True, text=True)
        expect(done.returncode == 1 and message in done.stderr, done.stderr)
    expect_equal(os.listdir(directory), [], 'left behind')


# --- otf2 ---

def has_otf2():
    done = subprocess.run([shimtest.report, 'export', '--help'], capture_output=True,
                          text=True)
    return 'Vampir' in done.stdout


def otf2_print(output, *words):
    """What otf2-print shows; a warning of it is an error."""
    shimtest.need('otf2-print')
    if not has_otf2():
        raise shimtest.Skipped("built without OTF2's library")
    path = export('otf2', output)
    for more in (('-Werror', '--silent'), words):
        done = subprocess.run(['otf2-print', *more, path + '/traces.otf2'],
                              capture_output=True, text=True)
        expect_equal((done.returncode, done.stderr), (0, ''), 'otf2-print')
    return path, done.stdout


def otf2_calls(what, text):
    lanes = Lanes(what)
    for kind, location, clock, name in re.findall(
            r'^(ENTER|LEAVE) +(\d+) +(\d+) .*?Region: "(.*?)" <', text, re.M):
        lanes.event(location, int(clock), name if kind == 'ENTER' else None)
    return lanes


@test
def otf2_has_every_call():
    for source in PROGRAMS:
        _, text = otf2_print(trace_of(source))
        check_calls(source, otf2_calls('otf2 ' + source, text))


# Each lock is held by one thread while the other waits for it.
WAITS = '''
#include <pthread.h>
#include <unistd.h>
%(locks)s
static pthread_mutex_t *all[] = { %(all)s };
static pthread_barrier_t both;
static void *hold(void *unused)
{
	for (int i = 0; i < %(count)d; i++) {
		pthread_mutex_lock(all[i]);
		pthread_barrier_wait(&both);
		/* libc's mark of a mutex for which a thread waits. */
		while (__atomic_load_n(&all[i]->__data.__lock, __ATOMIC_RELAXED) != 2)
			usleep(1000);
		pthread_mutex_unlock(all[i]);
	}
	return unused;
}
int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, hold, NULL);
	for (int i = 0; i < %(count)d; i++) {
		pthread_barrier_wait(&both);
		pthread_mutex_lock(all[i]);
		pthread_mutex_unlock(all[i]);
	}
	pthread_join(thread, NULL);
	return 0;
}
'''


@test
def otf2_names_each_wait():
    names = ['lock%d' % i for i in range(40)]
    source = os.path.join(new_directory('waits'), 'waits.c')
    with open(source, 'w') as file:
        file.write(WAITS % {
            'locks': '\n'.join('pthread_mutex_t %s = PTHREAD_MUTEX_INITIALIZER;' % name
                               for name in names),
            'all': ', '.join('&' + name for name in names), 'count': len(names)})
    output = record([compile(source)], 'trace;locks').output
    with open(export('chrome', output)) as file:
        wanted = collections.Counter(e['name'] for e in json.load(file)['traceEvents']
                                     if 'lock' in e.get('name', '') and e['ph'] in 'BX')
    expect(len(wanted) >= 40, wanted)
    _, text = otf2_print(output)
    expect_equal(collections.Counter(name for name in re.findall(
        r'^ENTER .*?Region: "(.*?)" <', text, re.M) if 'lock' in name), wanted, 'waits')


@test
def otf2_has_what_the_program_says():
    _, text = otf2_print(trace_of('marks.c'), '-A')
    said = dict(re.findall(r'^PARAMETER_STRING .*Parameter: "(.*?)" <\d+>, Value: "(.*?)"',
                           text, re.M))
    expect_equal(sorted(said), ['mark', 'range begins', 'range ends'], 'parameters')
    expect(re.search(r'^METRIC .*"files" <0>; DOUBLE; 1.5', text, re.M), 'no counter')
    expect(re.search(r'^LOCATION .*Name: "painter".*# Events: \d\d', text, re.M), 'no thread')
    expect(re.search(r'^REGION .*"leaf".*FUNCTION.*marks.c" <\d+>, Begin: \d\d', text, re.M),
           'no line')


@test
def otf2_is_read_by_its_python_module():
    code = '''
import collections, json, sys
try:
    import otf2
    from otf2.events import Enter, Leave
except ImportError:
    sys.exit(77)
with otf2.reader.open(sys.argv[1]) as trace:
    paths = len(trace.definitions.callpaths)
    calls, levels = collections.Counter(), collections.Counter()
    for location, event in trace.events:
        if isinstance(event, Enter):
            calls[event.region.name] += 1
        levels[location.name] += isinstance(event, Enter) - isinstance(event, Leave)
print(json.dumps([calls, levels, paths]))
'''
    for source in PROGRAMS:
        path, _ = otf2_print(trace_of(source))
        # Debian's module is that of Debian's python3.
        done = subprocess.run(['/usr/bin/python3', '-W', 'error', '-c', code,
                               path + '/traces.otf2'], capture_output=True, text=True)
        if done.returncode == 77:
            expect(False, 'python3-otf2 is not installed; scripts/packages check does it')
        expect_equal((done.returncode, done.stderr), (0, ''), 'python3-otf2')
        calls, levels, paths = json.loads(done.stdout)
        expect_equal(calls, dict(calls_of(trace_of(source))), source)
        expect_equal(set(levels.values()), {0}, 'open calls')
        folded = shim_report('export', 'folded', trace_of(source), '--value', 'calls')
        expect(paths >= len(folded.splitlines()), 'too few call paths')


@test
def otf2_has_the_arguments_and_results_of_each_call():
    # More texts than the export keeps at a time.
    source = os.path.join(new_directory('values'), 'many.c')
    with open(source, 'w') as file:
        file.write('''__attribute__((noinline)) long half(long n) { return n / 2; }
int main(void) { long i, s = 0; for (i = 0; i < 30000; i++) s += half(i % 20000); return s < 0; }
''')
    done = record([compile(source)], 'trace:args=half,results=half')
    _, text = otf2_print(done.output)
    said = re.findall(r'^(?:ENTER|LEAVE).*"half".*\n +ADDITIONAL ATTRIBUTES: '
                      r'\("(arguments|result)" <\d>; STRING; "(.*?)" <', text, re.M)
    wanted = [pair for i in range(30000) for pair in (
        ('arguments', 'n = %d' % (i % 20000)), ('result', '%d' % (i % 20000 // 2)))]
    expect_equal(len(said), len(wanted), 'texts')
    expect_equal([pair for pair in zip(said, wanted) if pair[0] != pair[1]][:3], [],
                 'arguments and results')


@test
def otf2_is_whole_or_not_there():
    if not has_otf2():
        raise shimtest.Skipped("built without OTF2's library")
    directory = new_directory('otf2')
    for limit, path, message in ((None, directory, 'exists'),
                                 (None, directory + '/no/such', 'No such file'),
                                 (1, directory + '/out', 'File too large')):
        command = [shimtest.report, 'export', 'otf2', trace_of('coroutines.c'), '-o', path]
        if limit:
            command = ['sh', '-c', 'ulimit -f %d; trap "" XFSZ; exec "$@"' %
                       limit, 'sh'] + command
        done = subprocess.run(command, capture_output=True, text=True)
        expect(done.returncode == 1 and message in done.stderr, done.stderr)
    expect_equal(os.listdir(directory), [], 'left behind')


@test
def a_directory_that_is_not_finished_goes():
    source = os.path.join(new_directory('many'), 'many.c')
    with open(source, 'w') as file:
        file.write('''__attribute__((noinline)) long half(long n) { return n / 2; }
int main(void) { long i, s = 0; for (i = 0; i < 3000000; i++) s += half(i); return s < 0; }
''')
    output = record([compile(source)], 'trace').output
    for name in ['ctf'] + ['otf2'] * has_otf2():
        for number in (signal.SIGTERM, signal.SIGINT):
            directory = new_directory('stopped')
            export = subprocess.Popen([shimtest.report, 'export', name, output, '-o',
                                       directory + '/out'])
            while not os.listdir(directory):
                time.sleep(0.001)
            export.send_signal(number)
            # The export may have been faster.
            wanted = {-number: [], 0: ['out']}[export.wait()]
            expect_equal(os.listdir(directory), wanted, name)


# --- refusals ---

@test
def recordings_without_a_trace_are_refused():
    counted = record([compile('longjmp.c')], 'calltree:counts').output
    traced = trace_of('marks.c')
    for words, status, message in (
            (['chrome', counted], 1, 'no trace in it (profrun -p trace)'),
            (['ctf', traced], 2, 'is a directory: -o DIR'),
            (['chrome', traced, '--value', 'self'], 2, 'has no --value'),
            (['perfetto', traced, '--threads'], 2, 'has no --value, --threads'),
            (['chrome', traced + '.missing'], 1, 'No such file')):
        done = subprocess.run([shimtest.report, 'export', *words],
                              capture_output=True, text=True)
        expect_equal(done.returncode, status, words)
        expect(message in done.stderr, done.stderr)


if __name__ == '__main__':
    shimtest.main()
