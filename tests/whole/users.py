#!/usr/bin/env python3
"""users.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Programs of root that become other users: profrun opens the files of the recording for
them.  It does so for no one else.
"""
import contextlib
import ctypes
import errno
import os
import signal
import socket
import struct
import subprocess
import time

import shimtest
from shimtest import (Failed, Skipped, compile, environment, expect, expect_equal, json_of,
                      need_root, new_directory, profrun, run, shim_report, test, tree_of)

# A struct opener_request, and enum opener_what.
REQUEST = struct.Struct('<48sI28s48s')
(ANSWER, TICK, LIST, LOG, MAKE_DIRECTORY, REMOVE_DIRECTORY, CREATE, OPEN,
 REMOVE) = range(1, 10)
PR_SET_CHILD_SUBREAPER = 36
PREFIX = b'\0shim-opener-'
PROFILES = ['calltree:counts', 'calltree', 'trace', 'calltree;sampling:hz=1000', 'memory']
PATHS = 2 ** 13 - 1     # calls of left(12) and all below it, but for leaf


def need_readable_library():
    """A program of another user is to load it."""
    done = subprocess.run(['setpriv', '--reuid', '65534', '--clear-groups', 'test', '-r',
                           shimtest.library])
    if done.returncode != 0:
        raise Skipped('the library is not readable for others')


def recorded(program, *words, options=()):
    """Runs it; the directory of the recording has no access for others."""
    output = os.path.join(new_directory('users'), 'recording')
    done = run([profrun(), 'run', '-q', '--no-report', '-o', output, *options, '--',
                program, *words])
    return output, done


def openers():
    found = set()
    for entry in os.listdir('/proc'):
        try:
            with open('/proc/%s/comm' % entry) as file:
                if file.read() == 'shim-opener\n':
                    found.add(int(entry))
        except OSError:
            continue
    return found


def child_openers(pid):
    """Those whose parent is process @pid."""
    def parent(opener):
        with open('/proc/%d/stat' % opener) as file:
            return int(file.read().rsplit(')', 1)[1].split()[1])
    return [opener for opener in openers() if parent(opener) == pid]


@test
def nothing_is_lost_of_a_program_that_gives_up_its_rights():
    need_root()
    program = compile('busy.c', 'gcc', '-O1')
    for words in ['setuid'], ['chroot', new_directory('empty')]:
        alone = run([program, *words])
        for profile in PROFILES:
            output, done = recorded(program, *words, options=['-p', profile])
            expect_equal((done.status, done.stderr), (alone.status, ''), 'status')
            about = json_of(output)
            expect_equal(about['lost'], 0, '%s, %s' % (words[0], about['lost_causes']))
            told = shim_report('info', output)
            expect('may be lost' not in told, told)
            if profile != 'memory':
                expect_equal(about['calls'], sum(done.truth().values()),
                             '%s, %s: calls' % (words[0], profile))


def check_calls(output, roots):
    """Below each function of @roots are all calls of left(12)."""
    tree = tree_of(output)
    for root, times in roots.items():
        calls = sum(calls for path, calls in tree.items()
                    if root in path.split(';')[:-1])
        expect_equal(calls, times * (PATHS + 2 ** 12), 'calls below %s' % root)
    expect_equal(json_of(output)['lost'], 0, 'lost')


@test
def threads_and_children_of_another_user_are_recorded():
    need_root()
    program = compile('other_user.c', 'gcc', '-O1')
    for profile in 'calltree', 'trace':
        output, done = recorded(program, 'root', options=['-p', profile])
        expect_equal((done.status, done.stdout, done.stderr), (0, '0\n', ''), 'chroot')
        check_calls(output, {'after': 1, 'in_thread': 1, 'in_child': 1, 'in_vfork': 1})


@test
def programs_that_another_user_executes_are_recorded():
    need_root()
    need_readable_library()
    program = compile('other_user.c', 'gcc', '-O1')
    directory = new_directory('programs')
    os.chmod(directory, 0o755)
    for options in [], ['-F', 'M:after,M:left,M:right,M:leaf,M:in_*']:
        output, done = recorded(program, 'user', options=options)
        if done.status != 0:
            raise Skipped('nobody cannot execute the program')
        expect_equal((done.stdout, done.stderr), ('0\n', ''), 'user')
        check_calls(output, {'after': 2, 'in_thread': 1, 'in_child': 1, 'in_vfork': 1})


