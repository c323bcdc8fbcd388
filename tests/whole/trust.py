#!/usr/bin/env python3
"""trust.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Directories and files that another user has prepared, or could change: shim refuses them
with a message that gives the reason, and the program runs as usual.  The user `nobody`
takes the part of the other user, so these tests need root.
"""
import json
import os
import re
import shutil
import struct
import subprocess

import shimtest
from shimtest import (Failed, Skipped, compile, environment, expect,
                      expect_equal, new_directory, run, shim_report, test,
                      tree_of)

NOBODY = 65534
PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')


def need_root():
    if os.geteuid() != 0:
        raise Skipped('only root can act as another user')


def program():
    return compile('nesting.c')


def bare(output, **more):
    """Runs the program with its recording at @output, without profrun."""
    result = run([program()], LD_PRELOAD=shimtest.library, SHIM_OUTPUT=output,
                 SHIM_PROFILE='calltree:counts', **more)
    alone = run([program()])
    expect_equal((result.status, result.stdout), (alone.status, alone.stdout),
                 'the program')
    return result


def contents(directory):
    """All files below the directory, with the attributes that show a change."""
    found = []
    for path, _, files in os.walk(directory):
        for name in [''] + files:
            info = os.lstat(os.path.join(path, name))
            found.append((path, name, info.st_size, info.st_mtime_ns))
    return sorted(found)


def prepare(mode=0o700, owner=None):
    """A directory with files that claim to be the recording of our parent."""
    output = os.path.join(new_directory('prepared'), 'r')
    part = os.path.join(output, '%d.0' % os.getpid())
    os.makedirs(part, 0o700)
    meta = os.path.join(part, 'meta')
    with open(meta, 'wb') as file:
        file.write(bytes(32768))
    os.chmod(meta, 0o600)
    os.chmod(output, mode)
    if owner is not None:
        for path in (output, part, meta):
            os.chown(path, owner, owner)
    return output


def expect_refused(output, why, made=None):
    """The existing files must be unchanged, and the recording must be in a directory
    beside them."""
    before = contents(output)
    result = bare(output)
    expect_equal(result.stderr, '', 'stderr')
    expect_equal(contents(output), before, 'what was there')
    made = made or output + '.1'
    expect_equal(tree_of(made)['main;a;b;c'], 6, 'calls')
    log = shim_report('info', made)
    expect('%s exists and is not used: %s' % (output, why) in log, log)


# --- recordings that a process continues ---

@test
def a_child_continues_the_recording_of_its_parent():
    output = prepare()
    bare(output)
    expect_equal(len(os.listdir(output)), 2, 'processes')
    expect_equal(os.listdir(os.path.dirname(output)), ['r'], 'recordings')


@test
def a_directory_of_another_user_is_refused():
    need_root()
    for mode in (0o700, 0o755, 0o777):
        expect_refused(prepare(mode, NOBODY), 'it belongs to another user')


@test
def a_directory_that_others_have_access_to_is_refused():
    for mode in (0o770, 0o707, 0o750, 0o701):
        expect_refused(prepare(mode), 'other users have access to it')


@test
def a_link_to_a_directory_is_refused():
    output = prepare()
    os.rename(output, output + '.away')
    os.symlink(output + '.away', output)
    expect_refused(output, 'not a directory')
    expect_equal(len(os.listdir(output + '.away')), 1, 'processes')


@test
def a_directory_that_others_could_make_is_not_a_parents_recording():
    """The directory is ours, but its content was not made by our parent."""
    def link(meta):
        os.link(meta, meta + '.too')

    def symlink(meta):
        os.rename(meta, meta + '.too')
        os.symlink(meta + '.too', meta)

    def fifo(meta):
        os.remove(meta)
        os.mkfifo(meta, 0o600)

    def open_to_others(meta):
        os.chmod(os.path.dirname(meta), 0o755)
    for change in (link, symlink, fifo, open_to_others):
        output = prepare()
        change(os.path.join(output, '%d.0' % os.getpid(), 'meta'))
        bare(output)
        expect_equal(len(os.listdir(output)), 1, 'processes')
        expect_equal(tree_of(output + '.1')['main;a;b;c'], 6, 'calls')


@test
def exec_continues_a_renamed_recording():
    """The first name was already taken when the process began."""
    output = os.path.join(new_directory('taken'), 'r')
    os.mkdir(output)
    result = run([compile('execs.c'), '1'], LD_PRELOAD=shimtest.library,
                 SHIM_OUTPUT=output, SHIM_PROFILE='calltree:counts')
    expect_equal(result.status, 0, 'status')
    expect_equal(sorted(os.listdir(os.path.dirname(output))), ['r', 'r.1'],
                 'recordings')
    expect(len(os.listdir(output + '.1')) >= 2, 'images')


