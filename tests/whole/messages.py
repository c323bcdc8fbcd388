"""Messages between the processes of a job: who was late, lines, OTF2's records."""

import json
import os
import shutil
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory,
                      shim_report, test)
from telling import told

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
KNOWN = {}


def messages_of(output):
    return json.loads(shim_report('report', '--messages', '--format', 'json',
                                  output))


def late_of(output):
    return {(each['late'], each['reason'], each['function']): each
            for each in messages_of(output)['late']}


@test
def who_was_late_is_told():
    late = late_of(told())
    for key in (('rank 0', 'sends later', 'receive'),
                ('rank 0', 'comes last', 'meet'),
                ('rank 0', 'comes last', 'spread'),
                ('rank 1', 'receives later', 'hand_over')):
        expect(key in late, (key, late))
        expect_equal(late[key]['times'], 1, key)
        expect(late[key]['waited_ns'] > 0, late[key])
    expect_equal(len(late), 4, late)     # only the root of collect() waits
    text = shim_report('report', '--messages', told())
    expect('sends later      receive' in text and 'rank 1' in text, text)
    expect('1 messages were sent, and no rank has received them' in text, text)
    expect('receives later' in shim_report('report', told()), 'plain report')


@test
def sums_are_those_of_each_rank():
    about = messages_of(told())
    expect_equal((about['messages'], about['lone_sends'],
                  about['lone_receives'], about['reversed']), (5, 1, 0, 0),
                 'pairs')
    first, second = about['ranks']
    expect_equal([first['sends'], first['sent'], first['receives'],
                  first['collectives']], [6, 1306, 0, 3], 'rank 0')
    expect_equal([second['sends'], second['receives'], second['received'],
                  second['collectives']], [0, 5, 306, 3], 'rank 1')
    waited = [each['waited_ns'] for each in about['ranks']]
    expect_equal([each['awaited_ns'] for each in about['ranks']],
                 waited[::-1], 'awaited')


def calls_and_flows(output):
    events = json.loads(shim_report('export', 'chrome', output))['traceEvents']
    flows, calls, stacks = {}, [], {}
    for event in events:
        if event['ph'] in 'sf':
            flows.setdefault(event['id'], {})[event['ph']] = event
        elif event['ph'] == 'B':
            stacks.setdefault(event['tid'], []).append(event)
        elif event['ph'] == 'E':
            begin = stacks[event['tid']].pop()
            calls.append((event['tid'], begin['name'], begin['ts'], event['ts']))
    return calls, flows


def call_at(calls, event):
    """The innermost call."""
    found = [each for each in calls if each[0] == event['tid'] and
             each[2] <= event['ts'] <= each[3]]
    return max(found, key=lambda each: each[2])[1]


@test
def lines_lead_from_send_to_receive():
    calls, flows = calls_and_flows(told())
    ends = [(call_at(calls, each['s']), call_at(calls, each['f']),
             each['s']['args']['bytes']) for each in flows.values()]
    expect_equal(sorted(ends), sorted(
        [('send_late', 'receive', 100), ('hand_over', 'take_late', 200)] +
        [('send_three', 'receive_three', bytes) for bytes in (1, 2, 3)]),
        'lines')
    for each in flows.values():
        expect(each['s']['ts'] < each['f']['ts'], each)
    # The third message was received before the second.
    three = sorted((each['f']['ts'], each['s']['args']['bytes'])
                   for each in flows.values() if each['s']['args']['tag'] == 7)
    expect_equal([bytes for _, bytes in three], [1, 3, 2], 'order')


