"""Recordings that consist of several: profrun merge, and parallel jobs."""

import glob
import json
import os
import re
import shutil
import socket
import subprocess

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, record,
                      shim_report, test, tree_of)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
HERE = os.path.dirname(os.path.abspath(__file__))


def recorded(count, profile='calltree:counts', status=0):
    result = record([compile('ranks.c'), str(count), str(status)], profile)
    expect_equal(result.status, status, 'status')
    return result.output


def merged(*outputs):
    target = os.path.join(new_directory('merged'), 'all')
    expect_equal(shim_report('merge', '-o', target, *outputs), '', 'output')
    return target


def merge_fails(message, *words):
    done = subprocess.run([shimtest.report, 'merge', *words],
                          capture_output=True, text=True)
    expect(done.returncode in (1, 2) and message in done.stderr,
           (words, done.returncode, done.stderr))


def ranks_of(output):
    return json.loads(shim_report('report', output, '--ranks', '--format',
                                  'json'))


def by_name(about):
    return {f['name']: f for f in about['functions']}


# --- merge ---

@test
def calls_of_merged_recordings_add_up():
    target = merged(recorded(3), recorded(4), recorded(5))
    expect_equal(tree_of(target), {'main': 3, 'main;more': 12,
                                   'main;more;work': 12}, 'tree')


@test
def merging_is_done_again_and_nothing_gets_lost():
    one = recorded(3)
    target = merged(merged(one, one), one)
    expect_equal(tree_of(target)['main;more'], 9, 'calls')
    stem = os.path.basename(one)
    expect_equal(sorted(os.listdir(target)), [stem, stem + '.1', stem + '.2'],
                 'names')


@test
def the_parts_stay_as_they_were():
    one, two = recorded(3), recorded(4)
    target = merged(one, two)
    for part in (one, two):
        copy = os.path.join(target, os.path.basename(part))
        expect_equal(shim_report('export', 'json', copy).replace(copy, part),
                     shim_report('export', 'json', part), part)


@test
def the_first_bad_status_is_that_of_all():
    one, two = recorded(3), recorded(4, status=5)
    for output, status in ((one, 0), (two, 5 << 8)):   # the same steps as profrun
        with open(os.path.join(output, 'end'), 'w') as file:
            file.write('status %d mono-ns 1\n' % status)
    head = shim_report('report', merged(one, two)).splitlines()[1]
    expect('2 recordings' in head and 'exit status 5' in head, head)


@test
def copies_have_the_holes_of_the_originals():
    one = recorded(3, 'calltree:exact')
    target = merged(one)

    def blocks(path):
        return sum(os.stat(f).st_blocks for f in glob.glob(path + '/**',
                                                           recursive=True))
    expect(blocks(target) <= blocks(one) + 64, (blocks(target), blocks(one)))


@test
def bad_words_are_refused_and_leave_nothing():
    directory = new_directory('refused')
    one, target = recorded(3), os.path.join(directory, 'all')
    empty = os.path.join(directory, 'empty')
    os.mkdir(empty)
    merge_fails('-o DIR', one)
    merge_fails('which files', '-o', target)
    merge_fails('exists', '-o', empty, one)
    merge_fails('not a recording', '-o', target, one, empty)
    merge_fails('No such file', '-o', target, one, target + '.missing')
    merge_fails('No such file', '-o', target + '/missing/all', one)
    expect_equal(os.listdir(directory), ['empty'], 'left behind')


@test
def a_full_disk_leaves_nothing():
    directory = new_directory('full')
    one = recorded(3)
    done = subprocess.run(
        ['sh', '-c', 'ulimit -f 8; trap "" XFSZ; exec "$@"', 'sh',
         shimtest.report, 'merge', '-o', directory + '/all', one],
        capture_output=True, text=True)
    expect_equal(done.returncode, 1, 'status')
    expect('File too large' in done.stderr, done.stderr)
    expect_equal(os.listdir(directory), [], 'left behind')


# --- balance ---