# --- a directory that profrun made, or failed to make ---

def with_directory(directory):
    return run([program()], directory, 'calltree:counts')


@test
def a_given_directory_must_be_the_users_own():
    directory = new_directory('given')
    expect_equal(tree_of(with_directory(directory).output)['main;a;b;c'], 6,
                 'calls')
    cases = [(lambda path: os.chmod(path, 0o755), 'other users have access')]
    if os.geteuid() == 0:
        cases.append((lambda path: os.chown(path, NOBODY, NOBODY),
                      'it belongs to another user'))
    for change, why in cases:
        directory = new_directory('given')
        change(directory)
        result = with_directory(directory)
        expect_equal(os.listdir(directory), [], 'what is in it')
        expect_equal(result.stdout, run([program()]).stdout, 'stdout')
        expect(result.stderr.startswith('shim: cannot make the recording') and
               why in result.stderr and result.stderr.count('\n') == 1,
               result.stderr)


@test
def missing_directories_above_are_the_users_alone():
    """They are private whatever the umask allows."""
    directory = new_directory('above')
    done = subprocess.run(
        ['sh', '-c', 'umask 0; exec "$@"', 'sh', PROFRUN, '-q', '-o',
         'a/b/c', program()], cwd=directory, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, env=environment())
    expect_equal(done.returncode, 0, 'status')
    for name in ('a', 'a/b', 'a/b/c'):
        mode = os.stat(os.path.join(directory, name)).st_mode
        expect_equal(oct(mode & 0o777), '0o700', name)


@test
def a_directory_above_that_cannot_be_made_gives_its_reason():
    """Root, too, may make none in /sys."""
    if not os.path.ismount('/sys'):
        raise Skipped('/sys is not mounted')
    for ranks in {}, {'OMPI_COMM_WORLD_SIZE': '2', 'OMPI_COMM_WORLD_RANK': '0'}:
        done = subprocess.run([PROFRUN, '-q', '-o', '/sys/none/r', program()],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=environment(**ranks))
        expect_equal((done.returncode, done.stdout), (0, run([program()]).stdout), done)
        expect('/sys/none/r: cannot be created: ' in done.stderr and
               'runs unprofiled' in done.stderr and 'No such file' not in done.stderr,
               done.stderr)


@test
def a_working_directory_without_a_path_is_said():
    directory = new_directory('gone')
    script = 'mkdir d && cd d && rmdir ../d && exec "$@"'
    done = subprocess.run(['sh', '-c', script, 'sh', PROFRUN, '-q', program()], cwd=directory,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment())
    expect_equal((done.returncode, done.stdout), (0, run([program()]).stdout), done)
    expect('profrun: the working directory has no path: ' in done.stderr and
           'runs unprofiled' in done.stderr, done.stderr)


def run_rank(directory, rank):
    return subprocess.run(
        [PROFRUN, '-p', 'calltree:counts', '--no-report', program()],
        cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env=environment(OMPI_COMM_WORLD_SIZE='2', PMIX_NAMESPACE='job',
                        OMPI_COMM_WORLD_RANK=str(rank)))


@test
def ranks_share_a_directory_that_is_the_users_alone():
    directory = new_directory('job')
    for rank in (0, 1):
        done = run_rank(directory, rank)
        expect_equal(done.returncode, 0, 'status: ' + done.stderr)
    job = os.path.join(directory, 'profrun.nesting.job')
    expect_equal(oct(os.stat(job).st_mode & 0o777), '0o700', 'mode')
    expect_equal(sorted(os.listdir(job)), ['job.all', 'rank.0', 'rank.1'], 'ranks')


@test
def a_job_directory_that_others_could_change_is_refused():
    cases = [(lambda path: os.chmod(path, 0o777), 'other users have access')]
    if os.geteuid() == 0:
        cases.append((lambda path: os.chown(path, NOBODY, NOBODY),
                      'belongs to another user'))
    alone = run([program()])
    for change, why in cases:
        directory = new_directory('job')
        job = os.path.join(directory, 'profrun.nesting.job')
        os.mkdir(job, 0o700)
        change(job)
        done = run_rank(directory, 0)
        expect_equal((done.returncode, done.stdout),
                     (alone.status, alone.stdout), 'the program')
        expect('%s: cannot be created: ' % job in done.stderr and
               why in done.stderr and 'runs unprofiled' in done.stderr,
               done.stderr)
        expect_equal(os.listdir(job), [], 'what is in it')


# --- while it runs ---