@test
def waits_are_in_the_timeline():
    text = shim_report('replay', told())
    for said in ('waits for rank 0, which sends later',
                 'waits for rank 0, which comes last',
                 'waits for rank 1, which receives later',
                 'send 100 bytes to 1 of 2, tag 5',
                 'received 3 bytes from 0 of 2, tag 7',
                 'barrier of 2: 0 bytes given, 0 taken', 'is 1 of 2'):
        expect(said in text, (said, text))
    calls, _ = calls_and_flows(told())
    events = json.loads(shim_report('export', 'chrome', told()))['traceEvents']
    waits = [each for each in events if each['ph'] == 'X']
    expect_equal(sorted(call_at(calls, each) for each in waits),
                 ['hand_over', 'meet', 'receive', 'spread'],
                 'calls that wait')


@test
def a_ring_that_has_lost_calls_pairs_nothing():
    """Which messages belong together is not known then."""
    output = os.path.join(new_directory('lost'), 'job')
    shutil.copytree(told(), output)
    trace, = [os.path.join(at, name) for at, _, names in
              os.walk(os.path.join(output, 'rank.0'))
              for name in names if name.endswith('.trace')]
    with open(trace, 'r+b') as file:    # info.lost[0]
        file.seek(4096 + 48)
        file.write((5).to_bytes(8, 'little'))
    done = subprocess.run([shimtest.report, 'report', '--messages', '--format',
                           'json', output], capture_output=True, text=True)
    about = json.loads(done.stdout)
    expect_equal((about['messages'], about['late'],
                  about['ranks'][0]['sends']), (0, [], 6), 'pairs')
    expect('messages are not paired' in done.stderr, done.stderr)


@test
def a_recording_without_messages_says_so():
    output = shimtest.record([compile('ranks.c'), '1'], 'trace').output
    done = subprocess.run([shimtest.report, 'report', '--messages', output],
                          capture_output=True, text=True)
    expect(done.returncode == 1 and 'has no messages' in done.stderr, done)


OTF2 = '''
import collections, json, sys
import otf2
from otf2.events import MpiSend, MpiRecv, MpiCollectiveBegin, MpiCollectiveEnd
kinds, ends = collections.Counter(), []
def name(location):
    return (location.group.name.split() + ['alone'])[1]
with otf2.reader.open(sys.argv[1]) as trace:
    for location, event in trace.events:
        kinds[type(event).__name__] += 1
        if isinstance(event, MpiSend):
            ends.append(['send', name(location), event.receiver,
                         event.msg_tag, event.msg_length])
        if isinstance(event, MpiRecv):
            ends.append(['recv', name(location), event.sender,
                         event.msg_tag, event.msg_length])
    comms = [[len(each.group.members), sorted(name(member)
              for member in each.group.members)]
             for each in trace.definitions.comms]
print(json.dumps([kinds, ends, comms]))
'''


def otf2_of(output):
    shimtest.need('otf2-print')
    path = os.path.join(new_directory('otf2'), 'archive')
    done = subprocess.run([shimtest.report, 'export', 'otf2', output, '-o',
                           path], capture_output=True, text=True)
    if 'unknown format' in done.stderr:
        raise shimtest.Skipped("built without OTF2's library")
    expect_equal((done.returncode, done.stderr), (0, ''), 'export')
    for more in ['-Werror'], ['-G', '-Werror']:
        done = subprocess.run(['otf2-print', *more, path + '/traces.otf2'],
                              capture_output=True, text=True)
        expect_equal((done.returncode, done.stderr), (0, ''), 'otf2-print')
    done = subprocess.run(['/usr/bin/python3', '-W', 'error', '-c', OTF2,
                           path + '/traces.otf2'], capture_output=True,
                          text=True)
    expect_equal((done.returncode, done.stderr), (0, ''), 'python3-otf2')
    return json.loads(done.stdout)


@test
def otf2_has_records_of_mpi():
    kinds, ends, comms = otf2_of(told())
    expect_equal([kinds[kind] for kind in ('MpiSend', 'MpiRecv',
                                           'MpiCollectiveBegin',
                                           'MpiCollectiveEnd')], [6, 5, 6, 6],
                 'records')
    expect(['send', '(rank.0,', 1, 5, 100] in ends and
           ['recv', '(rank.1,', 0, 7, 3] in ends, ends)
    expect_equal(comms, [[2, ['(rank.0,', '(rank.1,']]], 'communicators')