@test
def ranks_are_compared_by_function():
    about = ranks_of(merged(recorded(1), recorded(2), recorded(9)))
    expect_equal(about['value'], 'calls', 'value')
    work = by_name(about)['work']
    expect_equal(sorted(work['each']), [1, 2, 9], 'each')
    expect_equal((work['mean'], work['min'], work['max']), (4, 1, 9), 'work')
    expect_equal(work['imbalance_percent'], 125, 'imbalance')
    expect_equal(work['each'][work['max_rank']], 9, 'who')
    expect_equal(by_name(about)['main']['imbalance_percent'], 0, 'main')


@test
def ranks_are_compared_by_path():
    target = merged(recorded(1), recorded(9))
    lines = shim_report('report', target, '--ranks', '--tree').splitlines()
    work = [line for line in lines if ' work' in line]
    expect_equal(len(work), 1, lines)
    expect_equal([w for w in work[0].split() if w.isdigit()], ['5', '1', '9',
                                                               '10'], work)


@test
def processes_are_ranks_when_there_is_one_recording():
    output = record([compile('forks.c')], 'calltree').output
    about = ranks_of(output)
    expect(len(about['ranks']) > 10, about['ranks'])
    busy = by_name(about)['busy']
    expect(busy['max'] > 0 and busy['min'] == 0, busy)
    expect(' ranks:' not in shim_report('report', output), 'without asking')


@test
def merged_recordings_tell_it_unasked():
    target = merged(recorded(1), recorded(9))
    expect('2 ranks: 11 calls each' in shim_report('report', target),
           shim_report('report', target))


@test
def wrong_company_is_refused():
    done = subprocess.run([shimtest.report, 'report', recorded(1), '--ranks',
                           '--threads'], capture_output=True, text=True)
    expect_equal(done.returncode, 2, 'status')
    expect('--ranks has no --threads' in done.stderr, done.stderr)


# --- jobs ---

