"""An installation of the build (SHIM_BUILD), modules compiled against it as their
authors would do it, and programs that run with them.
"""
import glob
import os
import re
import struct
import subprocess
import time

import shimtest
from shimtest import (compile, environment, expect, expect_equal,
                      new_directory, run)

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULES = os.path.join(TESTS, 'modules')


class Installation:
    def __init__(self):
        build = os.environ.get('SHIM_BUILD')
        expect(build, 'no build to install (SHIM_BUILD)')
        shimtest.need('meson')
        self.root = new_directory('installed')
        done = subprocess.run(
            ['meson', 'install', '--no-rebuild', '-C', build, '--destdir',
             self.root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect(done.returncode == 0, done.stdout.decode(errors='replace'))
        self.profrun = self.find('profrun')
        self.library = self.find('libshim.so.0')
        # The build was installed for another prefix, and may be moved.
        self.config = os.path.dirname(self.find('shim.pc'))
        self.flags = self.ask('--cflags').split()
        self.script = ['-Wl,--version-script=' +
                       self.ask('--variable=module_map')]
        self.modules = os.path.join(self.root, 'modules')
        os.mkdir(self.modules)
        for source in sorted(os.listdir(MODULES)):
            if source.endswith(('.c', '.cc')):
                self.compile(os.path.join(MODULES, source), self.modules)

    def ask(self, what):
        return subprocess.run(
            ['pkg-config', what, 'shim'], check=True, text=True,
            env={**os.environ, 'PKG_CONFIG_PATH': self.config},
            stdout=subprocess.PIPE).stdout.strip()

    def find(self, name):
        found = glob.glob(os.path.join(self.root, '**', name), recursive=True)
        found = [f for f in found if os.path.isfile(f) and
                 'bash-completion' not in f]
        expect(found, '%s is not installed' % name)
        return found[0]

    def compile(self, source, directory, name=None, flags=(), script=None):
        name = name or os.path.splitext(os.path.basename(source))[0]
        target = os.path.join(directory, 'libshim-profiler-%s.so' % name)
        compiler = 'c++' if source.endswith('.cc') else 'cc'
        command = [compiler, '-O1', '-g', '-Wall', '-Wextra', '-Werror',
                   '-shared', '-fPIC', *self.flags, source, '-o', target,
                   *(self.script if script is None else script), *flags]
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        expect(done.returncode == 0, '%s:\n%s' % (
            ' '.join(command), done.stdout.decode(errors='replace')))
        return target

    def compile_text(self, text, name, directory=None, flags=(),
                     suffix='.c', script=()):
        directory = directory or new_directory('module')
        source = os.path.join(directory, name + suffix)
        with open(source, 'w') as file:
            file.write(text)
        self.compile(source, directory, name, flags,
                     script=script)
        return directory


installation = None


def installed():
    global installation
    if not installation:
        installation = Installation()
    return installation


def fixture():
    return compile('module_calls.c')


def load(profile, program=None, path=None, output=None, **more):
    """Runs a program with these profilers, without profrun."""
    output = output or new_directory('recording')
    variables = dict(SHIM_MODULE_PATH=path or installed().modules)
    variables.update(more)
    result = run(program or [fixture()], None, **{
        **environment(), 'LD_PRELOAD': installed().library,
        'SHIM_DIR': output, 'SHIM_PROFILE': profile, **variables})
    result.output = output
    return result


# struct shim_meta: where the sizes of the strings and of the log stand, and the log.
META_LOG_SIZE = 140
META_LOG = 144 + 8192


def log_of(output):
    """The messages of the library in all processes, without the one of machines that have
    no coarse clock."""
    text = ''
    for meta in sorted(glob.glob(os.path.join(output, '*', 'meta'))):
        with open(meta, 'rb') as file:
            data = file.read(META_LOG + 8192)
        size = min(*struct.unpack_from('<I', data, META_LOG_SIZE), 8192)
        text += data[META_LOG:META_LOG + size].decode(errors='replace')
    return re.sub(r'.*has no coarse clock.*\n', '', text)


def expect_alike(result, program=None):
    """The program must behave as without shim."""
    alone = run(program or [fixture()])
    expect_equal(result.status, alone.status, 'exit status')
    expect_equal(result.stdout, alone.stdout, 'stdout')
    expect_equal(result.stderr, alone.stderr, 'stderr')


def expect_log(result, *lines):
    """Expects one line for each pattern, in this order, and no other line."""
    got = log_of(result.output).splitlines()
    expect(len(got) == len(lines) and
           all(re.search(l, g) for l, g in zip(lines, got)),
           'the log: got %r, wanted %r' % (got, lines))


def new_file(name='result'):
    return os.path.join(new_directory('result'), name)


def content(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def profrun(*words, timeout=60, **more):
    directory = new_directory('run')
    done = subprocess.run(
        [installed().profrun, *words], cwd=directory, timeout=timeout,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env=environment(None, **{'SHIM_MODULE_PATH': installed().modules,
                                 **more}))
    done.directory = directory
    return done


class Target:
    """A program that runs with --control; also without profrun."""

    def __init__(self, threads=8, how='busy', profile='calltree:counts',
                 control='1', command=None, **more):
        self.output = new_directory('recording')
        # -z now: the slots are on a read-only page and take longer to change
        program = compile('attach.c', flags=['-rdynamic', '-Wl,-z,now'],
                          name='attach_now')
        command = command or [program, str(threads), how]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment(
                self.output, profile, LD_PRELOAD=installed().library,
                SHIM_MODULE_PATH=installed().modules,
                **({'SHIM_CONTROL': control} if control else {})), **more)
        self.pid = self.process.pid
        self.first = ''
        while 'ready' not in self.first:
            line = self.process.stdout.readline()
            expect(line, 'it did not start: %s' % self.process.poll())
            self.first += line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ctl(self, *words, status=0, user=None):
        command = [installed().profrun, 'ctl', '-v', str(self.pid), *words]
        if user:
            command = ['setpriv', '--reuid', str(user), '--regid', str(user),
                       '--clear-groups'] + command
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=60,
                              cwd=shimtest.scratch, env=environment())
        if status is not None:
            expect_equal(done.returncode, status, 'profrun ctl %s: %s%s' % (
                ' '.join(words), done.stdout, done.stderr))
        return done.stdout + done.stderr

    def finish(self):
        expect(self.process.poll() is None,
               'it ended by itself: %s' % self.process.poll())
        out, err = self.process.communicate('', timeout=60)
        expect_equal(self.process.returncode, 42, 'exit status: ' + err)
        expect_equal(err, '', 'stderr')
        expect(out.endswith('done\n'), out)
        fds = re.findall(r'fds (-?\d+)', self.first + out)
        expect(fds[0] == fds[1], 'descriptors: ' + str(fds))
        return out

    def run_times(self):
        """{task: nanoseconds on a processor}"""
        times = {}
        for task in os.listdir('/proc/%d/task' % self.pid):
            with open('/proc/%d/task/%s/schedstat' % (self.pid, task)) as file:
                times[task] = int(file.read().split()[0])
        return times

    def wait_until_run(self, threads):
        """Waits until @threads threads have run for some milliseconds each."""
        before, deadline = self.run_times(), time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if threads <= sum(ran - before.get(task, 0) > 5e6 for task, ran
                              in self.run_times().items()):
                return

    def descriptors(self):
        return sorted(os.listdir('/proc/%d/fd' % self.pid))

    def resident(self):
        with open('/proc/%d/statm' % self.pid) as file:
            return int(file.read().split()[1]) * 4

    def maps(self, name):
        return content('/proc/%d/maps' % self.pid).count(name)

    def tasks(self):
        return len(os.listdir('/proc/%d/task' % self.pid))

    def socket(self):
        return glob.glob(os.path.join(self.output, '*', 'control'))[0]