def wait_until(what, condition):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise Failed(what)
        time.sleep(0.02)


@test
def the_opener_serves_a_daemon_after_profruns_end():
    need_root()
    before = openers()
    program = compile('other_user.c', 'gcc', '-O1')
    for what in 'daemon', 'unseen':
        output, done = recorded(program, what)
        expect_equal((done.status, done.stderr), (0, ''), 'status')
        wait_until('the opener does not end', lambda: openers() <= before)
        check_calls(output, {'in_thread': 1, 'in_child': 1, 'in_vfork': 1})


def state(pid):
    with open('/proc/%d/stat' % pid) as file:
        return file.read().rsplit(')', 1)[1].split()[0]


@test
def the_opener_ends_with_a_daemon_for_which_nobody_waits():
    """Orphans become children of this process, as of the first one in a container."""
    need_root()
    prctl = ctypes.CDLL(None).prctl
    expect_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0, 'prctl')
    try:
        recorded(compile('other_user.c', 'gcc', '-O1'), 'killed')
        opener, = child_openers(os.getpid())
        wait_until('the opener does not end', lambda: state(opener) == 'Z')
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0):
                pass


@test
def the_opener_ends_with_profrun():
    need_root()
    before = openers()
    recorded('/bin/true')
    expect(openers() <= before, 'an opener lives')
    for how in signal.SIGKILL, signal.SIGTERM:
        output = os.path.join(new_directory('users'), 'recording')
        process = subprocess.Popen([profrun(), 'run', '-q', '--no-report', '-o', output,
                                    'sleep', '60'], start_new_session=True)
        wait_until('no opener', lambda: child_openers(process.pid))
        wait_until('no recording', lambda: os.path.isdir(output) and os.listdir(output))
        os.killpg(process.pid, how)
        process.wait()
        wait_until('the opener lives after signal %d' % how, lambda: openers() <= before)


def started_with_secret(pid):
    """The program that the profrun @pid runs, and the secret that it has got."""
    with open('/proc/%d/task/%d/children' % (pid, pid)) as file:
        children = file.read().split()
    for child in children:
        with open('/proc/%s/environ' % child, 'rb') as file:
            for variable in file.read().split(b'\0'):
                if variable.startswith(b'SHIM_OPENER='):
                    return int(child), variable.partition(b'=')[2]
    raise Failed('no program has a secret')


def connect(secret, is_waiting=True):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.settimeout(10 if is_waiting else 0)
    try:
        channel.connect(PREFIX + secret[:16])
    except OSError:
        channel.close()
        raise
    return channel