class Job:
    """Processes that are started the way mpirun does it.  @counts: the number of calls
    that each makes."""

    def __init__(self, size, *words, started=None, job='77', counts=None,
                 profile='calltree:counts', program=None, **more):
        self.directory = new_directory('job')
        program = program or compile('ranks.c')
        self.processes = []
        for rank in range(started or size):
            environment = shimtest.environment(
                OMPI_COMM_WORLD_SIZE=str(size), OMPI_COMM_WORLD_RANK=str(rank),
                PMIX_NAMESPACE=job, **more)
            self.processes.append(subprocess.Popen(
                [PROFRUN, '-p', profile, *words, program] +
                ([str(counts[rank])] if counts else []),
                cwd=self.directory, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self.said = [process.communicate(timeout=60)[1]
                     for process in self.processes]
        for process in self.processes:
            expect_equal(process.returncode, 0, 'status')

    def path(self, name):
        return os.path.join(self.directory, name)


@test
def ranks_that_switch_off_different_functions_add_up_to_an_estimate():
    # Only the second one has calls enough for a budget.
    counts = 3, 600000000
    # A short run may have too few bursts for an estimate.
    for _ in range(5):
        job = Job(2, counts=counts, profile='calltree:budget=10')
        output = job.path('profrun.ranks.77')
        some = by_name(json.loads(shim_report('report', output, '--format', 'json')))
        work = some['work']
        if work['calls_estimated'] is not None:
            break
    expect_equal((some['main']['calls'], some['main']['calls_estimated']), (2, None),
                 'main')
    expect_equal(work['calls_estimated'], work['calls'], work)
    expect(3 < work['calls_exact'] < sum(counts), work)
    # Of 20 runs, one is more than two standard errors off.
    expect(abs(work['calls'] - sum(counts)) < 4 * work['calls_error'], work)
    for process, name, exact in ('rank.0', '3', True), ('rank.1', '~', False):
        text = shim_report('report', os.path.join(output, process))
        expect(('functions were switched off' in text) != exact, text)
    lines = shim_report('report', output, '--ranks', '--sort', 'calls').splitlines()
    row = [line for line in lines if ' work [' in line]
    # A few calls are less than a sample.
    expect(not re.search(r'(?<![\d.])0 ns', '\n'.join(lines)), lines)
    expect(row and "~" in row[0], lines)
    text = shim_report('report', output)
    expect('~' in text and '2 of 3 functions were switched off' in text, text)


@test
def a_job_is_one_recording_and_one_report():
    job = Job(3)
    expect_equal(os.listdir(job.directory), ['profrun.ranks.77'], 'recordings')
    output = job.path('profrun.ranks.77')
    expect_equal(sorted(os.listdir(output)), ['job.all', 'rank.0', 'rank.1', 'rank.2'],
                 'ranks')
    expect_equal(tree_of(output)['main;more'], 6, 'calls')
    expect_equal(ranks_of(output)['ranks'], ['rank.0', 'rank.1', 'rank.2'],
                 'names')
    expect_equal(by_name(ranks_of(output))['more']['each'], [1, 2, 3], 'each')
    expect('3 ranks' in job.said[0] and ' more ' in job.said[0], job.said[0])
    expect_equal(job.said[1:], ['', ''], 'the others')


@test
def ranks_of_profrun_record_have_an_end():
    directory = new_directory('record')
    program = compile('ranks.c')
    for rank in range(2):
        done = subprocess.run(
            [PROFRUN, 'record', '-q', '-p', 'calltree:counts', '-o', 'job', program],
            cwd=directory, capture_output=True, text=True, env=shimtest.environment(
                OMPI_COMM_WORLD_SIZE='2', OMPI_COMM_WORLD_RANK=str(rank)))
        expect_equal(done.returncode, 0, done.stderr)
    text = shim_report('report', os.path.join(directory, 'job'))
    expect('2 recordings' in text and 'no end' not in text, text)


@test
def the_name_of_a_job_can_be_chosen():
    job = Job(2, '-o', 'mine')
    expect_equal(sorted(os.listdir(job.path('mine'))), ['job.all', 'rank.0', 'rank.1'],
                 'ranks')
    job = Job(2, '-o', 'mine.%r')
    expect_equal(sorted(os.listdir(job.directory)), ['mine.0', 'mine.1'],
                 'recordings')


@test
def a_second_job_of_the_same_name_is_another_recording():
    job = Job(2, job='1/%p x')
    expect_equal(os.listdir(job.directory), ['profrun.ranks.1__p_x'], 'name')


@test
def slurm_is_known():
    program = compile('ranks.c')
    directory = new_directory('slurm')
    for step, wanted in (('0', 'profrun.ranks.5.0'), (None, None)):
        variables = {'SLURM_JOB_ID': '5', 'SLURM_PROCID': '0',
                     'SLURM_NTASKS': '2'}
        if step:
            variables.update(SLURM_STEP_ID=step, SLURM_STEP_NUM_TASKS='2')
        done = subprocess.run([PROFRUN, '-q', program], cwd=directory,
                              env=shimtest.environment(**variables))
        expect_equal(done.returncode, 0, 'status')
        made = os.listdir(directory)
        if wanted:
            expect_equal(made, [wanted], 'in a step')
            shutil.rmtree(os.path.join(directory, wanted))
        else:
            expect_equal(os.path.exists(
                os.path.join(directory, made[0], 'rank.0')), False, made)


def has_tick(*options, **variables):
    directory = new_directory('tick')
    done = subprocess.run(
        [PROFRUN, '-q', '-p', 'calltree', *options, 'sh', '-c', 'ls "$SHIM_DIR"'],
        cwd=directory, capture_output=True, text=True,
        env=shimtest.environment(OMPI_COMM_WORLD_SIZE='9000', OMPI_COMM_WORLD_RANK='1',
                                 **variables))
    expect_equal(done.returncode, 0, done.stderr)
    return 'tick' in done.stdout.split()


@test
def ranks_that_fill_the_processors_have_no_tick():
    """It would take a processor from a rank."""
    full = {'OMPI_COMM_WORLD_LOCAL_SIZE': '9000'}
    if len(os.sched_getaffinity(0)) > 1:
        expect(has_tick(OMPI_COMM_WORLD_LOCAL_SIZE='1'), 'a processor is free')
    expect(not has_tick(**full), 'none is free')
    expect(has_tick('--tick', '1000', **full), 'asked for')


@test
def missing_ranks_are_reported():
    job = Job(3, started=2)
    expect('2 of 3 ranks' in job.said[0], job.said[0])
    expect('2 ranks:' in job.said[0], job.said[0])


def started_again(directory, rank, **variables):
    """A rank of a job of two, into the directory "mine"."""
    done = subprocess.run(
        [PROFRUN, '-q', '-o', 'mine', compile('ranks.c')], cwd=directory,
        capture_output=True, text=True, env=shimtest.environment(
            OMPI_COMM_WORLD_SIZE='2', OMPI_COMM_WORLD_RANK=str(rank), **variables))
    return done.returncode, done.stderr


@test
def ranks_of_a_second_job_are_refused_also_where_there_is_room():
    """Otherwise they would wait in MPI_Init for those that are refused."""
    job = Job(2, '-o', 'mine')
    output = job.path('mine')
    shutil.rmtree(os.path.join(output, 'rank.1'))
    status, said = started_again(job.directory, 0, PMIX_NAMESPACE='78')
    expect(status == 125 and 'holds ranks of another job' in said, (status, said))
    expect_equal(started_again(job.directory, 1, PMIX_NAMESPACE='78'), (125, ''),
                 'one rank tells it for all')
    expect_equal(sorted(os.listdir(output)), ['job.all', 'rank.0'], 'files')
    # The same job may go on.
    expect_equal(started_again(job.directory, 1, PMIX_NAMESPACE='77'), (0, ''), 'rank 1')


@test
def a_starter_without_an_id_is_known_by_its_socket():
    """That of MPICH: PMI_FD is a socket of the process that started the ranks."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.set_inheritable(theirs.fileno(), True)
        directory = new_directory('socket')
        starts = [subprocess.run(
            ['sh', '-c', '"$@"; exit $?', 'sh', PROFRUN, '-q', '-o', 'mine',
             compile('ranks.c')], cwd=directory, close_fds=False,
            env=shimtest.environment(PMI_SIZE='2', PMI_RANK=str(rank),
                                     PMI_FD=str(theirs.fileno()))).returncode
            for rank in range(2)]
    expect_equal(starts, [0, 0], 'parents differ')
    note = os.path.join(directory, 'mine', 'job.' + os.uname().nodename)
    with open(note) as file:
        expect_equal(file.read(), str(os.getpid()), 'id')


@test
def one_rank_warns_for_all():
    said = Job(2, program=compile('ranks.c', instrument=False)).said
    expect('is not compiled with' in said[0] and 'is not compiled' not in said[1], said)


@test
def ranks_of_two_jobs_are_told_apart():
    """A larger job, started into the same directory."""
    job = Job(2, '-o', 'mine')
    output = job.path('mine')
    expect('of a job of' not in shim_report('report', output), 'one job')
    subprocess.run([PROFRUN, '-q', '--no-report', '-o', output, compile('ranks.c')],
                   check=True, capture_output=True, env=shimtest.environment(
                       OMPI_COMM_WORLD_SIZE='3', OMPI_COMM_WORLD_RANK='2'))
    text = shim_report('report', output)
    expect('  ranks 0, 1 are of a job of 2 ranks\n  rank 2 is of a job of 3 ranks\n' in text,
           text)


def reduced(output, name='reduced'):
    return os.path.exists(os.path.join(output, name))


def outputs_of(output):
    """The head has the number of paths, which differ per thread with --ranks."""
    def text(*words):
        lines = shim_report('report', output, *words).splitlines()
        return [line for line in lines if ' paths of ' not in line]
    return [text(), text('--tree', '--min-percent', '0'), text('--ranks'),
            text('--format', 'json'), text('--callers', 'work'),
            ranks_of(output)]


@test
def a_reduced_job_has_the_same_reports():
    job = Job(5, profile='calltree:counts')
    output = job.path('profrun.ranks.77')
    before = outputs_of(output)
    expect_equal(shim_report('reduce', output), '', 'output')
    expect(reduced(output), os.listdir(output))
    for ours, wanted in zip(outputs_of(output), before):
        expect_equal(ours, wanted, 'report')


@test
def times_of_a_reduced_job_are_those_of_its_ranks():
    job = Job(3, profile='calltree:exact', counts=(20000, 40000, 60000))
    output = job.path('profrun.ranks.77')
    before = outputs_of(output)
    shim_report('reduce', output)
    after = outputs_of(output)
    expect_equal(after[0][:12], before[0][:12], 'report')
    expect_equal(after[1], before[1], 'tree')
    # (A function's self time is cut to its total, which only whole ranks have.)
    for ours, wanted in zip(after[5]['all']['each'], before[5]['all']['each']):
        expect(abs(ours - wanted) <= 1e-3 * after[5]['all']['mean'],
               (after[5]['all'], before[5]['all']))
    for ours, wanted in zip(after[5]['functions'], before[5]['functions']):
        expect_equal((ours['name'], ours['calls']),
                     (wanted['name'], wanted['calls']), 'functions')


@test
def a_rank_that_came_later_is_added():
    job = Job(3)
    output = job.path('profrun.ranks.77')
    late = os.path.join(job.directory, 'late')
    os.rename(os.path.join(output, 'rank.2'), late)
    shim_report('reduce', output)
    expect_equal(by_name(ranks_of(output))['more']['each'], [1, 2], 'early')
    os.rename(late, os.path.join(output, 'rank.2'))
    expect_equal(by_name(ranks_of(output))['more']['each'], [1, 2, 3], 'all')
    shutil.copytree(os.path.join(output, 'rank.2'),
                    os.path.join(output, 'rank.2.1'))
    text = shim_report('report', output)
    expect('rank 2 was started more than once' in text, text)
    expect_equal(by_name(ranks_of(output))['more']['each'], [1, 2, 3, 3],
                 'again')


@test
def a_rank_that_is_gone_does_not_count():
    job = Job(3)
    output = job.path('profrun.ranks.77')
    shim_report('reduce', output)
    shutil.rmtree(os.path.join(output, 'rank.1'))
    expect_equal(by_name(ranks_of(output))['more']['each'], [1, 3], 'each')


@test
def a_damaged_reduction_is_not_used():
    job = Job(3)
    output = job.path('profrun.ranks.77')
    shim_report('reduce', output)
    with open(os.path.join(output, 'reduced'), 'r+b') as file:
        whole = file.read()
    wanted = by_name(ranks_of(output))['more']['each']
    for size in range(0, len(whole), 97 if shimtest.ALL else 293):
        with open(os.path.join(output, 'reduced'), 'wb') as file:
            file.write(whole[:size])
        done = subprocess.run([shimtest.report, 'report', '--ranks', '--format',
                               'json', output], capture_output=True, text=True)
        expect_equal(done.returncode, 0, done.stderr)
        expect('damaged' in done.stderr, done.stderr)
        expect_equal(by_name(json.loads(done.stdout))['more']['each'], wanted,
                     size)
    for at in range(0, len(whole), max(1, len(whole) // (150 if shimtest.ALL else 50))):
        changed = bytearray(whole)
        changed[at] ^= 0x80
        with open(os.path.join(output, 'reduced'), 'wb') as file:
            file.write(changed)
        done = subprocess.run([shimtest.report, 'report', '--tree', output],
                              capture_output=True, text=True)
        expect(done.returncode in (0, 1), (at, done.returncode, done.stderr))


@test
def ranks_with_more_than_calls_are_not_reduced():
    job = Job(2, profile='memory')
    output = job.path('profrun.ranks.77')
    for path, reason in ((output, 'more than calls'),
                         (os.path.join(output, 'rank.0'), 'is one recording')):
        done = subprocess.run([shimtest.report, 'reduce', path],
                              capture_output=True, text=True)
        expect(done.returncode == 1 and reason in done.stderr, done)
        expect(not reduced(path), os.listdir(path))


@test
def the_last_rank_of_a_host_reduces_a_large_job():
    program = compile('ranks.c')
    directory = new_directory('large')

    def start(rank):
        return subprocess.Popen(
            [PROFRUN, program, '1'], cwd=directory, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env=shimtest.environment(
                OMPI_COMM_WORLD_SIZE='33', OMPI_COMM_WORLD_LOCAL_SIZE='33',
                OMPI_COMM_WORLD_RANK=str(rank), PMIX_NAMESPACE='78',
                SHIM_PROFILE='calltree:counts'))

    processes = [start(rank) for rank in range(33)]
    said = [process.communicate()[1] for process in processes]
    output = os.path.join(directory, 'profrun.ranks.78')
    host = os.uname().nodename
    expect(reduced(output, 'reduced.' + host), os.listdir(output))
    with open(os.path.join(output, 'ended.' + host)) as file:
        expect_equal(file.read(), 33 * '.' + 'R', 'ended')
    expect('33 ranks' in said[0] and 'has left' not in said[0], said[0])
    expect_equal(by_name(ranks_of(output))['more']['calls'], 33, 'calls')
    os.unlink(os.path.join(output, 'reduced.' + host))
    expect_equal(by_name(ranks_of(output))['more']['calls'], 33, 'calls')


@test
def ranks_that_fail_are_named():
    program = compile('ranks.c')
    directory = new_directory('failed')
    for rank in 3, 2, 1:
        words = [PROFRUN, program, '1'] + (['3'] if rank == 2 else [])
        subprocess.run(
            words, cwd=directory, capture_output=True, text=True,
            env=shimtest.environment(
                OMPI_COMM_WORLD_SIZE='6', OMPI_COMM_WORLD_RANK=str(rank),
                PMIX_NAMESPACE='79'))
    output = os.path.join(directory, 'profrun.ranks.79')
    # As if it had been killed together with profrun.
    os.unlink(os.path.join(output, 'rank.3', 'end'))
    meta, = glob.glob(os.path.join(output, 'rank.3', '*', 'meta'))
    with open(meta, 'r+b') as file:
        file.seek(28)
        file.write(bytes(4))
    text = shim_report('report', output)
    for line in ('ranks 0, 4, 5 of 6 have left no recording',
                 'rank 3 has no end', 'rank 2 ended with exit status 3'):
        expect(line in text, (line, text))
    os.rename(os.path.join(output, 'rank.3'), os.path.join(output, 'other'))
    expect('left no recording' not in shim_report('report', output), 'no job')


@test
def mpirun_gives_one_report():
    shimtest.need('mpirun')
    directory = new_directory('mpirun')
    done = subprocess.run(
        ['mpirun', '--allow-run-as-root', '--oversubscribe', '-n', '3', PROFRUN,
         compile('ranks.c')], cwd=directory, capture_output=True, text=True,
        env=shimtest.environment(), timeout=60)
    expect_equal(done.returncode, 0, done.stderr)
    made = os.listdir(directory)
    expect_equal(len(made), 1, made)
    output = os.path.join(directory, made[0])
    expect_equal(by_name(ranks_of(output))['more']['mean'] > 0, True, 'more')
    expect_equal(tree_of(output)['main;more'], 6, 'calls')
    expect_equal(done.stderr.count('3 ranks:'), 1, done.stderr)


@test
def outliers_and_groups_are_told():
    counts = 100, 103, 99, 400, 101, 98, 102, 100, 101
    job = Job(9, counts=counts)
    output = job.path('profrun.ranks.77')
    for _ in range(2):
        text = shim_report('report', output, '--ranks')
        expect('outlier: rank.3 has 801, the median is 203; most of the '
               'difference is in ' in text, text)
        expect_equal(text.count('outlier'), 1, text)
        expect('alike: rank.0, rank.1, rank.2, rank.4 and 4 more: 202 calls each'
               in text, text)
        expect('alike: rank.3: 801 calls each' in text, text)
        found = ranks_of(output)
        expect_equal(found['groups'], [0, 0, 0, 1, 0, 0, 0, 0, 0], 'groups')
        more = by_name(found)['more']
        expect_equal((more['median'], more['mad'], more['outliers']),
                     (101, 1, [3]), 'more')
        shim_report('reduce', output)
    output = Job(3, counts=(1, 50, 2)).path('profrun.ranks.77')
    expect('outlier' not in shim_report('report', output, '--ranks'), 'few')


# --- MPI ---

def mpi_parameters(header):
    with open(header) as file:
        text = re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S)
    found = re.findall(r'\bMPI_(\w+)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*[;_M]',
                       text)
    return {name: 0 if words.strip() == 'void' else words.count(',') + 1
            for name, words in found}


@test
def wrappers_have_the_parameters_of_mpi():
    shimtest.need('mpicc')
    with open(os.path.join(HERE, '..', '..', 'shim', 'edge', 'mpi',
                           'functions.def')) as file:
        ours = dict(re.findall(r'^(?:MPI|NOTED)\((\w+), (\d+)[,)]',
                               file.read(), re.M))
    words = subprocess.run(['mpicc', '-E', '-xc', '-include', 'mpi.h',
                            '/dev/null'], capture_output=True, text=True)
    expect_equal(words.returncode, 0, words.stderr)
    header = os.path.join(new_directory('header'), 'mpi.h')
    with open(header, 'w') as file:
        file.write(words.stdout)
    wanted = mpi_parameters(header)
    expect(len(ours) > 100, ours)
    for name, count in ours.items():
        expect_equal(int(count), wanted.get(name), name)


def mpi_report(compiler, starter, *flags):
    shimtest.need(compiler)
    shimtest.need(starter)
    directory = new_directory('mpi')
    program = os.path.join(directory, 'mpi_calls')
    made = subprocess.run([compiler, '-g', *flags, '-o', program, os.path.join(
        HERE, '..', 'programs', 'mpi_calls.c')], capture_output=True,
        text=True)
    expect_equal(made.returncode, 0, made.stderr)
    words = [starter, '-n', '3', PROFRUN, '-p', 'calltree:counts', '-q', '-o',
             'job', program, '20']
    if 'mpich' not in starter:
        words[1:1] = ['--allow-run-as-root', '--oversubscribe']
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True,
                          env=shimtest.environment(), timeout=120)
    expect_equal((done.returncode, done.stdout), (0, 3 * 'sum 3\n'), done.stderr)
    return by_name(ranks_of(os.path.join(directory, 'job')))


@test
def calls_of_mpi_are_functions():
    for compiler, starter in ('mpicc', 'mpirun'), ('mpicc.mpich',
                                                   'mpirun.mpich'):
        if not shutil.which(compiler):
            continue
        found = mpi_report(compiler, starter, '-finstrument-functions')
        for name, calls in (('MPI_Isend', 20), ('MPI_Sendrecv', 20),
                            ('MPI_Waitall', 20), ('MPI_Barrier', 1),
                            ('MPI_Allreduce', 1), ('main', 1)):
            expect_equal(found[name]['each'], 3 * [calls], name)


# --- the start of a rank ---

OPENS = '''
#include <dlfcn.h>
int main(void) { return !dlopen("libstdc++.so.6", RTLD_NOW); }
'''


def count_reads(program, output, *options):
    log = output + '.strace'
    done = subprocess.run(
        ['strace', '-f', '-qq', '-o', log, '-e', 'trace=process_vm_readv',
         PROFRUN, 'record', '-q', '-p', 'calltree:counts', '-o', output, *options, program],
        env=shimtest.environment(), capture_output=True, text=True)
    if not os.path.exists(log) or 'ptrace' in done.stderr:
        raise shimtest.Skipped('strace cannot trace: ' + done.stderr)
    expect_equal(done.returncode, 0, done.stderr)
    with open(log) as file:
        return file.read().count('process_vm_readv(')


def opens_a_library(directory):
    shimtest.need('strace')
    source, program = (os.path.join(directory, name) for name in ('opens.c', 'opens'))
    with open(source, 'w') as file:
        file.write(OPENS)
    subprocess.run(['gcc', '-g', '-finstrument-functions', '-o', program, source], check=True)
    return program


@test
def a_library_without_marks_that_is_opened_is_not_read():
    """Ranks open dozens of libraries whose functions never call the hooks."""
    directory = new_directory('opens')
    program = opens_a_library(directory)
    reads = count_reads(program, os.path.join(directory, 'recording'))
    expect(reads < 40, reads)


@test
def a_library_that_is_opened_takes_few_system_calls():
    """Its symbols and names, which --libcalls needs, are in 150 pages."""
    directory = new_directory('opens')
    program = opens_a_library(directory)
    reads = count_reads(program, os.path.join(directory, 'recording'), '--libcalls=none')
    expect(0 < reads < 500, reads)
    images = shim_report('info', os.path.join(directory, 'recording'))
    expect('libstdc++.so.6' in images, images)


if __name__ == '__main__':
    shimtest.main()