@test
def members_that_have_told_nothing_are_somebody_in_otf2():
    output = os.path.join(new_directory('missing'), 'job')
    shutil.copytree(told(), output)
    shutil.rmtree(os.path.join(output, 'rank.1'))
    kinds, _, comms = otf2_of(output)
    expect_equal((kinds['MpiSend'], comms), (6, [[2, ['alone',
                                                      'recording']]]), 'otf2')


# --- MPI ---

def mpi_job(compiler, starter, profile='trace'):
    directory = new_directory('mpi')
    program = os.path.join(directory, 'mpi_messages')
    made = subprocess.run([compiler, '-g', '-w', '-finstrument-functions',
                           '-o', program, os.path.join(
                               shimtest.PROGRAMS, 'mpi_messages.c')],
                          capture_output=True, text=True)
    expect_equal(made.returncode, 0, made.stderr)
    return run_job(directory, program, starter, '3', profile)


def run_job(directory, program, starter, ranks, profile):
    words = [starter, '-n', ranks, PROFRUN, '-p', profile, '-q', '-o', 'job',
             program]
    if 'mpich' not in starter:
        words[1:1] = ['--allow-run-as-root', '--oversubscribe']
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True,
                          env=shimtest.environment(), timeout=120)
    expect_equal(done.returncode, 0, done.stderr)
    return os.path.join(directory, 'job')


def each_mpi():
    """Recordings of mpi_messages.c under OpenMPI and MPICH."""
    if 'mpi' not in KNOWN:
        shimtest.need('mpicc')
        KNOWN['mpi'] = [mpi_job('mpicc.openmpi', 'mpirun.openmpi')]
        if shutil.which('mpicc.mpich'):
            KNOWN['mpi'].append(mpi_job('mpicc.mpich', 'mpirun.mpich'))
    return KNOWN['mpi']


@test
def all_messages_of_mpi_are_there():
    for output in each_mpi():
        about = messages_of(output)
        expect_equal((about['lone_sends'], about['lone_receives'],
                      about['reversed']), (0, 0, 0), output)
        # one(), many(), others(), more(); and apart()
        alone = [1 + 40 + 2 + 3 + 1 + 1, 4 + 40 * 8 + 2 * 12 + 3 * 4 + 16 + 4]
        for rank, each in enumerate(about['ranks']):
            # joined(): 0 to 2, and 2 to 1
            sent, got = (rank < 2) + (rank != 1), (rank < 2) + (rank != 0)
            expect_equal([each['sends'], each['sent'], each['receives'],
                          each['received']],
                         [alone[0] + sent, alone[1] + 4 * sent,
                          alone[0] + got, alone[1] + 4 * got], rank)
            # together(), and joined()
            given = 4 + 12 * (rank == 1) + 4 + 4 * (rank == 0)
            taken = 4 + 4 + 12 + 4 * (rank != 0)
            expect_equal([each['collectives'], each['given'], each['taken']],
                         [6 + 3, given + (4, 4, 8 + 4 + 4)[rank],
                          taken + (8 + 4 + 4, 8 + 4, 8)[rank]], rank)


@test
def bytes_are_known_where_no_process_waits():
    for output in each_mpi():
        for each in messages_of(output)['ranks']:
            sums = [[each[name][field] for field in ('transfers', 'given', 'taken')]
                    for name in ('begun', 'windows', 'files')]
            expect_equal(sums, [[2, 8, 8], [3, 8, 8], [3, 20, 16]], output)
        text = shim_report('report', '--messages', output)
        for said in ('operations with a request: 6, 24 B given, 24 B taken',
                     'windows: 9, 24 B given, 24 B taken',
                     'files: 9, 60 B given, 48 B taken'):
            expect(said in text, text)
        text = shim_report('replay', output)
        for said in ('allreduce of 3 begins: 8 bytes given, 8 taken',
                     'file: 0 bytes given, 12 taken', 'window of 2: 4 bytes given, 0 taken'):
            expect(said in text, said)