class Asked:
    """profrun with a program that waits, and what its opener answers."""

    def __init__(self):
        self.output = os.path.join(new_directory('users'), 'recording')

    def __enter__(self):
        self.process = subprocess.Popen(
            [profrun(), 'run', '-q', '--no-report', '-o', self.output, '-p', 'calltree',
             compile('busy.c', 'gcc', '-O1'), 'wait'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        expect_equal(self.process.stdout.readline(), b'now\n', 'begin')
        self.pid, self.secret = started_with_secret(self.process.pid)
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()

    def connect(self):
        return connect(self.secret)

    def ask(self, what, directory='', name='', secret=None):
        """The answer, or None if the opener closes; whether a descriptor came."""
        with self.connect() as channel:
            channel.send(REQUEST.pack(secret or self.secret, what, directory.encode(),
                                      name.encode()))
            data, files, _, _ = socket.recv_fds(channel, 4, 4)
            for file in files:
                os.close(file)
            return (struct.unpack('<i', data)[0] if data else None), len(files)

    def end(self):
        self.process.communicate(b'\n', timeout=60)
        return self.process.returncode


@test
def strangers_get_nothing_of_the_opener():
    need_root()
    with Asked() as asked:
        own = '%d.0' % os.getpid()
        others = '%d.0' % asked.pid
        secret = asked.secret
        expect_equal(asked.ask(ANSWER), (0, 0), 'answer')
        expect_equal(asked.ask(ANSWER, secret=secret[:-1] + b'x'), (None, 0), 'secret')
        expect_equal(asked.ask(ANSWER, secret=secret[:16]), (None, 0), 'its begin')
        with asked.connect() as channel:
            channel.send(b'x')
            expect_equal(channel.recv(4), b'', 'a short request')
        with asked.connect():
            pass
        for what in MAKE_DIRECTORY, REMOVE_DIRECTORY, CREATE, OPEN, REMOVE:
            for directory in others, '', '..', own + '/..', own + 'x', 'decoded', \
                    str(os.getpid()), str(os.getpid()) + '.':
                expect_equal(asked.ask(what, directory, 'meta'), (-errno.EPERM, 0),
                             '%d of %r' % (what, directory))
        expect_equal(asked.ask(MAKE_DIRECTORY, own), (0, 1), 'its own')
        expect_equal(asked.ask(MAKE_DIRECTORY, own), (-errno.EEXIST, 0), 'twice')
        for name in '', '.', '..', '../end', 'a/b', '.hidden', 'a\n':
            expect_equal(asked.ask(CREATE, own, name), (-errno.EPERM, 0), repr(name))
        expect_equal(asked.ask(CREATE, own, '0.calltree'), (0, 1), 'create')
        expect_equal(asked.ask(CREATE, own, '0.calltree'), (-errno.EEXIST, 0), 'again')
        path = os.path.join(asked.output, own)
        os.symlink('/etc/passwd', os.path.join(path, 'link'))
        os.link(os.path.join(path, '0.calltree'), os.path.join(path, 'second'))
        os.mkfifo(os.path.join(path, 'fifo'))
        os.mkdir(os.path.join(path, 'inner'))
        for name, error in (('link', errno.ELOOP), ('second', errno.EACCES),
                            ('fifo', errno.EACCES), ('inner', errno.EISDIR),
                            ('none', errno.ENOENT)):
            expect_equal(asked.ask(OPEN, own, name), (-error, 0), name)
        expect_equal(asked.ask(LIST, '', 'filter'), (-errno.ENOENT, 0), 'list')
        expect_equal(asked.ask(LIST, '', 'end'), (-errno.EPERM, 0), 'no list')
        expect_equal(asked.ask(99, own), (-errno.EINVAL, 0), 'an unknown request')
        after = '%d.1' % os.getpid()
        expect_equal(asked.ask(MAKE_DIRECTORY, after), (0, 1), 'after an exec')
        for what in CREATE, OPEN, REMOVE:
            expect_equal(asked.ask(what, own, '0.calltree'), (-errno.EPERM, 0),
                         '%d of the program before' % what)
        expect_equal(asked.ask(REMOVE_DIRECTORY, after), (0, 0), 'remove the last')
        for name in 'link', 'second', 'fifo', '0.calltree':
            expect_equal(asked.ask(REMOVE, own, name), (0, 0), 'remove ' + name)
        os.rmdir(os.path.join(path, 'inner'))
        expect_equal(asked.ask(REMOVE_DIRECTORY, own), (0, 0), 'remove')
        expect(not os.path.exists(path), 'the directory is there')
        expect_equal(asked.end(), run([compile('busy.c', 'gcc', '-O1'), 'none']).status,
                     'status')


@test
def silent_strangers_delay_nobody():
    need_root()
    with Asked() as asked, contextlib.ExitStack() as strangers:
        for _ in range(100):
            strangers.enter_context(asked.connect())
        begin = time.monotonic()
        expect_equal(asked.ask(ANSWER), (0, 0), 'answer')
        took = time.monotonic() - begin
        expect(took < 2, 'the answer took %.1f s' % took)


def connect_until_full(secret, connections):
    with contextlib.suppress(BlockingIOError):
        while True:
            connections.enter_context(connect(secret, is_waiting=False))


@test
def a_stopped_opener_stops_nobody():
    """Calls are then lost, as without it."""
    need_root()
    program = compile('busy.c', 'gcc', '-O1')
    for is_full in False, True:
        output = os.path.join(new_directory('users'), 'recording')
        with open(os.devnull) as null:
            process = subprocess.Popen(
                [profrun(), 'run', '-q', '--no-report', '-o', output, '-p', 'calltree', 'sh',
                 '-c', 'while [ ! -e go ]; do sleep .02; done; exec "$@"', 'sh', program,
                 'setuid'], stdin=null, stdout=subprocess.PIPE, env=environment(),
                cwd=new_directory('gate'), start_new_session=True)
        opener = process.pid
        try:
            wait_until('no opener', lambda: child_openers(process.pid))
            wait_until('no recording', lambda: os.path.isdir(output) and os.listdir(output))
            opener, = child_openers(process.pid)
            os.kill(opener, signal.SIGSTOP)
            gate = os.readlink('/proc/%d/cwd' % process.pid)
            with contextlib.ExitStack() as connections:
                if is_full:
                    connect_until_full(started_with_secret(process.pid)[1], connections)
                with open(os.path.join(gate, 'go'), 'w'):
                    pass
                stdout, _ = process.communicate(timeout=60)
        finally:
            for stop, pid, how in ((os.kill, opener, signal.SIGCONT),
                                   (os.killpg, process.pid, signal.SIGKILL)):
                with contextlib.suppress(ProcessLookupError):
                    stop(pid, how)
            process.wait()
        about = json_of(output)
        expect(about['lost'] > 0, 'nothing was lost')
        truth = sum(shimtest.Result(0, stdout, b'', output).truth().values())
        expect_equal(about['calls'] + about['lost'], truth, 'calls')


@test
def a_program_with_one_free_descriptor_keeps_its_input():
    """The opener's socket takes that one, so nothing can be received."""
    need_root()
    program = compile('other_user.c', 'gcc', '-O1')
    directory = new_directory('users')
    output = os.path.join(directory, 'recording')
    with open(os.path.join(directory, 'input'), 'w+b') as file:
        file.write(b'x' * 100)
        file.flush()
        done = subprocess.run([profrun(), 'run', '-q', '--no-report', '-o', output, '-p',
                               'calltree', '--', program, 'full'], stdin=file,
                              stdout=subprocess.PIPE, env=environment(), timeout=60)
    expect_equal((done.returncode, done.stdout), (0, b'100\n'), 'its input')
    about = json_of(output)
    expect(about['lost_causes']['other'] > 0, about['lost_causes'])
    calls = 1 + PATHS + 2 ** 12 + 1
    expect_equal(about['calls'] + about['lost'], calls, 'calls')


@test
def children_record_where_their_parent_does_whatever_has_its_path():
    need_root()
    output = os.path.join(new_directory('users'), 'recording')
    script = 'mv "$0" "$0.away"; mkdir -m 700 "$0"; (:); (:)'
    done = run([profrun(), 'run', '-q', '--no-report', '-o', output, '-p', 'calltree', 'sh',
                '-c', script, output])
    expect_equal((done.status, done.stderr), (0, ''), 'status')
    expect_equal([name for name in os.listdir(output) if name[0].isdigit()], [],
                 'in its place')
    # The shell, its two last children, and those before, that execute programs.
    expect(len([name for name in os.listdir(output + '.away') if name[0].isdigit()]) >= 3,
           os.listdir(output + '.away'))


@test
def only_root_has_an_opener():
    need_root()
    need_readable_library()
    directory = new_directory('others')
    os.chown(directory, 65534, 65534)
    command = [profrun(), 'run', '-q', '--no-report', '-o', directory + '/recording', 'env']
    done = run(['setpriv', '--reuid', '65534', '--clear-groups', *command])
    if done.status != 0:
        raise Skipped('nobody cannot execute profrun')
    expect('SHIM_OPENER' not in done.stdout, done.stdout)
    expect('SHIM_OPENER=' in run(['env', 'SHIM_OPENER=x', *command[:-2],
                                  directory + '/second', '--', 'env']).stdout, 'root')


if __name__ == '__main__':
    shimtest.main()