class Busy:
    """Runs the program busy, with a pause halfway."""

    def __init__(self, output, profile='calltree:counts'):
        self.output = output
        self.process = subprocess.Popen(
            [compile('busy.c', 'gcc', '-O1'), 'wait'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd='/',
            env=environment(output, profile))
        self.seen = self.process.stdout.readline()

    def part(self):
        return os.path.join(self.output, '%d.0' % self.process.pid)

    def end(self):
        self.process.stdin.write(b'\n')
        self.process.stdin.flush()
        try:
            stdout, stderr = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failed('the program hangs')
        finally:
            self.process.kill()
        alone = run([compile('busy.c', 'gcc', '-O1'), 'wait'])
        expect_equal((self.process.returncode, stderr), (alone.status, b''),
                     'the end')
        return shimtest.Result(0, self.seen + stdout, b'', self.output)


def expect_loss(change, restore=None):
    """Data that cannot be written to its place is lost and counted."""
    busy = Busy(new_directory('while'))
    change(busy)
    result = busy.end()
    if restore:
        restore(busy)
    about = shimtest.json_of(busy.output)
    truth = sum(result.truth().values())
    expect_equal(about['calls'] + about['lost'], truth, 'recorded and lost')
    expect(about['lost'] > 0, 'nothing is lost')
    expect_equal({cause for cause, n in about['lost_causes'].items() if n},
                 {'access'}, 'causes')
    return busy


def put_back(busy):
    shutil.rmtree(busy.part())
    os.rename(busy.part() + '.away', busy.part())


@test
def another_directory_in_the_place_of_ours_gets_nothing():
    """A user who may write the parent directory could have made it: all names exist."""
    def replace(busy):
        os.rename(busy.part(), busy.part() + '.away')
        shutil.copytree(busy.part() + '.away', busy.part())
        os.chmod(busy.part(), 0o700)
        busy.before = contents(busy.part())

    def restore(busy):
        expect_equal(contents(busy.part()), busy.before, 'the other one')
        put_back(busy)
    busy = expect_loss(replace, restore)
    expect('another file is in its place' in shim_report('info', busy.output),
           shim_report('info', busy.output))


@test
def other_files_in_the_place_of_ours_get_nothing():
    def replace(busy):
        for name in os.listdir(busy.part()):
            path = os.path.join(busy.part(), name)
            os.rename(path, path + '.away')
            shutil.copy(path + '.away', path)
            os.chmod(path, 0o600)
        busy.before = contents(busy.part())[:]

    def restore(busy):
        now = {entry[1]: entry[2:] for entry in contents(busy.part())}
        for _, name, size, time in busy.before:
            if name and not name.endswith('.away'):
                expect_equal(now[name], (size, time), name)
        for name in os.listdir(busy.part()):
            if name.endswith('.away'):
                path = os.path.join(busy.part(), name)
                os.rename(path, path[:-len('.away')])
    expect_loss(replace, restore)


@test
def a_directory_that_was_opened_to_others_gets_nothing_more():
    expect_loss(lambda busy: os.chmod(busy.part(), 0o777),
                lambda busy: os.chmod(busy.part(), 0o700))


@test
def a_file_with_a_second_name_is_not_gone_on_with():
    def link(busy):
        for name in os.listdir(busy.part()):
            path = os.path.join(busy.part(), name)
            os.link(path, path + '.too')

    def restore(busy):
        for name in os.listdir(busy.part()):
            if name.endswith('.too'):
                os.remove(os.path.join(busy.part(), name))
    busy = expect_loss(link, restore)
    expect('a second name' in shim_report('info', busy.output),
           shim_report('info', busy.output))



@test
def another_directory_in_the_place_of_a_new_one_keeps_its_mode():
    """Between mkdir and open, who may write to the directory above can put a link or
    another directory there: here mkdir makes nothing."""
    if not shutil.which('strace'):
        raise Skipped('strace is not installed')
    output = os.path.join(new_directory('prepared'), 'r')
    os.mkdir(output)
    os.chmod(output, 0o755)
    result = run(['strace', '-o', '/dev/null', '-e', 'inject=mkdirat:retval=0:when=1',
                  '-E', 'LD_PRELOAD=' + shimtest.library, program()],
                 SHIM_OUTPUT=output, SHIM_PROFILE='calltree:counts')
    expect('other users have access to it' in result.stderr, result.stderr)
    expect_equal(os.stat(output).st_mode & 0o777, 0o755, 'mode')
    expect_equal(os.listdir(output), [], 'files')


@test
def threads_that_change_the_identity_write_to_files_of_the_first_one_only():
    """libc changes the identity of each thread in a handler of its signal, which shim
    blocks from the check of a directory to the use of the descriptor; threads that make
    the system call themselves have an identity of their own."""
    need_root()
    source = compile('identities.c')
    for how in 'libc', 'raw':
        output = new_directory('recording')
        result = run([source, how], output)
        expect_equal((result.status, result.stderr), (0, ''), how)
        about = json.loads(shim_report('export', 'json', output))
        expect(about['calls'] + about['lost'] >= 4000, str(about['lost_causes']))
        expect_equal(about['calls'] + about['lost'],
                     int(re.search('calls all ([0-9]+)', result.stdout)[1]), how)
        expect_equal({os.lstat(os.path.join(path, name)).st_uid
                      for path, _, files in os.walk(output)
                      for name in [''] + files}, {0}, 'owners')


NAMESPACE = '''
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void __attribute__((noinline)) leaf(void)
{
    __asm__ volatile("");
}

static void work(void)
{
    for (int i = 0; i < 1000000; i++)
        leaf();
}

int main(int argc, char **argv)
{
    char map[32];
    int size = sprintf(map, "5 %d 1", (int)geteuid()), file;

    work();
    if (unshare(CLONE_NEWUSER) < 0)
        return 77;
    if (argc > 1) {
        file = open("/proc/self/uid_map", O_WRONLY);
        if (write(file, map, size) != size)
            return 77;
        close(file);
    }
    work();
    if (fork() == 0)
        work();
    else
        wait(NULL);
    return 0;
}
'''


@test
def another_user_namespace_has_the_same_user():
    """There the owner of the recording has another id, or none."""
    source = compile(shimtest.new_source('namespace.c', NAMESPACE))
    for ids in [], ['5']:
        for profile in 'calltree', 'trace':
            output = new_directory('recording')
            result = run([source] + ids, output, profile)
            if result.status == 77:
                raise Skipped('no new user namespace is allowed')
            about = shimtest.json_of(output)
            expect_equal((result.status, about['calls'], about['lost']),
                         (0, 3000004, 0), '%s %s' % (profile, ids))


TIME_NAMESPACE = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void leaf(void) { __asm__ volatile(""); }
__attribute__((noinline)) void dies(void)
{
    leaf();
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    int file;

    leaf();
    if (unshare(CLONE_NEWTIME) < 0)
        return 77;
    file = open("/proc/self/timens_offsets", O_WRONLY);
    if (dprintf(file, "monotonic %s 0\\nboottime %s 0\\n", argv[1], argv[1]) < 0)
        return 77;
    close(file);
    if (fork() == 0)
        dies();
    wait(NULL);
    return 5;
}
'''


@test
def a_child_in_another_time_namespace_takes_the_time_that_it_took():
    """Its CLOCK_MONOTONIC has another zero: with an earlier one, it began before the
    process that profrun ran, and ended when that did."""
    source = compile(shimtest.new_source('time_namespace.c', TIME_NAMESPACE))
    with open('/proc/uptime') as uptime:
        most = int(float(uptime.read().split()[0]))
    for offset in min(most // 2, 1000), -min(most // 2, 1000):
        for profile in 'calltree', 'calltree:exact', 'trace':
            output = os.path.join(new_directory('time'), 'r')
            done = run([PROFRUN, '-q', '-p', profile, '-o', output, source, str(offset)])
            if done.status == 77:
                raise Skipped('no new time namespace is allowed')
            expect_equal(done.status, 5, done.stderr)
            about = shimtest.json_of(output)
            expect_equal((about['calls'], about['lost']), (4, 0), 'calls')
            text = '%s, %d s: %s' % (profile, offset, about)
            expect(about['duration_ns'] < 60e9, text)
            expect(all(one['total_ns'] < 60e9 for one in about['functions']), text)
            expect_equal([(one['forked'], one['end_known']) for one in about['processes']],
                         [(False, True), (True, False)], text)


@test
def a_host_that_was_suspended_has_one_clock():
    """The time of day goes on meanwhile, or is set; CLOCK_MONOTONIC does not."""
    program = compile(shimtest.new_source('short.c', 'int main(void) { return 0; }'))
    for profile in 'calltree', 'trace':
        for step in 3600, -3600:
            output = os.path.join(new_directory('suspend'), 'r')
            done = run([PROFRUN, '-q', '-p', profile, '-o', output, 'sh', '-c',
                        '"$0"; "$0"; :', program])
            expect_equal(done.status, 0, done.stderr)
            before = shimtest.json_of(output)
            latest = sorted(before['processes'], key=lambda one: one['start_real_ns'])[-1]
            with open(os.path.join(output, '%d.0' % latest['pid'], 'meta'), 'r+b') as meta:
                meta.seek(80)       # start_real_ns
                meta.write(struct.pack('<Q', latest['start_real_ns'] + step * 10**9))
            about = shimtest.json_of(output)
            expect_equal(about['duration_ns'], before['duration_ns'], (profile, step))
            expect_equal(sorted(one['end_known'] for one in about['processes']),
                         sorted(one['end_known'] for one in before['processes']), 'ends')


if __name__ == '__main__':
    shimtest.main()