@test
def otf2_has_the_communicators_of_mpi():
    for output in each_mpi():
        kinds, ends, comms = otf2_of(output)
        expect_equal([kinds['MpiSend'], kinds['MpiRecv'],
                      kinds['MpiCollectiveBegin'], kinds['MpiCollectiveEnd']],
                     [148, 148, 27, 27], output)
        pair, own = ['(rank.0,', '(rank.1,'], ['(rank.2,']
        # One of all three joins two groups.
        expect_equal(sorted(comms), sorted(2 * [[3, pair + own]] + 3 * [[2, pair]] +
                                           3 * [[1, own]]),
                     output)
        # The rank in the communicator is not that in the job.
        expect(['send', '(rank.0,', 0, 8, 4] in ends, ends)
        joined = {(end[0], end[1][6]): end[2] for end in ends if end[3:] == [11, 4]}
        expect(joined in (
            {('send', '0'): 2, ('recv', '2'): 0, ('send', '2'): 1, ('recv', '1'): 2},
            {('send', '0'): 0, ('recv', '2'): 1, ('send', '2'): 2, ('recv', '1'): 0}),
               joined)      # the other group may be the first


def fortran_job(mpi, *flags):
    shimtest.need('gfortran')
    directory = new_directory('fortran')
    program = os.path.join(directory, 'mpi_fortran')
    made = subprocess.run(['mpif90.' + mpi, '-g', *flags, '-o', program,
                           os.path.join(shimtest.PROGRAMS, 'mpi_fortran.F90')],
                          cwd=directory, capture_output=True, text=True)
    expect_equal(made.returncode, 0, made.stderr)
    return run_job(directory, program, 'mpirun.' + mpi, '2', 'trace')


@test
def calls_from_fortran_are_those_of_c():
    """By the module mpi, whose functions are those of mpif.h, and by mpi_f08."""
    shimtest.need('mpicc')      # openmpi-bin alone has mpif90.openmpi, without headers
    known = [mpi for mpi in ('openmpi', 'mpich') if shutil.which('mpif90.' + mpi)]
    if not known:
        shimtest.need('mpif90.openmpi')
    for mpi in known:
        for flags in [], ['-DF08']:
            output = fortran_job(mpi, *flags)
            about = messages_of(output)
            expect_equal((about['messages'], about['lone_sends'],
                          about['lone_receives']), (4, 0, 0), (mpi, flags))
            for each in about['ranks']:
                expect_equal([each['sent'], each['received'], each['collectives'],
                              each['given'], each['taken']], [12, 12, 1, 4, 4],
                             (mpi, flags))
            found = json.loads(shim_report('report', '--format', 'json', output))
            calls = {each['name']: each['calls'] for each in found['functions']
                     if each['name'].startswith('MPI_')}
            expect_equal(calls, {name: 2 for name in (
                'MPI_Init', 'MPI_Irecv', 'MPI_Isend', 'MPI_Waitall',
                'MPI_Sendrecv', 'MPI_Allreduce', 'MPI_Finalize')}, (mpi, flags))


@test
def a_profile_of_mpi_has_no_messages():
    shimtest.need('mpicc')
    output = mpi_job('mpicc.openmpi', 'mpirun.openmpi', 'calltree:counts')
    about = json.loads(shim_report('report', '--format', 'json', output))
    calls = {each['name']: each['calls'] for each in about['functions']}
    expect_equal((calls['MPI_Isend'], calls['MPI_Allgather']),
                 (3 * 41, 6), 'calls')


if __name__ == '__main__':
    shimtest.main()
