"""The ranks of a host in one file: profrun --node-files, profrun reduce --node-files."""

import glob
import os
import random
import shutil
import signal
import subprocess
import time
import zipfile

import shimtest
from shimtest import (compile, expect, expect_equal, new_directory, shim_report,
                      test, tree_of)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
HOST = os.uname().nodename
ARCHIVE = 'ranks.%s.zip' % HOST


def start_rank(directory, rank, *words, size=3, program=None, **more):
    return subprocess.Popen(
        [PROFRUN, '-p', 'calltree:counts', *words,
         *(program or [compile('ranks.c')])],
        cwd=directory, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=shimtest.environment(
            OMPI_COMM_WORLD_SIZE=str(size), OMPI_COMM_WORLD_RANK=str(rank),
            OMPI_COMM_WORLD_LOCAL_SIZE=str(size), PMIX_NAMESPACE='5', **more))


def job(*words, directory=None, **more):
    """The recording of three ranks, and what they said."""
    directory = directory or new_directory('job')
    ranks = [start_rank(directory, rank, '-o', 'job', *words, **more)
             for rank in range(3)]
    said = [rank.communicate(timeout=60)[1] for rank in ranks]
    expect_equal([rank.returncode for rank in ranks], [0, 0, 0], said)
    return os.path.join(directory, 'job'), said


def outputs_of(output):
    return [shim_report('report', output, *words) for words in (
        (), ('--tree', '--min-percent', '0'), ('--ranks',), ('--threads',),
        ('--format', 'json'))] + [shim_report('info', output)]


def pack(output):
    """Without the sums, so that reports read the ranks in the archive."""
    shim_report('reduce', '--node-files', output)
    os.unlink(os.path.join(output, 'reduced'))


def ranks_on_disk(output):
    return sorted(name for name in os.listdir(output) if 'rank' in name)


@test
def reports_of_packed_ranks_are_the_same():
    output, _ = job()
    before = outputs_of(output)
    one = shim_report('report', output + '/rank.1')
    pack(output)
    expect_equal(sorted(os.listdir(output)), ['job.all', ARCHIVE], 'files')
    for ours, wanted in zip(outputs_of(output), before):
        expect_equal(ours, wanted, 'report')
    expect_equal(shim_report('report', output + '/rank.1'), one, 'one rank')


@test
def other_tools_can_unpack_them():
    output, _ = job()
    copy = os.path.join(new_directory('copy'), 'job')
    shutil.copytree(output, copy)
    pack(output)
    back = new_directory('back')
    with zipfile.ZipFile(os.path.join(output, ARCHIVE)) as archive:
        expect_equal(archive.testzip(), None, 'bad file')
        archive.extractall(back)
    done = subprocess.run(['diff', '-r', '-x', 'job.all', copy, back], capture_output=True,
                          text=True)
    expect_equal((done.returncode, done.stdout), (0, ''), 'content')


@test
def the_last_rank_packs_those_of_its_host():
    output, said = job('--node-files')
    expect_equal(sorted(os.listdir(output)),
                 ['ended.' + HOST, 'job.all', ARCHIVE, 'reduced.' + HOST], 'files')
    expect('3 ranks' in said[0] and 'has left' not in said[0], said[0])
    expect_equal(tree_of(output)['main;more'], 6, 'calls')
    output, _ = job(SHIM_NODE_FILES='1')
    expect_equal(ranks_on_disk(output), [ARCHIVE], 'by the variable')


@test
def ranks_with_samples_or_memory_are_packed_too():
    """Their sums are left out, which reports do without."""
    for profile in 'sampling', 'memory':
        output, _ = job('--node-files', '-p', profile)
        expect_equal(sorted(os.listdir(output)),
                     ['ended.' + HOST, 'job.all', ARCHIVE], profile)
        back = new_directory('back')
        with zipfile.ZipFile(os.path.join(output, ARCHIVE)) as archive:
            archive.extractall(back)
        for ours, wanted in zip(outputs_of(output), outputs_of(back)):
            expect_equal(ours.replace(output, back), wanted, profile)


@test
def ranks_with_traces_stay():
    """Reports read traces in pieces, which an archive does not have."""
    output, _ = job('--node-files', '-p', 'trace')
    expect_equal(ranks_on_disk(output), ['rank.0', 'rank.1', 'rank.2'], 'ranks')
    expect('3 recordings' in shim_report('report', output), 'report')


@test
def packed_ranks_can_be_merged():
    output, _ = job()
    pack(output)
    target = os.path.join(new_directory('merged'), 'all')
    shim_report('merge', '-o', target, output)
    expect_equal(ranks_on_disk(target), ['rank.0', 'rank.1', 'rank.2'], 'ranks')
    expect_equal(outputs_of(target)[4], outputs_of(output)[4], 'report')


@test
def a_rank_that_was_not_removed_counts_once():
    output, _ = job()
    kept = os.path.join(new_directory('kept'), 'rank.1')
    shutil.copytree(output + '/rank.1', kept)
    before = outputs_of(output)
    pack(output)
    # profrun was killed before, or while, it removed the directory.
    shutil.copytree(kept, output + '/rank.1')
    shutil.copytree(kept, output + '/.rank.1.packed')
    expect_equal(outputs_of(output), before, 'reports')
    pack(output)
    expect_equal(ranks_on_disk(output), ['ranks.%s.1.zip' % HOST, ARCHIVE],
                 'packed again')
    expect_equal(tree_of(output)['main;more'], 6 + 2, 'rank 1 twice')


@test
def a_job_that_is_started_again_loses_nothing():
    output, _ = job()
    pack(output)
    job(directory=os.path.dirname(output))
    expect_equal(ranks_on_disk(output), ['rank.0', 'rank.1', 'rank.2', ARCHIVE],
                 'files')
    expect_equal(tree_of(output)['main;more'], 12, 'calls')
    expect('were started more than once' in shim_report('report', output),
           'ranks')
    pack(output)
    expect_equal(tree_of(output)['main;more'], 12, 'calls')
    expect_equal(len(glob.glob(output + '/ranks.*')), 2, 'files')


@test
def ranks_that_run_or_have_no_end_stay():
    directory = new_directory('running')
    output = os.path.join(directory, 'job')
    first = start_rank(directory, 0, '-q', '-o', 'job')
    first.communicate()
    # rank 1: a child of the program is still there
    second = start_rank(directory, 1, '-o', 'job',
                        program=['/bin/sh', '-c', 'sleep 60 >&- 2>&- & :'])
    second.communicate()
    # rank 2: profrun is killed
    third = start_rank(directory, 2, '-o', 'job',
                       program=['/bin/sleep', '60'])
    while not glob.glob(output + '/rank.2/*/meta'):
        time.sleep(0.01)
    third.send_signal(signal.SIGKILL)
    third.wait()
    try:
        shim_report('reduce', '--node-files', output)
        expect_equal(ranks_on_disk(output), ['rank.1', 'rank.2', ARCHIVE],
                     'ranks')
    finally:
        for meta in glob.glob(output + '/rank.[12]/*'):
            if os.path.isdir(meta):
                try:
                    os.kill(int(os.path.basename(meta).split('.')[0]),
                            signal.SIGKILL)
                except OSError:
                    pass


@test
def a_full_disk_removes_nothing():
    output, _ = job()
    before = ranks_on_disk(output)
    copy = os.path.join(new_directory('copy'), 'job')
    shutil.copytree(output, copy)
    shim_report('reduce', '--node-files', copy)
    sums, archive = [os.stat(os.path.join(copy, name)).st_size
                     for name in ('reduced', ARCHIVE)]
    expect(sums < archive - 1024, (sums, archive))
    done = subprocess.run(
        ['prlimit', '--fsize=%d' % (archive - 512), 'sh', '-c',
         'trap "" XFSZ; exec "$@"', 'sh', shimtest.report, 'reduce',
         '--node-files', output], capture_output=True, text=True)
    expect_equal(done.returncode, 1, done.stderr)
    expect('File too large' in done.stderr, done.stderr)
    expect_equal(ranks_on_disk(output), before, 'ranks')


@test
def damaged_archives_harm_no_report():
    output, _ = job()
    pack(output)
    path = os.path.join(output, ARCHIVE)
    with open(path, 'rb') as file:
        content = file.read()
    dice = random.Random(5)
    for i in range(150):
        bad = bytearray(content)
        if i % 3 == 0:
            bad = bad[:dice.randrange(len(bad))]
        for _ in range(1 if i % 2 else 20):
            # Mostly the list of entries, at the end.
            at = dice.choice([dice.randrange(len(bad) or 1),
                              max(len(bad) - dice.randrange(1, 1200), 0)])
            if bad:
                bad[at % len(bad)] = dice.randrange(256)
        with open(path, 'wb') as file:
            file.write(bad)
        done = subprocess.run([shimtest.report, 'report', output],
                              capture_output=True, text=True, timeout=60)
        expect(done.returncode in (0, 1), (i, done.returncode, done.stderr))
        # A cyclic redundancy check finds changed content.
        expect(done.stderr or tree_of(output).get('main;more') == 6,
               (i, bad))


if __name__ == '__main__':
    shimtest.main()
